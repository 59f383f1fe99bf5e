//! A trace of any format: whatever the bytes, reading ends, each record in a request or in an error of one line; what was
//! read is written and read again, and written the same. The first byte chooses the format; beyond the last one, the
//! format is told by the bytes themselves.

#![no_main]

use headstack_workload::trace::{self, Format, Header, Packing, Record, Trace, TraceWriter};
use libfuzzer_sys::fuzz_target;

fn read(bytes: &[u8], format: Option<&'static Format>) -> Option<(Vec<Record>, Header, &'static Format)> {
    let mut trace = match Trace::open(bytes, "fuzz", format) {
        Ok(trace) => trace.skipping(4),
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1);
            return None;
        }
    };
    let mut records = Vec::new();
    loop {
        match trace.next_record() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => break,
            Err(error) => {
                assert_eq!(error.to_string().lines().count(), 1);
                break;
            }
        }
    }
    Some((records, trace.header().clone(), trace.format()))
}

fn write(records: &[Record], header: &Header, format: &'static Format) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), format, Packing::None).expect("memory takes all");
    for record in records {
        writer.write(record, header).expect("memory takes all");
    }
    writer.finish(header).expect("memory takes all").0
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let Some((records, header, format)) = read(bytes, trace::all().get(usize::from(*choice))) else { return };
    let written = write(&records, &header, format);
    let (again, header, _) = read(&written, Some(format)).expect("what was written can be read");
    assert!(write(&again, &header, format) == written, "{} came back otherwise", format.name);
});
