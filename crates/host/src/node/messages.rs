//! Commands and answers of a node's core.

#[cfg(doc)]
use super::NodeCore;
use crate::{BlockError, StatusExtent};
use headstack_streams::streams::{Command, Pieces};
use memmap2::MmapMut;

/// Size and properties of a node's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its size in bytes.
    pub bytes: u64,
    /// Its block size: offsets and lengths are multiples of it.
    pub block_bytes: u32,
    /// Whether it rejects writes.
    pub read_only: bool,
}

/// An action for the owner of the core.
#[derive(Debug)]
pub enum Action<T> {
    /// Begin a command of the disk, at the latest after the other actions. A read goes into [`NodeCore::buffer`], a write comes
    /// from [`NodeCore::data`].
    Start(Command),
    /// A request has completed.
    Answer(Answered<T>),
}

/// How a command succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is done.
    Done,
    /// The bytes of a read for a request ([`Command::is_for_request`]) stay on the disk; the answer copies them from there.
    Left,
    /// The extents found.
    BlockStatus(Vec<StatusExtent>),
}

/// A completed request.
#[derive(Debug)]
pub struct Answered<T> {
    /// The ticket from its submission.
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
        /// Number of bytes.
        bytes: u64,
        /// Where the bytes are.
        data: ReadData,
    },
    /// Extents of data and holes.
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
