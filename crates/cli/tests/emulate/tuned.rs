//! `headstack tune --verify` on an emulated disk behind the real kernel, through a loop device over the disk's file.

use crate::device::Loop;
use crate::emulator::{Emulator, Setup};
use crate::tools::{folder, have_loops_and, run, text, wait_for};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Eight sequential readers through the page cache, so that the kernel reads ahead.
const STREAMS: &str = "[global]\nfilename=/dev/sdX\nioengine=psync\nthread\ntime_based\nruntime=1000\n\
                       [streams]\nrw=read\nbs=64k\nnumjobs=8\noffset_increment=12%\n";

/// A loop device over an emulated disk, with Linux's default settings for a rotating disk.
struct KernelDisk {
    device: Loop,
    _emulator: Emulator,
}

impl KernelDisk {
    /// A disk that is `speed` times as fast as a real one.
    fn new(speed: &str) -> KernelDisk {
        let emulator = Emulator::start(&Setup { speed, mounted: true, ..Setup::default() });
        let disk = KernelDisk { device: Loop::over(&emulator.file()), _emulator: emulator };
        disk.reset();
        disk
    }

    /// Sets the values of the rig `workstation`, and the attributes that the kernel gives to a rotating disk with NCQ. By default a loop device
    /// over a file is non-rotational, so that BFQ never idles, and it accepts 128 requests at a time.
    fn reset(&self) {
        self.set("scheduler", "none");
        // The kernel ignores a write of the present value, so another value is written first.
        self.set("nr_requests", "127");
        self.set("nr_requests", "32");
        // BFQ reads `rotational` when it is selected. In Linux 6.18 a write to it also sets read-ahead.
        self.set("rotational", "1");
        self.set("scheduler", "mq-deadline");
        self.set("read_ahead_kb", "128");
    }

    fn path(&self, attribute: &str) -> PathBuf {
        let name = self.device.device().trim_start_matches("/dev/");
        PathBuf::from(format!("/sys/block/{name}/queue/{attribute}"))
    }

    fn set(&self, attribute: &str, value: &str) {
        fs::write(self.path(attribute), value).expect("root sets it");
    }

    fn value(&self, attribute: &str) -> String {
        fs::read_to_string(self.path(attribute)).expect("the kernel shows it").trim().to_string()
    }

    /// The command `headstack tune` with a verification on this disk.
    fn tune(&self, job: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstack"));
        command.args(["tune", "workstation", job, "--verify", self.device.device(), "--json"]).args(more);
        command.stdin(Stdio::null());
        command
    }
}

fn figure(document: &Value, place: &str) -> f64 {
    document.pointer(place).and_then(Value::as_f64).unwrap_or_else(|| panic!("{place}: {document:#}"))
}

