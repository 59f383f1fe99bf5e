//! Laws of the scheduler: throughput, turns and memory.

use crate::world::{Speed, World};
use headstack_model::{Instant, Nanos};
use headstack_streams::streams::{Boundaries, Classifier, Config, Guarantee, RegionForm, RequestKind, Turns};

/// 50 MB/s, and 10 ms to position anywhere.
const SPEED: Speed = Speed { positioning: Nanos(10_000_000), byte_ns: 20.0 };

/// Runs closed clients with one outstanding request each. Returns their total bytes per second, the ratio of the slowest client to the mean,
/// and the longest response.
fn run(
    world: &mut World,
    kind_of: &mut dyn FnMut(usize, u64) -> RequestKind,
    clients: usize,
    seconds: u64,
) -> (f64, f64, Nanos) {
    let mut turns = vec![0; clients];
    let mut owner = std::collections::BTreeMap::new();
    let mut got = vec![0u64; clients];
    let end = Instant::from_secs(seconds);
    let warm = Instant(end.0 / 3);
    let mut longest = Nanos::ZERO;
    for client in 0..clients {
        let kind = kind_of(client, 0);
        let ticket = world.submit(client as u64, kind, 1);
        owner.insert(ticket, (client, world.now, kind));
    }
    loop {
        while let Some((ticket, result)) = world.answered.pop() {
            let (client, since, kind) = owner.remove(&ticket).expect("it was submitted");
            result.expect("the disk works");
            let (RequestKind::Read { bytes, .. } | RequestKind::Write { bytes, .. }) = kind else {
                panic!("they transfer")
            };
            if world.now > warm {
                got[client] += bytes;
                longest = longest.max(world.now.since(since));
            }
            turns[client] += 1;
            let kind = kind_of(client, turns[client]);
            let ticket = world.submit(client as u64, kind, 1);
            owner.insert(ticket, (client, world.now, kind));
        }
        if !world.step(end) {
            break;
        }
    }
    let all: u64 = got.iter().sum();
    let least = *got.iter().min().expect("there are clients") as f64 / (all as f64 / clients as f64);
    (all as f64 / (end.since(warm).as_secs()), least, longest)
}

fn reader(clients: usize, disk: u64, bytes: u64) -> impl FnMut(usize, u64) -> RequestKind {
    move |client, turn| {
        let apart = disk / clients as u64 / (1 << 20) * (1 << 20);
        RequestKind::Read { offset: client as u64 * apart + turn * bytes % apart, bytes, fua: false }
    }
}

const DISK: u64 = 64 << 30;

fn world(config: Config) -> World {
    World::new(config, (DISK / 4096) as usize, SPEED)
}

#[test]
fn hundred_streams_get_nine_tenths_of_the_disk_in_8_mib() {
    let mut world = world(Config::default());
    let (rate, least, longest) = run(&mut world, &mut reader(100, DISK, 64 << 10), 100, 300);
    let view = world.streams.view();
    eprintln!("{rate:.0} B/s, least {least:.3}, longest {longest:?}, {view:?}");
    assert!(rate > 0.9 * 50e6, "{rate:.0} B/s");
    assert!(least > 0.9, "the slowest has {least:.2} of the mean");
    assert!(longest < Nanos::from_secs(20), "{longest:?}");
    assert!(view.memory.high_water_bytes <= 8 << 20);
}

#[test]
fn regions_around_requests_find_the_same_hundred_streams() {
    let classifier = Classifier { form: RegionForm::Around, ..Classifier::default() };
    let mut world = world(Config { classifier, ..Config::default() });
    let (rate, least, _) = run(&mut world, &mut reader(100, DISK, 64 << 10), 100, 300);
    assert!(rate > 0.9 * 50e6 && least > 0.9, "{rate:.0} B/s, least {least:.3}");
}

