//! The cost of a command in a queue ordered by position: complete one, add the next, and choose.

#![allow(missing_docs, reason = "the macros of criterion make public items without")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use headstack_model::{Geometry, Instant, Lbn, Nanos, Spindle, drives};
use headstack_streams::position::{DriveModel, MapState, PositionOrder, PositionQueue};
use headstack_streams::streams::{Command, RequestKind, TransferBuffer};

/// A queue ordered by position, in front of a disk whose reads end when its drive file predicts. Each step completes a read, submits a new one
/// and chooses the next.
struct OrderedDisk {
    queue: PositionQueue,
    geometry: Geometry,
    spindle: Spindle,
    now: Instant,
    random: u64,
}

impl OrderedDisk {
    fn new(drive: &str, order: &str) -> OrderedDisk {
        let spec = drives::load(drive).expect("it is shipped");
        let model = DriveModel::new(&spec).expect("it is consistent");
        let order = PositionOrder::new(order, 1).expect("it is in the list");
        let mut disk = OrderedDisk {
            queue: PositionQueue::new(model, order),
            geometry: Geometry::new(&spec).expect("it is consistent"),
            spindle: Spindle::from_rpm(spec.mechanics.rpm),
            now: Instant::ZERO,
            random: 1,
        };
        (0..32).for_each(|id| disk.fill(id));
        (0..1_000).for_each(|_| disk.serve());
        assert_eq!(disk.queue.view().state, MapState::Agrees, "its reads end where the drive file says");
        disk
    }

    fn fill(&mut self, id: u32) {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let block = (self.random >> 16) % (self.geometry.sectors() / 8) * 8;
        let kind = RequestKind::Read { offset: block * 512, bytes: 4096, fua: false };
        self.queue.submit(self.now, Command { id, kind, place: TransferBuffer::None, limit: 0 });
    }

    fn serve(&mut self) {
        let command = self.queue.poll(self.now).expect("reads wait");
        let last = Lbn((command.kind.run().0 + 4096) / 512 - 1);
        let arrived = self.now + Nanos(5_000_000);
        self.now = arrived + self.spindle.wait(arrived, self.geometry.locate(last).angle) + Nanos(50_000);
        self.queue.completed(self.now, command.id, true);
        self.fill(command.id);
    }
}

fn ordered_disk(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue before a disk, 32 waiting");
    for (drive, order) in [("wd800jd", "c-look"), ("wd800jd", "position"), ("st2000dm006", "position")] {
        let mut disk = OrderedDisk::new(drive, order);
        group.bench_function(BenchmarkId::new(order, drive), |bencher| bencher.iter(|| disk.serve()));
    }
    group.finish();
}

criterion_group!(benches, ordered_disk);
criterion_main!(benches);
