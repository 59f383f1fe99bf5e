//! ext4 file systems whose data cross no track boundary, tested with the programs that make, check, mount and inspect ext4.

use crate::common::{headstack, json, printed, refused};
use crate::device::{Loop, Mount};
use crate::disks::{self, Disk};
use crate::emulator::{Emulator, Setup};
use crate::tools::{have, have_loops_and, output, run, text};
use headstack_prerequisites::skip;
use headstack_tracks::TrackMap;
use headstack_tracks::map::Identity;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

pub(crate) const PROGRAMS: [&str; 5] = ["mke2fs", "e2fsck", "debugfs", "dumpe2fs", "blkid"];
pub(crate) const METHODS: [&str; 2] = ["bad-blocks", "hidden-file"];

/// Makes a file system on `target`, the disk's part, and returns the report.
pub(crate) fn made(disk: &Disk, target: &str, more: &[&str]) -> Value {
    let args = ["layout", "mkfs", "ext4", disk.map(), target, "--partition", disk.partition(), "--json"];
    json(&[&args[..], more].concat())
}

pub(crate) fn number(reported: &Value, key: &str) -> u64 {
    reported[key].as_u64().unwrap_or_else(|| panic!("{key} of {reported}"))
}

/// The blocks that the file system must leave out, from `layout exclude`.
fn listed(disk: &Disk) -> Vec<u64> {
    let args = ["layout", "exclude", disk.map(), "--partition", disk.partition(), "--boundaries", "every"];
    printed(&args).lines().map(|line| line.parse().expect("a block a line")).collect()
}

/// The runs of blocks `first..=last` in the output of debugfs, dumpe2fs or filefrag.
fn runs(words: &str) -> Vec<(u64, u64)> {
    let numbers = |word: &str| word.parse::<u64>().ok();
    let run = |word: &str| match word.split_once('-') {
        Some((first, last)) => Some((numbers(first)?, numbers(last)?)),
        None => numbers(word).map(|only| (only, only)),
    };
    words.split([',', ' ', '\n']).filter_map(run).collect()
}

#[test]
fn clean_file_system_withholds_every_listed_block() {
    if !have(&PROGRAMS) {
        return;
    }
    let disk = Disk::of("atlas-10k", 1003, 4_000_000);
    let listed = listed(&disk);
    for method in METHODS {
        let image = disk.image();
        let reported = made(&disk, &image, &["--method", method]);
        assert_eq!(
            (&reported["method"], &reported["e2fsck"]),
            (&method.into(), &"clean".into()),
            "{reported}"
        );
        assert_eq!(number(&reported, "listed_blocks"), listed.len() as u64);
        run("e2fsck", &["-fn", &image]);
        // The blocks that are left out are in the list of bad blocks, or in the hidden file.
        let held: Vec<u64> = match method {
            "bad-blocks" => runs(&run("dumpe2fs", &["-b", &image])).into_iter().map(|run| run.0).collect(),
            _ => {
                let reported = run("debugfs", &["-R", "stat /.headstack-excluded", &image]);
                assert!(reported.contains("Flags: 0x800d0") && reported.contains("Size: 0"), "{reported}");
                let extents = reported.split("EXTENTS:").nth(1).expect("it has extents");
                let leaves = extents.split(", ").filter(|word| word.contains("[u]"));
                let places = leaves.filter_map(|word| word.trim().split(':').nth(1).map(runs));
                places.flatten().flat_map(|(first, last)| first..=last).collect()
            }
        };
        let missing: Vec<&u64> = listed.iter().filter(|block| held.binary_search(block).is_err()).collect();
        assert_eq!(held.len() as u64, number(&reported, "excluded_blocks"), "{method}");
        assert_eq!(missing.len() as u64, number(&reported, "metadata_blocks_not_excluded"), "{method}");
        assert_eq!(held.len() + missing.len(), listed.len(), "{method}");
        // The listed blocks that are not held are used by metadata, so that no file can get them: they must not be free.
        let free = run("dumpe2fs", &[&image]);
        let free = free.lines().filter_map(|line| line.trim().strip_prefix("Free blocks: ")).flat_map(runs);
        for (first, last) in free {
            let next = listed.get(listed.partition_point(|block| *block < first));
            assert!(next.is_none_or(|block| *block > last), "{next:?} is free");
        }
    }
}

