//! Does a request allocate? Memory must not grow with the number of requests. A program without test
//! harness, because the allocations of its threads would be counted too.

use headstack_model::{Instant, Lbn, drives};
use headstack_policy::elevator;
use headstack_policy::order;
use headstack_policy::stripe::{
    Array, Organisation, Policy, ReadChoice, Rotation, Shape as ArrayShape, Unit, WriteOrder,
};
use headstack_sim::stats::Collector;
use headstack_sim::{ArrayVolume, Device, DeviceOptions, Engine, HostSpec, Rig};
use headstack_workload::VolumeInfo;
use headstack_workload::fio::JobFile;
use headstack_workload::{Closed, Load, Pattern, Poll, Region, Shape, StreamShape, Streams};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::cell::RefCell;

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
    fn poll(&mut self, now: Instant) -> Poll {
        self.load.poll(now)
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
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
    counted(Engine::new(vec![device]), load)
}

fn counted<L: Load>(mut engine: Engine, load: L) -> usize {
    let mut load = Watched { load, from: 5_000, to: 25_000, done: 0, before: 0, counted: None };
    engine.run(&mut load, &mut |_| {});
    load.counted.expect("the load is long enough")
}

/// A load whose issues go into the books.
struct Booked<'a, L> {
    load: L,
    books: &'a RefCell<Collector>,
}

impl<L: Load> Load for Booked<'_, L> {
    fn poll(&mut self, now: Instant) -> Poll {
        let poll = self.load.poll(now);
        if let Poll::Issue(issue) = &poll {
            self.books.borrow_mut().issued(now, issue);
        }
        poll
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.load.handle_completion(now, id);
    }
}

/// Allocations of a fio job whose requests all go into the books, within 20,000 and within 200,000 of them.
fn allocations_of_job(keys: &str) -> [usize; 2] {
    let text = format!("[job]\nfilename=/dev/sda\ndirect=1\nio_size=1p\n{keys}");
    let mut nothing = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    let file = JobFile::parse(&text, "job", &mut nothing, &|_| None).expect("the job is good");
    let spec = drives::load("atlas-10k").expect("the drive ships");
    let (sectors, sector_bytes) = (spec.capacity_sectors, spec.sector_bytes);
    let volumes = [VolumeInfo { name: "disk0".to_string(), sectors, sector_bytes, zones: None }];
    [25_000, 205_000].map(|to| {
        let load = file.build(&volumes, 1).expect("the job fits the drive");
        let entry_of: Vec<u32> = (0..load.jobs().len() as u32).collect();
        let books = RefCell::new(Collector::new(&volumes, &entry_of));
        let options = DeviceOptions { depth: Some(32), order: None, seed: 1 };
        let device = Device::new(&spec, &options).expect("a shipped drive works");
        let load = Watched { load, from: 5_000, to, done: 0, before: 0, counted: None };
        let mut load = Booked { load, books: &books };
        Engine::new(vec![device]).run(&mut load, &mut |finished| {
            books.borrow_mut().finished(finished);
        });
        load.load.counted.expect("the load is long enough")
    })
}

/// Allocations of a closed load of 4 KiB requests in a narrow region, behind a host.
fn allocations_behind(host: &str, pattern: Pattern, read_share: f64) -> usize {
    let spec = drives::load("atlas-10k").expect("the drive ships");
    let options = DeviceOptions { depth: Some(4), order: None, seed: 1 };
    let device = Device::new(&spec, &options).expect("a shipped drive works");
    let host = toml::from_str(host).expect("the keys are known");
    let engine = Engine::with_host(vec![device], &host).expect("the values are good");
    let region = Region { first: Lbn(0), sectors: 80_000 };
    let shape = Shape { region, pattern, sectors: 8, alignment: 8, read_share };
    counted(engine, Closed::new(shape, 20, 30_000, 1).expect("the load fits"))
}

/// The same behind a smart controller with this cache.
fn allocations_behind_controller(cache: &str) -> usize {
    let text = format!(
        "[drive]\npreset = \"atlas-10k\"\ncount = 2\n\n[controller]\nkind = \"smart\"\norder = \"c-look\"\ncache = {{ {cache} }}"
    );
    let rig = Rig::parse(&text, "rig", &mut |name| drives::load(name)).expect("the keys are good");
    let region = Region { first: Lbn(0), sectors: 80_000 };
    let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 0.6 };
    let load = Closed::new(shape, 20, 30_000, 1).expect("the load fits");
    counted(rig.build(1).expect("the rig is good"), load)
}

