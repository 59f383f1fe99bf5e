//! Requests, commands and answers of the stream scheduler.

use headstack_model::{BlockError, Nanos};

/// A client's guarantee, for all its streams together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// Bytes per second that it may request.
    pub rate: u64,
    /// The longest that a request waits.
    pub response: Nanos,
}

/// A client's request. Offsets and lengths are in bytes, multiples of the disk's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Identifies its answer. No two pending requests have the same.
    pub ticket: u64,
    /// The client: a connection.
    pub client: u64,
    /// What is requested.
    pub kind: RequestKind,
}

/// An operation of a client or a command of the disk: offsets and lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum RequestKind {
    /// Read. With `fua` from the media: staged bytes do not suffice.
    Read { offset: u64, bytes: u64, fua: bool },
    /// Write. With `fua` it is done once the bytes are on the media.
    Write { offset: u64, bytes: u64, fua: bool },
    /// Write zeros; `may_trim` lets the disk deallocate the blocks.
    Zero { offset: u64, bytes: u64, may_trim: bool, fua: bool },
    /// Deallocate blocks, which then read as zeros.
    Trim { offset: u64, bytes: u64 },
    /// Report which bytes are data and which are holes.
    BlockStatus { offset: u64, bytes: u64 },
    /// Bring all writes that were answered before to the media.
    Flush,
}

impl RequestKind {
    /// The first byte and the number of bytes that it concerns; none for a flush.
    pub fn run(&self) -> (u64, u64) {
        match *self {
            RequestKind::Read { offset, bytes, .. } | RequestKind::Write { offset, bytes, .. } => {
                (offset, bytes)
            }
            RequestKind::Zero { offset, bytes, .. } | RequestKind::Trim { offset, bytes } => (offset, bytes),
            RequestKind::BlockStatus { offset, bytes } => (offset, bytes),
            RequestKind::Flush => (0, 0),
        }
    }

    /// Bytes that the disk transfers for it.
    pub fn transferred_bytes(&self) -> u64 {
        match *self {
            RequestKind::Read { bytes, .. } | RequestKind::Write { bytes, .. } => bytes,
            _ => 0,
        }
    }
}

/// An action for the owner. The owner carries actions out in this order, and each before its next call, after which the bytes of a
/// [`CopyIn`](Action::CopyIn) may be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Copy bytes of a write into stream memory.
    CopyIn {
        /// The write's ticket.
        ticket: u64,
        /// The first of its bytes.
        from: u64,
        /// The destination, and the number of bytes.
        piece: Piece,
    },
    /// Begin a command of the disk.
    Start(Command),
    /// A request is over.
    Answer(Answer),
}

/// A run of bytes of the stream memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Offset of the first byte in the stream memory.
    pub at: u64,
    /// How many.
    pub bytes: u64,
}

/// A command of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Identifies the command when it ends; reused afterwards.
    pub id: u32,
    /// What the disk does.
    pub kind: RequestKind,
    /// The buffer of its bytes.
    pub place: TransferBuffer,
    /// The number of the duration limit that it is sent with; 0 for none.
    pub limit: u8,
}

impl Command {
    /// Whether it is a client's request as it is, with the bytes in the request's own buffer.
    pub fn is_for_request(&self) -> bool {
        matches!(self.place, TransferBuffer::Request(_))
    }
}

/// The buffer of a command's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferBuffer {
    /// In the stream memory, from this byte on.
    Memory(u64),
    /// With the request of this ticket.
    Request(u64),
    /// With the request of this ticket, from this byte of the disk as clients see it: a layer serves that part elsewhere.
    Part {
        /// The request's ticket.
        ticket: u64,
        /// The offset for the client.
        offset: u64,
    },
    /// In a buffer of a layer's own, by its number.
    Layer {
        /// The buffer's number.
        buffer: u32,
        /// The first byte in it.
        from: u64,
    },
    /// It has none.
    None,
}

/// A request that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Answer {
    pub ticket: u64,
    pub result: Result<Outcome, BlockError>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done; bytes that a command read for this request alone are with the request.
    Done,
    /// The bytes read are in the stream memory until [`Streams::release`](super::Streams::release).
    Staged(Pieces),
}

/// Most pieces that a read is answered with; a read of more goes to the disk by itself.
pub const MOST_PIECES: usize = 4;

/// Runs of the stream memory, in the order in which a client gets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    pieces: [Piece; MOST_PIECES],
    len: usize,
}

impl Pieces {
    /// The pieces, in order.
    pub fn iter(&self) -> impl Iterator<Item = Piece> + '_ {
        self.pieces[..self.len].iter().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, number: usize) -> Piece {
        self.pieces[..self.len][number]
    }

    /// Adds a piece, merged with the last one where it continues that. Returns whether there was room.
    pub(super) fn push(&mut self, piece: Piece) -> bool {
        if let Some(last) = self.pieces[..self.len].last_mut().filter(|last| last.at + last.bytes == piece.at)
        {
            last.bytes += piece.bytes;
            return true;
        }
        let Some(free) = self.pieces.get_mut(self.len) else { return false };
        *free = piece;
        self.len += 1;
        true
    }
}
