//! Disks as files, and as block devices under a loop device. Skipped where the system does not let a test mount.

#![allow(clippy::disallowed_methods, reason = "tests of mounts use threads, and wait with a deadline")]

mod common;
#[path = "common/loops.rs"]
mod loops;

use common::emulator;
use headstack_host::disk::{Emulator, EmulatorFaults, Store, Volume};
use headstack_host::fuse::{Mount, MountError, MountOptions, Unmounted};
use headstack_host::{Clock, Disk, Timing};
use headstack_workload::VolumeInfo;
use loops::Loop;
use rustix::fs::{FallocateFlags, OFlags, SeekFrom};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// How a loop device is attached that is as fast as what is below.
const DIRECT: &[&str] = &["--direct-io=on"];

const SHARED: Timing = Timing { spin: Duration::ZERO, real_time: false };

fn running(name: &str, emulator: Emulator, speed: f64) -> Disk {
    let clock = Clock::new(speed).expect("it is allowed");
    Disk::start(name, emulator, clock, SHARED).expect("there are threads")
}

/// A disk of 1 MiB with blocks of 4 KiB that takes no time.
fn null(name: &str) -> Disk {
    let info = VolumeInfo { name: name.to_string(), sectors: 256, sector_bytes: 4096, zones: None };
    let store = Store::memory(info.bytes()).expect("unused memory is free");
    running(name, Emulator::null(Volume::new(info, store)), 1.0)
}

/// The disks, mounted on a new folder, which outlives the mount; nothing where the system does not let a test mount.
fn mounted(disks: &[&Disk]) -> Option<(tempfile::TempDir, Mount)> {
    mounted_for(disks, false)
}