/// Writes files of many sizes to folders and deletes some of them again, so that free space is fragmented.
pub(crate) fn write_tree(folder: &Path) {
    let mut random = Pcg64Mcg::seed_from_u64(0x2545_F491);
    let mut bytes = |count: usize| {
        let mut bytes = vec![0; count];
        random.fill_bytes(&mut bytes);
        bytes
    };
    for number in 0..400usize {
        let place = folder.join(format!("folder-{}", number % 20));
        fs::create_dir_all(&place).expect("there is room");
        let size = [900, 5_000, 17_000, 66_000, 150_000, 700_000][number % 6] + number * 37;
        fs::write(place.join(format!("file-{number}")), bytes(size)).expect("there is room");
    }
    for number in (0..400).step_by(7) {
        let file = folder.join(format!("folder-{}/file-{number}", number % 20));
        fs::remove_file(file).expect("it was written");
    }
    let mut large = File::create(folder.join("large")).expect("there is room");
    let piece = bytes(1 << 20);
    (0..64).for_each(|_| large.write_all(&piece).expect("there is room"));
}

/// The extents of a tree of files.
#[derive(Default)]
pub(crate) struct Laid {
    pub(crate) extents: usize,
    /// The extents that cross a track boundary: their file, first and last block.
    pub(crate) crossing: Vec<(String, u64, u64)>,
}

impl Laid {
    fn of(disk: &Disk, tree: &Path) -> Laid {
        let mut laid = Laid::default();
        for file in run("find", &[text(tree), "-type", "f"]).lines() {
            let reported = run("filefrag", &["-v", "-b4096", file]);
            let extents =
                reported.lines().filter(|line| line.split(':').count() >= 5 && !line.contains("ext:"));
            for line in extents {
                let place =
                    line.split(':').nth(2).expect("it has five fields").replace("..", "-").replace(' ', "");
                let (first, last) = runs(&place)[0];
                laid.extents += 1;
                if disk.boundary_in(first * 8, (last + 1) * 8).is_some() {
                    laid.crossing.push((file.to_string(), first, last));
                }
            }
        }
        laid
    }
}

/// Copies a tree to a file system and finds its extents. Then checks the file system, mounts it again and compares the copy.
pub(crate) fn lay(disk: &Disk, device: &str, tree: &Path) -> Laid {
    let mount = Mount::new("ext4", device);
    let copy = mount.path().join("copy");
    run("cp", &["-r", text(tree), text(&copy)]);
    run("sync", &["-f", text(mount.path())]);
    let laid = Laid::of(disk, &copy);
    mount.unmount();
    run("e2fsck", &["-fn", device]);
    let mount = Mount::new("ext4", device);
    run("diff", &["-r", "--no-dereference", text(tree), text(&mount.path().join("copy"))]);
    let hidden = mount.path().join(".headstack-excluded");
    if hidden.exists() {
        assert!(!output("rm", &["-f", text(&hidden)]).status.success(), "it is removed by accident");
        assert_eq!(fs::metadata(&hidden).expect("it is there").len(), 0);
    }
    mount.unmount();
    laid
}

#[test]
fn extents_of_a_copied_tree_cross_no_track_boundary() {
    if !have_loops_and(&[&PROGRAMS[..], &["cp", "diff", "filefrag"]].concat()) {
        return;
    }
    let tree = disks::folder();
    write_tree(tree.path());
    // The first drive's tracks have odd numbers of sectors, the second's hold whole blocks. Both partitions begin at arbitrary sectors.
    for (drive, start) in [("atlas-10k", 1003), ("exos-x18", 4096 * 77)] {
        let disk = Disk::of(drive, start, 4_000_000);
        for method in METHODS {
            let image = disk.image();
            made(&disk, &image, &["--method", method]);
            let device = Loop::over(Path::new(&image));
            let laid = lay(&disk, device.device(), tree.path());
            assert_eq!(laid.crossing, [], "{drive}, {method}");
            assert!(laid.extents > 350, "{drive}, {method}: {} extents", laid.extents);
        }
        // Control: extents on a file system that mke2fs alone made do cross boundaries.
        let image = disk.image();
        run("mke2fs", &["-q", "-F", "-t", "ext4", &image]);
        let device = Loop::over(Path::new(&image));
        let laid = lay(&disk, device.device(), tree.path());
        assert!(laid.crossing.len() > 10, "{drive}: {} of {} cross", laid.crossing.len(), laid.extents);
    }
}

