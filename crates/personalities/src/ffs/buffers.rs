//! The buffer cache: blocks of the disk in memory, whole or in part.

use super::BLOCK_SECTORS;
use std::collections::VecDeque;

/// Sectors of a block, one bit each.
type Sectors = u16;

const ALL: Sectors = Sectors::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    /// Sectors that were requested, or are valid.
    requested: Sectors,
    /// Sectors whose data are in the buffer.
    valid: Sectors,
    /// Whether some of it waits to be written.
    dirty: bool,
    /// Whether it is in the list of buffers that may be evicted.
    listed: bool,
}

/// Buffers of blocks. When there are too many, the oldest is evicted, unless it is dirty or in a transfer.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    of: Vec<Buffer>,
    by_age: VecDeque<u32>,
    most: usize,
}

impl Buffers {
    /// No more than `most` buffers of a disk's `blocks`.
    pub(super) fn new(blocks: u32, most: usize) -> Buffers {
        Buffers { of: vec![Buffer::default(); blocks as usize], by_age: VecDeque::new(), most }
    }

    pub(super) fn is_valid(&self, block: u32) -> bool {
        self.of[block as usize].valid == ALL
    }

    pub(super) fn is_requested(&self, block: u32) -> bool {
        self.of[block as usize].requested == ALL
    }

    /// Whether some of a block waits to be written.
    pub(super) fn is_dirty(&self, block: u32) -> bool {
        self.of[block as usize].dirty
    }

    /// The first sector of a block that was not requested; the block's number of sectors if all were.
    pub(super) fn first_unrequested(&self, block: u32) -> u32 {
        self.of[block as usize].requested.trailing_ones()
    }

    pub(super) fn request(&mut self, first: u64, sectors: u32) {
        for (block, part) in parts(first, sectors) {
            let buffer = &mut self.of[block as usize];
            assert!(buffer.requested & part == 0, "block {block} is fetched once");
            buffer.requested |= part;
        }
    }

    pub(super) fn arrive(&mut self, first: u64, sectors: u32) {
        for (block, part) in parts(first, sectors) {
            let buffer = &mut self.of[block as usize];
            // A block that was evicted meanwhile stays so.
            buffer.valid |= part & buffer.requested;
            self.list(block);
        }
    }

    /// Records that a block was written, and is valid.
    pub(super) fn write(&mut self, block: u32) {
        let listed = self.of[block as usize].listed;
        self.of[block as usize] = Buffer { requested: ALL, valid: ALL, dirty: true, listed };
        self.list(block);
    }

    /// Records that nothing of a block waits to be written any more.
    pub(super) fn clean(&mut self, block: u32) {
        self.of[block as usize].dirty = false;
    }

    pub(super) fn forget(&mut self, block: u32) {
        let listed = self.of[block as usize].listed;
        self.of[block as usize] = Buffer { listed, ..Buffer::default() };
    }

    /// Forgets all blocks, none of which is dirty or in a transfer.
    pub(super) fn forget_all(&mut self) {
        for block in std::mem::take(&mut self.by_age) {
            self.of[block as usize] = Buffer::default();
        }
    }

    fn list(&mut self, block: u32) {
        if !std::mem::replace(&mut self.of[block as usize].listed, true) {
            self.by_age.push_back(block);
        }
        // Each is checked once at most: if all are dirty or in transfers, there are more for a while.
        for _ in self.most..self.by_age.len() {
            let Some(oldest) = self.by_age.pop_front() else { return };
            let buffer = &mut self.of[oldest as usize];
            if buffer.dirty || buffer.requested != buffer.valid {
                self.by_age.push_back(oldest);
            } else {
                *buffer = Buffer::default();
            }
        }
    }
}

fn parts(first: u64, sectors: u32) -> impl Iterator<Item = (u32, Sectors)> {
    let of_block = u64::from(BLOCK_SECTORS);
    let end = first + u64::from(sectors);
    (first / of_block..end.div_ceil(of_block)).map(move |block| {
        let from = first.saturating_sub(block * of_block);
        let to = (end - block * of_block).min(of_block);
        (block as u32, ALL << from & ALL >> (of_block - to))
    })
}
