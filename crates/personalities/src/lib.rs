//! *What do programs, file systems and servers request?* Personalities, and the file that describes a load.
#![doc = include_str!("../README.md")]

pub mod benchmarks;
pub mod ext2;
pub mod ffs;
pub mod lfs;
pub mod load_file;
pub mod s5fs;
pub mod video;

pub use load_file::{LoadFile, LoadSpec};
