//! The commands that a device has.

use super::activity::Activity;
use super::drive::{Drive, track_of};
use super::job::Job;
use super::media::angle_of;
use super::waiting::Waiting;
use super::{Command, Completion, Outcome, OutstandingCommand, QueueFull, Tag, TaskAttribute};
use headstack_model::spec::Tagging;
use headstack_model::{Instant, Lbn, Op};
use headstack_policy::{Slot, SlotId};
use std::collections::VecDeque;
use std::ops::Range;

#[derive(Debug)]
pub(super) struct Commands {
    /// By tag.
    pub(super) jobs: Vec<Job>,
    free: Vec<u32>,
    /// Completed commands, each with its time; their jobs hold the rest until they are polled.
    done: VecDeque<(u32, Instant)>,
    pub(super) waiting: Waiting,
    /// Number of commands received and not done.
    pub(super) in_flight: usize,
    /// The command in flight that must be alone, if any.
    alone: Option<u32>,
    pub(super) depth: usize,
    tagging: Tagging,
}

impl Commands {
    pub(super) fn new(depth: usize, tagging: Tagging, waiting: Waiting) -> Commands {
        Commands {
            // Those that are done and not yet polled have their tags, too.
            jobs: Vec::with_capacity(2 * depth),
            free: Vec::with_capacity(2 * depth),
            done: VecDeque::with_capacity(depth),
            waiting,
            in_flight: 0,
            alone: None,
            depth,
            tagging,
        }
    }

    /// The first of these blocks to which an outstanding write goes; the end of the blocks if there is none.
    #[cold]
    pub(super) fn first_of_writes(&self, blocks: Range<Lbn>) -> Lbn {
        let mut first = blocks.end;
        for (slot, job) in self.jobs.iter().enumerate() {
            let is_over =
                self.free.contains(&(slot as u32)) || self.done.iter().any(|(done, _)| *done == slot as u32);
            let request = job.command.request;
            if !is_over && request.op == Op::Write && request.end() > blocks.start && request.lbn < first {
                first = request.lbn.max(blocks.start);
            }
        }
        first
    }

    /// The outstanding commands, in no order of time.
    pub(super) fn listed(&self) -> Vec<OutstandingCommand> {
        let mut is_over = vec![false; self.jobs.len()];
        let over = self.free.iter().chain(self.done.iter().map(|(slot, _)| slot));
        over.for_each(|slot| is_over[*slot as usize] = true);
        let left = self.jobs.iter().zip(is_over).filter(|(_, is_over)| !is_over);
        left.map(|(job, _)| OutstandingCommand { command: job.command, submitted: job.submitted }).collect()
    }

    pub(super) fn outstanding(&self) -> usize {
        self.jobs.len() - self.free.len() - self.done.len()
    }

    /// Adds a command that is submitted at `now`.
    ///
    /// *Errors:* there is no room for it.
    #[inline]
    pub(super) fn submit(&mut self, command: Command, now: Instant) -> Result<u32, QueueFull> {
        let command = command.on(self.tagging);
        let outstanding = self.outstanding();
        if outstanding == self.depth {
            return Err(QueueFull);
        }
        let job = Job::new(command, now, outstanding == 0);
        Ok(match self.free.pop() {
            Some(slot) => {
                self.jobs[slot as usize] = job;
                slot
            }
            None => {
                self.jobs.push(job);
                (self.jobs.len() - 1) as u32
            }
        })
    }

    /// Whether a command may be received while others are in flight.
    pub(super) fn may_receive(&self, slot: u32) -> bool {
        let command = &self.jobs[slot as usize].command;
        command.attribute == TaskAttribute::HeadOfQueue
            || self.alone.is_none() && (self.in_flight == 0 || !command.must_be_alone(self.tagging))
    }

    /// Records that a command is in flight from now on.
    pub(super) fn begin(&mut self, slot: u32) {
        self.in_flight += 1;
        if self.jobs[slot as usize].command.must_be_alone(self.tagging) {
            self.alone = Some(slot);
        }
    }

    pub(super) fn wait_for_arm(&mut self, slot: u32, drive: &Drive) {
        let job = &mut self.jobs[slot as usize];
        job.extent = drive.geometry.extent_at(job.media_from);
        (job.place, job.angle) = (track_of(&job.extent), angle_of(&job.extent, job.media_from));
        let Job { command, submitted, place, .. } = *job;
        let entry = Slot {
            urgent: command.urgent,
            limit: command.limit,
            deadline: command.deadline.unwrap_or(Instant::MAX),
            ..Slot::new(SlotId(slot), command.request, submitted, place.cylinder, place.head)
        };
        match command.attribute {
            TaskAttribute::HeadOfQueue => self.waiting.add_at_head(entry),
            _ => self.waiting.add(entry),
        }
    }

    /// Aborts a command with a duration limit, if its access from `begins` to `ends` exceeds it and the policy is to abort. Returns whether
    /// it did.
    #[cold]
    pub(super) fn abort_if_overdue(&mut self, slot: u32, begins: Instant, ends: Instant) -> bool {
        let job = &mut self.jobs[slot as usize];
        let is_aborted = self.waiting.ends_aborted(job, begins, ends);
        if is_aborted {
            job.outcome = Outcome::Aborted;
        }
        is_aborted
    }

    pub(super) fn complete(&mut self, slot: u32, at: Instant, activity: &mut Activity) {
        let job = &self.jobs[slot as usize];
        assert_eq!(job.parts.total(), at - job.submitted, "the parts add up: {job:?}");
        match job.command.request.op {
            _ if job.outcome != Outcome::Done => {}
            Op::Read => activity.reads[job.cache.index()] += 1,
            Op::Write => activity.writes[job.cache.index()] += 1,
            Op::Flush => activity.flushes += 1,
        }
        self.in_flight -= 1;
        if self.alone == Some(slot) {
            self.alone = None;
        }
        self.done.push_back((slot, at));
    }

    #[inline]
    pub(super) fn has_completions(&self) -> bool {
        !self.done.is_empty()
    }

    /// Passes the next command that is done on to `receiver`. Its tag is free from now on.
    #[inline]
    pub(super) fn poll<R>(&mut self, receiver: impl FnOnce(Completion) -> R) -> Option<R> {
        let (slot, completed) = self.done.pop_front()?;
        self.free.push(slot);
        let job = &self.jobs[slot as usize];
        Some(receiver(Completion {
            tag: Tag(slot),
            number: job.command.number,
            request: job.command.request,
            submitted: job.submitted,
            completed,
            outcome: job.outcome,
            parts: job.parts,
            cache: job.cache,
            travel: job.travel,
        }))
    }

    /// The outstanding commands, ordered by their submission; afterwards none of them is in flight.
    pub(super) fn abandon(&mut self) -> Vec<u32> {
        (self.alone, self.in_flight) = (None, 0);
        let is_done = |slot: &u32| self.done.iter().any(|(done, _)| done == slot);
        let slots = 0..self.jobs.len() as u32;
        let mut left: Vec<u32> = slots.filter(|slot| !self.free.contains(slot) && !is_done(slot)).collect();
        left.sort_by_key(|slot| self.jobs[*slot as usize].submitted);
        left
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LastCommand {
    pub(super) was_write: bool,
    /// Block after the last one read, and after the last one written, by a command.
    pub(super) read_end: Lbn,
    pub(super) write_end: Lbn,
}

impl LastCommand {
    pub(super) const NONE: LastCommand =
        LastCommand { was_write: false, read_end: Lbn(u64::MAX), write_end: Lbn(u64::MAX) };
}
