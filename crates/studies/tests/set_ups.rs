//! Does a shipped rig answer a trace as DiskSim 4.0 does in the same set-up?
//!
//! The traces lie in `$HEADSTACK_REFERENCE/disksim/traces`; without that variable there is nothing to replay.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack_studies::set_ups::{SET_UPS, replay};
use std::fs;

/// How far the mean may lie from DiskSim's.
const TOLERANCE: f64 = 0.02;

/// Checks the set-up at this index, of which DiskSim counts this number of requests.
fn compare(index: usize, requests: u64) {
    let set_up = SET_UPS[index];
    let Some(folder) = headstack_prerequisites::reference_data("disksim/traces") else { return };
    let bytes = fs::read(folder.join(set_up.trace)).expect("the trace is there");
    let met = replay(&set_up, &bytes).unwrap_or_else(|error| panic!("{}: {error}", set_up.rig));
    let off = met.mean_ms() / set_up.disksim_ms - 1.0;
    let percent = 100.0 * off;
    println!("{}: {} requests, mean {:.3} ms: {percent:+.2} %", set_up.rig, met.requests, met.mean_ms());
    assert_eq!(met.requests, requests, "{}", set_up.rig);
    assert!(off.abs() <= TOLERANCE, "{}: {off:+.4} of {} ms", set_up.rig, set_up.disksim_ms);
    assert_eq!(replay(&set_up, &bytes).ok(), Some(met), "{}: the same again", set_up.rig);
}

#[test]
fn ascii_trace_mean_matches_disksim() {
    compare(0, 99_998);
}

#[test]
fn workstation_week_mean_matches_disksim() {
    compare(1, 44_517);
}
