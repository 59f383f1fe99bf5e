//! Emulated disks that copy hot blocks together: the bytes under the copies, and the table in the file.

#![allow(clippy::disallowed_methods, reason = "tests write and damage files")]

use headstack_host::Operation;
use headstack_host::disk::{CopiesError, Emulator, EmulatorFaults, Outcome, Store, Volume};
use headstack_model::{Instant, Nanos, drives};
use headstack_sim::{RearrangeLayer, Rig};
use headstack_streams::rearrange::Rearranger;
use headstack_streams::rearrange_table::{PlacementError, PlacementTable};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const BLOCK: u64 = 4096;

/// Blocks that are written and read again and again, all over the disk.
const HOT: u64 = 12;

fn rig(blocks: &str) -> Rig {
    let mut rig = Rig::from_drive(drives::load("atlas-10k").expect("the drive is shipped"));
    for (key, value) in [
        ("blocks", blocks),
        ("block_bytes", "4096"),
        ("period_s", "1"),
        ("when", "at-once"),
        ("least_references", "1"),
    ] {
        rig.set(&format!("rearrange.{key}"), value).expect("it is a good value");
    }
    rig
}

/// A folder with the file of a disk.
struct Image {
    folder: tempfile::TempDir,
    rig: Rig,
}

impl Image {
    fn new() -> Image {
        Image { folder: tempfile::tempdir().expect("there is room for it"), rig: rig("200") }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn open(&self, forget: bool) -> Result<Emulated, CopiesError> {
        Emulated::open(&self.rig, &self.path(), forget)
    }

    fn opened(&self) -> Emulated {
        self.open(false).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Changes a byte of the table.
    fn damage(&self, table_byte: u64) {
        let file = fs::File::options().read(true).write(true).open(self.path()).expect("it is a file");
        let at = self.rig.volumes()[0].bytes().next_multiple_of(4096) + table_byte;
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("the table is there");
        file.write_all_at(&[byte[0] ^ 1], at).expect("it is writable");
    }

    fn refusal(&self) -> String {
        self.open(false).err().expect("the table is refused").to_string()
    }
}

/// A disk and its time.
struct Emulated {
    emulator: Emulator,
    now: Instant,
}

impl Emulated {
    fn open(rig: &Rig, path: &Path, forget: bool) -> Result<Emulated, CopiesError> {
        let info = rig.volumes().remove(0);
        let (store, _) = Store::file(path, info.bytes(), "disk").unwrap_or_else(|error| panic!("{error}"));
        let engine = rig.build(0).expect("the rig is good");
        let volumes = vec![Volume::new(info, store)];
        let mut emulator = Emulator::new(engine, volumes, EmulatorFaults::default())
            .expect("a drive tells what is on its media");
        emulator.keep_copies(forget).map_err(|(_, error)| error)?;
        Ok(Emulated { emulator, now: Instant::ZERO })
    }

    fn carry_out(&mut self, operation: Operation) -> Outcome {
        self.emulator.submit(self.now, 0, operation, 0);
        loop {
            if let Some(answered) = self.emulator.poll_answer() {
                return answered.result.expect("nothing is wrong with it");
            }
            self.now = self.now.max(self.emulator.poll_timeout().expect("it is in flight"));
            self.emulator.handle_timeout(self.now);
        }
    }

    fn place_of(block: u64) -> u64 {
        block * 50_021 * BLOCK
    }

    fn write(&mut self, block: u64, version: u8) {
        let data = vec![version; BLOCK as usize];
        self.carry_out(Operation::Write { offset: Emulated::place_of(block), data, fua: false });
    }

    fn read(&mut self, block: u64) -> u8 {
        let offset = Emulated::place_of(block);
        self.carry_out(Operation::Read { offset, bytes: BLOCK as u32, fua: false });
        let mut bytes = [0; BLOCK as usize];
        self.emulator.read(0, offset, &mut bytes).expect("it is inside");
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "block {block} is of one write");
        bytes[0]
    }

    /// Writes the hot blocks and lets periods end, until all have copies and some were written after that.
    fn make_copies(&mut self) {
        for version in 1..=9 {
            (0..HOT)
                .filter(|block| version < 5 || block % 3 == 0)
                .for_each(|block| self.write(block, version));
            self.carry_out(Operation::Flush);
            self.now += Nanos::from_ms(400.0);
            self.emulator.handle_timeout(self.now);
        }
        assert!(self.copies().len() as u64 >= HOT / 3, "{:?}", self.copies());
    }

    fn rearranger(&self) -> &Rearranger {
        self.emulator
            .engine()
            .and_then(|engine| engine.layer(0).map(RearrangeLayer::rearranger))
            .expect("it has a region")
    }

    fn copies(&self) -> Vec<(u32, u64, bool)> {
        self.rearranger().copies().collect()
    }
}

fn version_of(block: u64) -> u8 {
    if block.is_multiple_of(3) { 9 } else { 4 }
}

#[test]
fn copies_continue_after_an_orderly_end() {
    let image = Image::new();
    let mut disk = image.opened();
    disk.make_copies();
    // The period that has just begun has references, too.
    (0..HOT).for_each(|block| assert_eq!(disk.read(block), version_of(block), "block {block}"));
    let (copies, left) = (disk.copies(), disk.rearranger().period_left(disk.now));
    assert!(copies.iter().any(|(_, _, is_dirty)| *is_dirty) && left > Nanos::ZERO);
    disk.emulator.finish_writing().expect("there is room");
    drop(disk);

    let mut disk = image.opened();
    assert_eq!((disk.copies(), disk.rearranger().period_left(Instant::ZERO)), (copies, left));
    assert!(!disk.rearranger().hot_list(99).is_empty(), "the counts of the period continue");
    for block in 0..HOT {
        assert_eq!(disk.read(block), version_of(block), "block {block}");
    }
    assert!(disk.rearranger().view().counters.hits > 0, "copies serve requests");
}

#[test]
fn copies_continue_after_a_kill_and_count_as_written() {
    let image = Image::new();
    let mut disk = image.opened();
    disk.make_copies();
    let copies: Vec<_> = disk.copies().into_iter().map(|(slot, block, _)| (slot, block, true)).collect();
    // Nothing is closed: what a killed program leaves.
    drop(disk);
    let mut disk = image.opened();
    assert_eq!(disk.copies(), copies);
    (0..HOT).for_each(|block| assert_eq!(disk.read(block), version_of(block), "block {block}"));
}

#[test]
fn copies_continue_after_a_power_cut_and_flushed_data_are_there() {
    let image = Image::new();
    let mut disk = image.opened();
    disk.make_copies();
    let copies = disk.copies().len();
    let now = disk.now;
    disk.emulator.cut_power(now);
    disk.emulator.finish_writing().expect("there is room");
    drop(disk);
    let mut disk = image.opened();
    assert_eq!(disk.copies().iter().filter(|(_, _, is_dirty)| *is_dirty).count(), copies);
    (0..HOT).for_each(|block| assert_eq!(disk.read(block), version_of(block), "block {block}"));
}

#[test]
fn damaged_table_is_refused_and_can_be_forgotten() {
    let image = Image::new();
    let mut disk = image.opened();
    disk.make_copies();
    let slot = disk.copies()[0].0;
    disk.emulator.finish_writing().expect("there is room");
    drop(disk);
    image.damage(PlacementTable::entry_first(slot));
    let damaged = format!("slot {slot} of its hot block table is damaged; the data do not depend on it");
    assert_eq!(image.refusal(), damaged);
    image.damage(20);
    assert!(image.refusal().starts_with("the head of its hot block table is damaged"));
    let mut disk = image.open(true).unwrap_or_else(|error| panic!("{error}"));
    assert!(disk.copies().is_empty());
    (0..HOT).for_each(|block| assert_eq!(disk.read(block), version_of(block), "block {block}"));
    drop(disk);
    assert!(image.opened().copies().is_empty(), "an empty table is whole");
}

#[test]
fn table_of_another_region_is_refused() {
    let mut image = Image::new();
    drop(image.opened());
    // The same size for clients, elsewhere on the disk.
    image.rig.set("rearrange.block_bytes", "8192").expect("it is a good value");
    image.rig.set("rearrange.blocks", "100").expect("it is a good value");
    match image.open(false).map(|_| ()) {
        Err(CopiesError::OtherSize { .. } | CopiesError::Table(PlacementError::OtherRegion { .. })) => {}
        other => panic!("{other:?}"),
    }
    assert!(image.open(true).is_ok());
}

#[test]
fn image_without_a_table_gets_one() {
    let image = Image::new();
    let bytes = image.rig.volumes()[0].bytes();
    let (store, _) = Store::file(&image.path(), bytes, "disk").expect("it can be made");
    drop(store);
    assert_eq!(fs::metadata(image.path()).expect("it is there").len(), bytes + 4096);
    let mut disk = image.opened();
    disk.make_copies();
    disk.emulator.finish_writing().expect("there is room");
    drop(disk);
    assert!(!image.opened().copies().is_empty());
}
