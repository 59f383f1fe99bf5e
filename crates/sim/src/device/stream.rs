//! Sequential runs, which keep the arm for a while although other commands wait, and commands that the drive has chosen ahead.
//!
//! The sectors of a track pass under the head without a break. A waiting command that continues the access in progress is therefore
//! served at once: its overhead was over, or is over while its sectors pass. A drive reads ahead of a run for as long as that pays,
//! because leaving costs it a seek and a turn. Other commands wait no longer than `queue.stream_hold_ms` for that.
//!
//! *Source:* that queued sequential reads run at the media's rate is measured on every drive of which both depths are known
//! (`studies/everyday`). The rule and its time are assumptions: no maker has published them.

use super::Device;
use super::cost::{Avoiding, Cost, ReadBuffer};
use super::destage::Destage;
use super::disk::Work;
use super::job::Job;
use super::media::{Arm, Delivered};
use super::port::Wanted;
use super::split::Part;
use super::{CacheUse, Outcome};
use crate::link::HostLink;
use headstack_model::cache::{Cache, Hit};
use headstack_model::{DriveSpec, Instant, Lbn, Nanos, Op, Request};
use headstack_policy::{Slot, SlotId};
use std::ops::Range;

/// The run for which the arm works.
#[derive(Clone, Debug)]
pub(super) struct StreamHold {
    /// Time for which a run keeps the arm. With 0 it keeps it while no other command waits, and then has its place in the order; none for
    /// a drive that does not prefer runs.
    hold: Option<Nanos>,
    /// Times `hold` for which waiting commands continue a run.
    holds: u64,
    /// Since when the arm works for the present run.
    since: Instant,
    /// The blocks of a run whose time is over: the next choice prefers other commands.
    over: Option<Range<Lbn>>,
}

impl StreamHold {
    pub(super) fn new(spec: &DriveSpec) -> StreamHold {
        let hold = spec.queue.stream_hold_ms.map(Nanos::from_ms);
        let holds = u64::from(spec.queue.stream_holds);
        StreamHold { hold, holds, since: Instant::ZERO, over: None }
    }

    /// Whether the drive prefers runs at all.
    #[inline]
    pub(super) fn is_enabled(&self) -> bool {
        self.hold.is_some()
    }

    /// Records since when the arm works for another run.
    #[inline]
    pub(super) fn begin(&mut self, since: Instant) {
        self.since = since;
    }

    /// When the run's time to read ahead is over, while other commands wait.
    fn ends(&self) -> Instant {
        self.ends_after(1)
    }

    /// When the run's time is over even for waiting commands that continue it.
    fn ends_for_waiting(&self) -> Instant {
        self.ends_after(self.holds)
    }

    fn ends_after(&self, holds: u64) -> Instant {
        self.hold.map_or(Instant::ZERO, |hold| self.since + Nanos(holds * hold.0))
    }
}

/// The buffers from which a read can be answered.
pub(super) struct ReadBuffers<'a> {
    pub(super) cache: &'a Cache,
    pub(super) destage: &'a Destage,
}

impl ReadBuffer for ReadBuffers<'_> {
    fn holds(&self, request: &Request) -> bool {
        request.op == Op::Read
            && !request.fua
            && (matches!(self.cache.find(request.lbn, request.end()), Hit::Whole(_))
                || self.destage.holds(request.lbn, request.end()))
    }
}

impl Device {
    /// The blocks in which a command counts to a run that has come to `from`: all that wait may be of the run, one behind the other.
    fn run_from(&self, from: Lbn) -> Range<Lbn> {
        let sectors = |slot: &Slot| u64::from(slot.request.sectors);
        let waiting: u64 = self.commands.waiting.candidates().map(sectors).sum();
        from..from + self.cache.segment_sectors().max(waiting)
    }

    /// Whether a run may keep the arm now, although other commands wait.
    pub(super) fn may_hold(&self) -> bool {
        self.stream.is_enabled()
            && self.now < self.stream.ends()
            && self.commands.waiting.allows_hold(self.now)
    }

