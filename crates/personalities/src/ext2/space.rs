//! Free blocks and inodes.

use super::geometry::Ext2Geometry;

/// Blocks of a byte of the bitmap, for which the allocator searches as a whole.
const BYTE: u32 = 8;

/// Blocks after the goal that are searched one by one, up to a multiple of this number. *Source:* Linux 2.2, `ext2_new_block`.
const NEAR: u32 = 64;

/// The bitmaps of all groups.
#[derive(Clone, Debug)]
pub(super) struct Ext2Space {
    geometry: Ext2Geometry,
    /// A bit for each block from the first group's start on; a group's bits begin with a byte.
    used: Vec<u8>,
    free_blocks: Vec<u32>,
    /// Inodes in use, a list of free numbers below the next new one for each group.
    inodes: Vec<InodeCounts>,
}

#[derive(Clone, Debug, Default)]
struct InodeCounts {
    free: u32,
    next: u32,
    returned: Vec<u32>,
}

impl Ext2Space {
    /// The space of a file system whose groups have only their tables.
    pub(super) fn new(geometry: Ext2Geometry) -> Ext2Space {
        let bits = geometry.groups as usize * geometry.blocks_per_group as usize;
        let inodes = InodeCounts { free: geometry.inodes_per_group, next: 0, returned: Vec::new() };
        let mut space = Ext2Space {
            geometry,
            used: vec![0; bits / BYTE as usize],
            free_blocks: (0..geometry.groups).map(|group| geometry.group(group).len() as u32).collect(),
            inodes: vec![inodes; geometry.groups as usize],
        };
        for group in 0..geometry.groups {
            (geometry.superblock(group)..geometry.first_data(group)).for_each(|block| space.occupy(block));
        }
        space
    }

    pub(super) fn free_blocks(&self, group: u32) -> u32 {
        self.free_blocks[group as usize]
    }

    pub(super) fn free_inodes(&self, group: u32) -> u32 {
        self.inodes[group as usize].free
    }

    pub(super) fn is_free(&self, block: u32) -> bool {
        let bit = block - self.geometry.first_block;
        block < self.geometry.blocks && self.used[(bit / BYTE) as usize] & (1 << (bit % BYTE)) == 0
    }

    pub(super) fn is_same_group(&self, one: u32, other: u32) -> bool {
        self.geometry.group_of(one) == self.geometry.group_of(other)
    }

    pub(super) fn occupy(&mut self, block: u32) {
        assert!(self.is_free(block), "a block is given to one owner");
        let bit = block - self.geometry.first_block;
        self.used[(bit / BYTE) as usize] |= 1 << (bit % BYTE);
        self.free_blocks[self.geometry.group_of(block) as usize] -= 1;
    }

    pub(super) fn release(&mut self, block: u32) {
        assert!(!self.is_free(block), "a block is released once");
        let bit = block - self.geometry.first_block;
        self.used[(bit / BYTE) as usize] &= !(1 << (bit % BYTE));
        self.free_blocks[self.geometry.group_of(block) as usize] += 1;
    }

    /// The free block for a file with this goal: the goal, the next free one near it, the start of eight free ones behind it
    /// in the group, any one behind it, then the same from the start of each following group.
    pub(super) fn find(&self, goal: u32) -> Option<u32> {
        let goal = goal.clamp(self.geometry.first_block, self.geometry.blocks - 1);
        let group = self.geometry.group_of(goal);
        let near = (self.free_blocks(group) > 0).then(|| self.find_from(goal)).flatten();
        let others = (1..=self.geometry.groups).map(|step| (group + step) % self.geometry.groups);
        near.or_else(|| {
            others.filter(|group| self.free_blocks(*group) > 0).find_map(|group| {
                let blocks = self.geometry.group(group);
                self.free_byte(blocks.start, group).or_else(|| self.free_in(blocks.start, blocks.end))
            })
        })
    }

    fn find_from(&self, goal: u32) -> Option<u32> {
        if self.is_free(goal) {
            return Some(goal);
        }
        let blocks = self.geometry.group(self.geometry.group_of(goal));
        let near = (blocks.start + (goal - blocks.start + 1).next_multiple_of(NEAR)).min(blocks.end);
        self.free_in(goal + 1, near)
            .or_else(|| self.free_byte(goal, self.geometry.group_of(goal)))
            .or_else(|| self.free_in(goal + 1, blocks.end))
    }

    fn free_in(&self, from: u32, end: u32) -> Option<u32> {
        (from..end).find(|block| self.is_free(*block))
    }

    /// The start of the free blocks that reach into the first free byte of a group's bitmap at or after `from`.
    fn free_byte(&self, from: u32, group: u32) -> Option<u32> {
        let blocks = self.geometry.group(group);
        let byte_of = |block: u32| ((block - self.geometry.first_block) / BYTE) as usize;
        let byte = (byte_of(from)..byte_of(blocks.end)).find(|byte| self.used[*byte] == 0)?;
        let first = self.geometry.first_block + byte as u32 * BYTE;
        let before = (1..BYTE).take_while(|back| first - back >= blocks.start && self.is_free(first - back));
        Some(first - before.last().unwrap_or(0))
    }

    /// A free inode of a group, numbered from 1.
    pub(super) fn new_inode(&mut self, group: u32) -> Option<u32> {
        let counts = &mut self.inodes[group as usize];
        counts.free = counts.free.checked_sub(1)?;
        let lowest = (0..counts.returned.len()).min_by_key(|index| counts.returned[*index]);
        let index = lowest.map(|index| counts.returned.swap_remove(index)).unwrap_or_else(|| {
            counts.next += 1;
            counts.next - 1
        });
        Some(1 + group * self.geometry.inodes_per_group + index)
    }

    pub(super) fn release_inode(&mut self, inode: u32) {
        let per_group = self.geometry.inodes_per_group;
        let counts = &mut self.inodes[((inode - 1) / per_group) as usize];
        counts.free += 1;
        counts.returned.push((inode - 1) % per_group);
    }
}
