//! Nodes that copy the hot blocks of a file into a reserved region. Data survive kills, a file system stays clean, and after the region is
//! dissolved the file is the same as without it.

use crate::device::{Loop, Mount};
use crate::kills::write_through_kills;
use crate::nbd::Client;
use crate::node::{Node, metric};
use crate::noise::Noise;
use crate::tools::{attempt, folder, have, have_loops_and, output, run, text, wait_for};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

const BLOCK: u64 = 4096;

/// Number of blocks that are written repeatedly.
const HOT_BLOCKS: u64 = 96;

/// Options with which the node copies hot blocks each second.
const QUICK: [&str; 6] = [
    "--set",
    "disk.rearrange.period_s=1.0",
    "--set",
    "disk.rearrange.when=at-once",
    "--set",
    "disk.rearrange.parallel_copies=4",
];

fn headstack(args: &[&str]) -> Result<String, String> {
    attempt(env!("CARGO_BIN_EXE_headstack"), args)
}

/// Makes a file that is a disk of 65 MiB with a region for 64 copies. Returns its path.
fn disk(folder: &Path) -> PathBuf {
    let path = folder.join("disk");
    fs::File::create(&path).and_then(|file| file.set_len(65 << 20)).expect("the folder is writable");
    format(&path, &[]).unwrap_or_else(|said| panic!("{said}"));
    path
}

fn format(path: &Path, options: &[&str]) -> Result<String, String> {
    headstack(&[&["rearrange", "format", text(path), "--region", "256K", "--block", "4K"], options].concat())
}

/// The versions of the hot blocks that were written last and that were flushed last.
#[derive(Default)]
struct Versions {
    written: BTreeMap<u64, u64>,
    flushed: BTreeMap<u64, u64>,
    last: u64,
}

/// The bytes of a block: its number and its version, repeated.
fn content(block: u64, version: u64) -> Vec<u8> {
    let unit = [block.to_le_bytes(), version.to_le_bytes()].concat();
    unit.repeat(BLOCK as usize / unit.len())
}

impl Versions {
    /// The hot blocks are spread over the disk.
    fn place_of(block: u64) -> u64 {
        block * 149 * BLOCK
    }

    /// Writes and reads hot blocks until the node ends.
    fn write_until_killed(&mut self, client: &mut Client, noise: &mut Noise) {
        let hottest = noise.below(HOT_BLOCKS);
        while self.write_some(client, noise, hottest).is_ok() {}
    }

    fn write_some(&mut self, client: &mut Client, noise: &mut Noise, hottest: u64) -> std::io::Result<()> {
        for _ in 0..20 {
            let reach = 1 + noise.below(HOT_BLOCKS - 1);
            let block = (hottest + noise.below(reach)) % HOT_BLOCKS;
            if noise.below(4) == 0 {
                let found = client.read(Versions::place_of(block), BLOCK as u32)?;
                let version = self.written.get(&block).copied().unwrap_or_default();
                assert!(
                    version == 0 || found == content(block, version),
                    "block {block} is not what was written"
                );
                continue;
            }
            self.last += 1;
            // It may be on the disk even if the node is killed before it answers.
            self.written.insert(block, self.last);
            client.write(Versions::place_of(block), &content(block, self.last), false)?;
        }
        client.flush()?;
        self.flushed = self.written.clone();
        Ok(())
    }

    /// Checks that each block has a version between the flushed and the last written one, and records that version as both.
    fn check(&mut self, client: &mut Client) {
        for (&block, written) in &mut self.written {
            let found = client.read(Versions::place_of(block), BLOCK as u32).expect("the node answers");
            let version = u64::from_le_bytes(found[8..16].try_into().expect("eight bytes"));
            let flushed = self.flushed.get(&block).copied().unwrap_or_default();
            assert!((flushed..=*written).contains(&version), "block {block}: {version}, flushed {flushed}");
            if version > 0 {
                assert!(found == content(block, version), "block {block} holds the data of several writes");
            }
            *written = version;
        }
        self.flushed = self.written.clone();
    }
}

