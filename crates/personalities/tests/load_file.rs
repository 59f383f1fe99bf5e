//! Load files: the shipped ones, the loads that they build, and the errors of invalid ones.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use std::path::{Path, PathBuf};

use headstack_model::{Instant, Nanos, Op};
use headstack_personalities::{LoadFile, LoadSpec};
use headstack_workload::{Issue, Load, Poll, VolumeInfo};

fn volumes() -> Vec<VolumeInfo> {
    let volume = |name: &str, sectors, sector_bytes| VolumeInfo {
        name: name.to_string(),
        sectors,
        sector_bytes,
        zones: None,
    };
    vec![volume("sda", 156_301_488, 512), volume("sdb", 10_000_000, 4096)]
}

fn parse(text: &str) -> LoadFile {
    LoadFile::parse(text, "x.toml").expect("the file is good")
}

/// The first `most` requests that a load issues to a device that takes 5 ms for each.
fn run(load: &mut dyn Load, most: usize) -> Vec<(Instant, Issue)> {
    let (mut seen, mut out, mut now) = (Vec::new(), std::collections::VecDeque::new(), Instant::ZERO);
    while seen.len() < most {
        let wanted = match load.poll(now) {
            Poll::Issue(issue) => {
                seen.push((now, issue));
                out.push_back((now + Nanos(5_000_000), issue.id));
                continue;
            }
            Poll::Done => break,
            Poll::Compute { .. } => unreachable!("no program computes"),
            Poll::Waiting => Instant::MAX,
            Poll::Later(at) => at,
        };
        match out.front() {
            Some((at, id)) if *at <= wanted => {
                now = *at;
                load.handle_completion(now, *id);
                out.pop_front();
            }
            _ => now = wanted,
        }
    }
    seen
}

fn requested(text: &str) -> Vec<(Instant, Issue)> {
    run(parse(text).build(&volumes(), 1).expect("the load fits").as_mut(), usize::MAX)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../jobs")
}

/// The shipped load files: name and text.
fn shipped() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder()).expect("the workspace has the folder");
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("the file can be read");
    let mut found: Vec<(String, String)> = files
        .map(|path| (path.file_name().expect("it is a file").to_string_lossy().into_owned(), read(&path)))
        .collect();
    found.sort();
    found
}

#[test]
fn every_shipped_load_file_builds_same_load_twice() {
    let files = shipped();
    assert!(files.len() >= 8, "{} files", files.len());
    for (name, text) in files {
        let file = LoadFile::parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        let seen = || run(file.build(&volumes(), 3).unwrap_or_else(|error| panic!("{error}")).as_mut(), 3000);
        let requested = seen();
        assert!(requested.len() >= 1000, "{name} asks {} times", requested.len());
        assert_eq!(requested, seen(), "{name}");
        for (_, issue) in requested {
            assert!(issue.request.end().0 <= volumes()[issue.device as usize].sectors, "{name}");
        }
    }
}

#[test]
fn load_file_spec_reads_back_unchanged() {
    for (name, text) in shipped() {
        let file = LoadFile::parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        let again = LoadFile::from_spec(file.spec(), &name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.spec(), file.spec(), "{name}");
    }
}

#[test]
fn every_key_is_documented() {
    let page = folder().join("../docs/formats/load-file.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let full = r#"
        requests = 1
        max_time_s = 1.0
        [[blocks]]
        area = { volume = "a", size_bytes = 1 }
        alignment_bytes = 1
        gap = "1ms"
        popularity = "even"
        group_bytes = 1
        requests = 1
        [[blocks]]
        depth = 1
        [[blocks]]
        processes = 1
        think_time = "1ms"
        [[stream]]
        interval_bytes = 1
        alignment_bytes = 1
        requests_each = 1
        requests = 1
        [[burst]]
        run_bytes = 1
        alignment_bytes = 1
        [[process]]
        volumes = ["a"]
        capacity_sectors = 1
        size_sectors = "1"
        [bonnie]
    "#;
    let benchmarks = ["[hdparm]", "[iozone]\nfile_bytes = 1"].map(|text| parse(text).spec().to_toml());
    let written = [parse(full).spec().to_toml(), benchmarks.concat()].concat();
    let keys: Vec<&str> =
        written.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key).collect();
    assert!(keys.len() > 40, "{keys:?}");
    for key in keys {
        assert!(page.contains(&format!("- `{key}` (")), "{key} is not on the page");
    }
}

