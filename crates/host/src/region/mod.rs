//! The reserved region on a disk that no node serves: made, described, and dissolved.
//!
//! *Making* refuses a disk whose last part is in use, and writes the labels last, so that an incomplete region does not count as one.
//! *Dissolving* brings the homes up to date, marks the region as emptied, erases it, and erases the labels last. If it is killed at any moment,
//! it continues when it is run again: until the mark is durable the copies are valid, and from then on the homes are.

mod raw;

use crate::ext4;
use headstack_ext4::Filesystem;
use headstack_model::Lbn;
use headstack_streams::rearrange_table::{
    PAGE_BYTES, RecoveredTable, RegionLabel, RegionRequest, RegionState, SECTOR_BYTES, TableError,
};
use raw::RawDisk;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Why a region cannot be made or dissolved. Nothing was written, except for [`RegionError::Io`].
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The region is damaged, of another disk, or impossible.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The disk has a region.
    #[error("it has a region of {0} copies: remove that first with `headstack rearrange dissolve`")]
    Present(u32),
    /// The disk has no region.
    #[error("it has no reserved region: make one with `headstack rearrange format`")]
    Absent,
    /// The disk holds data where the region would be.
    #[error(
        "{0}: name a place that is not used (--first), or format it with --force, which overwrites what is there"
    )]
    Used(String),
    /// The disk could not be examined or changed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// What a disk's table says, read while no node serves the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionStatus {
    /// Where the region is.
    pub label: RegionLabel,
    /// Bytes of the disk as clients see it.
    pub visible_bytes: u64,
    /// Slots that hold a copy.
    pub copies: u32,
    /// Copies that may be newer than their homes.
    pub dirty: u32,
    /// Blocks whose counts of references are saved.
    pub counted_blocks: usize,
}

/// What dissolving did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dissolved {
    /// Copies that were written home.
    pub written_home: u32,
    /// Copies that equalled their homes.
    pub left_clean: u32,
    /// Copies that were given up.
    pub discarded: u32,
}

/// Makes a region on a block device or in a file. `request` needs no identifier and no size of the disk. `is_forced` overwrites what is
/// there.
///
/// *Errors:* the disk is in use, has a region, or holds data where the region would be; the region does not fit.
pub fn format(path: &Path, request: &RegionRequest, is_forced: bool) -> Result<RegionLabel, RegionError> {
    let disk = RawDisk::open(path, false)?;
    if let Some(label) = disk.find()? {
        return Err(RegionError::Present(label.slots));
    }
    let id = random_id()?;
    let label = RegionLabel::lay_out(&RegionRequest { id, disk_bytes: disk.bytes, ..*request })?;
    if !is_forced {
        refuse_used(path, &disk, &label)?;
    }
    for (first, page) in RecoveredTable::empty_pages(&label) {
        disk.write(first, &page)?;
    }
    disk.erase(label.counts_first(0), label.counts_first(2) - label.counts_first(0))?;
    disk.flush()?;
    disk.write_labels(&label)?;
    Ok(label)
}

/// Describes the region of a disk.
///
/// *Errors:* there is none, or it cannot be used; a node serves the disk.
pub fn status(path: &Path) -> Result<RegionStatus, RegionError> {
    let disk = RawDisk::open(path, true)?;
    let label = disk.find()?.ok_or(RegionError::Absent)?;
    let table = disk.table(label)?;
    let dirty = table.copies().filter(|(_, _, is_dirty)| *is_dirty).count() as u32;
    Ok(RegionStatus {
        label,
        visible_bytes: label.visible_bytes()?,
        copies: table.copies().count() as u32,
        dirty,
        counted_blocks: table.counts().map_or(0, |counts| counts.hot.len()),
    })
}

/// Removes the region of a disk: copies that may be newer than their homes are written home, unless they are discarded.
///
/// *Errors:* there is none, or it cannot be used; a node serves the disk; the disk cannot be written.
pub fn dissolve(path: &Path, discards_copies: bool) -> Result<Dissolved, RegionError> {
    let disk = RawDisk::open(path, false)?;
    let label = match disk.find() {
        Ok(label) => label.ok_or(RegionError::Absent)?,
        Err(TableError::DamagedLabels(..) | TableError::Impossible(_)) if discards_copies => {
            // Where the copies are is not known, so they stay as what they are now: unused sectors.
            disk.erase_labels()?;
            return Ok(Dissolved::default());
        }
        Err(error) => return Err(error.into()),
    };
    let mut done = Dissolved::default();
    if label.state == RegionState::InUse {
        match disk.table(label) {
            Err(_) if discards_copies => {}
            Ok(table) if discards_copies => done.discarded = table.copies().count() as u32,
            Ok(table) => done = write_home(&disk, &table)?,
            Err(error) => return Err(error.into()),
        }
        disk.flush()?;
        disk.write_labels(&RegionLabel { state: RegionState::Emptied, ..label })?;
    }
    disk.erase(label.slots_first, label.slots_bytes())?;
    disk.erase(label.table_first(0), label.counts_first(2) - label.table_first(0))?;
    disk.flush()?;
    disk.erase_labels()?;
    Ok(done)
}

/// Writes every copy home that may be newer.
fn write_home(disk: &RawDisk, table: &RecoveredTable) -> Result<Dissolved, RegionError> {
    let label = table.label();
    let (region, block_sectors) = (label.region()?, label.block_bytes / SECTOR_BYTES);
    let mut done = Dissolved::default();
    let mut bytes = vec![0; label.block_bytes as usize];
    for (slot, block, is_dirty) in table.copies() {
        if !is_dirty {
            done.left_clean += 1;
            continue;
        }
        disk.read(label.slots_first + u64::from(slot) * label.block_bytes, &mut bytes)?;
        let (home, _) = region.home(Lbn(block * block_sectors));
        disk.write(home.0 * SECTOR_BYTES, &bytes)?;
        done.written_home += 1;
    }
    Ok(done)
}

/// Refuses a disk with a file system or a partition table that uses the region, or with data in it.
fn refuse_used(path: &Path, disk: &RawDisk, label: &RegionLabel) -> Result<(), RegionError> {
    let found = ext4::content(path).map_err(io::Error::other)?;
    if let Some(what) = found.filter(|_| !ends_before(disk, label)) {
        return Err(RegionError::Used(format!("it holds {what}, which may use the place of the region")));
    }
    let runs =
        [(label.slots_first, label.slots_bytes()), (label.table_first(0), disk.end() - label.table_first(0))];
    for (first, bytes) in runs {
        if let Some(used) = disk.first_data(first, bytes)? {
            return Err(RegionError::Used(format!("byte {used}, where the region would be, is not zero")));
        }
    }
    Ok(())
}

/// Whether the disk holds an ext4 file system that ends before a region at the end of the disk.
fn ends_before(disk: &RawDisk, label: &RegionLabel) -> bool {
    let is_at_end = label.slots_first + label.slots_bytes() == label.table_first(0);
    let end = Filesystem::open(&disk.file).map(|found| found.shape().blocks * found.shape().block_bytes);
    is_at_end && end.is_ok_and(|end| end <= label.slots_first)
}

/// An identifier that no other region has.
fn random_id() -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    #[allow(clippy::disallowed_methods, reason = "the system's random numbers are in a file")]
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(id)
}

/// Bytes that are read or erased at once.
const CHUNK: usize = 256 * PAGE_BYTES;
