//! Several loads mixed into one: ids, devices, sources and the common end.

use headstack_workload::{Member, Mix};

use super::*;

fn mix(requests: u64, end: Instant) -> Mix {
    let closed = Closed::new(shape(), 2, 100, 1).expect("the shape is good");
    let gaps = Distribution::Constant(Nanos(1000));
    let open = Open::new(shape(), &gaps, 100, 2).expect("the shape is good");
    let streams = Streams::new(StreamShape::reads(shape().region, 3, 8), 100).expect("the shape is good");
    let members = vec![
        Member { load: Box::new(closed), device: 1, sources: 1 },
        Member { load: Box::new(open), device: 0, sources: 1 },
        Member { load: Box::new(streams), device: 2, sources: 3 },
    ];
    Mix::new(members, requests, end).expect("there are members")
}

#[test]
fn every_member_issues_as_if_alone() {
    let (seen, _) = run(&mut mix(u64::MAX, Instant::MAX), Nanos(700), false);
    assert_eq!(seen.len(), 300);
    let mut ids: Vec<u64> = seen.iter().map(|(_, issue)| issue.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..300).collect::<Vec<u64>>());
    for (device, sources) in [(1, 0..1), (0, 1..2), (2, 2..5)] {
        let of_device: Vec<&Seen> = seen.iter().filter(|(_, issue)| issue.device == device).collect();
        assert_eq!(of_device.len(), 100);
        assert!(of_device.iter().all(|(_, issue)| sources.contains(&issue.source)));
    }
    let arrivals = seen.iter().filter(|(_, issue)| issue.device == 0).map(|(at, _)| at.0);
    assert!(arrivals.eq((1..=100).map(|index| index * 1000)), "an open member is not held up by the others");
}

#[test]
fn mix_ends_by_number_and_by_time() {
    assert_eq!(run(&mut mix(57, Instant::MAX), Nanos(700), true).0.len(), 57);
    let (seen, _) = run(&mut mix(u64::MAX, Instant(20_000)), Nanos(700), false);
    assert!(seen.iter().all(|(at, _)| *at < Instant(20_000)));
    assert_eq!(seen.iter().filter(|(_, issue)| issue.device == 0).count(), 19);
}

#[test]
fn empty_mix_is_rejected() {
    let error = Mix::new(Vec::new(), 1, Instant::MAX).err().expect("there is nothing").to_string();
    assert_eq!(error, "the number of loads is 0, where at least 1 is needed");
}
