//! Which file system to make, and how.

use headstack_tracks::exclude::Exclusion;
use std::io;
use std::path::{Path, PathBuf};

/// The file system to make.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The image or device, which [`check`](super::check) accepted.
    pub target: &'a Path,
    /// The excluded blocks.
    pub exclusion: Exclusion<'a>,
    /// Block size in bytes.
    pub block_bytes: u64,
    /// The method. Default: the list of bad blocks if it holds all blocks and costs no inodes, else the hidden file.
    pub method: Option<ExclusionMethod>,
    /// Options of mke2fs.
    pub options: &'a [String],
    /// Called with each dry run that is skipped, before the disk is touched.
    pub tell: &'a dyn Fn(DryRunSkipped),
    /// Whether the user has cancelled.
    pub is_cancelled: &'a dyn Fn() -> bool,
}

/// How blocks are excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExclusionMethod {
    /// The list of bad blocks.
    BadBlocks,
    /// A hidden file that holds them.
    HiddenFile,
}

/// A dry run that is skipped.
#[derive(Debug, thiserror::Error)]
pub enum DryRunSkipped {
    /// The dry run of the file system.
    #[error("no dry run of this file system: {} takes no file that long ({error})", folder.display())]
    All {
        /// The folder of temporary files.
        folder: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The dry run of the hidden file.
    #[error("no dry run of the hidden file: the disk is larger than 64 GiB")]
    Holding,
}
