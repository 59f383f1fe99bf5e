//! Sequential loads with several commands outstanding, commands that are chosen ahead, and room in the cache.

use crate::support::*;
use headstack_model::spec::WriteCache;
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use headstack_sim::{Command, Device};
use headstack_workload::{Pattern, Region, Shape};

/// The shipped drives that prefer sequential runs, without time lost to retries.
fn streaming() -> Vec<Rig> {
    let prefers =
        shipped().into_iter().filter(|rig| rig.spec.queue.stream_hold_ms.is_some_and(|hold| hold > 0.0));
    prefers.map(|rig| rig.with(|spec| spec.mechanics.lost_turns = None)).collect()
}

/// Blocks a second of a sequential load over the first blocks of a drive.
fn stream(rig: &Rig, sectors: u32, depth: u32, read_share: f64) -> f64 {
    stream_from(rig, Lbn(0), sectors, depth, read_share)
}

fn stream_from(rig: &Rig, first: Lbn, sectors: u32, depth: u32, read_share: f64) -> f64 {
    // Far more than a cache holds.
    let blocks = if sectors < 128 { 262_144 } else { 1_048_576 };
    let count = (blocks / u64::from(sectors)).max(400);
    let region = Region { first, sectors: rig.sectors() / 4 };
    let shape = Shape { region, pattern: Pattern::Sequential, sectors, alignment: 1, read_share };
    closed_rate(rig.device(), shape, depth, count) * f64::from(sectors)
}

#[test]
fn more_commands_never_slow_a_sequential_load() {
    for rig in streaming().iter().filter(|rig| rig.spec.queue.depth > 1) {
        let media = stream(rig, 2048, 1, 1.0);
        for sectors in [8, 32, 128, 256, 2048] {
            for read_share in [1.0, 0.0] {
                // A cache takes its share of a short run at the interface's rate.
                let alone = stream(rig, sectors, 1, read_share).min(media);
                for depth in [2, 3, 4, 8, 32] {
                    let rate = stream(rig, sectors, depth, read_share);
                    let what =
                        format!("{}: {sectors} sectors at depth {depth}, reads {read_share}", rig.name());
                    assert!(rate > 0.95 * alone, "{what}: {rate:.0} and {alone:.0} at depth 1");
                }
            }
        }
    }
}

#[test]
fn larger_commands_never_slow_a_sequential_load() {
    for rig in streaming() {
        for depth in [1, rig.spec.queue.depth.min(8)] {
            let rates: Vec<f64> =
                [8, 32, 128, 256, 2048].map(|sectors| stream(&rig, sectors, depth, 1.0)).into();
            for pair in rates.windows(2) {
                assert!(pair[1] > 0.95 * pair[0], "{} at depth {depth}: {rates:?}", rig.name());
            }
        }
    }
}

#[test]
fn cached_sequential_writes_cost_the_same_from_any_block() {
    let cached = |rig: &Rig| rig.spec.cache.write_cache == WriteCache::Full && rig.spec.shingled.is_none();
    for rig in streaming().iter().filter(|rig| cached(rig)) {
        for sectors in [8, 128, 2048] {
            let [aligned, misaligned] = [64, 63].map(|first| stream_from(rig, Lbn(first), sectors, 1, 0.0));
            let what = format!("{}: {sectors} sectors", rig.name());
            assert!(misaligned > 0.95 * aligned, "{what}: {misaligned:.0} and {aligned:.0} aligned");
        }
    }
}

/// A client that has `depth` requests outstanding.
struct Client<'a> {
    depth: u32,
    next: Box<dyn FnMut() -> Request + 'a>,
}

impl<'a> Client<'a> {
    /// Reads of `sectors` in order, from the block at `share` of the disk on.
    fn stream(rig: &Rig, op: Op, share: f64, sectors: u32, depth: u32) -> Client<'a> {
        let mut lbn = (rig.sectors() as f64 * share) as u64 / 8 * 8;
        let next = move || {
            lbn += u64::from(sectors);
            Request { op, lbn: Lbn(lbn - u64::from(sectors)), sectors, fua: false }
        };
        Client { depth, next: Box::new(next) }
    }

    /// Requests of 8 blocks at random places.
    fn random(rig: &'a Rig, op: Op, depth: u32) -> Client<'a> {
        let mut random = seeded(7);
        let next = move || Request { op, lbn: any_lbn(&mut random, rig, 8), sectors: 8, fua: false };
        Client { depth, next: Box::new(next) }
    }
}

