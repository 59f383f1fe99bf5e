//! The file system of System V: all inodes in one array at the start, and a list of free blocks that ages.
//!
//! Modelled: boot block, superblock, array of inodes and data; 10 direct pointers, then a single, a double and a triple indirect one; the
//! list of free blocks, in the order of their numbers on a new file system. A file gets the first block of the list, and the blocks of a
//! deleted file come to its front, so that the list and then the files lose their order. Not modelled: directories, the blocks that
//! hold the list, and the interleave of a new list.
//!
//! *Source:* M. J. Bach, "The design of the UNIX operating system" (1986), chapters 4 and 5; R. S. Gray's thesis of 2000, chapter 3, where
//! it is the contrast to ext2.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of an inode.
const INODE_BYTES: u32 = 64;

/// Blocks that an inode points to itself.
const DIRECT_POINTERS: u64 = 10;

/// Bytes of a pointer.
const POINTER_BYTES: u32 = 4;

/// Blocks before the inodes: boot block and superblock.
const FIRST_INODES: u32 = 2;

#[derive(Clone, Debug, Default)]
struct S5File {
    inode: u32,
    blocks: Vec<u32>,
    pointers: Vec<u32>,
}

/// A file system with its files.
#[derive(Clone, Debug)]
pub struct S5Volume {
    block_bytes: u32,
    inode_blocks: u32,
    /// Free blocks, the front of the list last.
    free: Vec<u32>,
    /// Free inodes counted from 0, the next one last.
    free_inodes: Vec<u32>,
    files: BTreeMap<u32, S5File>,
}

impl S5Volume {
    /// A new file system of this number of blocks, with room for `inodes` files.
    ///
    /// Panics unless at least one block is left for data.
    pub fn new(block_bytes: u32, blocks: u32, inodes: u32) -> S5Volume {
        let inode_blocks = inodes.div_ceil(block_bytes / INODE_BYTES);
        assert!(FIRST_INODES + inode_blocks < blocks, "{blocks} blocks hold {inodes} inodes");
        S5Volume {
            block_bytes,
            inode_blocks,
            free: (FIRST_INODES + inode_blocks..blocks).rev().collect(),
            free_inodes: (0..inodes).rev().collect(),
            files: BTreeMap::new(),
        }
    }

    /// The blocks of the array of inodes.
    pub fn inode_table(&self) -> Range<u32> {
        FIRST_INODES..FIRST_INODES + self.inode_blocks
    }

    /// Free blocks.
    pub fn free_blocks(&self) -> u32 {
        self.free.len() as u32
    }

    /// Creates a file of this many bytes; false, and nothing created, if no inode or too few blocks are free. No file of this number may
    /// exist.
    pub fn create(&mut self, file: u32, bytes: u64) -> bool {
        assert!(!self.files.contains_key(&file), "a file is made once");
        let blocks = bytes.div_ceil(u64::from(self.block_bytes));
        let needed = blocks + (0..blocks).map(|index| self.new_pointers(index)).sum::<u64>();
        if needed > self.free.len() as u64 {
            return false;
        }
        let Some(inode) = self.free_inodes.pop() else { return false };
        let mut made = S5File { inode, ..S5File::default() };
        for index in 0..blocks {
            (0..self.new_pointers(index)).for_each(|_| made.pointers.extend(self.free.pop()));
            made.blocks.extend(self.free.pop());
        }
        self.files.insert(file, made);
        true
    }

    /// The number of blocks of pointers that the file needs for this block and did not need before it.
    fn new_pointers(&self, index: u64) -> u64 {
        let pointers = u64::from(self.block_bytes / POINTER_BYTES);
        let Some(single) = index.checked_sub(DIRECT_POINTERS) else { return 0 };
        let Some(double) = single.checked_sub(pointers) else { return u64::from(single == 0) };
        let leaf = |rest: u64| u64::from(rest.is_multiple_of(pointers));
        match double.checked_sub(pointers * pointers) {
            None => leaf(double) + u64::from(double == 0),
            Some(triple) => {
                leaf(triple) + u64::from(triple.is_multiple_of(pointers * pointers)) + u64::from(triple == 0)
            }
        }
    }

