//! Faults of a disk: blocks that cannot be read, blocks that take several revolutions, a disk that fails slowly
//! (`slow.rs`), a disk that dies.
//!
//! A read of a block that cannot be read is retried for some revolutions and ends with [`Outcome::MediumError`]; none of its data
//! go to the host. A write to such a block moves it to a spare, as drives do, so that it is good again, unless the fault is
//! permanent. The cache answers its blocks as usual. Read-ahead ends before a block with a fault instead of trying it.
//!
//! A dead disk ends everything with [`Outcome::Dead`], and the contents of its cache are lost.
//!
//! *Assumptions:* where neither the fault nor the drive file gives the number of retries, it is [`Fault::USUAL_TURNS`]. A write to
//! a bad block, and later accesses to its new place, take no longer than others. A write of part of a physical sector is carried
//! out although the rest of it cannot be read.

use super::job::Job;
use super::split::Part;
use super::{Device, Outcome};
use crate::link::HostLink;
use headstack_model::spec::{SlowPatternSpec, SlowPeriodSpec, StallSpec};
use headstack_model::{Instant, Lbn, Nanos};
use std::collections::VecDeque;
use std::ops::Range;

/// A fault of a disk.
#[allow(missing_docs, reason = "the names say it; `end` is the block after the last")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Blocks that cannot be read.
    Medium {
        start: Lbn,
        end: Lbn,
        /// Revolutions for which a read retries. Default: those of the drive's retries, or [`Fault::USUAL_TURNS`].
        turns: Option<u32>,
        /// Whether the blocks remain unreadable after they are written.
        stays: bool,
    },
    /// Blocks whose every access takes some further revolutions.
    Slow {
        start: Lbn,
        end: Lbn,
        /// Further revolutions of an access that touches them.
        turns: u32,
    },
    /// A period in which accesses lose time.
    SlowPeriod(SlowPeriodSpec),
    /// Times in which no access begins.
    Stalls(StallSpec),
    /// A pattern of slowness that was observed in the field.
    SlowPattern(SlowPatternSpec),
    /// The disk responds to nothing any more.
    Dead {
        from: Instant,
        /// Time after which a command is considered failed, counted from the death or from its submission.
        timeout: Nanos,
    },
}

impl Fault {
    /// Revolutions for which a drive retries a block by default.
    pub const USUAL_TURNS: u32 = 8;
    /// The most revolutions of a fault.
    pub const TURNS_MAX: u32 = 100_000;
}

/// Why a disk cannot have a fault.
#[allow(missing_docs, reason = "the names say it; `end` is the block after the last")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No blocks.
    #[error("no block from {} on: the count is 0 (1 or more)", .start.0)]
    NoBlocks { start: Lbn },
    /// Blocks that the drive does not have.
    #[error("blocks {start} to {end} (not included) are outside the drive's 0 to {sectors}", start = .start.0, end = .end.0)]
    Blocks { start: Lbn, end: Lbn, sectors: u64 },
    /// No revolutions, or too many.
    #[error("{0} turns are outside 1 to {max}", max = Fault::TURNS_MAX)]
    Turns(u32),
    /// A value of a slow period, of stalls or of a pattern outside its range.
    #[error("{key}: {message}")]
    Slow { key: String, message: String },
}

impl Fault {
    /// Checks the ranges of slow periods, stalls and patterns for a drive with these numbers of heads and blocks.
    pub(super) fn check_slow(&self, heads: u32, sectors: u64) -> Result<(), FaultError> {
        let checked = match self {
            Fault::SlowPeriod(spec) => spec.check("", heads, sectors),
            Fault::Stalls(spec) => spec.check(""),
            Fault::SlowPattern(spec) => spec.check(""),
            Fault::Medium { .. } | Fault::Slow { .. } | Fault::Dead { .. } => Ok(()),
        };
        checked.map_err(|fault| FaultError::Slow { key: fault.key, message: fault.message })
    }
}

#[derive(Clone, Copy, Debug)]
struct Run {
    start: Lbn,
    end: Lbn,
    turns: u32,
    /// Whether the blocks can be read after the retries.
    readable: bool,
    stays: bool,
}

