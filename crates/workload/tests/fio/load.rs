//! The times at which requests are issued, by depth, rates, pauses, groups and run times.

use crate::ours::{Timed, build, parse, run, volumes};
use headstack_model::{Instant, Nanos, Op};
use headstack_workload::fio::FioLoad;
use headstack_workload::{Load, ReadAdvice, VolumeInfo};

const MS: u64 = 1_000_000;

/// The times in milliseconds at which a clone issues its requests, each of which takes 10 ms.
fn times(text: &str, source: u32) -> Vec<f64> {
    let mut load = build(text, 1);
    let all = run(&mut load, Nanos(10 * MS), 100_000);
    all.iter().filter(|timed| timed.issue.source == source).map(|timed| timed.at.as_ms()).collect()
}

fn requests(text: &str) -> (FioLoad, Vec<Timed>) {
    let mut load = build(text, 1);
    let all = run(&mut load, Nanos(10 * MS), 100_000);
    (load, all)
}

#[test]
fn job_keeps_its_queue_full() {
    assert_eq!(
        times("[j]\nbs=4k\nsize=24k\nioengine=libaio\niodepth=3", 0),
        [0.0, 0.0, 0.0, 10.0, 10.0, 10.0]
    );
    assert_eq!(times("[j]\nbs=4k\nsize=12k", 0), [0.0, 10.0, 20.0]);
}

#[test]
fn think_time_starts_after_last_completion() {
    assert_eq!(times("[j]\nbs=4k\nsize=16k\nthinktime=5ms", 0), [0.0, 15.0, 30.0, 45.0]);
    let every_two = "[j]\nbs=4k\nsize=16k\nthinktime=5000\nthinktime_blocks=2";
    assert_eq!(times(every_two, 0), [0.0, 10.0, 25.0, 35.0]);
    let by_time = "[j]\nbs=4k\nsize=24k\nthinktime=5ms\nthinktime_iotime=25ms";
    assert_eq!(times(by_time, 0), [0.0, 10.0, 20.0, 35.0, 45.0, 55.0]);
    let issued = "[j]\nbs=4k\nsize=24k\nioengine=libaio\niodepth=4\nthinktime=5ms\nthinktime_blocks=2\nthinktime_blocks_type=issue";
    assert_eq!(times(issued, 0), [0.0, 0.0, 15.0, 15.0, 30.0, 30.0]);
}

#[test]
fn rate_is_kept_and_made_up_after_pauses() {
    let even = "[j]\nbs=4k\nsize=16k\nrate_iops=50";
    assert_eq!(times(even, 0), [0.0, 20.0, 40.0, 60.0]);
    assert_eq!(times("[j]\nbs=4k\nsize=16k\nrate=200k", 0), [0.0, 20.0, 40.0, 60.0]);
    // Each pause of 30 ms exceeds the gap of 20 ms that the rate allows. Without pauses, the gaps would stay at 20 ms.
    let paused = "[j]\nbs=4k\nsize=20k\nrate_iops=50\nthinktime=30ms\nthinktime_blocks=2";
    assert_eq!(times(paused, 0), [0.0, 20.0, 60.0, 70.0, 110.0]);
}

#[test]
fn poisson_arrivals_match_their_rate() {
    let text = "[j]\nrw=randread\nbs=4k\nsize=400m\nrate_iops=50\nrate_process=poisson\nio_submit_mode=offload\nioengine=libaio\niodepth=64";
    let all = times(text, 0);
    let count = all.len() as f64;
    let mean = all.last().expect("there are requests") / (count - 1.0);
    assert!((mean - 20.0).abs() < 4.0 * 20.0 / count.sqrt(), "{mean} ms");
}

#[test]
fn stonewall_waits_for_all_earlier_jobs() {
    let text =
        "[a]\nbs=4k\nsize=8k\n[b]\nbs=4k\nsize=16k\n[c]\nstonewall\nbs=4k\nsize=4k\n[d]\nbs=4k\nsize=4k";
    assert_eq!(times(text, 2), [40.0]);
    assert_eq!(times(text, 3), [40.0]);
    let (load, _) = requests(text);
    let groups: Vec<u32> = load.jobs().iter().map(|job| job.group).collect();
    assert_eq!(groups, [0, 0, 1, 1]);
    let window = load.window(2).expect("it ran");
    assert_eq!((window.started, window.ended), (Instant(40 * MS), Some(Instant(50 * MS))));
}

