//! A file: the places of its blocks, and how much of it is on the disk.

use super::directories::NameEntry;
use super::program::Handle;
use super::{BLOCK_BYTES, BLOCK_SECTORS, DIRECT_BLOCKS, POINTERS, sector_of};

/// A file as its inode and indirect blocks describe it, and its unwritten part.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) handle: Handle,
    /// Where its name and its inode are.
    pub(super) entry: NameEntry,
    pub(super) group: u32,
    pub(super) bytes: u64,
    /// Its blocks so far as they have places.
    pub(super) blocks: Vec<u32>,
    /// Indirect blocks, in the order in which they were allocated: the indirect one, the double indirect one, and those that
    /// it points to.
    pub(super) leads: Vec<u32>,
    /// Group of its last block.
    pub(super) last_group: u32,
    pub(super) in_group: u32,
    /// The first block of the file group that holds its first blocks, and how many blocks it holds.
    pub(super) file_group: Option<u32>,
    pub(super) grouped: u32,
    /// Sectors of the file, from its start, that are on the disk or in a transfer.
    pub(super) written: u64,
    /// Indirect blocks that are on the disk or in a transfer.
    pub(super) leads_written: usize,
}

impl File {
    pub(super) fn length(&self) -> u32 {
        self.bytes.div_ceil(BLOCK_BYTES) as u32
    }

    /// The same file without any block, to be placed elsewhere.
    pub(super) fn unplaced_copy(&self) -> File {
        let File { handle, entry, group, bytes, .. } = *self;
        File { handle, entry, group, bytes, last_group: group, ..File::default() }
    }

    pub(super) fn unplaced(&self) -> u32 {
        self.length() - self.blocks.len() as u32
    }

    /// The kinds of indirect blocks that lead to a block of the file, the first one first.
    pub(super) fn leads_to(index: u32) -> &'static [LeadKind] {
        if index < DIRECT_BLOCKS {
            &[]
        } else if index < DIRECT_BLOCKS + POINTERS {
            &[LeadKind::Single]
        } else {
            &[LeadKind::Double, LeadKind::OfDouble]
        }
    }

    /// Index in `leads` of an indirect block.
    pub(super) fn lead_place(kind: LeadKind, index: u32) -> usize {
        match kind {
            LeadKind::Single => 0,
            LeadKind::Double => 1,
            LeadKind::OfDouble => section_of(index) as usize,
        }
    }

    /// Number of blocks of the file from `index` on that follow each other on the disk, within a section and below `end`.
    pub(super) fn contiguous(&self, index: u32, end: u32) -> u32 {
        let end = end.min(section_end(index)).min(self.blocks.len() as u32);
        let first = self.blocks[index as usize];
        let mut next = index + 1;
        while next < end && self.blocks[next as usize] == first + (next - index) {
            next += 1;
        }
        next - index
    }

    /// The disk's sector of a sector of the file that has a place.
    pub(super) fn disk_sector(&self, sector: u64) -> u64 {
        let of_block = u64::from(BLOCK_SECTORS);
        sector_of(self.blocks[(sector / of_block) as usize]) + sector % of_block
    }

    /// Sectors of the file up to its end, or to the last block that has a place.
    pub(super) fn placed_sectors(&self) -> u64 {
        self.bytes.div_ceil(512).min(sector_of(self.blocks.len() as u32))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeadKind {
    /// The inode points to it, and it to data.
    Single,
    /// The inode points to it, and it to others that point to data.
    Double,
    /// One of these others.
    OfDouble,
}

/// The section of a file to which a block belongs: the direct blocks, then the blocks of one indirect block each.
pub(super) fn section_of(index: u32) -> u32 {
    if index < DIRECT_BLOCKS { 0 } else { (index - DIRECT_BLOCKS) / POINTERS + 1 }
}

/// The first block of the file after a block's section.
pub(super) fn section_end(index: u32) -> u32 {
    DIRECT_BLOCKS + section_of(index) * POINTERS
}

/// Whether a block of the file is the first of a section after the direct blocks.
pub(super) fn begins_section(index: u32) -> bool {
    index >= DIRECT_BLOCKS && (index - DIRECT_BLOCKS).is_multiple_of(POINTERS)
}
