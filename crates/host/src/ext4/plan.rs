//! What file system is to be made, and how.

use headstack_tracks::exclude::Exclusion;
use std::io;
use std::path::{Path, PathBuf};

/// What is to be made.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The image or the device, which [`check`](super::check) found good.
    pub target: &'a Path,
    /// What it leaves out.
    pub exclusion: Exclusion<'a>,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The method; where it is not given, the list of bad blocks if that holds all blocks and costs no inodes, else the hidden file.
    pub method: Option<ExclusionMethod>,
    /// Options of mke2fs.
    pub options: &'a [String],
    /// Told of what is not tried before the disk is touched, when that is known.
    pub tell: &'a dyn Fn(DryRunSkipped),
    /// Whether somebody wants it to end.
    pub is_cancelled: &'a dyn Fn() -> bool,
}

/// What keeps blocks from being used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExclusionMethod {
    /// The list of bad blocks.
    BadBlocks,
    /// A file that holds them.
    HiddenFile,
}

/// A dry run that is skipped.
#[derive(Debug, thiserror::Error)]
pub enum DryRunSkipped {
    /// The dry run of the file system.
    #[error("no dry run of this file system: {} takes no file that long ({error})", folder.display())]
    All {
        /// Where files for a time are.
        folder: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The dry run of the hidden file.
    #[error("no dry run of the hidden file: the disk is larger than 64 GiB")]
    Holding,
}
