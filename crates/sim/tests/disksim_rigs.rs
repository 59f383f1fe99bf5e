//! Does a shipped rig answer a trace as DiskSim 4.0 does in the same set-up?
//!
//! The traces lie in `$HEADSTACK_REFERENCE/disksim/traces`; without that variable there is nothing to replay. DiskSim's
//! means are those that it prints for its own example files. It ends with the last record of the trace, and does not
//! count what is outstanding then.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack_model::{Instant, Nanos};
use headstack_sim::Outcome;
use headstack_sim::rig::{Rig, shipped};
use headstack_workload::trace::{DeviceMap, Replay, ReplayOptions, Trace};
use std::fs::File;
use std::path::{Path, PathBuf};

/// How far the mean may lie from DiskSim's.
const TOLERANCE: f64 = 0.02;

/// What a replay came to.
#[derive(Debug, PartialEq)]
struct Replayed {
    requests: u64,
    total: Nanos,
    last_issue: Instant,
}

impl Replayed {
    fn mean_ms(&self) -> f64 {
        self.total.as_ms() / self.requests as f64
    }
}

fn replay(rig: &Rig, file: &Path) -> Replayed {
    let input = File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let trace =
        Trace::open(input, &file.display().to_string(), None).unwrap_or_else(|error| panic!("{error}"));
    let devices = DeviceMap::Named(rig.trace_devices().expect("the rig names the trace's devices"));
    let options = ReplayOptions { devices, ..ReplayOptions::default() };
    let mut load = Replay::new(trace, &rig.volumes(), options);
    let mut engine = rig.build(1).unwrap_or_else(|error| panic!("{error}"));
    let mut all = Vec::new();
    engine.run(&mut load, &mut |finished| {
        assert_eq!(finished.completion.outcome, Outcome::Done);
        all.push((finished.completion.submitted, finished.completion.completed));
    });
    assert!(load.error().is_none(), "{:?}", load.error());
    let last_issue = all.iter().map(|(submitted, _)| *submitted).max().unwrap_or_default();
    let counted = all.iter().filter(|(_, completed)| *completed <= last_issue);
    let (mut requests, mut total) = (0, Nanos::ZERO);
    for (submitted, completed) in counted {
        requests += 1;
        total += *completed - *submitted;
    }
    Replayed { requests, total, last_issue }
}

fn trace(name: &str) -> Option<PathBuf> {
    Some(headstack_prerequisites::reference_data("disksim/traces")?.join(name))
}

fn compare(name: &str, file: &str, requests: u64, theirs: f64) {
    let Some(file) = trace(file) else { return };
    let rig = shipped::load(name).unwrap_or_else(|error| panic!("{error}"));
    let met = replay(&rig, &file);
    let off = met.mean_ms() / theirs - 1.0;
    println!(
        "{name}: {} requests, mean {:.3} ms, DiskSim {theirs} ms: {:+.2} %",
        met.requests,
        met.mean_ms(),
        100.0 * off
    );
    assert_eq!(met.requests, requests, "{name}");
    assert!(off.abs() <= TOLERANCE, "{name}: {off:+.4} of {theirs} ms");
    assert_eq!(replay(&rig, &file), met, "{name}: the same again");
}

#[test]
fn ascii_trace_mean_matches_disksim() {
    compare("ascii-trace", "ascii.trace", 99_998, 13.767);
}

#[test]
fn workstation_week_mean_matches_disksim() {
    compare("hp-workstation", "ajw.1week.srt", 44_517, 48.786);
}
