//! Personalities: what a file system or a server asks of its disk, for what its users ask of it.

pub mod ffs;
pub mod lfs;
pub mod video;
