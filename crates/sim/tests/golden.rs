//! Ten small runs whose every completion is the same on every machine, in debug and in release.
//!
//! A change of the model's behaviour fails here. If it is intended, record the values again and name the change in the
//! changelog under *Results that move*:
//!
//! ```text
//! HEADSTACK_GOLDEN=write cargo test --package headstack-sim --test golden
//! ```

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack_model::{Nanos, drives};
use headstack_sim::{Device, DeviceOptions, Engine, Finished, TimeSplit};
use headstack_workload::{
    Closed, Distribution, Load, Open, Pattern, Region, Shape, StreamShape, Streams, TrackLoad, TrackShape,
};
use std::fmt::Write;

/// The file of the golden values.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/runs.tsv");

/// FNV-1a, 64 bits. *Source:* Fowler, Noll and Vo.
struct Hash(u64);

impl Hash {
    fn add(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// One run: its name, its drive, its queue, its load.
struct Run {
    name: &'static str,
    drive: &'static str,
    depth: u32,
    order: &'static str,
    load: fn(&Device) -> Box<dyn Load>,
}

const RUNS: [Run; 10] = [
    Run { name: "random-reads", drive: "atlas-10k", depth: 1, order: "fcfs", load: |d| closed(d, 8, 1.0, 1) },
    Run {
        name: "random-writes",
        drive: "cheetah-9lp",
        depth: 1,
        order: "fcfs",
        load: |d| closed(d, 8, 0.0, 1),
    },
    Run {
        name: "mixed-sptf",
        drive: "atlas-10k-ii",
        depth: 32,
        order: "sptf",
        load: |d| closed(d, 16, 0.6, 32),
    },
    Run {
        name: "mixed-c-look",
        drive: "cheetah-x15",
        depth: 16,
        order: "c-look",
        load: |d| closed(d, 16, 0.5, 16),
    },
    Run { name: "banded-sstf", drive: "exos-x16", depth: 32, order: "sstf", load: |d| closed(d, 8, 0.7, 32) },
    Run {
        name: "write-back",
        drive: "toshiba-x300",
        depth: 8,
        order: "sptf",
        load: |d| closed(d, 8, 0.2, 8),
    },
    Run { name: "open", drive: "hp-c3323a", depth: 4, order: "fcfs", load: open },
    Run { name: "streams", drive: "ultrastar-18es", depth: 16, order: "fcfs", load: streams },
    Run { name: "tracks", drive: "hp-97560", depth: 2, order: "fcfs", load: tracks },
    Run { name: "sequential", drive: "dec-rz26", depth: 1, order: "fcfs", load: sequential },
];

fn shape(device: &Device, sectors: u32, read_share: f64) -> Shape {
    let region = Region::whole(device.sectors());
    Shape { region, pattern: Pattern::Random, sectors, alignment: sectors, read_share }
}

fn closed(device: &Device, sectors: u32, read_share: f64, depth: u32) -> Box<dyn Load> {
    Box::new(Closed::new(shape(device, sectors, read_share), depth, 500, 1).expect("the load fits"))
}

fn open(device: &Device) -> Box<dyn Load> {
    let gaps = Distribution::exponential(Nanos::from_ms(22.0));
    Box::new(Open::new(shape(device, 8, 0.67), &gaps, 500, 1).expect("the load fits"))
}

fn streams(device: &Device) -> Box<dyn Load> {
    let region = Region::whole(device.sectors());
    let shape = StreamShape { alignment: 8, ..StreamShape::reads(region, 9, 64) };
    Box::new(Streams::new(shape, 500).expect("the load fits"))
}

fn tracks(device: &Device) -> Box<dyn Load> {
    let drive = device.drive().clone();
    let region = Region::whole(device.sectors());
    let shape = TrackShape { region, aligned: true, op: headstack_model::Op::Read, depth: 2 };
    let track_of = move |lbn| drive.geometry.track_at(lbn);
    Box::new(TrackLoad::new(shape, 500, 1, track_of).expect("the load fits"))
}

fn sequential(device: &Device) -> Box<dyn Load> {
    let shape = Shape { pattern: Pattern::Sequential, ..shape(device, 24, 0.9) };
    Box::new(Closed::new(shape, 1, 500, 1).expect("the load fits"))
}

/// The row of a run: name, requests, time at the end, hash of all completions.
fn row(run: &Run) -> String {
    let spec = drives::load(run.drive).unwrap_or_else(|error| panic!("{error}"));
    let options = DeviceOptions { seed: 1, depth: Some(run.depth), order: Some(run.order.to_string()) };
    let device = Device::new(&spec, &options).unwrap_or_else(|error| panic!("{error}"));
    let mut load = (run.load)(&device);
    let mut engine = Engine::new(vec![device]);
    let (mut hash, mut requests) = (Hash(0xcbf2_9ce4_8422_2325), 0);
    engine.run(load.as_mut(), &mut |finished: &Finished| {
        requests += 1;
        hash.add(finished.id);
        hash.add(finished.completion.request.lbn.0);
        hash.add(finished.completion.completed.0);
        // None of these drives loses turns, which were no part of their own when the values were written.
        let parts = TimeSplit::NAMES.iter().zip(finished.completion.parts.parts());
        parts.filter(|(name, _)| **name != "retries").for_each(|(_, part)| hash.add(part.0));
    });
    format!("{}\t{}\t{requests}\t{}\t{:016x}", run.name, run.drive, engine.now().0, hash.0)
}

#[test]
fn golden_runs_reproduce_their_completions() {
    let mut found = String::from("run\tdrive\trequests\tend_ns\tcompletions_fnv1a\n");
    for run in &RUNS {
        writeln!(found, "{}", row(run)).expect("a string takes everything");
    }
    if std::env::var_os("HEADSTACK_GOLDEN").is_some_and(|what| what == "write") {
        std::fs::write(FILE, &found).expect("the file can be written");
    }
    let golden = std::fs::read_to_string(FILE).expect("tests/golden/runs.tsv is in the repository");
    assert_eq!(found, golden, "results moved: see the head of this file");
}