#[test]
fn tree_on_an_emulated_disk_crosses_no_track_boundary() {
    if !have_loops_and(&[&PROGRAMS[..], &["cp", "diff", "filefrag"]].concat()) {
        return;
    }
    let disk = Disk::whole("atlas-10k");
    let emulator = Emulator::start(&Setup { rig: "atlas-10k", mounted: true, ..Setup::default() });
    let device = Loop::over(&emulator.file());
    let reported = made(&disk, device.device(), &[]);
    assert_eq!(reported["e2fsck"], "clean", "{reported}");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates are in a folder");
    let laid = lay(&disk, device.device(), sources);
    assert_eq!(laid.crossing, []);
    assert!(laid.extents > 100);
}

/// Runs `layout mkfs ext4`, which must refuse with `expect` in its message and must not change the image.
pub(crate) fn is_refused(disk: &Disk, image: &str, more: &[&str], expect: &str) {
    let before = fs::read(image).expect("it is there");
    let args = ["layout", "mkfs", "ext4", disk.map(), image];
    let reported = refused(&[&args[..], more].concat(), 2);
    assert!(reported.contains(expect), "{more:?}: {reported}");
    assert!(before == fs::read(image).expect("it is there"), "{more:?} changed the image");
}

#[test]
fn every_rejection_leaves_the_image_unchanged() {
    if !have(&PROGRAMS) {
        return;
    }
    let disk = Disk::of("atlas-10k", 1000, 40_000);
    let image = disk.image();
    let file = fs::OpenOptions::new().write(true).open(&image).expect("it is there");
    file.write_all_at(&[0x5A; 8192], 3 << 20).expect("there is room");
    drop(file);
    let here = ["--partition", disk.partition()];
    let refused =
        |more: &[&str], expect: &str| is_refused(&disk, &image, &[&here[..], more].concat(), expect);
    let size = "it has 20480000 bytes, and the partition of the map";
    is_refused(&disk, &image, &[], size);
    is_refused(&disk, &image, &["--partition", "1000,40001"], size);
    is_refused(&disk, &image, &["--partition", "18000000,40000"], "reaches beyond");
    refused(&["--block", "1000"], "blocks of 1000 bytes are no whole sectors");
    refused(&["--block", "512"], "ext4 has blocks of 1024, 2048 or 4096");
    refused(&["--", "-b", "1024"], "the option -b of mke2fs");
    refused(&["--", "/dev/null"], "the option /dev/null of mke2fs");
    refused(&["--", "-O", "nonsense"], "mke2fs cannot make this file system");
    refused(&["--method", "hidden-file", "--", "-O", "bigalloc"], "features that are not supported here");
    refused(&["--method", "hidden-file", "--", "-N", "4000000000"], "mke2fs cannot make this file system");
    refused(&["--method", "bad-blocks", "--", "-N", "20000"], "mke2fs cannot make this file system");
    refused(
        &["--method", "bad-blocks", "--", "-E", "resize=4000000000"],
        "e2fsck finds errors in this file system",
    );
    refused(&["--", "-J", "device=/dev/null"], "the option -J of mke2fs is not allowed");
    refused(&["--", "-z", "undo"], "the option -z of mke2fs is not allowed");
    refused(&["--", "-d", "/etc"], "the option -d of mke2fs is not allowed");
    let open = File::open(&image).expect("it is there");
    refused(&[], "is in use (another program, a loop device or swap has it open)");
    drop(open);

    made(&disk, &image, &[]);
    refused(&[], "holds a file system or the like (ext4): --force");
    assert_eq!(made(&disk, &image, &["--force", "--method", "hidden-file"])["e2fsck"], "clean");
    let none = disk.folder().join("none");
    let reported = crate::common::refused(&["layout", "mkfs", "ext4", disk.map(), text(&none)], 2);
    assert!(reported.contains("No such file"), "{reported}");
    let reported = crate::common::refused(&["layout", "mkfs", "ext4", disk.map(), text(disk.folder())], 2);
    assert!(reported.contains("neither a block device nor a file"), "{reported}");
}

