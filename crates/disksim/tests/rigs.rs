//! Does every parameter file of DiskSim's become a rig and a load, and does the load take as long on it?
//!
//! The files lie in `$HEADSTACK_REFERENCE/disksim/rigs`; without that variable there is nothing to import. DiskSim's means
//! are those that it prints for its own example files. Its loads come from random numbers of its own, so that a mean agrees
//! within the sampling error: of each, ten seeds are run.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack_disksim::rig::{ImportedRig, import};
use headstack_model::{Instant, drives};
use headstack_sim::rig::{Rig, shipped};
use headstack_sim::{Completion, Finished, Observer};
use headstack_workload::LoadFile;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> Option<PathBuf> {
    headstack_prerequisites::reference_data("disksim")
}

fn import_file(folder: &Path, name: &str) -> Result<ImportedRig, String> {
    let text =
        fs::read_to_string(folder.join("rigs").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let read =
        |name: &str| fs::read_to_string(folder.join("specs").join(name)).map_err(|error| error.to_string());
    import(&text, name, read).map_err(|error| error.to_string())
}

fn rig(imported: &ImportedRig, name: &str) -> Rig {
    Rig::parse(&imported.rig, name, &mut |name| drives::load(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// The mean response of a synthetic load, in ms.
fn mean(rig: &Rig, load: &str, seed: u64) -> f64 {
    let load = LoadFile::parse(load, "load").unwrap_or_else(|error| panic!("{error}"));
    let mut load = load.build(&rig.volumes(), seed).unwrap_or_else(|error| panic!("{error}"));
    let mut engine = rig.build(seed).unwrap_or_else(|error| panic!("{error}"));
    let (mut total, mut count) = (0.0, 0u32);
    engine.run(load.as_mut(), &mut |finished| {
        total += finished.completion.response().as_ms();
        count += 1;
    });
    total / f64::from(count)
}

/// The name of each parameter file.
const FILES: [&str; 23] = [
    "3disks",
    "3disks2",
    "ascii",
    "atlas10k",
    "atlas_III",
    "barracuda",
    "cheetah4LP",
    "cheetah9LP",
    "dec_rz26",
    "hp_c2247a",
    "hp_c2490a",
    "hp_c3323a",
    "hplajw",
    "ibm18es",
    "st41601n",
    "syntharrays",
    "synthcachedev",
    "synthcachemem",
    "synthclosed",
    "synthmixed",
    "synthopen",
    "synthraid5",
    "synthsimpledisk",
];

#[test]
fn every_parameter_file_imports_as_rig_and_load() {
    let Some(folder) = folder() else { return };
    let met = fs::read_dir(folder.join("rigs")).expect("the folder is there").flatten();
    let met = met.filter(|entry| entry.path().extension().is_some_and(|end| end == "parv")).count();
    assert_eq!(met, FILES.len());
    for name in FILES {
        let imported = import_file(&folder, &format!("{name}.parv"));
        let imported = imported.unwrap_or_else(|error| panic!("{error}"));
        let rig = rig(&imported, name);
        let load = imported.load.expect("each of them has a load");
        let load = LoadFile::parse(&load, name).unwrap_or_else(|error| panic!("{error}"));
        load.build(&rig.volumes(), 1).unwrap_or_else(|error| panic!("{error}"));
        rig.build(1).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = Rig::parse(&rig.to_toml(), name, &mut |preset| panic!("{preset}"));
        assert_eq!(again.expect("a resolved rig is a rig").volumes(), rig.volumes(), "{name}");
    }
}

#[test]
fn shipped_rigs_equal_the_imported_ones() {
    let Some(folder) = folder() else { return };
    for (shipped, file) in [("ascii-trace", "ascii.parv"), ("hp-workstation", "hplajw.parv")] {
        let imported = import_file(&folder, file).unwrap_or_else(|error| panic!("{error}"));
        let (imported, shipped) = (rig(&imported, file), shipped::load(shipped).expect("it is shipped"));
        // The shipped drive has the bus's time for a sector in itself, too.
        let whole = |rig: &Rig| {
            let mut spec = rig.resolved().drive[0].spec.clone();
            let bus = &rig.resolved().bus[0];
            spec.bus.read_us_per_sector = spec.bus.read_us_per_sector.max(bus.read_us_per_sector);
            spec.bus.write_us_per_sector = spec.bus.write_us_per_sector.max(bus.write_us_per_sector);
            spec
        };
        assert!(whole(&imported) == whole(&shipped), "{file}: another drive");
        assert_eq!(imported.volumes(), shipped.volumes(), "{file}");
        assert_eq!(imported.trace_devices(), shipped.trace_devices(), "{file}");
        assert_eq!(imported.resolved().host.queue.order, shipped.resolved().host.queue.order, "{file}");
    }
}

/// Sums up responses: of the requests, and of the parts of them that disks served.
#[derive(Default)]
struct Means {
    requests: (f64, u32),
    parts: (f64, u32),
}

impl Observer for Means {
    fn finished(&mut self, finished: &Finished) {
        self.requests.0 += finished.completion.response().as_ms();
        self.requests.1 += 1;
    }

    fn served(&mut self, _device: u32, _command: &Completion) {}

    fn sees_parts(&self) -> bool {
        true
    }

    fn part(&mut self, _device: u32, issued: Instant, part: &Completion) {
        self.parts.0 += (part.completed - issued).as_ms();
        self.parts.1 += 1;
    }
}

/// What DiskSim prints the mean of, for its arrays.
#[derive(Clone, Copy, Debug)]
enum Of {
    Requests,
    /// What its driver asks of the disks.
    Parts,
}

/// Set-ups with arrays, DiskSim's mean in ms, and how far ours may lie from it.
const ARRAYS: [(&str, Of, f64, f64); 2] =
    [("synthraid5", Of::Parts, 22.861, 0.03), ("syntharrays", Of::Requests, 34.272, 0.03)];

#[test]
fn array_response_times_match_disksim() {
    let Some(folder) = folder() else { return };
    for (name, of, theirs, most) in ARRAYS {
        let imported =
            import_file(&folder, &format!("{name}.parv")).unwrap_or_else(|error| panic!("{error}"));
        let rig = rig(&imported, name);
        let text = imported.load.expect("it has a load");
        let mut means = Means::default();
        for seed in 0..10 {
            let load = LoadFile::parse(&text, "load").unwrap_or_else(|error| panic!("{error}"));
            let mut load = load.build(&rig.volumes(), seed).unwrap_or_else(|error| panic!("{error}"));
            let mut engine = rig.build(seed).unwrap_or_else(|error| panic!("{error}"));
            engine.run_observed(load.as_mut(), &mut means);
        }
        let (sum, count) = match of {
            Of::Requests => means.requests,
            Of::Parts => means.parts,
        };
        let ours = sum / f64::from(count);
        let off = ours / theirs - 1.0;
        println!("{name}: mean {ours:.3} ms, DiskSim {theirs} ms: {:+.2} %", 100.0 * off);
        assert!(off.abs() <= most, "{name}: {off:+.4} of {theirs} ms");
    }
}

/// Synthetic set-ups, DiskSim's mean in ms, and how far the mean of ours may lie from it. What is beyond 3 % is a miss;
/// docs/VALIDATION.md says what is known of it.
const SYNTHETIC: [(&str, f64, f64); 7] = [
    ("synthclosed", 87.819, 0.01),
    ("synthopen", 10.937, 0.03),
    ("3disks", 10.937, 0.03),
    ("3disks2", 10.937, 0.03),
    ("synthsimpledisk", 13.712, 0.03),
    ("synthcachemem", 24.651, 0.03),
    ("synthcachedev", 28.939, 0.03),
];

/// The sorted means of runs with `seeds` seeds. `load` may change the load.
fn means(folder: &Path, name: &str, seeds: u64, load: impl Fn(&str) -> String) -> Vec<f64> {
    let imported = import_file(folder, &format!("{name}.parv")).unwrap_or_else(|error| panic!("{error}"));
    let rig = rig(&imported, name);
    let load = load(&imported.load.expect("it has a load"));
    let mut means: Vec<f64> = (0..seeds).map(|seed| mean(&rig, &load, seed)).collect();
    means.sort_by(f64::total_cmp);
    means
}

fn average(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

#[test]
fn synthetic_load_response_times_match_disksim() {
    let Some(folder) = folder() else { return };
    for (name, theirs, most) in SYNTHETIC {
        let runs = means(&folder, name, 10, str::to_string);
        let off = average(&runs) / theirs - 1.0;
        let (least, longest) = (runs[0], runs[9]);
        println!(
            "{name}: mean {:.3} ms ({least:.2} to {longest:.2}), DiskSim {theirs} ms: {:+.2} %",
            average(&runs),
            100.0 * off
        );
        assert!(off.abs() <= most, "{name}: {off:+.4} of {theirs} ms");
    }
}

/// DiskSim's mean of synthmixed in ms, with the one seed that its example has.
const MIXED: f64 = 22.087;

#[test]
fn disksim_mixed_mean_lies_within_the_spread_of_seeds() {
    let Some(folder) = folder() else { return };
    // Five processors, of which all but the first are lost at times that chance sets: until then the disk has too much to do.
    let runs = means(&folder, "synthmixed", 30, str::to_string);
    let one = means(&folder, "synthmixed", 10, |load| load.replace("processors = 5", "processors = 1"));
    let all = means(&folder, "synthmixed", 1, |load| {
        load.replace("idle_cpu_never_wakes = true", "idle_cpu_never_wakes = false")
    });
    let median = (runs[14] + runs[15]) / 2.0;
    println!("synthmixed: {:.1} to {:.1} ms, median {median:.1}, DiskSim {MIXED} ms", runs[0], runs[29]);
    println!("synthmixed: on one processor {:.1} ms, on five that last {:.0} ms", average(&one), all[0]);
    assert!(runs[0] < MIXED && MIXED < median, "{runs:?}");
    // One processor alone is what most requests meet in the runs that lose the others at once.
    assert!(average(&one) < runs[3] && average(&one) > 0.95 * runs[0], "{one:?}");
    // With as many processors as the file says, the load is more than the disk can bear.
    assert!(all[0] > 100.0 * MIXED, "{all:?}");
}
