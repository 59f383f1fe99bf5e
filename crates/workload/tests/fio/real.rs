//! The same job files are run by fio itself, with its null engine, and by this crate. The requests are compared with fio's log or debug output.
//!
//! `rw=read` and `rw=write` must agree request by request. If requests are random, their shares must agree to four standard deviations of
//! the difference of two samples. Everything that does not depend on random numbers must agree exactly.

use crate::ours::{Access, Kind, accesses, accesses_on};
use headstack_workload::VolumeInfo;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

pub(crate) fn has_fio() -> bool {
    headstack_prerequisites::have_programs(&["fio"])
}

/// The accesses of each clone, as fio makes them.
pub(crate) fn fio(text: &str) -> Vec<Vec<Access>> {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let mut job = String::from("[global]\nioengine=null\n");
    let mut logs = Vec::new();
    for line in text.lines() {
        job.push_str(line);
        job.push('\n');
        if line.starts_with('[') && !line.starts_with("[global") {
            let log = format!("log{}", logs.len());
            job.push_str(&format!("write_iolog={log}\n"));
            logs.push(log);
        }
    }
    std::fs::write(folder.path().join("job.fio"), job).expect("the folder is writable");
    // fio's debug output is used instead of its log if there are clones, which the log does not distinguish, or a queue depth, with which the
    // null engine logs a request twice that it accepted at the second attempt.
    let reported = text.contains("numjobs") || text.contains("iodepth");
    let mut command = Command::new("fio");
    command.current_dir(folder.path()).arg("job.fio");
    if reported {
        command.arg("--debug=io");
    }
    let output = command.output().expect("fio runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{}\n{text}", String::from_utf8_lossy(&output.stdout));
    if reported {
        return clones_of(&String::from_utf8_lossy(&output.stdout));
    }
    logs.iter().map(|log| read_log(&folder.path().join(log))).collect()
}

/// The numbers of reads and writes of each job, or of each group with `group_reporting`, as fio reports them.
pub(crate) fn totals(text: &str) -> Vec<[u64; 2]> {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    std::fs::write(folder.path().join("job.fio"), text).expect("the folder is writable");
    let mut command = Command::new("fio");
    let output = command.current_dir(folder.path()).args(["--output-format=json", "job.fio"]).output();
    let output = output.expect("fio runs");
    let reported = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}{reported}\n{text}", String::from_utf8_lossy(&output.stderr));
    let numbers = reported.lines().filter_map(|line| line.trim().strip_prefix("\"total_ios\" : "));
    let numbers: Vec<u64> =
        numbers.map(|number| number.trim_end_matches(',').parse().expect("a number")).collect();
    // Reads, writes, trims and flushes of each job.
    numbers.chunks(4).map(|job| [job[0], job[1]]).collect()
}

/// A log of version 3: `time file action offset bytes`.
fn read_log(path: &Path) -> Vec<Access> {
    let text = std::fs::read_to_string(path).expect("fio wrote its log");
    let access = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let op = match *fields.get(2)? {
            "read" => Kind::Read,
            "write" => Kind::Write,
            "sync" | "datasync" => Kind::Sync,
            _ => return None,
        };
        let number = |at: usize| fields[at].parse::<u64>().expect("fio writes numbers");
        let (offset, bytes) = if op == Kind::Sync { (0, 0) } else { (number(3), number(4)) };
        Some(Access { file: fields[1].to_string(), op, offset, bytes })
    };
    text.lines().skip(1).filter_map(access).collect()
}

