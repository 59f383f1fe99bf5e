//! Faults of a disk: blocks that cannot be read, blocks that take several revolutions, a disk that dies.
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

use super::arm::Work;
use super::media::{Arm, Delivered};
use super::port::Wanted;
use super::split::Part;
use super::{Device, Outcome, Travel};
use headstack_model::{Lbn, Nanos};
use std::collections::VecDeque;
use std::ops::Range;

/// Something that is wrong with a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Blocks that cannot be read.
    Medium {
        /// First block.
        start: Lbn,
        /// Block after the last.
        end: Lbn,
        /// Revolutions for which a read retries. Default: those of the drive's retries, or [`Fault::USUAL_TURNS`].
        turns: Option<u32>,
        /// Whether they stay so when they are written.
        stays: bool,
    },
    /// Blocks whose every access takes some further revolutions.
    Slow {
        /// First block.
        start: Lbn,
        /// Block after the last.
        end: Lbn,
        /// Further revolutions of an access that touches them.
        turns: u32,
    },
    /// The disk does nothing any more.
    Dead {
        /// From this time on.
        from: Nanos,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No blocks, or some that the drive does not have.
    #[error("blocks {start} to {end} (not included) are outside the drive's 0 to {sectors}, or none", start = .start.0, end = .end.0)]
    Blocks {
        /// First block.
        start: Lbn,
        /// Block after the last.
        end: Lbn,
        /// Blocks that the drive has.
        sectors: u64,
    },
    /// No revolutions, or too many.
    #[error("{0} turns are outside 1 to {max}", max = Fault::TURNS_MAX)]
    Turns(u32),
}

/// A run of blocks with a fault.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: Lbn,
    end: Lbn,
    turns: u32,
    /// Whether they can be read in the end.
    readable: bool,
    stays: bool,
}

impl Run {
    fn touches(&self, blocks: &Range<Lbn>) -> bool {
        self.start < blocks.end && blocks.start < self.end
    }
}

/// The faults of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    runs: Vec<Run>,
    /// How long after it died commands end.
    timeout: Nanos,
    is_dead: bool,
    /// Commands that a dead disk has, by when they end.
    ending: VecDeque<(Nanos, u32)>,
}

impl Faults {
    fn touched(&self, blocks: Range<Lbn>) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.touches(&blocks))
    }

    /// The first of the blocks that cannot be read, and the number of retries.
    fn unreadable(&self, blocks: Range<Lbn>) -> Option<(Lbn, u32)> {
        let unreadable = self.touched(blocks.clone()).filter(|run| !run.readable);
        unreadable.map(|run| (run.start.max(blocks.start), run.turns)).min()
    }

    /// The next command whose timeout has expired, and when.
    fn ended(&mut self, now: Nanos) -> Option<(Nanos, u32)> {
        let (at, _) = self.ending.front()?;
        if *at <= now { self.ending.pop_front() } else { None }
    }

    /// Makes blocks good that are written.
    fn cure(&mut self, blocks: &Range<Lbn>) {
        let mut index = 0;
        while index < self.runs.len() {
            let run = self.runs[index];
            if run.readable || run.stays || !run.touches(blocks) {
                index += 1;
                continue;
            }
            self.runs.swap_remove(index);
            let parts = [
                Run { end: blocks.start.min(run.end), ..run },
                Run { start: blocks.end.max(run.start), ..run },
            ];
            self.runs.extend(parts.into_iter().filter(|part| part.start < part.end));
        }
    }
}

impl Device {
    /// Injects a fault into the disk, from its next access on.
    ///
    /// *Errors:* blocks that it does not have, or revolutions outside 1 to [`Fault::TURNS_MAX`].
    pub fn inject(&mut self, fault: Fault) -> Result<(), FaultError> {
        let usual = self.chance.retries.map_or(Fault::USUAL_TURNS, |retries| retries.turns_max.max(1));
        let run = match fault {
            Fault::Medium { start, end, turns, stays } => {
                Run { start, end, turns: turns.unwrap_or(usual), readable: false, stays }
            }
            Fault::Slow { start, end, turns } => Run { start, end, turns, readable: true, stays: true },
            Fault::Dead { from, timeout } => {
                self.health.dies_at = from.max(self.now);
                self.health.faults.get_or_insert_default().timeout = timeout;
                return Ok(());
            }
        };
        let Run { start, end, turns, .. } = run;
        if start >= end || end.0 > self.size.sectors {
            return Err(FaultError::Blocks { start, end, sectors: self.size.sectors });
        }
        if !(1..=Fault::TURNS_MAX).contains(&turns) {
            return Err(FaultError::Turns(turns));
        }
        self.health.faults.get_or_insert_default().runs.push(run);
        Ok(())
    }

    /// Whether no block of these has a fault.
    pub(super) fn is_sound(&self, start: Lbn, end: Lbn) -> bool {
        self.health.faults.as_ref().is_none_or(|faults| faults.touched(start..end).next().is_none())
    }