#[test]
fn sizes_are_in_bytes_at_every_sector_size() {
    let table = |volume: &str| {
        format!(
            "[[blocks]]\ndepth = 1\nrequests = 50\narea = {{ volume = \"{volume}\", offset_bytes = 8192, size_bytes = 65536 }}"
        )
    };
    for (_, issue) in requested(&table("sda")) {
        assert_eq!((issue.device, issue.request.sectors), (0, 8));
        assert!(issue.request.lbn.0 >= 16 && issue.request.end().0 <= 144 && issue.request.lbn.0 % 8 == 0);
    }
    for (_, issue) in requested(&table("sdb")) {
        assert_eq!((issue.device, issue.request.sectors), (1, 1));
        assert!(issue.request.lbn.0 >= 2 && issue.request.end().0 <= 18);
    }
}

#[test]
fn tables_are_numbered_consecutively() {
    let text = "requests = 400\n[[process]]\nprocesses = 2\nsize_sectors = \"8\"\n[[stream]]\nstreams = 3\nop = \"write\"\n\
                [[blocks]]\nprocesses = 4\n[[burst]]\nrun_bytes = 4000\ntimes = 30";
    let seen = requested(text);
    assert_eq!(seen.len(), 400);
    let mut sources: Vec<u32> = seen.iter().map(|(_, issue)| issue.source).collect();
    sources.sort_unstable();
    sources.dedup();
    assert!(sources.into_iter().eq(0..10));
    // Blocks come first, then streams, bursts and processes.
    assert!(
        seen.iter()
            .filter(|(_, issue)| issue.request.op == Op::Write)
            .all(|(_, issue)| (4..7).contains(&issue.source))
    );
    let burst = seen.iter().filter(|(_, issue)| issue.source == 7);
    assert!(burst.clone().count() == 30 && burst.clone().all(|(_, issue)| issue.request.sectors == 8));
}

#[test]
fn load_ends_at_its_time_limit() {
    let seen = requested("max_time_s = 2\n[[blocks]]\ngap = \"constant(10ms)\"");
    assert_eq!(seen.len(), 199, "the last one before 2 s comes at 1.99 s");
}

#[test]
fn earlier_name_of_the_idle_processor_key_is_accepted() {
    let file = |key: &str| {
        let text = format!("requests = 1\n{key} = true\n[[blocks]]\ndepth = 1");
        let file = LoadFile::parse(&text, "x.toml").expect("the file is good");
        // The rest is left out: a file also keeps its text, which differs.
        format!("{file:?}").split(", origin: ").next().map(str::to_string)
    };
    assert_eq!(file("processors_idle_for_good"), file("idle_cpu_never_wakes"));
}

