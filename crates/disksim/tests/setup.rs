//! Whole set-ups of DiskSim's: what is read of them, and what is said of those that cannot be.

use headstack_disksim::setup::{Setup, import_setup};
use headstack_model::{Nanos, SpecError};
use headstack_sim::rig::{ControllerKind, Organisation};
use headstack_workload::dist::Distribution;

const SETUP: &str = include_str!("small/setup.parv");

fn read(name: &str) -> Result<String, String> {
    match name {
        "drive.diskspecs" => Ok(include_str!("small/drive.diskspecs").to_string()),
        "drive.model" => Ok(include_str!("small/drive.model").to_string()),
        "drive.seek" => Ok(include_str!("small/drive.seek").to_string()),
        _ => Err("no such file".to_string()),
    }
}

fn setup(text: &str) -> Result<Setup, SpecError> {
    import_setup(text, "setup.parv", read)
}

#[test]
fn every_part_of_a_setup_is_imported() {
    let met = setup(SETUP).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = met.drives.iter().map(|drive| drive.name.as_str()).collect();
    assert_eq!(names, ["disk0", "disk1", "disk2"]);
    assert!(met.drives.iter().all(|drive| drive.bus == Some(0)));
    let bus = &met.buses[0];
    assert_eq!((bus.name.as_str(), bus.exclusive, bus.controller), ("bus1", true, Some(0)));
    assert_eq!((bus.read_us_per_sector, bus.write_us_per_sector, bus.arbitration_us), (50.0, 10.0, 1.0));
    assert_eq!(
        (met.controllers[0].us_per_sector, met.controllers[0].kind),
        (30.0, ControllerKind::PassThrough)
    );
    assert_eq!((met.queue.order.as_str(), met.one_at_a_time), ("sstf-lbn", true));
    assert_eq!(met.devices, [(10, "disk2".to_string())]);
    let array = &met.arrays[0];
    assert_eq!((array.organisation, array.drives.len()), (Organisation::Raid5, 3));
    let load = met.load.expect("there is one");
    assert_eq!((load.requests, load.max_time_s), (100, 10.0));
    let process = &load.processes[0].spec;
    assert_eq!(process.volumes, ["org0"]);
    let two = Distribution::TwoValued { usual: Nanos::from_ms(1.0), other: Nanos::from_ms(2.0), share: 0.5 };
    assert_eq!(process.local_gap, two);
    assert_eq!(process.size_sectors, Distribution::Poisson { base: 1.0, mean: 8.0 });
    let left: Vec<String> = met.not_carried.iter().map(ToString::to_string).collect();
    assert!(left.iter().any(|left| left.starts_with("setup.parv:1: disksim_global Global: ")), "{left:?}");
}