/// Writes hot blocks and kills the node `kills` times meanwhile. Checks the blocks after each kill, and returns their versions.
fn hot_blocks_through_kills(path: &Path, kills: u32) -> Versions {
    let (mut versions, mut noise) = (Versions::default(), Noise(11));
    for _ in 0..kills {
        let mut node = Node::of_file_with(path, &QUICK);
        let mut client = node.client();
        versions.check(&mut client);
        let (process, wait) = (node.process(), Duration::from_millis(1100 + noise.below(1500)));
        let killer = thread::spawn(move || {
            thread::sleep(wait);
            run("sh", &["-c", &format!("kill -KILL {process}")]);
        });
        versions.write_until_killed(&mut client, &mut noise);
        killer.join().expect("it is a running process");
        assert!(node.ended().code().is_none(), "it was killed");
    }
    let node = Node::of_file_with(path, &QUICK);
    versions.check(&mut node.client());
    assert!(node.stop().contains("copies"), "the node reports its copies");
    versions
}

/// The text behind a name in the output of `rearrange status`.
fn status(path: &Path, name: &str) -> String {
    let said = headstack(&["rearrange", "status", text(path)]).unwrap_or_else(|said| panic!("{said}"));
    let line = said.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in {said}")).trim().to_string()
}

/// Dissolves the region, and checks that the file is the same as if no block had ever been copied.
fn check_dissolved(path: &Path, versions: &Versions) {
    headstack(&["rearrange", "dissolve", text(path)]).unwrap_or_else(|said| panic!("{said}"));
    let mut expected = vec![0; 65 << 20];
    for (&block, &version) in versions.written.iter().filter(|(_, version)| **version > 0) {
        let place = Versions::place_of(block) as usize;
        expected[place..place + BLOCK as usize].copy_from_slice(&content(block, version));
    }
    let found = fs::read(path).expect("it is a file");
    assert_eq!(found.iter().zip(&expected).position(|(one, other)| one != other), None);
    let said = headstack(&["rearrange", "status", text(path)]).expect_err("the region is gone");
    assert!(said.contains("it has no reserved region"), "{said}");
}

#[test]
fn hot_blocks_survive_kills_and_the_dissolved_disk_holds_them() {
    let folder = folder();
    let path = disk(folder.path());
    let versions = hot_blocks_through_kills(&path, 3);
    assert_ne!(status(&path, "copies:").split(' ').next(), Some("0"), "blocks were copied");
    check_dissolved(&path, &versions);
}

#[test]
#[ignore = "takes minutes: make rearrange-full"]
fn hot_blocks_survive_fifty_kills() {
    let folder = folder();
    let path = disk(folder.path());
    let versions = hot_blocks_through_kills(&path, 50);
    check_dissolved(&path, &versions);
}

#[test]
fn fio_data_flushed_before_kills_survives_on_a_disk_with_copies() {
    if have(&["fio"]) {
        let folder = folder();
        write_through_kills(&disk(folder.path()), &QUICK, 2);
    }
}

#[test]
#[ignore = "takes minutes: make rearrange-full"]
fn fio_data_flushed_before_fifty_kills_survives_on_a_disk_with_copies() {
    if have(&["fio"]) {
        let folder = folder();
        write_through_kills(&disk(folder.path()), &QUICK, 50);
    }
}

/// Writes the first half of the hot blocks, reads each after its write, and flushes.
fn write_round(client: &mut Client, version: u64) {
    for block in 0..HOT_BLOCKS / 2 {
        client.write(Versions::place_of(block), &content(block, version), false).expect("it runs");
        let found = client.read(Versions::place_of(block), BLOCK as u32).expect("it runs");
        assert!(found == content(block, version), "block {block} is not what was written");
    }
    client.flush().expect("it runs");
}

