//! The model's work for an operation: a run of blocks, submitted in pieces.

use super::Outcome;
use super::books::Kind;
use crate::BlockError;
use headstack_model::{Instant, Lbn, Nanos, Op, Request};

#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) ticket: u64,
    pub(super) volume: u32,
    pub(super) task: Task,
    pub(super) outcome: Outcome,
    pub(super) asked: Option<(Kind, u64)>,
    pub(super) begun: Instant,
    /// Time by which a fault delays the answer.
    pub(super) delay: Nanos,
}

/// Blocks `next..end` are not submitted yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) op: Op,
    pub(super) fua: bool,
    /// For zeros, which are written with each piece: whether they may become a hole.
    pub(super) zeros: Option<bool>,
    pub(super) next: u64,
    pub(super) end: u64,
}

impl Task {
    /// Longest piece in bytes; a longer run is split, as a host splits it.
    const PIECE_BYTES: u64 = 4 << 20;

    /// Completes at once.
    pub(super) const NOTHING: Task = Task { op: Op::Read, fua: false, zeros: None, next: 0, end: 0 };
    pub(super) const FLUSH: Task = Task { op: Op::Flush, end: 1, ..Task::NOTHING };

    pub(super) fn is_over(&self) -> bool {
        self.next == self.end
    }

    pub(super) fn next_piece(&mut self, block: u64) -> Option<Request> {
        if self.is_over() {
            return None;
        }
        if self.op == Op::Flush {
            self.next = self.end;
            return Some(Request::flush());
        }
        let sectors = (self.end - self.next).min(Task::PIECE_BYTES / block);
        let lbn = Lbn(self.next);
        self.next += sectors;
        Some(Request { op: self.op, lbn, sectors: sectors as u32, fua: self.fua })
    }
}

/// Block size and size of the volume on which operations lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) block: u64,
    pub(super) total: u64,
}

impl Extent {
    /// The task on all blocks that the bytes touch.
    ///
    /// *Errors:* no bytes, or beyond the end.
    pub(super) fn around(&self, offset: u64, bytes: u64, task: Task) -> Result<Task, BlockError> {
        let end = offset.checked_add(bytes).filter(|end| bytes > 0 && *end <= self.total);
        let end = end.ok_or(BlockError::Invalid)?;
        Ok(Task { next: offset / self.block, end: end.div_ceil(self.block), ..task })
    }

    /// The task on these bytes, which must be whole blocks.
    ///
    /// *Errors:* as [`Extent::around`]; a partial block.
    pub(super) fn exactly(&self, offset: u64, bytes: u64, task: Task) -> Result<Task, BlockError> {
        match (offset % self.block, bytes % self.block) {
            (0, 0) => self.around(offset, bytes, task),
            _ => Err(BlockError::Invalid),
        }
    }
}
