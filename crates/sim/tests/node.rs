//! The storage node of a rig: the stream scheduler between a load and the disks, in virtual time.

use headstack_model::{Lbn, Nanos, Op, Request, drives};
use headstack_sim::rig::{Rig, shipped};
use headstack_sim::{Finished, Outcome};
use headstack_workload::{Closed, Inbox, Issue, Load, Pattern, Region, Shape, StreamShape, Streams};
use std::collections::BTreeMap;

fn rig(text: &str) -> Rig {
    Rig::parse(text, "rig", &mut |name| drives::load(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn run(rig: &Rig, load: &mut dyn Load) -> Vec<Finished> {
    let mut engine = rig.build(1).unwrap_or_else(|error| panic!("{error}"));
    let mut all = Vec::new();
    engine.run(load, &mut |finished| all.push(*finished));
    all
}

/// Random requests, half of them writes, eight at a time.
fn random(rig: &Rig) -> Closed {
    let region = Region::whole(rig.volumes()[0].sectors);
    let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 0.5 };
    Closed::new(shape, 8, 500, 3).expect("it fits")
}

/// Readers spread evenly over the disk.
fn streams(rig: &Rig, streams: u32, requests: u64) -> Streams {
    let shape = StreamShape::reads(Region::whole(rig.volumes()[0].sectors), streams, 128);
    Streams::new(StreamShape { alignment: 8, ..shape }, requests).expect("they fit")
}

#[test]
fn does_a_node_that_schedules_nothing_change_nothing() {
    for drive in ["wd800jd", "exos-x18", "atlas-10k"] {
        let bare = shipped::load(drive).expect("it is shipped");
        let mut node = bare.clone();
        node.set("node.scheduling", "false").expect("it is a key");
        let plain: Vec<_> = run(&bare, &mut random(&bare));
        let passed: Vec<_> = run(&node, &mut random(&node));
        let told = |all: &[Finished]| -> BTreeMap<u64, (Nanos, Nanos)> {
            let times = |f: &Finished| (f.id, (f.completion.submitted, f.completion.completed));
            all.iter().map(times).collect()
        };
        assert_eq!(told(&plain), told(&passed), "{drive}");
    }
}

#[test]
fn is_every_request_answered_once_and_its_time_accounted_for() {
    let node = shipped::load("stream-node").expect("it is shipped");
    for load in [&mut random(&node) as &mut dyn Load, &mut streams(&node, 30, 3000)] {
        let all = run(&node, load);
        let mut ids: Vec<u64> = all.iter().map(|finished| finished.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all.len(), "each is answered once");
        assert!([500, 3000].contains(&all.len()), "{}", all.len());
        for Finished { completion, .. } in &all {
            assert_eq!(completion.outcome, Outcome::Done);
            assert_eq!(completion.parts.total(), completion.response(), "{completion:?}");
        }
    }
}

#[test]
fn does_the_same_come_of_the_same_seed() {
    let node = shipped::load("stream-node").expect("it is shipped");
    let [one, other] = [0, 1].map(|_| run(&node, &mut streams(&node, 50, 5000)));
    assert_eq!(one, other);
}

#[test]
fn is_what_a_disk_does_not_hold_refused() {
    let node = rig("[drive]\npreset = \"wd800jd\"\ncount = 2\n[node]");
    let sectors = node.volumes()[1].sectors;
    let mut inbox = Inbox::default();
    let mut put = |id, lbn, sectors| {
        let request = Request { op: Op::Read, lbn: Lbn(lbn), sectors, fua: false };
        inbox.put(Nanos(id), Issue::new(1, request, id));
    };
    put(0, sectors - 8, 8);
    put(1, sectors - 8, 9);
    put(2, 0, 0);
    put(3, u64::MAX, 1);
    let mut engine = node.build(1).expect("it is good");
    let mut outcomes = BTreeMap::new();
    engine.run(&mut inbox, &mut |finished| {
        assert_eq!((finished.volume, finished.device), (1, 1));
        outcomes.insert(finished.id, finished.completion.outcome);
    });
    let expected = [Outcome::Done, Outcome::OutOfRange, Outcome::OutOfRange, Outcome::OutOfRange];
    assert_eq!(outcomes.into_values().collect::<Vec<_>>(), expected);
}

#[test]
fn does_an_array_behind_a_node_look_like_a_disk() {
    let node = rig(
        "[drive]\npreset = \"wd800jd\"\ncount = 3\n[array]\nname = \"a\"\norganisation = \"striping\"\n\
                    drives = [\"disk0\", \"disk1\", \"disk2\"]\nstripe_unit_sectors = 256\n[node]\nmemory_bytes = 4194304",
    );
    let all = run(&node, &mut streams(&node, 20, 2000));
    assert_eq!(all.len(), 2000);
    assert!(all.iter().all(|finished| finished.completion.outcome == Outcome::Done));
}
