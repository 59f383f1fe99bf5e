//! Laws of controllers: what holds for any of them, from the rig's keys alone.

use headstack_model::{Instant, Lbn, Nanos, Op, Request, drives};
use headstack_personalities::LoadFile;
use headstack_sim::controller::Controller;
use headstack_sim::{Completion, Engine, Finished, Observer, Outcome, Rig};
use headstack_workload::{Issue, Load, Poll};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, BTreeSet};

/// A rig of two drives that answer a command at a time, with some lines of its file.
fn rig(lines: &str) -> Rig {
    let text = format!(
        "[drive]\npreset = \"hp-c3323a\"\ncount = 2\nvolume = \"d\"\nqueue.depth = 1\n\
         [bus]\nsharing = \"interleaved\"\n{lines}"
    );
    Rig::parse(&text, "t.toml", &mut |name| drives::load(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn built(lines: &str) -> Engine {
    rig(lines).build(1).unwrap_or_else(|error| panic!("{error}"))
}

/// Requests at their times, whatever becomes of those before.
struct Script {
    all: Vec<(Instant, u32, Request)>,
    next: usize,
}

impl Load for Script {
    fn poll(&mut self, now: Instant) -> Poll {
        match self.all.get(self.next) {
            None => Poll::Done,
            Some((at, ..)) if *at > now => Poll::Later(*at),
            Some((_, volume, request)) => {
                self.next += 1;
                Poll::Issue(Issue::new(*volume, *request, self.next as u64 - 1))
            }
        }
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {}
}

/// What a run showed: the load's requests by number, and the drives' commands.
#[derive(Default)]
struct Seen {
    finished: BTreeMap<u64, Completion>,
    served: Vec<(u32, Request)>,
}

impl Observer for Seen {
    fn finished(&mut self, finished: &Finished) {
        assert_eq!(finished.completion.outcome, Outcome::Done);
        let twice = self.finished.insert(finished.id, finished.completion);
        assert!(twice.is_none(), "request {} comes back once", finished.id);
    }

    fn served(&mut self, device: u32, command: &Completion) {
        self.served.push((device, command.request));
    }
}

fn run(engine: &mut Engine, all: Vec<(Instant, u32, Request)>) -> Seen {
    let (count, mut seen) = (all.len(), Seen::default());
    engine.run_observed(&mut Script { all, next: 0 }, &mut seen);
    assert_eq!(seen.finished.len(), count, "every request comes back");
    seen
}

/// Requests of all kinds at random, to few blocks of both drives, with a flush now and then.
fn any(seed: u64, count: usize, gap_ms: f64) -> Vec<(Instant, u32, Request)> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut at = Instant::ZERO;
    let mut one = |_| {
        at += Nanos::from_ms(random.random_range(0.0..2.0 * gap_ms));
        let lbn = Lbn(random.random_range(0..20_000));
        let sectors = random.random_range(1..200);
        let request = match random.random_range(0..20) {
            0 => Request::flush(),
            1..10 => Request::write(lbn, sectors),
            _ => Request::read(lbn, sectors),
        };
        (at, random.random_range(0..2), request)
    };
    (0..count).map(&mut one).collect()
}

const MEMORY: &str =
    "[controller]\nkind = \"smart\"\ncache = { sectors = 2048, line_sectors = 32, writes = \"write-back\"";

#[test]
fn pass_through_controller_changes_no_completion() {
    // A queue with an order lets flushes pass by, as a host's does.
    let mut load = any(1, 400, 12.0);
    load.retain(|(.., request)| request.op != Op::Flush);
    let without = run(&mut built(""), load.clone()).finished;
    for lines in [
        "[controller]\nkind = \"smart\"",
        "[controller]\nkind = \"smart\"\norder = \"fcfs\"\ndrive_depth = 1",
        "[controller]\nkind = \"smart\"\nqueue_depth = 1000",
    ] {
        let with = run(&mut built(lines), load.clone()).finished;
        for (id, completion) in &with {
            let plain = &without[id];
            assert_eq!(
                (completion.submitted, completion.completed, completion.parts),
                (plain.submitted, plain.completed, plain.parts),
                "request {id} with {lines}"
            );
        }
    }
}

#[test]
fn controller_delay_applies_once_in_each_direction() {
    let read = |at: f64| (Instant::from_ms(at), 0, Request::read(Lbn(5000), 8));
    // The second read finds its blocks in the drive's cache.
    let load = vec![read(0.0), read(200.0)];
    let responses = |lines: &str| {
        let finished = run(&mut built(lines), load.clone()).finished;
        [0, 1].map(|id| finished[&id].response())
    };
    let slow = "[controller]\nqueue_depth = 4\nkind = \"smart\"\ndelay_us = 500";
    let (plain, delayed) = (responses(""), responses(slow));
    // The drive gets the command 0.5 ms later and waits that much less for the sector, or a revolution longer: what is left of the two delays
    // is the one on the way up.
    let revolution = Nanos::from_ms(60_000.0 / 5400.0);
    let late = (delayed[0] + revolution - plain[0]).0 % revolution.0;
    assert!(late.abs_diff(500_000) < 1_000, "{plain:?} {delayed:?}");
    assert_eq!(delayed[1] - plain[1], Nanos::from_ms(1.0), "a read from the cache has both delays");
    assert_eq!(
        responses("[controller]\ndelay_us = 500"),
        delayed,
        "a controller that passes on has the same delays"
    );
}

#[test]
fn every_controller_completes_all_requests() {
    let caches = [
        "sectors = 512, line_sectors = 8",
        "sectors = 1024, line_sectors = 64, writes = \"write-back\"",
        "sectors = 1024, line_sectors = 16, writes = \"write-back\", flush_cluster_lines = 8, protected_ratio = 0.5",
        "sectors = 4096, line_sectors = 7, writes = \"write-back\", read_ahead_sectors = 256, flush_period_ms = 50",
        "sectors = 4096, line_sectors = 1, writes = \"write-back\", flush_idle_ms = 1",
        "sectors = 4096, line_sectors = 100, read_ahead_sectors = 2048",
        "sectors = 4096, line_sectors = 7, writes = \"write-back\", read_ahead_sectors = 900, read_ahead_evicts = true",
        "sectors = 10000, drive = \"d1\", writes = \"write-back\", flush_idle_ms = 20",
        "sectors = 30000, drive = \"d1\"",
    ];
    let queues = [
        "",
        "queue_depth = 3",
        "order = \"c-look\"\nmerge = \"adjacent\"",
        "order = \"c-look\"\nlate_choice = true",
        "delay_us = 300\nus_per_sector = 20",
    ];
    for (number, cache) in caches.into_iter().enumerate() {
        for queue in queues {
            for gap in [0.5, 15.0, 60.0] {
                let lines = format!("[controller]\nkind = \"smart\"\n{queue}\ncache = {{ {cache} }}");
                run(&mut built(&lines), any(number as u64, 300, gap));
            }
        }
    }
}

#[test]
fn cache_hit_sends_no_command_to_the_drive() {
    let mut engine = built(&format!("{MEMORY} }}"));
    let ask = |at: f64, request| (Instant::from_ms(at), 0, request);
    let seen = run(
        &mut engine,
        vec![
            ask(0.0, Request::read(Lbn(1000), 64)),
            ask(100.0, Request::read(Lbn(1010), 20)),
            ask(200.0, Request::write(Lbn(7000), 16)),
            ask(300.0, Request::read(Lbn(7004), 8)),
        ],
    );
    assert_eq!(seen.served, [(0, Request::read(Lbn(1000), 64))]);
    for id in [1, 2, 3] {
        assert_eq!(
            seen.finished[&id].response(),
            Nanos::ZERO,
            "nothing between host and memory takes time here"
        );
    }
    let activity = engine.layer_above::<Controller>(0).expect("there is one").activity();
    assert_eq!((activity.reads, activity.read_hits, activity.writes), (3, 2, 1));
}

#[test]
fn write_back_runs_at_bus_speed_until_memory_is_full() {
    let bus_us = 10.0;
    let lines = format!("{MEMORY} }}\nus_per_sector = {bus_us:?}");
    // 64 lines of 32 sectors: as many writes of a line fit, then each has to wait for one to be destaged.
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let writes = |count: u64, gap: f64, random: &mut Pcg64Mcg| -> Vec<(Instant, u32, Request)> {
        let line = |_| random.random_range(0..60_000u64);
        let all: BTreeSet<u64> = (0..2 * count).map(line).collect();
        let at = |n: usize| Instant::from_ms(n as f64 * gap);
        let all = all.into_iter().take(count as usize).enumerate();
        all.map(|(n, line)| (at(n), 0, Request::write(Lbn(line * 32), 32))).collect()
    };
    let seen = run(&mut built(&lines), writes(64, 1.0, &mut random));
    let bus = Nanos::from_us(32.0 * bus_us);
    assert!(seen.finished.values().all(|write| write.response() == bus), "they fit");
    // All at once, ten times as many as fit: the last one ends when the drive has written all but what fits.
    let seen = run(&mut built(&lines), writes(640, 0.0, &mut random));
    let last = seen.finished.values().map(|write| write.completed).max().expect("there are many");
    let written = seen.served.iter().filter(|(_, request)| request.op == Op::Write).count();
    assert!((576..=640).contains(&written), "{written}");
    let each = last.as_ms() / 576.0;
    assert!((5.0..40.0).contains(&each), "a destage takes a seek, a latency and a transfer: {each} ms");
}

#[test]
fn flush_writes_every_dirty_sector_to_the_drive() {
    let caches = [
        format!("{MEMORY}, flush_cluster_lines = 4 }}"),
        format!("{MEMORY}, flush_period_ms = 40 }}"),
        "[controller]\nkind = \"smart\"\ncache = { sectors = 30000, drive = \"d1\", writes = \"write-back\" }".to_string(),
    ];
    for lines in caches {
        let mut engine = built(&lines);
        let mut load = any(5, 300, 10.0);
        load.iter_mut().for_each(|(_, volume, _)| *volume = 0);
        let wanted: BTreeSet<u64> = load
            .iter()
            .filter(|(.., request)| request.op == Op::Write)
            .flat_map(|(.., request)| request.lbn.0..request.end().0)
            .collect();
        load.push((Instant::from_ms(1e6), 0, Request::flush()));
        let seen = run(&mut engine, load);
        assert_eq!(engine.layer_above::<Controller>(0).map_or(0, Controller::dirty), 0, "{lines}");
        let own = seen.served.iter().filter(|(device, request)| *device == 0 && request.op == Op::Write);
        let written: BTreeSet<u64> = own.flat_map(|(_, request)| request.lbn.0..request.end().0).collect();
        assert_eq!(written, wanted, "{lines}");
        // The drive writes through, and needs no FLUSH.
        assert!(!seen.served.contains(&(0, Request::flush())), "{lines}");
    }
}

#[test]
fn idle_controller_destages_dirty_lines() {
    for cache in ["line_sectors = 32, sectors = 2048", "drive = \"d1\", sectors = 30000"] {
        let lines = format!(
            "[controller]\nkind = \"smart\"\ncache = {{ {cache}, writes = \"write-back\", flush_idle_ms = 50 }}"
        );
        let mut engine = built(&lines);
        let write = |n: u64| (Instant::from_ms(n as f64 * 20.0), 0, Request::write(Lbn(n * 900), 16));
        let mut load: Vec<_> = (0..20).map(write).collect();
        // Something to wait for, long after.
        load.push((Instant::from_ms(20_000.0), 0, Request::read(Lbn(0), 1)));
        let seen = run(&mut engine, load);
        assert_eq!(engine.layer_above::<Controller>(0).map_or(0, Controller::dirty), 0, "{lines}");
        let own = seen.served.iter().filter(|(device, request)| *device == 0 && request.op == Op::Write);
        assert_eq!(own.map(|(_, request)| u64::from(request.sectors)).sum::<u64>(), 320, "{lines}");
    }
}

#[test]
fn cache_drive_serves_the_blocks_it_holds() {
    let lines = "[controller]\nkind = \"smart\"\ncache = { sectors = 30000, drive = \"d1\", writes = \"write-back\" }";
    let ask = |at: f64, request| (Instant::from_ms(at), 0, request);
    let seen = run(
        &mut built(lines),
        vec![
            ask(0.0, Request::read(Lbn(1000), 64)),
            ask(200.0, Request::read(Lbn(1010), 20)),
            ask(400.0, Request::write(Lbn(7000), 16)),
            ask(600.0, Request::read(Lbn(7004), 8)),
            ask(800.0, Request::read(Lbn(29_990), 20)),
        ],
    );
    let wanted = [
        (0, Request::read(Lbn(1000), 64)),
        (1, Request::write(Lbn(1000), 64)),
        (1, Request::read(Lbn(1010), 20)),
        (1, Request::write(Lbn(7000), 16)),
        (1, Request::read(Lbn(7004), 8)),
        (0, Request::read(Lbn(29_990), 20)),
    ];
    assert_eq!(seen.served, wanted);
}

/// Bytes a second of `streams` readers behind a controller that reads `read_ahead_sectors` ahead into a cache of 128 MiB. Each
/// reads 64 KiB at a time, in sequence, after a think time.
fn streamed(streams: u32, read_ahead_sectors: u32) -> f64 {
    let text = format!(
        "[drive]\npreset = \"wd800jd\"\ncache.enabled = false\ncache.read_ahead = \"none\"\n\
         [controller]\nkind = \"smart\"\n\
         cache = {{ sectors = 262144, line_sectors = 128, read_ahead_sectors = {read_ahead_sectors} }}"
    );
    let rig =
        Rig::parse(&text, "t.toml", &mut |name| drives::load(name)).unwrap_or_else(|error| panic!("{error}"));
    let load = format!(
        "max_time_s = 20\n[[blocks]]\norder = \"sequential\"\nprocesses = {streams}\nthink_time = \"exponential(5ms)\"\n\
         request_bytes = 65536"
    );
    let load = LoadFile::parse(&load, "load").unwrap_or_else(|error| panic!("{error}"));
    let mut load = load.build(&rig.volumes(), 1).unwrap_or_else(|error| panic!("{error}"));
    let mut engine = rig.build(1).unwrap_or_else(|error| panic!("{error}"));
    let mut bytes = 0.0;
    engine
        .run(load.as_mut(), &mut |finished| bytes += 512.0 * f64::from(finished.completion.request.sectors));
    bytes / engine.now().as_ms() * 1000.0
}

#[test]
fn read_ahead_speeds_up_streams_until_it_exceeds_memory() {
    // Ten streams and 2 MiB each, or sixty and 1 MiB, fit in 128 MiB.
    let (ten, ten_ahead) = (streamed(10, 0), streamed(10, 4096));
    assert!(ten_ahead > 4.0 * ten, "{ten} {ten_ahead}");
    let (sixty, fits, exceeds) = (streamed(60, 0), streamed(60, 2048), streamed(60, 8192));
    assert!(fits > 3.0 * sixty, "{sixty} {fits}");
    // Sixty and 4 MiB each do not: what was read ahead gives way before it is used.
    assert!(exceeds < fits / 2.0, "{fits} {exceeds}");
}

#[test]
fn unaligned_streams_complete_in_a_full_cache() {
    // Read-ahead that begins within a line, in a memory that is never large enough.
    for read_ahead in [8, 100, 1000, 2000] {
        let cache = format!("sectors = 4000, line_sectors = 50, read_ahead_sectors = {read_ahead}");
        let lines = format!("[controller]\nkind = \"smart\"\ndrive_depth = 1\ncache = {{ {cache} }}");
        let mut load = Vec::new();
        for n in 0..600u64 {
            let (stream, step) = (n % 12, n / 12);
            let lbn = Lbn(stream * 100_003 + step * 33);
            load.push((Instant::from_ms(n as f64 * 1.5), (stream % 2) as u32, Request::read(lbn, 33)));
        }
        run(&mut built(&lines), load);
    }
}

#[test]
fn read_ahead_that_evicts_is_fetched_with_the_read_and_lost_beyond_the_memory() {
    // Two streams and room for one and a half of them.
    let cache = "sectors = 1500, line_sectors = 50, read_ahead_sectors = 600, read_ahead_evicts = true";
    let lines = format!("[controller]\nkind = \"smart\"\ndrive_depth = 1\ncache = {{ {cache} }}");
    let at = |ms: f64, lbn: u64| (Instant::from_ms(ms), 0, Request::read(Lbn(lbn), 50));
    let alone = run(&mut built(&lines), vec![at(0.0, 0), at(500.0, 50), at(600.0, 600)]);
    let served = |seen: &Seen| seen.served.iter().map(|(_, request)| request.sectors).collect::<Vec<_>>();
    assert_eq!(served(&alone), [650], "the second and the third were fetched with the first");
    let script = vec![at(0.0, 0), at(500.0, 50_000), at(1000.0, 100_000), at(1500.0, 50)];
    let three = run(&mut built(&lines), script);
    assert_eq!(served(&three), [650; 4], "the third read has evicted what was fetched with the first");
}

#[test]
fn memory_is_waited_for_where_read_ahead_evicts() {
    let cache = "sectors = 1500, line_sectors = 50, read_ahead_sectors = 600, read_ahead_evicts = true";
    let lines = format!("[controller]\nkind = \"smart\"\ndrive_depth = 1\ncache = {{ {cache} }}");
    let at = |lbn: u64| (Instant::ZERO, 0, Request::read(Lbn(lbn), 50));
    let mut engine = built(&lines);
    let seen = run(&mut engine, (0..4).map(|stream| at(stream * 50_000)).collect());
    assert_eq!(seen.served.len(), 4);
    let activity = engine.layer_above::<Controller>(0).expect("it has one").activity();
    assert_eq!((activity.filled_sectors, activity.read_ahead_sectors), (4 * 650, 4 * 600));
}

/// A reader that issues its next request as soon as one completes, and one that asks for blocks further up at the same time.
fn first_served_after(late: bool) -> Vec<u64> {
    let lines =
        format!("[controller]\nkind = \"smart\"\norder = \"c-look\"\ndrive_depth = 1\nlate_choice = {late}");
    let load = "max_time_s = 0.5\n[[blocks]]\norder = \"sequential\"\nprocesses = 4\nrequest_bytes = 4096";
    let rig = rig(&lines);
    let load = LoadFile::parse(load, "load").unwrap_or_else(|error| panic!("{error}"));
    let mut load = load.build(&rig.volumes(), 1).unwrap_or_else(|error| panic!("{error}"));
    let mut engine = rig.build(1).unwrap_or_else(|error| panic!("{error}"));
    let mut starts = Vec::new();
    engine.run(load.as_mut(), &mut |finished| starts.push(finished.completion.request.lbn.0));
    starts
}

#[test]
fn late_choice_lets_the_stream_just_served_continue() {
    let follow_ups = |starts: &[u64]| starts.windows(2).filter(|pair| pair[1] == pair[0] + 8).count();
    let (early, late) = (first_served_after(false), first_served_after(true));
    assert_eq!(follow_ups(&early), 0, "{:?}", &early[..12]);
    assert!(follow_ups(&late) > late.len() * 9 / 10, "{:?}", &late[..12]);
}
