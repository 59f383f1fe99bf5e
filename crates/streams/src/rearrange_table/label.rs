//! The label of a region: where it is on the disk. It is written when the region is made, and changed only when it is dissolved.

use super::counts::area_bytes;
use super::error::TableError;
use super::page::{SLOTS_PER_PAGE, put, sealed, u32_at, u64_at};
use super::{LABELS_BYTES, PAGE_BYTES};
use crate::rearrange::{RegionSlot, ReservedRegion, ReservedRun, outside};
use headstack_model::Lbn;

/// Unit of places on a disk in the rearranger of a node, whatever the disk's own sector is.
pub const SECTOR_BYTES: u64 = 512;

/// First bytes of a label: one outside ASCII, then CR and LF, which a transfer in text mode changes visibly.
const MAGIC: &[u8; 8] = b"\x89HSRL\r\n\x1a";

const VERSION: u32 = 1;

/// Sectors of a nominal cylinder, 1 MiB: the distance between slots is known, cylinders are not.
const CYLINDER_SECTORS: u64 = 2048;

/// Largest block, and multiple that it must be.
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 4096..=16 << 20;

/// Largest number of slots: a page number has 32 bits with room to spare.
const MOST_SLOTS: u64 = 1 << 26;

/// What a region is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionState {
    /// It holds copies.
    InUse,
    /// All homes are up to date; what is left of the region is being erased.
    Emptied,
}

/// A region that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionRequest {
    /// An identifier of the region, different for each one ever made.
    pub id: [u8; 16],
    /// Bytes of the disk.
    pub disk_bytes: u64,
    /// Bytes of copies.
    pub region_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// First byte of the copies; `None` for the end of the disk.
    pub first: Option<u64>,
    /// Counts of blocks that are saved; `None` for four for each slot.
    pub counters: Option<u32>,
}

/// Where the parts of a region are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionLabel {
    /// The identifier of the region.
    pub id: [u8; 16],
    /// Bytes of the disk on which it was made.
    pub disk_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// First byte of the first slot.
    pub slots_first: u64,
    /// Places for copies.
    pub slots: u32,
    /// Counts of blocks that are saved.
    pub counters: u32,
    /// Whether it is in use.
    pub state: RegionState,
}

impl RegionLabel {
    /// Lays a region out.
    ///
    /// *Errors:* it does not fit on the disk, or its sizes are no multiples of what they must be.
    pub fn lay_out(request: &RegionRequest) -> Result<RegionLabel, TableError> {
        let RegionRequest { id, disk_bytes, region_bytes, block_bytes, first, counters } = *request;
        if !BLOCK_BYTES.contains(&block_bytes) || !block_bytes.is_multiple_of(PAGE_BYTES as u64) {
            let allowed = "the multiples of 4096 bytes up to 16777216";
            return Err(outside("--block", block_bytes, allowed).into());
        }
        let slots = region_bytes / block_bytes;
        let refused = |allowed: String| outside("--region", region_bytes, allowed).into();
        if !(1..=MOST_SLOTS).contains(&slots) {
            return Err(refused(format!("{block_bytes} to {} bytes", MOST_SLOTS * block_bytes)));
        }
        let slots = slots as u32;
        let counters = counters.unwrap_or(slots.saturating_mul(4).min(MOST_SLOTS as u32));
        let state = RegionState::InUse;
        let mut label = RegionLabel { id, disk_bytes, block_bytes, slots_first: 0, slots, counters, state };
        let needed = label.slots_bytes() + label.metadata_bytes() + block_bytes;
        if needed > disk_bytes {
            let most = disk_bytes.saturating_sub(needed - label.slots_bytes());
            return Err(refused(format!("{block_bytes} to {most} bytes, on a disk of {disk_bytes} bytes")));
        }
        let last = label.table_first(0) - label.slots_bytes();
        label.slots_first = match first {
            Some(first) if first > last || !first.is_multiple_of(PAGE_BYTES as u64) => {
                let allowed = format!("the multiples of 4096 up to {last}");
                return Err(outside("--first", first, allowed).into());
            }
            Some(first) => first,
            None => last,
        };
        label.check()?;
        Ok(label)
    }

    /// Checks that all parts are on the disk and that none overlaps another.
    fn check(&self) -> Result<(), TableError> {
        let is_whole = |bytes: u64| bytes.is_multiple_of(PAGE_BYTES as u64);
        let is_block = BLOCK_BYTES.contains(&self.block_bytes) && is_whole(self.block_bytes);
        let fits = || {
            let end = self.slots_first.checked_add(self.slots_bytes());
            let has_room = self.metadata_bytes() <= self.disk_bytes;
            has_room && end.is_some_and(|end| end <= self.table_first(0))
        };
        // Sizes are multiplied only once the block is known to be one.
        let is_good = self.slots > 0 && is_block && is_whole(self.slots_first) && fits();
        if !is_good {
            let places =
                format!("{} slots of {} bytes at {}", self.slots, self.block_bytes, self.slots_first);
            return Err(TableError::Impossible(places));
        }
        self.region().map(|_| ())
    }

    /// Pages of one copy of the table.
    pub fn pages(&self) -> u32 {
        self.slots.div_ceil(SLOTS_PER_PAGE as u32)
    }

    /// Bytes of all slots.
    pub fn slots_bytes(&self) -> u64 {
        u64::from(self.slots) * self.block_bytes
    }

    fn copy_bytes(&self) -> u64 {
        u64::from(self.pages()) * PAGE_BYTES as u64
    }

    /// Bytes of the table, the counts and the labels.
    fn metadata_bytes(&self) -> u64 {
        2 * self.copy_bytes() + 2 * area_bytes(self.counters) + LABELS_BYTES as u64 + self.tail_bytes()
    }

