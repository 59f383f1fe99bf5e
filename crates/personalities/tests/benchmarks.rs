//! Benchmarks of load files: their phases, requests and errors.

use headstack_model::{Instant, Nanos, Op};
use headstack_personalities::LoadFile;
use headstack_workload::{Issue, Load, Poll, VolumeInfo};
use std::collections::VecDeque;

fn volumes() -> Vec<VolumeInfo> {
    vec![VolumeInfo { name: "sda".to_string(), sectors: 400_000, sector_bytes: 512, zones: None }]
}

fn built(text: &str) -> Box<dyn Load> {
    let file = LoadFile::parse(text, "x.toml").expect("the file is good");
    file.build(&volumes(), 1).expect("it fits")
}

/// Runs a load on a device that takes 10 ms for each request. Each computation has a separate processor.
fn run(load: &mut dyn Load) -> Vec<(Instant, Issue)> {
    let (mut seen, mut out, mut now) = (Vec::new(), VecDeque::new(), Instant::ZERO);
    loop {
        let wake = match load.poll(now) {
            Poll::Issue(issue) => {
                seen.push((now, issue));
                out.push_back((now + Nanos(10_000_000), issue.id));
                continue;
            }
            Poll::Compute { id, time } => {
                load.handle_computed(now, id, now + time);
                continue;
            }
            Poll::Done => return seen,
            Poll::Waiting => Instant::MAX,
            Poll::Later(time) => time,
        };
        match out.front() {
            Some((time, id)) if *time <= wake => {
                now = *time;
                load.handle_completion(now, *id);
                out.pop_front();
            }
            _ => now = now.max(wake),
        }
    }
}

fn bytes_of(seen: &[(Instant, Issue)], op: Op, from: Instant, until: Instant) -> u64 {
    let within = seen
        .iter()
        .filter(|(time, issue)| from <= *time && *time < until && issue.request.op == op && !issue.direct);
    within.map(|(_, issue)| u64::from(issue.request.sectors) * 512).sum()
}

#[test]
fn each_phase_of_bonnie_moves_its_bytes_through_the_page_cache() {
    let mut load = built("[bonnie]\nfile_bytes = 4194304\nseeks = 100\ncosts = { put_us_per_byte = 0.5 }");
    let seen = run(load.as_mut());
    let phases = load.phases();
    let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["char-write", "rewrite", "block-write", "char-read", "block-read", "seeks"]);
    let moved: Vec<(u64, u64)> = phases
        .iter()
        .map(|phase| {
            let (from, until) = (phase.began.expect("it began"), phase.ended.expect("it ended"));
            (bytes_of(&seen, Op::Read, from, until), bytes_of(&seen, Op::Write, from, until))
        })
        .collect();
    let file = 4 << 20;
    assert_eq!(moved[..5], [(0, file), (file, file), (0, file), (file, 0), (file, 0)]);
    // Three processes, with 34, 33 and 33 seeks, write back every tenth chunk.
    assert_eq!(moved[5], (100 * 8192, 9 * 8192));
    // The phases with characters cost 0.5 µs per byte, those with blocks do not.
    let seconds = |phase: usize| {
        let of = &phases[phase];
        of.ended.expect("it ended").since(of.began.expect("it began")).as_secs()
    };
    let difference = seconds(0) - seconds(2);
    assert!((1.5..2.5).contains(&difference), "{difference} s");
}

#[test]
fn metadata_are_written_five_to_ten_seconds_after_their_change_and_data_are_not_awaited() {
    let mut load = built("[iozone]\nprocesses = 2\ntotal_bytes = 67108864");
    let seen = run(load.as_mut());
    let writes: Vec<_> =
        seen.iter().filter(|(_, issue)| issue.direct && issue.request.op == Op::Write).collect();
    assert!(!writes.is_empty());
    for (time, issue) in writes {
        assert!(time.0.is_multiple_of(5_000_000_000) && time.0 > 0, "{time:?}");
        assert_eq!(issue.source, 0);
    }
}

#[test]
fn device_timing_reads_the_area_in_order() {
    let mut load = built("[hdparm]\nbytes = 3145728\narea = { offset_bytes = 1024 }");
    let seen = run(load.as_mut());
    let places: Vec<(u64, u32)> =
        seen.iter().map(|(_, issue)| (issue.request.lbn.0, issue.request.sectors)).collect();
    assert_eq!(places, [(2, 2048), (2050, 2048), (4098, 2048)]);
}

#[test]
fn benchmarks_that_cannot_run_are_refused_with_their_key() {
    let cases = [
        ("[bonnie]\nchunk_bytes = 0", "bonnie.chunk_bytes: 0 is outside 1 to 67108864 bytes"),
        (
            "[bonnie]\nfile_bytes = 4096",
            "bonnie.chunk_bytes: 8192 is outside 1 to 4096 bytes, as the file has",
        ),
        ("[bonnie]\ncosts = { call_us = -1.0 }", "bonnie.costs.call_us: -1 is outside 0 to 1000000 µs"),
        ("[bonnie]\next2 = { block_bytes = 512 }", "bonnie.ext2.block_bytes: block size: 512 is not"),
        ("[bonnie]", "bonnie.file_bytes: 1073741824 bytes do not fit in the"),
        ("[iozone]\nprocesses = 0", "iozone.processes: 0 is outside 1 to 1024"),
        ("[iozone]\ntotal_bytes = 1000000000", "iozone.total_bytes: 1000000000 bytes do not fit in the"),
        ("[hdparm]\nbytes = 1000000000", "hdparm.bytes: more than the 204800000 bytes of the area"),
        ("[hdparm]\n[bonnie]", "give only one of bonnie, hdparm and iozone"),
    ];
    for (text, fault) in cases {
        let file = LoadFile::parse(text, "x.toml");
        let error = file.and_then(|file| file.build(&volumes(), 1).map(|_| ()));
        let message = error.expect_err("the load is bad").to_string();
        assert!(message.contains(fault), "{text}: {message}");
    }
}
