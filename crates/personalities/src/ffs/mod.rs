//! A file system of the kind of FreeBSD's FFS, and programs that use it.
//!
//! Modelled: blocks of 8 KB in groups of 32 MB; a map of free blocks; clustered allocation, in which no file gets more than
//! about half of a group before it continues in another; direct blocks, indirect and double indirect ones, which lie before the data they
//! lead to; read-ahead by history; a buffer cache; writes that wait for a cluster to be complete; writes of names and inodes
//! for which the caller waits (the order of writes that FFS keeps without soft updates: an inode before its name, a name before
//! its inode is freed). The four variants differ in their use of the disk's tracks: [`Variant`].
//!
//! Off by default: groups of small files ([`FileGrouping`]); whole traxtents preallocated for growing files, ageing ([`age`]),
//! reorganisation off line and on line, retrofit; blocks that vary in size ([`FittedBlocks`]).
//!
//! A program's calls take processor time where [`CallCosts`] say so. Not modelled: fragments (a file ends in a whole block, of
//! which only the sectors in use are written); access times and maps of groups, which are written rarely; triple indirect blocks;
//! crashes.
//!
//! *Source:* Schindler, Griffin, Lumb and Ganger, "Track-aligned extents" (FAST 2002), section 4.2, for allocation and access; the
//! sources of FreeBSD 4.0 (`ffs_alloc.c`, `ufs_vnops.c`, `vfs_bio.c`) for what the paper takes as known: where indirect blocks lie,
//! which writes are waited for, how much is written at a time.

mod ageing;
mod allocate;
mod buffers;
mod directories;
mod file;
mod file_groups;
mod fitted;
mod grouping;
mod layout;
mod mover;
mod moves;
mod moving;
mod program;
mod programs;
mod read_ahead;
mod reading;
mod reorganize;
mod reserved;
mod running;
mod session;
mod small_files;
mod space;
mod steps;
mod tracks;
mod writing;

pub use ageing::{AgeingPlan, add_files_grown_in_turn, age};
pub use file_groups::{FileGrouping, GroupExtent};
pub use fitted::FittedBlocks;
pub use layout::{Layout, NextGroup};
pub use moves::{MoveBatch, MovedBlock, transfers_of};
pub use program::{Call, Handle};
pub use programs::{Postmark, build, copy, diff, head, scan};
pub use reorganize::reorganize;
pub use session::{CallCosts, Counts, Session};
pub use small_files::{SmallFile, SmallFiles};
pub use tracks::{TrackList, TrackListError};

/// Sectors of a block.
pub const BLOCK_SECTORS: u32 = 16;

/// Bytes of a block.
pub const BLOCK_BYTES: u64 = BLOCK_SECTORS as u64 * 512;

/// Blocks of a group: 32 MB.
pub const GROUP_BLOCKS: u32 = 4096;

/// Blocks at the start of a group that hold no data: the superblock's copy, the group's maps, and 8,192 inodes of 128 B, one for
/// 4 KB, as `newfs` made them.
pub const GROUP_HEAD_BLOCKS: u32 = 2 + INODES * 128 / BLOCK_BYTES as u32;

/// Inodes of a group.
const INODES: u32 = 8192;

/// Inodes in a block.
const INODES_A_BLOCK: u32 = BLOCK_BYTES as u32 / 128;

/// Names in a block of a directory: entries of 16 B.
const NAMES_A_BLOCK: u32 = BLOCK_BYTES as u32 / 16;

/// Blocks that an inode points to itself.
pub const DIRECT_BLOCKS: u32 = 12;

/// Blocks that an indirect block points to.
pub const POINTERS: u32 = (BLOCK_BYTES / 4) as u32;

/// The largest cluster in blocks unless a layout sets another: 256 KB, in one request.
pub const CLUSTER_BLOCKS: u32 = 32;

/// How the file system uses the disk's tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Not at all: the default FFS, whose read-ahead grows with the run of blocks read in order.
    Unmodified,
    /// Not at all, but a file's first access fetches a whole cluster.
    FastStart,
    /// Blocks that span two tracks are excluded, data lie in traxtents, and whole ones are fetched until a session is found not to
    /// be sequential.
    Traxtent,
    /// Blocks that span two tracks hold data of large files. Requests still end at track boundaries, so that a buffer may be valid
    /// or dirty in part. Whole tracks are fetched once a file has been read in order, or at once if most files before it were.
    PartialBlocks,
}

impl Variant {
    /// All variants.
    pub const ALL: [Variant; 4] =
        [Variant::Unmodified, Variant::FastStart, Variant::Traxtent, Variant::PartialBlocks];

    /// The name in tables and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Unmodified => "unmodified",
            Variant::FastStart => "fast-start",
            Variant::Traxtent => "traxtent",
            Variant::PartialBlocks => "partial-blocks",
        }
    }

    /// Whether requests end with the tracks.
    pub fn ends_with_tracks(self) -> bool {
        matches!(self, Variant::Traxtent | Variant::PartialBlocks)
    }

    /// Whether no block that spans two tracks is used.
    pub fn excludes_blocks(self) -> bool {
        self == Variant::Traxtent
    }
}

fn sector_of(block: u32) -> u64 {
    u64::from(block) * u64::from(BLOCK_SECTORS)
}

#[cfg(test)]
mod tests;