#[test]
fn hot_blocks_of_an_emulated_disk_are_copied_and_read_back() {
    let folder = folder();
    let path = folder.path().join("data");
    headstack(&["emulate", "wd800jd", "--data", text(&path), "--", "true"])
        .unwrap_or_else(|said| panic!("{said}"));
    format(&path, &[]).unwrap_or_else(|said| panic!("{said}"));
    let emulated = [
        "--emulate",
        "wd800jd",
        "--data",
        text(&path),
        "--set",
        "disk.speed=1000.0",
        "--metrics",
        "127.0.0.1:0",
    ];
    let node = Node::start(&[&emulated[..], &QUICK].concat());
    let (mut client, mut version) = (node.client(), 0);
    let hits = wait_for("copies serve requests", || {
        version += 1;
        write_round(&mut client, version);
        let metrics = node.metrics();
        let hits = metric(&metrics, "headstack_copy_hit_share");
        (metric(&metrics, "headstack_copies") > 0.0 && hits > 0.0).then_some(hits)
    });
    assert!(hits <= 1.0, "{hits}");
    // Copies are dirty after a round, unless a period ends meanwhile and all of them are written home.
    wait_for("writes go to copies", || {
        version += 1;
        write_round(&mut client, version);
        (metric(&node.metrics(), "headstack_copies_dirty") > 0.0).then_some(())
    });
    drop(client);
    assert!(node.stop().contains("requests served by them"));

    assert_ne!(status(&path, "copies:").split(' ').next(), Some("0"), "the table has the copies");
    headstack(&["rearrange", "dissolve", text(&path)]).unwrap_or_else(|said| panic!("{said}"));
    let file = fs::File::open(&path).expect("it is a file");
    for block in 0..HOT_BLOCKS / 2 {
        let mut found = vec![0; BLOCK as usize];
        file.read_exact_at(&mut found, Versions::place_of(block)).expect("it is inside");
        assert!(found == content(block, version), "block {block} was not written home");
    }
}

/// A node's disk as a file, through nbdfuse.
struct FileOfDisk {
    child: Child,
    file: PathBuf,
}

impl FileOfDisk {
    fn over(node: &Node, folder: &Path) -> FileOfDisk {
        let file = folder.join("nbd");
        fs::File::create(&file).expect("the folder is writable");
        let child = Command::new("nbdfuse").arg(&file).arg(node.uri()).spawn().expect("nbdfuse starts");
        wait_for("the disk is a file", || fs::metadata(&file).ok().filter(|found| found.len() > 0));
        FileOfDisk { child, file }
    }

    fn end(mut self) {
        run("fusermount3", &["-u", text(&self.file)]);
        wait_for("nbdfuse ends", || self.child.try_wait().expect("it is a child of this process"));
    }
}

#[test]
fn ext4_on_a_disk_with_copies_is_clean_and_stays_on_the_dissolved_disk() {
    if !have_loops_and(&["nbdfuse", "fusermount3", "mkfs.ext4", "e2fsck", "cp", "diff"]) {
        return;
    }
    let folder = folder();
    let path = disk(folder.path());
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let node = Node::of_file_with(&path, &QUICK);
    let file = FileOfDisk::over(&node, folder.path());
    run("mkfs.ext4", &["-q", "-F", text(&file.file)]);
    for round in 0..3 {
        let device = Loop::over(&file.file);
        let mount = Mount::new("ext4", device.device());
        let copy = mount.path().join(format!("copy{round}"));
        run("cp", &["-r", text(sources), text(&copy)]);
        // A period ends meanwhile, so that the node copies blocks of metadata.
        thread::sleep(Duration::from_millis(1200));
        run("cp", &["-r", text(sources), text(&mount.path().join(format!("again{round}")))]);
        mount.unmount();
        run("e2fsck", &["-f", "-n", device.device()]);
    }
    file.end();
    node.stop();
    assert_ne!(status(&path, "copies:").split(' ').next(), Some("0"), "blocks were copied");
    headstack(&["rearrange", "dissolve", text(&path)]).unwrap_or_else(|said| panic!("{said}"));
    run("e2fsck", &["-f", "-n", text(&path)]);
    let device = Loop::over(&path);
    let mount = Mount::new("ext4", device.device());
    run("diff", &["-r", "--no-dereference", text(sources), text(&mount.path().join("copy2"))]);
    mount.unmount();
}

