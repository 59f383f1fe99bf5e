//! `layout reorganize`, which moves the files of a mounted ext4 so that they cross no track boundaries, and `layout preallocate`: contents,
//! crossings, refusals, and the state after a kill.

use crate::common::{command, headstack, json, printed, refused};
use crate::device::{Loop, Mount};
use crate::disks::{self, Disk};
use crate::emulator::{Emulator, Setup};
use crate::ext4::{number, write_tree};
use crate::tools::{have_loops_and, program, run, text, wait_for};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Sectors of a small part of a disk, 512 MB, whose free space is soon fragmented.
const SECTORS: u64 = 1_000_000;
const PROGRAMS: [&str; 6] = ["mke2fs", "e2fsck", "cp", "rm", "sync", "chattr"];

/// Each file's path below `folder`, and a hash of its content.
fn contents(folder: &Path) -> BTreeMap<PathBuf, u32> {
    let listed = run("find", &[text(folder), "-type", "f"]);
    let hash = |path: &str| {
        let hash = crc32fast::hash(&fs::read(path).expect("it is there"));
        (PathBuf::from(path.replacen(text(folder), "", 1)), hash)
    };
    listed.lines().map(hash).collect()
}

/// Folders of the tree that [`write_tree`] makes.
const FOLDERS: usize = 20;

/// Makes an ext4 with mke2fs alone, and ages it: writes copies of a tree with `folders` of its [`FOLDERS`] folders and deletes parts of them,
/// so that free space and files are fragmented.
fn age(device: &str, folders: usize) -> Mount {
    run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "4096", device]);
    let mount = Mount::new("ext4", device);
    let tree = disks::folder();
    write_tree(tree.path());
    for folder in folders..FOLDERS {
        fs::remove_dir_all(tree.path().join(format!("folder-{folder}"))).expect("the tree has it");
    }
    for copy in 0..3 {
        run("cp", &["-r", text(tree.path()), text(&mount.path().join(format!("copy-{copy}")))]);
    }
    run("sync", &["-f", text(mount.path())]);
    run("rm", &["-r", text(&mount.path().join("copy-1"))]);
    for (index, folder) in ["copy-0", "copy-2"].into_iter().enumerate() {
        for number in (index..400).step_by(3) {
            // Some of these files are not in the tree.
            let _ =
                fs::remove_file(mount.path().join(format!("{folder}/folder-{}/file-{number}", number % 20)));
        }
    }
    let piece: Vec<u8> =
        (0..1u32 << 20).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut late = File::create(mount.path().join("late")).expect("it is mounted");
    (0..2 * folders).for_each(|_| late.write_all(&piece).expect("there is room"));
    drop(late);
    run("sync", &["-f", text(mount.path())]);
    mount
}

fn crossings(disk: &Disk, folder: &Path, partition: &[&str]) -> u64 {
    let shown =
        json(&[&["layout", "show", disk.map(), text(folder), "--json", "--summary"], partition].concat());
    number(&shown["total"], "crossings")
}

fn reorganized(disk: &Disk, folder: &Path, more: &[&str]) -> Value {
    json(&[&["layout", "reorganize", disk.map(), text(folder), "--json"], more].concat())
}

