//! Why an image is refused.

use std::io;

/// Why an image was refused or could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file system needs an unsupported feature.
    #[error("the file system has features that are not supported here ({0})")]
    Feature(String),
    /// The marker of [`hold`](crate::hold) is still set: an earlier run did not finish.
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