#[test]
fn mounted_or_attached_image_is_rejected() {
    if !have_loops_and(&PROGRAMS) {
        return;
    }
    let disk = Disk::of("atlas-10k", 1000, 40_000);
    let image = disk.image();
    made(&disk, &image, &[]);
    let here = ["--force", "--partition", disk.partition()];
    let device = Loop::over(Path::new(&image));
    is_refused(&disk, &image, &here, "is in use");
    let mount = Mount::new("ext4", device.device());
    is_refused(&disk, &image, &here, "is in use");
    is_refused(&disk, device.device(), &here, "is in use (mounted on ");
    mount.unmount();
    let other = ["--force", "--partition", "1000,40008"];
    is_refused(&disk, device.device(), &other, "bytes, and the partition of the map");
}

/// The first sector of a disk with an MBR partition table that has one partition.
fn partition_table(start: u32, sectors: u32) -> [u8; 512] {
    let mut table = [0; 512];
    table[450] = 0x83;
    table[454..458].copy_from_slice(&start.to_le_bytes());
    table[458..462].copy_from_slice(&sectors.to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xAA]);
    table
}

#[test]
fn empty_partition_is_accepted_and_a_full_one_rejected() {
    if !have_loops_and(&[&PROGRAMS[..], &["addpart", "delpart"]].concat()) {
        return;
    }
    let whole = Disk::whole("atlas-10k");
    let image = whole.image();
    let file = fs::OpenOptions::new().write(true).open(&image).expect("it is there");
    file.write_all_at(&partition_table(2048, 40_000), 0).expect("there is room");
    drop(file);
    let device = Loop::over(Path::new(&image));
    run("addpart", &[device.device(), "1", "2048", "40000"]);
    let part = format!("{}p1", device.device());
    let make = |partition: &str| {
        headstack(&["layout", "mkfs", "ext4", whole.map(), &part, "--partition", partition])
    };
    let is_shown = Path::new(&part).exists();
    let [other, first, second] = ["4096,40000", "2048,40000", "2048,40000"].map(make);
    run("delpart", &[device.device(), "1"]);
    if !is_shown {
        return skip("this machine shows no partitions of loop devices");
    }
    assert!(other.code == 2 && other.err.contains("another part of its disk"), "{}", other.err);
    assert!(first.code == 0 && first.out.contains("clean"), "{}", first.err);
    assert!(
        second.code == 2 && second.err.contains("holds a file system or the like (ext4)"),
        "{}",
        second.err
    );
}

#[test]
fn failure_after_the_first_write_reports_the_damage() {
    if !have_loops_and(&PROGRAMS) {
        return;
    }
    let disk = Disk::of("atlas-10k", 1000, 40_000);
    // The tmpfs is too small for the image, so that a write fails after the first ones.
    let narrow = Mount::new("tmpfs", "none");
    run("mount", &["-o", "remount,size=8k", text(narrow.path())]);
    for method in METHODS {
        let image = disks::sparse(&narrow.path().join("image"), 40_000 * 512);
        let args = ["layout", "mkfs", "ext4", disk.map(), &image, "--partition", disk.partition()];
        let reported = refused(&[&args[..], &["--method", method]].concat(), 1);
        assert!(reported.contains("what is on the disk now is no good"), "{method}: {reported}");
    }
    narrow.unmount();
}

#[test]
fn hidden_file_is_shown_only_if_named() {
    if !have_loops_and(&PROGRAMS) {
        return;
    }
    let disk = Disk::of("atlas-10k", 1003, 400_000);
    let image = disk.image();
    made(&disk, &image, &["--method", "hidden-file"]);
    let device = Loop::over(Path::new(&image));
    let mount = Mount::new("ext4", device.device());
    let holder = mount.path().join(".headstack-excluded");
    fs::create_dir(mount.path().join("sub")).expect("it is mounted");
    fs::write(mount.path().join("sub/.headstack-excluded"), [1; 50_000]).expect("there is room");
    run("sync", &["-f", text(mount.path())]);
    let here = ["--partition", disk.partition(), "--check", "--json"];
    let all = json(&[&["layout", "show", disk.map(), text(mount.path())], &here[..]].concat());
    assert_eq!((&all["total"]["files"], &all["total"]["crossings"]), (&1.into(), &0.into()), "{all:#}");
    assert_eq!(all["left_out"], serde_json::json!([text(&holder)]), "only the file in the root holds blocks");
    let reported = printed(&[&["layout", "show", disk.map(), text(mount.path())], &here[..3]].concat());
    assert!(reported.contains(".headstack-excluded, which holds the blocks at boundaries"), "{reported}");
    let named = headstack(&[&["layout", "show", disk.map(), text(&holder)], &here[..]].concat());
    assert!(named.code == 1 && named.err.contains("extents cross"), "{}", named.err);
    mount.unmount();
}

