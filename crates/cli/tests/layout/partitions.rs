//! Partitions made with sfdisk, parted and addpart.

use crate::common::{headstack, json, printed, refused};
use crate::device::Loop;
use crate::disks::{self, Disk};
use crate::emulator::{Emulator, Setup};
use crate::ext4::{PROGRAMS, lay, write_tree};
use crate::tools::{have_loops_and, output, program, run};
use headstack_tracks::TrackMap;
use headstack_tracks::map::Identity;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// Writes a GPT partition table with sfdisk, from these lines of its input.
fn sfdisk(device: &str, lines: &str) {
    let mut child = program("sfdisk", &["--quiet", "--label", "gpt", device])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("sfdisk: {error}"));
    child.stdin.take().expect("it is a pipe").write_all(lines.as_bytes()).expect("sfdisk reads");
    assert!(child.wait().expect("it ends").success(), "sfdisk takes no {lines:?}");
}

/// A partition's `START,LEN` in sectors, from sysfs.
fn of_the_system(part: &str) -> String {
    let folder = Path::new("/sys/class/block").join(part.trim_start_matches("/dev/"));
    let reported = |name: &str| std::fs::read_to_string(folder.join(name)).expect("it is shown");
    format!("{},{}", reported("start").trim(), reported("size").trim())
}

#[test]
fn tree_on_an_sfdisk_aligned_partition_crosses_no_boundary() {
    if !have_loops_and(&[&PROGRAMS[..], &["cp", "diff", "filefrag", "partx", "sfdisk"]].concat()) {
        return;
    }
    let whole = Disk::whole("atlas-10k");
    let emulator = Emulator::start(&Setup { rig: "atlas-10k", mounted: true, ..Setup::default() });
    let device = Loop::with_partitions(&emulator.file());
    sfdisk(device.device(), &printed(&["layout", "align", whole.map(), "--sfdisk"]));
    let Some(part) = device.partition(1) else { return };
    let aligned = printed(&["layout", "align", whole.map()]);
    assert_eq!(of_the_system(&part), aligned.trim(), "sfdisk made another");
    let (start, sectors) = aligned.trim().split_once(',').expect("START,LEN");

    let wrong = refused(&["layout", "mkfs", "ext4", whole.map(), &part, "--partition", "4096,40000"], 2);
    assert!(wrong.contains(&format!("another part of its disk: --partition {start},{sectors}")), "{wrong}");
    let other = Disk::whole("atlas-10k-ii");
    let foreign = refused(&["layout", "mkfs", "ext4", other.map(), &part], 2);
    assert!(foreign.contains("the map is of another disk"), "{foreign}");
    let table = headstack(&["layout", "mkfs", "ext4", whole.map(), device.device()]);
    assert!(table.code == 2 && table.err.contains("a partition table (gpt)"), "{}", table.err);

    // The map is that of the whole disk. The command finds the partition's position in sysfs.
    let reported = json(&["layout", "mkfs", "ext4", whole.map(), &part, "--json"]);
    assert_eq!(reported["e2fsck"], "clean", "{reported}");
    assert_eq!(reported["partition"]["start"].to_string(), start, "{reported}");
    let number = |text: &str| text.parse().expect("a number");
    let disk = Disk::of("atlas-10k", number(start), number(sectors));
    let tree = disks::folder();
    write_tree(tree.path());
    let laid = lay(&disk, &part, tree.path());
    assert_eq!(laid.crossing, []);
    assert!(laid.extents > 300, "{}", laid.extents);
    let checked = json(&["layout", "check", whole.map(), &part, "--json"]);
    assert_eq!(checked["files"]["crossings"], 0, "{checked:#}");
    assert_eq!(checked["partition"]["start"].to_string(), start, "{checked:#}");
}

#[test]
fn parted_accepts_the_output_of_align() {
    if !have_loops_and(&["parted", "partx"]) {
        return;
    }
    let whole = Disk::whole("atlas-10k");
    let image = whole.image();
    let words = printed(&["layout", "align", whole.map(), "--parted"]);
    let label = ["--script", "--align", "none", &image, "mklabel", "gpt"];
    run("parted", &label.into_iter().chain(words.split_whitespace()).collect::<Vec<_>>());
    let device = Loop::with_partitions(Path::new(&image));
    let Some(part) = device.partition(1) else { return };
    assert_eq!(of_the_system(&part), printed(&["layout", "align", whole.map()]).trim());
}

#[test]
fn partition_map_is_accepted_for_its_own_partition_only() {
    if !have_loops_and(&[&PROGRAMS[..], &["addpart", "delpart"]].concat()) {
        return;
    }
    let mut tracks = TrackMap::new();
    tracks.push(333, 200);
    let sectors = tracks.end().0;
    // `headstack probe --map` writes such a name if it probes a partition.
    let of = |name: &str| {
        Disk::made(&Identity { name: Some(name.to_string()), ..Identity::new(sectors, 512) }, &tracks)
    };
    let (own, other) = (of("partition 1 from sector 4096"), of("partition 2 from sector 4096"));
    let image = disks::sparse(&own.folder().join("disk"), 200_000 * 512);
    let device = Loop::over(Path::new(&image));
    run("addpart", &[device.device(), "1", "4096", &sectors.to_string()]);
    let part = device.partition(1);
    let made = part.as_ref().map(|part| {
        [&other, &own].map(|disk| headstack(&["layout", "mkfs", "ext4", disk.map(), part, "--json"]))
    });
    let _ = output("delpart", &[device.device(), "1"]);
    let Some([foreign, own]) = made else { return };
    assert!(foreign.code == 2 && foreign.err.contains("the map is of another disk"), "{}", foreign.err);
    assert!(own.code == 0 && own.out.contains("\"e2fsck\": \"clean\""), "{}", own.err);
}