#[test]
fn aged_files_move_onto_tracks_with_their_contents() {
    if !have_loops_and(&PROGRAMS) {
        return;
    }
    // The first drive's tracks have odd numbers of sectors, the second's hold whole blocks.
    for (drive, start) in [("atlas-10k", 1003), ("exos-x18", 4096 * 77)] {
        let disk = Disk::of(drive, start, 2 * SECTORS);
        let here = ["--partition", disk.partition()];
        let device = Loop::over(Path::new(&disk.image()));
        let mount = age(device.device(), FOLDERS);
        let (before, old) = (contents(mount.path()), crossings(&disk, mount.path(), &here));
        let planned = reorganized(&disk, mount.path(), &[&here[..], &["--dry-run"]].concat());
        assert_eq!(number(&planned["before"], "crossings"), old, "{drive}");
        assert!(number(&planned["after"], "crossings") < old / 10, "{drive}: {planned:#}");
        assert_eq!(crossings(&disk, mount.path(), &here), old, "{drive}: the dry run moved files");

        let done = reorganized(&disk, mount.path(), &here);
        assert_eq!(number(&done["before"], "crossings"), old, "{drive}");
        let new = number(&done["after"], "crossings");
        assert!(new < old / 10, "{drive}: {new} of {old} crossings are left: {done:#}");
        assert!(number(&done, "moved_bytes") > 0);
        assert_eq!(crossings(&disk, mount.path(), &here), new, "{drive}");
        assert!(before == contents(mount.path()), "{drive}: a file has another content");
        mount.unmount();
        run("e2fsck", &["-fn", device.device()]);
        let mount = Mount::new("ext4", device.device());
        assert!(before == contents(mount.path()), "{drive}: a file has another content on the disk");

        // A second run moves only files that still cross boundaries.
        let again = reorganized(&disk, mount.path(), &here);
        assert_eq!(number(&again["before"], "crossings"), new, "{drive}");
        assert!(number(&again["after"], "crossings") <= new, "{drive}");
        assert!(number(&again, "moved_bytes") <= new * disk.longest_track_bytes(), "{drive}: {again:#}");
        mount.unmount();
        run("e2fsck", &["-fn", device.device()]);
    }
}

#[test]
fn files_of_an_emulated_disk_move_onto_tracks() {
    if !have_loops_and(&PROGRAMS) {
        return;
    }
    let disk = Disk::whole("atlas-10k");
    let emulator = Emulator::start(&Setup { rig: "atlas-10k", mounted: true, ..Setup::default() });
    let device = Loop::over(&emulator.file());
    // Each move waits for commits of the journal. With all folders, this would take three minutes.
    let mount = age(device.device(), FOLDERS / 5);
    let before = contents(mount.path());
    // No `--partition`: the command finds the partition in sysfs.
    let done = reorganized(&disk, mount.path(), &[]);
    let count = |when: &str| number(&done[when], "crossings");
    assert!(count("after") < count("before") / 10, "{done:#}");
    assert!(before == contents(mount.path()), "a file has another content");
    mount.unmount();
    run("e2fsck", &["-fn", device.device()]);
}

#[test]
fn killed_reorganize_leaves_contents_and_a_clean_file_system() {
    if !have_loops_and(&[&PROGRAMS[..], &["stat"]].concat()) {
        return;
    }
    let disk = Disk::of("atlas-10k", 1003, 3 * SECTORS);
    let here = ["--partition", disk.partition()];
    let device = Loop::over(Path::new(&disk.image()));
    let mount = age(device.device(), FOLDERS);
    // This file is too long for one donor file.
    let piece: Vec<u8> =
        (0..1u32 << 20).map(|index| (index.wrapping_mul(2_246_822_519) >> 24) as u8).collect();
    let mut long = File::create(mount.path().join("long")).expect("it is mounted");
    (0..400).for_each(|_| long.write_all(&piece).expect("there is room"));
    drop(long);
    run("sync", &["-f", text(mount.path())]);
    let before = contents(mount.path());
    let free =
        || run("stat", &["-f", "-c", "%f", text(mount.path())]).trim().parse::<u64>().expect("a number");
    let free_before = free();
    let (mut killed, mut old) = (0, crossings(&disk, mount.path(), &here));
    for _ in 0..4 {
        let args = [&["layout", "reorganize", disk.map(), text(mount.path())], &here[..]].concat();
        let mut child = command(&args).stdout(Stdio::null()).spawn().expect("it starts");
        wait_for("a move, or the end", || {
            let has_ended = child.try_wait().expect("it is ours").is_some();
            (has_ended || crossings(&disk, mount.path(), &here) < old).then_some(())
        });
        child.kill().expect("it is ours");
        killed += u32::from(child.wait().expect("it is ours").code().is_none());
        assert!(before == contents(mount.path()), "a file has another content");
        old = crossings(&disk, mount.path(), &here);
    }
    assert!(killed > 0, "it was never killed");
    run("sync", &["-f", text(mount.path())]);
    // The files' extent trees may have grown by some blocks.
    assert!(free_before.saturating_sub(free()) < 64, "{free_before} blocks were free, and {} are", free());
    mount.unmount();
    run("e2fsck", &["-fn", device.device()]);
    let mount = Mount::new("ext4", device.device());
    assert!(before == contents(mount.path()), "a file has another content on the disk");
    mount.unmount();
}

