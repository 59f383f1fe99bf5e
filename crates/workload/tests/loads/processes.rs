//! Processes: the requests that each issues, and the completions for which it waits.

use headstack_workload::VolumeInfo;
use headstack_workload::process::{BurstShape, Processes, SyntheticSpec, ThinkShape};

use super::*;

const MS: u64 = 1_000_000;

fn volumes() -> Vec<VolumeInfo> {
    let volume =
        |name: &str, sectors| VolumeInfo { name: name.to_string(), sectors, sector_bytes: 512, zones: None };
    vec![volume("first", 8_000_000), volume("second", 4_000_000)]
}

fn think(processes: u32, think: &str) -> ThinkShape {
    ThinkShape { shape: shape(), processes, think: think.parse().expect("the text is good") }
}

fn thinking(processes: u32, time: &str, requests: u64) -> impl Load {
    Processes::thinking(&think(processes, time), requests, 1).expect("the shape is good")
}

/// DiskSim's mixed load, on larger disks.
fn mixed() -> SyntheticSpec {
    SyntheticSpec {
        processes: 3,
        volumes: Vec::new(),
        capacity_sectors: Some(4_000_000),
        blocking_sectors: 8,
        sequential_share: 0.2,
        local_share: 0.3,
        read_share: 0.66,
        critical_share: 0.2,
        limited_share: 0.3,
        urgent_waits: false,
        size_sectors: "exponential(8)".parse().expect("the text is good"),
        local_distance_sectors: "normal(0,200)".parse().expect("the text is good"),
        gap: "exponential(50ms)".parse().expect("the text is good"),
        sequential_gap: "exponential(30ms)".parse().expect("the text is good"),
        local_gap: "exponential(10ms)".parse().expect("the text is good"),
        time_limit: "normal(30ms,10ms)".parse().expect("the text is good"),
    }
}

fn synthetic(spec: &SyntheticSpec, requests: u64) -> impl Load + use<> {
    let specs = std::slice::from_ref(spec);
    Processes::synthetic(specs, &volumes(), requests, 9).expect("the spec is good")
}

fn refused(spec: SyntheticSpec) -> String {
    let error = Processes::synthetic(&[spec], &volumes(), 1, 1).expect_err("the spec is bad");
    format!("{}: {error}", error.key())
}

/// Asserts that `found` out of `of` is a share within 4 standard deviations of the expected one.
pub(super) fn assert_share(name: &str, found: usize, of: usize, expected: f64) {
    let (found, sigma) = (found as f64 / of as f64, (expected * (1.0 - expected) / of as f64).sqrt());
    assert!((found - expected).abs() <= 4.0 * sigma, "{name}: {found}, where {expected} is expected");
}

/// The maximum number outstanding for each source, when each request takes `service`, independently of others.
fn most_out(load: &mut dyn Load, service: Nanos, sources: usize) -> Vec<usize> {
    let (mut out, mut most) = (vec![0usize; sources], vec![0usize; sources]);
    let mut busy: Vec<(Instant, u64, u32)> = Vec::new();
    let mut now = Instant::ZERO;
    loop {
        let wanted = match load.poll(now) {
            Poll::Issue(issue) => {
                let source = issue.source as usize;
                out[source] += 1;
                most[source] = most[source].max(out[source]);
                busy.push((now + service, issue.id, issue.source));
                continue;
            }
            Poll::Done => return most,
            Poll::Compute { .. } => unreachable!("no program computes"),
            Poll::Waiting => Instant::MAX,
            Poll::Later(at) => at,
        };
        busy.sort_unstable();
        now = busy.first().map_or(wanted, |(at, ..)| wanted.min(*at));
        while let Some((at, id, source)) = busy.first().copied()
            && at <= now
        {
            busy.remove(0);
            out[source as usize] -= 1;
            load.handle_completion(now, id);
        }
    }
}

