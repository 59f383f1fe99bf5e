//! Guarantees of every generator, on any device.

mod drift;
mod mix;
mod processes;
mod streams;

use headstack_model::{Instant, Lbn, Nanos, Op, Request, Track};
use headstack_workload::{
    Closed, Distribution, Issue, Load, Open, Pattern, Poll, Region, Shape, ShapeError, StreamShape, Streams,
    TrackLoad, TrackShape,
};
use proptest::prelude::*;

/// A request with the time of its issue.
type Seen = (Instant, Issue);

/// Runs a load on an invented device that serves one request at a time, each for `service`, the oldest or the youngest first. Returns the
/// issued requests, and the maximum number outstanding.
fn run(load: &mut dyn Load, service: Nanos, youngest: bool) -> (Vec<Seen>, usize) {
    let (mut seen, mut out, mut most) = (Vec::new(), Vec::new(), 0);
    let (mut now, mut busy_until) = (Instant::ZERO, Instant::ZERO);
    loop {
        let wanted = match load.poll(now) {
            Poll::Issue(issue) => {
                seen.push((now, issue));
                out.push(issue.id);
                most = most.max(out.len());
                continue;
            }
            Poll::Done => {
                assert!(out.is_empty(), "nothing is out once a load is done");
                return (seen, most);
            }
            Poll::Compute { .. } => unreachable!("no program computes"),
            Poll::Waiting => Instant::MAX,
            Poll::Later(at) => at,
        };
        assert!(wanted > now && (wanted < Instant::MAX || !out.is_empty()), "the load stands still");
        busy_until = busy_until.max(now) + service;
        if out.is_empty() || wanted < busy_until {
            (busy_until, now) = (now, wanted);
            continue;
        }
        now = busy_until;
        let id = if youngest { out.pop().expect("it is not empty") } else { out.remove(0) };
        load.handle_completion(now, id);
    }
}

fn shape() -> Shape {
    Shape {
        region: Region { first: Lbn(1000), sectors: 100_000 },
        pattern: Pattern::Random,
        sectors: 8,
        alignment: 8,
        read_share: 0.5,
    }
}

/// Ten tracks of 100 sectors, then tracks of 70.
fn track_of(lbn: Lbn) -> Track {
    let (base, length) = if lbn.0 < 1000 { (0, 100) } else { (1000, 70) };
    let first = Lbn(base + (lbn.0 - base) / length * length);
    Track { first, sectors: length as u32, cylinder: 0, head: 0, sectors_per_track: length as u32 }
}

fn tracks(aligned: bool, depth: u32, seed: u64) -> TrackLoad<fn(Lbn) -> Track> {
    let region = Region { first: Lbn(200), sectors: 1500 };
    let shape = TrackShape { region, aligned, op: Op::Read, depth };
    TrackLoad::new(shape, 500, seed, track_of as fn(Lbn) -> Track).expect("the shape is good")
}

/// One load of each kind, with the number of requests that it should have outstanding.
fn loads(seed: u64) -> Vec<(Box<dyn Load>, usize)> {
    let stream = StreamShape { depth: 2, alignment: 8, ..StreamShape::reads(shape().region, 7, 100) };
    let closed =
        |pattern| Closed::new(Shape { pattern, ..shape() }, 5, 500, seed).expect("the shape is good");
    vec![
        (Box::new(closed(Pattern::Random)), 5),
        (Box::new(closed(Pattern::Sequential)), 5),
        (Box::new(Streams::new(stream, 500).expect("the shape is good")), 14),
        (Box::new(tracks(true, 2, seed)), 2),
        (Box::new(tracks(false, 1, seed)), 1),
        (
            Box::new(
                Open::new(shape(), &Distribution::Constant(Nanos(50)), 500, seed).expect("the shape is good"),
            ),
            500,
        ),
    ]
}

fn gaps(gaps: Distribution<Nanos>, requests: u64) -> Vec<f64> {
    let mut load = Open::new(shape(), &gaps, requests, 3).expect("the shape is good");
    let (seen, _) = run(&mut load, Nanos(1), false);
    let mut last = 0;
    let gap = |(at, _): &Seen| at.0 - std::mem::replace(&mut last, at.0);
    seen.iter().map(gap).map(|gap| gap as f64).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

proptest! {
    #[test]
    fn every_load_issues_all_requests_once_within_depth(seed: u64, youngest: bool, service in 1..3000u64) {
        for (mut load, depth) in loads(seed) {
            let (seen, most) = run(load.as_mut(), Nanos(service), youngest);
            prop_assert_eq!(seen.len(), 500);
            prop_assert!(most <= depth, "{} out of {}", most, depth);
            let mut ids: Vec<u64> = seen.iter().map(|(_, issue)| issue.id).collect();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), 500);
        }
    }

    #[test]
    fn same_seed_repeats_requests(seed: u64) {
        for ((mut one, _), (mut other, _)) in loads(seed).into_iter().zip(loads(seed)) {
            prop_assert_eq!(run(one.as_mut(), Nanos(100), false), run(other.as_mut(), Nanos(100), false));
        }
    }

    #[test]
    fn every_request_stays_in_its_region(seed: u64, first in 0..500u64, sectors in 1..3000u64, size in 1..80u32, alignment in 1..20u32) {
        let region = Region { first: Lbn(first), sectors };
        for pattern in [Pattern::Random, Pattern::Sequential] {
            let shape = Shape { region, pattern, sectors: size, alignment, read_share: 1.0 };
            match Closed::new(shape, 3, 100, seed) {
                Ok(mut load) => for (_, issue) in run(&mut load, Nanos(9), false).0 {
                    let request = issue.request;
                    prop_assert!(request.lbn >= region.first && request.end() <= region.first + sectors);
                    prop_assert_eq!(request.lbn.0 % u64::from(alignment), 0);
                    prop_assert_eq!(request.sectors, size);
                },
                Err(error) => {
                    let is_narrow = matches!(error, ShapeError::Narrow { .. });
                    prop_assert!(is_narrow, "{}", error);
                    let aligned = first.next_multiple_of(u64::from(alignment));
                    prop_assert!(aligned + u64::from(size) > first + sectors, "{} fits", size);
                }
            }
        }
    }
}