#[test]
fn regions_around_requests_take_random_reads_of_a_small_area_for_a_stream() {
    let bypassed = |form: RegionForm| {
        let classifier = Classifier { form, ..Classifier::default() };
        let mut world = world(Config { classifier, ..Config::default() });
        // Blocks of 64 KiB of the first MiB, in random order.
        let place = |turn: u64| turn.wrapping_mul(turn + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        let mut kind_of = |_: usize, turn: u64| RequestKind::Read {
            offset: place(turn) << 16,
            bytes: 64 << 10,
            fua: false,
        };
        run(&mut world, &mut kind_of, 1, 20);
        let counters = world.streams.view().counters;
        counters.direct as f64 / (counters.direct + counters.hits).max(1) as f64
    };
    let [fixed, around] = [RegionForm::Fixed, RegionForm::Around].map(bypassed);
    assert!(fixed > 0.99 && around < 0.9, "{fixed:.3} and {around:.3} of the reads bypassed the scheduler");
}

#[test]
fn lone_stream_gets_the_whole_disk() {
    let mut world = world(Config::default());
    let (rate, ..) = run(&mut world, &mut reader(1, DISK, 64 << 10), 1, 10);
    assert!(rate > 0.99 * 50e6 * 20.0 / (20.0 + 1000.0 / (256 << 10) as f64), "{rate:.0} B/s");
}

#[test]
fn hundred_writers_get_nine_tenths_of_the_disk() {
    let mut world = world(Config::default());
    let mut read = reader(100, DISK, 64 << 10);
    let mut write = |client, turn| match read(client, turn) {
        RequestKind::Read { offset, bytes, .. } => RequestKind::Write { offset, bytes, fua: false },
        other => other,
    };
    let (rate, least, longest) = run(&mut world, &mut write, 100, 300);
    eprintln!("{rate:.0} B/s, least {least:.3}, longest {longest:?}, {:?}", world.streams.view());
    assert!(rate > 0.9 * 50e6, "{rate:.0} B/s");
    assert!(least > 0.9, "the slowest has {least:.2} of the mean");
}

#[test]
fn backward_streams_get_four_fifths_of_the_disk() {
    // Positioning costs the same everywhere, so larger reads gain throughput.
    let mut world =
        world(Config { read_ahead_bytes: Some(4 << 20), memory_bytes: 64 << 20, ..Config::default() });
    let apart = DISK / 20;
    let mut kind_of = |client: usize, turn: u64| {
        let end = (client as u64 + 1) * apart / (1 << 20) * (1 << 20);
        RequestKind::Read { offset: end - (turn + 1) * (64 << 10), bytes: 64 << 10, fua: false }
    };
    let (rate, least, _) = run(&mut world, &mut kind_of, 20, 60);
    eprintln!("{rate:.0} B/s, least {least:.3}, {:?}", world.streams.view());
    assert!(rate > 0.8 * 50e6, "{rate:.0} B/s");
}

#[test]
fn random_reader_is_served_alongside_a_hundred_streams() {
    let mut world = world(Config::default());
    let mut read = reader(100, DISK, 64 << 10);
    let mut kind_of = |client: usize, turn: u64| match client {
        100 => RequestKind::Read {
            offset: turn.wrapping_mul(turn + 7).wrapping_mul(0x9e37_79b9) % (DISK / 4096) * 4096,
            bytes: 4096,
            fua: false,
        },
        _ => read(client, turn),
    };
    let (rate, ..) = run(&mut world, &mut kind_of, 101, 30);
    let view = world.streams.view();
    eprintln!("{rate:.0} B/s, {view:?}");
    assert!(
        view.counters.direct > 30 * 20,
        "{} requests bypassed streams in half a minute",
        view.counters.direct
    );
}

#[test]
fn turn_settings_bound_memory_and_requests_in_flight() {
    for turns in [Turns::Nearest, Turns::RoundRobin] {
        // D = 2 streams at a time, R = 1 MiB, N = 4.
        let config = Config {
            read_ahead_bytes: Some(1 << 20),
            dispatch_set: Some(2),
            requests_per_turn: Some(4),
            turns,
            ..Config::default()
        };
        let mut world = world(config);
        let (rate, least, _) = run(&mut world, &mut reader(30, DISK, 64 << 10), 30, 60);
        let view = world.streams.view();
        assert!(view.memory.high_water_bytes <= 8 << 20);
        assert!(world.most_in_flight <= 4, "two of each of two streams: {}", world.most_in_flight);
        // The transfer of 1 MiB takes 21 ms. Two streams that alternate cost a positioning for each turn.
        assert!(rate > 0.6 * 50e6 && least > 0.8, "{rate:.0} B/s, {least:.2}");
    }
}

#[test]
fn only_reads_of_the_bad_block_fail() {
    let mut world = world(Config::default());
    world.flaws.push(1000);
    let read = |block: u64| RequestKind::Read { offset: block * 4096, bytes: 16 * 4096, fua: false };
    let mut failed = Vec::new();
    for turn in 0..100 {
        let ticket = world.submit(0, read(turn * 16), 1);
        while world.answered.is_empty() {
            assert!(world.step(Instant::MAX), "{ticket} is answered");
        }
        let (_, result) = world.answered.pop().expect("it was just answered");
        failed.extend(result.is_err().then_some(turn));
    }
    assert_eq!(failed, [1000 / 16]);
    assert!(world.streams.view().counters.hits > 50, "it is a stream before and behind it");
}

#[test]
fn lost_gathered_writes_are_reported_to_one_flush() {
    let mut world = world(Config::default());
    for turn in 0..20 {
        world.submit(0, RequestKind::Write { offset: turn * 65536, bytes: 65536, fua: false }, 1);
    }
    while world.outstanding() > 0 && world.step(Instant::from_secs(1)) {}
    world.dead = true;
    world.submit(0, RequestKind::Write { offset: 20 * 65536, bytes: 65536, fua: false }, 1);
    world.answered.clear();
    world.submit(0, RequestKind::Flush, 0);
    while world.outstanding() > 0 && world.step(Instant::MAX) {}
    assert!(world.answered.iter().any(|(_, result)| result.is_err()), "{:?}", world.streams.view());
    world.dead = false;
    world.answered.clear();
    world.submit(0, RequestKind::Flush, 0);
    while world.outstanding() > 0 && world.step(Instant::MAX) {}
    assert!(matches!(world.answered[..], [(_, Ok(_))]));
}

/// Lets one client read 64 KiB at a time, from request `first` on, until a time. Returns the number of the next request.
fn read_on(world: &mut World, first: u64, until: Instant) -> u64 {
    let mut request = first;
    while world.now < until {
        world.submit(7, RequestKind::Read { offset: request << 16, bytes: 1 << 16, fua: false }, 1);
        request += 1;
        while world.answered.pop().is_none() {
            assert!(world.step(Instant::MAX), "the read is answered");
        }
    }
    request
}

#[test]
fn guarantee_ends_the_bypass() {
    let mut world = world(Config::default());
    let next = read_on(&mut world, 0, Instant::from_secs(20));
    assert!(world.streams.view().bypass, "a lone reader needs no turns");
    world.streams.set_guarantee(7, Guarantee { rate: 1_000_000, response: Nanos::from_secs(2) });
    let next = read_on(&mut world, next, Instant::from_secs(40));
    assert!(!world.streams.view().bypass, "a guarantee is kept in turns");
    world.streams.forget(world.now, 7);
    read_on(&mut world, next, Instant::from_secs(400));
    assert!(world.streams.view().bypass, "without it, turns are not needed again");
}

#[test]
fn guaranteed_stream_keeps_its_rate_alongside_99_others() {
    let mut world = world(Config::default());
    let response = Nanos::from_secs(2);
    world.streams.set_guarantee(7, Guarantee { rate: 15_000_000, response });
    let mut read = reader(100, DISK, 64 << 10);
    let mut worst = Nanos::ZERO;
    let mut since = Instant::ZERO;
    let mut kind_of = |client: usize, turn: u64| read(client, turn);
    let mut owners = std::collections::BTreeMap::new();
    let mut turns = [0u64; 100];
    for client in 0..100 {
        owners.insert(world.submit(client as u64, kind_of(client, 0), 1), client);
    }
    while world.step(Instant::from_secs(60)) {
        // A request that the memory can serve is answered at once.
        while let Some((ticket, _)) = world.answered.pop() {
            let client = owners.remove(&ticket).expect("it was submitted");
            turns[client] += 1;
            if client == 7 {
                worst = worst.max(world.now.since(since));
                since = world.now;
            }
            owners.insert(world.submit(client as u64, kind_of(client, turns[client]), 1), client);
        }
    }
    assert!(worst <= response, "{worst:?}");
    assert!(turns[7] * 65536 >= 60 * 15_000_000, "{} bytes in a minute", turns[7] * 65536);
    assert!(turns[8] > 0, "others get something, too");
}

#[test]
fn guarantee_over_thirty_streams_leaves_the_others_a_share() {
    // The guaranteed client has one of a hundred streams, or thirty.
    let rate = |own: usize| {
        let mut world = world(Config::default());
        let guarantee = Guarantee { rate: 1_000_000, response: Nanos::from_secs(2) };
        world.streams.set_guarantee(1000, guarantee);
        let mut read = reader(100, DISK, 64 << 10);
        let (mut owners, mut turns) = (std::collections::BTreeMap::new(), [0u64; 100]);
        let client = |stream: usize| if stream < own { 1000 } else { stream as u64 };
        for stream in 0..100 {
            owners.insert(world.submit(client(stream), read(stream, 0), 1), stream);
        }
        while world.step(Instant::from_secs(60)) {
            for (ticket, _) in std::mem::take(&mut world.answered) {
                let stream = owners.remove(&ticket).expect("it was submitted");
                turns[stream] += 1;
                owners.insert(world.submit(client(stream), read(stream, turns[stream]), 1), stream);
            }
        }
        let of = |streams: std::ops::Range<usize>| turns[streams].iter().sum::<u64>() * 65536 / 60;
        (of(0..own), of(own..100))
    };
    let ((one, others), (thirty, rest)) = (rate(1), rate(30));
    assert!(one >= 1_000_000 && thirty >= 1_000_000, "{one} {thirty}");
    assert!(others > 0 && rest > others / 2, "{others} and {rest} bytes/s are left for the others");
}

#[test]
fn stream_with_gaps_is_read_ahead() {
    for forward in [true, false] {
        let mut world = world(Config::default());
        let place = |turn: u64| if forward { turn << 22 } else { (8000 - turn) << 22 };
        for turn in 0..200 {
            world.submit(3, RequestKind::Read { offset: place(turn), bytes: 64 << 10, fua: false }, 1);
            while world.answered.pop().is_none() {
                assert!(world.step(Instant::MAX), "it is answered");
            }
            // The client pauses.
            while world.step(world.now + Nanos(20_000_000)) {}
        }
        let view = world.streams.view();
        assert!(view.counters.found == 1 && view.counters.hits > 180, "{view:?}");
        assert!(view.counters.unfetched_bytes == 0, "{view:?}");
    }
}

/// Tracks of 300 KiB.
#[derive(Debug)]
struct Tracks;

impl Boundaries for Tracks {
    fn next_boundary(&self, after: u64) -> u64 {
        (after / (300 << 10) + 1) * (300 << 10)
    }
}

#[test]
fn most_requests_end_at_known_boundaries() {
    // Each of the ten streams needs a frame, because the rest of a frame at a boundary stays in memory until the next turn.
    let mut world =
        world(Config { read_ahead_bytes: Some(1 << 20), memory_bytes: 16 << 20, ..Config::default() });
    world.streams.set_boundaries(Box::new(Tracks));
    let (rate, ..) = run(&mut world, &mut reader(10, DISK, 64 << 10), 10, 20);
    assert!(rate > 0.75 * 50e6, "{rate:.0} B/s {:?}", world.streams.view());
    let crossing = world.ends.iter().filter(|end| *end % (300 << 10) != 0).count();
    // The last read of a turn may instead end with a client's request.
    assert!(crossing * 5 < world.ends.len(), "{crossing} of {}", world.ends.len());
}

#[test]
fn uneven_request_sizes_keep_throughput_and_fairness() {
    for kib in [48, 100, 200, 400] {
        let mut world = world(Config::default());
        let (rate, least, _) = run(&mut world, &mut reader(100, DISK, kib << 10), 100, 200);
        assert!(
            rate > 0.88 * 50e6 && least > 0.85,
            "{kib} KiB: {rate:.0} B/s {least:.2} {:?}",
            world.streams.view()
        );
    }
}

/// For each client, the number of requests of 64 KiB that are answered in a minute, if it pauses after each.
fn paused(memory_bytes: u64, clients: u64, pause: impl Fn(u64) -> Nanos) -> Vec<u64> {
    let mut world = world(Config { memory_bytes, ..Config::default() });
    let mut read = reader(clients as usize, DISK, 64 << 10);
    let (mut turns, mut owners) = (vec![0; clients as usize], std::collections::BTreeMap::new());
    let mut due: std::collections::BTreeSet<_> =
        (0..clients).map(|client| (Instant(client * 1000), client)).collect();
    let end = Instant::from_secs(60);
    loop {
        let next = due.first().map_or(end, |(at, _)| *at).min(end);
        while world.answered.is_empty() && world.step(next) {}
        for (ticket, _) in std::mem::take(&mut world.answered) {
            let client: u64 = owners.remove(&ticket).expect("it was submitted");
            turns[client as usize] += 1;
            due.insert((world.now + pause(client), client));
        }
        if world.now >= end {
            return turns;
        }
        while let Some((at, client)) = due.first().copied().filter(|(at, _)| *at <= world.now) {
            due.remove(&(at, client));
            let turn = turns[client as usize];
            owners.insert(world.submit(client, read(client as usize, turn), 1), client);
        }
    }
}

/// The share of their demand that slow clients get. A client demands 64 KiB per pause.
fn slow(memory_bytes: u64, clients: u64, pause: Nanos) -> f64 {
    let submitted = 60e9 / pause.0 as f64 * clients as f64;
    paused(memory_bytes, clients, |_| pause).iter().sum::<u64>() as f64 / submitted
}

#[test]
fn streams_keep_their_memory_when_all_have_a_turn() {
    // As in the study: D streams with one frame each.
    let config = Config {
        dispatch_set: Some(20),
        requests_per_turn: Some(1),
        read_ahead_bytes: Some(1 << 20),
        memory_bytes: 20 << 20,
        ..Config::default()
    };
    let mut world = world(config);
    let (rate, least, _) = run(&mut world, &mut reader(20, DISK, 64 << 10), 20, 20);
    // 1 MiB takes 21 ms, and the positioning before it 10 ms.
    assert!(rate > 0.9 * (1 << 20) as f64 / 0.031 && least > 0.9, "{rate:.0} B/s, the slowest {least:.2}");
}

#[test]
fn slow_clients_leave_quick_ones_their_share() {
    // At least 12 MiB are staged for the fifty slow clients.
    for memory in [8, 32] {
        let pause = |client| Nanos(if client % 2 == 0 { 100_000 } else { 300_000_000 });
        let got = paused(memory << 20, 100, pause);
        let of = |first: usize| got.iter().copied().skip(first).step_by(2);
        let (quick, slow) = (of(0).sum::<u64>(), of(1).sum::<u64>());
        let least = of(0).min().expect("there are some") as f64 / (quick as f64 / 50.0);
        let rate = |requests: u64| requests * 65536 / 60;
        assert!(least > 0.7, "{memory} MiB: the slowest of the quick has {least:.2} of their mean");
        assert!(rate(quick) > 28_000_000 && rate(slow) > 2_500_000, "{} {}", rate(quick), rate(slow));
    }
}

#[test]
fn slow_clients_get_most_of_what_they_request() {
    // The clients demand 26 MB/s of the disk's 50. With one frame for each client, the frames take 40 MiB, or 10 MiB.
    let shares = [(32 << 20, 40, 100), (8 << 20, 40, 100), (8 << 20, 20, 50), (8 << 20, 20, 100)]
        .map(|(memory, clients, pause)| slow(memory, clients, Nanos(pause * 1_000_000)));
    let least = [0.7, 0.65, 0.85, 0.95];
    assert!(shares.iter().zip(least).all(|(share, least)| *share > least), "{shares:?}");
}
