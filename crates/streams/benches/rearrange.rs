//! The cost of a reference in the analyzers, and of a request in the rearranger. One in three references goes to a block without a counter.

#![allow(missing_docs, reason = "the macros of criterion make public items without")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use headstack_model::{Instant, Lbn};
use headstack_streams::rearrange::{
    BlockAccess, BlockRequest, CounterReplacement, RearrangeAction, RearrangeSpec, Rearranger,
    ReservedRegion, ReservedRun,
};
use std::hint::black_box;

/// References in one measurement.
const REFERENCES: usize = 1 << 16;

/// Numbers from 0 to 1.
fn draws() -> impl FnMut() -> f64 {
    let mut random = 1u64;
    move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as f64 / (1u64 << 31) as f64
    }
}

/// Skewed references: the block's number is the product of three evenly distributed ones.
fn references(blocks: u64) -> Vec<u64> {
    let mut draw = draws();
    (0..REFERENCES).map(|_| (draw() * draw() * draw() * blocks as f64) as u64).collect()
}

/// References that are spread evenly over all blocks.
fn even_references(blocks: u64) -> Vec<u64> {
    let mut draw = draws();
    (0..REFERENCES).map(|_| (draw() * blocks as f64) as u64).collect()
}

fn analyze(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("references");
    group.throughput(Throughput::Elements(REFERENCES as u64));
    let blocks = references(1_000_000);
    for counters in [1000, 4000, 100_000] {
        for replacement in [CounterReplacement::SpaceSaving, CounterReplacement::FirstCome] {
            let mut analyzer = replacement.analyzer(counters);
            // A full analyzer is the slower one, and the first run of the references fills it.
            blocks.iter().for_each(|block| analyzer.observe(*block));
            let name = BenchmarkId::new(format!("{replacement:?}"), counters);
            group.bench_function(name, |bencher| {
                bencher.iter(|| blocks.iter().for_each(|block| analyzer.observe(black_box(*block))));
            });
        }
    }
    let even = even_references(1_000_000);
    for (name, blocks) in [("skewed", &blocks), ("even", &even)] {
        let mut analyzer = CounterReplacement::Exact.analyzer(1);
        blocks.iter().for_each(|block| analyzer.observe(*block));
        group.bench_function(BenchmarkId::new("Exact", name), |bencher| {
            bencher.iter(|| blocks.iter().for_each(|block| analyzer.observe(black_box(*block))));
        });
    }
    let mut analyzer = CounterReplacement::SpaceSaving.analyzer(4000);
    group.bench_function(BenchmarkId::new("SpaceSaving, even", 4000), |bencher| {
        bencher.iter(|| even.iter().for_each(|block| analyzer.observe(black_box(*block))));
    });
    group.finish();
}

/// Requests of one block each on a disk of 1,000,000 blocks, of which a thousand have copies.
fn route(criterion: &mut Criterion) {
    let run = ReservedRun { first: Lbn(8_000_000), sectors: 16_000 };
    let region = ReservedRegion::new(16_016_000, vec![run]).expect("the run fits");
    let slots = region.slots(16, |lbn| ((lbn.0 / 1000) as u32, (lbn.0 / 100) as u32));
    let mut rearranger =
        Rearranger::new(RearrangeSpec::default(), 16, region, slots).expect("the keys are right");
    (0..1000).for_each(|slot| rearranger.restore_copy(slot, u64::from(slot) * 17, false));
    let blocks = references(1_000_000);
    let mut group = criterion.benchmark_group("requests");
    group.throughput(Throughput::Elements(REFERENCES as u64));
    group.bench_function("one block", |bencher| {
        bencher.iter(|| {
            for block in &blocks {
                let lbn = Lbn(block * 16);
                let request = BlockRequest { ticket: 0, access: BlockAccess::Read, lbn, sectors: 16 };
                rearranger.submit(Instant::ZERO, request);
                while let Some(action) = rearranger.poll_action() {
                    if let RearrangeAction::Start(command) = black_box(action) {
                        rearranger.handle_end(Instant::ZERO, command.id, Ok(()));
                    }
                }
            }
        });
    });
    group.finish();
}

criterion_group!(benches, analyze, route);
criterion_main!(benches);