#[test]
fn oversized_bad_block_list_is_rejected() {
    if !have(&PROGRAMS) {
        return;
    }
    let mut map = TrackMap::new();
    map.push(9, 1_200_000);
    let disk = Disk::made(&Identity::new(map.end().0, 512), &map);
    let image = disk.image();
    let before = fs::metadata(&image).expect("it is there");
    let reported = refused(&["layout", "mkfs", "ext4", disk.map(), &image, "--method", "bad-blocks"], 2);
    assert!(
        reported.contains("blocks to leave out: a list of bad blocks holds 524287; --method hidden-file"),
        "{reported}"
    );
    let after = fs::metadata(&image).expect("it is there");
    assert_eq!((before.mtime_nsec(), before.blocks()), (after.mtime_nsec(), after.blocks()));
}

#[test]
fn block_smaller_than_a_sector_is_rejected() {
    let mut map = TrackMap::new();
    map.push(100, 100);
    let disk = Disk::made(&Identity::new(10_000, 4096), &map);
    let image = disk.image();
    is_refused(
        &disk,
        &image,
        &["--block", "1024"],
        "blocks of 1024 bytes are no whole sectors of 4096 bytes",
    );
}

/// The map of a disk of `bytes` bytes: the runs of tracks of a shipped drive, repeated.
pub(crate) fn grown(drive: &str, bytes: u64) -> (Identity, TrackMap) {
    let small = disks::tracks(drive);
    let sectors = bytes / 512;
    let mut map = TrackMap::new();
    for run in small.runs().iter().cycle() {
        let left = sectors - map.end().0;
        let tracks = u64::from(run.tracks).min(left / u64::from(run.sectors));
        map.push(run.sectors, tracks as u32);
        if tracks < u64::from(run.tracks) {
            break;
        }
    }
    (Identity { physical_sectors: 8, ..Identity::new(sectors, 512) }, map)
}

/// Makes a file system on a disk of this size, a sparse image in `folder`, by the method that the command chooses.
fn large(bytes: u64, folder: &Path) -> Value {
    let (identity, map) = grown("exos-x18", bytes);
    let end = map.end().0;
    let disk = Disk::made(&identity, &map);
    let folder = tempfile::tempdir_in(folder).expect("there is room for a folder");
    let image = disks::sparse(&folder.path().join("image"), end * 512);
    made(&disk, &image, &["--", "-J", "size=64"])
}

#[test]
fn terabyte_layout_uses_the_hidden_file() {
    if !have(&PROGRAMS) {
        return;
    }
    let reported = large(1_400_000_000_000, &std::env::temp_dir());
    assert_eq!(
        (&reported["method"], &reported["e2fsck"]),
        (&"hidden-file".into(), &"clean".into()),
        "{reported}"
    );
    assert!(number(&reported, "excluded_blocks") > 550_000, "{reported}");
    assert!(number(&reported, "metadata_blocks_not_excluded") < 20_000, "{reported}");
}

/// Run by `make layout-large`. The sparse image is longer than a file on ext4 can be, so it is in /dev/shm and takes 2 GB of memory.
#[test]
#[ignore = "a minute, and 2 GB of memory: make layout-large"]
fn layout_of_twenty_terabytes_uses_the_hidden_file() {
    let folder = Path::new("/dev/shm");
    if !have(&PROGRAMS) || !folder.exists() {
        return;
    }
    let reported = large(20_000_000_000_000, folder);
    eprintln!("{reported:#}");
    assert_eq!(
        (&reported["method"], &reported["e2fsck"]),
        (&"hidden-file".into(), &"clean".into()),
        "{reported}"
    );
    assert!(number(&reported, "excluded_blocks") > 10_000_000, "{reported}");
}