/// Runs a command that must fail and must not change the disk. Returns its error message.
fn refused(path: &Path, args: &[&str]) -> String {
    let before = fs::read(path).expect("it is a file");
    let ended = output(env!("CARGO_BIN_EXE_headstack"), args);
    assert_eq!(ended.status.code(), Some(2), "{args:?}");
    assert!(fs::read(path).expect("it is a file") == before, "{args:?} wrote to the disk");
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

#[test]
fn disk_with_a_region_is_served_with_its_table_only() {
    let folder = folder();
    let path = disk(folder.path());
    let address = format!("unix:{}", text(&folder.path().join("socket")));
    let serve = ["serve", "--nbd", &address, "--disk", text(&path)];
    let said = refused(&path, &serve);
    assert!(said.contains("it has a region of 64 copies") && said.contains("[disk.rearrange]"), "{said}");
    let said = refused(&path, &[&serve[..], &["--set", "disk.read_only=true"], &QUICK[..2]].concat());
    assert!(said.contains("disk[0].rearrange: the disk is `read_only`"), "{said}");

    let bare = folder.path().join("bare");
    fs::File::create(&bare).and_then(|file| file.set_len(1 << 20)).expect("the folder is writable");
    let serve = ["serve", "--nbd", &address, "--disk", text(&bare)];
    let said = refused(&bare, &[&serve[..], &QUICK].concat());
    assert!(said.contains("it has no reserved region: make one"), "{said}");
}

#[test]
fn data_file_with_a_region_is_served_by_the_node_only() {
    let folder = folder();
    let path = folder.path().join("data");
    let emulate = || headstack(&["emulate", "null", "--size", "16M", "--data", text(&path), "--", "true"]);
    emulate().unwrap_or_else(|said| panic!("{said}"));
    format(&path, &[]).unwrap_or_else(|said| panic!("{said}"));
    let said = emulate().expect_err("the region would not be used");
    assert!(said.contains("it has a region of 64 copies, which `headstack emulate` does not use"), "{said}");
    headstack(&["rearrange", "dissolve", text(&path)]).unwrap_or_else(|said| panic!("{said}"));
    emulate().unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn region_over_data_or_beyond_the_disk_is_refused() {
    let folder = folder();
    let path = folder.path().join("disk");
    fs::File::create(&path).and_then(|file| file.set_len(16 << 20)).expect("the folder is writable");
    let format = ["rearrange", "format", text(&path), "--region"];
    let said = refused(&path, &[&format[..], &["17M"]].concat());
    assert!(said.contains("region: 17825792 is outside"), "{said}");
    let said = refused(&path, &[&format[..], &["1M", "--first", "15M"]].concat());
    assert!(said.contains("--first: 15728640 is outside"), "{said}");
    let said = refused(&path, &[&format[..], &["1M", "--block", "5000"]].concat());
    assert!(said.contains("--block: 5000 is outside the multiples of 4096"), "{said}");

    if have(&["mkfs.ext4"]) {
        run("mkfs.ext4", &["-q", "-F", text(&path)]);
        let said = refused(&path, &[&format[..], &["1M"]].concat());
        assert!(said.contains("it holds a file system or the like (ext4)"), "{said}");
        // A file system that ends before the region is accepted.
        run("mkfs.ext4", &["-q", "-F", text(&path), "8M"]);
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_len(24 << 20))
            .expect("it is a file");
        headstack(&[&format[..], &["1M"]].concat()).unwrap_or_else(|said| panic!("{said}"));
        let said = refused(&path, &[&format[..], &["1M"]].concat());
        assert!(said.contains("it has a region of 128 copies: remove that first"), "{said}");
        run("e2fsck", &["-f", "-n", text(&path)]);
    }
}