/// fio's debug output for each request of each clone: `io PID fill: io_u ADDRESS: off=0x…,len=0x…,ddir=…,file=…`.
pub(crate) fn clones_of(reported: &str) -> Vec<Vec<Access>> {
    let mut clones: BTreeMap<u64, Vec<Access>> = BTreeMap::new();
    for line in reported.lines().filter(|line| line.contains(" fill: io_u ")) {
        let process = line.split_whitespace().nth(1).and_then(|id| id.parse().ok()).expect("a process");
        let field = |name: &str| {
            let rest = line.split(name).nth(1).unwrap_or_else(|| panic!("no {name} in {line}"));
            rest.split(',').next().unwrap_or_default().trim().to_string()
        };
        let number = |name: &str| {
            let text = field(name);
            u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a number")
        };
        let op = match number("ddir=") {
            0 => Kind::Read,
            1 => Kind::Write,
            _ => Kind::Sync,
        };
        let access = Access { file: field("file="), op, offset: number("off="), bytes: number("len=") };
        clones.entry(process).or_default().push(access);
    }
    clones.into_values().collect()
}

/// Job files whose requests do not depend on any draw.
const EXACT: [&str; 26] = [
    "[j]\nrw=read\nbs=4k\nsize=1m",
    "[j]\nrw=write\nbs=64k\nsize=10m",
    "[j]\nrw=read\nbs=4k\nsize=10k",
    "[j]\nrw=write\nbs=3k\nsize=100k",
    "[j]\nrw=read\nbs=4k,8k\nsize=64k\n[k]\nrw=write\nbs=4k,8k\nsize=64k",
    "[j]\nrw=read\nbs=8k\nsize=1m\noffset=256k",
    "[j]\nrw=read\nbs=8k\nsize=1m\nfilesize=512k\noffset=25%",
    "[j]\nrw=read\nbs=4k\nsize=64k\nio_size=200k",
    "[j]\nrw=read\nbs=4k\nsize=64k\nio_size=20k",
    "[j]\nrw=write\nbs=4k\nsize=64k\nloops=3",
    "[j]\nrw=write\nbs=4k\nsize=1m\nnumber_ios=17",
    "[j]\nrw=write\nbs=4k\nsize=32k\nnumber_ios=11\nloops=2",
    "[j]\nrw=read\nbs=4k\nsize=100k\nnrfiles=3",
    "[j]\nrw=read\nbs=4k\nsize=100k\nnrfiles=4\nfile_service_type=sequential",
    "[j]\nrw=read\nbs=4k\nsize=256k\nnrfiles=4\nfile_service_type=roundrobin:3",
    "[j]\nrw=read\nbs=4k\nfilename=a:b:c\nsize=120k",
    "[j]\nrw=read\nbs=4k\nnrfiles=2\nfilesize=32k",
    "[j]\nrw=write:8k\nbs=4k\nsize=1m\nnumber_ios=100",
    "[j]\nrw=read:-8k\nbs=4k\nsize=256k\nnumber_ios=40",
    "[j]\nrw=write\nbs=4k\nsize=256k\nfsync=8",
    "[j]\nrw=write\nbs=4k\nsize=256k\nfdatasync=5\nnrfiles=2",
    "[j]\nrw=read\nbs=4k\nsize=256k\niodepth=16",
    "[global]\nbs=8k\n[a]\nsize=64k\n[global]\nbs=16k\n[b]\nrw=write\nsize=64k\n[c]\nstonewall\nsize=32k",
    "[j]\nrw=read\nbs=16k\nsize=128k\nnumjobs=3",
    "[j]\nrw=read\nbs=16k\nsize=128k\nnumjobs=3\nfilename=shared\noffset_increment=96k",
    "[j]\nrw=write\nkb_base=1000\nbs=4kib\nsize=40kib\nio_size=1000kib\nnumjobs=2\nloops=2",
];

#[test]
fn sequential_requests_equal_fio_one_by_one() {
    if !has_fio() {
        return;
    }
    EXACT.iter().for_each(|text| assert_same_requests(text));
}

