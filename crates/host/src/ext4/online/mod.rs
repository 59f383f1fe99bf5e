//! Files of a mounted ext4, moved onto tracks without a pause for those that use them.
//!
//! The kernel exchanges blocks of a file with those of a donor (`EXT4_IOC_MOVE_EXT`, the call of e4defrag), and copies the data. The
//! exchange is part of the journal, and the donor has no name: after a `kill -9` at any time each file has its content, and nothing
//! stays behind.
//!
//! What is not moved: folders, the journal and other metadata.
//!
//! *Source:* e4defrag(8); Linux `fs/ext4/move_extent.c` for what the kernel refuses.

mod donor;
mod ioctls;
mod movable;
mod mover;

pub use movable::{MovableFile, SwapFiles, Unmovable};
pub use mover::{MoveProgress, Moved, Mover};

use crate::sysfs::DeviceLocation;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Why no file of a file system is moved.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum OnlineError {
    /// Another file system.
    #[error("is not on ext4, whose kernel code alone exchanges blocks of files")]
    NotExt4,
    /// Blocks that are no pages.
    #[error(
        "blocks of {block} bytes: the kernel exchanges whole pages of {page} bytes, so blocks must be as long"
    )]
    BlockSize { block: u64, page: u64 },
    /// A mount without ordered data: after a power cut, a moved file could have other data.
    #[error(
        "its ext4 is mounted {mode}: a power cut could lose data that are being moved (data=ordered is required)"
    )]
    DataMode { mode: String },
    /// A donor cannot be created.
    #[error("{}: no temporary file for the exchange: {error}", folder.display())]
    Donor { folder: PathBuf, error: io::Error },
    /// The kernel does not list free space.
    #[error("its free space cannot be listed: {0}")]
    FreeSpace(io::Error),
    /// There are not enough free tracks.
    #[error("whole tracks are free for {placed} of {blocks} blocks only")]
    NoWholeTracks { placed: u64, blocks: u64 },
    /// The user cancelled.
    #[error("it was interrupted")]
    Interrupted,
    /// Reading or writing failed.
    #[error("{0}")]
    File(#[from] io::Error),
}

/// Checks that files of the file system of an open file or folder can be moved, and returns the block size in bytes. `page` is the
/// size of a page of memory.
///
/// *Errors:* it is no ext4, has blocks that are no pages, or is mounted without ordered data.
pub fn check(file: &File, page: u64) -> Result<u64, OnlineError> {
    /// *Source:* statfs(2), the list of types.
    const EXT4: u64 = 0xef53;
    let found = rustix::fs::fstatfs(file).map_err(io::Error::from)?;
    if found.f_type as u64 != EXT4 {
        return Err(OnlineError::NotExt4);
    }
    let block = found.f_bsize as u64;
    if block != page {
        return Err(OnlineError::BlockSize { block, page });
    }
    let device = rustix::fs::fstat(file).map_err(io::Error::from)?.st_dev;
    match data_mode(device)?.as_str() {
        "data=ordered" => Ok(block),
        mode => Err(OnlineError::DataMode { mode: mode.to_string() }),
    }
}

/// How data are ordered against the journal, as an option of mount.
fn data_mode(device: u64) -> Result<String, OnlineError> {
    // The kernel names the folder after the device.
    let name = DeviceLocation::find(device).map_err(|_| OnlineError::NotExt4)?.name().to_string();
    let path = Path::new("/proc/fs/ext4").join(name).join("options");
    #[allow(clippy::disallowed_methods, reason = "the kernel lists the options in a file")]
    let options = fs::read_to_string(path).map_err(|_| OnlineError::NotExt4)?;
    Ok(data_option(&options))
}

fn data_option(options: &str) -> String {
    let mode = options.lines().find(|line| line.starts_with("data="));
    mode.unwrap_or("without a journal").to_string()
}

/// The free space of the file system of an open file, in blocks.
///
/// *Errors:* the kernel does not list it.
pub fn free_space(file: &File, block_bytes: u64) -> Result<Vec<Range<u64>>, OnlineError> {
    let free = ioctls::free_space(file).map_err(OnlineError::FreeSpace)?;
    Ok(free.into_iter().map(|bytes| bytes.start / block_bytes..bytes.end / block_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_mode_is_that_of_the_mount() {
        assert_eq!(data_option("rw\nbarrier\ndata=writeback\ncommit=5\n"), "data=writeback");
        assert_eq!(data_option("rw\nbarrier\n"), "without a journal");
    }

    #[test]
    fn file_of_another_file_system_is_refused() {
        #[allow(clippy::disallowed_methods, reason = "the test opens a file")]
        let file = File::open("/proc/version").expect("Linux has it");
        assert!(matches!(check(&file, 4096), Err(OnlineError::NotExt4)));
    }
}