#[test]
fn move_limits_are_kept() {
    if !have_loops_and(&PROGRAMS) {
        return;
    }
    let disk = Disk::of("atlas-10k", 1003, SECTORS);
    let device = Loop::over(Path::new(&disk.image()));
    let mount = age(device.device(), FOLDERS);
    let moved = |more: &[&str]| {
        reorganized(&disk, mount.path(), &[&["--partition", disk.partition()], more].concat())
    };
    let done = moved(&["--max-bytes", "1M"]);
    let bytes = number(&done, "moved_bytes");
    assert!((1..=1 << 20).contains(&bytes), "{bytes} bytes moved");
    let done = moved(&["--min-file", "60M"]);
    assert_eq!(number(&done, "files"), 2, "the two large files: {done:#}");
    let done = moved(&["--dry-run", "--max-bytes", "2M"]);
    assert!((1..=2 << 20).contains(&number(&done, "moved_bytes")));
    mount.unmount();
}

#[test]
fn files_that_cannot_move_are_named_with_their_reason() {
    if !have_loops_and(&[&PROGRAMS[..], &["sleep"]].concat()) {
        return;
    }
    let disk = Disk::of("atlas-10k", 1003, 200_000);
    let device = Loop::over(Path::new(&disk.image()));
    run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "4096", device.device()]);
    let mount = Mount::new("ext4", device.device());
    let at = |name: &str| text(&mount.path().join(name)).to_string();
    for name in ["fixed", "log", "free"] {
        fs::write(at(name), vec![7; 1_000_000]).expect("there is room");
    }
    run("cp", &["/bin/sleep", &at("sleep")]);
    run("sync", &["-f", text(mount.path())]);
    for (attribute, name) in [("+i", "fixed"), ("+a", "log")] {
        run("chattr", &[attribute, &at(name)]);
    }
    let mut running = program(&at("sleep"), &["1000"]).spawn().expect("it is a program");
    let done = reorganized(&disk, mount.path(), &["--partition", disk.partition()]);
    running.kill().and_then(|()| running.wait()).expect("it is ours");
    for (attribute, name) in [("-i", "fixed"), ("-a", "log")] {
        run("chattr", &[attribute, &at(name)]);
    }
    let listed = done["crossing"].as_array().expect("it lists files");
    let reason_of = |name: &str| {
        let file = listed.iter().find(|file| file["path"] == at(name).as_str());
        file.unwrap_or_else(|| panic!("{name} is not in {done:#}"))["reason"]
            .as_str()
            .unwrap_or("none")
            .to_string()
    };
    assert!(reason_of("fixed").starts_with("immutable"), "{done:#}");
    assert!(reason_of("log").starts_with("append-only"), "{done:#}");
    assert_eq!(reason_of("sleep"), "in use by a running program");
    assert_eq!(reason_of("free"), "none");
    mount.unmount();
}