/// Asserts that fio and this crate make the same requests, clone by clone.
#[track_caller]
pub(crate) fn assert_same_requests(text: &str) {
    let same_engine = format!("[global]\nioengine=null\n{text}");
    let (mut wanted, found) = (fio(text), accesses(&same_engine, 1));
    // fio does not log the size of a flush.
    for access in wanted.iter_mut().flatten().filter(|access| access.op == Kind::Sync) {
        (access.offset, access.bytes) = (0, 0);
    }
    let unfile = |access: &Access| match access.op {
        Kind::Sync => Access { file: String::new(), ..access.clone() },
        _ => access.clone(),
    };
    let strip =
        |all: &[Vec<Access>]| all.iter().map(|c| c.iter().map(unfile).collect()).collect::<Vec<Vec<_>>>();
    assert!(wanted.iter().all(|clone| !clone.is_empty()), "{text}");
    let (mut found, mut wanted) = (strip(&found), strip(&wanted));
    if text.contains("numjobs") {
        // The clones are sorted: the process ids of fio's clones do not show their order.
        found.sort();
        wanted.sort();
    }
    assert_eq!(found.len(), wanted.len(), "clones\n{text}");
    for (found, wanted) in found.iter().zip(&wanted) {
        let first = (0..found.len().max(wanted.len())).find(|at| found.get(*at) != wanted.get(*at));
        let Some(at) = first else { continue };
        panic!("request {at} is {:?}, fio's {:?}\n{text}", found.get(at), wanted.get(at));
    }
}

/// Sectors of a device. For most request sizes, its end cuts the last request short.
const DEVICE_SECTORS: u64 = 2055;

/// Jobs on an existing device, whose sizes and offsets may be shares of the device. None extends beyond the device's end, because fio would
/// extend the file that stands for it, which it could not do with a device.
const ON_DEVICE: [&str; 11] = [
    "bs=4k",
    "bs=64k",
    "bs=4k\nsize=10k",
    "bs=4k\nsize=50%",
    "bs=4k\noffset=30%",
    "bs=4k\noffset=30%\nsize=50%",
    "bs=8k\noffset=10%\noffset_align=64k\nsize=100k",
    "bs=4k\nsize=64k\nio_size=50%",
    "bs=16k\nsize=20%\nnumjobs=3\noffset_increment=20%",
    "bs=4k\nfilesize=100k",
    "bs=12k\nsize=100%\nloops=2",
];

#[test]
fn sequential_device_requests_equal_fio_one_by_one() {
    if !has_fio() {
        return;
    }
    // A sparse file stands for the device. fio reads it with its default engine.
    let device = tempfile::NamedTempFile::new().expect("there is room for a file");
    device.as_file().set_len(DEVICE_SECTORS * 512).expect("it takes no room");
    let path = device.path().display().to_string();
    let volume =
        VolumeInfo { name: "disk".to_string(), sectors: DEVICE_SECTORS, sector_bytes: 512, zones: None };
    for keys in ON_DEVICE {
        let theirs = fio(&format!("[j]\nioengine=psync\nfilename={path}\nrw=read\n{keys}"));
        let ours = accesses_on(
            &format!("[j]\nfilename=/dev/disk\nrw=read\n{keys}"),
            std::slice::from_ref(&volume),
            1,
        );
        let plain = |clones: Vec<Vec<Access>>| -> Vec<Vec<(u64, u64)>> {
            let plain = |clone: Vec<Access>| clone.iter().map(|a| (a.offset, a.bytes)).collect();
            let mut clones: Vec<Vec<_>> = clones.into_iter().map(plain).collect();
            clones.sort();
            clones
        };
        assert_eq!(plain(ours), plain(theirs), "{keys}");
    }
}

