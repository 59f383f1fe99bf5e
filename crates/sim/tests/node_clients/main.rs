//! Clients of a storage node with several requests outstanding: its scheduler makes none wait longer than they would without it.

mod load;

use headstack_model::{Instant, Nanos};
use headstack_sim::rig::{Rig, shipped};
use headstack_sim::{Engine, Finished, StreamLayer};
use headstack_workload::{Load, Member, Mix, Region, StreamShape, Streams};
use load::{Clients, Pattern};

/// A load: `clients` clients with `depth` requests of `kib` KiB outstanding each, and in addition `streams` sequential streams
/// of 64 KiB.
#[derive(Clone, Copy, Debug)]
struct Case {
    pattern: Pattern,
    clients: u32,
    depth: u32,
    kib: u64,
    streams: u32,
}

/// What came of a load.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// MB/s of the clients, and of all.
    rate: f64,
    total: f64,
    /// 99th percentile of the clients' response times.
    p99_ms: f64,
}

const PATTERNS: [Pattern; 8] = [
    Pattern::Sequential,
    Pattern::Reordered,
    Pattern::Strided,
    Pattern::Random(1),
    Pattern::Random(10),
    Pattern::Random(100),
    Pattern::Random(1000),
    Pattern::SharedFile,
];

/// A share of the rate without the scheduler, or with it, by which a cache is taken to carry its readers.
const CARRIES: f64 = 0.75;

/// A rig's drive before a node, with its scheduler and without.
fn nodes(drive: &str) -> [Rig; 2] {
    let mut with = shipped::load(drive).expect("it is shipped");
    with.set("node.scheduling", "true").expect("it is a key");
    let mut without = with.clone();
    without.set("node.scheduling", "false").expect("it is a key");
    [without, with]
}

fn load(rig: &Rig, case: Case, until: Instant) -> Mix {
    let volume = &rig.volumes()[0];
    let Case { pattern, clients, depth, kib, streams } = case;
    let disk_bytes = volume.sectors * u64::from(volume.sector_bytes);
    let own: Box<dyn Load> = Box::new(Clients::new(pattern, clients, depth, kib << 10, disk_bytes));
    let mut members = vec![Member { load: own, device: 0, sources: clients }];
    if streams > 0 {
        let shape = StreamShape::reads(Region::whole(volume.sectors), streams, 128);
        let others = Streams::new(StreamShape { alignment: 8, ..shape }, u64::MAX).expect("they fit");
        members.push(Member { load: Box::new(others), device: 0, sources: streams });
    }
    Mix::new(members, u64::MAX, until).expect("it has members")
}

fn run(rig: &Rig, case: Case) -> Outcome {
    let outstanding = u64::from(case.clients * case.depth) * (case.kib << 10);
    // What is outstanding is answered several times, by a disk of 5 MB/s, too.
    let rounds = |count: u64| Nanos::from_secs(count * outstanding / 5_000_000);
    let from = Instant::from_secs(20) + rounds(2);
    let until = Instant::from_secs(if case.streams > 0 { 80 } else { 50 }) + rounds(4);
    let mut load = load(rig, case, until);
    let mut engine: Engine = rig.build(1).expect("it is good");
    let (mut times, mut others) = (Vec::new(), 0_u64);
    engine.run(&mut load, &mut |finished: &Finished| match (from..until)
        .contains(&finished.completion.completed)
    {
        true if finished.source < case.clients => times.push(finished.completion.response()),
        true => others += 65_536,
        false => {}
    });
    times.sort_unstable();
    let seconds = until.since(from).as_secs();
    let own = times.len() as u64 * (case.kib << 10);
    let p99 = times.get((times.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default();
    Outcome {
        rate: own as f64 / seconds / 1e6,
        total: (own + others) as f64 / seconds / 1e6,
        p99_ms: p99.as_ms(),
    }
}

/// What is wrong with what the scheduler makes of a load, if anything.
///
/// Where sequential readers get less than three quarters of the disk without the scheduler, the disk's cache does not support them. Turns
/// are meant for such readers, and make them wait for each other.
fn complaint([without, with]: &[Rig; 2], case: Case) -> Option<String> {
    let (plain, node) = (run(without, case), run(with, case));
    let is_random = matches!(case.pattern, Pattern::Random(_));
    let one = Case { clients: 1, streams: 0, ..case };
    let most =
        if is_random || case.clients == 1 { 0.0 } else { run(without, one).rate.max(run(with, one).rate) };
    let readers = if is_random { 0 } else { case.clients } + case.streams;
    let is_carried = readers <= 1 || plain.total >= CARRIES * most.max(node.total);
    let is_slow = node.total < 0.95 * plain.total;
    let is_late = is_carried && node.p99_ms > 1.5 * plain.p99_ms;
    (is_slow || is_late).then(|| {
        let Case { pattern, clients, depth, kib, streams } = case;
        format!(
            "{pattern:?}, {clients} clients x {depth} x {kib} KiB, {streams} streams: {:.1} MB/s and p99 {:.1} ms, without the \
             scheduler {:.1} and {:.1}",
            node.total, node.p99_ms, plain.total, plain.p99_ms
        )
    })
}

fn cases(clients: &[u32], depths: &[u32], kibs: &[u64], streams: u32) -> Vec<Case> {
    let mut all = Vec::new();
    for pattern in PATTERNS {
        for (clients, depth) in
            clients.iter().flat_map(|clients| depths.iter().map(|depth| (*clients, *depth)))
        {
            all.extend(kibs.iter().map(|kib| Case { pattern, clients, depth, kib: *kib, streams }));
        }
    }
    all
}

fn check(drive: &str, cases: Vec<Case>) -> Vec<String> {
    let nodes = nodes(drive);
    cases
        .into_iter()
        .filter_map(|case| complaint(&nodes, case))
        .map(|line| format!("{drive}: {line}"))
        .collect()
}

#[test]
fn clients_wait_no_longer_with_the_scheduler_than_without() {
    let alone = check("wd800jd", cases(&[1, 4], &[1, 32], &[64, 256], 0));
    assert!(alone.is_empty(), "{alone:#?}");
    let with_streams = check("wd800jd", cases(&[4], &[16], &[64], 100));
    assert!(with_streams.is_empty(), "{with_streams:#?}");
}

#[test]
#[ignore = "half an hour: make node-full"]
fn clients_wait_no_longer_with_the_scheduler_on_the_whole_list() {
    let (clients, depths, kibs) = ([1, 2, 4, 8], [1, 2, 4, 8, 16, 32], [16, 64, 256, 1024, 4096]);
    let mut found = check("wd800jd", cases(&clients, &depths, &kibs, 0));
    found.extend(check("wd800jd", cases(&clients, &depths, &kibs, 100)));
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn deep_sequential_client_is_one_stream() {
    let [_, node] = nodes("wd800jd");
    for (pattern, most) in
        [(Pattern::Sequential, 1), (Pattern::Reordered, 1), (Pattern::Strided, 1), (Pattern::Random(200), 4)]
    {
        for depth in [1, 16, 64] {
            let case = Case { pattern, clients: 1, depth, kib: 256, streams: 0 };
            let mut load = load(&node, case, Instant::from_secs(30));
            let mut engine = node.build(1).expect("it is good");
            engine.run(&mut load, &mut |_: &Finished| {});
            let found =
                engine.layer::<StreamLayer>(0).expect("there is a node").streams().view().counters.found;
            assert!(found <= most, "{pattern:?}, depth {depth}: {found} streams");
        }
    }
}