    /// Up to where blocks before `end` can be read ahead from `start` on.
    pub(super) fn sound_to(&self, start: Lbn, end: Lbn) -> Lbn {
        let Some(faults) = &self.health.faults else { return end };
        faults.touched(start..end).map(|run| run.start.max(start)).min().unwrap_or(end)
    }

    /// From where on blocks from `start` on are read ahead before `end`.
    pub(super) fn sound_from(&self, start: Lbn, end: Lbn) -> Lbn {
        let Some(faults) = &self.health.faults else { return start };
        faults.touched(start..end).map(|run| run.end.min(end)).max().unwrap_or(start)
    }

    /// Revolutions that an access to these blocks loses to slow ones.
    pub(super) fn slow_time(&self, start: Lbn, end: Lbn) -> Nanos {
        let Some(faults) = &self.health.faults else { return Nanos::ZERO };
        self.turns(faults.touched(start..end).filter(|run| run.readable).map(|run| run.turns).sum())
    }

    fn turns(&self, turns: u32) -> Nanos {
        Nanos(self.drive.mechanics.spindle().period().0 * u64::from(turns))
    }

    /// Makes blocks good that are written.
    pub(super) fn cure(&mut self, blocks: &Range<Lbn>) {
        if let Some(faults) = &mut self.health.faults {
            faults.cure(blocks);
        }
    }

    /// Starts a read of a block that cannot be read; false if all its blocks can be.
    pub(super) fn start_unreadable(&mut self, slot: u32) -> bool {
        let Some(faults) = &self.health.faults else { return false };
        let start = self.commands.jobs[slot as usize].media_from;
        let request = self.commands.jobs[slot as usize].command.request;
        let Some((bad, turns)) = faults.unreadable(start..request.end()) else { return false };
        let begins = self.access_begins(slot);
        let arm = Arm { place: self.arm.place, at: begins };
        let pass = self.drive.plan(&self.last.extent, arm, start, bad + 1 - start, false);
        let mut span = self.drive.read(arm, pass, bad + 1, &mut Delivered::nowhere());
        self.last.extent = span.last.extent;
        span.delay_media(self.turns(turns) + self.slow_time(start, bad));
        let travel = Travel { from: self.arm.place.cylinder, to: pass.place().cylinder };
        self.account_span(slot, &span, travel);
        self.job(slot).outcome = Outcome::MediumError;
        self.want_port(span.end, slot, Wanted::Finish);
        self.arm = span.arm();
        self.last.lbn = bad + 1;
        self.destage.last_was_destage = false;
        self.arm_event = span.end;
        self.work = Work::Reading { segment: None, start: request.lbn, end: bad + 1 };
        true
    }

    /// Whether it is dead by now.
    pub(super) fn is_dead(&self) -> bool {
        self.health.faults.as_ref().is_some_and(|faults| faults.is_dead)
    }

    /// Whether it has died by `now`.
    pub(crate) fn has_died(&self, now: Nanos) -> bool {
        self.health.dies_at <= now
    }

    /// When a disk that dies, or is dead, next has something to do; `next` is when it would if it did not.
    #[cold]
    pub(super) fn event_of_dying(&self, next: Nanos) -> Nanos {
        match &self.health.faults {
            Some(faults) if faults.is_dead => faults.ending.front().map_or(Nanos::MAX, |(at, _)| *at),
            _ if self.outstanding() > 0 => next.min(self.health.dies_at),
            _ => next,
        }
    }

    /// Handles everything due up to `now`, when the disk is dead.
    #[cold]
    pub(super) fn handle_death(&mut self, now: Nanos) {
        if !self.is_dead() {
            self.go_on(self.health.dies_at);
            self.die();
        }
        while let Some((at, slot)) = self.health.faults.as_mut().and_then(|faults| faults.ended(now)) {
            self.job(slot).account(Part::Queued, at);
            self.complete(slot, at);
        }
        self.now = self.now.max(now);
    }

    /// Stops permanently; outstanding commands end after their timeout.
    fn die(&mut self) {
        self.stop();
        self.release_bus();
        self.commands.alone = None;
        self.commands.in_flight = 0;
        let mut left: Vec<u32> = (0..self.commands.jobs.len() as u32).collect();
        left.retain(|slot| {
            !self.commands.free.contains(slot) && self.commands.done.iter().all(|(done, _)| done != slot)
        });
        left.sort_by_key(|slot| self.commands.jobs[*slot as usize].submitted);
        self.health.faults.get_or_insert_default().is_dead = true;
        left.into_iter().for_each(|slot| self.fail_dead(slot));
    }

    /// Has a command fail because the disk is dead.
    pub(super) fn fail_dead(&mut self, slot: u32) {
        let now = self.now;
        self.commands.in_flight += 1;
        let job = self.job(slot);
        job.outcome = Outcome::Dead;
        // The time of an access or a transfer beyond this moment never passes.
        job.parts = job.parts.first(now - job.submitted);
        job.accounted = job.submitted + job.parts.total();
        job.account(Part::Queued, now);
        let faults = self.health.faults.get_or_insert_default();
        faults.ending.push_back((now + faults.timeout, slot));
    }
}
