//! Response times of the shipped rigs and of DiskSim's own imported set-ups, compared with those of DiskSim 4.0.
//!
//! `$HEADSTACK_REFERENCE/disksim` has the traces in `traces` and the parameter files of the synthetic set-ups in `rigs` and `specs`. Without
//! that variable there is nothing to compare.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack_studies::set_ups::synthetic::{self, SYNTHETIC, SeedMeans, SyntheticSetUp};
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

/// Runs a synthetic set-up with a changed load; none without the reference data.
fn synthetic_means(set_up: &SyntheticSetUp, change: impl Fn(&str) -> String) -> Option<SeedMeans> {
    let folder = headstack_prerequisites::reference_data("disksim")?;
    let read = |path: &str| fs::read_to_string(folder.join(path)).map_err(|error| format!("{path}: {error}"));
    Some(synthetic::run(set_up, &read, change).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn means_of_synthetic_set_ups_match_disksim() {
    for set_up in SYNTHETIC.iter().filter(|set_up| set_up.file != MIXED) {
        let Some(means) = synthetic_means(set_up, str::to_string) else { return };
        let off = means.mean_ms / set_up.disksim_ms - 1.0;
        // All of its processes wait, so a run of it differs little from another.
        let tolerance = if set_up.file == "synthclosed" { 0.01 } else { 0.03 };
        assert!(off.abs() <= tolerance, "{}: {off:+.4} of {} ms", set_up.file, set_up.disksim_ms);
    }
}

const MIXED: &str = "synthmixed";

#[test]
fn disksim_mixed_mean_lies_within_the_spread_of_seeds() {
    let mixed = SYNTHETIC.iter().find(|set_up| set_up.file == MIXED).expect("it is in the list");
    let with_seeds = |seeds| SyntheticSetUp { seeds, ..*mixed };
    // Five processors, of which all but the first are lost at times that chance sets: until then the disk is overloaded.
    let Some(means) = synthetic_means(mixed, str::to_string) else { return };
    let one = synthetic_means(&with_seeds(10), |load| load.replace("processors = 5", "processors = 1"));
    let all = synthetic_means(&with_seeds(1), |load| {
        load.replace("idle_cpu_never_wakes = true", "idle_cpu_never_wakes = false")
    });
    let (one, all) = (one.expect("the data are there"), all.expect("the data are there"));
    let runs = &means.runs_ms;
    assert!(runs[0] < mixed.disksim_ms && mixed.disksim_ms < means.median_ms(), "{runs:?}");
    // One processor alone is what most requests meet in the runs that lose the others at once.
    assert!(one.mean_ms < runs[3] && one.mean_ms > 0.95 * runs[0], "{one:?}");
    // With as many processors as the file says, the load is more than the disk can serve.
    assert!(all.mean_ms > 100.0 * mixed.disksim_ms, "{all:?}");
}
