//! The trace formats, tested with real traces, with random records, and with random bytes.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack_model::{Instant, Nanos};
use headstack_workload::trace::{
    self, Carries, Format, Header, Kind, Losses, Packing, Record, Trace, TraceWriter,
};
use proptest::prelude::*;

/// The bytes of a real trace, if the reference data are there.
fn real(name: &str) -> Option<Vec<u8>> {
    let path = headstack_prerequisites::reference_data("disksim/traces")?.join(name);
    Some(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn read(bytes: &[u8], format: &'static Format) -> (Vec<Record>, Header) {
    let mut trace = Trace::open(bytes, "trace", Some(format)).expect("the bytes are in memory");
    let mut records = Vec::new();
    while let Some(record) = trace.next_record().unwrap_or_else(|error| panic!("{}: {error}", format.name)) {
        records.push(record);
    }
    (records, trace.header().clone())
}

fn write(records: &[Record], header: &Header, format: &'static Format) -> (Vec<u8>, Losses) {
    let mut writer = TraceWriter::new(Vec::new(), format, Packing::None).expect("memory takes all");
    for record in records {
        writer.write(record, header).expect("memory takes all");
    }
    writer.finish(header).expect("memory takes all")
}

/// Requests, reads and mean measured milliseconds of each real validation trace.
const REAL: [(&str, usize, usize, f64); 7] = [
    ("atlas10k", 10_000, 6569, 3.893),
    ("cheetah9LP", 10_000, 6594, 4.273),
    ("ibm18es", 10_000, 6582, 5.261),
    ("hp_c2247a", 9999, 5115, 15.298),
    ("hp_c3323a", 9074, 6113, 15.765),
    ("dec_rz26", 7980, 5424, 15.809),
    ("st41601n", 9999, 6677, 14.617),
];

#[test]
fn validation_traces_are_read_whole() {
    for (name, requests, reads, mean_ms) in REAL {
        let Some(bytes) = real(&format!("{name}.trace")) else { return };
        let mut trace = Trace::open(&bytes[..], name, None).expect("the format is recognised");
        assert_eq!(trace.format().name, "validate");
        let records: Vec<Record> = trace.by_ref().collect::<Result<_, _>>().expect("the trace is good");
        assert_eq!(records.len(), requests, "{name}");
        assert_eq!(records.iter().filter(|record| record.kind == Kind::Read).count(), reads, "{name}");
        let sum: f64 = records.iter().filter_map(|record| record.response).map(Nanos::as_ms).sum();
        assert!((sum / requests as f64 - mean_ms).abs() <= 0.000_501, "{name}: {} ms", sum / requests as f64);
    }
}

/// Real traces with their formats, numbers of requests, and whether they are written back byte for byte. Those that are not have another
/// column layout, or fractions of a nanosecond.
const ROUND: [(&str, &str, usize, bool); 9] = [
    ("ascii.trace", "disksim", 100_000, true),
    ("ajw.1week.srt", "srt", 44_519, true),
    ("atlas10k.trace", "validate", 10_000, true),
    ("cheetah9LP.trace", "validate", 10_000, true),
    ("ibm18es.trace", "validate", 10_000, true),
    ("hp_c2247a.trace", "validate", 9999, false),
    ("hp_c3323a.trace", "validate", 9074, false),
    ("dec_rz26.trace", "validate", 7980, false),
    ("st41601n.trace", "validate", 9999, false),
];

#[test]
fn real_traces_read_back_unchanged() {
    for (name, format, requests, exact) in ROUND {
        let Some(bytes) = real(name) else { return };
        let trace = Trace::open(&bytes[..], name, None).expect("the format is recognised");
        assert_eq!(trace.format().name, format, "{name}");
        let (records, header) = read(&bytes, trace.format());
        assert_eq!(records.len(), requests, "{name}");
        let (written, losses) = write(&records, &header, trace.format());
        assert_eq!(losses.iter().count(), 0, "{name}");
        assert!(!exact || written == bytes, "{name} came back otherwise");
        let (again, header) = read(&written, trace.format());
        assert!(again == records, "{name}");
        assert!(write(&again, &header, trace.format()).0 == written, "{name}");
    }
}

#[test]
fn every_format_rewrites_real_trace_identically() {
    let Some(bytes) = real("ajw.1week.srt") else { return };
    let (records, header) = read(&bytes, trace::named("srt").expect("it is listed"));
    for format in trace::all() {
        let (written, _) = write(&records[..2000], &header, format);
        let (again, names) = read(&written, format);
        assert!(write(&again, &names, format).0 == written, "{}", format.name);
    }
}

#[test]
fn truncated_trace_is_rejected_in_one_line() {
    let Some(bytes) = real("ajw.1week.srt") else { return };
    let mut trace =
        Trace::open(&bytes[..bytes.len() - 10], "week.srt", None).expect("the format is recognised");
    let error = trace.by_ref().find_map(Result::err).expect("its end is missing");
    assert_eq!(
        error.to_string(),
        "week.srt: byte 2495212: the trace ends after 46 of the 56 bytes of a record"
    );
    assert!(trace.next().is_none());
}

#[test]
fn blktrace_keeps_its_byte_order() {
    let format = trace::named("blktrace").expect("it is listed");
    let record =
        Record { response: Some(Nanos(7000)), ..Record::new(Instant(5), 8 << 20, Kind::Read, 4096, 512) };
    let order = |big_endian| write(&[record], &Header { big_endian, ..Header::default() }, format).0;
    let (little, big) = (order(false), order(true));
    assert_eq!(
        (little.len(), &little[..4], &big[..4]),
        (96, &[7, 0x74, 0x61, 0x65][..], &[0x65, 0x61, 0x74, 7][..])
    );
    let (records, header) = read(&big, format);
    assert_eq!(records[0].response, Some(Nanos(7000)));
    assert_eq!(write(&records, &header, format).0, big);
    assert_eq!(read(&little, format).0, records);
}

fn any_record() -> impl Strategy<Value = Record> {
    let kind = prop::sample::select(Kind::ALL.to_vec());
    let offset = prop_oneof![0u64..1 << 20, 0u64..1 << 56];
    let bytes = prop_oneof![0u64..4, (1u64..1000).prop_map(|sectors| sectors * 512), 0u64..1 << 40];
    let time = prop_oneof![0u64..1_000_000, 0u64..1 << 63];
    let spans = (prop::option::of(0u64..1 << 50), prop::option::of(0u64..1 << 50));
    let source = prop::option::of(any::<u32>());
    (time, prop_oneof![0u32..4, any::<u32>()], kind, offset, bytes, spans, source).prop_map(
        |(time, device, kind, offset, bytes, (response, think), source)| {
            // A flush has no blocks: in a format that has only events, nothing shows to which flush a completion belongs.
            let flush = kind == Kind::Flush;
            let (offset, bytes, response) = if flush { (0, 0, None) } else { (offset, bytes, response) };
            Record {
                response: response.map(Nanos),
                think: think.map(Nanos),
                source,
                ..Record::new(Instant(time), device, kind, offset, bytes)
            }
        },
    )
}

/// The parts of records that a format preserves. Devices are numbered in order of occurrence. The times of a trace that is replayed closed
/// are computed from its spans.
fn comparable(records: &[Record], carries: &Carries) -> Vec<Record> {
    let mut devices = Vec::new();
    let mut renumber = |device: u32| {
        let place = devices.iter().position(|known| *known == device);
        place.unwrap_or_else(|| {
            devices.push(device);
            devices.len() - 1
        }) as u32
    };
    let mut comparable = Vec::new();
    for record in records {
        let time = if carries.tick == 0 { Instant::ZERO } else { record.time };
        let think = record.think.filter(|_| carries.tick > 0);
        let plain = Record { source: record.source, ..record.plain() };
        comparable.push(Record { device: renumber(record.device), time, think, ..plain });
    }
    comparable
}

#[test]
fn completion_after_the_latest_arrival_is_read() {
    let latest = Record::new(Instant((1 << 63) - 1), 0, Kind::Read, 0, 512);
    let record = Record { response: Some(Nanos(1 << 50)), ..latest };
    for format in trace::all().iter().filter(|format| format.carries.response.is_some()) {
        let mut fitted = record;
        if format.carries.fit(&mut fitted, &mut Losses::default()) {
            let (bytes, _) = write(&[record], &Header::default(), format);
            let (again, _) = read(&bytes, format);
            assert_eq!(again[0].response, fitted.response, "{}", format.name);
        }
    }
}

proptest! {
    #[test]
    fn every_format_preserves_records_it_can_carry(records in prop::collection::vec(any_record(), 0..20)) {
        for format in trace::all() {
            let header = Header::default();
            let mut records = records.clone();
            if format.name == "biosnoop" {
                // It lists completions, and is read in the order of issue.
                records.sort_by_key(|record| record.time);
            }
            let (first, _) = write(&records, &header, format);
            let mut losses = Losses::default();
            let fits = |record: &Record| {
                let mut fitted = *record;
                format.carries.fit(&mut fitted, &mut losses).then_some(fitted)
            };
            let fitted: Vec<Record> = records.iter().filter_map(fits).collect();
            let (again, names) = read(&first, format);
            prop_assert_eq!(
                comparable(&again, &format.carries),
                comparable(&fitted, &format.carries),
                "{}",
                format.name
            );
            let (second, losses) = write(&again, &names, format);
            prop_assert!(first == second, "{}", format.name);
            prop_assert_eq!(losses.iter().count(), 0, "{}", format.name);
        }
    }

    #[test]
    fn every_format_is_detected_by_its_first_bytes(records in prop::collection::vec(any_record(), 1..4)) {
        for format in trace::all() {
            let (bytes, _) = write(&records, &Header::default(), format);
            if !bytes.is_empty() {
                let trace = Trace::open(&bytes[..], "t", None).expect("some format looks like it");
                prop_assert_eq!(trace.format().name, format.name);
            }
        }
    }

    /// Does the same as the fuzz target `traces`, but starts from traces that are nearly correct.
    #[test]
    fn damaged_trace_rewrites_identically(
        records in prop::collection::vec(any_record(), 0..6),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4), 1..6),
    ) {
        for format in trace::all() {
            let (mut bytes, _) = write(&records, &Header::default(), format);
            for (place, byte, how) in &damage {
                if bytes.is_empty() {
                    break;
                }
                let place = place.index(bytes.len());
                match how {
                    0 => bytes[place] = *byte,
                    1 => bytes.insert(place, *byte),
                    2 => drop(bytes.remove(place)),
                    _ => bytes.extend_from_within(place..),
                }
            }
            let Ok(trace) = Trace::open(&bytes[..], "t", Some(format)) else { continue };
            let mut trace = trace.skipping(4);
            let mut met = Vec::new();
            while let Ok(Some(record)) = trace.next_record() {
                met.push(record);
            }
            let (first, _) = write(&met, trace.header(), format);
            let (again, header) = read(&first, format);
            prop_assert!(write(&again, &header, format).0 == first, "{}", format.name);
        }
    }

    #[test]
    fn compressed_trace_reads_like_plain_one(records in prop::collection::vec(any_record(), 0..20)) {
        let format = trace::named("disksim").expect("it is listed");
        let (plain, _) = write(&records, &Header::default(), format);
        for packing in [Packing::Gzip, Packing::Zstd] {
            let mut writer = TraceWriter::new(Vec::new(), format, packing).expect("memory takes all");
            for record in &records {
                writer.write(record, &Header::default()).expect("memory takes all");
            }
            let (packed, _) = writer.finish(&Header::default()).expect("memory takes all");
            prop_assert!(packed != plain || plain.is_empty());
            prop_assert_eq!(read(&packed, format), read(&plain, format));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for format in trace::all() {
            // The first two bytes can be those of gzip although the rest is not gzip.
            let Ok(trace) = Trace::open(&bytes[..], "t", Some(format)) else { continue };
            let mut trace = trace.skipping(3);
            let mut met = 0;
            while let Ok(Some(_)) = trace.next_record() {
                met += 1;
                prop_assert!(met <= bytes.len());
            }
        }
    }

    #[test]
    fn near_valid_lines_never_panic(text in "([RWX] [a-z]{0,3} -?[0-9]{0,22} [0-9]{0,12} [-0-9.e]{0,9} [0-9.]{0,9}[ \n]){0,4}") {
        for format in trace::all() {
            for record in Trace::open(text.as_bytes(), "t", Some(format)).expect("memory can be read").flatten() {
                prop_assert!(record.end() >= record.offset);
            }
        }
    }
}
