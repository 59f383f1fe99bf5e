//! *Where does an ext4 keep what it holds?* Superblock, group descriptors, block bitmaps, inodes and extent trees.
#![doc = include_str!("../README.md")]

mod bytes;
mod error;
mod filesystem;
mod hold;
mod inodes;
mod shape;
mod superblock;

pub use error::FormatError;
pub use filesystem::Filesystem;
pub use hold::{Held, free_blocks, hold};
pub use inodes::{Inode, InodeKind, each_inode};
pub use shape::Shape;
pub use superblock::{State, erase_head, put_state};
