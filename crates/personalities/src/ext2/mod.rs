//! A file system of the kind of Linux's ext2, as Linux 2.2 allocates in it.
//!
//! Modelled: groups with a copy of the superblock and of all group descriptors, a bitmap of blocks and one of inodes, an inode
//! table and data; 12 direct pointers, a single, a double and a triple indirect one; directories of entries with a length of their
//! own, searched from the start; a new file in its directory's group, a new directory in a group with more free inodes than the
//! mean; a goal for each block, and preallocation of 8 blocks for a file that grows. [`Ext2Session`] runs programs over it: data go
//! through the page cache of the rig's host, which delays their writes; metadata stay in memory once they were read or made, and
//! are written 5 s after their change.
//! [`FileServer`] serves whole files from one whose hot files are moved to the middle of the disk.
//!
//! Not modelled: holes in files, links, users and permissions, blocks reserved for root (programs run as root), the eviction of metadata,
//! and dropping the unwritten data of a deleted file, which the page cache still writes.
//!
//! *Source:* R. S. Gray, "A study of disk performance optimization" (thesis, 2000), chapter 3, for structure and sizes; R. Card, T.
//! Ts'o, S. Tweedie, "Design and implementation of the second extended filesystem" (1994), and Linux 2.2 (`fs/ext2`, the behaviour), for
//! allocation; mke2fs for the layout.

mod allocate;
mod calls;
mod directory;
mod file;
mod geometry;
mod hot_files;
mod metadata;
mod server;
mod server_cache;
mod server_shape;
mod session;
mod space;

pub use allocate::{Ext2Error, Ext2Volume};
pub use calls::{BenchmarkPhase, FileCall, FileWorkCosts, ProcessCalls};
pub use file::PointerBlock;
pub use geometry::{Ext2Geometry, Ext2Shape, Ext2ShapeError};
pub use hot_files::{FileTemperatures, RelocatedFile};
pub use server::{FileServer, RelocationRecord};
pub use server_shape::{FileServerError, FileServerShape};
pub use session::Ext2Session;

/// Bytes of an inode.
pub const INODE_BYTES: u32 = 128;

/// Blocks that an inode points to itself.
pub const DIRECT_POINTERS: u32 = 12;

/// Blocks that a growing file gets at a time, with the one that it needs. *Source:* Linux 2.2, `EXT2_DEFAULT_PREALLOC_BLOCKS`.
pub const PREALLOCATED_BLOCKS: u32 = 8;
