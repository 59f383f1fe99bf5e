//! Disks that copy hot blocks into a common region: the emulator is killed or its power is cut, and it is started again.

use crate::emulator::{Emulator, Setup};
use crate::nbd::Client;
use crate::noise::Noise;
use crate::tools::{folder, have, output, program, text};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const BLOCK: u64 = 8192;

/// Number of blocks that are written repeatedly. They are spread over the disk.
const HOT_BLOCKS: u64 = 60;

/// A rig file whose disk has room for copies of some of the hot blocks.
fn rig(folder: &Path) -> PathBuf {
    let path = folder.join("rig.toml");
    let keys = "blocks = 40\nperiod_s = 1\nwhen = \"at-once\"\nleast_references = 1\nparallel_copies = 4";
    let rig = format!("title = \"Copies\"\n[drive]\npreset = \"st2000dm006\"\n[rearrange]\n{keys}\n");
    fs::write(&path, rig).expect("the folder is writable");
    path
}

/// The versions of the hot blocks that were written last and that were flushed last.
#[derive(Default)]
struct Versions {
    written: BTreeMap<u64, u64>,
    flushed: BTreeMap<u64, u64>,
    last: u64,
}

impl Versions {
    fn place_of(block: u64) -> u64 {
        block * 4_000_037 * BLOCK
    }

    fn content(block: u64, version: u64) -> Vec<u8> {
        [block.to_le_bytes(), version.to_le_bytes()].concat().repeat(BLOCK as usize / 16)
    }

    /// Reads and writes hot blocks in 410 steps, and flushes after each twentieth step that is a write. At least the last nine steps are not
    /// flushed.
    fn write(&mut self, client: &mut Client, noise: &mut Noise) {
        for number in 0..410 {
            let most = 1 + noise.below(HOT_BLOCKS);
            let block = noise.below(most);
            if noise.below(4) == 0 {
                let found = client.read(Versions::place_of(block), BLOCK as u32).expect("it runs");
                let version = self.written.get(&block).copied().unwrap_or_default();
                assert!(version == 0 || found == Versions::content(block, version), "block {block}");
                continue;
            }
            self.last += 1;
            self.written.insert(block, self.last);
            let data = Versions::content(block, self.last);
            client.write(Versions::place_of(block), &data, false).expect("it runs");
            if number % 20 == 0 {
                client.flush().expect("it runs");
                self.flushed = self.written.clone();
            }
        }
    }

    /// Checks that each block has a version between the flushed and the last written one, and records that version as both.
    fn check(&mut self, client: &mut Client) {
        for (&block, written) in &mut self.written {
            let found = client.read(Versions::place_of(block), BLOCK as u32).expect("it runs");
            let version = u64::from_le_bytes(found[8..16].try_into().expect("eight bytes"));
            let flushed = self.flushed.get(&block).copied().unwrap_or_default();
            assert!((flushed..=*written).contains(&version), "block {block}: {version}, flushed {flushed}");
            assert!(
                version == 0 || found == Versions::content(block, version),
                "block {block} holds the data of several writes"
            );
            *written = version;
        }
        self.flushed = self.written.clone();
    }
}

/// The number of copies in a disk's summary.
fn copies(said: &str) -> u64 {
    let line = said.lines().find_map(|line| line.trim().strip_prefix("copies "));
    let count = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
    count.unwrap_or_else(|| panic!("no copies in {said}"))
}

/// Starts an emulator `ends` times, writes hot blocks, and ends it by SIGKILL and by a power cut in turn. Checks the blocks at each start.
fn through_ends(ends: u32) {
    let folder = folder();
    let (rig, image) = (rig(folder.path()), folder.path().join("image"));
    let setup = || Setup { rig: text(&rig), data: Some(&image), ..Setup::default() };
    let (mut versions, mut noise) = (Versions::default(), Noise(5));
    for end in 0..ends {
        let mut emulator = Emulator::start(&setup());
        let mut client = emulator.client();
        versions.check(&mut client);
        versions.write(&mut client, &mut noise);
        emulator.signal(if end % 2 == 0 { "KILL" } else { "USR1" });
        emulator.ended();
    }
    let emulator = Emulator::start(&setup());
    versions.check(&mut emulator.client());
    assert!(copies(&emulator.stop()) > 0, "blocks were copied");
    let restarted = Emulator::start(&setup());
    assert!(copies(&restarted.stop()) > 0, "an orderly end keeps the copies");
}

