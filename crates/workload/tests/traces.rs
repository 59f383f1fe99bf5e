//! The trace readers, over the real traces and over anything at all.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use headstack_model::Op;
use headstack_workload::trace::validate::{Reader, Record};
use proptest::prelude::*;

/// Requests, reads and mean measured milliseconds of each real trace.
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
fn are_the_real_traces_read_whole() {
    let Some(folder) = std::env::var_os("HEADSTACK_REFERENCE") else {
        eprintln!("skipped: HEADSTACK_REFERENCE names no folder with real traces");
        return;
    };
    for (name, requests, reads, mean_ms) in REAL {
        let path = PathBuf::from(&folder).join(format!("disksim/traces/{name}.trace"));
        let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let records: Vec<Record> =
            Reader::new(BufReader::new(file)).collect::<Result<_, _>>().expect("the trace is good");
        assert_eq!(records.len(), requests, "{name}");
        assert_eq!(records.iter().filter(|record| record.request.op == Op::Read).count(), reads, "{name}");
        let mean = records.iter().map(|record| record.measured.as_ms()).sum::<f64>() / requests as f64;
        assert!((mean - mean_ms).abs() <= 0.000_501, "{name}: {mean} ms");
    }
}

proptest! {
    #[test]
    fn does_no_input_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let lines = bytes.split(|byte| *byte == b'\n').count();
        prop_assert!(Reader::new(&bytes[..]).count() <= lines);
    }

    #[test]
    fn does_no_near_line_panic(text in "([RWX] [a-z]{0,3} -?[0-9]{0,22} [0-9]{0,12} [-0-9.e]{0,9} [0-9.]{0,9}[ \n]){0,4}") {
        for record in Reader::new(text.as_bytes()).flatten() {
            prop_assert!(record.request.sectors > 0 && record.request.end() > record.request.lbn);
        }
    }
}
