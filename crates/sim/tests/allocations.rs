//! Does a request allocate? Memory must not grow with the number of requests.

use headstack_model::{Nanos, drives};
use headstack_policy::order;
use headstack_sim::{Device, DeviceOptions, Engine};
use headstack_workload::{Closed, Load, Pattern, Poll, Region, Shape, StreamShape, Streams};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Counts the allocations between two requests of a load.
struct Watched<L> {
    load: L,
    from: u64,
    to: u64,
    done: u64,
    before: usize,
    counted: Option<usize>,
}

impl<L: Load> Load for Watched<L> {
    fn poll(&mut self, now: Nanos) -> Poll {
        self.load.poll(now)
    }

    fn handle_completion(&mut self, now: Nanos, id: u64) {
        self.done += 1;
        if self.done == self.from {
            self.before = ALLOCATOR.stats().allocations;
        }
        if self.done == self.to {
            self.counted = Some(ALLOCATOR.stats().allocations - self.before);
        }
        self.load.handle_completion(now, id);
    }
}

fn allocations<L: Load>(drive: &str, depth: u32, load: L) -> usize {
    allocations_with("sptf", drive, depth, load)
}

fn allocations_with<L: Load>(order: &str, drive: &str, depth: u32, load: L) -> usize {
    let spec = drives::load(drive).expect("the drive ships");
    let options = DeviceOptions { depth: Some(depth), order: Some(order.to_string()), seed: 1 };
    let device = Device::new(&spec, &options).expect("a shipped drive works");
    let mut load = Watched { load, from: 5_000, to: 25_000, done: 0, before: 0, counted: None };
    Engine::new(vec![device]).run(&mut load, &mut |_| {});
    load.counted.expect("the load is long enough")
}

// One test, so that no other thread allocates meanwhile.
#[test]
fn is_the_steady_state_free_of_allocations() {
    let sectors = drives::load("atlas-10k").expect("the drive ships").capacity_sectors;
    let shape = StreamShape { alignment: 8, ..StreamShape::reads(Region::whole(sectors), 2, 8) };
    // The test harness still allocates while the first run goes on.
    allocations("atlas-10k", 1, Streams::new(shape, 300_000).expect("the load fits"));
    for drive in ["atlas-10k", "hp-c2247a", "wd800jd", "exos-x16", "toshiba-x300"] {
        let sectors = drives::load(drive).expect("the drive ships").capacity_sectors;
        let region = Region::whole(sectors);
        for (depth, read_share) in [(1, 1.0), (1, 0.5), (32, 1.0), (32, 0.3)] {
            let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share };
            let load = Closed::new(shape, depth, 30_000, 1).expect("the load fits");
            assert_eq!(allocations(drive, depth, load), 0, "{drive} at depth {depth}, reads {read_share}");
        }
        let shape = StreamShape { alignment: 8, ..StreamShape::reads(region, 100, 128) };
        let load = Streams::new(shape, 30_000).expect("the load fits");
        assert_eq!(allocations(drive, 4, load), 0, "{drive} with streams");
    }
    for entry in order::all() {
        let shape = Shape {
            region: Region::whole(sectors),
            pattern: Pattern::Random,
            sectors: 8,
            alignment: 8,
            read_share: 0.7,
        };
        let load = Closed::new(shape, 64, 30_000, 1).expect("the load fits");
        assert_eq!(allocations_with(entry.name, "atlas-10k", 64, load), 0, "{}", entry.name);
    }
}
