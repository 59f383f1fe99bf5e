//! When a job with rates, pauses, arrivals, flushes, two directions or strides issues. The code is separate from that of plain jobs,
//! which then needs less of the instruction cache.

use headstack_model::Instant;

use super::{Hold, Process, Step, Then};
use crate::fio::extent::Run;
use crate::fio::settings::{Settings, WRITE};

/// The next action of a job that is not plain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Due {
    /// A request in this direction.
    Request(usize),
    /// A read of what was written, in this file.
    Verify(usize, Run),
    Flush(Step),
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) struct FlushState {
    /// Writes between two flushes; 0 for none.
    every: [u64; 2],
    /// Number of writes issued before the last flush.
    pub(super) flushed_at: u64,
    pub(super) at_end: bool,
    /// Flushes issued at the end of the pass, one per file.
    pub(super) ended: usize,
}

impl FlushState {
    pub(super) fn new(settings: &Settings) -> FlushState {
        let flushes = &settings.flushes;
        // With `verify_only` nothing is written.
        let is_written = !settings.flushes.verify.only || !settings.flushes.verify.has_method;
        let at_end = flushes.at_end && settings.direction().writes && is_written;
        let every = if is_written { [flushes.fsync, flushes.fdatasync] } else { [0; 2] };
        FlushState { every, flushed_at: 0, at_end, ended: 0 }
    }

    /// Whether the job flushes at all.
    pub(super) fn are_used(&self) -> bool {
        self.at_end || self.every != [0; 2]
    }

    pub(super) fn is_due(&self, writes: u64) -> bool {
        writes != self.flushed_at
            && self.every.iter().any(|every| *every > 0 && writes.is_multiple_of(*every))
    }
}

impl Process {
    /// The next action of a job that is not plain. If there is none, it sets a hold with the reason.
    #[inline(never)]
    pub(super) fn due(&mut self, now: Instant) -> Due {
        self.rates.end_ramp(now);
        if self.verify.as_ref().is_some_and(|verify| verify.is_reading()) {
            let next = self.verify.as_mut().and_then(|verify| verify.next_of_pass());
            return match next {
                Some((index, run)) => Due::Verify(index, run),
                None => self.due_after(Then::NextPass),
            };
        }
        if self.flushes.ended > 0 {
            return self.due_after(Then::NextPass);
        }
        if self.pauses.is_due(now, self.work.requests(), self.work.completed) {
            return self.due_after(Then::Pause);
        }
        if self.is_pass_over() {
            return self.due_after(Then::NextPass);
        }
        if self.decided.is_none()
            && let Some((index, run)) = self.verify.as_mut().and_then(|verify| verify.next_of_backlog())
        {
            return Due::Verify(index, run);
        }
        let writes = self.work.issued[WRITE];
        if self.flushes.is_due(writes) {
            self.flushes.flushed_at = writes;
            return match self.files.choose(&mut self.dice.places.file) {
                Some(file) => Due::Flush(self.flush(file)),
                None => self.due_after(Then::NextPass),
            };
        }
        if let Some(arrivals) = &mut self.arrivals
            && now < arrivals.next
        {
            self.hold = Hold::Sleep(arrivals.next);
            return Due::Nothing;
        }
        self.direct(now).map_or(Due::Nothing, Due::Request)
    }

    fn due_after(&mut self, then: Then) -> Due {
        self.hold = Hold::Drain(then);
        Due::Nothing
    }

    /// The direction of the next request; `None` if it is not due yet.
    fn direct(&mut self, now: Instant) -> Option<usize> {
        if let Some(at) = self.decided.take() {
            return Some(at);
        }
        let mixed = self.pattern.direction.is_mixed();
        let mut at =
            if mixed { self.mix.next(&self.work.issued, &mut self.dice.mix) } else { self.only_direction() };
        if !self.rates.are_limited {
            return Some(at);
        }
        let due = |at: usize| self.rates.due(at);
        if due(at) <= now {
            return Some(at);
        }
        let other = 1 - at;
        if mixed && self.mix.wants(other) && due(other) < due(at) {
            at = other;
        }
        let until = due(at);
        self.mix.took(at);
        self.decided = Some(at);
        if until > now {
            self.hold =
                if self.rates.wait_inline { Hold::Drain(Then::WaitUntil(until)) } else { Hold::Sleep(until) };
            return None;
        }
        self.decided.take()
    }

    /// Counts an issued request for the rates, pauses and flushes that determine when the next one is due.
    #[inline(never)]
    pub(super) fn note_issue(&mut self, at: usize, index: usize, run: Run) {
        let bytes = run.bytes;
        if let Some(verify) = &mut self.verify {
            verify.note(at == WRITE, index, run);
        }
        if let Some(stride) = &mut self.stride {
            stride.count(bytes);
        }
        self.rates.count(at, bytes, &mut self.dice.rate);
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.follow(arrivals.next, &mut self.dice.rate);
        }
        self.pauses.observe_issue();
    }
}
