//! What a clone of a job has done, and when its flushes and random places come.

use super::file::Pattern;
use super::settings::{READ, Settings, WRITE};

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes in all, over all loops.
    pub(super) bytes: u64,
    pub(super) pass_bytes: u64,
    /// Requests in all; 0 for any number.
    pub(super) requests: u64,
    pub(super) loops: u64,
    pub(super) beyond_files: bool,
}

/// The queue of a clone.
#[derive(Clone, Copy, Debug)]
pub(super) struct CloneQueue {
    /// The most requests that it holds.
    pub(super) depth: u32,
    /// A clone that had the most issues again once there are this many or fewer.
    pub(super) refill: u32,
    /// Requests that have not completed.
    pub(super) out: u32,
}

impl CloneQueue {
    pub(super) fn new(settings: &Settings) -> CloneQueue {
        CloneQueue { depth: settings.queue.depth() as u32, refill: settings.queue.refill() as u32, out: 0 }
    }
}

#[derive(Clone, Debug)]
pub(super) struct WorkDone {
    pub(super) limits: Limits,
    pub(super) issued: [u64; 2],
    pub(super) completed: u64,
    bytes: u64,
    pass_bytes: u64,
    pub(super) pass_issued: u64,
    pub(super) loops_left: u64,
}

impl WorkDone {
    pub(super) fn new(limits: Limits) -> WorkDone {
        let loops_left = limits.loops - 1;
        WorkDone { limits, issued: [0; 2], completed: 0, bytes: 0, pass_bytes: 0, pass_issued: 0, loops_left }
    }

    #[inline]
    pub(super) fn count(&mut self, at: usize, bytes: u64) {
        self.issued[at] += 1;
        self.bytes += bytes;
        self.pass_bytes += bytes;
        self.pass_issued += 1;
    }

    #[inline]
    pub(super) fn requests(&self) -> u64 {
        self.issued[READ] + self.issued[WRITE]
    }

    #[inline]
    pub(super) fn has_issued_all(&self) -> bool {
        self.limits.requests > 0 && self.requests() >= self.limits.requests
    }

    #[inline]
    pub(super) fn is_pass_over(&self) -> bool {
        self.bytes >= self.limits.bytes || self.pass_bytes >= self.limits.pass_bytes || self.has_issued_all()
    }

    /// The larger share of those of bytes and of requests.
    pub(super) fn share(&self) -> f64 {
        let share = |done: u64, all: u64| if all > 0 { done as f64 / all as f64 } else { 0.0 };
        share(self.requests(), self.limits.requests).max(share(self.bytes, self.limits.bytes))
    }

    pub(super) fn begin_pass(&mut self) {
        (self.pass_bytes, self.pass_issued) = (0, 0);
    }

    /// The bytes that are left of one loop.
    pub(super) fn bytes_left(&self) -> u64 {
        (self.limits.bytes / self.limits.loops).saturating_sub(self.bytes)
    }
}

#[derive(Clone, Debug)]
pub(super) struct FlushState {
    /// Writes between two flushes; 0 for none.
    every: [u64; 2],
    /// Writes issued at the last one.
    pub(super) flushed_at: u64,
    pub(super) at_end: bool,
    /// Flushes issued at the end of the pass, of a file each.
    pub(super) ended: usize,
}

impl FlushState {
    pub(super) fn new(settings: &Settings) -> FlushState {
        let flushes = &settings.flushes;
        let at_end = flushes.at_end && settings.direction().writes;
        FlushState { every: [flushes.fsync, flushes.fdatasync], flushed_at: 0, at_end, ended: 0 }
    }

    /// Whether the job flushes at all.
    pub(super) fn are_any(&self) -> bool {
        self.at_end || self.every != [0; 2]
    }

    pub(super) fn is_due(&self, writes: u64) -> bool {
        writes != self.flushed_at
            && self.every.iter().any(|every| *every > 0 && writes.is_multiple_of(*every))
    }
}

/// The requests between two draws of a random place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws {
    every: u64,
    left: u64,
}

impl Draws {
    pub(super) fn new(pattern: &Pattern) -> Draws {
        let every = if pattern.direction.random { pattern.modifier.max(1) } else { 1 };
        Draws { every, left: every }
    }

    /// Whether a random place is to be drawn for this request.
    #[inline]
    pub(super) fn is_next(&mut self) -> bool {
        if self.every == 1 {
            return true;
        }
        self.left -= 1;
        if self.left == 0 {
            self.left = self.every;
            return true;
        }
        false
    }
}