#[test]
fn queue_and_processor_keys_are_carried_over_or_listed() {
    let queue = "Scheduling policy = 14, Timeout time/weight = 30, Scheduling priority scheme = 1, Priority scheduling = 3";
    let text = SETUP.replace("Scheduling policy = 4", queue)
        + "disksim_pf Proc { Number of processors = 5, Process-Flow Time Scale = 0.5 }\n";
    let met = setup(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((met.queue.order.as_str(), met.queue.urgent_first), ("asptf(30)", true));
    assert_eq!(met.processors, 5);
    let left: Vec<String> = met.not_carried.iter().map(ToString::to_string).collect();
    for said in [
        "Scheduling policy: `asptf(30)` gets block numbers in a host's queue, in place of cylinders and times",
        "Priority scheduling: 3 is not carried over: urgent requests go by the order of all",
        "Process-Flow Time Scale: 0.5 is not carried over: it would stretch every time of the load",
    ] {
        assert!(left.iter().any(|left| left.ends_with(said)), "{said}: {left:#?}");
    }
}

/// The set-up with something in place of something else.
fn with(old: &str, new: &str) -> String {
    assert!(SETUP.contains(old), "{old}");
    setup(&SETUP.replace(old, new)).expect_err(new).to_string()
}

#[test]
fn every_invalid_setup_is_rejected_with_its_place() {
    assert_eq!(
        setup("").expect_err("empty").to_string(),
        "setup.parv:1: no drive here: needs an instance of a disksim_disk block"
    );
    let said = [
        (
            with("source drive.diskspecs", "source gone.diskspecs"),
            "setup.parv:10: source: gone.diskspecs: no such file",
        ),
        (
            with("Scheduling policy = 4", "Scheduling policy = 29"),
            "setup.parv:4: Scheduling policy: 29 is none of 1 to 28",
        ),
        (
            with("Scheduler = disksim_ioqueue { Scheduling policy = 4 }", "Scheduler = 4"),
            "setup.parv:4: Scheduler: needs a block `type { … }`",
        ),
        (
            with("Use queueing in subsystem = 0", "Use queueing in subsystem = 2"),
            "setup.parv:5: Use queueing in subsystem: 2 is neither 0 nor 1",
        ),
        (with("CTLR0 { type = 1", "CTLR0 { type = 4"), "setup.parv:9: type: 4 is none of 1 to 3"),
        (
            with("Read block transfer time = 0.05", "Read block transfer time = fast"),
            "setup.parv:8: Read block transfer time: needs a number",
        ),
        (
            with("simdev = disk2", "simdev = disk3"),
            "setup.parv:18: I/O Mappings: `disk3` is no drive of this set-up",
        ),
        (with("simdev = disk2, ", ""), "setup.parv:18: simdev: is missing"),
        (
            with("Striped", "Stripped"),
            "setup.parv:23: Distribution scheme: `Stripped` is none of Asis, Striped, Random, Ideal",
        ),
        (
            with("Striped", "Random"),
            "setup.parv:23: Distribution scheme: `Random` is not modelled; Asis and Striped are",
        ),
        (
            with("Parity_rotated", "Raid"),
            "setup.parv:23: Redundancy scheme: `Raid` is none of Noredun, Shadowed, Parity_disk, Parity_rotated",
        ),
        (
            with("devices = [ disk0 .. disk2 ],\n   Stripe", "devices = [ disk0 .. disk3 ],\n   Stripe"),
            "setup.parv:24: devices: `disk3` is no drive of this set-up",
        ),
        (
            with("devices = [ disk0 .. disk2 ],\n   Stripe", "devices = [ ],\n   Stripe"),
            "setup.parv:24: devices: needs a list of names",
        ),
        (
            with("Parity rotation type = 1", "Parity rotation type = 5"),
            "setup.parv:26: Parity rotation type: 5 is none of 1 to 4",
        ),
        (
            with("Addressing mode = Array", "Addressing mode = Parts"),
            "setup.parv:22: Addressing mode: `Parts` with `Striped` and `Parity_rotated` is not modelled; `Array` is",
        ),
        (
            with("Number of I/O requests to generate = 100", "Number of I/O requests to generate = -1"),
            "setup.parv:29: Number of I/O requests to generate: -1 is no whole number from 0 to 4294967295",
        ),
        (
            with("read access = 0.66", "read access = 66"),
            "setup.parv:33: Probability of read access: 66 is outside 0 to 1",
        ),
        (
            with("[ exponential, 0.0, 10.0 ]", "[ exponential, 10.0 ]"),
            "setup.parv:35: General inter-arrival times: 1 numbers do not make `exponential`",
        ),
        (
            with("[ exponential, 0.0, 10.0 ]", "[ gamma, 1, 10.0 ]"),
            "setup.parv:35: General inter-arrival times: `gamma` is none of uniform, normal, exponential, poisson, twovalue",
        ),
        (with("Sizes = [ poisson, 1.0, 8.0 ]", "Sizes = 8"), "setup.parv:37: Sizes: needs a list `[ … ]`"),
        (
            with("Generators = [ disksim_synthgen {", "Generators = [ ], Others = [ x {"),
            "setup.parv:31: Generators: needs a block at least",
        ),
    ];
    for (met, wanted) in said {
        assert_eq!(met, wanted);
    }
}

/// A disk of constant time in place of the drives.
const SIMPLE: &str = "
disksim_simpledisk SD {
   Block count = 250000, Access time = 9.5, Command overhead = 0.5, Bus transaction latency = 0.1,
   Bulk sector transfer time = 0.02, Never disconnect = 1, Max queue length = 2,
   Scheduler = disksim_ioqueue { Scheduling policy = 4 }
}
instantiate [ sd0 ] as SD
topology disksim_simpledisk sd0 []
";

#[test]
fn disk_of_constant_access_time_becomes_a_drive() {
    let met = setup(SIMPLE).unwrap_or_else(|error| panic!("{error}"));
    let spec = &met.drives[0].spec;
    assert_eq!((spec.name.as_str(), spec.capacity_sectors), ("sd", 250_000));
    assert_eq!(spec.mechanics.constant_access_ms, Some(9.5));
    assert_eq!((spec.overhead.after_read.read_miss_ms, spec.overhead.after_write.write_ms), (0.5, 0.5));
    assert_eq!((spec.bus.read_us_per_sector, spec.bus.never_disconnects), (20.0, true));
    assert_eq!((spec.queue.depth, spec.queue.order.as_str()), (2, "sstf-lbn"));
    spec.check().unwrap_or_else(|error| panic!("{error}"));
    let missing = setup(&SIMPLE.replace("Access time = 9.5,", "")).expect_err("it has no time").to_string();
    assert_eq!(missing, "setup.parv:2: Access time: is missing");
}
