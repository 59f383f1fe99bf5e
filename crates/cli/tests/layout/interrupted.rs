//! `layout mkfs` that is terminated or killed before its end: no incomplete file system is taken for a whole one.

use crate::common::command;
use crate::disks::Disk;
use crate::ext4::{METHODS, PROGRAMS, grown, made};
use crate::tools::{attempt, have, output, run, wait_for};
use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Stdio;

/// What dumpe2fs takes an image for.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    /// There is no file system.
    Nothing,
    /// There is a file system whose state is not `clean`.
    Marked,
    Whole,
}

fn taken(image: &str) -> Taken {
    let said = output("dumpe2fs", &["-h", image]);
    let text = String::from_utf8_lossy(&said.stdout);
    match text.lines().find(|line| line.starts_with("Filesystem state:")) {
        None => Taken::Nothing,
        Some(line) if line.ends_with(" clean") => Taken::Whole,
        Some(_) => Taken::Marked,
    }
}

/// Whether a running process has the image among its arguments.
fn is_at_work(image: &str) -> bool {
    let programs = fs::read_dir("/proc").expect("it is there").flatten();
    let mut lines = programs.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line.split(|byte| *byte == 0).any(|word| word == image.as_bytes()))
}

/// Whether the image has the hidden file with excluded blocks.
fn holds_blocks(image: &str) -> bool {
    run("debugfs", &["-R", "stat /.headstack-excluded", image]).contains("Flags: 0x800d0")
}

/// The present bytes of the superblock.
fn head(image: &str) -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    let file = fs::File::open(image).expect("it is there");
    file.read_exact_at(&mut bytes, 1024).expect("it is longer");
    bytes
}

#[test]
fn terminated_mkfs_leaves_no_half_made_file_system() {
    if !have(&PROGRAMS) {
        return;
    }
    let disk = Disk::of("atlas-10k", 1003, 16_000_000);
    for method in METHODS {
        let image = disk.image();
        made(&disk, &image, &["--method", method]);
        let args = ["layout", "mkfs", "ext4", disk.map(), &image, "--partition", disk.partition()];
        let mut ends = Vec::new();
        // The image has a whole file system. The command is terminated after 0 to 5 changes of the superblock.
        for changes in 0..6 {
            let before = head(&image);
            let mut command = command(&[&args[..], &["--force", "--method", method]].concat());
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
            let (mut last, mut seen) = (before.clone(), 0);
            wait_for("a change of the superblock, or the end", || {
                let now = head(&image);
                seen += usize::from(now != last);
                last = now;
                let has_ended = child.try_wait().expect("it is ours").is_some();
                (has_ended || seen >= changes).then_some(())
            });
            let _ = attempt("kill", &["-TERM", &child.id().to_string()]);
            let code = child.wait().expect("it is ours").code();
            wait_for("the programs that it began", || (!is_at_work(&image)).then_some(()));
            match code {
                // The command ended before the signal.
                Some(0) => assert_eq!(taken(&image), Taken::Whole, "{method}, after {changes} changes"),
                _ if head(&image) == before => {}
                Some(1) => assert_eq!(taken(&image), Taken::Nothing, "{method}, after {changes} changes"),
                // It was killed without a code, because it changed the superblock before it handled signals.
                code => panic!("{method}, after {changes} changes: {code:?}"),
            }
            ends.push(code);
        }
        assert!(ends.contains(&Some(1)), "{method}: it was never interrupted: {ends:?}");
    }
}

#[test]
fn mke2fs_dies_with_its_parent() {
    if !have(&PROGRAMS) {
        return;
    }
    let (identity, map) = grown("exos-x18", 1_400_000_000_000);
    let disk = Disk::made(&identity, &map);
    let image = disk.image();
    let args = ["layout", "mkfs", "ext4", disk.map(), &image, "--method", "hidden-file"];
    let file = fs::File::options().write(true).open(&image).expect("it is there");
    file.write_all_at(&[0x5A; 1024], 1024).expect("there is room");
    drop(file);
    let mut child = command(&args).stderr(Stdio::null()).spawn().expect("it starts");
    // The command writes zeros over the superblock before it starts mke2fs.
    wait_for("mke2fs at work", || (head(&image) == [0; 1024]).then_some(()));
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    wait_for("the programs that it began", || (!is_at_work(&image)).then_some(()));
    // Either mke2fs was killed with the command before the file system was whole, or the command had completed before the kill.
    let is_whole = taken(&image) == Taken::Whole;
    assert!(!is_whole || holds_blocks(&image), "mke2fs continued to the end");
}
