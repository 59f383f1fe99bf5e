//! Every job in `jobs/` is run by fio and by this crate. Both must issue the same sequences, counts and shares.
//!
//! fio runs a job for a disk on a sparse file of 1 TiB, and a job for files with its null engine. A run ends after a number of requests
//! instead of a time, and has no pauses. Neither changes the requests.

use crate::ours::{Access, Kind, SECTOR, run};
use crate::real::{assert_same_shares, clones_of, has_fio};
use crate::shipped::jobs;
use headstack_model::{Nanos, Op};
use headstack_workload::VolumeInfo;
use headstack_workload::fio::JobFile;
use std::path::Path;
use std::process::Command;

/// Bytes of the disk that the jobs are on.
const DISK: u64 = 1 << 40;
/// Number of requests of a clone whose job does not specify one.
const REQUESTS: u64 = 60;
/// Keys that limit or extend the time of a run.
const TIMES: [&str; 7] = ["time_based", "runtime", "ramp_time", "startdelay", "thinktime", "rate", "thread"];

/// The job with a limit on requests instead of time; with `disk`, the form for fio, on a file of that name.
fn bounded(text: &str, disk: Option<&str>) -> String {
    let is_on_disk = text.contains("filename=/dev/") || text.contains("uri=");
    let engine = if is_on_disk { "libaio" } else { "null" };
    let mut all = String::new();
    for line in text.lines() {
        let key = line.split('=').next().unwrap_or_default();
        let line = match (key, disk) {
            (key, _) if TIMES.contains(&key) => continue,
            ("direct", Some(_)) => continue,
            ("ioengine", Some(_)) => format!("ioengine={engine}"),
            ("uri", Some(disk)) => format!("filename={disk}"),
            ("filename", Some(disk)) if line.contains("/dev/") => format!("filename={disk}"),
            _ => line.to_string(),
        };
        all += &line;
        all.push('\n');
        if line.starts_with('[') && line != "[global]" {
            all += &format!("number_ios={REQUESTS}\n");
        }
    }
    all
}

/// The requests that fio issues, clone by clone.
fn theirs(text: &str) -> Vec<Vec<Access>> {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let disk = folder.path().join("disk");
    let file = std::fs::File::create(&disk).expect("the folder is writable");
    file.set_len(DISK).expect("a hole takes no room");
    let job = bounded(text, Some(disk.to_str().expect("the path is UTF-8")));
    std::fs::write(folder.path().join("job.fio"), &job).expect("the folder is writable");
    let output = Command::new("fio")
        .current_dir(folder.path())
        .args(["--debug=io", "job.fio"])
        .output()
        .expect("fio runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{job}");
    clones_of(&String::from_utf8_lossy(&output.stdout))
}

/// The requests that our load issues, clone by clone, with the section of each.
fn ours(path: &Path, text: &str) -> Vec<(u32, Vec<Access>)> {
    let name = path.display().to_string();
    let mut nothing = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    let file = JobFile::parse(&bounded(text, None), &name, &mut nothing, &|_| None)
        .unwrap_or_else(|error| panic!("{error}"));
    let disk = VolumeInfo {
        name: "disk0".to_string(),
        sectors: DISK / u64::from(SECTOR),
        sector_bytes: SECTOR,
        zones: None,
    };
    let mut load = file.build(&[disk], 1).unwrap_or_else(|error| panic!("{error}"));
    let mut clones: Vec<(u32, Vec<Access>)> =
        load.jobs().iter().map(|job| (job.section, Vec::new())).collect();
    for timed in run(&mut load, Nanos(1000), 1_000_000) {
        let request = timed.issue.request;
        let first = request.lbn.0 * u64::from(SECTOR);
        let inside = |file: &&headstack_workload::fio::FioFile| {
            (file.first_byte..file.first_byte + file.bytes).contains(&first)
        };
        let base = load.files().iter().find(inside).expect("a request lies in a file").first_byte;
        let (op, offset) = match request.op {
            Op::Read => (Kind::Read, first - base),
            Op::Write => (Kind::Write, first - base),
            Op::Flush => (Kind::Sync, 0),
        };
        let bytes = u64::from(request.sectors) * u64::from(SECTOR);
        clones[timed.issue.source as usize].1.push(Access { file: String::new(), op, offset, bytes });
    }
    clones
}

/// The accesses without the parts that the two sides name differently.
fn nameless(all: Vec<Access>) -> Vec<Access> {
    let plain = |access: Access| match access.op {
        Kind::Sync => Access { file: String::new(), op: Kind::Sync, offset: 0, bytes: 0 },
        _ => Access { file: String::new(), ..access },
    };
    all.into_iter().map(plain).collect()
}

#[test]
fn every_shipped_job_issues_same_requests_as_fio() {
    if !has_fio() {
        return;
    }
    for path in jobs() {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).expect("a job is text");
        let theirs: Vec<Vec<Access>> = theirs(&text).into_iter().map(nameless).collect();
        let ours = ours(&path, &text);
        assert_eq!(theirs.len(), ours.len(), "{name}: clones");
        let sections = ours.iter().map(|(section, _)| *section).max().map_or(0, |last| last + 1);
        for section in 0..sections {
            let numbers: Vec<usize> = (0..ours.len()).filter(|at| ours[*at].0 == section).collect();
            let mut found: Vec<Vec<Access>> =
                numbers.iter().map(|at| nameless(ours[*at].1.clone())).collect();
            let mut wanted: Vec<Vec<Access>> = numbers.iter().map(|at| theirs[*at].clone()).collect();
            // The clones are sorted: the process ids of fio's clones do not show their order.
            found.sort();
            wanted.sort();
            let what = format!("{name}, job {section}");
            let is_drawn = found.iter().flatten().any(|access| access.offset % access.bytes.max(1) != 0)
                || !is_steady(&found[0]);
            if !is_drawn {
                assert_eq!(found, wanted, "{what}");
                continue;
            }
            let counts = |all: &[Vec<Access>]| {
                let mut counts: Vec<usize> = all.iter().map(Vec::len).collect();
                counts.sort_unstable();
                counts
            };
            assert_eq!(counts(&found), counts(&wanted), "{what}: requests");
            let (found, wanted) = (found.concat(), wanted.concat());
            let both = (&found[..], &wanted[..]);
            assert_same_shares(&what, both, |access| (access.op, access.bytes));
            let end = found.iter().chain(&wanted).map(|access| access.offset).max().unwrap_or(0) + 1;
            // With a Zipf distribution the popular places differ, because fio's random numbers are not reproduced.
            if !text.contains("zipf") {
                assert_same_shares(&what, both, |access| access.offset / end.div_ceil(10));
            }
        }
    }
}

/// Whether each access begins where the previous one ended.
fn is_steady(all: &[Access]) -> bool {
    let data: Vec<&Access> = all.iter().filter(|access| access.op != Kind::Sync).collect();
    data.windows(2).all(|pair| pair[0].offset + pair[0].bytes == pair[1].offset)
}