    /// Whether the run of these blocks may continue. Its time is no limit while nothing else wants the arm.
    fn may_continue(&mut self, run: &Range<Lbn>) -> bool {
        if !self.commands.waiting.allows_hold(self.now) {
            return false;
        }
        if self.now < self.stream.ends_for_waiting() {
            return true;
        }
        let is_of_run = |slot: &Slot| run.contains(&slot.request.lbn);
        let others = self.commands.waiting.has_others(is_of_run) || self.destage_first();
        if !others {
            self.stream.begin(self.now);
        } else if self.stream.hold != Some(Nanos::ZERO) {
            self.stream.over = Some(run.clone());
        }
        !others
    }

    /// Serves the waiting reads that a segment holds by now, and starts one that continues it; false if there is none of the latter.
    pub(super) fn continue_reads(&mut self, segment: usize) -> bool {
        if !self.stream.is_enabled() {
            return false;
        }
        while !self.commands.waiting.is_empty() {
            let held = self.cache.blocks(segment);
            let continues = |slot: &Slot| held.start <= slot.request.lbn && slot.request.lbn <= held.end;
            let Some((id, end)) = self.waiting_read(continues) else { return false };
            let run = held.start..self.run_from(held.end).end;
            if self.disk.readable_to(held.end, end) < end || !self.may_continue(&run) {
                return false;
            }
            self.commands.waiting.remove(id);
            if end > held.end {
                self.job(id.0).media_from = held.end;
                self.read_from_media(id.0, Some(segment), true);
                return true;
            }
            self.cache.touch(segment, end);
            self.send_again(id.0);
        }
        false
    }

    /// The first of the waiting reads of this kind, with the block after its last.
    fn waiting_read(&self, is_wanted: impl Fn(&Slot) -> bool) -> Option<(SlotId, Lbn)> {
        let is_read = |slot: &&Slot| slot.request.op == Op::Read && !slot.request.fua;
        let mut reads = self.commands.waiting.candidates().filter(is_read);
        reads.find(|slot| is_wanted(slot)).map(|slot| (slot.id, slot.request.end()))
    }

    /// Lets the read-ahead of a run continue while other commands wait, and serves those of them that it has read; false if the arm must
    /// leave.
    pub(super) fn hold_read_ahead(&mut self) -> bool {
        if !self.disk.work.is_read_ahead() || !self.ahead.is_sequential() || !self.may_hold() {
            return false;
        }
        let segment = self.ahead.segment();
        let held = self.cache.blocks(segment);
        let covered = |slot: &Slot| held.start <= slot.request.lbn && slot.request.end() <= held.end;
        while let Some((id, _)) = self.waiting_read(covered) {
            self.commands.waiting.remove(id);
            self.note_hit(id.0, segment);
            self.send_again(id.0);
        }
        let ahead = |slot: &Slot| held.start <= slot.request.lbn && slot.request.lbn <= held.end;
        let wanted = self.waiting_read(ahead).map(|(_, end)| end);
        let next = self.ahead.next_point(&self.disk, wanted);
        self.disk.event = next.min(self.stream.ends());
        true
    }

    /// Whether a write is one of a stream that the drive writes without a pause at its own place: it continues such a write in time, or
    /// begins a run of waiting commands that is longer than the log takes, of which each arrives in less time than it takes on the media.
    pub(super) fn is_of_fast_stream(&self, slot: u32) -> bool {
        let Some(log) = &self.media_cache else { return false };
        let job = &self.commands.jobs[slot as usize];
        let request = job.command.request;
        if request.lbn == self.disk.last_lbn && self.is_in_time(job) {
            return true;
        }
        let sectors = u64::from(request.sectors);
        let arrives = self.config.overheads(true, true).write + self.port.bus.write_time(sectors);
        if arrives >= self.disk.drive.media_time(&job.extent, sectors) {
            return false;
        }
        let (mut commands, mut end) = (1, request.end());
        let follows = |slot: &&Slot, end: Lbn| slot.request.op == Op::Write && slot.request.lbn == end;
        while let Some(next) = self.commands.waiting.candidates().find(|slot| follows(slot, end)) {
            (commands, end) = (commands + 1, next.request.end());
        }
        log.is_for_own_place(commands, end - request.lbn)
    }

