//! Whether a client of the emulated disk measures the response times that `headstack sim` computes for the same requests.
//!
//! fio draws each job's requests once, into a log. It then replays that log on the emulated disk, which runs at real speed, as fast as the
//! job's depth allows; `headstack sim` replays it in virtual time. The two distributions differ by the path to the disk, the machine's
//! lateness, and chance. A request that is slightly later meets the platter at another angle, and with a queue or a write cache every later
//! response differs. The effect of chance is measured by simulations with a few additional requests before the log's.

use crate::device::Loop;
use crate::emulator::{Emulator, Setup};
use crate::tools::{attempt, folder, have, have_loops_and, run, text};
use headstack_model::{Instant, Nanos};
use headstack_sim::stats::demerit;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fio job.
struct Job {
    name: &'static str,
    /// The requests, in the keys of a fio job file.
    asks: &'static str,
    /// Number of outstanding requests.
    depth: usize,
}

/// The sizes are large enough that the disk's time exceeds that of the path to it, even if the drive's cache serves most requests. They are
/// small enough that the kernel does not split a request to a loop device, as it splits 1 MiB.
const JOBS: [Job; 5] = [
    Job { name: "random reads 4k", asks: "rw=randread\nbs=4k", depth: 1 },
    Job { name: "random writes 16k", asks: "rw=randwrite\nbs=16k", depth: 4 },
    Job { name: "70 % reads 8k", asks: "rw=randrw\nrwmixread=70\nbs=8k", depth: 8 },
    Job { name: "sequential 256k", asks: "rw=read\nbs=256k", depth: 1 },
    Job { name: "random reads 4k", asks: "rw=randread\nbs=4k", depth: 32 },
];

/// How a client reaches the disk.
#[derive(Clone, Copy)]
enum Way {
    Nbd,
    Loop,
}

/// A line of a log, which is one request.
type Line = String;

/// A completed request: its offset in bytes and its response time.
struct Response {
    offset: u64,
    took: Nanos,
}

impl Job {
    /// Draws requests with fio, for a disk of `bytes` bytes.
    fn draw(&self, folder: &Path, bytes: u64, requests: usize) -> Vec<Line> {
        let (asks, path, log) = (self.asks, folder.join("draw.fio"), folder.join("drawn"));
        // At a depth of one, fio's null engine logs each request once. The drawn requests do not depend on the depth.
        let job = format!(
            "[draw]\nioengine=null\nfilename=disk\nsize={bytes}\nnorandommap\n{asks}\nnumber_ios={requests}\n\
             write_iolog={}\n",
            text(&log)
        );
        fs::write(&path, job).expect("the folder is writable");
        run("fio", &[text(&path)]);
        let log = fs::read_to_string(log).expect("fio wrote it");
        let is_request = |line: &&str| line.contains(" read ") || line.contains(" write ");
        log.lines().filter(is_request).map(str::to_string).collect()
    }

    /// Writes a log of requests and a job that replays it on a disk. Returns the job's path.
    fn replay(&self, folder: &Path, lines: &[Line], disk: &str) -> PathBuf {
        let (path, log, depth) = (folder.join("replay.fio"), folder.join("log"), self.depth);
        let asked = lines.iter().fold(String::new(), |all, line| all + line + "\n");
        fs::write(&log, format!("fio version 3 iolog\n0 disk add\n0 disk open\n{asked}0 disk close\n"))
            .expect("the folder is writable");
        let log = text(&log);
        let job = format!("[replay]\n{disk}\niodepth={depth}\nread_iolog={log}\nreplay_no_stall=1\n");
        fs::write(&path, job).expect("the folder is writable");
        path
    }