    /// Deletes a file: its blocks go to the front of the list, the last one first.
    pub fn delete(&mut self, file: u32) {
        let Some(gone) = self.files.remove(&file) else { return };
        self.free.extend(gone.pointers);
        self.free.extend(gone.blocks);
        self.free_inodes.push(gone.inode);
    }

    /// The data blocks of a file, in order; none if there is no such file.
    pub fn blocks_of(&self, file: u32) -> &[u32] {
        self.files.get(&file).map_or(&[], |file| &file.blocks)
    }

    /// The block with a file's inode; none if there is no such file.
    pub fn inode_block_of(&self, file: u32) -> Option<u32> {
        let per_block = self.block_bytes / INODE_BYTES;
        self.files.get(&file).map(|file| FIRST_INODES + file.inode / per_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn new_files_lie_one_after_the_other_far_from_their_inodes() {
        let mut volume = S5Volume::new(1024, 2000, 160);
        assert_eq!(volume.inode_table(), 2..12);
        assert!(volume.create(0, 3000) && volume.create(1, 1024));
        assert_eq!(volume.blocks_of(0), [12, 13, 14]);
        assert_eq!(volume.blocks_of(1), [15]);
        assert_eq!(volume.inode_block_of(1), Some(2));
    }

    #[test]
    fn file_has_a_block_of_pointers_after_its_tenth_block() {
        let mut volume = S5Volume::new(1024, 2000, 160);
        volume.create(0, 11 * 1024);
        assert_eq!(volume.blocks_of(0)[9..], [21, 23], "block 22 holds pointers");
        // A double indirect block and its first leaf after 10 and 256 blocks.
        let needed = |blocks| (0..blocks).map(|index| volume.new_pointers(index)).sum::<u64>();
        assert_eq!([10, 11, 266, 267, 522, 523].map(needed), [0, 1, 1, 3, 3, 4]);
        let (double, triple) = (256 * 256, 256 * 256 * 256);
        assert_eq!(needed(266 + double), 2 + 256);
        assert_eq!(volume.new_pointers(266 + double), 3);
        assert_eq!(volume.new_pointers(266 + double + triple / 256), 2);
    }

    #[test]
    fn next_file_gets_the_blocks_of_the_last_deleted_one_backward() {
        let mut volume = S5Volume::new(1024, 2000, 160);
        (0..4).for_each(|file| _ = volume.create(file, 3000));
        volume.delete(1);
        volume.create(9, 2048);
        assert_eq!(volume.blocks_of(9), [17, 16]);
        assert_eq!(volume.inode_block_of(9), Some(2), "the inode is used again");
    }

    #[test]
    fn each_block_has_one_owner_and_is_free_after_deletion() {
        let mut volume = S5Volume::new(1024, 3000, 160);
        let free = volume.free_blocks();
        for round in 0..200u32 {
            volume.delete(round % 17);
            volume.create(round % 17, u64::from(round * 7919 % 300_000));
            let mut owned: Vec<u32> = volume.free.clone();
            owned.extend(volume.files.values().flat_map(|file| file.blocks.iter().chain(&file.pointers)));
            let distinct: BTreeSet<u32> = owned.iter().copied().collect();
            assert_eq!((distinct.len(), owned.len()), (free as usize, free as usize));
        }
        (0..17).for_each(|file| volume.delete(file));
        assert_eq!(volume.free_blocks(), free);
    }

    #[test]
    fn full_volume_makes_no_file() {
        let mut volume = S5Volume::new(1024, 100, 16);
        let free = volume.free_blocks();
        assert!(!volume.create(0, u64::from(free) * 1024), "the pointers have no room");
        assert_eq!(volume.free_blocks(), free);
        (0..16).for_each(|file| assert!(volume.create(file, 1)));
        assert!(!volume.create(16, 1), "no inode is left");
    }
}