#[test]
fn flushed_data_survive_kills_and_power_cuts_on_a_disk_with_copies() {
    through_ends(4);
}

#[test]
#[ignore = "takes minutes: make rearrange-full"]
fn flushed_data_survive_a_hundred_kills_and_power_cuts_on_a_disk_with_copies() {
    through_ends(100);
}

/// After a kill, fio verifies each block that it wrote and flushed before.
#[test]
fn fio_verifies_its_flushed_data_after_a_kill_on_a_disk_with_copies() {
    if !have(&["fio"]) {
        return;
    }
    let folder = folder();
    let (rig, image) = (rig(folder.path()), folder.path().join("image"));
    let setup = || Setup { rig: text(&rig), data: Some(&image), ..Setup::default() };
    let fio = |emulator: &Emulator, more: &[&str]| {
        let uri = format!("--uri={}", emulator.uri());
        let args = [
            "--name=v",
            "--verify_state_save=0",
            "--thread",
            "--ioengine=nbd",
            "--rw=randwrite",
            "--bs=8k",
            "--size=4m",
            "--iodepth=8",
        ];
        let checks = ["--verify=crc32c", "--verify_fatal=1", "--end_fsync=1", "--minimal", &uri];
        let status = program("fio", &[&args[..], &checks, more].concat()).status().expect("it is here");
        assert!(status.success(), "{more:?}");
    };
    let mut emulator = Emulator::start(&setup());
    // The second run writes blocks that were copied during the first.
    fio(&emulator, &["--do_verify=0", "--randseed=1"]);
    fio(&emulator, &["--do_verify=0"]);
    emulator.signal("KILL");
    emulator.ended();
    let emulator = Emulator::start(&setup());
    fio(&emulator, &["--verify_only=1"]);
    assert!(copies(&emulator.stop()) > 0, "blocks were copied");
}

#[test]
fn table_that_cannot_be_used_is_refused_with_what_to_do() {
    let folder = folder();
    let (rig, image) = (rig(folder.path()), folder.path().join("image"));
    let emulate = |options: &[&str]| {
        let fixed = ["emulate", text(&rig), "--data", text(&image)];
        let done = output(env!("CARGO_BIN_EXE_headstack"), &[&fixed[..], options, &["--", "true"]].concat());
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    assert_eq!(emulate(&[]).0, Some(0));
    let size = fs::metadata(&image).expect("it is there").len();
    // The mark is the last 4096 bytes of the file. The table begins at the first multiple of 4096 bytes behind the disk's bytes.
    let table = (size - 4096 - table_bytes(&image, size)).next_multiple_of(4096);
    let file = fs::File::options().write(true).open(&image).expect("it is there");
    file.write_all_at(b"x", table + 9).expect("it is writable");
    let (code, said) = emulate(&[]);
    assert_eq!(code, Some(2), "{said}");
    for part in ["the head of its hot block table is damaged", "start with --forget-copies"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(emulate(&["--forget-copies"]).0, Some(0));
    let (code, said) = emulate(&["--set", "rearrange.blocks=1000000000000"]);
    assert!(code == Some(2) && said.contains("rearrange.blocks"), "{said}");
    let (code, said) = emulate(&["--set", "rearrange.blocks=4000000000"]);
    assert!(code == Some(2) && said.contains("rearrange.blocks: 4000000000 is outside"), "{said}");
}

/// Bytes of the table, which is between the disk's bytes and the mark, from the mark's line `table`.
fn table_bytes(image: &Path, size: u64) -> u64 {
    let mut mark = [0; 4096];
    let file = fs::File::open(image).expect("it is there");
    file.read_exact_at(&mut mark, size - 4096).expect("the mark is a page");
    let mark = String::from_utf8_lossy(&mark).into_owned();
    let line = mark.lines().find_map(|line| line.strip_prefix("table ")).expect("the disk has a table");
    line.parse().expect("it is a number")
}
