//! The cost of a geometry look-up, for scattered and for consecutive places.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use headstack_model::{DriveSpec, Geometry, Lbn};
use std::hint::black_box;

/// Blocks in random order all over the disk, from a Lehmer generator.
fn scattered(sectors: u64) -> Vec<Lbn> {
    let mut state = 0x2545_f491_4f6c_dd1du128;
    (0..65_536)
        .map(|_| {
            state = state.wrapping_mul(0xda94_2042_e4dd_58b5);
            Lbn(((u128::from((state >> 64) as u64) * u128::from(sectors)) >> 64) as u64)
        })
        .collect()
}

fn look_ups(criterion: &mut Criterion) {
    let drives: [(&str, DriveSpec); 3] = [
        ("ten-zones", headstack_bench::ten_zones()),
        ("banded-20-tb", headstack_bench::banded_20_tb()),
        ("extents", headstack_bench::extents()),
    ];
    let mut group = criterion.benchmark_group("geometry");
    for (name, drive) in &drives {
        let geometry = Geometry::new(drive).unwrap_or_else(|error| panic!("{error}"));
        let lbns = scattered(geometry.sectors());
        let mut next = lbns.iter().copied().cycle();
        let mut lbn = move || next.next().expect("a cycle has no end");
        group.bench_function(BenchmarkId::new("extent_at", name), |b| {
            b.iter(|| geometry.extent_at(black_box(lbn())))
        });
        group.bench_function(BenchmarkId::new("locate", name), |b| {
            b.iter(|| geometry.locate(black_box(lbn())))
        });
        group.bench_function(BenchmarkId::new("track_at", name), |b| {
            b.iter(|| geometry.track_at(black_box(lbn())))
        });
        group.bench_function(BenchmarkId::new("lbn_at", name), |b| {
            let places: Vec<_> = lbns.iter().map(|lbn| geometry.locate(*lbn)).collect();
            let mut next = places.iter().cycle();
            b.iter(|| {
                let place = black_box(next.next().expect("a cycle has no end"));
                geometry.lbn_at(place.cylinder, place.head, place.sector)
            });
        });
        group.bench_function(BenchmarkId::new("extent_at in order", name), |b| {
            let (mut at, last) = (0, geometry.sectors() - 8);
            b.iter(|| {
                at = if at >= last { 0 } else { at + 8 };
                geometry.extent_at(black_box(Lbn(at)))
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(std::time::Duration::from_secs(2)).warm_up_time(std::time::Duration::from_millis(500));
    targets = look_ups
}
criterion_main!(benches);