#[test]
fn verification_measures_before_and_after_and_restores_the_settings() {
    if !have_loops_and(&["fio"]) {
        return;
    }
    let (disk, folder) = (KernelDisk::new("1"), folder());
    disk.set("read_ahead_kb", "96");
    let job = folder.path().join("job.fio");
    fs::write(&job, STREAMS).expect("the folder is writable");
    // A disk that leaves a stream after each command needs the read-ahead of the host.
    let own = "drive.queue.stream_hold_ms=0";
    let more = ["--knob", "read_ahead_kb", "--requests", "400", "--verify-seconds", "1", "--set", own];
    let done = disk.tune(text(&job), &more).output().expect("it starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let found: Value = serde_json::from_slice(&done.stdout).expect("it prints JSON");
    let verified = &found["verification"];
    assert_eq!(verified["changed_settings"][0]["setting"], "read_ahead_kb", "{verified:#}");
    assert_eq!(verified["changed_settings"][0]["before"], "128", "the rig's value, not the disk's");
    assert_eq!(verified["changed_settings"][0]["after"], found["advised"][0]["advised"]);
    assert_eq!(verified["pairs"], 3);
    assert!(figure(verified, "/figures/throughput/now") > 0.0, "{verified:#}");
    assert!(figure(verified, "/figures/throughput/change/percent").is_finite(), "{verified:#}");
    assert_eq!(disk.value("read_ahead_kb"), "96", "the disk's value is restored");

    // The settings are also restored if a signal ends the command and its fio.
    let more = ["--knob", "read_ahead_kb", "--requests", "400", "--verify-seconds", "600", "--set", own];
    let mut stopped = disk.tune(text(&job), &more).stdout(Stdio::null()).spawn().expect("it starts");
    wait_for("the setting before", || (disk.value("read_ahead_kb") == "128").then_some(()));
    let interrupt = Command::new("kill").args(["-INT", &stopped.id().to_string()]).status();
    assert!(interrupt.is_ok_and(|status| status.success()));
    assert_eq!(stopped.wait().expect("it ends").code(), Some(130));
    assert_eq!(disk.value("read_ahead_kb"), "96", "the disk's value is restored");
}

#[test]
fn verification_refuses_a_load_that_writes_and_what_is_no_disk() {
    if !have_loops_and(&["fio"]) {
        return;
    }
    let (disk, folder) = (KernelDisk::new("1"), folder());
    let job = folder.path().join("job.fio");
    fs::write(&job, STREAMS.replace("rw=read", "rw=randrw")).expect("the folder is writable");
    let reported = |command: &mut Command| {
        let done = command.output().expect("it starts");
        assert_eq!(done.status.code(), Some(2));
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let said = reported(&mut disk.tune(text(&job), &[]));
    assert!(said.contains("writes, and the data on") && said.contains("--write allows it"), "{said}");
    let mut of_file = Command::new(env!("CARGO_BIN_EXE_headstack"));
    let said = reported(of_file.args(["tune", "workstation", text(&job), "--verify", text(&job)]));
    assert!(said.contains("no block device"), "{said}");
}

/// The largest relative error of a predicted ratio, and the largest gain of a value that was not advised.
const OFF_MOST: f64 = 0.10;

/// The disk of the comparison is this many times slower than a real one. Loop device, mount and emulator add up to 0.3 ms to a request, which
/// a real disk's cable does not. Relative to the time of a slow disk this is little.
const SLOWER: u32 = 5;

/// The schedulers' times that affect these loads. [`PredictedCase::measure`] multiplies them by [`SLOWER`], as the disk's times are.
const SCHEDULER_TIMES: [&str; 4] =
    ["iosched/read_expire", "iosched/slice_idle", "iosched/timeout_sync", "iosched/fifo_expire_sync"];

/// Seconds that fio runs: ten seconds of the disk's time.
const SECONDS: u32 = 10 * SLOWER;

/// A comparison: the setting, the load, and the figure that is to improve.
struct PredictedCase {
    knob: &'static str,
    /// Values that must gain nothing if no change is advised.
    others: &'static [&'static str],
    load: String,
    goal: &'static str,
}

impl PredictedCase {
    fn all() -> Vec<PredictedCase> {
        let random = STREAMS.replace("rw=read\nbs=64k", "rw=randread:8\nbs=16k");
        let many = STREAMS.replace("numjobs=8\noffset_increment=12%", "numjobs=30\noffset_increment=3%");
        let (windows, schedulers): (&[_], &[_]) = (&["512", "4096"], &["none", "bfq", "kyber"]);
        let cases = [
            ("read_ahead_kb", windows, STREAMS.to_string(), "throughput"),
            // By default fio advises the kernel (fadvise) that random reads are random, so that nothing is read ahead. Most programs give no such
            // advice, which `fadvise_hint=0` reproduces.
            ("read_ahead_kb", windows, random.clone() + "fadvise_hint=0\n", "mean"),
            ("read_ahead_kb", windows, random, "mean"),
            ("scheduler", schedulers, STREAMS.to_string(), "throughput"),
            ("scheduler", schedulers, many, "throughput"),
        ];
        let case = |(knob, others, load, goal)| PredictedCase { knob, others, load, goal };
        cases.into_iter().map(case).collect()
    }

    /// The result of `headstack tune` for this case.
    fn predict(&self, folder: &Path) -> Value {
        let job = folder.join("job.fio");
        fs::write(&job, &self.load).expect("the folder is writable");
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstack"));
        command.args(["tune", "workstation", text(&job), "--json", "--requests", "6000"]);
        let done = command.args(["--knob", self.knob, "--goal", self.goal]).output().expect("it starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).expect("it prints JSON")
    }

    /// The figure that fio measures with the present settings, in the disk's time: MB/s or ms.
    fn measure(&self, disk: &KernelDisk, folder: &Path) -> f64 {
        for time in SCHEDULER_TIMES.iter().filter(|time| disk.path(time).exists()) {
            let ms: u32 = disk.value(time).parse().expect("it is a number");
            disk.set(time, &(SLOWER * ms).to_string());
        }
        let job = folder.join("measured.fio");
        let here = self.load.replace("/dev/sdX", disk.device.device());
        let load = here.replace("runtime=1000", &format!("runtime={SECONDS}\ngroup_reporting"));
        fs::write(&job, load).expect("the folder is writable");
        // Like the emulator, fio has real-time priority, so that no other program delays a reader.
        let output = run("chrt", &["--rr", "1", "fio", "--readonly", "--output-format=json", text(&job)]);
        let found: Value = serde_json::from_str(&output).expect("it prints JSON");
        match self.goal {
            "mean" => figure(&found, "/jobs/0/read/lat_ns/mean") / 1e6 / f64::from(SLOWER),
            _ => figure(&found, "/jobs/0/read/bw_bytes") / 1e6 * f64::from(SLOWER),
        }
    }

    /// Compares the prediction with the measured effect of the advised commands. Returns a line of the table and the prediction's relative error.
    fn compare(&self, found: &Value, disk: &KernelDisk, folder: &Path) -> (String, f64) {
        disk.reset();
        let now = self.measure(disk, folder);
        disk.reset();
        disk.run_commands(found);
        let measured = self.measure(disk, folder) / now;
        let of = |value: &str| figure(found, &format!("/figures/{}/{value}", self.goal));
        let predicted = of("advised") / of("now");
        let off = predicted / measured - 1.0;
        let setting = format!("{}={}", self.knob, found["advised"][0]["advised"].as_str().unwrap_or(""));
        let (goal, predicted_now, percent) = (self.goal, of("now"), 100.0 * off);
        let line = format!(
            "{setting:<18}  {goal:<10}  {predicted_now:>13.2}  {now:>12.2}  {predicted:>9.3}  {measured:>8.3}  {percent:>+5.1} %"
        );
        (line, off.abs())
    }

    /// For a case in which no change is advised, measures the effect of the other values. Returns a line of the table and the gain for each.
    fn compare_others(&self, disk: &KernelDisk, folder: &Path) -> Vec<(String, f64)> {
        disk.reset();
        let now = self.measure(disk, folder);
        let compare = |value: &&str| {
            disk.reset();
            disk.set(self.knob, value);
            let measured = self.measure(disk, folder) / now;
            let gain = if self.goal == "mean" { 1.0 / measured } else { measured } - 1.0;
            let (setting, goal) = (format!("{}={value}", self.knob), self.goal);
            (
                format!(
                    "{setting:<18}  {goal:<10}  {:>13}  {now:>12.2}  {:>9}  {measured:>8.3}",
                    "", "no gain"
                ),
                gain,
            )
        };
        self.others.iter().map(compare).collect()
    }
}

impl KernelDisk {
    /// Applies the advised commands, which name `sda`, to this disk.
    fn run_commands(&self, found: &Value) {
        for command in found["commands"].as_array().expect("an advice has commands") {
            let command = command.as_str().expect("a command is text");
            let parts =
                command.strip_prefix("echo ").and_then(|rest| rest.split_once(" > /sys/block/sda/queue/"));
            let (value, attribute) = parts.unwrap_or_else(|| panic!("{command}: no attribute of a queue"));
            self.set(attribute, value);
        }
    }
}

#[test]
#[ignore = "ten minutes of a quiet machine: make tune-real"]
fn predicted_gains_come_true_on_an_emulated_disk_behind_the_kernel() {
    if !have_loops_and(&["fio", "chrt"]) {
        return;
    }
    let (disk, folder) = (KernelDisk::new(&(1.0 / f64::from(SLOWER)).to_string()), folder());
    println!("setting             goal        predicted now  measured now  predicted  measured     off");
    let mut off = Vec::new();
    for case in PredictedCase::all() {
        let found = case.predict(folder.path());
        let is_advised = found["advised"].as_array().is_some_and(|advised| !advised.is_empty());
        let lines = if is_advised {
            vec![case.compare(&found, &disk, folder.path())]
        } else {
            case.compare_others(&disk, folder.path())
        };
        for (line, by) in lines {
            println!("{line}");
            off.extend((by > OFF_MOST).then_some(line));
        }
    }
    assert!(off.is_empty(), "off by more than {} %:\n{}", 100.0 * OFF_MOST, off.join("\n"));
}