    /// The simulated responses to a log, in the order of its requests, each with its time of issue.
    fn simulated(&self, folder: &Path, lines: &[Line], drive: &str) -> Vec<(Instant, Response)> {
        let table = folder.join("simulated.csv");
        let path = self.replay(folder, lines, "filename=/dev/disk\nioengine=libaio\ndirect=1");
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstack"));
        let done = command
            .args(["sim", drive, text(&path), "--requests", text(&table)])
            .output()
            .expect("it starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let table = fs::read_to_string(table).expect("it was written");
        let names: Vec<&str> = table.lines().next().expect("it has a head").split(',').collect();
        let column = |wanted| names.iter().position(|name| *name == wanted).expect("it is a column");
        let [time, offset, response] = ["time_ns", "offset", "response_ns"].map(column);
        let row = |line: &str| {
            let response = Response { offset: number(line, offset), took: Nanos(number(line, response)) };
            (Instant(number(line, time)), response)
        };
        table.lines().skip(1).map(row).collect()
    }

    /// The responses that fio measures when it replays a log on the emulated disk.
    fn measured(&self, folder: &Path, lines: &[Line], emulator: &Emulator, way: Way) -> Vec<Response> {
        let device = matches!(way, Way::Loop).then(|| Loop::over(&emulator.file()));
        let disk = match &device {
            None => format!("ioengine=nbd\nuri={}\nfilename=disk\nreplay_redirect=disk", emulator.uri()),
            Some(device) => {
                device.leave_order_to_the_disk();
                let name = device.device();
                format!("ioengine=libaio\ndirect=1\nfilename={name}\nreplay_redirect={name}")
            }
        };
        let times = folder.join("times");
        // The latency log has its full length from the start: fio lets the queue run empty whenever it enlarges the log.
        let log = format!("thread\nlog_offset=1\nlog_entries={MOST}\nwrite_lat_log={}", text(&times));
        let disk = format!("{disk}\n{log}");
        let done = attempt("fio", &[text(&self.replay(folder, lines, &disk))]);
        done.unwrap_or_else(|error| panic!("{error}the emulator said {}", emulator.said()));
        let table = fs::read_to_string(folder.join("times_lat.1.log")).expect("it was written");
        let row = |line: &str| Response { took: Nanos(number(line, 1)), offset: number(line, 4) };
        table.lines().map(row).collect()
    }
}

fn number(line: &str, column: usize) -> u64 {
    let field = line.split(',').nth(column).map(str::trim);
    field.and_then(|field| field.parse().ok()).unwrap_or_else(|| panic!("no number in {line}"))
}

fn mean_ms(times: &[Nanos]) -> f64 {
    times.iter().map(|time| time.as_ms()).sum::<f64>() / times.len() as f64
}

/// The results of both sides for the same requests.
struct Comparison {
    simulated: Vec<Nanos>,
    measured: Vec<Nanos>,
    /// Results of simulations with 1 to 4 additional requests before the log's.
    disturbed: Vec<Vec<Nanos>>,
    /// The lateness of its answers that the emulator reports.
    lateness: String,
}

impl Comparison {
    /// The demerit of `times` against the simulated times, in percent of the simulated mean.
    fn demerit(&self, times: &[Nanos]) -> f64 {
        100.0 * demerit::exact_ms(times, &self.simulated).expect("there are some") / mean_ms(&self.simulated)
    }

