//! `headstack tune --verify` on an emulated disk behind the real kernel: a loop device over the disk's file.

use crate::device::Loop;
use crate::emulator::{Emulator, Setup};
use crate::tools::{folder, have_loops_and, text, wait_for};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Sequential readers through the page cache, which read-ahead serves.
const STREAMS: &str = "[global]\nfilename=/dev/sdX\nioengine=psync\nthread\ntime_based\nruntime=1000\n\
                       [streams]\nrw=read\nbs=64k\nnumjobs=8\noffset_increment=12%\n";

/// A disk behind the kernel, with Linux's usual settings.
struct KernelDisk {
    device: Loop,
    _emulator: Emulator,
}

impl KernelDisk {
    fn new() -> KernelDisk {
        let emulator = Emulator::start(&Setup { speed: "1", mounted: true, ..Setup::default() });
        let disk = KernelDisk { device: Loop::over(&emulator.file()), _emulator: emulator };
        disk.set("scheduler", "mq-deadline");
        disk.set("read_ahead_kb", "128");
        disk
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

    /// `headstack tune` with a verification on this disk.
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
    let (disk, folder) = (KernelDisk::new(), folder());
    disk.set("read_ahead_kb", "96");
    let job = folder.path().join("job.fio");
    fs::write(&job, STREAMS).expect("the folder is writable");
    let more = ["--knob", "read_ahead_kb", "--requests", "400", "--verify-seconds", "1"];
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

    // A signal ends fio, and the settings are restored all the same.
    let more = ["--knob", "read_ahead_kb", "--requests", "400", "--verify-seconds", "600"];
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
    let (disk, folder) = (KernelDisk::new(), folder());
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

/// By how much a predicted ratio may be off.
const OFF_MOST: f64 = 0.10;

#[test]
#[ignore = "eight minutes of a quiet machine: make tune-real"]
fn predicted_gains_come_true_on_an_emulated_disk_behind_the_kernel() {
    if !have_loops_and(&["fio"]) {
        return;
    }
    let (disk, folder) = (KernelDisk::new(), folder());
    let job = folder.path().join("job.fio");
    let cases = [
        ("read_ahead_kb", STREAMS.to_string(), "throughput"),
        ("read_ahead_kb", STREAMS.replace("rw=read\nbs=64k", "rw=randread:8\nbs=16k"), "mean"),
        ("scheduler", STREAMS.to_string(), "throughput"),
        (
            "scheduler",
            STREAMS.replace("numjobs=8\noffset_increment=12%", "numjobs=30\noffset_increment=3%"),
            "throughput",
        ),
    ];
    println!("setting        goal        predicted now  measured now  predicted  measured     off");
    let mut off = Vec::new();
    for (knob, load, goal) in cases {
        fs::write(&job, load).expect("the folder is writable");
        let more = ["--knob", knob, "--goal", goal, "--requests", "4000", "--verify-seconds", "20"];
        let done = disk.tune(text(&job), &more).output().expect("it starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let found: Value = serde_json::from_slice(&done.stdout).expect("it prints JSON");
        if found["advised"].as_array().is_some_and(Vec::is_empty) {
            println!("{knob:<13}  {goal:<10}  nothing is advised");
            continue;
        }
        let of = |part: &str, value: &str| figure(&found, &format!("{part}/figures/{goal}/{value}"));
        let ratio = |part: &str| of(part, "advised") / of(part, "now");
        let (predicted, measured) = (ratio(""), ratio("/verification"));
        let share = predicted / measured - 1.0;
        let line = format!(
            "{:<13}  {goal:<10}  {:>13.2}  {:>12.2}  {predicted:>9.3}  {measured:>8.3}  {:>+5.1} %",
            format!("{knob}={}", found["advised"][0]["advised"].as_str().unwrap_or("")),
            of("", "now"),
            of("/verification", "now"),
            100.0 * share
        );
        println!("{line}");
        if share.abs() > OFF_MOST {
            off.push(line);
        }
    }
    assert!(off.is_empty(), "off by more than {} %:\n{}", 100.0 * OFF_MOST, off.join("\n"));
}
