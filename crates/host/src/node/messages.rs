//! Commands and answers of a node's core.

#[cfg(doc)]
use super::NodeCore;
use crate::{BlockError, StatusExtent};
use headstack_policy::streams::{Command, Pieces};
use memmap2::MmapMut;

/// Size and properties of a node's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its size.
    pub bytes: u64,
    /// Its block: offsets and lengths are multiples of it.
    pub block_bytes: u32,
    /// Whether it rejects writes.
    pub read_only: bool,
}

/// An action for the owner of the core.
#[derive(Debug)]
pub enum Action<T> {
    /// Begin a command of the disk, at the latest after the other actions. A read goes into [`NodeCore::buffer`], a write comes from
    /// [`NodeCore::data`].
    Start(Command),
    /// A request is over.
    Answer(Answered<T>),
}

/// How a command ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is done.
    Done,
    /// The bytes of a read for a request ([`Command::is_for_request`]) were left on the disk, from which the answer copies them.
    Left,
    /// The extents that were found.
    BlockStatus(Vec<StatusExtent>),
}

/// A request that is over.
#[derive(Debug)]
pub struct Answered<T> {
    /// The ticket that it was submitted with.
    pub ticket: T,
    /// The result.
    pub result: Result<Outcome, BlockError>,
}

/// The outcome of a request.
#[derive(Debug)]
pub enum Outcome {
    /// It is done.
    Done,
    /// Bytes were read. [`NodeCore::fill`] copies them, and [`NodeCore::release`] must follow.
    Read {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Where the bytes are.
        data: ReadData,
    },
    /// Which bytes are data and which are holes.
    BlockStatus(Vec<StatusExtent>),
}

/// The bytes of a read, which travel with its answer.
#[derive(Debug)]
pub enum ReadData {
    /// In the stream memory, pinned until they are released.
    Staged(Pieces),
    /// In a buffer of the request's own.
    Buffer(MmapMut),
    /// On the disk ([`Ended::Left`]).
    Left,
}