/// Job files with random requests. All have one clone.
const DRAWN: [&str; 19] = [
    "[j]\nrw=randread\nbs=4k\nsize=1t\nnumber_ios=20000",
    "[j]\nrw=randread\nbs=4k\nsize=64m",
    "[j]\nrw=randwrite\nbs=4k\nsize=64m\nnumber_ios=5000",
    "[j]\nrw=randread\nbs=4k\nsize=64m\nnorandommap",
    "[j]\nrw=randread\nbs=4k\nba=1k\nsize=32m",
    "[j]\nrw=rw\nbs=4k\nsize=64m",
    "[j]\nrw=rw\nrwmixread=80\nbs=4k\nsize=64m",
    "[j]\nrw=randrw\nrwmixwrite=30\nbs=4k\nsize=64m",
    "[j]\nrw=randrw\nrwmixread=70\nbs=4k,16k\nsize=64m\nnorandommap",
    "[j]\nrw=read\nbsrange=4k-64k\nsize=256m",
    "[j]\nrw=write\nbsrange=4k-10k\nsize=64m",
    "[j]\nrw=randread\nbsrange=4k-64k\nsize=64m",
    "[j]\nrw=randread\nbsrange=4k-64k\nsize=256m\nnorandommap",
    "[j]\nrw=write\nbssplit=4k/10:64k/50:32k/40\nsize=512m",
    "[j]\nrw=randrw\nbssplit=4k/50:8k/,16k/\nsize=128m\nnorandommap",
    "[j]\nrw=randread\npercentage_random=25\nbs=4k\nsize=64m\nnorandommap",
    "[j]\nrw=randread:8\nbs=4k\nsize=64m\nnorandommap",
    "[j]\nrw=randrw\nbs=4k,64k\nbs_is_seq_rand=1\npercentage_random=50\nsize=256m\nnorandommap",
    "[j]\nrw=randread\nbs=8k\nsize=16m\nio_size=64m\nnrfiles=4\nfile_service_type=random",
];

/// Job files with uneven popularity. The frequencies of the most popular offsets must agree, but not the offsets themselves.
const UNEVEN: [&str; 6] = [
    "[j]\nrw=randread\nbs=4k\nsize=64m\nrandom_distribution=zipf:1.2",
    "[j]\nrw=randread\nbs=4k\nsize=64m\nrandom_distribution=zipf:0.8:0.25",
    "[j]\nrw=randread\nbs=4k\nsize=64m\nrandom_distribution=pareto:0.2",
    "[j]\nrw=randread\nbs=4k\nsize=64m\nrandom_distribution=normal:10",
    "[j]\nrw=randread\nbs=4k\nsize=64m\nrandom_distribution=zoned:60/10:30/20:8/30:2/40",
    "[j]\nrw=randread\nbs=4k\nsize=64m\nrandom_distribution=zoned_abs:60/4m:40/44m",
];

/// Asserts that two counts, one per sample, are of one share, to four standard deviations.
fn assert_alike(what: &str, (ours, all_ours): (usize, usize), (theirs, all_theirs): (usize, usize)) {
    let share = (ours + theirs) as f64 / (all_ours + all_theirs) as f64;
    let spread = share * (1.0 - share) * (1.0 / all_ours as f64 + 1.0 / all_theirs as f64);
    let apart = (ours as f64 / all_ours as f64 - theirs as f64 / all_theirs as f64).abs();
    assert!(apart <= 4.0 * spread.sqrt(), "{what}: {ours} of {all_ours}, fio {theirs} of {all_theirs}");
}

/// The number of accesses with each value of `of`.
fn counts<K: Ord>(all: &[Access], of: impl Fn(&Access) -> K) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    all.iter().for_each(|access| *counts.entry(of(access)).or_default() += 1);
    counts
}

/// Asserts that each value of `of` has the same share in both samples.
pub(crate) fn assert_same_shares<K: Ord + Copy + std::fmt::Debug>(
    what: &str,
    (ours, theirs): (&[Access], &[Access]),
    of: impl Fn(&Access) -> K,
) {
    let (found, wanted) = (counts(ours, &of), counts(theirs, &of));
    for key in found.keys().chain(wanted.keys()) {
        let count = |all: &BTreeMap<K, usize>| all.get(key).copied().unwrap_or(0);
        let what = format!("{what}: {key:?}");
        assert_alike(&what, (count(&found), ours.len()), (count(&wanted), theirs.len()));
    }
}

