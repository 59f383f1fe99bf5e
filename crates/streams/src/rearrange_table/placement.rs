//! The hot block table of an emulated disk, as it is kept in the file with the disk's bytes.
//!
//! An emulator keeps bytes by the addresses that clients use, whichever place of a block is in force. This table says only where the
//! model's arm goes for a block, so no fault of it can lose data or return old ones. A change is one entry, which lies within a page of
//! memory and is therefore written whole or not at all by a program that is killed. `docs/formats/rearrange-table.md` has every field.

use super::PAGE_BYTES;
use super::counts::{SavedCounts, area_bytes};
use super::page::{put, u32_at, u64_at};
use crate::rearrange::Rearranger;
use std::collections::BTreeSet;

const MAGIC: &[u8; 8] = b"\x89HSEB\r\n\x1a";

const VERSION: u32 = 1;

/// Bytes of the head that are used.
const HEAD_BYTES: usize = 64;

/// Bytes of an entry: a divisor of every page's.
const ENTRY_BYTES: usize = 16;

/// The bit of an entry that says that the copy equals its home. It counts in a closed table only.
const IS_CLEAN: u64 = 1 << 63;

/// Saved counts for each slot. *Source:* as many as a region has counters by default.
const COUNTS_PER_SLOT: u32 = 4;

/// Why the table of an emulated disk cannot be used. The disk's data are right without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The head is damaged.
    #[error("the head of its hot block table is damaged")]
    DamagedHead,
    /// An entry is damaged.
    #[error("slot {0} of its hot block table is damaged")]
    DamagedSlot(u32),
    /// An entry names a block that the disk lacks, or one that another slot has.
    #[error("its hot block table is invalid (slot {slot}, block {block})")]
    Contradiction {
        /// The slot of the entry.
        slot: u32,
        /// Its block.
        block: u64,
    },
    /// The table is that of another region.
    #[error(
        "its hot block table is that of another region ({found} slots of {found_sectors} sectors; the rig has {slots} of {sectors})"
    )]
    OtherRegion {
        /// Slots of the table.
        found: u32,
        /// Sectors of its blocks.
        found_sectors: u32,
        /// Slots of the rig's region.
        slots: u32,
        /// Sectors of the rig's blocks.
        sectors: u32,
    },
    /// A later version wrote the table.
    #[error("its hot block table has format {0} (known: {VERSION})")]
    Version(u32),
}

/// The copies and the counts of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementCopies {
    /// Slot, block, and whether the copy counts as newer than its home.
    pub copies: Vec<(u32, u64, bool)>,
    /// The newest saved counts.
    pub counts: Option<SavedCounts>,
    /// The area that the next save of counts goes to.
    pub next_area: u8,
}

/// The layout of an emulated disk's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementTable {
    disk_sectors: u64,
    block_sectors: u32,
    slots: u32,
    /// A checksum of the places of all slots.
    places: u32,
    /// Blocks that clients see.
    blocks: u64,
}

impl PlacementTable {
    /// The table of a rearranger.
    pub fn new(rearranger: &Rearranger) -> PlacementTable {
        let mut places = crc32fast::Hasher::new();
        rearranger.slots().iter().for_each(|slot| places.update(&slot.lbn.0.to_le_bytes()));
        let (region, sectors) = (rearranger.region(), rearranger.block_sectors());
        PlacementTable {
            disk_sectors: region.disk_sectors(),
            block_sectors: sectors as u32,
            slots: rearranger.slots().len() as u32,
            places: places.finalize(),
            blocks: region.visible_sectors() / sectors,
        }
    }

    /// Counts of references that are saved, at most.
    pub fn counts(&self) -> u32 {
        self.slots.saturating_mul(COUNTS_PER_SLOT)
    }

    /// First byte of an area of saved counts, 0 or 1, from the table's first byte on.
    pub fn counts_first(&self, area: u8) -> u64 {
        let entries = u64::from(self.slots) * ENTRY_BYTES as u64;
        let first = PAGE_BYTES as u64 + entries.next_multiple_of(PAGE_BYTES as u64);
        first + u64::from(area) * area_bytes(self.counts())
    }

    /// Bytes of the table, a multiple of [`PAGE_BYTES`].
    pub fn bytes(&self) -> u64 {
        self.counts_first(2)
    }

    /// What saved counts have in place of a region's identifier.
    pub fn id(&self) -> [u8; 16] {
        let mut id = [0; 16];
        put(&mut id, 0, &self.disk_sectors.to_le_bytes());
        put(&mut id, 8, &self.block_sectors.to_le_bytes());
        put(&mut id, 12, &self.places.to_le_bytes());
        id
    }

