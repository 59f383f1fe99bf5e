//! Complete set-ups of DiskSim's examples: traces replayed at their recorded times on the shipped rigs that describe the same hardware.
//!
//! The traces are not part of Headstack. DiskSim's means are those that it prints for its own example files. DiskSim ends with the last
//! record of the trace and does not count the requests that are then outstanding.

pub mod synthetic;

use crate::study::StudyError;
use headstack_model::{Instant, Nanos};
use headstack_sim::Outcome;
use headstack_sim::rig::shipped;
use headstack_workload::trace::{DeviceMap, Replay, ReplayOptions, Trace};

/// A rig, a trace, and what DiskSim prints for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetUp {
    /// Name of the shipped rig.
    pub rig: &'static str,
    /// Name of the trace's file.
    pub trace: &'static str,
    /// What the set-up is.
    pub title: &'static str,
    /// Records of the trace.
    pub records: u64,
    /// DiskSim's mean response time in ms.
    pub disksim_ms: f64,
}

/// The set-ups with a trace.
pub const SET_UPS: [SetUp; 2] = [
    SetUp {
        rig: "ascii-trace",
        trace: "ascii.trace",
        title: "18 disks, C-LOOK in the host",
        records: 100_000,
        disksim_ms: 13.767,
    },
    SetUp {
        rig: "hp-workstation",
        trace: "ajw.1week.srt",
        title: "2 disks, SSTF by block number",
        records: 44_519,
        disksim_ms: 48.786,
    },
];

/// The requests of a replay that ended before the last one was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedRequests {
    /// Their number.
    pub requests: u64,
    /// The sum of their response times.
    pub total: Nanos,
}

impl CountedRequests {
    /// Mean response time in ms.
    pub fn mean_ms(&self) -> f64 {
        self.total.as_ms() / self.requests as f64
    }
}

/// Replays a trace, from the bytes of its file, on its rig.
///
/// *Errors:* the trace is malformed or does not fit on the rig; a request fails.
pub fn replay(set_up: &SetUp, bytes: &[u8]) -> Result<CountedRequests, StudyError> {
    let input = |error: &dyn ToString| StudyError::Input(format!("{}: {}", set_up.rig, error.to_string()));
    let rig = shipped::load(set_up.rig).map_err(|error| input(&error))?;
    let trace = Trace::open(bytes, set_up.trace, None).map_err(|error| input(&error))?;
    let names = rig.trace_devices().ok_or_else(|| input(&"the rig names no device of a trace"))?;
    let devices = DeviceMap::Named(names);
    let options = ReplayOptions { devices, ..ReplayOptions::default() };
    let mut load = Replay::new(trace, &rig.volumes(), options);
    let mut engine = rig.build(1).map_err(|error| input(&error))?;
    let mut all: Vec<(Instant, Instant)> = Vec::new();
    let mut are_done = true;
    engine.run(&mut load, &mut |finished| {
        are_done &= finished.completion.outcome == Outcome::Done;
        all.push((finished.completion.submitted, finished.completion.completed));
    });
    if !are_done {
        return Err(input(&"a request failed"));
    }
    if let Some(error) = load.error() {
        return Err(input(error));
    }
    let last_issue = all.iter().map(|(submitted, _)| *submitted).max().unwrap_or_default();
    let counted = all.iter().filter(|(_, completed)| *completed <= last_issue);
    let (mut requests, mut total) = (0, Nanos::ZERO);
    for (submitted, completed) in counted {
        requests += 1;
        total += *completed - *submitted;
    }
    Ok(CountedRequests { requests, total })
}
