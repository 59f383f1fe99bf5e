//! The cost of a look-up in the track map of a 20 TB disk, and of reading and writing the map's file.

use criterion::{Criterion, criterion_group, criterion_main};
use headstack_model::Lbn;
use headstack_tracks::TrackMap;
use headstack_tracks::map::{self, Identity};
use std::hint::black_box;

/// A map with 24 thousand runs, as a 20 TB disk with 18 surfaces and 56 zones has.
fn of_20_tb() -> TrackMap {
    let mut map = TrackMap::new();
    for band in 0..24 * 56 {
        for surface in 0..18 {
            map.push(5_200 - band / 24 * 40 + surface * 8, 400);
        }
    }
    map
}

fn questions(criterion: &mut Criterion) {
    let map = of_20_tb();
    let end = map.end().0;
    let mut state = 1u64;
    let mut scattered = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Lbn(((u128::from(state) * u128::from(end)) >> 64) as u64)
    };
    let mut group = criterion.benchmark_group("track map");
    group.bench_function("track_of", |b| b.iter(|| map.track_of(black_box(scattered()))));
    group.bench_function("next_boundary", |b| b.iter(|| map.next_boundary(black_box(scattered()))));
    let view = map.view(Lbn(2048), end / 2);
    group.bench_function("next_boundary of a partition", |b| {
        b.iter(|| view.next_boundary(Lbn(black_box(scattered()).0 / 2)))
    });
    let mut tracks = map.iter().cycle();
    group.bench_function("iter, a track", |b| b.iter(|| black_box(tracks.next())));
    let mut file = Vec::new();
    let identity = Identity::new(end, 512);
    map::write(&mut file, &identity, &map).expect("memory takes it");
    println!("{} tracks in {} runs, a file of {} bytes", map.iter().count(), map.runs().len(), file.len());
    group.bench_function("read the file", |b| b.iter(|| map::read(&mut black_box(&file[..]))));
    group.bench_function("write the file", |b| {
        b.iter(|| {
            file.clear();
            map::write(&mut file, &identity, black_box(&map))
        })
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(std::time::Duration::from_secs(1)).warm_up_time(std::time::Duration::from_millis(300));
    targets = questions
}
criterion_main!(benches);
