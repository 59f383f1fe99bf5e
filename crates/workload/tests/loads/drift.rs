//! Popular groups of blocks: their shares of the requests, and how their ranks change.

use headstack_workload::{DriftShape, Drifting, Pick, Popularity};

use super::processes::assert_share;
use super::*;

const HOUR: u64 = 3_600_000_000_000;

fn drift(drift_per_hour: f64) -> DriftShape {
    DriftShape {
        region: Region { first: Lbn(10), sectors: 160_010 },
        group: 16,
        popularity: Popularity::Zipf { exponent: 1.0 },
        sectors: 8,
        alignment: 4,
        read_share: 0.7,
        drift_per_hour,
    }
}

fn drifting(drift_per_hour: f64) -> Drifting {
    Drifting::new(drift(drift_per_hour), 5).expect("the shape is good")
}

#[test]
fn group_popularity_follows_zipf() {
    let mut load = drifting(0.0);
    let groups = load.groups_at(Instant::ZERO).to_vec();
    assert_eq!(groups.len(), 10_000);
    let picked: Vec<Request> = (0..50_000).map(|_| load.pick(Instant(HOUR))).collect();
    let group = |request: &Request| ((request.lbn.0 - 10) / 16) as u32;
    let total: f64 = (1..=10_000).map(|rank| 1.0 / f64::from(rank)).sum();
    for rank in [0, 1, 9] {
        let found = picked.iter().filter(|request| group(request) == groups[rank]).count();
        assert_share("a rank", found, picked.len(), 1.0 / (rank as f64 + 1.0) / total);
    }
    for request in &picked {
        assert_eq!(group(request), ((request.end().0 - 1 - 10) / 16) as u32, "a request lies in one group");
        assert!((request.lbn.0 - 10).is_multiple_of(4) && request.end().0 <= 160_010);
    }
    let reads = picked.iter().filter(|request| request.op == Op::Read).count();
    assert_share("reads", reads, picked.len(), 0.7);
    let first = picked.iter().filter(|request| (request.lbn.0 - 10).is_multiple_of(16)).count();
    assert_share("the first place of three", first, picked.len(), 1.0 / 3.0);
}

#[test]
fn popular_groups_are_spread_over_region() {
    let mut load = drifting(0.0);
    let hottest = &load.groups_at(Instant::ZERO)[..1000];
    let low = hottest.iter().filter(|group| **group < 5000).count();
    assert_share("hot groups in the lower half", low, 1000, 0.5);
}

#[test]
fn ranks_move_at_given_rate() {
    let mut load = drifting(0.5);
    let start = load.groups_at(Instant::ZERO).to_vec();
    for hours in [1, 2, 5] {
        let now = load.groups_at(Instant(hours * HOUR));
        let kept = now.iter().zip(&start).filter(|(now, start)| now == start).count();
        assert_share("kept ranks", kept, start.len(), (-0.5 * hours as f64).exp());
        let mut sorted = now.to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..10_000), "every group has one rank");
    }
}

#[test]
fn rank_drift_is_independent_of_sampling() {
    let (mut often, mut seldom) = (drifting(3.0), drifting(3.0));
    for minute in 0..60 {
        often.pick(Instant(minute * HOUR / 60));
    }
    assert_eq!(often.groups_at(Instant(HOUR)), seldom.groups_at(Instant(HOUR)));
}

#[test]
fn long_pause_moves_nearly_every_group() {
    let mut load = drifting(100.0);
    let start = load.groups_at(Instant::ZERO).to_vec();
    let now = load.groups_at(Instant(2400 * HOUR));
    let kept = now.iter().zip(&start).filter(|(now, start)| now == start).count();
    assert!(kept <= 5, "{kept} groups of 10,000 kept their rank, where 1 is by chance");
}

#[test]
fn drifting_closed_load_keeps_depth_and_open_load_repeats() {
    let mut closed = Closed::from_pick(drifting(1.0), 4, 100).expect("the depth is good");
    assert_eq!(run(&mut closed, Nanos(1000), false).1, 4);
    let open = || {
        let gaps = Distribution::exponential(Nanos(HOUR / 100));
        Open::from_pick(drifting(1.0), &gaps, 100, 3).expect("the gaps are good")
    };
    assert_eq!(run(&mut open(), Nanos(1), false), run(&mut open(), Nanos(1), false));
}

#[test]
fn impossible_group_shapes_are_rejected() {
    let refused = |shape| Drifting::new(shape, 1).expect_err("the shape is bad").to_string();
    let good = drift(0.0);
    assert_eq!(
        refused(DriftShape { sectors: 17, ..good.clone() }),
        "no aligned request of 17 sectors fits in the 16 sectors from block 0 on"
    );
    assert_eq!(
        refused(DriftShape { group: 160_011, ..good.clone() }),
        "no aligned request of 160011 sectors fits in the 160010 sectors from block 10 on"
    );
    assert_eq!(
        refused(DriftShape { group: 1, region: Region::whole(1 << 25), ..good.clone() }),
        "there are 33554432 groups, where at most 16777216 are allowed"
    );
    assert_eq!(
        refused(DriftShape { drift_per_hour: -1.0, ..good.clone() }),
        "the drift an hour is -1, where 0, or 1e-9 to 100 is allowed"
    );
    assert_eq!(
        refused(DriftShape { popularity: Popularity::Zipf { exponent: 0.0 }, ..good }),
        "zipf: the exponent is 0, where 0.01 to 20 is allowed"
    );
}