/// Allocations of a closed load on an array of four drives, of which one has failed where that may be.
fn allocations_on(organisation: Organisation, read_choice: ReadChoice, failed: &[u32]) -> usize {
    let spec = drives::load("atlas-10k").expect("the drive ships");
    let shape = ArrayShape {
        organisation,
        members: vec![spec.capacity_sectors; 4],
        unit: match organisation {
            Organisation::Concatenation => Unit::Member,
            _ => Unit::Sectors(16),
        },
        copies: 2,
        read_choice,
        rotation: Rotation::LeftSymmetric,
        parity_unit_sectors: None,
        policy: Policy::FewestReads,
        write_order: WriteOrder::default(),
        failed: failed.to_vec(),
        spares: failed.len(),
        seed: 1,
    };
    let devices = shape.members.len() + shape.spares;
    let options = DeviceOptions { depth: Some(4), order: None, seed: 1 };
    let drive = || Device::new(&spec, &options).expect("a shipped drive works");
    let volume =
        ArrayVolume::new(Array::new(shape).expect("the shape is good"), (0..devices as u32).collect());
    let engine =
        Engine::with_arrays((0..devices).map(|_| drive()).collect(), vec![volume], &HostSpec::default());
    let region = Region { first: Lbn(0), sectors: 800_000 };
    let shape = Shape { region, pattern: Pattern::Random, sectors: 24, alignment: 8, read_share: 0.5 };
    counted(engine.expect("the host is good"), Closed::new(shape, 20, 30_000, 1).expect("the load fits"))
}

fn main() {
    is_the_steady_state_free_of_allocations();
}

fn is_the_steady_state_free_of_allocations() {
    let sectors = drives::load("atlas-10k").expect("the drive ships").capacity_sectors;
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
    // What a run keeps of its requests takes the same memory however many they are.
    assert_eq!(
        allocations_of_job("rw=randrw\nbs=4k\nioengine=libaio\niodepth=32\nnorandommap\nnumber_ios=206000\n"),
        [0, 0]
    );
    assert_eq!(allocations_of_job("bs=64k\nnumjobs=100\noffset_increment=1%\nnumber_ios=2060\n"), [0, 0]);

    use Organisation::*;
    for organisation in [Concatenation, Striping, Mirroring, ParityDrive, Raid5, Raid6, ChainedDeclustering] {
        let redundant = !matches!(organisation, Concatenation | Striping);
        for failed in [&[][..], &[1]].into_iter().take(1 + usize::from(redundant)) {
            let found = allocations_on(organisation, ReadChoice::ShortestQueue, failed);
            assert_eq!(found, 0, "{organisation}, failed {failed:?}");
        }
    }

    let page_cache = "page_cache = { memory_mb = 2, buffer_direct = true, dirty_expire_centisecs = 50 }";
    let elevators = elevator::all().iter().map(|listed| format!("queue.elevator = \"{}\"", listed.name));
    let hosts = elevators.chain([
        "queue = { order = \"c-look\", merge = \"overlapping\", max_sectors_kb = 8 }".to_string(),
        page_cache.to_string(),
        format!("{page_cache}\nqueue.elevator = \"deadline\""),
    ]);
    for host in hosts {
        for (pattern, read_share) in
            [(Pattern::Random, 0.5), (Pattern::Sequential, 1.0), (Pattern::Sequential, 0.0)]
        {
            let found = allocations_behind(&host, pattern, read_share);
            assert_eq!(found, 0, "{host}, {pattern:?}, reads {read_share}");
        }
    }
    for cache in [
        "sectors = 8192, writes = \"write-back\", read_ahead_sectors = 256, flush_cluster_lines = 4, protected_ratio = 0.5",
        "sectors = 80000, writes = \"write-back\", drive = \"disk1\", flush_idle_ms = 10",
    ] {
        assert_eq!(allocations_behind_controller(cache), 0, "{cache}");
    }
}
