//! Commands and answers of a node's core.

#[cfg(doc)]
use super::NodeCore;
use crate::{BlockError, StatusExtent};

/// Size and properties of a node's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its size.
    pub bytes: u64,
    /// Its block: offsets and lengths are multiples of it.
    pub block_bytes: u32,
    /// Whether it takes no writes.
    pub read_only: bool,
}

/// An action for the owner of the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begin a command of the disk, at the latest after the other actions.
    Start(Command),
    /// A request is over.
    Answer(Answered),
}

/// A command of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Identifies its end. Reused once it has ended; ids are as small as possible.
    pub id: u32,
    /// What is to be done.
    pub work: Work,
}

/// What a disk is to do. Offsets and lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Read into [`NodeCore::room`].
    Read {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// From the media.
        fua: bool,
    },
    /// Write what [`NodeCore::data`] has.
    Write {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Done once they are on the media.
        fua: bool,
    },
    /// Bring all written data to the media.
    Flush,
    /// Write zeros.
    Zero {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Whether the space may be deallocated.
        may_trim: bool,
        /// Done once they are on the media.
        fua: bool,
    },
    /// Deallocate space, so that it reads as zeros.
    Trim {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// Report which bytes are data and which are holes.
    BlockStatus {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
    },
}

/// How a command ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is done.
    Done,
    /// Bytes read for a request ([`NodeCore::is_for_request`]) were left with the disk, where the answer finds them.
    Left,
    /// The extents that were found.
    Allocation(Vec<StatusExtent>),
}

/// A request that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The number that it was submitted under.
    pub ticket: u64,
    /// The result.
    pub result: Result<Outcome, BlockError>,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// [`NodeCore::fill`] copies its bytes, until the next action is polled.
    Read {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// Where data and holes are.
    Allocation(Vec<StatusExtent>),
}