#[test]
fn think_time_runs_from_completion_to_next_request() {
    let (seen, most) = run(&mut thinking(4, "10ms", 40), Nanos(MS), false);
    assert_eq!(most, 4);
    // All processes issue a request at 10 ms. The device serves them one by one, and each process issues its next one 10 ms after its completion.
    let times: Vec<u64> = seen.iter().take(12).map(|(at, _)| at.0 / MS).collect();
    assert_eq!(times, [10, 10, 10, 10, 21, 22, 23, 24, 32, 33, 34, 35]);
    let sources: Vec<u32> = seen.iter().take(8).map(|(_, issue)| issue.source).collect();
    assert_eq!(sources, [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn mean_think_time_matches_its_distribution() {
    let mut load = thinking(1, "exponential(20ms)", 20_000);
    let (seen, _) = run(&mut load, Nanos(MS), false);
    let mean = (seen.last().expect("there are some").0.0 as f64 / 20_000.0 - MS as f64) / MS as f64;
    assert!((mean - 20.0).abs() < 4.0 * 20.0 / 20_000f64.sqrt(), "{mean}");
}

#[test]
fn sequential_processes_start_apart() {
    let sequential = Shape { pattern: Pattern::Sequential, ..shape() };
    let shape = ThinkShape { shape: sequential, ..think(4, "0ms") };
    let mut load = Processes::thinking(&shape, 8, 1).expect("the shape is good");
    let lbns: Vec<u64> =
        run(&mut load, Nanos(1), false).0.iter().map(|(_, issue)| issue.request.lbn.0).collect();
    assert_eq!(lbns, [1000, 26_000, 51_000, 76_000, 1008, 26_008, 51_008, 76_008]);
}

#[test]
fn no_process_exceeds_its_outstanding_limit() {
    for service in [Nanos(1), Nanos(7 * MS), Nanos(90 * MS)] {
        assert!(
            most_out(&mut thinking(5, "exponential(5ms)", 500), service, 5).iter().all(|most| *most == 1)
        );
        let critical = SyntheticSpec { critical_share: 1.0, limited_share: 0.0, ..mixed() };
        assert_eq!(most_out(&mut synthetic(&critical, 500), service, 3), [1, 1, 1]);
        let bursts = BurstShape { processes: 3, ..bursts() };
        let mut load = Processes::bursts(&bursts, u64::MAX, 1).expect("the shape is good");
        assert_eq!(most_out(&mut load, service, 3), [1, 1, 1]);
    }
    let open = SyntheticSpec { critical_share: 0.0, limited_share: 0.0, ..mixed() };
    assert!(most_out(&mut synthetic(&open, 5000), Nanos(1000 * MS), 3).iter().all(|most| *most > 10));
}

#[test]
fn one_processor_lets_processes_think_one_by_one() {
    let load = Processes::thinking(&think(2, "10ms"), 3, 1).expect("the shape is good");
    let mut load = load.sharing(1);
    let source = |load: &mut dyn Load, at: u64| match load.poll(Instant(at * MS)) {
        Poll::Issue(issue) => (issue.source, issue.id),
        other => panic!("{other:?} at {at} ms"),
    };
    assert_eq!(load.poll(Instant::ZERO), Poll::Later(Instant(10 * MS)));
    let (first, id) = source(&mut load, 10);
    // The second process begins when the first one waits.
    assert_eq!(load.poll(Instant(10 * MS)), Poll::Later(Instant(20 * MS)));
    // The first process has its completion and queues for the processor. It begins when the second one waits.
    load.handle_completion(Instant(12 * MS), id);
    assert_eq!(load.poll(Instant(12 * MS)), Poll::Later(Instant(20 * MS)));
    let (second, _) = source(&mut load, 20);
    assert_eq!(load.poll(Instant(20 * MS)), Poll::Later(Instant(30 * MS)));
    let (third, _) = source(&mut load, 30);
    assert_eq!([first, second, third], [0, 1, 0]);
}

#[test]
fn awaited_requests_are_urgent_only_if_configured() {
    let spec = SyntheticSpec { critical_share: 0.2, limited_share: 0.3, ..mixed() };
    let urgent = |urgent_waits| {
        let spec = SyntheticSpec { urgent_waits, ..spec.clone() };
        let seen = run(&mut synthetic(&spec, 4000), Nanos(7 * MS), false).0;
        seen.iter().filter(|(_, issue)| issue.urgent).count()
    };
    assert_eq!(urgent(false), 0);
    assert!((1850..2150).contains(&urgent(true)), "{}", urgent(true));
}

#[test]
fn processes_have_one_processor_each_by_default() {
    let spec = SyntheticSpec { critical_share: 0.5, limited_share: 0.3, ..mixed() };
    let alone = run(&mut synthetic(&spec, 2000), Nanos(7 * MS), false);
    let make =
        || Processes::synthetic(std::slice::from_ref(&spec), &volumes(), 2000, 9).expect("the spec is good");
    assert_eq!(run(&mut make().sharing(spec.processes), Nanos(7 * MS), false).0, alone.0);
    assert_ne!(run(&mut make().sharing(1), Nanos(7 * MS), false).0, alone.0);
}

#[test]
fn synthetic_load_without_waits_is_open() {
    let open = SyntheticSpec { critical_share: 0.0, limited_share: 0.0, ..mixed() };
    let fast = run(&mut synthetic(&open, 2000), Nanos(1), false);
    let slow = run(&mut synthetic(&open, 2000), Nanos(30 * MS), true);
    assert_eq!(fast.0, slow.0);
}

#[test]
fn synthetic_shares_match_spec() {
    const COUNT: usize = 60_000;
    let spec = SyntheticSpec { processes: 1, critical_share: 0.0, limited_share: 0.0, ..mixed() };
    let (seen, _) = run(&mut synthetic(&spec, COUNT as u64), Nanos(1), false);
    let count =
        |of: &dyn Fn(&Seen, &Seen) -> bool| seen.windows(2).filter(|pair| of(&pair[0], &pair[1])).count();
    let is_sequential = |last: &Seen, this: &Seen| {
        let (last, this) = (last.1, this.1);
        this.request.lbn == last.request.end()
            && (this.device, this.request.sectors) == (last.device, last.request.sectors)
    };
    let is_near = |last: &Seen, this: &Seen| {
        last.1.device == this.1.device && last.1.request.lbn.0.abs_diff(this.1.request.lbn.0) < 2000
    };
    // A local request may continue the previous one by chance: 3 % of them are one block further, and half of those have the same length.
    let sequential = count(&is_sequential);
    assert!((0.2..0.22).contains(&(sequential as f64 / COUNT as f64)), "{sequential}");
    assert_share("near", count(&is_near), COUNT, 0.5 + 0.5 * 0.5 * 4000.0 / 4e6);
    let reads = seen.iter().filter(|(_, issue)| issue.request.op == Op::Read).count();
    // Sequential requests repeat the direction of the previous one, which increases the variance by (1 + 0.2) / (1 - 0.2).
    assert!(
        (reads as f64 / COUNT as f64 - 0.66).abs() < 4.0 * (0.2244 * 1.5 / COUNT as f64).sqrt(),
        "{reads}"
    );
    let second = seen.iter().filter(|(_, issue)| issue.device == 1).count();
    assert!(
        (second as f64 / COUNT as f64 - 0.5).abs() < 4.0 * (0.25 * 3.0 / COUNT as f64).sqrt(),
        "{second}"
    );
    // Blocks are ceil(x / 8) of an exponential x of mean 8: geometric, P(1 block) = 1 - 1/e, inherited by a fifth.
    let short = seen.iter().filter(|(_, issue)| issue.request.sectors == 8).count();
    let expected = 1.0 - (-1f64).exp();
    assert!(
        (short as f64 / COUNT as f64 - expected).abs() < 4.0 * (0.2325 * 1.5 / COUNT as f64).sqrt(),
        "{short}"
    );
    // Half the gaps have a mean of 50 ms, a fifth 30 ms and three tenths 10 ms.
    let mean = seen.last().expect("there are some").0.0 as f64 / COUNT as f64 / MS as f64;
    let variance = 2.0 * (0.5 * 2500.0 + 0.2 * 900.0 + 0.3 * 100.0) - 34.0 * 34.0;
    assert!((mean - 34.0).abs() < 4.0 * (variance / COUNT as f64).sqrt(), "{mean}");
}

#[test]
fn expired_time_limit_blocks_its_process() {
    let time = |text: &str| text.parse().expect("the text is good");
    let spec = SyntheticSpec {
        processes: 1,
        critical_share: 0.0,
        limited_share: 1.0,
        sequential_share: 0.0,
        local_share: 0.0,
        gap: time("10ms"),
        time_limit: time("25ms"),
        ..mixed()
    };
    let mut load = synthetic(&spec, 100);
    let issue = |load: &mut dyn Load, at: u64| match load.poll(Instant(at * MS)) {
        Poll::Issue(issue) => issue.id,
        other => panic!("{other:?} at {at} ms"),
    };
    assert_eq!(load.poll(Instant::ZERO), Poll::Later(Instant(10 * MS)));
    let first = issue(&mut load, 10);
    let second = issue(&mut load, 20);
    let third = issue(&mut load, 30);
    // The first request's limit is at 35 ms. It completes at 110 ms, so that the process has lost 75 ms.
    assert_eq!(load.poll(Instant(30 * MS)), Poll::Later(Instant(35 * MS)));
    assert_eq!(load.poll(Instant(36 * MS)), Poll::Waiting);
    load.handle_completion(Instant(60 * MS), third);
    assert_eq!(load.poll(Instant(60 * MS)), Poll::Waiting);
    load.handle_completion(Instant(110 * MS), first);
    assert_eq!(load.poll(Instant(110 * MS)), Poll::Later(Instant(115 * MS)));
    let fourth = issue(&mut load, 115);
    // The second request's limit was at 45 ms, and is now at 120 ms.
    assert_eq!(load.poll(Instant(120 * MS)), Poll::Waiting);
    load.handle_completion(Instant(121 * MS), second);
    assert_eq!(load.poll(Instant(121 * MS)), Poll::Later(Instant(126 * MS)));
    load.handle_completion(Instant(122 * MS), fourth);
    issue(&mut load, 126);
}

#[test]
fn streams_study_process_reads_one_sequence() {
    let spec = SyntheticSpec {
        processes: 1,
        volumes: vec!["first".to_string()],
        sequential_share: 1.0,
        local_share: 0.0,
        read_share: 1.0,
        critical_share: 1.0,
        limited_share: 0.0,
        size_sectors: "uniform(128,128)".parse().expect("the text is good"),
        gap: "normal(0ms,0ms)".parse().expect("the text is good"),
        sequential_gap: "normal(0ms,0ms)".parse().expect("the text is good"),
        ..mixed()
    };
    let (seen, most) = run(&mut synthetic(&spec, 1000), Nanos(MS), false);
    assert_eq!(most, 1);
    for pair in seen.windows(2) {
        assert_eq!(pair[1].1.request, Request::read(pair[0].1.request.end(), 128));
        assert_eq!(pair[1].0, pair[0].0 + Nanos(MS));
    }
}

#[test]
fn oversized_requests_are_cut_to_their_disk() {
    let spec = SyntheticSpec {
        capacity_sectors: Some(80),
        size_sectors: "constant(1000)".parse().expect("the text is good"),
        local_distance_sectors: "constant(-1e9)".parse().expect("the text is good"),
        ..mixed()
    };
    let (seen, _) = run(&mut synthetic(&spec, 300), Nanos(MS), false);
    assert!(seen.iter().all(|(_, issue)| (issue.request.lbn, issue.request.sectors) == (Lbn(0), 80)));
}

#[test]
fn first_synthetic_requests_match_golden_values() {
    let (seen, _) = run(&mut synthetic(&mixed(), 3), Nanos(MS), false);
    let found: Vec<(u64, u64, u32)> =
        seen.iter().map(|(at, issue)| (at.0, issue.request.lbn.0, issue.request.sectors)).collect();
    assert_eq!(found, [(5_004_607, 2_997_976, 24), (8_453_253, 3_555_848, 24), (22_286_575, 2_998_000, 24)]);
}

#[test]
fn impossible_synthetic_processes_are_rejected() {
    let with = |change: fn(&mut SyntheticSpec)| {
        let mut spec = mixed();
        change(&mut spec);
        refused(spec)
    };
    assert_eq!(with(|spec| spec.processes = 0), "processes: 0 is outside 1 to 65536");
    assert_eq!(with(|spec| spec.processes = u32::MAX), "processes: 4294967295 is outside 1 to 65536");
    assert_eq!(with(|spec| spec.read_share = 1.5), "read_share: 1.5 is outside 0 to 1");
    assert_eq!(with(|spec| spec.sequential_share = f64::NAN), "sequential_share: NaN is outside 0 to 1");
    assert_eq!(
        with(|spec| spec.local_share = 0.9),
        "local_share: 0.9 and sequential_share are more than 1 together"
    );
    assert_eq!(
        with(|spec| spec.limited_share = 0.9),
        "limited_share: 0.9 and critical_share are more than 1 together"
    );
    assert_eq!(
        with(|spec| spec.size_sectors = Distribution::Constant(-1.0)),
        "size_sectors: constant(-1) is hardly ever 1 or more"
    );
    assert_eq!(
        with(|spec| spec.volumes = vec!["secnd".to_string()]),
        "volumes: the rig has no volume `secnd`; did you mean `second`?"
    );
    assert_eq!(
        with(|spec| spec.capacity_sectors = Some(5_000_000)),
        "capacity_sectors: 5000000 are more than the 4000000 sectors of `second`"
    );
    assert_eq!(with(|spec| spec.blocking_sectors = 0), "blocking_sectors: 0 is outside 1 sectors and more");
    assert_eq!(
        with(|spec| (spec.capacity_sectors, spec.blocking_sectors) = (Some(10), 11)),
        "blocking_sectors: 11 do not fit in the 10 sectors of `first`"
    );
}

fn bursts() -> BurstShape {
    BurstShape {
        region: Region { first: Lbn(16), sectors: 100_000 },
        processes: 16,
        run: 100,
        times: 7,
        sectors: 32,
        alignment: 8,
        op: Op::Read,
    }
}

#[test]
fn every_process_reads_its_runs_consecutively() {
    let mut load = Processes::bursts(&bursts(), u64::MAX, 4).expect("the shape is good");
    let (seen, most) = run(&mut load, Nanos(MS), false);
    assert_eq!((seen.len(), most), (16 * 7 * 4, 16));
    let mut begins = Vec::new();
    for process in 0..16 {
        let own = seen.iter().filter(|(_, issue)| issue.source == process);
        let requests: Vec<Request> = own.map(|(_, issue)| issue.request).collect();
        for run in requests.chunks(4) {
            let sizes: Vec<u32> = run.iter().map(|request| request.sectors).collect();
            assert_eq!(sizes, [32, 32, 32, 4]);
            assert!(run.windows(2).all(|pair| pair[1].lbn == pair[0].end()));
            assert!(run[0].lbn.0.is_multiple_of(8) && run[3].end() <= Lbn(100_016));
            begins.push(run[0].lbn);
        }
    }
    begins.sort_unstable();
    begins.dedup();
    assert!(begins.len() > 100, "{} runs of 112 begin apart", begins.len());
}

#[test]
fn runs_that_do_not_fit_are_rejected() {
    let refused =
        |shape: BurstShape| Processes::bursts(&shape, 1, 1).expect_err("the shape is bad").to_string();
    assert_eq!(
        refused(BurstShape { run: 100_001, ..bursts() }),
        "no aligned request of 100001 sectors fits in the 100000 sectors from block 16 on"
    );
    assert_eq!(
        refused(BurstShape { times: 0, ..bursts() }),
        "the number of runs is 0, where at least 1 is needed"
    );
    assert_eq!(
        refused(BurstShape { sectors: 0, ..bursts() }),
        "the request size is 0, where at least 1 is needed"
    );
}

proptest! {
    #[test]
    fn synthetic_load_stays_on_its_volumes_and_repeats(
        seed: u64,
        service in 1..50 * MS,
        shares in (0.0..0.5f64, 0.0..0.5f64, 0.0..0.5f64, 0.0..0.5f64),
        blocking in 1..40u32,
        capacity in 40..5000u64,
        size in 0.1..3000f64,
        youngest: bool,
    ) {
        let spec = SyntheticSpec {
            sequential_share: shares.0,
            local_share: shares.1,
            critical_share: shares.2,
            limited_share: shares.3,
            blocking_sectors: blocking,
            capacity_sectors: Some(capacity),
            size_sectors: Distribution::exponential(size),
            ..mixed()
        };
        let make = || Processes::synthetic(std::slice::from_ref(&spec), &volumes(), 300, seed).expect("the spec is good");
        let (seen, _) = run(&mut make(), Nanos(service), youngest);
        prop_assert_eq!(seen.len(), 300);
        for (_, issue) in &seen {
            prop_assert!(issue.request.end().0 <= capacity && issue.device < 2 && issue.source < 3);
            prop_assert!(issue.request.sectors >= blocking);
            prop_assert_eq!((issue.request.lbn.0 % u64::from(blocking), issue.request.sectors % blocking), (0, 0));
        }
        let mut ids: Vec<u64> = seen.iter().map(|(_, issue)| issue.id).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), 300);
        prop_assert_eq!(run(&mut make(), Nanos(service), youngest).0, seen);
    }
}

#[test]
fn permanently_idle_processor_leaves_work_to_first_one() {
    let requested = |idles_permanently: bool| -> Vec<u64> {
        let load = Processes::thinking(&think(2, "10ms"), 6, 1).expect("the shape is good").sharing(2);
        let mut load = if idles_permanently { load.idle_cpu_never_wakes() } else { load };
        run(&mut load, Nanos(2 * MS), true).0.iter().map(|(at, _)| at.0 / MS).collect()
    };
    // Both processes issue requests and wait. Afterwards only the first processor resumes a process whose request has completed.
    assert_eq!(requested(false), [10, 10, 22, 24, 34, 36]);
    assert_eq!(requested(true), [10, 10, 22, 32, 42, 52]);
}
