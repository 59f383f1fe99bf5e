//! Emulated disks probed in real time, through NBD and through a loop device over a mount. The probe must find the tracks of the drive file,
//! even if a busy machine delays single answers.

use crate::device::{Loop, Mount};
use crate::emulator::{Emulator, Setup};
use crate::tools::{folder, have_loops_and, output, run, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes the drive's file to a folder, and returns its path.
fn drive(folder: &Path) -> PathBuf {
    let path = folder.join("small.toml");
    fs::write(&path, include_str!("../small.toml")).expect("the folder is writable");
    path
}

/// Runs `headstack probe`, and returns its exit code and what it printed on stdout and stderr.
fn probe(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstack"));
    let done = command.arg("probe").args(args).output().expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

/// Probes a disk and compares its tracks with the drive's, which must agree. On a busy machine the prober may give up with an error that says
/// so; then the disk is probed again, at most twice.
fn agrees(disk: &[&str], drive: &Path) -> Value {
    let check = format!("--check={}", text(drive));
    let args = [disk, &["--what", "tracks", &check, "--json"]].concat();
    let (mut code, mut out, mut err) = probe(&args);
    for _ in 0..2 {
        if code == Some(2) && err.contains("this machine was busy meanwhile") {
            (code, out, err) = probe(&args);
        }
    }
    assert_eq!(code, Some(0), "{out}{err}");
    let found: Value = serde_json::from_str(&out).expect("it prints JSON");
    let check = &found["check"];
    assert_eq!(
        (&check["boundaries"], &check["missed"], &check["false"]),
        (&399.into(), &0.into(), &0.into())
    );
    found
}

#[test]
fn tracks_of_an_emulated_disk_are_found_over_nbd() {
    let folder = folder();
    let drive = drive(folder.path());
    let emulator = Emulator::start(&Setup { rig: text(&drive), speed: "1", ..Setup::default() });
    let found = agrees(&["--nbd", &emulator.uri()], &drive);
    assert_eq!(found["disk"], "A small disk, queue depth 1");
}

/// The disk's cache is on: a read through a block device cannot ask the disk to bypass it.
#[test]
fn tracks_of_an_emulated_disk_are_found_by_loop_device() {
    if !have_loops_and(&[]) {
        return;
    }
    let folder = folder();
    let drive = drive(folder.path());
    let emulator =
        Emulator::start(&Setup { rig: text(&drive), speed: "1", mounted: true, ..Setup::default() });
    let device = Loop::over(&emulator.file());
    device.leave_order_to_the_disk();
    agrees(&[device.device(), "--physical-bytes", "512"], &drive);
}

/// The number of reads in a journal that were issued before the previous one had completed, and the number of all reads.
fn overlapping(journal: &Path) -> (usize, usize) {
    let text = fs::read_to_string(journal).expect("it was written");
    let reads: Vec<(u64, u64)> = text
        .lines()
        .filter_map(|line| {
            // A read's fields: number, `r`, first block, number of blocks, whether it bypasses the cache, start and end.
            let fields: Vec<&str> = line.split(' ').collect();
            let time = |field: usize| fields.get(field)?.parse().ok();
            (fields.get(1) == Some(&"r")).then(|| time(5).zip(time(6))).flatten()
        })
        .collect();
    (reads.windows(2).filter(|pair| pair[1].0 < pair[0].1).count(), reads.len())
}

#[test]
fn probes_overlap_on_a_loop_device_at_depth_4_only() {
    if !have_loops_and(&[]) {
        return;
    }
    let folder = folder();
    let drive = drive(folder.path());
    let one = fs::read_to_string(&drive).expect("it was written");
    let queues =
        one.replace("[cache]\nenabled = true", "[cache]\nenabled = false").replace("depth = 1", "depth = 8");
    fs::write(&drive, queues).expect("the folder is writable");
    let emulator =
        Emulator::start(&Setup { rig: text(&drive), speed: "1", mounted: true, ..Setup::default() });
    let device = Loop::over(&emulator.file());
    device.leave_order_to_the_disk();
    for depth in ["1", "4"] {
        let journal = folder.path().join(depth);
        let args =
            ["--physical-bytes", "512", "--what", "tracks", "--depth", depth, "--journal", text(&journal)];
        // Only the overlap is checked here, so it does not matter whether a busy machine makes the probe fail.
        let (_, out, err) = probe(&[&[device.device()], &args[..]].concat());
        let (overlapping, all) = overlapping(&journal);
        assert!(all > 100, "{out}{err}");
        assert!(
            if depth == "1" { overlapping == 0 } else { overlapping > 10 },
            "{depth}: {overlapping} of {all}"
        );
    }
}

#[test]
fn export_with_a_false_size_is_rejected() {
    let folder = folder();
    let drive = drive(folder.path());
    let fault = Some("medium-error@110000+110000");
    let emulator = Emulator::start(&Setup { rig: text(&drive), speed: "1", fault, ..Setup::default() });
    let (code, out, err) = probe(&["--nbd", &emulator.uri()]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    let reported = "the disk reports 220000 blocks, but none can be read from block 110000 on";
    assert!(err.contains(reported), "{err}");
}

#[test]
fn mounted_device_is_rejected_by_probe() {
    if !have_loops_and(&["mkfs.ext4"]) {
        return;
    }
    let folder = folder();
    let image = folder.path().join("image");
    fs::File::create(&image).and_then(|file| file.set_len(16 << 20)).expect("there is room");
    let device = Loop::over(&image);
    run("mkfs.ext4", &["-q", device.device()]);
    let mount = Mount::new("ext4", device.device());
    let (code, out, err) = probe(&[device.device()]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    let place = text(mount.path());
    let expected = format!("headstack: {} is in use (mounted on {place}): probe a disk", device.device());
    assert!(err.starts_with(&expected), "{err}");
    mount.unmount();
}

#[test]
fn device_without_rotation_is_rejected_by_probe() {
    if !have_loops_and(&[]) {
        return;
    }
    // All reads of a file in memory take about the same time.
    let folder = folder();
    let image = folder.path().join("image");
    fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("there is room");
    let device = Loop::over(&image);
    let (code, out, err) = probe(&[device.device()]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    assert!(
        err.contains("every read is answered from a cache") || err.contains("no rotation shows"),
        "{err}"
    );
    // After the file is truncated, the device still reports its old size, but no block behind the file's end can be read.
    fs::File::options().write(true).open(&image).and_then(|file| file.set_len(32 << 20)).expect("it shrinks");
    let (code, _, err) = probe(&[device.device()]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("the disk reports 131072 blocks"), "{err}");
    let gone = output("losetup", &["--list", device.device()]);
    assert!(gone.status.success(), "it is still there");
}
