//! Where the parts of the file system lie.

use super::INODE_BYTES;
use std::ops::Range;
use thiserror::Error;

/// Bytes of a group's descriptor.
const DESCRIPTOR_BYTES: u64 = 32;

/// Data blocks that the last group must have, or it is left out. *Source:* mke2fs.
const LAST_GROUP_BLOCKS: u64 = 50;

/// Most blocks or inodes of a group: their counts have 16 bits. *Source:* `ext2_fs.h`.
const GROUP_MOST: u64 = (1 << 16) - 8;

/// Most blocks of a file system; block numbers have 32 bits here as on disk.
const BLOCKS_MOST: u64 = 1 << 31;

/// Inodes that exist before the first file, and the one of `lost+found`.
const FIRST_INODES: u64 = 11;

/// The parameters of mke2fs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ext2Shape {
    /// 1,024, 2,048, 4,096 or 8,192.
    pub block_bytes: u32,
    /// Blocks of the partition.
    pub blocks: u64,
    /// Bytes of the partition for each inode.
    pub bytes_per_inode: u32,
    /// Share of the blocks that only root may use, in percent.
    pub reserved_percent: u32,
}

/// Why a file system cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Ext2ShapeError {
    /// The size of a block.
    #[error("block size: {0} is not 1024, 2048, 4096 or 8192 bytes")]
    BlockBytes(u32),
    /// The share of inodes.
    #[error("bytes per inode: {0} is outside 1024 (and the block size) to 4194304")]
    BytesPerInode(u32),
    /// The reserved share.
    #[error("reserved share: {0} % is outside 0 to 50")]
    Reserved(u32),
    /// The number of blocks.
    #[error(
        "size: {0} blocks do not hold an ext2 (at least its tables and 64 blocks of data, at most 2147483648 blocks)"
    )]
    Blocks(u64),
}

/// The layout of a file system: that of `mke2fs -r 0`. Where a last group is left out and the groups then have to become smaller to hold
/// all inodes, mke2fs reserves about 1 % fewer blocks for root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ext2Geometry {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks in use, which may be fewer than the partition has.
    pub blocks: u32,
    /// The first group's first block: 1 with blocks of 1,024 bytes, whose block 0 is the boot block, else 0.
    pub first_block: u32,
    /// Number of groups.
    pub groups: u32,
    /// Blocks of a group; the last one may have fewer.
    pub blocks_per_group: u32,
    /// Inodes of a group.
    pub inodes_per_group: u32,
    /// Blocks of a group's inode table.
    pub inode_blocks: u32,
    /// Blocks of a copy of the group descriptors.
    pub descriptor_blocks: u32,
    /// Blocks that only root may use.
    pub reserved_blocks: u32,
}

impl Ext2Shape {
    /// The layout that mke2fs gives the file system.
    ///
    /// *Errors:* a parameter is out of range, or there are too few blocks.
    pub fn geometry(self) -> Result<Ext2Geometry, Ext2ShapeError> {
        let Ext2Shape { block_bytes, bytes_per_inode, reserved_percent, .. } = self;
        if ![1024, 2048, 4096, 8192].contains(&block_bytes) {
            return Err(Ext2ShapeError::BlockBytes(block_bytes));
        }
        if !(block_bytes.max(1024)..=1 << 22).contains(&bytes_per_inode) {
            return Err(Ext2ShapeError::BytesPerInode(bytes_per_inode));
        }
        if reserved_percent > 50 {
            return Err(Ext2ShapeError::Reserved(reserved_percent));
        }
        let too_few = Ext2ShapeError::Blocks(self.blocks);
        if !(64..=BLOCKS_MOST).contains(&self.blocks) {
            return Err(too_few);
        }
        let inodes = self.blocks * u64::from(block_bytes) / u64::from(bytes_per_inode);
        let (mut blocks, mut inodes) = (self.blocks, inodes.max(FIRST_INODES + 1));
        let mut per_group = (8 * u64::from(block_bytes)).min(GROUP_MOST);
        loop {
            let groups = (blocks - self.first_block()).div_ceil(per_group);
            if inodes.div_ceil(groups) > 8 * u64::from(block_bytes) {
                // A bitmap holds no more inodes, so there must be more groups.
                (per_group, blocks) = (per_group - 8, self.blocks);
                continue;
            }
            let (geometry, last) = self.divided(blocks, inodes, per_group);
            if last >= LAST_GROUP_BLOCKS {
                return Ok(geometry);
            }
            if geometry.groups == 1 {
                return Err(too_few);
            }
            blocks = self.first_block() + u64::from(geometry.groups - 1) * per_group;
            inodes = u64::from(geometry.inodes());
        }
    }

    /// The first group's first block.
    fn first_block(self) -> u64 {
        u64::from(self.block_bytes == 1024)
    }

