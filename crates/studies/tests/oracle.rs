//! DiskSim 4.0 computed the response time of each request of 98 made-up loads: ten drives, ten kinds of load, one request outstanding. The
//! shipped drives, made from the same parameters, are compared with those times.
//!
//! The loads lie in `$HEADSTACK_REFERENCE/disksim/oracle`; without that variable there is nothing to replay. DiskSim's answers are not the
//! truth. Where DiskSim is known to differ, its behaviour is applied to the drive, and the difference is named here with the loads that
//! show it. `studies/validation/disksim.md` argues for each difference who is right.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack_model::spec::{JoinedWrites, ZeroLatency};
use headstack_model::{DriveSpec, drives};
use headstack_sim::stats::Pair;
use headstack_studies::validation::{self, ORACLE_AGREES};
use headstack_workload::trace::{self, Trace};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A known difference between DiskSim and the shipped drives.
struct Difference {
    what: &'static str,
    /// Changes the drive of this name to behave as in DiskSim.
    apply: fn(&str, &mut DriveSpec),
    /// Loads that are off by more than [`ORACLE_AGREES`] with all differences applied but this one.
    shown_by: &'static [&'static str],
}

const DIFFERENCES: [Difference; 7] = [
    Difference {
        what: "no track is accessed from wherever the head arrives, and what goes by before the first wanted sector is not kept: \
               the comparison that starts either cannot succeed",
        apply: |_, spec| {
            spec.mechanics.zero_latency_read = ZeroLatency::None;
            spec.mechanics.zero_latency_write = ZeroLatency::None;
            spec.cache.read_on_arrival = false;
        },
        shown_by: &["atlas10k.local-mixed", "ibm18es.local-mixed"],
    },
    Difference {
        what: "failed measurements in the seek curves count",
        apply: |name, spec| {
            let seek = &mut spec.mechanics.seek.points_cylinders_ms;
            match name {
                "atlas-10k" => seek.push((4700, 9.463)),
                "ultrastar-18es" => seek.extend([(10, 1.02), (3400, 1.026)]),
                _ => {}
            }
            seek.sort_unstable_by_key(|(cylinders, _)| *cylinders);
        },
        shown_by: &["ibm18es.gaps-reads"],
    },
    Difference {
        what: "the Atlas 10K's read-ahead continues past its segment",
        apply: |name, spec| spec.cache.read_ahead_past_segment |= name == "atlas-10k",
        shown_by: &["atlas10k.runs-reads-quick", "atlas10k.runs-reads-slow"],
    },
    Difference {
        what: "a read-ahead stops at sectors alone, so that the arm is held while it waits for the first one of a track",
        apply: |_, spec| spec.cache.read_ahead_holds_for_sector = true,
        shown_by: &[],
    },
    Difference {
        what: "the blocks of a write that joins another are put on the media twice",
        apply: |_, spec| spec.cache.joined_writes = JoinedWrites::Again,
        shown_by: &[
            "atlas10k.runs-writes-quick",
            "barracuda.runs-writes-quick",
            "cheetah4LP.runs-writes-quick",
            "cheetah9LP.runs-writes-quick",
            "ibm18es.runs-writes-quick",
            "ibm18es.runs-writes-slow",
        ],
    },
    Difference {
        what: "the spares of a track take no time to go by while a write waits there for its data",
        apply: |_, spec| spec.mechanics.waits_skip_spares = true,
        shown_by: &["barracuda.runs-writes-quick", "cheetah4LP.runs-writes-quick"],
    },
    Difference {
        what: "writes of the HP C2490A and C3323A cross the bus as fast as reads",
        apply: |name, spec| {
            if matches!(name, "hp-c2490a" | "hp-c3323a") {
                spec.bus.write_us_per_sector = spec.bus.read_us_per_sector;
            }
        },
        shown_by: &[
            "hp_c2490a.large",
            "hp_c2490a.runs-writes-slow",
            "hp_c3323a.large",
            "hp_c3323a.runs-writes-slow",
        ],
    },
];

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

fn replay(spec: &DriveSpec, path: &Path) -> Vec<Pair> {
    let name = path.display().to_string();
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let open = || {
        let opened = Trace::open(bytes.as_slice(), &name, trace::named("validate"));
        opened.unwrap_or_else(|error| panic!("{error}"))
    };
    let pairs = headstack::validation::replay(spec, open(), open());
    pairs.unwrap_or_else(|error| panic!("{error}"))
}

/// A load, with DiskSim's time of each of its requests.
struct Load {
    name: String,
    drive: &'static str,
    path: PathBuf,
}

impl Load {
    /// Replays it on its drive with all differences applied but those for whose index `left_out` returns true.
    fn agreement(&self, left_out: impl Fn(usize) -> bool) -> Agreement {
        let mut spec = drives::load(self.drive).unwrap_or_else(|error| panic!("{error}"));
        for (index, difference) in DIFFERENCES.iter().enumerate() {
            if !left_out(index) {
                (difference.apply)(self.drive, &mut spec);
            }
        }
        Agreement::new(&self.name, &replay(&spec, &self.path))
    }
}

/// The loads of the reference data, in the order of their names; none without the data.
fn loads() -> Option<Vec<Load>> {
    let folder = headstack_prerequisites::reference_data("disksim/oracle")?;
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut loads: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be listed").path())
        .map(|path| {
            let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
            let theirs = name.split('.').next().unwrap_or_default();
            let found = validation::ORACLE_DRIVES.iter().find(|(drive, _)| *drive == theirs);
            let (_, drive) = *found.unwrap_or_else(|| panic!("{name}: no drive of this name"));
            Load { name, drive, path }
        })
        .collect();
    loads.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(loads.len(), 98);
    Some(loads)
}

/// Names of the loads that are off by more than [`ORACLE_AGREES`] with some differences left out.
fn off_without(loads: &[Load], left_out: impl Fn(usize) -> bool) -> Vec<&str> {
    let is_off = |load: &&Load| load.agreement(&left_out).error > ORACLE_AGREES;
    loads.iter().filter(is_off).map(|load| load.name.as_str()).collect()
}

#[test]
fn loads_match_disksim_with_all_known_differences_applied() {
    let Some(loads) = loads() else { return };
    for load in &loads {
        load.agreement(|_| false).print();
    }
    assert_eq!(off_without(&loads, |_| false), Vec::<&str>::new());
}

#[test]
fn each_known_disksim_difference_shows_in_its_named_loads() {
    let Some(loads) = loads() else { return };
    for (index, Difference { what, shown_by, .. }) in DIFFERENCES.iter().enumerate() {
        assert_eq!(off_without(&loads, |left_out| left_out == index), *shown_by, "{what}");
    }
}

#[test]
fn drives_match_disksim_except_on_loads_of_known_differences() {
    let Some(loads) = loads() else { return };
    let named: BTreeSet<&str> =
        DIFFERENCES.iter().flat_map(|difference| difference.shown_by).copied().collect();
    let off: BTreeSet<&str> = off_without(&loads, |_| true).into_iter().collect();
    println!("{} of {} loads agree", loads.len() - off.len(), loads.len());
    assert_eq!(off, named);
}
