//! DiskSim 4.0 computed the response time of each request of 98 made-up loads: ten drives, ten kinds of load, one request
//! outstanding. The shipped drives, made of the same parameters, are held to those times.
//!
//! The loads lie in `$HEADSTACK_REFERENCE/disksim/oracle`; without that variable there is nothing to replay. DiskSim's
//! answers are not the truth: where it is known to be wrong, the drive is changed to err as it does, and each change is
//! named here. `docs/VALIDATION.md` argues each load that stays off.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack_model::spec::{JoinedWrites, ZeroLatency};
use headstack_model::{DriveSpec, drives};
use headstack_sim::stats::Pair;
use headstack_studies::validation;
use headstack_workload::trace::{self, Trace};
use std::fs;
use std::path::{Path, PathBuf};

/// DiskSim's name of each drive, and ours.
const DRIVES: [(&str, &str); 10] = [
    ("atlas10k", "atlas-10k"),
    ("atlas_III", "atlas-iii"),
    ("barracuda", "barracuda-st32171w"),
    ("cheetah4LP", "cheetah-4lp"),
    ("cheetah9LP", "cheetah-9lp"),
    ("dec_rz26", "dec-rz26"),
    ("hp_c2247a", "hp-c2247a"),
    ("hp_c2490a", "hp-c2490a"),
    ("hp_c3323a", "hp-c3323a"),
    ("ibm18es", "ultrastar-18es"),
];

/// Loads whose mean absolute error is over 1 % of their mean.
const OFF: [&str; 2] = ["barracuda.runs-writes-quick", "cheetah4LP.runs-writes-quick"];

/// Largest mean absolute error of a load that agrees, as a share of its mean.
const AGREES: f64 = 0.01;

/// The shipped drive, with what DiskSim is known to do otherwise.
fn as_disksim_has_it(name: &str) -> DriveSpec {
    let mut spec = drives::load(name).unwrap_or_else(|error| panic!("{error}"));
    // DiskSim never accesses a track from wherever the head arrives: the comparison that starts it cannot succeed.
    spec.mechanics.zero_latency_read = ZeroLatency::None;
    spec.mechanics.zero_latency_write = ZeroLatency::None;
    // Nor does it keep what goes by before the first wanted sector, for the same reason.
    spec.cache.read_on_arrival = false;
    // It follows failed measurements in the seek curves, and goes on with the read-ahead of this drive past its segment.
    let seek = &mut spec.mechanics.seek.points_cylinders_ms;
    match name {
        "atlas-10k" => {
            seek.push((4700, 9.463));
            spec.cache.read_ahead_past_segment = true;
        }
        "ultrastar-18es" => seek.extend([(10, 1.02), (3400, 1.026)]),
        _ => {}
    }
    seek.sort_unstable_by_key(|(cylinders, _)| *cylinders);
    // Its read-ahead is stopped at sectors alone, so that the arm is held while it waits for the first one of a track.
    spec.cache.read_ahead_holds_for_sector = true;
    // It puts the blocks of a write that joins another on the media twice.
    spec.cache.joined_writes = JoinedWrites::Again;
    // Its files of these two give one bus time for reads and writes; the shipped ones depart from that, as they say.
    if matches!(name, "hp-c2490a" | "hp-c3323a") {
        spec.bus.write_us_per_sector = spec.bus.read_us_per_sector;
    }
    spec
}

/// How far a load's times are from DiskSim's.
struct Agreement {
    load: String,
    mean_ms: f64,
    our_mean_ms: f64,
    /// Mean absolute error over the mean.
    error: f64,
    /// Share of the requests that are off by at most 1 %.
    near: f64,
}

impl Agreement {
    fn new(load: &str, pairs: &[Pair]) -> Agreement {
        let count = pairs.len() as f64;
        let mean = |of: fn(&Pair) -> u64| pairs.iter().map(|pair| of(pair) as f64).sum::<f64>() / count / 1e6;
        let mean_ms = mean(|pair| pair.measured.0);
        let near = pairs.iter().filter(|pair| off(pair) * 100 <= pair.measured.0).count() as f64 / count;
        Agreement {
            load: load.to_string(),
            mean_ms,
            our_mean_ms: mean(|pair| pair.simulated.0),
            error: mean(off) / mean_ms,
            near,
        }
    }

    fn print(&self) {
        let Agreement { load, mean_ms, our_mean_ms, error, near } = self;
        let (error, near) = (100.0 * error, 100.0 * near);
        println!(
            "{load:30} {mean_ms:8.3} ms, ours {our_mean_ms:8.3}, off {error:7.3} %, {near:5.1} % within 1 %"
        );
    }
}

/// How far one request is off, in nanoseconds.
fn off(pair: &Pair) -> u64 {
    pair.measured.0.abs_diff(pair.simulated.0)
}

fn replay(drive: &str, path: &Path) -> Vec<Pair> {
    let name = path.display().to_string();
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let open = || {
        let opened = Trace::open(bytes.as_slice(), &name, trace::named("validate"));
        opened.unwrap_or_else(|error| panic!("{error}"))
    };
    let pairs = validation::replay(&as_disksim_has_it(drive), open(), open());
    pairs.unwrap_or_else(|error| panic!("{error}"))
}

/// The loads in the folder, each with its drive, in the order of their names.
fn loads(folder: &Path) -> Vec<(String, &'static str, PathBuf)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut loads: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be listed").path())
        .map(|path| {
            let load = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
            let drive = load.split('.').next().unwrap_or_default();
            let found = DRIVES.iter().find(|(theirs, _)| *theirs == drive);
            let (_, ours) = found.unwrap_or_else(|| panic!("{load}: no drive of this name"));
            (load, *ours, path)
        })
        .collect();
    loads.sort();
    loads
}

#[test]
fn made_up_loads_take_as_long_as_in_disksim_but_for_those_that_are_known() {
    let Some(reference) = std::env::var_os("HEADSTACK_REFERENCE") else {
        eprintln!("skipped: HEADSTACK_REFERENCE names no folder with DiskSim's times of made-up loads");
        return;
    };
    let loads = loads(&Path::new(&reference).join("disksim/oracle"));
    assert_eq!(loads.len(), 98);
    let mut off = Vec::new();
    for (load, drive, path) in loads {
        let agreement = Agreement::new(&load, &replay(drive, &path));
        agreement.print();
        if agreement.error > AGREES {
            off.push(load);
        }
    }
    assert_eq!(off, OFF, "loads off by more than 1 % of their mean, and those known to be");
}
