//! ext4 whose data stay within tracks: made by mke2fs, with the blocks at track boundaries excluded from the start.
//!
//! There are two methods. The list of bad blocks (`mke2fs -l`) is the standard one: no file and no table ever lies on such a
//! block. It holds 524,287 blocks of 4 KiB, supports less than 2³² blocks, and costs inodes where tracks are shorter than the
//! tables. A hidden file has no such limit, but tables that mke2fs has laid on listed blocks stay there.
//!
//! Everything that can fail is checked first, with mke2fs in a sparse file, so that a refusal leaves the disk as it was.

mod dry_run;
pub mod inodes;
mod make;
mod method;
pub mod online;
mod options;
mod plan;
mod target;
mod tools;

pub use make::{Made, make};
pub use method::Reason;
pub use plan::{DryRunSkipped, ExclusionMethod, Plan};
pub(crate) use target::content;
pub use target::{Place, check};

use crate::sysfs::LocationError;
use headstack_ext4::FormatError;
use headstack_tracks::exclude::OddBlock;
use std::io;
use std::path::PathBuf;

/// The file that holds excluded blocks, in the root of its file system.
pub const HIDDEN_FILE: &str = ".headstack-excluded";

/// Why no file system is made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Ext4Error {
    /// The target cannot be opened or inspected.
    #[error("{}: {error}", path.display())]
    Target { path: PathBuf, error: io::Error },
    /// The target is in use.
    #[error("{} is in use ({by})", path.display())]
    InUse { path: PathBuf, by: String },
    /// The target is not the disk of the map, or not that part of it.
    #[error("{}: {why}", path.display())]
    OtherDisk { path: PathBuf, why: String },
    /// The location of the target on the disk of the map is unknown, or it is on another disk.
    #[error("{}: {error}", path.display())]
    LocationError { path: PathBuf, error: LocationError },
    /// The target is not empty.
    #[error("{} holds {what}: --force makes a file system there all the same", path.display())]
    NotEmpty { path: PathBuf, what: String },
    /// The block size is no multiple of the sector size.
    #[error("{0}")]
    OddBlock(#[from] OddBlock),
    /// A block size that ext4 does not support.
    #[error("blocks of {0} bytes: ext4 has blocks of 1024, 2048 or 4096 bytes")]
    BlockSize(u64),
    /// Too many excluded blocks for the list of bad blocks.
    #[error(
        "{excluded} blocks to leave out: a list of bad blocks holds {most}; --method hidden-file holds any number"
    )]
    TooMany { excluded: u64, most: u64 },
    /// Too many blocks for the list of bad blocks.
    #[error(
        "{blocks} blocks: a list of bad blocks is for less than 2^32; --method hidden-file is for any number"
    )]
    TooLarge { blocks: u64 },
    /// An option that this module sets itself.
    #[error("the option {0} of mke2fs is not allowed: the map and the options before -- set what it sets")]
    Option(String),
    /// An option that affects more than the file system, or breaks what this module ensures.
    #[error("the option {option} of mke2fs is not allowed: {why}")]
    HarmfulOption { option: String, why: &'static str },
    /// What is on the disk is no supported ext4, or is incomplete.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A program that is not installed.
    #[error("{0} is not here (package e2fsprogs; blkid: util-linux)")]
    Missing(&'static str),
    /// No temporary file for the dry run.
    #[error("{}: no sparse file for a dry run: {error}", folder.display())]
    ScratchFile { folder: PathBuf, error: io::Error },
    /// A program that failed before the disk was touched.
    #[error("{program} cannot make this file system (dry run in a sparse file): {said}")]
    DryRun { program: &'static str, said: String },
    /// The user cancelled.
    #[error("it was interrupted")]
    Interrupted,
    /// What e2fsck found wrong before the disk was touched.
    #[error("e2fsck finds errors in this file system (dry run in a sparse file): {0}")]
    Unclean(String),
    /// A failure after the disk was touched.
    #[error("what is on the disk now is no good, make the file system again: {0}")]
    Spoiled(Box<Ext4Error>),
    /// A program that failed.
    #[error("{program} failed: {said}")]
    Failed { program: &'static str, said: String },
    /// Reading or writing failed.
    #[error("{0}")]
    File(io::Error),
}
