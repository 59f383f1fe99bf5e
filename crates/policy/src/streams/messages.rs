//! Requests, commands and answers of the stream scheduler.

use headstack_model::Nanos;

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

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum RequestKind {
    /// Bytes from the disk.
    Read {
        offset: u64,
        bytes: u64,
        /// From the media: staged bytes do not suffice.
        fua: bool,
    },
    /// Bytes to the disk.
    Write {
        offset: u64,
        bytes: u64,
        /// Done once they are on the media.
        fua: bool,
    },
    /// A change without data: zeros, or a trim.
    Change { offset: u64, bytes: u64 },
    /// A question that only the disk can answer, such as where holes are.
    Query { offset: u64, bytes: u64 },
    /// Bring all writes that were answered before to the media.
    Flush,
}

impl RequestKind {
    /// The first byte and the number of bytes that it concerns.
    pub(super) fn run(&self) -> Option<(u64, u64)> {
        match *self {
            RequestKind::Read { offset, bytes, .. }
            | RequestKind::Write { offset, bytes, .. }
            | RequestKind::Change { offset, bytes }
            | RequestKind::Query { offset, bytes } => Some((offset, bytes)),
            RequestKind::Flush => None,
        }
    }
}

/// An action for the owner, to be done in this order and at once: after the next call a piece may hold other bytes.
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
    /// Identifies its end. Reused once it has ended.
    pub id: u32,
    /// What it does.
    pub transfer: Transfer,
    /// The disk's first byte.
    pub offset: u64,
    /// How many; none for a flush.
    pub bytes: u64,
    /// The buffer of its bytes.
    pub place: TransferBuffer,
}

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Transfer {
    Read {
        fua: bool,
    },
    Write {
        /// Done once they are on the media.
        fua: bool,
    },
    /// All that was written, to the media.
    Flush,
    /// What the request itself asks for ([`RequestKind::Change`], [`RequestKind::Query`]).
    Own,
}

/// The buffer of a command's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferBuffer {
    /// In the stream memory, from this byte on.
    Memory(u64),
    /// With the request of this ticket.
    Request(u64),
    /// It has none.
    None,
}

/// A request that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Answer {
    pub ticket: u64,
    pub result: Result<Outcome, DiskError>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done; bytes that a command of its own read are with the request.
    Done,
    /// The bytes read are in the stream memory, until the next call.
    Staged(Pieces),
}

/// Most pieces that a read is answered with; one of more goes to the disk by itself.
pub const MOST_PIECES: usize = 4;

/// Runs of the stream memory, in the order in which a client gets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    pieces: [Piece; MOST_PIECES],
    len: usize,
}

impl Pieces {
    /// One after the other.
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

/// Why a command of the disk failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// A block that cannot be read, or written, any more.
    #[error("medium error")]
    Medium,
    /// The disk does not answer any more.
    #[error("the disk is dead")]
    Dead,
    /// Whoever keeps the data has no room left.
    #[error("no room left for the data")]
    NoSpace,
    /// The disk does not know, or take, the command.
    #[error("the disk refuses the command")]
    Refused,
}