    /// Whether the arm can write a command behind the last access at its own place without a lost revolution: its data arrive before
    /// their sectors do. A part of a physical sector is read first, which loses one.
    fn is_in_time(&self, job: &Job) -> bool {
        let Arm { place, at } = self.disk.arm;
        let Request { lbn, sectors, .. } = job.command.request;
        let physical = self.disk.physical_sectors;
        let is_whole = lbn.0.is_multiple_of(physical) && u64::from(sectors).is_multiple_of(physical);
        let (first, all) = (job.arriving.time_of(1), job.arriving.time_of(u64::from(sectors)));
        is_whole
            && place.cylinder.abs_diff(job.place.cylinder) <= 1
            && job.overhead_done.max(first) <= at
            && all <= at + self.disk.drive.media_time(&job.extent, u64::from(sectors))
            && self.now <= at
    }

    /// Starts a waiting write-through that continues the last access, whose data are in the buffer in time; false if there is none.
    pub(super) fn continue_writes(&mut self) -> bool {
        if !self.stream.is_enabled() || !matches!(self.disk.work, Work::Idle) {
            return false;
        }
        let (next, free) = (self.disk.last_lbn, self.disk.arm.at);
        let jobs = &self.commands.jobs;
        let continues = |slot: &&Slot| {
            slot.request.op == Op::Write
                && slot.request.lbn == next
                && jobs[slot.id.0 as usize].overhead_done <= free
        };
        let Some(id) = self.commands.waiting.candidates().find(continues).map(|slot| slot.id) else {
            return false;
        };
        if self.disk.arm.at < self.now || !self.may_continue(&self.run_from(next)) {
            return false;
        }
        self.commands.waiting.remove(id);
        self.start(id.0)
    }

    /// Starts the oldest waiting command if it is a write to the log, which continues at the arm. Such writes need no order: each
    /// costs the same.
    pub(super) fn continue_log(&mut self) -> bool {
        if self.media_cache.is_none() && self.disk.shingled.is_none() {
            return false;
        }
        let here = self.disk.arm.place;
        let continues = |slot: &&Slot| match (&self.media_cache, &self.disk.shingled) {
            _ if slot.request.op != Op::Write => false,
            (Some(log), _) => log.continues_at(here, &slot.request),
            (None, shingles) => shingles.as_ref().is_some_and(|cache| cache.log_end == Some(here)),
        };
        let oldest = self.commands.waiting.candidates().next().filter(continues);
        let is_free = matches!(self.disk.work, Work::Idle)
            && self.commands.waiting.allows_hold(self.now)
            && !self.log_first()
            && !self.destage_first();
        let Some(id) = oldest.filter(|_| is_free).map(|slot| slot.id) else { return false };
        self.commands.waiting.remove(id);
        self.start(id.0)
    }

    /// Destages the dirty run that continues the last access; false if there is none.
    pub(super) fn continue_destage(&mut self) -> bool {
        let next = self.disk.last_lbn;
        self.stream.is_enabled()
            && self.destage.continues_at(next)
            && self.may_continue(&self.run_from(next))
            && self.start_destage()
    }

    /// Chooses the next command from the position of the arm, without those of a run whose time is over.
    pub(super) fn choose(&mut self) -> Option<u32> {
        let arm = self.disk.arm_from(self.now);
        let over = self.stream.over.take();
        let cost = Cost {
            disk: &self.disk,
            buffer: ReadBuffers { cache: &self.cache, destage: &self.destage },
            targets: &self.commands.jobs[..],
            arm,
        };
        let SlotId(slot) = match over {
            None => self.commands.waiting.choose(&cost, arm.at)?,
            Some(run) => self.commands.waiting.choose(&Avoiding { cost: &cost, run }, arm.at)?,
        };
        self.disk.sweep_to_edges(self.commands.waiting.way(), self.now);
        Some(slot)
    }

    /// Chooses commands ahead, as many as the drive commits, from where the arm will be after those before them.
    #[inline]
    pub(super) fn commit_ahead(&mut self) {
        if self.may_commit() && self.disk.work.is_fixed() {
            self.commit_more();
        }
    }

    #[inline]
    fn may_commit(&self) -> bool {
        self.commands.waiting.may_commit(self.destage.alternates())
    }