/// Serves the clients for a time. Returns the responses of each.
fn serve_clients(device: &mut Device, clients: &mut [Client<'_>], time: Nanos) -> Vec<Vec<Nanos>> {
    let mut responses = vec![Vec::new(); clients.len()];
    let mut owners = vec![0; 2 * device.depth()];
    let end = Instant::ZERO + time;
    let mut starting: Vec<usize> =
        (0..clients.len()).flat_map(|client| vec![client; clients[client].depth as usize]).collect();
    let mut now = Instant::ZERO;
    while now < end {
        for client in starting.drain(..) {
            let tag =
                device.submit(now, Command::from((clients[client].next)())).expect("the queue has room");
            owners[tag.0 as usize] = client;
        }
        now = device.poll_timeout().expect("commands are outstanding");
        device.handle_timeout(now);
        while let Some(done) = device.poll_completion() {
            let owner = owners[done.tag.0 as usize];
            responses[owner].push(done.response());
            starting.push(owner);
        }
    }
    responses
}

#[test]
fn four_streams_together_keep_a_quarter_of_the_rate_of_one() {
    for rig in streaming().iter().filter(|rig| rig.spec.queue.depth > 1) {
        let alone = stream(rig, 128, 1, 1.0);
        let mut clients: Vec<Client<'_>> =
            [0.0, 0.1, 0.3, 0.6].iter().map(|share| Client::stream(rig, Op::Read, *share, 128, 1)).collect();
        let responses = serve_clients(&mut rig.device(), &mut clients, Nanos::from_secs(10));
        let counts: Vec<usize> = responses.iter().map(Vec::len).collect();
        let together = counts.iter().sum::<usize>() as f64 * 128.0 / 10.0;
        assert!(together > alone / 4.0, "{}: {together} of {alone}", rig.name());
        let (least, most) = (counts.iter().min().expect("four"), counts.iter().max().expect("four"));
        assert!(*least * 3 > *most, "{}: {counts:?}", rig.name());
    }
}

#[test]
fn random_reader_beside_a_copy_waits_no_second() {
    for rig in streaming().iter().filter(|rig| rig.spec.queue.depth > 1) {
        let mut clients = [
            Client::stream(rig, Op::Read, 0.0, 256, 8),
            Client::stream(rig, Op::Write, 0.3, 256, 8),
            Client::random(rig, Op::Read, 1),
        ];
        let responses = serve_clients(&mut rig.device(), &mut clients, Nanos::from_secs(20));
        let longest = responses[2].iter().max().copied().unwrap_or(Nanos::from_secs(20));
        assert!(responses[2].len() > 40, "{}: {} reads in 20 s", rig.name(), responses[2].len());
        assert!(longest < Nanos::from_secs(1), "{}: {longest:?}", rig.name());
    }
}

#[test]
fn room_in_the_cache_is_assigned_in_order_of_arrival() {
    for rig in streaming().iter().filter(|rig| rig.spec.queue.depth > 1) {
        let mut clients =
            [Client::random(rig, Op::Write, rig.spec.queue.depth - 1), Client::random(rig, Op::Read, 1)];
        let responses = serve_clients(&mut rig.device(), &mut clients, Nanos::from_secs(60));
        let writes = &responses[0];
        let longest = writes.iter().max().expect("writes end");
        // By Little's law the mean is the outstanding writes over their rate; in order of arrival none waits for many times that.
        let mean = 60e9 * f64::from(rig.spec.queue.depth - 1) / writes.len() as f64;
        assert!((longest.0 as f64) < 4.0 * mean, "{}: {longest:?}, mean {mean} ns", rig.name());
    }
}

#[test]
fn drive_that_commits_all_its_commands_serves_them_in_order_of_arrival() {
    for rig in streaming().iter().filter(|rig| rig.spec.queue.depth > 1) {
        let rig = rig.with(|spec| (spec.queue.committed, spec.queue.others_order) = (64, None));
        let reads: Vec<Request> = rig.spread(16).map(|lbn| Request::read(Lbn(lbn.0 / 8 * 8), 8)).collect();
        let mut shuffled: Vec<Request> = (0..16).map(|index| reads[index * 7 % 16]).collect();
        shuffled.truncate(rig.spec.queue.depth as usize);
        let done = serve_all(&mut rig.device(), Instant::ZERO, &shuffled);
        let served: Vec<Lbn> = done.iter().map(|done| done.request.lbn).collect();
        let arrived: Vec<Lbn> = shuffled.iter().map(|read| read.lbn).collect();
        assert_eq!(served, arrived, "{}", rig.name());
    }
}

#[test]
fn urgent_command_overtakes_all_but_the_committed_ones() {
    let rig = streaming().into_iter().find(|rig| rig.name() == "ultrastar-hc570").expect("it is shipped");
    let before = |committed: u32, urgent: Option<u32>| {
        let rig = rig.with(|spec| {
            spec.queue.urgent_first = true;
            (spec.queue.committed, spec.queue.committed_urgent) = (committed, urgent);
        });
        let mut device = rig.device();
        let mut reads: Vec<Request> =
            rig.spread(13).map(|lbn| Request::read(Lbn(lbn.0 / 8 * 8), 8)).collect();
        let last = reads.pop().expect("there are thirteen");
        for read in reads {
            device.submit(Instant::ZERO, read).expect("there is room");
        }
        device.handle_timeout(Instant::ZERO + Nanos::from_ms(2.0));
        let command = Command { urgent: true, ..Command::from(last) };
        device.submit(Instant::ZERO + Nanos::from_ms(2.0), command).expect("there is room");
        let mut served = 0;
        while next(&mut device).request != last {
            served += 1;
        }
        served
    };
    assert_eq!([before(1, None), before(4, None), before(8, Some(2))], [1, 4, 2]);
}

#[test]
fn write_cache_never_slows_writes_in_a_small_region() {
    for rig in streaming() {
        let sectors = (3 << 30) / u64::from(rig.spec.sector_bytes);
        let region = Region { first: Lbn(0), sectors };
        let shape = Shape { region, pattern: Pattern::Random, sectors: 128, alignment: 8, read_share: 0.0 };
        let depth = rig.spec.queue.depth.min(32);
        let with = closed_rate(rig.device(), shape, depth, 4000);
        let without = rig.with(|spec| spec.cache.write_cache = WriteCache::None);
        let without = closed_rate(without.device(), shape, depth, 4000);
        assert!(with > 0.9 * without, "{}: {with} and {without} without", rig.name());
    }
}