/// The number of accesses that begin where the previous one ended.
fn follows(all: &[Access]) -> usize {
    all.windows(2).filter(|pair| pair[0].offset + pair[0].bytes == pair[1].offset).count()
}

/// The accesses that do not begin where the previous one ended.
fn starts(all: &[Access]) -> Vec<Access> {
    let is_start = |pair: &&[Access]| pair[0].offset + pair[0].bytes != pair[1].offset;
    all.windows(2).filter(is_start).map(|pair| pair[1].clone()).collect()
}

#[test]
fn drawn_requests_match_fio_in_number_size_and_mix() {
    if !has_fio() {
        return;
    }
    for text in DRAWN {
        let (theirs, ours) = (fio(text).remove(0), accesses(text, 1).remove(0));
        let bytes = |all: &[Access]| all.iter().map(|access| access.bytes).sum::<u64>();
        let most = ours.iter().map(|access| access.bytes).max().expect("there are requests");
        assert!(bytes(&ours).abs_diff(bytes(&theirs)) <= most, "{text}: {} {}", bytes(&ours), bytes(&theirs));
        let both = (&ours[..], &theirs[..]);
        assert_same_shares(text, both, |access| access.op);
        assert_same_shares(text, both, |access| (access.op, access.bytes));
        // Near the end of a pass that visits each block once, adjacent blocks are chosen in clusters, so that the shares are not comparable.
        if !text.contains("rand") || text.contains("norandommap") {
            assert_alike(text, (follows(&ours), ours.len()), (follows(&theirs), theirs.len()));
        }
        let end = ours.iter().map(|access| access.offset).max().expect("there are requests") + 1;
        if text.contains("rand") {
            // Requests that continue the previous one are not separate random draws.
            let (ours, theirs) = (starts(&ours), starts(&theirs));
            assert_same_shares(text, (&ours, &theirs), |access| access.offset * 16 / end);
        }
        if text.contains("nrfiles") {
            let file = |access: &Access| access.file.bytes().last();
            assert_same_shares(text, both, file);
        }
        let fixed = !text.contains("bsrange") && !text.contains("bs=4k,");
        if fixed && text.contains("rand") && !text.contains("norandommap") && !text.contains("ba=") {
            let met = |all: &[Access]| counts(all, |access| (access.file.clone(), access.offset));
            let passes = if text.contains("io_size") { 4 } else { 1 };
            assert!(met(&ours).values().all(|times| *times <= passes), "{text}: a block was met twice");
            assert!(met(&theirs).values().all(|times| *times <= passes), "{text}: so it is with fio");
        }
    }
}

#[test]
fn popular_places_match_fio_in_popularity() {
    if !has_fio() {
        return;
    }
    for text in UNEVEN {
        let (theirs, ours) = (fio(text).remove(0), accesses(text, 1).remove(0));
        assert_eq!(ours.len(), theirs.len(), "{text}");
        let popular = |all: &[Access]| {
            let mut counts: Vec<usize> = counts(all, |access| access.offset).into_values().collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            counts
        };
        let (found, wanted) = (popular(&ours), popular(&theirs));
        if text.contains("zoned") {
            assert_same_shares(text, (&ours, &theirs), |access| access.offset * 20 / (64 << 20));
            continue;
        }
        // Compares the accesses of the N most popular places together: which of several places is the next popular one is random.
        for most in [1, 10, 100, 1000] {
            let sum = |all: &[usize]| all.iter().take(most).sum::<usize>();
            let what = format!("{text}: the {most} most popular");
            assert_alike(&what, (sum(&found), ours.len()), (sum(&wanted), theirs.len()));
        }
        assert_alike(text, (found.len(), 1 << 14), (wanted.len(), 1 << 14));
    }
}