    #[inline(never)]
    fn commit_more(&mut self) {
        while self.may_commit() {
            let arm = self.arm_after_committed();
            let cost = Cost {
                disk: &self.disk,
                buffer: ReadBuffers { cache: &self.cache, destage: &self.destage },
                targets: &self.commands.jobs[..],
                arm,
            };
            if !self.commands.waiting.commit(&cost, arm.at) {
                return;
            }
        }
    }

    /// Where and when the arm is free after the access in progress and all commands chosen ahead, if each takes its usual time.
    fn arm_after_committed(&self) -> Arm {
        let drive = &self.disk.drive;
        self.commands.waiting.committed().fold(self.disk.arm_from(self.now), |arm, id| {
            let job = &self.commands.jobs[id.0 as usize];
            let is_write = job.command.request.op == Op::Write;
            let wait = drive.positioning(arm, job.place, job.angle, is_write);
            let sectors = u64::from(job.command.request.sectors);
            Arm { place: job.place, at: arm.at + wait + drive.media_time(&job.extent, sectors) }
        })
    }

    /// Whether a command waits for which the read-ahead in progress must stop.
    pub(super) fn others_press(&self) -> bool {
        !(self.commands.waiting.is_empty() || self.ahead.is_sequential() && self.may_hold())
    }

    /// Starts a read of a block that cannot be read; false if all its blocks can be.
    #[cold]
    pub(super) fn start_unreadable(&mut self, slot: u32) -> bool {
        let Job { command, media_from: start, .. } = self.commands.jobs[slot as usize];
        let end = command.request.end();
        let Some((bad, turns)) = self.disk.bad_blocks.unreadable(start..end) else { return false };
        let begins = self.access_begins(slot);
        let arm = Arm { place: self.disk.arm.place, at: begins };
        let pass = self.disk.drive.plan(&self.disk.last_extent, arm, start, bad + 1 - start, false);
        let mut span = self.disk.drive.read(arm, pass, bad + 1, &mut Delivered::nowhere());
        span.delay_media(self.disk.turns(turns) + self.disk.slow_time(start, bad));
        let travel = self.disk.travel_to(pass.place());
        let job = &mut self.commands.jobs[slot as usize];
        self.disk.account(job, &span, travel);
        job.outcome = Outcome::MediumError;
        self.port.want(span.end, slot, Wanted::Finish);
        self.disk.move_to_end(&span, bad + 1);
        self.destage.last_was_destage = false;
        let start = command.request.lbn;
        self.disk.occupy(Work::Reading { segment: None, start, end: bad + 1 }, span.end);
        true
    }

    /// When the electronics are free for other commands, if that is before the data of the command received now cross from `begins` on.
    pub(super) fn overlapping_from(&self, begins: Instant) -> Option<Instant> {
        let free = self.now + self.config.pipelined?;
        (free < begins && !self.port.is_one_commands() && !self.port.bus.holds()).then_some(free)
    }

    /// Sends a read that the buffer holds from `begins` on, after other commands that are received meanwhile.
    pub(super) fn send_hit_later(&mut self, slot: u32, free: Instant, begins: Instant) {
        let ready = begins.saturating_sub(self.port.bus.data_preparation);
        let job = self.job(slot);
        job.cache = CacheUse::Whole;
        job.account(Part::Overhead, ready);
        let sectors = u64::from(job.command.request.sectors);
        self.port.take(free, None);
        self.port.want(ready, slot, Wanted::ToHost { sectors, bound: Instant::ZERO, crossing: false });
    }

    #[inline(never)]
    pub(super) fn receive_flush(&mut self, slot: u32, start: Instant) {
        let ready = start + self.config.overheads(self.last.was_write, false).write;
        let job = self.job(slot);
        job.account(Part::Overhead, ready);
        job.overhead_done = ready;
        self.port.take(ready, None);
        self.destage.flushes.push_back(slot);
        self.finish_flushes(ready);
        self.run_arm();
    }

    /// Receives the data of a write for which there is room, from `begins` on; other commands are received until then.
    pub(super) fn accept_write(&mut self, link: &mut HostLink<'_>, slot: u32, begins: Instant) {
        let Some(free) = self.overlapping_from(begins) else { return self.store_write(link, slot, begins) };
        let ready = begins.saturating_sub(self.port.bus.data_preparation);
        self.port.take(free, None);
        self.port.want(ready, slot, Wanted::FromHost);
    }
}