#[test]
fn file_system_whose_blocks_cannot_be_exchanged_is_rejected() {
    if !have_loops_and(&PROGRAMS) {
        return;
    }
    let disk = Disk::of("atlas-10k", 1003, 200_000);
    let here = ["--partition", disk.partition()];
    let refuses = |folder: &Path, expected: &str| {
        fs::write(folder.join("file"), vec![1; 100_000]).expect("there is room");
        let args = [&["layout", "reorganize", disk.map(), text(folder)], &here[..]].concat();
        let reported = refused(&args, 2);
        assert!(reported.contains(expected), "{reported}");
    };
    let device = Loop::over(Path::new(&disk.image()));
    run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "1024", device.device()]);
    let mount = Mount::new("ext4", device.device());
    refuses(mount.path(), "blocks of 1024 bytes: the kernel exchanges whole pages of ");
    mount.unmount();

    run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "4096", device.device()]);
    let mount = Mount::new("ext4", device.device());
    fs::write(mount.path().join("file"), vec![1; 100_000]).expect("there is room");
    let other = Disk::whole("atlas-10k-ii");
    let foreign = refused(&["layout", "reorganize", other.map(), text(mount.path())], 2);
    assert!(foreign.contains("another disk"), "{foreign}");
    mount.unmount();

    run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "4096", "-O", "^has_journal", device.device()]);
    let mount = Mount::new("ext4", device.device());
    refuses(mount.path(), "mounted without a journal: a power cut could lose data");
    mount.unmount();
    let elsewhere = disks::folder();
    if run("stat", &["-f", "-c", "%T", text(elsewhere.path())]).trim() != "ext2/ext3" {
        refuses(elsewhere.path(), "is not on ext4");
    }
    let reported = refused(&["layout", "reorganize", disk.map(), "/proc/version", here[0], here[1]], 2);
    assert!(reported.contains("/proc/version: is not on ext4"), "{reported}");
}

#[test]
fn preallocated_file_keeps_to_whole_tracks() {
    if !have_loops_and(&PROGRAMS) {
        return;
    }
    let disk = Disk::of("atlas-10k", 1003, SECTORS);
    let here = ["--partition", disk.partition()];
    let device = Loop::over(Path::new(&disk.image()));
    let mount = age(device.device(), FOLDERS);
    let at = |name: &str| text(&mount.path().join(name)).to_string();
    let make = |name: &str, size: &str| {
        headstack(&[&["layout", "preallocate", disk.map(), &at(name), size, "--json"], &here[..]].concat())
    };
    // The file needs more than one donor file, and its length is not a whole number of blocks.
    let size = 80_000_001u64;
    let made = make("new", &size.to_string());
    assert_eq!(made.code, 0, "{}", made.err);
    let reported = crate::common::schema::parsed(&["layout", "preallocate"], &made.out);
    assert!(reported["version"].is_string(), "{reported}");
    assert_eq!(number(&reported, "crossings"), 0, "{reported:#}");
    let shown = json(&[&["layout", "show", disk.map(), &at("new"), "--json"], &here[..]].concat());
    let total = &shown["total"];
    assert_eq!((number(total, "crossings"), number(total, "bytes")), (0, size.next_multiple_of(4096)));
    // All extents but the last begin with a track, and there are no more than if all tracks were as short as the shortest.
    assert!(number(total, "extents_on_track") + 1 >= number(total, "extents"), "{shown:#}");
    assert!(number(total, "extents") < 1 + size / (disk.shortest_track_bytes() - 8192), "{shown:#}");
    let bytes = fs::read(at("new")).expect("it is there");
    assert!(bytes.len() as u64 == size && bytes.iter().all(|byte| *byte == 0));

    let again = make("new", "1M");
    assert!(again.code == 2 && again.err.contains("exists already"), "{}", again.err);
    let large = make("large", "400M");
    assert!(large.code == 1 && large.err.contains("whole tracks are free for"), "{}", large.err);
    assert!(!Path::new(&at("large")).exists());
    let small = make("small", "5000");
    assert_eq!(small.code, 0, "{}", small.err);
    let text_of_it =
        printed(&[&["layout", "preallocate", disk.map(), &at("other"), "1M"], &here[..]].concat());
    assert!(text_of_it.contains("1.05 MB in "), "{text_of_it}");
    mount.unmount();
    run("e2fsck", &["-fn", device.device()]);
}
