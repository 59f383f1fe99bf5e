//! The storage node of a rig: the stream scheduler between a load and the disks, in virtual time.

use headstack_model::{Instant, Lbn, Nanos, Op, Request, drives};
use headstack_sim::rig::{Rig, shipped};
use headstack_sim::{Completion, Finished, Observer, Outcome, StreamLayer};
use headstack_streams::streams::{Guarantee, View};
use headstack_workload::{
    Closed, Inbox, Issue, Load, Member, Mix, Pattern, Region, Shape, StreamShape, Streams,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

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
fn node_without_scheduling_changes_no_request_time() {
    for drive in ["wd800jd", "exos-x18", "atlas-10k"] {
        let bare = shipped::load(drive).expect("it is shipped");
        let mut node = bare.clone();
        node.set("node.scheduling", "false").expect("it is a key");
        node.set("node.guard_cost", "0").expect("it is a key");
        let plain: Vec<_> = run(&bare, &mut random(&bare));
        let passed: Vec<_> = run(&node, &mut random(&node));
        let times_by_id = |all: &[Finished]| -> BTreeMap<u64, (Instant, Instant)> {
            let times = |f: &Finished| (f.id, (f.completion.submitted, f.completion.completed));
            all.iter().map(times).collect()
        };
        assert_eq!(times_by_id(&plain), times_by_id(&passed), "{drive}");
    }
}

#[test]
fn every_request_is_answered_once_and_fully_accounted() {
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

/// Response times in milliseconds, ascending, of random reads of 4 KiB with a guarantee of 100 ms, and of 32 other reads outstanding.
fn guaranteed_and_others_ms(keys: &[(&str, &str)]) -> [Vec<f64>; 2] {
    let mut node = shipped::load("ultrastar-hc570").expect("it is shipped");
    node.set("node.memory_bytes", "8388608").expect("it is a key");
    keys.iter().for_each(|(key, value)| node.set(key, value).expect("it is a key"));
    let region = Region::whole(node.volumes()[0].sectors);
    let member = |(sectors, depth, seed)| {
        let shape = Shape { region, pattern: Pattern::Random, sectors, alignment: 8, read_share: 1.0 };
        let load: Box<dyn Load> = Box::new(Closed::new(shape, depth, u64::MAX, seed).expect("it fits"));
        Member { load, device: 0, sources: 1 }
    };
    let members = [(8, 1, 1), (256, 32, 2)].map(member).into();
    let mut load = Mix::new(members, u64::MAX, Instant::from_secs(30)).expect("the members are right");
    let mut engine = node.build(1).unwrap_or_else(|error| panic!("{error}"));
    engine
        .layer_mut::<StreamLayer>(0)
        .expect("the volume has a node")
        .set_guarantee(0, Guarantee { rate: 1_000_000, response: Nanos::from_ms(100.0) });
    let mut times = [Vec::new(), Vec::new()];
    engine.run(&mut load, &mut |finished| {
        times[finished.source as usize].push(finished.completion.response().as_ms());
    });
    times.iter_mut().for_each(|times| times.sort_unstable_by(f64::total_cmp));
    times
}

#[test]
fn drive_prefers_reads_with_a_guarantee_by_its_limits_that_abort_none() {
    let p99 = |times: &[f64]| times[times.len() * 99 / 100];
    let [with, others] = guaranteed_and_others_ms(&[]);
    let [without, others_without] = guaranteed_and_others_ms(&[("node.read_limits_ms", "[]")]);
    assert!(p99(&with) < 0.5 * p99(&without), "{} and {} ms", p99(&with), p99(&without));
    // The drive may lose a fifth of its time. A client with shorter responses also requests more.
    let [all, all_without] = [with.len() + others.len(), without.len() + others_without.len()];
    assert!(all as f64 > 0.8 * all_without as f64, "{all} and {all_without}");
    // A limit with which the drive aborts a late read serves no guarantee.
    let aborting = "[{ guideline_ms = 50, guideline_policy = \"abort\" }]";
    assert_eq!(guaranteed_and_others_ms(&[("drive.queue.duration_limits.reads", aborting)])[0], without);
}

#[test]
fn same_seed_gives_identical_results() {
    let node = shipped::load("stream-node").expect("it is shipped");
    let [one, other] = [0, 1].map(|_| run(&node, &mut streams(&node, 50, 5000)));
    assert_eq!(one, other);
}

#[test]
fn request_beyond_the_disk_is_rejected() {
    let node = rig("[drive]\npreset = \"wd800jd\"\ncount = 2\n[node]");
    let sectors = node.volumes()[1].sectors;
    let mut inbox = Inbox::default();
    let mut put = |id, lbn, sectors| {
        let request = Request { op: Op::Read, lbn: Lbn(lbn), sectors, fua: false };
        inbox.put(Instant(id), Issue::new(1, request, id));
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
fn array_behind_a_node_serves_as_one_volume() {
    let node = rig(
        "[drive]\npreset = \"wd800jd\"\ncount = 3\n[array]\nname = \"a\"\norganisation = \"striping\"\n\
                    drives = [\"disk0\", \"disk1\", \"disk2\"]\nstripe_unit_sectors = 256\n[node]\nmemory_bytes = 4194304",
    );
    let all = run(&node, &mut streams(&node, 20, 2000));
    assert_eq!(all.len(), 2000);
    assert!(all.iter().all(|finished| finished.completion.outcome == Outcome::Done));
}

/// What each stream got within a span, in requests.
fn counted(rig: &Rig, streams: u32, sectors: u32, from: Instant, until: Instant) -> Vec<u64> {
    let region = Region::whole(rig.volumes()[0].sectors);
    let shape = StreamShape { alignment: 8, ..StreamShape::reads(region, streams, sectors) };
    let load: Box<dyn Load> = Box::new(Streams::new(shape, u64::MAX).expect("they fit"));
    let member = Member { load, device: 0, sources: streams };
    let mut load = Mix::new(vec![member], u64::MAX, until).expect("it has a member");
    let mut counts = vec![0; streams as usize];
    let mut engine = rig.build(1).unwrap_or_else(|error| panic!("{error}"));
    engine.run(&mut load, &mut |finished| {
        if (from..until).contains(&finished.completion.completed) {
            counts[finished.source as usize] += 1;
        }
    });
    counts
}

/// Loads that one shipped drive serves slower behind the scheduler than alone.
fn slower_behind_scheduler(name: &str) -> Vec<String> {
    let bare = shipped::load(name).expect("it is shipped");
    let mut node = bare.clone();
    node.set("node.scheduling", "true").expect("it is a key");
    let bytes = bare.volumes()[0].sector_bytes;
    let mut slower = Vec::new();
    let count = |rig: &Rig, streams, from, until| {
        let span = [from, until].map(Instant::from_secs);
        counted(rig, streams, 65_536 / bytes, span[0], span[1]).iter().sum::<u64>()
    };
    // Old drives take long for a turn. From 20 MB/s on, a turn is short, and a second has many requests.
    let (from, until) = if count(&bare, 1, 0, 5) > 1500 { (20, 60) } else { (60, 180) };
    for streams in [1, 7, 40] {
        let [without, with] = [&bare, &node].map(|rig| count(rig, streams, from, until) as f64);
        if with < 0.97 * without {
            slower.push(format!("{name}, {streams} streams: {with} requests, without {without}"));
        }
    }
    slower
}

/// A third of the drives a day; all with `HEADSTACK_LONG=1`.
#[test]
fn scheduler_never_slows_streams_on_any_shipped_drive() {
    let (next, todays) = (AtomicUsize::new(0), headstack_prerequisites::todays_cases(drives::all(), 3));
    let work = || {
        let claim = || todays.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(claim).flat_map(|(name, _)| slower_behind_scheduler(name)).collect::<Vec<_>>()
    };
    let slower = std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.map(|worker| worker.join().expect("no drive panics")).concat()
    });
    // Known: one reader of this drive alone, whose own read-ahead is quicker than large requests (0.905 here).
    let is_known = |one: &String| one.starts_with("hp-c2249a, 1 ");
    assert!(slower.iter().all(is_known), "{slower:#?}");
}

#[test]
fn every_stream_gets_an_equal_share() {
    let mut node = shipped::load("stream-node").expect("it is shipped");
    for memory in [2 << 20, 8 << 20, 32 << 20] {
        node.set("node.memory_bytes", &memory.to_string()).expect("it is a key");
        let counts = counted(&node, 100, 128, Instant::from_secs(200), Instant::from_secs(900));
        let mean = counts.iter().sum::<u64>() as f64 / 100.0;
        let least = *counts.iter().min().expect("there are streams") as f64;
        assert!(least > 0.9 * mean, "{memory} bytes: {least} of {mean} requests");
    }
}

/// Advances an engine with a load step by step, and passes the state of the scheduler to `look` after each step.
fn watch(rig: &Rig, load: &mut dyn Load, seconds: u64, mut look: impl FnMut(&View)) {
    struct NoObserver;
    impl Observer for NoObserver {
        fn finished(&mut self, _: &Finished) {}
        fn served(&mut self, _: u32, _: &Completion) {}
    }
    let mut engine = rig.build(1).unwrap_or_else(|error| panic!("{error}"));
    // A step that is no multiple of anything.
    let (mut now, step) = (Instant::ZERO, Nanos(7_919_001));
    while now < Instant::from_secs(seconds) {
        now += step;
        engine.advance(now, load, &mut NoObserver);
        let streams = engine.layer::<StreamLayer>(0).expect("there is a node").streams();
        streams.check();
        look(&streams.view());
    }
}

#[test]
fn node_limits_are_never_exceeded() {
    let mut node = shipped::load("stream-node").expect("it is shipped");
    let keys = [("memory_bytes", 6 << 20), ("read_ahead_bytes", 1 << 20), ("dispatch_set", 3)];
    for (key, value) in keys.into_iter().chain([("requests_per_turn", 2)]) {
        node.set(&format!("node.{key}"), &value.to_string()).expect("it is a key");
    }
    let mut most = 0;
    watch(&node, &mut streams(&node, 40, u64::MAX), 60, |view| {
        assert!(view.memory.used_bytes <= 6 << 20 && view.memory.high_water_bytes <= 6 << 20, "{view:?}");
        assert!(view.dispatched <= 3, "{view:?}");
        assert_eq!(
            (view.tuning.read_ahead_bytes, view.tuning.requests_per_turn, view.tuning.dispatch_set),
            (1 << 20, 2, 3)
        );
        most = most.max(view.dispatched);
    });
    assert_eq!(most, 3, "as many as are allowed have turns");
}

/// MB/s of sixty readers behind a node of given R, D and N, with a memory of their product.
fn rate_of(read_ahead: u64, set: u64, turn: u64) -> f64 {
    let mut node = shipped::load("stream-node").expect("it is shipped");
    let memory = read_ahead * set * turn;
    let keys = [("memory_bytes", memory), ("dispatch_set", set), ("requests_per_turn", turn)];
    for (key, value) in keys.into_iter().chain([("read_ahead_bytes", read_ahead)]) {
        node.set(&format!("node.{key}"), &value.to_string()).expect("it is a key");
    }
    let counts = counted(&node, 60, 128, Instant::from_secs(20), Instant::from_secs(80));
    counts.iter().sum::<u64>() as f64 * 65_536.0 / 60e6
}

#[test]
fn one_request_may_fill_the_memory() {
    // The disk waits between two turns, and no stream loses bytes to the next one.
    let mb_s = rate_of(8 << 20, 1, 1);
    assert!(mb_s > 0.85 * 55.0, "{mb_s} MB/s");
}

#[test]
fn memory_of_d_times_r_times_n_sustains_the_rate() {
    // The streams that have turns hold all memory: none may evict the data that another one is just fetching.
    for (read_ahead, set, turn) in [(8 << 20, 2, 1), (1 << 20, 8, 1), (1 << 20, 4, 4), (512 << 10, 2, 16)] {
        let mb_s = rate_of(read_ahead, set, turn);
        // A request of R, and the time to get there.
        let least = read_ahead as f64 / 1e6 / (read_ahead as f64 / 55e6 + 0.020);
        assert!(mb_s > least, "R {read_ahead}, D {set}, N {turn}: {mb_s} MB/s, at least {least}");
    }
}

#[test]
fn stream_memory_bound_holds_for_mixed_clients() {
    for memory in [256 << 10, 1 << 20, 8 << 20] {
        let mut node = shipped::load("stream-node").expect("it is shipped");
        node.set("node.memory_bytes", &memory.to_string()).expect("it is a key");
        let region = Region::whole(node.volumes()[0].sectors);
        let some = |op, streams, sectors, depth| -> Member {
            let shape =
                StreamShape { op, depth, alignment: 8, ..StreamShape::reads(region, streams, sectors) };
            let load: Box<dyn Load> = Box::new(Streams::new(shape, u64::MAX).expect("they fit"));
            Member { load, device: 0, sources: streams }
        };
        let random: Box<dyn Load> = Box::new(random(&node));
        let members = vec![
            some(Op::Read, 50, 128, 1),
            some(Op::Write, 50, 64, 4),
            some(Op::Read, 3, 2048, 8),
            Member { load: random, device: 0, sources: 1 },
        ];
        let mut load = Mix::new(members, u64::MAX, Instant::MAX).expect("it has members");
        watch(&node, &mut load, 40, |view| {
            assert!(view.memory.used_bytes <= memory && view.memory.high_water_bytes <= memory, "{view:?}");
        });
    }
}

#[test]
fn earlier_names_of_node_keys_are_accepted() {
    let parsed = |keys: &str| {
        let rig = rig(&format!(
            "[drive]\npreset = \"wd800jd\"\n[node]\nread_ahead_bytes = 65536\ndispatch_set = 1\n{keys}"
        ));
        format!("{:?}", rig.resolved())
    };
    assert_eq!(
        parsed("requests_a_turn = 3\ngather_writes = false\ngather_ms = 7.0\nbeside_bytes = 8192"),
        parsed("requests_per_turn = 3\ncoalesce_writes = false\ncoalesce_ms = 7.0\nbypass_bytes = 8192"),
    );
}

/// Requests of 256 KiB that streams on this part of a disk with two arms had answered in four seconds, with this key of the node.
fn answered_on_two_arms(key: Option<(&str, &str)>, share: u64) -> Vec<u64> {
    let mut rig = shipped::load("exos-2x18-sata").expect("it is shipped");
    rig.set("node.memory_bytes", "16777216").expect("it is a key");
    key.into_iter().for_each(|(key, value)| rig.set(key, value).expect("it is a key"));
    let region = Region::whole(rig.volumes()[0].sectors / share);
    let shape = StreamShape { alignment: 8, ..StreamShape::reads(region, 20, 512) };
    let load: Box<dyn Load> = Box::new(Streams::new(shape, u64::MAX).expect("they fit"));
    let member = Member { load, device: 0, sources: 20 };
    let (from, until) = (Instant::from_secs(3), Instant::from_secs(7));
    let mut load = Mix::new(vec![member], u64::MAX, until).expect("it has a member");
    let mut counts = vec![0; 20];
    rig.build(1).expect("it is good").run(&mut load, &mut |finished| {
        counts[finished.source as usize] += u64::from(finished.completion.completed >= from);
    });
    counts
}

#[test]
fn node_keeps_both_arms_of_a_disk_busy() {
    let [one, both] = [Some(("node.arms", "1")), None].map(|key| answered_on_two_arms(key, 1));
    let [of_one, of_both] = [&one, &both].map(|counts| counts.iter().sum::<u64>() as f64);
    assert!(of_both > 1.8 * of_one, "{of_both} requests with a dispatch set for each arm, {of_one} with one");
    let [lower, upper] = [&both[..10], &both[10..]].map(|half| half.iter().sum::<u64>() as f64);
    // The outer tracks of both halves are as quick, so that each arm does half.
    assert!((lower / upper - 1.0).abs() < 0.1, "{lower} requests at the lower arm, {upper} at the upper one");
}

#[test]
fn streams_of_one_arm_are_served_as_on_a_disk_with_one() {
    let [one, both] = [Some(("node.arms", "1")), None].map(|key| answered_on_two_arms(key, 2));
    assert_eq!(one, both);
}

/// Writes that a host-managed disk with zones of 4 MiB refuses of eight writers, each of which fills four zones, and the turns that the
/// node gave them.
fn refused_of_zone_writers(depth: u32, sectors: u32) -> (u64, u64) {
    const ZONE: u64 = 8192;
    let mut node = rig("[drive]\npreset = \"ultrastar-hc620\"\n[node]\nmemory_bytes = 8388608");
    node.set("drive.zones.zone_sectors", &ZONE.to_string()).expect("it is a key");
    let region = Region { first: Lbn(600 * ZONE), sectors: 8 * 4 * ZONE };
    let each = 4 * ZONE / u64::from(sectors);
    let reads = StreamShape { depth, alignment: 8, ..StreamShape::reads(region, 8, sectors) };
    let shape = StreamShape { op: Op::Write, each: Some(each), ..reads };
    let mut engine = node.build(1).expect("it is good");
    let mut answered = 0;
    engine.run(&mut Streams::new(shape, 8 * each).expect("they fit"), &mut |finished| {
        answered += u64::from(finished.completion.outcome == Outcome::Done);
    });
    assert_eq!(answered, 8 * each, "depth {depth}, {sectors} sectors");
    let turns = engine.layer::<StreamLayer>(0).expect("it has a node").streams().view().counters.turns;
    (engine.device(0).refused_by_zones().map_or(0, |(count, ..)| count), turns)
}

#[test]
fn node_writes_zones_in_sequence() {
    for (depth, sectors) in [(1, 128), (4, 128), (2, 64), (1, 1024)] {
        let (refused, turns) = refused_of_zone_writers(depth, sectors);
        assert_eq!(refused, 0, "depth {depth}, {sectors} sectors");
        assert!(turns > 0 || sectors == 1024, "depth {depth}, {sectors} sectors: no stream had a turn");
    }
}
