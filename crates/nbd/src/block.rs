//! Operations on a disk in bytes, and their results: the interface between every protocol (NBD, FUSE) and a disk.

/// An operation. Offsets and lengths are in bytes, multiples of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Operation {
    /// Reads bytes.
    Read {
        /// First byte.
        offset: u64,
        bytes: u32,
        fua: bool,
    },
    /// Writes bytes.
    Write {
        /// First byte.
        offset: u64,
        data: Vec<u8>,
        /// Whether it completes only once the data are on the media.
        fua: bool,
    },
    /// Writes zeros.
    WriteZeroes {
        /// First byte.
        offset: u64,
        bytes: u64,
        /// Whether the space may be freed.
        may_trim: bool,
        /// Whether it completes only once the data are on the media.
        fua: bool,
    },
    /// Discards bytes, which then read as zeros.
    Trim {
        /// First byte.
        offset: u64,
        bytes: u64,
    },
    /// Reads bytes into the drive's cache.
    Prefetch {
        /// First byte.
        offset: u64,
        bytes: u64,
    },
    /// Writes all dirty data to the media.
    Flush,
    /// Reports extents of data and holes.
    Allocation {
        /// First byte.
        offset: u64,
        bytes: u64,
    },
}

/// A run of bytes that are all data, or all a hole that reads as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusExtent {
    /// Number of bytes.
    pub bytes: u64,
    /// Whether it is a hole.
    pub hole: bool,
}

/// Result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It succeeded.
    Done,
    /// The bytes that were read.
    Data(Vec<u8>),
    /// The extents from the first byte of [`Operation::Allocation`] on.
    Allocation(Vec<StatusExtent>),
}