#[test]
fn every_load_reaches_its_depth() {
    for (mut load, depth) in loads(1) {
        assert_eq!(run(load.as_mut(), Nanos(1_000_000), false).1, depth);
    }
}

#[test]
fn request_ids_count_from_zero() {
    for (index, (mut load, _)) in loads(1).into_iter().enumerate() {
        let ids: Vec<u64> =
            run(load.as_mut(), Nanos(10), false).0.iter().map(|(_, issue)| issue.id).collect();
        assert_eq!(ids, (0..500).collect::<Vec<u64>>(), "load {index}");
    }
}

#[test]
fn poisson_gaps_are_exponential() {
    let gaps = gaps(Distribution::exponential(Nanos(1_000_000)), 40_000);
    let mean = mean(&gaps);
    // The mean of n exponential gaps has a standard deviation of mean / √n. The tolerance is four of these.
    assert!((mean / 1e6 - 1.0).abs() < 4.0 / 200.0, "{mean}");
    let longer = gaps.iter().filter(|gap| **gap > 2e6).count() as f64 / gaps.len() as f64;
    let expected = (-2f64).exp();
    assert!((longer - expected).abs() < 4.0 * (expected / 40_000.0).sqrt(), "{longer}");
}

#[test]
fn constant_and_uniform_gaps_match_their_distribution() {
    assert!(gaps(Distribution::Constant(Nanos(70)), 100).iter().all(|gap| *gap == 70.0));
    let uniform = gaps(Distribution::Uniform { low: Nanos(100), high: Nanos(300) }, 10_000);
    assert!(uniform.iter().all(|gap| (100.0..=300.0).contains(gap)));
    // The mean has a standard deviation of 200 / √12 / √n.
    assert!((mean(&uniform) - 200.0).abs() < 4.0 * 200.0 / 12f64.sqrt() / 100.0);
    let low = Open::new(shape(), &Distribution::Uniform { low: Nanos(2), high: Nanos(1) }, 1, 1)
        .expect_err("it ends before it begins");
    assert!(matches!(low, ShapeError::Distribution(_)));
}

#[test]
fn first_arrivals_match_golden_values() {
    let gaps = gaps(Distribution::exponential(Nanos(1_000_000)), 3);
    assert_eq!(gaps, [5_756_309.0, 139_071.0, 228_533.0]);
}

#[test]
fn open_load_arrivals_ignore_service_time() {
    let times = |service| {
        let mut load =
            Open::new(shape(), &Distribution::exponential(Nanos(1000)), 300, 5).expect("the shape is good");
        run(&mut load, Nanos(service), false).0
    };
    assert_eq!(times(10), times(100_000));
}

#[test]
fn aligned_requests_cover_whole_tracks_and_others_do_not() {
    let (seen, _) = run(&mut tracks(true, 2, 1), Nanos(5), false);
    for (_, issue) in &seen {
        let track = track_of(issue.request.lbn);
        assert_eq!((issue.request.lbn, issue.request.sectors), (track.first, track.sectors));
    }
    let (seen, _) = run(&mut tracks(false, 2, 1), Nanos(5), false);
    let aligned =
        seen.iter().filter(|(_, issue)| track_of(issue.request.lbn).first == issue.request.lbn).count();
    assert!(
        aligned < 25,
        "{aligned} of 500 are aligned, of which one in a track's length would be by chance"
    );
    for (_, issue) in &seen {
        assert_eq!(issue.request.sectors, track_of(issue.request.lbn).sectors);
        assert!(issue.request.lbn >= Lbn(200) && issue.request.end() <= Lbn(1700));
    }
}

#[test]
fn region_shorter_than_its_track_is_rejected() {
    for sectors in [0, 99] {
        let region = Region { first: Lbn(0), sectors };
        let shape = TrackShape { region, aligned: false, op: Op::Write, depth: 1 };
        assert!(matches!(TrackLoad::new(shape, 1, 1, track_of), Err(ShapeError::Narrow { .. })));
    }
}

#[test]
fn first_requests_of_adjacent_seeds_average_mid_region() {
    let first = |seed| {
        let mut load = Closed::new(Shape { alignment: 1, ..shape() }, 1, 1, seed).expect("the shape is good");
        run(&mut load, Nanos(1), false).0[0].1.request.lbn.0 as f64
    };
    let firsts: Vec<f64> = (0..2000).map(first).collect();
    // The mean of 2,000 uniform offsets among 99,993 has a standard deviation of 100,000 / √12 / √2,000.
    assert!((mean(&firsts) - 51_000.0).abs() < 4.0 * 645.5, "{}", mean(&firsts));
}
