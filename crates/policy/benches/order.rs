//! The cost of a decision, for each order at several depths: choose a request, remove it, and add the next one.
//!
//! The drive resembles a Quantum Atlas 10K: 10,042 cylinders, 10,025 rpm, seeks of 1.2 to 10.8 ms from a table.

#![allow(missing_docs, reason = "the macros of criterion make public items without")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use headstack_model::{Angle, Instant, Lbn, Nanos, Request, Spindle};
use headstack_policy::order::{self, AccessCost};
use headstack_policy::{BuiltIn, Order, Queue, Slot, SlotId};

const CYLINDERS: u32 = 10_042;

/// An arm at a place and a time.
struct Arm {
    seeks: Vec<Nanos>,
    spindle: Spindle,
    cylinder: u32,
    head: u32,
    now: Instant,
    last: Lbn,
}

impl Arm {
    fn new() -> Arm {
        let seek = |distance: u32| match distance {
            0 => Nanos::ZERO,
            _ => Nanos::from_ms(1.2 + 0.06 * f64::from(distance).sqrt() + 0.000_36 * f64::from(distance)),
        };
        let spindle = Spindle::from_rpm(10_025.0);
        let seeks = (0..CYLINDERS).map(seek).collect();
        Arm { seeks, spindle, cylinder: CYLINDERS / 2, head: 0, now: Instant::ZERO, last: Lbn(0) }
    }

    fn serve(&mut self, slot: Slot) {
        self.now = self.now + self.positioning(&slot) + Nanos(150_000);
        (self.cylinder, self.head, self.last) = (slot.cylinder, slot.head, slot.request.end());
    }
}

impl AccessCost for Arm {
    fn arm_cylinder(&self) -> u32 {
        self.cylinder
    }

    fn cylinders(&self) -> u32 {
        CYLINDERS
    }

    fn last_lbn(&self) -> Lbn {
        self.last
    }

    fn seek_at_least(&self, cylinder: u32) -> Nanos {
        self.seeks[self.cylinder.abs_diff(cylinder) as usize]
    }

    fn positioning(&self, slot: &Slot) -> Nanos {
        let switch = if slot.head == self.head { Nanos::ZERO } else { Nanos(800_000) };
        let seek = self.seek_at_least(slot.cylinder).max(switch);
        let angle = Angle((slot.request.lbn.0 as u32).wrapping_mul(2_654_435_769));
        seek + self.spindle.wait(self.now + seek, angle)
    }
}

/// A full queue, an arm, and an endless supply of requests.
struct Drive {
    arm: Arm,
    queue: Queue,
    random: u64,
}

impl Drive {
    fn new(depth: usize) -> Drive {
        let mut drive = Drive { arm: Arm::new(), queue: Queue::new(depth), random: 1 };
        (0..depth).for_each(|_| drive.fill());
        drive
    }

    fn fill(&mut self) {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lbn = (self.random >> 33) % 17_938_986;
        let cylinder = (lbn * u64::from(CYLINDERS) / 17_938_986) as u32;
        let request = Request::read(Lbn(lbn), 8);
        let slot = Slot::new(SlotId(0), request, self.arm.now, cylinder, (lbn % 6) as u32);
        self.queue.insert(slot).expect("there is room");
    }

    fn take(&mut self, index: Option<usize>) {
        let slot = self.queue.remove(index.expect("it is full"));
        self.arm.serve(black_box(slot));
        self.fill();
    }
}

/// The choice of SPTF, from the positioning time of every request.
fn costing_all(drive: &Drive) -> Option<usize> {
    let slots = drive.queue.slots();
    (0..slots.len()).min_by_key(|index| drive.arm.positioning(&slots[*index]))
}

fn decide(criterion: &mut Criterion) {
    for depth in [16, 64, 128, 256, 1024] {
        let mut group = criterion.benchmark_group(format!("depth {depth}"));
        for entry in order::all() {
            let mut drive = Drive::new(depth);
            let mut order: BuiltIn = entry.order();
            group.bench_function(BenchmarkId::new(entry.name, "static"), |bencher| {
                bencher.iter(|| drive.take(order.pick(&drive.queue.view(drive.arm.now), &drive.arm)));
            });
            let mut drive = Drive::new(depth);
            let mut order: Box<dyn Order> = Box::new(entry.order());
            group.bench_function(BenchmarkId::new(entry.name, "dynamic"), |bencher| {
                bencher.iter(|| drive.take(order.choose(&drive.queue.view(drive.arm.now), &drive.arm)));
            });
        }
        let mut drive = Drive::new(depth);
        group.bench_function("sptf costing all", |bencher| bencher.iter(|| drive.take(costing_all(&drive))));
        group.finish();
    }
}

criterion_group!(benches, decide);
criterion_main!(benches);
