//! The cost of simulated requests without and with block rearrangement in front of the drive. Random requests are one case. Skewed ones, most
//! of which copies serve, are the other. A period has 100,000 requests or more, as a day of the study `rearrangement` has, so that the copying
//! takes only a few percent of the disk's accesses.

#![allow(missing_docs, reason = "the macros of criterion make public items without")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use headstack_model::{Instant, drives};
use headstack_sim::Rig;
use headstack_workload::{Closed, DriftShape, Drifting, Popularity, Region};
use std::hint::black_box;

/// Requests of one measurement.
const REQUESTS: u64 = 200_000;

/// Requests of 8 KiB to blocks with popularity by Zipf's law, eight outstanding.
fn load(sectors: u64, exponent: f64) -> Closed<Drifting> {
    let shape = DriftShape {
        region: Region::whole(sectors),
        group: 16,
        popularity: Popularity::Zipf { exponent },
        sectors: 16,
        alignment: 16,
        read_share: 0.5,
        drift_per_hour: 0.0,
    };
    let pick = Drifting::new(shape, 1).expect("the load fits the drive");
    Closed::from_pick(pick, 8, REQUESTS).expect("the load fits the drive")
}

fn simulate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("simulated requests");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(10);
    for drive in ["hp-c2247a", "atlas-10k"] {
        let plain = Rig::from_drive(drives::load(drive).expect("the drive ships"));
        let mut with = plain.clone();
        with.set("rearrange.period_s", "1000").expect("it is a key");
        with.set("rearrange.when", "at-once").expect("it is a key");
        for (name, rig) in [("without", &plain), ("with", &with)] {
            for (kind, exponent) in [("random", 0.01), ("skewed", 1.2)] {
                let sectors = with.volumes()[0].sectors;
                let id = BenchmarkId::new(format!("{drive}, {kind}"), name);
                group.bench_function(id, |bencher| {
                    bencher.iter(|| {
                        let mut engine = rig.build(1).expect("the rig is right");
                        let mut last = Instant::ZERO;
                        let mut load = load(sectors, exponent);
                        engine.run(&mut load, &mut |finished| last = finished.completion.completed);
                        black_box(last)
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, simulate);
criterion_main!(benches);