#[test]
fn job_waits_for_job_it_names() {
    let text = "[a]\nbs=4k\nsize=8k\n[b]\nbs=4k\nsize=16k\n[c]\nwait_for=a\nbs=4k\nsize=4k";
    assert_eq!(times(text, 2), [20.0]);
}

#[test]
fn time_based_run_ends_at_its_runtime() {
    let text = "[j]\nbs=4k\nsize=8k\ntime_based\nruntime=1s\nramp_time=500ms\nstartdelay=2s";
    let all = times(text, 0);
    assert_eq!((all[0], all.len()), (2000.0, 150));
    let (load, all) = requests(text);
    assert!(all.iter().all(|timed| timed.issue.request.end().0 <= 16), "it goes over the same 8 KiB");
    let window = load.window(0).expect("it ran");
    assert_eq!(window.measured_from, Instant(2500 * MS));
    assert_eq!(window.ended, Some(Instant(3500 * MS)));
    assert!(!load.is_measured(0, Instant(2499 * MS)) && load.is_measured(0, Instant(2500 * MS)));
}

#[test]
fn first_finished_job_ends_its_group() {
    let text = "[global]\nbs=4k\nsize=1m\nexitall\n[a]\n[b]\nnumber_ios=3\n[c]\nstonewall\nnumber_ios=1";
    // When the last request of `b` completes, `a` has just issued its next one, for which the load waits.
    assert_eq!(times(text, 0), [0.0, 10.0, 20.0, 30.0]);
    assert_eq!(times(text, 2), [40.0]);
}

#[test]
fn writes_wait_for_preceding_flush() {
    let (_, all) =
        requests("[j]\nrw=write\nbs=4k\nsize=16k\nioengine=libaio\niodepth=4\nfsync=2\nend_fsync=1");
    let output: Vec<(u64, Op)> = all.iter().map(|t| (t.at.0 / MS, t.issue.request.op)).collect();
    use Op::{Flush, Write};
    // As in fio, only the flush at the end follows the last write.
    assert_eq!(output, [(0, Write), (0, Write), (0, Flush), (10, Write), (10, Write), (20, Flush)]);
}

#[test]
fn fadvise_hint_follows_the_pattern_unless_the_job_says_otherwise() {
    let cases = [
        ("rw=read", ReadAdvice::Sequential),
        ("rw=randread:8", ReadAdvice::Random),
        ("rw=randread\nfadvise_hint=0", ReadAdvice::Normal),
        ("rw=randread\nfadvise_hint=1", ReadAdvice::Random),
        ("rw=randread\nfadvise_hint=sequential", ReadAdvice::Sequential),
        ("rw=read\nfadvise_hint=random", ReadAdvice::Random),
    ];
    for (keys, advice) in cases {
        let (_, all) = requests(&format!("[a]\nbs=4k\nsize=16k\n{keys}"));
        assert!(!all.is_empty() && all.iter().all(|timed| timed.issue.advice == advice), "{keys}");
    }
}

#[test]
fn sync_direct_and_priority_keys_mark_requests() {
    let (_, all) =
        requests("[a]\nbs=4k\nsize=8k\nrw=write\nsync=1\n[b]\nbs=4k\nsize=8k\ndirect=1\nprioclass=1");
    for timed in all {
        let is_first = timed.issue.source == 0;
        assert_eq!(timed.issue.request.fua, is_first);
        assert_eq!((timed.issue.direct, timed.issue.urgent), (!is_first, !is_first));
    }
    let (_, all) = requests("[j]\nrw=randread\nbs=4k\nsize=40m\ncmdprio_percentage=10");
    let urgent = all.iter().filter(|timed| timed.issue.urgent).count() as f64 / all.len() as f64;
    assert!((urgent - 0.1).abs() < 4.0 * (0.09 / all.len() as f64).sqrt(), "{urgent}");
}

#[test]
fn same_seed_repeats_load() {
    let text = "[j]\nrw=randrw\nbs=4k\nsize=1m\nnumjobs=2";
    let drawn = |seed: u64| -> Vec<_> {
        let all = run(&mut build(text, seed), Nanos(MS), 100_000);
        all.iter().map(|timed| timed.issue).collect()
    };
    assert_eq!(drawn(5), drawn(5));
    assert_ne!(drawn(5), drawn(6));
}