    /// The largest demerit of a disturbed simulation.
    fn by_chance(&self) -> f64 {
        self.disturbed.iter().map(|times| self.demerit(times)).fold(0.0, f64::max)
    }
}

/// Compares the requests that the simulation issues within its first `seconds` seconds.
fn compare(drive: &str, job: &Job, way: Way, seconds: f64) -> Comparison {
    let folder = folder();
    let folder = folder.path();
    let mounted = matches!(way, Way::Loop);
    let emulator = Emulator::start(&Setup { rig: drive, speed: "1", mounted, ..Setup::default() });
    let bytes = emulator.client().bytes();
    let mut lines = job.draw(folder, bytes, MOST);
    let simulated = job.simulated(folder, &lines, drive);
    let end = Instant::from_ms(seconds * 1000.0);
    let compared = simulated.iter().take_while(|(asked, _)| *asked < end).count();
    // The requests behind the compared ones keep the queue full until all compared ones have completed. fio also ends a replay without waiting
    // for the requests in flight.
    lines.truncate(compared + 50 * job.depth);
    let measured = job.measured(folder, &lines, &emulator, way);
    let lateness = reported(&emulator.stop(), "lateness");
    // The first `depth` requests are left out. They meet the platter at an arbitrary angle, and in a job of cache hits that delay alone
    // outweighs thousands of quick requests.
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    for (_, response) in &simulated[job.depth..compared] {
        *counts.entry(response.offset).or_default() += 1;
    }
    // Matches responses to the compared requests by their offsets. Few offsets occur twice; then the first responses count.
    let of = |responses: &mut dyn Iterator<Item = Response>| {
        let mut left = counts.clone();
        let mut is_compared = |response: &Response| match left.get_mut(&response.offset) {
            Some(count @ 1..) => {
                *count -= 1;
                true
            }
            _ => false,
        };
        responses.filter(|response| is_compared(response)).map(|response| response.took).collect::<Vec<_>>()
    };
    let disturb = |count: usize| {
        let others = (0..count as u64).map(|other| format!("0 disk read {} 4096", (other * 1979 + 1) << 16));
        let lines: Vec<Line> = others.chain(lines.iter().cloned()).collect();
        of(&mut job.simulated(folder, &lines, drive).into_iter().skip(count).map(|(_, response)| response))
    };
    let disturbed = (1..=4).map(disturb).collect();
    let simulated = of(&mut simulated.into_iter().take(lines.len()).map(|(_, response)| response));
    let measured = of(&mut measured.into_iter());
    assert_eq!(simulated.len(), measured.len(), "fio logged all compared requests");
    Comparison { simulated, measured, disturbed, lateness }
}

/// The value behind the name `of` in the summary that the emulator prints when it ends.
fn reported(said: &str, of: &str) -> String {
    let reported = said.lines().find_map(|line| line.trim().strip_prefix(of));
    reported.unwrap_or_else(|| panic!("it reports no {of}: {said}")).trim().to_string()
}

/// The number of requests that fio draws for a comparison.
const MOST: usize = 100_000;

/// The emulator reports the mean response in the disk's time, which does not depend on how busy the machine is.
#[test]
fn emulated_mean_response_agrees_with_the_simulator() {
    if !have(&["fio"]) {
        return;
    }
    let (folder, drive, job) = (folder(), "atlas-10k", &JOBS[0]);
    let emulator = Emulator::start(&Setup { rig: drive, speed: "10", ..Setup::default() });
    let lines = job.draw(folder.path(), emulator.client().bytes(), 1500);
    let simulated: Vec<Nanos> =
        job.simulated(folder.path(), &lines, drive).into_iter().map(|(_, response)| response.took).collect();
    job.measured(folder.path(), &lines, &emulator, Way::Nbd);
    let said = emulator.stop();
    let reported =
        said.lines().find_map(|line| line.trim().strip_prefix("response")).expect("it has response times");
    let mean =
        reported.split_whitespace().find_map(|word| word.parse::<f64>().ok()).expect("the mean comes first");
    let expected = mean_ms(&simulated);
    assert!((mean / expected - 1.0).abs() < 0.03, "{mean} ms in the disk's time, {expected} ms simulated");
}

/// Two drives without a queue, whose times depend little on chance; one with a queue and a write cache; and a current one, whose slowest
/// 1 % of the requests in a deep queue differ from run to run.
const DRIVES: [&str; 4] = ["atlas-10k", "hp-c2247a", "samsung-hd400ld", "exos-x16"];

#[test]
#[ignore = "ten minutes of a quiet machine: make emulate-agreement"]
fn fio_measures_the_simulated_response_distributions() {
    if !have_loops_and(&["fio"]) {
        return;
    }
    println!(
        "drive            job                depth  way   requests   simulated    measured  demerit  by chance  lateness"
    );
    let mut off = Vec::new();
    for (drive, job) in DRIVES.iter().flat_map(|drive| JOBS.iter().map(move |job| (drive, job))) {
        for (way, name) in [(Way::Nbd, "NBD"), (Way::Loop, "loop")] {
            let found = compare(drive, job, way, 12.0);
            let (share, chance) = (found.demerit(&found.measured), found.by_chance());
            let line = format!(
                "{drive:<15}  {:<17}  {:>5}  {name:<4}  {:>8}  {:>7.3} ms  {:>7.3} ms  {share:>5.2} %  {chance:>7.2} %  {}",
                job.name,
                job.depth,
                found.measured.len(),
                mean_ms(&found.simulated),
                mean_ms(&found.measured),
                found.lateness,
            );
            println!("{line}");
            if share > chance.max(2.0) {
                off.push(line);
            }
        }
    }
    assert!(off.is_empty(), "off by more than 2 % and more than chance:\n{}", off.join("\n"));
}