    /// Bytes behind the last whole page of the disk, which are not used.
    fn tail_bytes(&self) -> u64 {
        self.disk_bytes % PAGE_BYTES as u64
    }

    /// First byte of a copy of the table: 0 or 1.
    pub fn table_first(&self, copy: u8) -> u64 {
        self.disk_bytes - self.metadata_bytes() + u64::from(copy) * self.copy_bytes()
    }

    /// First byte of a page of the table.
    pub fn page_first(&self, copy: u8, page: u32) -> u64 {
        self.table_first(copy) + u64::from(page) * PAGE_BYTES as u64
    }

    /// First byte of an area of saved counts: 0 or 1.
    pub fn counts_first(&self, area: u8) -> u64 {
        self.table_first(2) + u64::from(area) * area_bytes(self.counters)
    }

    /// First byte of the two labels.
    pub fn labels_first(disk_bytes: u64) -> Option<u64> {
        (disk_bytes - disk_bytes % PAGE_BYTES as u64).checked_sub(LABELS_BYTES as u64)
    }

    /// The sectors that are hidden from clients: slots and everything behind the first page of the table.
    ///
    /// *Errors:* the region leaves nothing of the disk.
    pub fn region(&self) -> Result<ReservedRegion, TableError> {
        let run = |first: u64, end: u64| ReservedRun {
            first: Lbn(first / SECTOR_BYTES),
            sectors: (end - first) / SECTOR_BYTES,
        };
        let slots = run(self.slots_first, self.slots_first + self.slots_bytes());
        let rest = run(self.table_first(0), self.disk_bytes);
        Ok(ReservedRegion::new(self.disk_bytes / SECTOR_BYTES, vec![slots, rest])?)
    }

    /// The places of copies.
    pub fn slot_list(&self) -> Vec<RegionSlot> {
        let block_sectors = self.block_bytes / SECTOR_BYTES;
        let slot = |number: u32| {
            let lbn = Lbn(self.slots_first / SECTOR_BYTES + u64::from(number) * block_sectors);
            let cylinder = (lbn.0 / CYLINDER_SECTORS) as u32;
            RegionSlot { lbn, cylinder, track: cylinder }
        };
        (0..self.slots).map(slot).collect()
    }

    /// Bytes of the disk as clients see it.
    ///
    /// *Errors:* as [`RegionLabel::region`].
    pub fn visible_bytes(&self) -> Result<u64, TableError> {
        Ok(self.region()?.visible_sectors() * SECTOR_BYTES)
    }

    /// The label as a page.
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        page[..8].copy_from_slice(MAGIC);
        put(&mut page, 8, &VERSION.to_le_bytes());
        let state: u32 = match self.state {
            RegionState::InUse => 1,
            RegionState::Emptied => 2,
        };
        put(&mut page, 12, &state.to_le_bytes());
        put(&mut page, 16, &self.id);
        put(&mut page, 32, &self.disk_bytes.to_le_bytes());
        put(&mut page, 40, &self.block_bytes.to_le_bytes());
        put(&mut page, 48, &self.slots_first.to_le_bytes());
        put(&mut page, 56, &self.slots.to_le_bytes());
        put(&mut page, 60, &self.counters.to_le_bytes());
        sealed(page)
    }
}

/// A page that may be a label.
enum LabelPage {
    Nothing,
    Damaged,
    Version(u32),
    Label(RegionLabel),
}

fn decode(page: &[u8]) -> LabelPage {
    if page[..8] != MAGIC[..] {
        return LabelPage::Nothing;
    }
    if !super::page::is_whole(page) {
        return LabelPage::Damaged;
    }
    let version = u32_at(page, 8);
    let state = match u32_at(page, 12) {
        1 => RegionState::InUse,
        2 => RegionState::Emptied,
        _ => return LabelPage::Damaged,
    };
    if version != VERSION {
        return LabelPage::Version(version);
    }
    LabelPage::Label(RegionLabel {
        id: page[16..32].try_into().expect("an identifier has 16 bytes"),
        disk_bytes: u64_at(page, 32),
        block_bytes: u64_at(page, 40),
        slots_first: u64_at(page, 48),
        slots: u32_at(page, 56),
        counters: u32_at(page, 60),
        state,
    })
}

/// The region of a disk, from its last [`LABELS_BYTES`] whole bytes ([`RegionLabel::labels_first`]); `None` for a disk without one.
///
/// *Errors:* both labels are damaged, of a later version, of a disk of another size, or impossible.
pub fn scan_labels(labels: &[u8], disk_bytes: u64) -> Result<Option<RegionLabel>, TableError> {
    let (first, second) = labels.split_at(PAGE_BYTES);
    let found = match (decode(first), decode(second)) {
        (LabelPage::Nothing, LabelPage::Nothing) => return Ok(None),
        // A region is marked as emptied in one label after the other.
        (LabelPage::Label(one), LabelPage::Label(other)) => {
            if one.state == RegionState::Emptied {
                one
            } else {
                other
            }
        }
        (LabelPage::Label(label), _) | (_, LabelPage::Label(label)) => label,
        (LabelPage::Version(version), _) | (_, LabelPage::Version(version)) => {
            return Err(TableError::Version(version));
        }
        _ => {
            let page = (disk_bytes / PAGE_BYTES as u64).saturating_sub(2);
            return Err(TableError::DamagedLabels(page, page + 1));
        }
    };
    if found.disk_bytes != disk_bytes {
        return Err(TableError::OtherSize { made: found.disk_bytes, bytes: disk_bytes });
    }
    found.check()?;
    Ok(Some(found))
}