/// A job that replays `log`, which is the content of the file `a.log`.
fn replayed(job: &str, log: &'static str) -> Result<FioLoad, String> {
    let file = parse(&format!("[j]\n{job}")).map_err(|error| error.to_string())?;
    let mut open = |name: &str| -> std::io::Result<Box<dyn std::io::Read>> {
        if name == "a.log" { Ok(Box::new(log.as_bytes())) } else { Err(std::io::ErrorKind::NotFound.into()) }
    };
    file.build_reading(&volumes(), 1, &mut open).map_err(|error| error.to_string())
}

const LOG_3: &str = "fio version 3 iolog\n0 f add\n1 f open\n5000 f read 0 4096\n17000 f write 8192 8192\n\
                     18000 f read 65536 4096\n19000 f sync 0 0\n60000 f read 4096 4096\n60001 f close\n";

#[test]
fn log_is_replayed_at_its_times_and_queue_depth() {
    let output = |job: &str, log: &'static str| -> Vec<(u64, Op, u64)> {
        let mut load = replayed(job, log).unwrap_or_else(|error| panic!("{error}"));
        let all = run(&mut load, Nanos(10 * MS), 1000);
        assert!(load.error().is_none());
        all.iter().map(|t| (t.at.0 / MS, t.issue.request.op, t.issue.request.lbn.0)).collect()
    };
    use Op::{Flush, Read, Write};
    let shallow = output("read_iolog=a.log\nstartdelay=1", LOG_3);
    assert_eq!(
        shallow,
        [(1000, Read, 0), (1012, Write, 16), (1022, Read, 128), (1032, Flush, 0), (1055, Read, 8)]
    );
    let deep = output("read_iolog=a.log\nioengine=libaio\niodepth=8\nreplay_time_scale=200", LOG_3);
    assert_eq!(deep, [(0, Read, 0), (24, Write, 16), (26, Read, 128), (28, Flush, 0), (110, Read, 8)]);
    let fast = output("read_iolog=a.log\nioengine=libaio\niodepth=2\nreplay_no_stall=1\nnumber_ios=3", LOG_3);
    assert_eq!(fast, [(0, Read, 0), (0, Write, 16), (10, Read, 128)]);
    let waits =
        "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 3000 0\nf read 4096 4096\nf close\n";
    assert_eq!(
        output("read_iolog=a.log\nfilename=/dev/sda\nnumjobs=1", waits),
        [(0, Read, 0), (13, Read, 8)]
    );
}

#[test]
fn two_disks_of_logs_are_not_taken_for_the_only_volume() {
    const TWO: &str = "fio version 2 iolog\n/dev/sda add\n/dev/sdb add\n/dev/sda open\n/dev/sdb open\n/dev/sda read 0 4096\n\
                       /dev/sdb read 8192 4096\n";
    const ONE: &str = "fio version 3 iolog\n0 /dev/sda1 add\n0 /dev/sda2 add\n1 /dev/sda1 read 0 4096\n2 /dev/sda2 read 8192 4096\n";
    const OTHER: &str = "fio version 3 iolog\n0 /dev/sdb add\n1 /dev/sdb read 0 4096\n";
    let one = [VolumeInfo { name: "disk".to_string(), sectors: 1 << 20, sector_bytes: 512, zones: None }];
    let two = ["sda", "sdb"].map(|name| VolumeInfo { name: name.to_string(), ..one[0].clone() });
    let output = |job: &str, volumes: &[VolumeInfo]| -> (Vec<u32>, Option<String>) {
        let file = parse(job).unwrap_or_else(|error| panic!("{error}"));
        let mut open = |name: &str| -> std::io::Result<Box<dyn std::io::Read>> {
            Ok(Box::new(
                match name {
                    "two" => TWO,
                    "one" => ONE,
                    _ => OTHER,
                }
                .as_bytes(),
            ))
        };
        let mut load = file.build_reading(volumes, 1, &mut open).unwrap_or_else(|error| panic!("{error}"));
        let all = run(&mut load, Nanos(10 * MS), 1000);
        (all.iter().map(|issued| issued.issue.device).collect(), load.error().map(ToString::to_string))
    };
    let refused = |job: &str| {
        let (_, error) = output(job, &one);
        let error = error.unwrap_or_else(|| panic!("{job}"));
        assert!(
            error.contains("`/dev/sdb` and `/dev/sda` are two disks, and the rig has one volume, `disk`"),
            "{error}"
        );
    };
    refused("[a]\nread_iolog=two");
    refused("[a]\nfilename=/dev/sda\nsize=1m\n[b]\nread_iolog=other");
    assert_eq!(output("[a]\nread_iolog=two", &two), (vec![0, 1], None));
    assert_eq!(output("[a]\nread_iolog=one", &one), (vec![0, 0], None));
    assert_eq!(
        output("[a]\nread_iolog=two\nfilename=/dev/sda", &one),
        (vec![0, 0], None),
        "the job sends all there"
    );
}

