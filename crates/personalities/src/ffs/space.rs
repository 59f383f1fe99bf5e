//! Which blocks are free.

use super::{GROUP_BLOCKS, GROUP_HEAD_BLOCKS, TrackList};

#[derive(Clone, Debug)]
pub(super) struct Space {
    free: Vec<bool>,
    left: Vec<u32>,
    /// Blocks that hold no data once they are free, because they span two tracks.
    excludes: Vec<bool>,
    /// Number of these blocks that are free.
    excluded: u32,
}

impl Space {
    /// All blocks of a partition except the heads of groups and, with `excludes`, blocks on two tracks. Blocks after the last
    /// whole group are not used.
    pub(super) fn new(tracks: &TrackList, excludes: bool) -> Space {
        let groups = (tracks.sectors() / super::sector_of(GROUP_BLOCKS)) as u32;
        let blocks = (groups * GROUP_BLOCKS) as usize;
        let mut space = Space {
            free: vec![true; blocks],
            left: vec![GROUP_BLOCKS; groups as usize],
            excludes: vec![false; blocks],
            excluded: 0,
        };
        (0..groups * GROUP_BLOCKS).filter(|block| is_in_head(*block)).for_each(|block| space.reserve(block));
        if excludes {
            space.exclude(tracks);
        }
        space
    }

    /// Excludes blocks on two tracks: free ones immediately, others when they are released.
    pub(super) fn exclude(&mut self, tracks: &TrackList) {
        for block in 0..self.free.len() as u32 {
            if is_in_head(block) || self.excludes[block as usize] || !tracks.split(block) {
                continue;
            }
            self.excludes[block as usize] = true;
            if self.is_free(block) {
                self.excluded += 1;
                self.reserve(block);
            }
        }
    }

    /// Blocks that hold no data because they span two tracks.
    pub(super) fn excluded(&self) -> u32 {
        self.excluded
    }

    pub(super) fn groups(&self) -> u32 {
        self.left.len() as u32
    }

    pub(super) fn left_in(&self, group: u32) -> u32 {
        self.left[group as usize]
    }

    pub(super) fn mean_left(&self) -> u32 {
        let sum: u64 = self.left.iter().map(|left| u64::from(*left)).sum();
        (sum / (self.left.len() as u64).max(1)) as u32
    }

    /// Whether a block is free; one that the partition does not have is not.
    pub(super) fn is_free(&self, block: u32) -> bool {
        self.free.get(block as usize).copied().unwrap_or(false)
    }

    /// Free blocks in a row from a block on, within its group; no more than `most` are counted.
    pub(super) fn run_at(&self, block: u32, most: u32) -> u32 {
        let end = (block / GROUP_BLOCKS + 1) * GROUP_BLOCKS;
        let limit = most.min(end - block);
        (0..limit).find(|index| !self.is_free(block + index)).unwrap_or(limit)
    }

    pub(super) fn reserve(&mut self, block: u32) {
        assert!(self.is_free(block), "block {block} is given to one owner");
        self.free[block as usize] = false;
        self.left[(block / GROUP_BLOCKS) as usize] -= 1;
    }

    pub(super) fn release(&mut self, block: u32) {
        assert!(!self.is_free(block), "block {block} has an owner");
        if self.excludes[block as usize] {
            self.excluded += 1;
            return;
        }
        self.free[block as usize] = true;
        self.left[(block / GROUP_BLOCKS) as usize] += 1;
    }
}

fn is_in_head(block: u32) -> bool {
    block % GROUP_BLOCKS < GROUP_HEAD_BLOCKS
}
