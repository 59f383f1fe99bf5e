//! What a client asks of a disk in bytes, and what it gets: the words between every way in (NBD, a file) and a disk.

/// What is asked. Places and lengths are in bytes, multiples of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Operation {
    /// Bytes from the disk.
    Read {
        /// First byte.
        offset: u64,
        bytes: u32,
        fua: bool,
    },
    /// Bytes to the disk.
    Write {
        /// First byte.
        offset: u64,
        data: Vec<u8>,
        /// Done once they are on the media.
        fua: bool,
    },
    /// Zeros to the disk.
    WriteZeroes {
        /// First byte.
        offset: u64,
        bytes: u64,
        /// Whether the room may be given back to whoever keeps the data.
        may_trim: bool,
        /// Done once they are on the media.
        fua: bool,
    },
    /// What is there is not needed any more, and reads as zeros.
    Trim {
        /// First byte.
        offset: u64,
        bytes: u64,
    },
    /// Into the drive's cache, for a read to come.
    Prefetch {
        /// First byte.
        offset: u64,
        bytes: u64,
    },
    /// All that was written, to the media.
    Flush,
    /// Where data are and where holes.
    Allocation {
        /// First byte.
        offset: u64,
        bytes: u64,
    },
}

/// A run of bytes that are all kept, or all a hole that reads as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusExtent {
    /// How many bytes.
    pub bytes: u64,
    /// Whether nothing is kept for them.
    pub hole: bool,
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// The bytes that were read.
    Data(Vec<u8>),
    /// What [`Operation::Allocation`] asked for, from its first byte on.
    Allocation(Vec<StatusExtent>),
}