/// As in fio 3, a flush of each file ends the replay of a log with writes, except after a flush.
#[test]
fn replayed_log_that_writes_ends_with_a_flush() {
    const WRITES: &str = "fio version 2 iolog\nf add\nf open\nf write 0 4096\nf read 8192 4096\n";
    const READS: &str = "fio version 2 iolog\nf add\nf open\nf read 0 4096\n";
    const FLUSHES: &str = "fio version 2 iolog\nf add\nf open\nf write 0 4096\nf sync 0 0\n";
    let output = |job: &str, log: &'static str| -> Vec<(u64, Op)> {
        let mut load = replayed(job, log).unwrap_or_else(|error| panic!("{error}"));
        let all = run(&mut load, Nanos(10 * MS), 1000);
        assert!(load.error().is_none());
        all.iter().map(|t| (t.at.0 / MS, t.issue.request.op)).collect()
    };
    use Op::{Flush, Read, Write};
    for key in ["end_fsync", "fsync_on_close"] {
        let ended = output(&format!("read_iolog=a.log\n{key}=1"), WRITES);
        assert_eq!(ended, [(0, Write), (10, Read), (20, Flush)], "{key}");
    }
    assert_eq!(output("read_iolog=a.log", WRITES), [(0, Write), (10, Read)]);
    let alone = "read_iolog=a.log\nfilename=/dev/sda\nend_fsync=1";
    assert_eq!(output(alone, READS), [(0, Read)]);
    assert_eq!(output(alone, FLUSHES), [(0, Write), (10, Flush)]);
    let cut_short = format!("{alone}\nnumber_ios=1");
    assert_eq!(output(&cut_short, FLUSHES), [(0, Write), (10, Flush)]);
}

#[test]
fn malformed_log_is_rejected_with_its_place() {
    let refused = |job: &str| replayed(job, "nonsense\n").expect_err("it is no log");
    assert_eq!(refused("read_iolog=b.log"), "test.fio:2: read_iolog: `b.log`: entity not found");
    assert!(
        refused("read_iolog=a.log").starts_with("test.fio:2: read_iolog: `a.log`: "),
        "{}",
        refused("read_iolog=a.log")
    );
    assert_eq!(
        replayed("read_iolog=a.log\nfilename=x", LOG_3).expect_err("x is a file"),
        "test.fio:3: filename: `x` is no volume, where a log needs one"
    );
    let mut load = replayed("read_iolog=a.log", "fio version 3 iolog\n0 f add\n1 f open\n2 f raed 0 4096\n")
        .expect("its head is good");
    assert_eq!(run(&mut load, Nanos(MS), 100).len(), 0);
    let said = load.error().expect("its third line is wrong").to_string();
    assert!(said.starts_with("a.log: line 4: "), "{said}");
}

/// The share of the load that is done when `requests` requests, each of 10 ms, have been issued.
fn share(text: &str, requests: usize) -> Option<f64> {
    let mut load = build(text, 1);
    let all = run(&mut load, Nanos(10 * MS), requests);
    load.progress(all.last()?.at)
}

#[test]
fn progress_follows_limit_reached_first() {
    assert_eq!(share("[j]\nbs=4k\nsize=400k", 25), Some(0.25));
    assert_eq!(share("[j]\nrw=randread\nbs=4k\nsize=4m\nnumber_ios=50", 25), Some(0.5));
    assert_eq!(share("[j]\nbs=4k\nsize=4m\nruntime=1s\ntime_based", 26), Some(0.25));
    assert_eq!(share("[j]\nbs=4k\nsize=4m\nruntime=1s\nramp_time=1s\ntime_based", 51), Some(0.25));
    assert_eq!(share("[j]\nbs=4k\nsize=400m\nruntime=1s", 26), Some(0.25), "the bytes would take longer");
}

#[test]
fn progress_follows_slowest_job_of_each_stage() {
    let text = "[a]\nbs=4k\nsize=40k\n[b]\nbs=4k\nsize=200k\n[c]\nstonewall\nbs=4k\nsize=40k";
    // Ten requests of each job: the first job is done, the second has done a fifth, and the next stage has not begun.
    assert_eq!(share(text, 20), Some(0.1));
    assert_eq!(share(text, 65), Some(0.75));
}