fn mounted_for(disks: &[&Disk], allow_other: bool) -> Option<(tempfile::TempDir, Mount)> {
    let folder = tempfile::tempdir().expect("there is room for it");
    let handles: Vec<_> = disks.iter().map(|disk| disk.handle()).collect();
    let options = MountOptions { real_time: false, allow_other, ..MountOptions::default() };
    match Mount::new(folder.path(), &handles, options) {
        Ok(mount) => Some((folder, mount)),
        Err(error @ (MountError::Device(_) | MountError::NeedsHelper | MountError::Refused { .. })) => {
            headstack_prerequisites::skip(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn open(path: &Path, flags: OFlags) -> File {
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(path);
    file.expect("the file is there")
}

fn errno(result: io::Result<impl Sized>) -> Option<Errno> {
    result.err().and_then(|error| Errno::from_io_error(&error))
}

#[test]
fn volumes_appear_as_files_of_their_size() {
    let (drive, null) =
        (running("drive", emulator("atlas-10k", EmulatorFaults::default()), 1000.0), null("n"));
    let Some((folder, mount)) = mounted(&[&drive, &null]) else { return };
    let entries = folder.path().read_dir().expect("it is a folder").map(|entry| {
        let entry = entry.expect("it is there");
        (entry.file_name(), entry.metadata().expect("it is there").len())
    });
    let reported: Vec<_> = entries.collect();
    let expected: Vec<_> =
        [&drive, &null].map(|disk| disk.handle().volumes()[0].clone()).into_iter().collect();
    let expected: Vec<_> = expected.iter().map(|info| (info.name.clone().into(), info.bytes())).collect();
    assert_eq!(reported, expected);
    assert_eq!(mount.unmount(), Unmounted::Gone);
    assert_eq!(folder.path().read_dir().expect("it is a folder").count(), 0);
}

#[test]
fn mounted_file_behaves_as_a_block_device() {
    let disk = null("n");
    let Some((folder, _mount)) = mounted(&[&disk]) else { return };
    let file = open(&folder.path().join("n"), OFlags::empty());
    file.write_all_at(&[1; 12_288], 4096).expect("it is inside");
    file.sync_all().expect("a null disk does all");
    let mut read = [9; 7];
    file.read_exact_at(&mut read, 4094).expect("reads may begin anywhere");
    assert_eq!(read, [0, 0, 1, 1, 1, 1, 1]);
    assert_eq!(errno(file.write_at(&[1; 100], 0)), Some(Errno::INVAL), "a disk knows whole blocks");
    assert_eq!(errno(file.write_at(&[1; 4096], 1 << 20)), Some(Errno::NOSPC));
    assert_eq!(file.write_at(&[1; 8192], (1 << 20) - 4096).expect("a block fits"), 4096);
    assert_eq!(file.read_at(&mut [0; 8192], (1 << 20) - 4096).expect("a block is there"), 4096);
    assert_eq!(file.read_at(&mut [0; 10], 1 << 20).expect("the end is not an error"), 0);
    assert_eq!(errno(file.set_len(4096)), Some(Errno::PERM), "a disk keeps its size");
    assert_eq!(errno(File::create_new(folder.path().join("new"))), Some(Errno::NOSYS));
    let there = folder.path().join("n");
    assert_eq!(errno(std::fs::hard_link(&there, folder.path().join("new"))), Some(Errno::PERM));
    assert_eq!(errno(std::os::unix::fs::symlink(&there, folder.path().join("new"))), Some(Errno::PERM));
}

#[test]
fn holes_are_punched_and_found() {
    let disk = null("n");
    let Some((folder, _mount)) = mounted(&[&disk]) else { return };
    let file = open(&folder.path().join("n"), OFlags::empty());
    let seek = |place| rustix::fs::seek(&file, place);
    assert_eq!(seek(SeekFrom::Data(0)), Err(Errno::NXIO));
    file.write_all_at(&[1; 65_536], 65_536).expect("it is inside");
    assert_eq!(seek(SeekFrom::Data(0)), Ok(65_536));
    assert_eq!(seek(SeekFrom::Hole(65_536)), Ok(131_072));
    let keep = FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, FallocateFlags::PUNCH_HOLE | keep, 65_536, 4096).expect("it is inside");
    rustix::fs::fallocate(&file, FallocateFlags::ZERO_RANGE | keep, 126_976, 4096).expect("it is inside");
    assert_eq!(seek(SeekFrom::Data(0)), Ok(69_632));
    let mut read = vec![7; 65_536];
    file.read_exact_at(&mut read, 65_536).expect("it is inside");
    let kept = |at: usize| (4096..61_440).contains(&at);
    assert!(read.iter().enumerate().all(|(at, byte)| *byte == u8::from(kept(at))));
    assert_eq!(rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 4096), Err(Errno::OPNOTSUPP));
    assert_eq!(rustix::fs::fallocate(&file, FallocateFlags::PUNCH_HOLE | keep, 1, 4096), Err(Errno::INVAL));
}

#[test]
fn mount_is_private_unless_others_are_allowed() {
    // Only root can try as another user.
    if !headstack_prerequisites::have_root() {
        return;
    }
    let disk = null("n");
    for allow_other in [false, true] {
        let Some((folder, _mount)) = mounted_for(&[&disk], allow_other) else { return };
        let mut reader = Command::new("dd");
        reader.arg(format!("if={}", folder.path().join("n").display())).args(["of=/dev/null", "count=1"]);
        let output = reader.uid(65_534).gid(65_534).output().expect("dd is everywhere");
        assert_eq!(output.status.success(), allow_other);
    }
}

#[test]
fn data_reaches_the_media_on_fsync_and_o_dsync() {
    // Slow, so that the drive's write cache does not empty by itself before a look at the media.
    let disk = running("drive", emulator("st2000dm006", EmulatorFaults::default()), 0.2);
    let Some((folder, _mount)) = mounted(&[&disk]) else { return };
    let path = folder.path().join(&disk.handle().volumes()[0].name);
    let on_media = |place: u64| {
        let mut read = [0];
        disk.handle()
            .inspect(|emulator| emulator.volumes()[0].read_media(place, &mut read))
            .expect("it is inside");
        read[0]
    };
    let file = open(&path, OFlags::empty());
    file.write_all_at(&[1; 4096], 1 << 20).expect("it is inside");
    file.sync_all().expect("the disk works");
    assert_eq!(on_media(1 << 20), 1);
    let forced = open(&path, OFlags::DSYNC);
    forced.write_all_at(&[2; 4096], 1 << 30).expect("it is inside");
    assert_eq!(on_media(1 << 30), 2);
}

#[test]
fn impossible_mount_is_rejected_in_one_line() {
    let (one, two) = (null("same"), null("same"));
    let refused = |folder: &Path, disks: &[&Disk]| {
        let handles: Vec<_> = disks.iter().map(|disk| disk.handle()).collect();
        let error = Mount::new(folder, &handles, MountOptions::default()).expect_err("it cannot be mounted");
        error.to_string()
    };
    let folder = tempfile::tempdir().expect("there is room for it");
    let expected = "volume `same` cannot be a file: names must differ and have no `/`";
    assert_eq!(refused(folder.path(), &[&one, &two]), expected);
    let path = null("a/b");
    assert_eq!(refused(folder.path(), &[&path]), expected.replace("same", "a/b"));
    if Path::new("/dev/fuse").exists() {
        let missing = folder.path().join("missing");
        let expected = "No such file or directory (os error 2) (a mount needs a folder that is there)";
        assert_eq!(refused(&missing, &[&one]), format!("{}: {expected}", missing.display()));
    }
}

/// Room for direct accesses, which must begin at a multiple of a block in memory too.
fn aligned(room: &mut [u8]) -> &mut [u8] {
    let start = room.as_ptr().align_offset(4096);
    &mut room[start..start + 4096]
}

#[test]
fn loop_device_reads_back_what_it_wrote() {
    let disk = running("drive", emulator("atlas-10k", EmulatorFaults::default()), 1000.0);
    let Some((folder, mount)) = mounted(&[&disk]) else { return };
    let Some(loop_device) = Loop::on(&folder.path().join(&disk.handle().volumes()[0].name), DIRECT) else {
        return;
    };
    let file = open(&loop_device.device, OFlags::DIRECT);
    let mut room = [0; 8192];
    aligned(&mut room).fill(5);
    file.write_all_at(aligned(&mut room), 1 << 30).expect("it is inside");
    file.sync_all().expect("the disk works");
    aligned(&mut room).fill(0);
    file.read_exact_at(aligned(&mut room), 1 << 30).expect("it is inside");
    assert!(aligned(&mut room).iter().all(|byte| *byte == 5));
    assert!(disk.handle().lateness().count() >= 3, "the disk saw a write, a flush and a read");
    drop((file, loop_device));
    assert_eq!(mount.unmount(), Unmounted::Gone);
}

#[test]
fn power_cut_fails_every_read_of_a_deep_queue() {
    // So slow that none of the reads is over before the power is.
    let disk = running("drive", emulator("atlas-10k", EmulatorFaults::default()), 0.001);
    let handle = disk.handle();
    let Some((folder, mount)) = mounted(&[&disk]) else { return };
    let Some(loop_device) = Loop::on(&folder.path().join(&handle.volumes()[0].name), DIRECT) else { return };
    let read = |number: u64| {
        let file = open(&loop_device.device, OFlags::DIRECT);
        errno(file.read_exact_at(aligned(&mut [0; 8192]), number << 24))
    };
    thread::scope(|scope| {
        let readers: Vec<_> = (0..32).map(|number| scope.spawn(move || read(number))).collect();
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut deepest = 0;
        while deepest < 32 && Instant::now() < deadline {
            deepest = deepest.max(handle.inspect(Emulator::outstanding));
            thread::yield_now();
        }
        handle.cut_power();
        assert_eq!(deepest, 32, "all reads are the disk's at once");
        for reader in readers {
            assert_eq!(reader.join().expect("no thread failed"), Some(Errno::IO));
        }
    });
    assert_eq!(mount.unmount(), Unmounted::StillUsed, "the loop device has the file");
    assert_eq!(folder.path().read_dir().expect("it is a folder").count(), 0);
}
