//! Personalities: the requests of a file system or a server to its disk, for the requests of its users.

pub mod benchmarks;
pub mod ext2;
pub mod ffs;
pub mod lfs;
pub mod s5fs;
pub mod video;
