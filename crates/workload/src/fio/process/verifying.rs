//! The part of a clone that reads what it wrote.

use super::{FioRequest, Process};
use crate::fio::extent::Run;
use crate::fio::settings::{READ, WRITE};

impl Process {
    /// Whether a pass of a job that only its time ends is over, so that what it wrote is read.
    #[inline]
    pub(super) fn ends_endless_pass(&self) -> bool {
        let Some(verify) = &self.verify else { return false };
        (verify.ends_passes || verify.only) && self.work.pass_bytes >= self.work.limits.pass_bytes
    }

    /// A request that reads what was written.
    #[cold]
    pub(super) fn make_verifying(&mut self, index: usize, run: Run) -> FioRequest {
        let as_written = self.verify.as_ref().is_some_and(|verify| verify.replays());
        self.work.count_verified(run.bytes, as_written);
        self.rates.count(READ, run.bytes, &mut self.dice.rate);
        if let Some(verify) = &mut self.verify {
            verify.note(false, index, run);
            if !verify.is_reading() {
                self.pauses.observe_issue();
            }
        }
        self.fill_request(READ, index, run)
    }

    /// Whether a request is of an earlier run and not issued: `verify_only`. Then it is counted and recorded here.
    #[inline]
    pub(super) fn is_only_verified(&mut self, at: usize, index: usize, run: Run) -> bool {
        match &mut self.verify {
            Some(verify) if verify.only => {
                verify.note(at == WRITE, index, run);
                self.work.count(at, run.bytes);
                if let Some(stride) = &mut self.stride {
                    stride.count(run.bytes);
                }
                true
            }
            _ => false,
        }
    }

    /// Whether its pass is over, and nothing of it is read.
    pub(in crate::fio) fn is_at_end(&self) -> bool {
        self.is_pass_over() && !self.verify.as_ref().is_some_and(|verify| verify.is_reading())
    }

    /// Records the id of the request issued last.
    #[cold]
    pub(in crate::fio) fn note_id(&mut self, id: u64) {
        if let Some(verify) = &mut self.verify {
            verify.note_id(id);
        }
    }
}