impl Run {
    fn touches(&self, blocks: &Range<Lbn>) -> bool {
        self.start < blocks.end && blocks.start < self.end
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct BadBlocks(Vec<Run>);

impl BadBlocks {
    /// Adds the bad or slow blocks of a fault, with the number of retries of the drive file.
    ///
    /// *Errors:* as [`Device::inject`](super::Device::inject).
    pub(super) fn inject(
        &mut self,
        fault: Fault,
        retry_turns: Option<u32>,
        sectors: u64,
    ) -> Result<(), FaultError> {
        let usual = retry_turns.unwrap_or(Fault::USUAL_TURNS);
        let (start, end, turns, readable, stays) = match fault {
            Fault::Medium { start, end, turns, stays } => (start, end, turns.unwrap_or(usual), false, stays),
            Fault::Slow { start, end, turns } => (start, end, turns, true, true),
            _ => return Ok(()),
        };
        if start >= end {
            return Err(FaultError::NoBlocks { start });
        }
        if end.0 > sectors {
            return Err(FaultError::Blocks { start, end, sectors });
        }
        if !(1..=Fault::TURNS_MAX).contains(&turns) {
            return Err(FaultError::Turns(turns));
        }
        self.0.push(Run { start, end, turns, readable, stays });
        Ok(())
    }

    fn touched(&self, blocks: Range<Lbn>) -> impl Iterator<Item = &Run> {
        self.0.iter().filter(move |run| run.touches(&blocks))
    }

    pub(super) fn is_sound(&self, start: Lbn, end: Lbn) -> bool {
        self.touched(start..end).next().is_none()
    }

    /// Block before `end` up to which blocks from `start` on have no fault.
    pub(super) fn sound_to(&self, start: Lbn, end: Lbn) -> Lbn {
        self.touched(start..end).map(|run| run.start.max(start)).min().unwrap_or(end)
    }

    /// Block from which on the blocks up to `end` have no fault.
    pub(super) fn sound_from(&self, start: Lbn, end: Lbn) -> Lbn {
        self.touched(start..end).map(|run| run.end.min(end)).max().unwrap_or(start)
    }

    pub(super) fn slow_turns(&self, start: Lbn, end: Lbn) -> u32 {
        self.touched(start..end).filter(|run| run.readable).map(|run| run.turns).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first of the blocks that cannot be read, and the number of retries.
    pub(super) fn unreadable(&self, blocks: Range<Lbn>) -> Option<(Lbn, u32)> {
        let unreadable = self.touched(blocks.clone()).filter(|run| !run.readable);
        unreadable.map(|run| (run.start.max(blocks.start), run.turns)).min()
    }

    pub(super) fn cure(&mut self, blocks: &Range<Lbn>) {
        let mut index = 0;
        while index < self.0.len() {
            let run = self.0[index];
            if run.readable || run.stays || !run.touches(blocks) {
                index += 1;
                continue;
            }
            self.0.swap_remove(index);
            let parts = [
                Run { end: blocks.start.min(run.end), ..run },
                Run { start: blocks.end.max(run.start), ..run },
            ];
            self.0.extend(parts.into_iter().filter(|part| part.start < part.end));
        }
    }
}

/// Power, and the death of the disk.
#[derive(Debug)]
pub(super) struct Health {
    pub(super) powered_off: bool,
    /// When the disk dies, or died; `Instant::MAX` for never.
    pub(super) dies_at: Instant,
    pub(super) is_dead: bool,
    /// Time after the death, or after its submission, at which a command ends.
    timeout: Nanos,
    /// Commands that a dead disk has, by when they end.
    ending: VecDeque<(Instant, u32)>,
}

impl Default for Health {
    fn default() -> Health {
        let (timeout, ending) = (Nanos::ZERO, VecDeque::new());
        Health { powered_off: false, dies_at: Instant::MAX, is_dead: false, timeout, ending }
    }
}

impl Health {
    /// Whether the disk dies at some time, or has died.
    #[inline]
    pub(super) fn dies(&self) -> bool {
        self.dies_at != Instant::MAX
    }

    /// Makes the disk die at a time; commands end `timeout` after that.
    pub(super) fn die_at(&mut self, time: Instant, timeout: Nanos) {
        (self.dies_at, self.timeout) = (time, timeout);
    }

    /// When a disk that dies, or is dead, next has something to do; `next` is when a command or the arm has.
    #[cold]
    pub(super) fn next_event(&self, next: Instant, is_idle: bool) -> Instant {
        match self.is_dead {
            true => self.ending.front().map_or(Instant::MAX, |(at, _)| *at),
            false if is_idle => next,
            false => next.min(self.dies_at),
        }
    }

    /// The next command whose timeout has expired, and when.
    pub(super) fn ended(&mut self, now: Instant) -> Option<(Instant, u32)> {
        let (at, _) = self.ending.front()?;
        if *at <= now { self.ending.pop_front() } else { None }
    }

    pub(super) fn fail(&mut self, slot: u32, job: &mut Job, now: Instant) {
        job.outcome = Outcome::Dead;
        // The time of an access or a transfer beyond this moment never passes.
        job.parts = job.parts.first(now - job.submitted);
        job.accounted = job.submitted + job.parts.total();
        job.account(Part::Queued, now);
        self.ending.push_back((now + self.timeout, slot));
    }
}

/// Handles everything due up to `now`, when the disk is dead.
#[cold]
pub(super) fn handle_death(device: &mut Device, link: &mut HostLink<'_>, now: Instant) {
    if !device.health.is_dead {
        let dies_at = device.health.dies_at;
        device.handle_due(link, dies_at);
        device.now = device.now.max(dies_at);
        die(device, link);
    }
    while let Some((at, slot)) = device.health.ended(now) {
        device.job(slot).account(Part::Queued, at);
        device.complete(slot, at);
    }
    device.now = device.now.max(now);
}

/// Stops permanently; outstanding commands end after their timeout.
fn die(device: &mut Device, link: &mut HostLink<'_>) {
    device.stop();
    link.release_bus(device.now);
    device.health.is_dead = true;
    let left = device.commands.abandon();
    left.into_iter().for_each(|slot| fail_dead(device, slot));
}

/// Fails a command because the disk is dead.
pub(super) fn fail_dead(device: &mut Device, slot: u32) {
    device.commands.in_flight += 1;
    device.health.fail(slot, &mut device.commands.jobs[slot as usize], device.now);
}
