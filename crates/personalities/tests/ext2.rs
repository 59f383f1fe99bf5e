//! The layout and allocation of the simulated ext2, compared with those of e2fsprogs.

#![allow(clippy::disallowed_methods, reason = "tests read files and run programs")]

use headstack_personalities::ext2::{Ext2Geometry, Ext2Shape, Ext2Volume};
use headstack_prerequisites::{PROGRAM_FOLDERS, have_programs};
use std::path::Path;
use std::process::Command;

/// Runs a program of e2fsprogs on an image and returns what it prints.
fn run(program: &str, arguments: &[&str], image: &Path) -> String {
    run_with(program, arguments, image, None)
}

fn run_with(program: &str, arguments: &[&str], image: &Path, last: Option<&str>) -> String {
    let mut command = Command::new(program);
    command
        .env("PATH", PROGRAM_FOLDERS)
        .env("MKE2FS_CONFIG", "/dev/null")
        .args(arguments)
        .arg(image)
        .args(last);
    let output = command.output().expect("the program runs");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program}: {text}{errors}");
    text.into_owned()
}

/// Makes an ext2 of revision 0 in a file.
fn make(shape: Ext2Shape, image: &Path) {
    let file = std::fs::File::create(image).expect("the folder can be written");
    file.set_len(shape.blocks * u64::from(shape.block_bytes)).expect("the file is sparse");
    let Ext2Shape { block_bytes, bytes_per_inode, reserved_percent, .. } = shape;
    let (block, inode, reserved) =
        (block_bytes.to_string(), bytes_per_inode.to_string(), reserved_percent.to_string());
    let options = ["-t", "ext2", "-r", "0", "-F", "-q", "-I", "128", "-b", &block, "-i", &inode];
    // Without an explicit number of blocks, mke2fs rounds down to whole pages.
    let blocks = shape.blocks.to_string();
    run_with("mke2fs", &[&options[..], &["-m", &reserved]].concat(), image, Some(&blocks));
}

/// The number behind a key in the listing of the superblock.
fn field(text: &str, key: &str) -> u32 {
    let line = text.lines().find(|line| line.starts_with(&format!("{key}:")));
    let value = line.and_then(|line| line.split(':').nth(1)).map(str::trim);
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("`{key}` in {text}"))
}

/// The number behind the first occurrence of a word in a text.
fn number_after(text: &str, word: &str) -> u32 {
    let rest = text.split(word).nth(1).unwrap_or_else(|| panic!("`{word}` in {text}"));
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("a number after `{word}` in {text}"))
}

fn number_before(text: &str, word: &str) -> u32 {
    let before = text.split(word).next().unwrap_or_default();
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or_else(|_| panic!("a number before `{word}` in {text}"))
}

fn shape(block_bytes: u32, blocks: u64, bytes_per_inode: u32) -> Ext2Shape {
    Ext2Shape { block_bytes, blocks, bytes_per_inode, reserved_percent: 5 }
}

fn assert_same_layout(shape: Ext2Shape, volume: &Ext2Volume, image: &Path) {
    let geometry = volume.geometry();
    let text = run("dumpe2fs", &[], image);
    let ours = [
        ("Inode count", geometry.inodes()),
        ("Block count", geometry.blocks),
        ("Reserved block count", geometry.reserved_blocks),
        ("First block", geometry.first_block),
        ("Blocks per group", geometry.blocks_per_group),
        ("Inodes per group", geometry.inodes_per_group),
        ("Inode blocks per group", geometry.inode_blocks),
    ];
    for (key, value) in ours {
        assert_eq!(value, field(&text, key), "{key} of {shape:?}");
    }
    let groups: Vec<&str> = text.split("\nGroup ").skip(1).collect();
    assert_eq!(groups.len(), geometry.groups as usize, "{shape:?}");
    for (number, group) in (0..).zip(groups) {
        assert_eq!(
            geometry.block_bitmap(number),
            number_after(group, "Block bitmap at"),
            "{shape:?} {group}"
        );
        assert_eq!(
            geometry.inode_bitmap(number),
            number_after(group, "Inode bitmap at"),
            "{shape:?} {group}"
        );
        assert_eq!(geometry.inode_table(number).start, number_after(group, "Inode table at"), "{group}");
        assert_eq!(volume.free_blocks(number), number_before(group, " free blocks"), "{shape:?} {group}");
        assert_eq!(volume.free_inodes(number), number_before(group, " free inodes"), "{shape:?} {group}");
    }
}

/// Block size, blocks and bytes per inode: the study's file system, each block size, and last groups that are complete, short and too short.
const SHAPES: [(u32, u64, u32); 12] = [
    (1024, 102_816, 4096),
    (1024, 64, 4096),
    (1024, 1_440, 4096),
    (1024, 8_193, 4096),
    (1024, 8_400, 4096),
    (1024, 8_600, 4096),
    (1024, 300_000, 8192),
    (1024, 20_000, 1024),
    (2048, 100_000, 4096),
    (4096, 65_600, 8192),
    (4096, 200_000, 16_384),
    (8192, 140_000, 8192),
];

