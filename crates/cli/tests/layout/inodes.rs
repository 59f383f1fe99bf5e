//! The number of inodes of a track-aligned ext4, compared with the number that mke2fs alone makes on a partition of the same size.

use crate::common::{headstack, refused};
use crate::disks::Disk;
use crate::ext4::{PROGRAMS, made, number};
use crate::tools::{have, run};
use serde_json::Value;

/// The number of inodes in a superblock.
fn inodes(image: &str) -> u64 {
    let superblock = run("dumpe2fs", &["-h", image]);
    let line = superblock.lines().find_map(|line| line.strip_prefix("Inode count:"));
    line.expect("every superblock has it").trim().parse().expect("it is a number")
}

/// The number of inodes that mke2fs alone makes with the same options.
fn plain_inodes(disk: &Disk, block: &str, options: &[&str]) -> u64 {
    let image = disk.image();
    run("mke2fs", &[&["-q", "-F", "-t", "ext4", "-b", block], options, &[image.as_str()][..]].concat());
    inodes(&image)
}

/// Makes a file system by the method that the command chooses, checks that it has no fewer inodes than mke2fs alone makes, and returns the
/// report.
fn chosen(disk: &Disk, block: &str, options: &[&str]) -> Value {
    let plain = plain_inodes(disk, block, options);
    let image = disk.image();
    let output = made(disk, &image, &[&["--block", block, "--"], options].concat());
    assert_eq!(output["e2fsck"], "clean", "{output}");
    assert_eq!(
        (number(&output, "inodes"), number(&output, "mke2fs_inodes")),
        (inodes(&image), plain),
        "{output}"
    );
    assert!(number(&output, "inodes") >= plain, "{output}");
    output
}

#[test]
fn file_system_has_no_fewer_inodes_than_mke2fs_gives() {
    if !have(&PROGRAMS) {
        return;
    }
    for drive in ["cheetah-4lp", "atlas-10k", "st41601n", "exos-x18"] {
        for sectors in [40_000, 400_001, 2_500_000] {
            chosen(&Disk::of(drive, 1003, sectors), "4096", &[]);
        }
        chosen(&Disk::of(drive, 0, 400_000), "1024", &["-m", "0"]);
    }
}

#[test]
fn hidden_file_replaces_a_list_that_costs_inodes() {
    if !have(&PROGRAMS) {
        return;
    }
    let disk = Disk::whole("cheetah-4lp");
    let output = chosen(&disk, "4096", &[]);
    let method = ["method", "method_reason"].map(|key| output[key].as_str().expect("it is a word"));
    assert_eq!(
        (method, number(&output, "inodes")),
        (["hidden-file", "list-costs-inodes"], 277_984),
        "{output}"
    );
    // The same holds if the user requests a number of inodes.
    let output = chosen(&disk, "4096", &["-N", "100000"]);
    assert_eq!(output["method_reason"], "list-costs-inodes", "{output}");
    let few = chosen(&disk, "4096", &["-i", "1048576"]);
    assert_eq!(
        (&few["method"], &few["method_reason"]),
        (&"bad-blocks".into(), &"list-suffices".into()),
        "{few}"
    );
    let text = headstack(&["layout", "mkfs", "ext4", disk.map(), &disk.image()]);
    assert!(
        text.out.contains("  because       a list of bad blocks would leave fewer inodes"),
        "{}",
        text.out
    );
    assert_eq!(text.err, "");
}

#[test]
fn requested_list_keeps_fitting_inodes_and_warns_of_the_loss() {
    if !have(&PROGRAMS) {
        return;
    }
    let disk = Disk::whole("cheetah-4lp");
    let image = disk.image();
    let list = ["layout", "mkfs", "ext4", disk.map(), &image, "--method", "bad-blocks"];
    let output = headstack(&list);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.err.contains("13,056 inodes, where mke2fs alone gives 277,984"), "{}", output.err);
    assert!(output.err.contains("--method hidden-file keeps all"), "{}", output.err);
    assert_eq!(inodes(&image), 13_056);
    // One more block of inodes (16 inodes) in each of the 34 groups does not fit.
    let more = (13_056 + 34 * 16).to_string();
    let no_room = refused(&[&list[..], &["--force", "--", "-N", &more]].concat(), 2);
    assert!(no_room.contains("mke2fs cannot make this file system"), "{no_room}");
    assert_eq!(inodes(&image), 13_056, "a refused command leaves the image unchanged");
    // A list that costs no inodes needs no warning.
    let few = headstack(&[&list[..], &["--force", "--", "-i", "1048576"]].concat());
    assert_eq!((few.code, few.err.as_str()), (0, ""), "{}", few.out);
}
