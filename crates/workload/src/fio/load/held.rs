//! Clones that others hold back or end: by `flow`, `exitall`, `steadystate`.

use std::cmp::Reverse;

use headstack_model::{Instant, Nanos};

use super::{FioLoad, Standing};
use crate::fio::settings::ExitScope;

impl FioLoad {
    /// Whether a clone is ahead of its share of its group's requests. Then it waits.
    #[cold]
    pub(super) fn is_held_back(&mut self, now: Instant, index: usize) -> bool {
        let worker = &mut self.members[index].worker;
        if worker.is_at_end(now) || !self.flows.is_ahead(index) {
            self.flows.end_drain(index);
            return false;
        }
        self.standing[index] = Standing::Blocked;
        match self.flows.hold_back(index) {
            Some(pause) if worker.outstanding() == 0 => self.sleep(index, now + pause),
            Some(_) => {}
            None => {
                // Its time may be over before others issue.
                let until = worker.term().until(Instant::MAX);
                if until < Instant::MAX {
                    self.standing[index] = Standing::Asleep;
                    if self.flows.needs_timer(index) {
                        self.timers.push(Reverse((until, index as u32)));
                    }
                }
            }
        }
        true
    }

    fn sleep(&mut self, index: usize, until: Instant) {
        let until = self.members[index].worker.term().until(until);
        self.standing[index] = Standing::Asleep;
        self.timers.push(Reverse((until, index as u32)));
    }

    /// Whether a clone that is ahead of its share waits for its outstanding requests. After the last of them its pause begins.
    #[cold]
    pub(super) fn sleeps_when_drained(&mut self, now: Instant, index: usize) -> bool {
        let Some(pause) = self.flows.drained(index) else { return false };
        if self.standing[index] == Standing::Blocked && self.members[index].worker.outstanding() == 0 {
            self.flows.end_drain(index);
            self.sleep(index, now.saturating_add(pause.max(Nanos(1))));
        }
        true
    }

    /// Makes clones ready that waited for others.
    #[cold]
    pub(super) fn release(&mut self, waited: &[u32]) {
        for source in waited {
            let standing = &mut self.standing[*source as usize];
            if matches!(standing, Standing::Blocked | Standing::Asleep) {
                *standing = Standing::Ready;
                self.ready.push_back(*source);
            }
        }
    }

    /// Counts an issued request for the shares of jobs and for steady results.
    #[cold]
    pub(super) fn count_issued(&mut self, index: usize, id: u64, bytes: u64) {
        if !self.steady.is_empty() {
            self.steady.issued(id, bytes);
        }
        let waited = self.flows.count(index);
        self.release(&waited);
    }

    /// Ends the clones of a group, all that run, or all.
    pub(super) fn stop_others(&mut self, group: u32, scope: ExitScope) {
        for index in 0..self.jobs.len() {
            let is_meant = match scope {
                ExitScope::Group => self.jobs[index].group == group,
                ExitScope::Running => self.windows[index].is_some(),
                ExitScope::All => true,
            };
            if !is_meant {
                continue;
            }
            if scope == ExitScope::All && self.windows[index].is_none() {
                self.cancel(index);
            } else {
                self.stop(index);
            }
        }
    }

    /// Ends a clone that runs.
    pub(super) fn stop(&mut self, index: usize) {
        let standing = self.standing[index];
        if matches!(standing, Standing::Waiting | Standing::Ended) {
            return;
        }
        self.members[index].worker.term().stop();
        if standing != Standing::Ready && self.windows[index].is_some() {
            self.standing[index] = Standing::Ready;
            self.ready.push_back(index as u32);
        }
    }

    /// Ends a clone that has not begun.
    fn cancel(&mut self, index: usize) {
        match self.standing[index] {
            Standing::Ended => return,
            Standing::Waiting => self.waiting -= 1,
            _ => {}
        }
        self.standing[index] = Standing::Ended;
        self.running -= 1;
        self.stage_left[self.members[index].gate.stage as usize] -= 1;
        self.section_left[self.jobs[index].section as usize] -= 1;
    }
}
