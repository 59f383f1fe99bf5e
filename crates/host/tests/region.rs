//! Regions of copies in files: dissolving continues wherever it was ended, and gives a damaged table up only when that is wanted.

#![allow(clippy::disallowed_methods, reason = "tests read and write files")]

use headstack_host::region::{Dissolved, RegionError, dissolve, format, status};
use headstack_streams::rearrange::TableChange;
use headstack_streams::rearrange_table::{
    PAGE_BYTES, RecoveredTable, RegionLabel, RegionRequest, RegionState, TableStep, TableWriter,
};
use std::fs;
use std::path::Path;

const DISK: usize = 4 << 20;
const BLOCK: usize = 4096;

/// Blocks with a copy that is newer than the home, and one whose copy equals it.
const DIRTY: [(u32, u64); 3] = [(0, 11), (5, 2), (63, 700)];
const CLEAN: (u32, u64) = (6, 12);

fn request() -> RegionRequest {
    let (region_bytes, block_bytes) = (64 * BLOCK as u64, BLOCK as u64);
    RegionRequest { id: [0; 16], disk_bytes: 0, region_bytes, block_bytes, first: None, counters: None }
}

fn place_of_slot(label: &RegionLabel, slot: u32) -> usize {
    label.slots_first as usize + slot as usize * BLOCK
}

/// A formatted file whose table was closed with copies in it. The bytes of the file, its label, and what clients see.
fn disk_with_copies(path: &Path) -> (Vec<u8>, RegionLabel, Vec<u8>) {
    fs::write(path, vec![0; DISK]).expect("the folder is writable");
    let label = format(path, &request(), true).expect("the region fits");
    let mut disk = fs::read(path).expect("it is a file");
    let visible = label.visible_bytes().expect("the region fits") as usize;
    for (number, block) in disk[..visible].chunks_mut(BLOCK).enumerate() {
        block.fill(number as u8);
    }
    let mut seen = disk[..visible].to_vec();
    for (slot, block) in DIRTY {
        let newer = vec![0xf0 + slot as u8 % 8; BLOCK];
        disk[place_of_slot(&label, slot)..][..BLOCK].copy_from_slice(&newer);
        seen[block as usize * BLOCK..][..BLOCK].copy_from_slice(&newer);
    }
    let (slot, block) = CLEAN;
    disk[place_of_slot(&label, slot)..][..BLOCK].fill(block as u8);
    write_table(&mut disk, &label);
    fs::write(path, &disk).expect("the folder is writable");
    (disk, label, seen)
}

fn write_table(disk: &mut [u8], label: &RegionLabel) {
    let found = disk.to_vec();
    let mut read = |first: u64, into: &mut [u8]| {
        into.copy_from_slice(&found[first as usize..][..into.len()]);
        Ok(())
    };
    let mut writer = TableWriter::new(&RecoveredTable::read(*label, &mut read).expect("it is formatted"));
    let mut carry_out = |writer: &mut TableWriter| {
        while let Some(step) = writer.poll_step() {
            if let TableStep::Write { copy, page } = step {
                let first = label.page_first(copy, page) as usize;
                disk[first..][..PAGE_BYTES].copy_from_slice(&writer.page(page));
            }
            writer.handle_end(true);
        }
    };
    carry_out(&mut writer);
    for (slot, block) in DIRTY.into_iter().chain([CLEAN]) {
        writer.change(TableChange { slot, block: Some(block) });
        carry_out(&mut writer);
    }
    writer.close(|slot| slot == CLEAN.0);
    carry_out(&mut writer);
}

/// The file of a disk that clients saw so, after its region is gone.
fn whole(seen: &[u8]) -> Vec<u8> {
    let mut disk = seen.to_vec();
    disk.resize(DISK, 0);
    disk
}

#[test]
fn dissolved_disk_is_what_clients_saw() {
    let folder = tempfile::tempdir().expect("there is room for it");
    let path = folder.path().join("disk");
    let (_, label, seen) = disk_with_copies(&path);
    let found = status(&path).expect("it has a region");
    assert_eq!((found.label, found.copies, found.dirty), (label, 4, 3));
    let done = dissolve(&path, false).expect("the table is whole");
    assert_eq!(done, Dissolved { written_home: 3, left_clean: 1, discarded: 0 });
    assert!(fs::read(&path).expect("it is a file") == whole(&seen));
    assert!(matches!(dissolve(&path, false), Err(RegionError::Absent)));
}

#[test]
fn dissolving_continues_where_it_was_ended() {
    let folder = tempfile::tempdir().expect("there is room for it");
    let path = folder.path().join("disk");
    let (disk, label, seen) = disk_with_copies(&path);
    let labels = RegionLabel::labels_first(DISK as u64).expect("the disk has room") as usize;
    let emptied = RegionLabel { state: RegionState::Emptied, ..label }.encode();
    let resume = |disk: &[u8]| {
        fs::write(&path, disk).expect("the folder is writable");
        dissolve(&path, false).expect("it continues");
        assert!(fs::read(&path).expect("it is a file") == whole(&seen));
    };
    // Some homes are written.
    let mut part = disk;
    let home = DIRTY[1].1 as usize * BLOCK;
    part[home..home + BLOCK].copy_from_slice(&seen[home..home + BLOCK]);
    resume(&part);
    // All are, and one label says so; the other one is torn.
    part[..seen.len()].copy_from_slice(&seen);
    part[labels + PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(&emptied);
    resume(&part);
    part[labels..][..512].copy_from_slice(&emptied[..512]);
    resume(&part);
    part[labels..][..PAGE_BYTES].copy_from_slice(&emptied);
    // Copies and a part of the table are erased.
    part[seen.len()..label.page_first(1, 0) as usize].fill(0);
    resume(&part);
    // All but one label is.
    part[seen.len()..labels].fill(0);
    part[labels + PAGE_BYTES..].fill(0);
    resume(&part);
}

#[test]
fn damaged_table_is_given_up_only_when_that_is_wanted() {
    let folder = tempfile::tempdir().expect("there is room for it");
    let path = folder.path().join("disk");
    let (disk, label, seen) = disk_with_copies(&path);
    let mut damaged = disk.clone();
    for copy in [0, 1] {
        damaged[label.page_first(copy, 0) as usize + 70] ^= 1;
    }
    fs::write(&path, &damaged).expect("the folder is writable");
    let said = dissolve(&path, false).expect_err("the table is damaged").to_string();
    assert!(said.contains("page 0 of its hot block table is damaged in both copies"), "{said}");
    assert!(fs::read(&path).expect("it is a file") == damaged, "a refusal writes nothing");
    dissolve(&path, true).expect("the copies are given up");
    assert!(fs::read(&path).expect("it is a file") == whole(&disk[..seen.len()]));
}
