//! Sizes of a file system, its groups and inodes, from the superblock.
//!
//! *Source:* the kernel's description of the format, Documentation/filesystems/ext4: offsets of fields, and which groups have
//! copies of the superblock.

use crate::bytes::{checksum, read_u16, read_u32};
use crate::error::FormatError;
use crate::superblock::{INCOMPATIBLE, METADATA_CHECKSUMS, READ_ONLY, UNFINISHED};

const MAGIC: u16 = 0xEF53;
/// `INCOMPAT_EXTENTS`, `INCOMPAT_64BIT`, `INCOMPAT_CSUM_SEED` and `INCOMPAT_RECOVER`.
const EXTENTS: u32 = 0x40;
const BITS64: u32 = 0x80;
const CHECKSUM_SEED: u32 = 0x2000;
const NEEDS_RECOVERY: u32 = 0x4;
/// `RO_COMPAT_SPARSE_SUPER`.
const SPARSE_SUPERBLOCKS: u32 = 0x1;
const COMPATIBLE: usize = 0x5C;
/// Maximum logarithm of the block size over 1 KiB: 64 KiB.
const LARGEST_BLOCK_LOG: u32 = 6;
/// Supported features, or features without effect here. Unsupported: clusters of blocks (bigalloc), descriptors in other places
/// (`meta_bg`), only two copies of the superblock (`sparse_super2`), checksums of descriptors alone (`uninit_bg`), quotas, data
/// in inodes.
const SUPPORTED: [(&str, usize, u32); 3] = [
    ("compatible", COMPATIBLE, 0x1C3F),
    ("incompatible", INCOMPATIBLE, 0x366C2),
    ("read-only", READ_ONLY, 0x1A46F),
];

/// Sizes and counts of a file system, and the layout of its block groups.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Shape {
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// First block of the first group: 1 for blocks of 1 KiB, else 0.
    pub first_block: u64,
    pub group_blocks: u64,
    pub group_inodes: u64,
    /// Bytes of an inode.
    pub inode_bytes: u64,
    pub inodes: u64,
    /// Bytes of a group's descriptor.
    pub descriptor_bytes: u64,
    /// Whether files may have extents.
    pub has_extents: bool,
    /// Blocks after each copy of the descriptors that are reserved for growth.
    pub(crate) reserved_descriptors: u64,
    /// Seed of the metadata checksums; none if there are none.
    pub(crate) seed: Option<u32>,
    /// Whether only groups 0, 1 and powers of 3, 5 and 7 have copies of the superblock.
    is_sparse: bool,
}

impl Shape {
    /// Parses the 1,024 bytes of a superblock.
    ///
    /// *Errors:* it is no ext4's, is unfinished, needs recovery, or has an unsupported feature.
    pub(crate) fn new(superblock: &[u8]) -> Result<Shape, FormatError> {
        let word = |offset| u64::from(read_u32(superblock, offset));
        let malformed = || FormatError::Malformed("the superblock".to_string());
        let block_log = read_u32(superblock, 0x18);
        if read_u16(superblock, 0x38) != MAGIC
            || block_log > LARGEST_BLOCK_LOG
            || word(0x20) == 0
            || word(0x28) == 0
        {
            return Err(malformed());
        }
        check_features(superblock)?;
        let incompatible = read_u32(superblock, INCOMPATIBLE);
        let read_only = read_u32(superblock, READ_ONLY);
        let is_wide = incompatible & BITS64 != 0;
        let own_seed = checksum(!0, &superblock[0x68..0x78]);
        let seed = if incompatible & CHECKSUM_SEED != 0 { read_u32(superblock, 0x270) } else { own_seed };
        let shape = Shape {
            blocks: word(0x4) | if is_wide { word(0x150) << 32 } else { 0 },
            block_bytes: 1024 << block_log,
            first_block: word(0x14),
            group_blocks: word(0x20),
            group_inodes: word(0x28),
            inode_bytes: u64::from(read_u16(superblock, 0x58)),
            inodes: word(0),
            descriptor_bytes: if is_wide { u64::from(read_u16(superblock, 0xFE)) } else { 32 },
            has_extents: incompatible & EXTENTS != 0,
            reserved_descriptors: u64::from(read_u16(superblock, 0xCE)),
            seed: (read_only & METADATA_CHECKSUMS != 0).then_some(seed),
            is_sparse: read_only & SPARSE_SUPERBLOCKS != 0,
        };
        if shape.is_consistent() { Ok(shape) } else { Err(malformed()) }
    }

    fn is_consistent(&self) -> bool {
        (32..=self.block_bytes).contains(&self.descriptor_bytes)
            && (128..=self.block_bytes).contains(&self.inode_bytes)
            && self.group_blocks <= 8 * self.block_bytes
            && self.group_inodes <= 8 * self.block_bytes
            && self.blocks > self.first_block
    }

    /// The same file system on a disk of `blocks` blocks.
    #[must_use]
    pub fn with_blocks(&self, blocks: u64) -> Shape {
        Shape { blocks, ..self.clone() }
    }

    /// The number of groups.
    pub fn groups(&self) -> u64 {
        (self.blocks - self.first_block).div_ceil(self.group_blocks)
    }

    /// The group that holds a block.
    pub fn group_of(&self, block: u64) -> u64 {
        block.saturating_sub(self.first_block) / self.group_blocks
    }

    /// First block of a group.
    pub fn group_start(&self, group: u64) -> u64 {
        self.first_block + group * self.group_blocks
    }

    /// Blocks of a group; the last group has fewer.
    pub fn blocks_in(&self, group: u64) -> u64 {
        self.group_blocks.min(self.blocks - self.group_start(group))
    }

    /// Blocks of a copy of the superblock with its descriptors.
    pub fn head_blocks(&self) -> u64 {
        1 + (self.groups() * self.descriptor_bytes).div_ceil(self.block_bytes)
    }

    /// Blocks of a group's inode table.
    pub fn inode_table_blocks(&self) -> u64 {
        (self.group_inodes * self.inode_bytes).div_ceil(self.block_bytes)
    }

    /// Whether a group has a copy of the superblock.
    pub fn has_superblock(&self, group: u64) -> bool {
        let is_power = |base: u64| {
            std::iter::successors(Some(base), |power| power.checked_mul(base))
                .take_while(|power| *power <= group)
                .any(|power| power == group)
        };
        !self.is_sparse || group <= 1 || [3, 5, 7].into_iter().any(is_power)
    }
}

fn check_features(superblock: &[u8]) -> Result<(), FormatError> {
    let incompatible = read_u32(superblock, INCOMPATIBLE);
    if incompatible & UNFINISHED != 0 {
        return Err(FormatError::Unfinished);
    }
    if incompatible & NEEDS_RECOVERY != 0 {
        return Err(FormatError::Journal);
    }
    for (kind, offset, supported) in SUPPORTED {
        let unknown = read_u32(superblock, offset) & !supported;
        if unknown != 0 {
            return Err(FormatError::Feature(format!("{kind} {unknown:#x}")));
        }
    }
    Ok(())
}