#[test]
fn layout_is_that_of_mke2fs() {
    if !have_programs(&["mke2fs", "dumpe2fs"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let image = folder.path().join("image");
    for (block_bytes, blocks, bytes_per_inode) in SHAPES {
        let shape = shape(block_bytes, blocks, bytes_per_inode);
        make(shape, &image);
        let geometry: Ext2Geometry = shape.geometry().expect("mke2fs accepts it too");
        let volume = Ext2Volume::new(geometry, true).expect("there is room");
        assert_same_layout(shape, &volume, &image);
    }
}

/// The data blocks and the pointer blocks that debugfs lists for a file, each in the order of the list.
fn listed(text: &str) -> (Vec<u32>, Vec<u32>) {
    let list = text.split("BLOCKS:").nth(1).expect("debugfs lists blocks");
    let list = list.split("TOTAL:").next().expect("the list has an end").replace('\n', "");
    let (mut data, mut pointers) = (Vec::new(), Vec::new());
    for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (place, blocks) = entry.rsplit_once(':').expect("a place and its blocks");
        let mut ends = blocks.split('-').map(|number| number.parse::<u32>().expect("a block number"));
        let first = ends.next().expect("a first block");
        let last = ends.next().unwrap_or(first);
        if place.contains("IND") { &mut pointers } else { &mut data }.extend(first..=last);
    }
    (data, pointers)
}

#[test]
fn files_have_the_blocks_that_e2fsprogs_gives_them() {
    if !have_programs(&["mke2fs", "debugfs"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let (image, source) = (folder.path().join("image"), folder.path().join("source"));
    for kib in [1u64, 12, 13, 268, 269, 7_000, 65_536] {
        let shape = shape(1024, 102_816, 4096);
        make(shape, &image);
        // The data are not zero, because debugfs does not allocate blocks of zeros.
        std::fs::write(&source, vec![1u8; kib as usize * 1024]).expect("the folder can be written");
        let write = format!("write {} file", source.display());
        run("debugfs", &["-w", "-R", &write], &image);
        let (data, mut pointers) = listed(&run("debugfs", &["-R", "stat file"], &image));
        let mut volume =
            Ext2Volume::new(shape.geometry().expect("the shape is good"), true).expect("it fits");
        volume.create(0, 0).expect("there is an inode");
        for written in 1..=kib {
            volume.write_to(0, written * 1024).expect("there is room");
        }
        assert_eq!(volume.blocks_of(0), data, "data of {kib} KiB");
        let mut ours: Vec<u32> = volume.pointers_of(0).map(|(_, block)| block).collect();
        ours.sort_unstable();
        pointers.sort_unstable();
        assert_eq!(ours, pointers, "pointers of {kib} KiB");
    }
}

#[test]
fn every_block_has_one_owner_and_is_free_after_deletion() {
    let shape = shape(1024, 30_000, 4096);
    let mut volume = Ext2Volume::new(shape.geometry().expect("the shape is good"), true).expect("it fits");
    let counts = |volume: &Ext2Volume| -> Vec<(u32, u32)> {
        (0..4).map(|group| (volume.free_blocks(group), volume.free_inodes(group))).collect()
    };
    let before = counts(&volume);
    // Forty files grow alternately until the file system is full.
    (0..40).for_each(|file| volume.create(file, 0).expect("there is an inode"));
    let mut kib = 0;
    while (0..40).all(|file| volume.write_to(file, kib * 1024).is_ok()) {
        kib += 3;
    }
    let mut owned: Vec<u32> = (0..40)
        .flat_map(|file| {
            let pointers = volume.pointers_of(file).map(|(_, block)| block);
            volume.blocks_of(file).iter().copied().chain(pointers).collect::<Vec<_>>()
        })
        .collect();
    let all = owned.len();
    owned.sort_unstable();
    owned.dedup();
    assert_eq!(owned.len(), all, "a block has one owner");
    assert!(owned.len() > 25_000, "{} blocks are used", owned.len());
    (0..40).for_each(|file| _ = volume.delete(file));
    assert_eq!(counts(&volume), before);
}

#[test]
fn directories_go_to_other_groups_and_their_files_with_them() {
    let shape = shape(1024, 102_816, 4096);
    let geometry = shape.geometry().expect("the shape is good");
    let mut volume = Ext2Volume::new(geometry, true).expect("it fits");
    let mut groups = Vec::new();
    for directory in 1..=4 {
        volume.make_directory(directory).expect("there is an inode");
        volume.create(directory, directory).expect("there is an inode");
        volume.write_to(directory, 1024).expect("there is room");
        groups.push(geometry.group_of(volume.blocks_of(directory)[0]));
    }
    assert_eq!(groups, [1, 2, 3, 4]);
}

#[test]
fn files_that_grow_in_turn_have_eight_blocks_together_with_preallocation() {
    let runs = |preallocates: bool| {
        let geometry = shape(1024, 102_816, 4096).geometry().expect("the shape is good");
        let mut volume = Ext2Volume::new(geometry, preallocates).expect("it fits");
        (0..2).for_each(|file| volume.create(file, 0).expect("there is an inode"));
        for kib in 1..=2_000u64 {
            (0..2).for_each(|file| volume.write_to(file, kib * 1024).expect("there is room"));
        }
        let blocks = volume.blocks_of(0);
        1 + blocks.windows(2).filter(|pair| pair[1] != pair[0] + 1).count()
    };
    assert_eq!(runs(false), 2_000);
    let with = runs(true);
    assert!((250..=270).contains(&with), "{with}");
}
