//! Requests, commands and answers of the rearranger.

use headstack_model::{BlockError, Lbn};

/// What a request does with its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockAccess {
    /// It reads them.
    Read,
    /// It changes them: writes, zeroes or trims.
    Write,
    /// It has no blocks: everything answered before becomes durable.
    Flush,
}

/// A request from above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// Identifies its answer. No two pending requests have the same.
    pub ticket: u64,
    /// What it does.
    pub access: BlockAccess,
    /// Its first visible sector.
    pub lbn: Lbn,
    /// Its sectors: at least one, all of them visible ones; any number for a flush.
    pub sectors: u32,
}

/// Where the bytes of a command are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandBuffer {
    /// With a request.
    Request {
        /// The request's ticket.
        ticket: u64,
        /// Sectors of the request before them.
        skipped: u32,
    },
    /// In the buffer of the copy with this number, which holds one block. The read of a copy fills it, and the write empties it.
    Copy(u32),
}

/// A command for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCommand {
    /// Identifies the command when it ends; reused afterwards.
    pub id: u32,
    /// What it does.
    pub access: BlockAccess,
    /// Its first sector on the disk.
    pub lbn: Lbn,
    /// Its sectors.
    pub sectors: u32,
    /// Where their bytes are.
    pub buffer: CommandBuffer,
    /// Another place with the same content, which may be read in place of `lbn`.
    pub other_lbn: Option<Lbn>,
}

/// A change of the hot block table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableChange {
    /// The slot.
    pub slot: u32,
    /// The block that it holds from now on; `None` for none.
    pub block: Option<u64>,
}

/// An action for the owner, to be carried out in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RearrangeAction {
    /// Begin a command.
    Start(BlockCommand),
    /// Record a change of the table, and call [`Rearranger::handle_recorded`](super::Rearranger::handle_recorded). An owner whose table
    /// must survive a crash first makes all commands that have ended durable, then the change; after a crash, every recorded copy is
    /// newer than its home. Without such an owner the change is recorded at once.
    Record(TableChange),
    /// A request is over.
    Answer {
        /// Its ticket.
        ticket: u64,
        /// Whether it succeeded; otherwise the error of one of its commands.
        result: Result<(), BlockError>,
    },
}
