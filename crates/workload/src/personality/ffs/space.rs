//! Which blocks are free.

use super::{GROUP_BLOCKS, GROUP_HEAD_BLOCKS, TrackList};

#[derive(Clone, Debug)]
pub(super) struct Space {
    free: Vec<bool>,
    left: Vec<u32>,
    excluded: u32,
}

impl Space {
    /// All blocks of a partition except the heads of groups and, with `excludes`, blocks on two tracks. Blocks after the last
    /// whole group are not used.
    pub(super) fn new(tracks: &TrackList, excludes: bool) -> Space {
        let groups = (tracks.sectors() / super::sector_of(GROUP_BLOCKS)) as u32;
        let mut space = Space { free: Vec::new(), left: vec![GROUP_BLOCKS; groups as usize], excluded: 0 };
        space.free = vec![true; (groups * GROUP_BLOCKS) as usize];
        for block in 0..groups * GROUP_BLOCKS {
            let in_head = block % GROUP_BLOCKS < GROUP_HEAD_BLOCKS;
            let is_excluded = !in_head && excludes && tracks.split(block);
            space.excluded += u32::from(is_excluded);
            if in_head || is_excluded {
                space.reserve(block);
            }
        }
        space
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
        self.free[block as usize] = true;
        self.left[(block / GROUP_BLOCKS) as usize] += 1;
    }
}
