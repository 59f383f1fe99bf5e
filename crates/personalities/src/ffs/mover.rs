//! The work that the on-line reorganisation still has to do.

use super::file::File;
use super::moves::MoveBatch;
use super::program::Handle;
use headstack_model::{Instant, Request};
use std::collections::VecDeque;

/// A file that is being moved.
#[derive(Debug)]
pub(super) struct FileMove {
    /// The file after the move.
    pub(super) target: File,
    /// Its blocks before the move.
    pub(super) before: Vec<u32>,
    pub(super) moves: MoveBatch,
    /// Requests not issued yet, in sectors of the file system.
    pub(super) transfers: VecDeque<Request>,
}

/// The files still to be moved, and the one that is moved now.
#[derive(Debug)]
pub(super) struct FileMover {
    /// Thousandths of a request's time for which the mover pauses after it.
    pub(super) pause_per_mille: u64,
    /// When it may issue its next request.
    pub(super) next: Instant,
    pub(super) queue: VecDeque<Handle>,
    /// Files moved since the queue was filled. When it is empty and there were some, all files are checked again.
    pub(super) moved: u32,
    /// The file that is moved now.
    pub(super) work: Option<FileMove>,
    /// Its request in flight, and the time of its issue.
    pub(super) request: Option<(u64, Instant)>,
    /// The moves of the files that were moved.
    pub(super) done: Vec<MoveBatch>,
}

impl FileMover {
    /// A mover of these files that takes at most this share of the time (above 0, at most 1).
    pub(super) fn new(share: f64, files: VecDeque<Handle>) -> FileMover {
        assert!(share > 0.0 && share <= 1.0, "a share of {share} is not above 0 and at most 1");
        FileMover {
            pause_per_mille: ((1.0 - share) / share * 1e3) as u64,
            next: Instant::ZERO,
            queue: files,
            moved: 0,
            work: None,
            request: None,
            done: Vec::new(),
        }
    }

    /// When the mover has to be called next; `None` while it waits for the disk, or if it has nothing to do.
    pub(super) fn next_call(&self) -> Option<Instant> {
        let has_work = self.work.is_some() || !self.queue.is_empty() || self.moved > 0;
        (has_work && self.request.is_none()).then_some(self.next)
    }

    pub(super) fn waits_for(&self, id: u64) -> bool {
        self.request.is_some_and(|(request, _)| request == id)
    }
}
