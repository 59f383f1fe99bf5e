//! A host's request to a drive.

use crate::Lbn;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Data from the drive.
    Read,
    /// Data to the drive.
    Write,
    /// All written data to the media.
    Flush,
}

/// Why a disk did not serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The request is beyond the end of the disk, empty or not in whole blocks, or its client has disconnected.
    #[error("outside the disk, or not in whole blocks")]
    Invalid,
    /// A block cannot be read or written any more.
    #[error("medium error")]
    Medium,
    /// The disk does not respond any more.
    #[error("the disk is dead")]
    Dead,
    /// The backing store of the data is full.
    #[error("no room left for the data")]
    NoSpace,
    /// The machine has no memory left for the request.
    #[error("no memory left for the request")]
    NoMemory,
    /// The disk accepts no writes.
    #[error("the disk is read-only")]
    ReadOnly,
    /// The server stops.
    #[error("the disk is shutting down")]
    ShuttingDown,
}

/// One request: an operation on a run of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// First block (0 for a flush).
    pub lbn: Lbn,
    /// Number of blocks (0 for a flush).
    pub sectors: u32,
    /// Force unit access (FUA). If set, a write completes once it is on the media, and a read comes from the media.
    pub fua: bool,
}

impl Request {
    /// A read of `sectors` blocks from `lbn` on.
    pub fn read(lbn: Lbn, sectors: u32) -> Request {
        Request { op: Op::Read, lbn, sectors, fua: false }
    }

    /// A write of `sectors` blocks from `lbn` on.
    pub fn write(lbn: Lbn, sectors: u32) -> Request {
        Request { op: Op::Write, lbn, sectors, fua: false }
    }

    /// A flush of the write cache.
    pub fn flush() -> Request {
        Request { op: Op::Flush, lbn: Lbn(0), sectors: 0, fua: false }
    }

    /// The block after the last.
    pub fn end(&self) -> Lbn {
        self.lbn + u64::from(self.sectors)
    }
}
