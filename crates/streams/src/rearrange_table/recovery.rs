//! The table as a disk holds it after an orderly end or a crash.

use super::counts::area_bytes;
use super::error::TableError;
use super::label::{RegionLabel, RegionState, SECTOR_BYTES, scan_labels};
use super::page::{PageFault, PageHead, SLOTS_PER_PAGE, TableEntry, decode};
use super::{LABELS_BYTES, PAGE_BYTES, SavedCounts};
use headstack_model::Lbn;
use std::collections::BTreeSet;
use std::io;

/// Reads bytes of a disk, from a first byte on.
type DiskReader<'a> = dyn FnMut(u64, &mut [u8]) -> io::Result<()> + 'a;

/// A page of the table, as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecoveredPage {
    pub(super) sequence: u64,
    /// The copy that is written first: never the only whole one.
    pub(super) first_copy: u8,
    /// Whether it must be written before a copy is used: it is closed, or its two copies differ.
    pub(super) is_stale: bool,
}

/// The table of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredTable {
    label: RegionLabel,
    pub(super) pages: Vec<RecoveredPage>,
    pub(super) entries: Vec<TableEntry>,
    counts: Option<SavedCounts>,
    /// The area that the next save goes to.
    next_area: u8,
}

impl RecoveredTable {
    /// The label of a disk's region; `None` for a disk without one.
    ///
    /// *Errors:* the labels are damaged or of another disk; the disk cannot be read.
    pub fn find(disk_bytes: u64, read: &mut DiskReader<'_>) -> Result<Option<RegionLabel>, TableError> {
        let Some(first) = RegionLabel::labels_first(disk_bytes) else { return Ok(None) };
        let mut labels = vec![0; LABELS_BYTES];
        read(first, &mut labels)?;
        scan_labels(&labels, disk_bytes)
    }

    /// Reads the table of a region.
    ///
    /// *Errors:* both copies of a page are damaged or of another region; the table contradicts itself; the region is being dissolved;
    /// the disk cannot be read.
    pub fn read(label: RegionLabel, read: &mut DiskReader<'_>) -> Result<RecoveredTable, TableError> {
        if label.state == RegionState::Emptied {
            return Err(TableError::HalfDissolved);
        }
        let (mut pages, mut entries) = (Vec::new(), Vec::new());
        for number in 0..label.pages() {
            let mut copies = Vec::new();
            for copy in 0..2 {
                let mut page = vec![0; PAGE_BYTES];
                read(label.page_first(copy, number), &mut page)?;
                copies.push(decode(&label.id, number, &page));
            }
            let (page, slots) = recover_page(number, &copies[0], &copies[1])?;
            pages.push(page);
            entries.extend(slots);
        }
        entries.truncate(label.slots as usize);
        check_entries(&label, &entries)?;
        let (counts, next_area) = read_counts(&label, read)?;
        Ok(RecoveredTable { label, pages, entries, counts, next_area })
    }

    /// An empty table for a region that is being made, and the bytes of its pages: first byte on the disk, and content.
    pub fn empty_pages(label: &RegionLabel) -> Vec<(u64, Vec<u8>)> {
        let slots = vec![TableEntry::FREE; SLOTS_PER_PAGE];
        let of_copy = |copy: u8| {
            let slots = &slots;
            (0..label.pages()).map(move |page| {
                let head = PageHead { page, sequence: 1, is_closed: true };
                (label.page_first(copy, page), super::page::encode(&label.id, head, slots))
            })
        };
        (0..2).flat_map(of_copy).collect()
    }

    /// The label of the region.
    pub fn label(&self) -> &RegionLabel {
        &self.label
    }

    /// The copies in force: slot, block, and whether the copy may be newer than its home.
    pub fn copies(&self) -> impl Iterator<Item = (u32, u64, bool)> + '_ {
        let slots = (0u32..).zip(&self.entries);
        slots.filter_map(|(slot, entry)| Some((slot, entry.block?, !entry.is_clean)))
    }

    /// The counts of references that were saved last.
    pub fn counts(&self) -> Option<&SavedCounts> {
        self.counts.as_ref()
    }

    /// The area, 0 or 1, that the next save of counts goes to: not that of the newest one.
    pub fn next_area(&self) -> u8 {
        self.next_area
    }
}

type DecodedPage = Result<(PageHead, Vec<TableEntry>), PageFault>;

/// The newest whole copy of a page.
fn recover_page(
    number: u32,
    one: &DecodedPage,
    other: &DecodedPage,
) -> Result<(RecoveredPage, Vec<TableEntry>), TableError> {
    let (newest, first_copy, differs) = match (one, other) {
        (Ok(one), Ok(other)) if other.0.sequence > one.0.sequence => (other, 0, true),
        (Ok(one), Ok(other)) => (one, 1, one.0.sequence > other.0.sequence),
        (Ok(one), Err(_)) => (one, 1, true),
        (Err(_), Ok(other)) => (other, 0, true),
        (Err(PageFault::Foreign), Err(_)) | (Err(_), Err(PageFault::Foreign)) => {
            return Err(TableError::OtherTable(number));
        }
        (Err(PageFault::Damaged), Err(PageFault::Damaged)) => return Err(TableError::DamagedPage(number)),
    };
    let (head, entries) = newest;
    // In a page that was in use at a crash, every copy may have been written.
    let entry = |entry: &TableEntry| TableEntry { is_clean: entry.is_clean && head.is_closed, ..*entry };
    let page = RecoveredPage { sequence: head.sequence, first_copy, is_stale: head.is_closed || differs };
    Ok((page, entries.iter().map(entry).collect()))
}

/// Checks that each block has one copy at most, and a home in one piece.
fn check_entries(label: &RegionLabel, entries: &[TableEntry]) -> Result<(), TableError> {
    let (region, block_sectors) = (label.region()?, label.block_bytes / SECTOR_BYTES);
    let blocks = region.visible_sectors() / block_sectors;
    let mut met = BTreeSet::new();
    for (slot, entry) in (0u32..).zip(entries) {
        let Some(block) = entry.block else { continue };
        let is_good =
            block < blocks && region.home(Lbn(block * block_sectors)).1 >= block_sectors && met.insert(block);
        if !is_good {
            return Err(TableError::Contradiction { slot, block });
        }
    }
    Ok(())
}

/// The newest whole save of counts, and the area of the next one.
fn read_counts(
    label: &RegionLabel,
    read: &mut DiskReader<'_>,
) -> Result<(Option<SavedCounts>, u8), TableError> {
    let mut newest: (Option<SavedCounts>, u8) = (None, 0);
    for area in 0..2 {
        let mut bytes = vec![0; area_bytes(label.counters) as usize];
        read(label.counts_first(area), &mut bytes)?;
        let Some(found) = SavedCounts::decode(&label.id, &bytes) else { continue };
        if newest.0.as_ref().is_none_or(|newest| newest.sequence < found.sequence) {
            newest = (Some(found), 1 - area);
        }
    }
    Ok(newest)
}
