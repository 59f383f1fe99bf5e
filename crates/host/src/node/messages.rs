//! What goes in and out of a node's core.

#[cfg(doc)]
use super::NodeCore;
use crate::{BlockError, StatusExtent};

/// A disk as its node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its size.
    pub bytes: u64,
    /// Its block: places and lengths are multiples of it.
    pub block_bytes: u32,
    /// Whether it takes no writes.
    pub read_only: bool,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begin a command of the disk. That may be put off until the other actions are done.
    Start(Command),
    /// A request is over.
    Answer(Answered),
}

/// A command of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What its end is told by. Used anew once it has ended; the numbers are as small as can be.
    pub id: u32,
    /// What is to be done.
    pub work: Work,
}

/// What a disk is to do. Places and lengths are in bytes.
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
    /// Put all that was written on the media.
    Flush,
    /// Make it zeros.
    Zero {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Whether room may be given back.
        may_trim: bool,
        /// Done once they are on the media.
        fua: bool,
    },
    /// Give room back, so that it reads as zeros.
    Trim {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// Tell where data are and where holes.
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
    /// What a look found.
    Allocation(Vec<StatusExtent>),
}

/// A request that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The number that it was submitted under.
    pub ticket: u64,
    /// What came of it.
    pub result: Result<Outcome, BlockError>,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// Its bytes can be had by [`NodeCore::fill`], until the next action is asked for.
    Read {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// Where data and holes are.
    Allocation(Vec<StatusExtent>),
}
