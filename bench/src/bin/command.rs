//! The speed of the `headstack sim` command: requests per CPU second and peak memory of whole runs of 1 to 50 million requests.
//!
//! `make command` runs it; `bench/runs/` keeps its output, with the machine and the commit. The memory is the peak of the process's resident
//! set that Linux reports (`VmHWM`).

#![allow(clippy::disallowed_methods, reason = "a benchmark starts the command and watches it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Each job's name, its keys without the number of requests, and its number of processes.
const JOBS: [(&str, &str, u64); 2] = [
    ("100 sequential 64 KiB streams", "rw=read\nbs=64k\nnumjobs=100\noffset_increment=1%\n", 100),
    ("random 4 KiB reads at depth 32", "rw=randread\nbs=4k\nioengine=libaio\niodepth=32\nnorandommap\n", 1),
];

/// Requests in each run of a job, over all processes.
const REQUESTS: [u64; 3] = [1_000_000, 10_000_000, 50_000_000];

/// Peak of the resident set in KiB so far; none once the process has ended.
fn peak_kib(process: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").trim().parse().ok()
}

/// Runs a job once; returns the requests per CPU second and the peak memory in KiB.
fn run(headstack: &Path, job: &Path) -> (f64, u64) {
    let results = job.with_extension("json");
    let mut process = Command::new(headstack)
        .args(["sim", "atlas-10k"])
        .arg(job)
        .arg("--json")
        .arg(&results)
        .stdout(Stdio::null())
        .spawn()
        .expect("the command was built (make command does)");
    let mut peak = 0;
    while process.try_wait().expect("it can be waited for").is_none() {
        peak = peak.max(peak_kib(&process).unwrap_or(0));
        sleep(Duration::from_millis(5));
    }
    let text = fs::read_to_string(&results).expect("the run wrote its results");
    let key = "\"requests_per_cpu_s\": ";
    let number = text.split(key).nth(1).and_then(|rest| rest.split(',').next());
    (number.and_then(|number| number.parse().ok()).expect("the results tell the speed"), peak)
}

fn main() {
    let own = std::env::current_exe().expect("a program has a file");
    let folder: PathBuf = own.parent().expect("a file lies in a folder").into();
    let (headstack, job) = (folder.join("headstack"), folder.join("bench-job.fio"));
    println!("load\trequests\trequests_per_cpu_s\tpeak_kib");
    for (name, keys, clones) in JOBS {
        for requests in REQUESTS {
            let each = requests / clones;
            let text = format!("[job]\nfilename=/dev/sda\ndirect=1\nio_size=1p\nnumber_ios={each}\n{keys}");
            fs::write(&job, text).expect("the build's folder is writable");
            let (rate, peak) = run(&headstack, &job);
            println!("{name}\t{requests}\t{rate:.0}\t{peak}");
        }
    }
}