    /// The layout over this number of blocks, and the data blocks of the last group.
    fn divided(self, blocks: u64, inodes: u64, per_group: u64) -> (Ext2Geometry, u64) {
        let (block_bytes, first) = (u64::from(self.block_bytes), self.first_block());
        let groups = (blocks - first).div_ceil(per_group);
        let descriptors = groups.div_ceil(block_bytes / DESCRIPTOR_BYTES);
        let per_block = block_bytes / u64::from(INODE_BYTES);
        // The table is filled to its last block, and its count to a multiple of 8.
        let inodes = inodes.div_ceil(groups).min(GROUP_MOST).div_ceil(per_block) * per_block / 8 * 8;
        let inode_blocks = inodes.div_ceil(per_block);
        let last = (blocks - first) - (groups - 1) * per_group;
        let reserved = blocks * u64::from(self.reserved_percent) / 100;
        let geometry = Ext2Geometry {
            block_bytes: self.block_bytes,
            blocks: blocks as u32,
            first_block: first as u32,
            groups: groups as u32,
            blocks_per_group: per_group as u32,
            inodes_per_group: inodes as u32,
            inode_blocks: inode_blocks as u32,
            descriptor_blocks: descriptors as u32,
            reserved_blocks: reserved as u32,
        };
        (geometry, last.saturating_sub(3 + descriptors + inode_blocks))
    }
}

impl Ext2Geometry {
    /// The blocks of a group.
    pub fn group(&self, group: u32) -> Range<u32> {
        let start = self.first_block + group * self.blocks_per_group;
        start..self.blocks.min(start.saturating_add(self.blocks_per_group))
    }

    /// The group of a block.
    pub fn group_of(&self, block: u32) -> u32 {
        (block - self.first_block) / self.blocks_per_group
    }

    /// The superblock, or its copy, of a group.
    pub fn superblock(&self, group: u32) -> u32 {
        self.group(group).start
    }

    /// The block of the first copy of the descriptors that has the one of `group`; Linux writes no other copy.
    pub fn descriptor(&self, group: u32) -> u32 {
        self.first_block + 1 + group / (self.block_bytes / DESCRIPTOR_BYTES as u32)
    }

    /// The bitmap of a group's blocks.
    pub fn block_bitmap(&self, group: u32) -> u32 {
        self.group(group).start + 1 + self.descriptor_blocks
    }

    /// The bitmap of a group's inodes.
    pub fn inode_bitmap(&self, group: u32) -> u32 {
        self.block_bitmap(group) + 1
    }

    /// The inode table of a group.
    pub fn inode_table(&self, group: u32) -> Range<u32> {
        let start = self.inode_bitmap(group) + 1;
        start..start + self.inode_blocks
    }

    /// The first block of a group that holds data.
    pub fn first_data(&self, group: u32) -> u32 {
        self.inode_table(group).end
    }

    /// Inodes of the whole file system.
    pub fn inodes(&self) -> u32 {
        self.inodes_per_group * self.groups
    }

    /// The block that holds an inode; inodes are numbered from 1.
    pub fn inode_block(&self, inode: u32) -> u32 {
        let (group, index) = ((inode - 1) / self.inodes_per_group, (inode - 1) % self.inodes_per_group);
        self.inode_table(group).start + index / (self.block_bytes / INODE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_system_of_the_studys_figure_8_has_its_numbers() {
        let shape =
            Ext2Shape { block_bytes: 1024, blocks: 102_816, bytes_per_inode: 4096, reserved_percent: 5 };
        let it = shape.geometry().expect("the shape is good");
        assert_eq!((it.inodes(), it.blocks, it.reserved_blocks), (25_792, 102_816, 5_140));
        assert_eq!((it.first_block, it.blocks_per_group, it.groups), (1, 8192, 13));
        assert_eq!((it.inodes_per_group, it.inode_blocks), (1984, 248));
    }

    #[test]
    fn bad_parameters_are_refused() {
        let good =
            Ext2Shape { block_bytes: 1024, blocks: 102_816, bytes_per_inode: 4096, reserved_percent: 5 };
        let faults = [
            (Ext2Shape { block_bytes: 512, ..good }, Ext2ShapeError::BlockBytes(512)),
            (Ext2Shape { bytes_per_inode: 512, ..good }, Ext2ShapeError::BytesPerInode(512)),
            (Ext2Shape { reserved_percent: 51, ..good }, Ext2ShapeError::Reserved(51)),
            (Ext2Shape { blocks: 63, ..good }, Ext2ShapeError::Blocks(63)),
            (Ext2Shape { blocks: u64::MAX, ..good }, Ext2ShapeError::Blocks(u64::MAX)),
        ];
        for (shape, fault) in faults {
            assert_eq!(shape.geometry(), Err(fault));
        }
    }
}