#[test]
fn every_malformed_file_is_rejected_in_one_line() {
    let refused = |text: &str| LoadFile::parse(text, "x.toml").expect_err("the file is bad").to_string();
    let cases = [
        ("", "x.toml: the load asks for nothing: it needs a table, such as blocks, process or bonnie"),
        (
            "[[block]]",
            "x.toml:1: block[0]: unknown field `block`, expected one of `requests`, `max_time_s`, `processors`, \
             `idle_cpu_never_wakes`, `processors_idle_for_good`, `blocks`, \
             `stream`, `burst`, `process`, `bonnie`, `hdparm`, `iozone`; did you mean `blocks`?",
        ),
        (
            "\n[[blocks]]\ndepth = 1",
            "x.toml:2: blocks[0]: it never ends: give requests here, or requests or max_time_s for the whole load",
        ),
        (
            "requests = 1\n[[blocks]]\ndepth = 1\nthink_time = \"1ms\"",
            "x.toml:4: blocks[0].think_time: it says nothing without processes",
        ),
        ("requests = 1\n[[blocks]]", "x.toml:2: blocks[0]: give one of depth, processes and gap"),
        (
            "requests = 1\n[[blocks]]\ndepth = 1\ngap = \"1ms\"",
            "x.toml:2: blocks[0]: give only one of depth, processes and gap",
        ),
        (
            "requests = 1\n[[blocks]]\ngap = \"exponental(20ms)\"",
            "x.toml:3: blocks[0].gap: `exponental` is no distribution; known: constant, uniform, exponential, normal, \
             poisson, two-valued, pareto, empirical; did you mean `exponential`?",
        ),
        (
            "requests = 1\n[[blocks]]\ngap = \"20\"",
            "x.toml:3: blocks[0].gap: `20` is no distribution; write a value or NAME(VALUE,…), such as exponential(20ms)",
        ),
        (
            "requests = 1\n[[blocks]]\ndepth = 1\nread_share = 1.2",
            "x.toml:4: blocks[0].read_share: 1.2 is outside 0 to 1",
        ),
        ("requests = 1\n[[blocks]]\ndepth = 0", "x.toml:3: blocks[0].depth: 0 is outside 1 to 65536"),
        ("requests = 0\n[[blocks]]\ndepth = 1", "x.toml:1: requests: 0 is outside 1 and more"),
        ("processors = 0\n[[blocks]]\ndepth = 1", "x.toml:1: processors: 0 is outside 1 to 65536"),
        ("max_time_s = -1", "x.toml:1: max_time_s: -1 is outside 0.000000001 to 1000000000 s"),
        (
            "requests = 1\n[[blocks]]\ndepth = 1\npopularity = \"zipf(1)\"",
            "x.toml:4: blocks[0].popularity: it needs group_bytes",
        ),
        (
            "requests = 1\n[[stream]]\nstreams = 65536\ndepth = 17",
            "x.toml:4: stream[0].depth: 1114112 requests outstanding in all streams, where 1048576 are allowed",
        ),
        (
            "requests = 1\n[[stream]]\nop = \"erase\"",
            "x.toml:3: stream[0].op: unknown variant `erase`, expected `read` or `write`",
        ),
        ("[[burst]]\ntimes = 3", "x.toml:1: burst[0]: missing field `run_bytes`"),
        (
            "requests = 1\n[[process]]\nsize_sectors = \"8\"\nlocal_share = 0.7\nsequential_share = 0.7",
            "x.toml:4: process[0].local_share: 0.7 and sequential_share are more than 1 together",
        ),
        (
            "[[process]]\nsize_sectors = \"8\"",
            "x.toml:1: process[0]: it never ends: give requests here, or requests or max_time_s for the whole load",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(text), expected);
    }
}

#[test]
fn every_unfit_load_is_rejected_in_one_line() {
    let refused = |text: &str, volumes: &[VolumeInfo]| {
        parse(text).build(volumes, 1).err().expect("the load does not fit").to_string()
    };
    let cases = [
        (
            "requests = 1\n[[blocks]]\ndepth = 1\narea.volume = \"sdc\"",
            "x.toml:4: blocks[0].area.volume: the rig has no volume `sdc`; did you mean `sda`?",
        ),
        (
            "requests = 1\n[[blocks]]\ndepth = 1\nrequest_bytes = 1000",
            "x.toml:4: blocks[0].request_bytes: 1000 bytes are no whole number of sectors of 512 bytes",
        ),
        (
            "requests = 1\n[[blocks]]\ndepth = 1\narea = { offset_bytes = 100000000000000 }",
            "x.toml:4: blocks[0].area.offset_bytes: 100000000000000 is not before the end of `sda`",
        ),
        (
            "requests = 1\n[[blocks]]\ndepth = 1\narea = { size_bytes = 100000000000000 }",
            "x.toml:4: blocks[0].area.size_bytes: more than the 80026361856 bytes left of `sda`",
        ),
        (
            "requests = 1\n[[stream]]\nstreams = 10\narea = { size_bytes = 8192 }",
            "x.toml:4: stream[0].area: no aligned request of 8 sectors fits in the 1 sectors from block 0 on",
        ),
        (
            "requests = 1\n[[blocks]]\ndepth = 1\npopularity = \"even\"\ngroup_bytes = 512",
            "x.toml:5: blocks[0].group_bytes: there are 156301488 groups, where at most 16777216 are allowed",
        ),
        (
            "requests = 1\n[[process]]\nsize_sectors = \"8\"\ncapacity_sectors = 20000000",
            "x.toml:4: process[0].capacity_sectors: 20000000 are more than the 10000000 sectors of `sdb`",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(text, &volumes()), expected);
    }
    assert_eq!(refused(cases[0].0, &[]), "x.toml:4: blocks[0].area.volume: the rig has no volume `sdc`");
    assert_eq!(
        refused("requests = 1\n[[blocks]]\ndepth = 1", &[]),
        "x.toml:2: blocks[0].area: the rig has no volume"
    );
    assert_eq!(LoadFile::from_spec(&LoadSpec::default(), "y").expect_err("it is empty").origin, "y");
}
