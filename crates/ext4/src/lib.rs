//! *Where does an ext4 keep what it holds?* Superblock, group descriptors, block bitmaps, inodes and extent trees.
#![doc = include_str!("../README.md")]

mod bytes;
mod filesystem;
mod hold;
mod inodes;
mod shape;
mod superblock;

pub use filesystem::Filesystem;
pub use hold::{Held, free_blocks, hold};
pub use inodes::{Inode, InodeKind, each_inode};
pub use shape::Shape;
pub use superblock::{State, erase_head, put_state};

use std::io;

/// Why an image was refused or could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file system needs an unsupported feature.
    #[error("the file system has features that are not supported here ({0})")]
    Feature(String),
    /// The marker of [`hold`] is still set: an earlier run did not finish.
    #[error("the file system is incomplete: the run that wrote it was interrupted; make it again")]
    Unfinished,
    /// The journal holds blocks that are not written in place yet.
    #[error("the journal was not replayed: mount and unmount the file system, or run e2fsck on it")]
    Journal,
    /// A field has a value that mke2fs does not write.
    #[error("{0} is not as mke2fs makes it")]
    Malformed(String),
    /// There are too few free blocks for the extent tree.
    #[error("no room is left for the file that holds the blocks")]
    NoRoom,
    /// Reading or writing failed.
    #[error("{0}")]
    File(io::Error),
}