    /// The head, which is at the table's first byte. A closed table says which copies equal their homes; in another, every copy counts
    /// as newer.
    pub fn head(&self, is_closed: bool) -> Vec<u8> {
        let mut head = vec![0; HEAD_BYTES];
        put(&mut head, 0, MAGIC);
        put(&mut head, 8, &VERSION.to_le_bytes());
        put(&mut head, 12, &u32::from(is_closed).to_le_bytes());
        put(&mut head, 16, &self.id());
        put(&mut head, 32, &self.slots.to_le_bytes());
        let checksum = crc32fast::hash(&head[..HEAD_BYTES - 4]);
        put(&mut head, HEAD_BYTES - 4, &checksum.to_le_bytes());
        head
    }

    /// First byte of a slot's entry, from the table's first byte on.
    pub fn entry_first(slot: u32) -> u64 {
        PAGE_BYTES as u64 + u64::from(slot) * ENTRY_BYTES as u64
    }

    /// The entry of a slot: the block that it holds, if any. A free slot's is all zeros, as a hole of the file reads.
    pub fn entry(slot: u32, block: Option<u64>, is_clean: bool) -> [u8; ENTRY_BYTES] {
        let mut entry = [0; ENTRY_BYTES];
        if let Some(block) = block {
            let word = (block + 1) | if is_clean { IS_CLEAN } else { 0 };
            put(&mut entry, 0, &word.to_le_bytes());
            put(&mut entry, 8, &checksum(slot, word).to_le_bytes());
        }
        entry
    }

    /// What a table holds; `None` for one that is all zeros, as a new file's.
    ///
    /// *Errors:* it is damaged, of another region, or of a later version.
    ///
    /// Panics if `table` does not have [`PlacementTable::bytes`].
    pub fn decode(&self, table: &[u8]) -> Result<Option<PlacementCopies>, PlacementError> {
        assert_eq!(table.len() as u64, self.bytes(), "the whole table is decoded");
        let head = &table[..HEAD_BYTES];
        if head.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if head[..8] != MAGIC[..] || crc32fast::hash(&head[..HEAD_BYTES - 4]) != u32_at(head, HEAD_BYTES - 4)
        {
            return Err(PlacementError::DamagedHead);
        }
        if u32_at(head, 8) != VERSION {
            return Err(PlacementError::Version(u32_at(head, 8)));
        }
        let slots = u32_at(head, 32);
        if head[16..32] != self.id() || slots != self.slots {
            let (found_sectors, sectors) = (u32_at(head, 24), self.block_sectors);
            return Err(PlacementError::OtherRegion {
                found: slots,
                found_sectors,
                slots: self.slots,
                sectors,
            });
        }
        let is_closed = u32_at(head, 12) == 1;
        let copies = self.entries(table, is_closed)?;
        let saved = [0, 1].map(|area| {
            let first = self.counts_first(area) as usize;
            SavedCounts::decode(&self.id(), &table[first..first + area_bytes(self.counts()) as usize])
        });
        let sequence = |area: usize| saved[area].as_ref().map_or(0, |counts| counts.sequence);
        let newest = usize::from(sequence(1) > sequence(0));
        let [first, second] = saved;
        let mut counts = if newest == 0 { first } else { second };
        if let Some(counts) = &mut counts {
            counts.hot.retain(|hot| hot.block < self.blocks);
        }
        Ok(Some(PlacementCopies { copies, counts, next_area: 1 - newest as u8 }))
    }

    fn entries(&self, table: &[u8], is_closed: bool) -> Result<Vec<(u32, u64, bool)>, PlacementError> {
        let (mut copies, mut met) = (Vec::new(), BTreeSet::new());
        for slot in 0..self.slots {
            let first = PlacementTable::entry_first(slot) as usize;
            let (word, sum) = (u64_at(table, first), u32_at(table, first + 8));
            if word == 0 && sum == 0 {
                continue;
            }
            let block = (word & !IS_CLEAN).checked_sub(1).filter(|_| checksum(slot, word) == sum);
            let block = block.ok_or(PlacementError::DamagedSlot(slot))?;
            if block >= self.blocks || !met.insert(block) {
                return Err(PlacementError::Contradiction { slot, block });
            }
            copies.push((slot, block, !is_closed || word & IS_CLEAN == 0));
        }
        Ok(copies)
    }
}

/// The checksum of an entry, which differs from slot to slot.
fn checksum(slot: u32, word: u64) -> u32 {
    let mut bytes = [0; 12];
    put(&mut bytes, 0, &slot.to_le_bytes());
    put(&mut bytes, 4, &word.to_le_bytes());
    crc32fast::hash(&bytes)
}
