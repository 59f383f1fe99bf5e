//! The disk: platters with their faults, and the arm over them with its present work.

use super::activity::{Activity, Travel};
use super::arm_log::ArmLog;
use super::chance::Chance;
use super::drive::Drive;
use super::faults::{BadBlocks, Fault, FaultError};
use super::interference::Interference;
use super::job::Job;
use super::media::{Arm, Arriving, Delivered, Room, Span};
use super::persistent_cache::PersistentCache;
use super::record::{List, Record};
use super::slow::{PlannedAccess, Slowness};
use super::view::ArmWork;
use headstack_model::{DriveSpec, Extent, Instant, Lbn, Nanos, Op, TrackPlace};
use headstack_policy::order::Edge;
use std::ops::Range;
use std::sync::Arc;

/// The arm's work. One byte holds the kind, which is compared often; the rest is seldom read.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Work {
    Idle,
    ReadAhead,
    /// Nothing until the next command is chosen.
    Choosing,
    /// Reads for a command, into a segment where one was free, up to `end`.
    Reading {
        segment: Option<usize>,
        start: Lbn,
        end: Lbn,
    },
    /// Writes: a command's blocks, or cached ones.
    Writing {
        slot: Option<u32>,
    },
    /// Moves writes of the log on the media to their own places.
    Emptying,
    /// None yet: the arm is reserved for a write whose data must arrive in the cache first.
    Reserved {
        slot: u32,
    },
    /// The access of a drive without a buffer, which waits for the bus.
    Passing {
        is_write: bool,
    },
}

impl Work {
    pub(super) fn is_read_ahead(self) -> bool {
        matches!(self, Work::ReadAhead)
    }

    pub(super) fn is_writing(self) -> bool {
        matches!(self, Work::Writing { .. })
    }

    /// Whether nothing can cut it off.
    pub(super) fn is_fixed(self) -> bool {
        !matches!(self, Work::Idle | Work::ReadAhead)
    }

    /// Its kind for display.
    pub(super) fn kind(self) -> ArmWork {
        match self {
            Work::Idle | Work::Choosing => ArmWork::Idle,
            Work::Reading { .. } | Work::Passing { is_write: false } => ArmWork::Read,
            Work::ReadAhead => ArmWork::ReadAhead,
            Work::Writing { slot: None } | Work::Emptying => ArmWork::Destage,
            Work::Writing { slot: Some(_) } | Work::Reserved { .. } | Work::Passing { is_write: true } => {
                ArmWork::Write
            }
        }
    }

    /// The segment that a command's read is filling.
    pub(super) fn filling(self) -> Option<usize> {
        match self {
            Work::Reading { segment, .. } => segment,
            _ => None,
        }
    }
}

/// The platters and the arm.
#[derive(Debug)]
pub(super) struct DiskArm {
    pub(super) drive: Arc<Drive>,
    pub(super) sectors: u64,
    pub(super) cylinders: u32,
    pub(super) heads: u32,
    /// Where the arm is, and since when (or from when on) it is free there.
    pub(super) arm: Arm,
    pub(super) work: Work,
    /// When the work needs attention; `Instant::MAX` when never.
    pub(super) event: Instant,
    /// The run of blocks accessed last, and the block after the last one accessed.
    pub(super) last_extent: Extent,
    pub(super) last_lbn: Lbn,
    /// Whether the disk has none of these: bad blocks, time that accesses lose, bands of shingled tracks, other arms that delay this one,
    /// a log of accesses. One check then replaces one of each.
    pub(super) is_plain: bool,
    chance: Chance,
    pub(super) bad_blocks: BadBlocks,
    slow: Slowness,
    /// The persistent cache of a shingled disk.
    pub(super) shingled: Option<Box<PersistentCache>>,
    /// The other arms of the same disk, if they delay this one.
    pub(super) interference: Option<Box<Interference>>,
    /// The media-write log, if it is enabled.
    pub(super) record: Option<Box<Record>>,
    /// The log of accesses, if it is enabled.
    pub(super) arm_log: Option<Box<ArmLog>>,
    pub(super) activity: Activity,
    write_seek_min: Nanos,
    pub(super) physical_sectors: u64,
}

impl DiskArm {
    /// The disk with the persistent cache of a shingled one, if it has one.
    pub(super) fn new(
        drive: Arc<Drive>,
        spec: &DriveSpec,
        chance: Chance,
        seed: u64,
        shingled: Option<Box<PersistentCache>>,
    ) -> DiskArm {
        let mut disk = DiskArm {
            sectors: drive.geometry.sectors(),
            drive,
            cylinders: spec.geometry.cylinders,
            heads: spec.geometry.heads,
            arm: Arm::default(),
            work: Work::Idle,
            event: Instant::MAX,
            last_extent: Extent::default(),
            last_lbn: Lbn(0),
            is_plain: false,
            chance,
            bad_blocks: BadBlocks::default(),
            shingled,
            slow: Slowness::new(&spec.mechanics, seed),
            interference: None,
            record: None,
            arm_log: None,
            activity: Activity::default(),
            write_seek_min: Nanos::from_ms(spec.bus.write_seek_min_ms),
            physical_sectors: u64::from(spec.physical_sector_bytes / spec.sector_bytes),
        };
        disk.update_is_plain();
        disk
    }

    fn update_is_plain(&mut self) {
        self.is_plain = self.bad_blocks.is_empty()
            && self.slow.is_none()
            && !self.chance.loses_turns()
            && self.shingled.is_none()
            && self.interference.is_none()
            && self.arm_log.is_none();
    }

    /// Adds a fault of the media or the arm, which has been checked; other faults change nothing here.
    ///
    /// *Errors:* as [`Device::inject`](super::Device::inject).
    pub(super) fn inject(&mut self, fault: Fault) -> Result<(), FaultError> {
        self.slow.inject(&fault);
        let injected = self.bad_blocks.inject(fault, self.retry_turns(), self.sectors);
        self.update_is_plain();
        injected
    }

    /// Makes the other arms of the same disk delay this one from now on.
    pub(super) fn interfere(&mut self, others: Interference) {
        self.interference = Some(Box::new(others));
        self.update_is_plain();
    }

    /// Enables the log of accesses.
    pub(super) fn log_arm(&mut self) {
        self.arm_log.get_or_insert_default();
        self.update_is_plain();
    }

    pub(super) fn turns(&self, turns: u32) -> Nanos {
        Nanos(self.drive.mechanics.spindle().period().0 * u64::from(turns))
    }

    /// Revolutions for which a read retries a bad block, if the drive file says so.
    pub(super) fn retry_turns(&self) -> Option<u32> {
        self.chance.retries.map(|retries| retries.turns_max.max(1))
    }

    /// The arm from `now` on, or from when it is free.
    pub(super) fn arm_from(&self, now: Instant) -> Arm {
        Arm { place: self.arm.place, at: self.arm.at.max(now) }
    }

    /// Makes the arm work until `event`.
    #[inline]
    pub(super) fn occupy(&mut self, work: Work, event: Instant) {
        (self.work, self.event) = (work, event);
    }

    /// Where the arm goes for an access to a track.
    pub(super) fn travel_to(&self, place: TrackPlace) -> Travel {
        Travel::to_track(self.arm.place.cylinder, place)
    }

    pub(super) fn sweep_to_edges(&mut self, edges: &[Edge], now: Instant) {
        for edge in edges {
            let cylinder = if *edge == Edge::First { 0 } else { self.cylinders - 1 };
            let from = self.arm.place;
            let to = TrackPlace { cylinder, head: from.head };
            let took = self.drive.mechanics.reposition(from, to, false);
            self.arm = Arm { place: to, at: self.arm.at.max(now) + took };
            self.activity.sweep_to_edge(Travel::to_track(from.cylinder, to), took);
        }
    }

    /// When the arm is free for an access from `now` on: later during a recalibration.
    #[inline(always)]
    pub(super) fn access_from(&mut self, now: Instant) -> Instant {
        let (at, away) = self.chance.delay(self.arm.at, self.arm.at.max(now));
        self.activity.recalibration += away;
        at
    }

    /// Time that the next access, to blocks from `start` on, loses to retries and to the drive's own work.
    #[inline]
    pub(super) fn retry_time(&mut self, found_idle: bool, start: Lbn) -> Nanos {
        if self.is_plain {
            return Nanos::ZERO;
        }
        let turns = self.chance.lost_turns(found_idle, start == self.last_lbn);
        self.turns(turns)
    }

    /// Time that an access loses to slow periods and to stalls.
    #[inline(always)]
    pub(super) fn slowness_time(&mut self, access: PlannedAccess) -> Nanos {
        if self.slow.is_none() {
            return Nanos::ZERO;
        }
        let lost = self.slow.lost(&access, &self.drive);
        self.activity.slowed.add(lost);
        lost
    }

    /// Delays a read of `blocks`, planned from `begins` on, by the time that it loses. Returns the part of it that is accounted as retries:
    /// all but that of slow blocks.
    #[inline(always)]
    pub(super) fn delay_read(
        &mut self,
        found_idle: bool,
        begins: Instant,
        blocks: Range<Lbn>,
        span: &mut Span,
        delivered: &mut Delivered,
    ) -> Nanos {
        if self.is_plain {
            Nanos::ZERO
        } else {
            self.delay_read_by_losses(found_idle, begins, blocks, span, delivered)
        }
    }

    #[cold]
    fn delay_read_by_losses(
        &mut self,
        found_idle: bool,
        begins: Instant,
        blocks: Range<Lbn>,
        span: &mut Span,
        delivered: &mut Delivered,
    ) -> Nanos {
        let Range { start, end } = blocks;
        let access = PlannedAccess { begins, ends: span.end, blocks };
        let lost = self.retry_time(found_idle, start) + self.slowness_time(access);
        span.delay(lost + self.slow_time(start, end), delivered);
        lost
    }

    /// Plans a media write, from `begins` on: with the shortest seek of a write, unless it continues the last access without a
    /// stop, and in whole physical sectors: of `known`, the drive has the blocks around the run. Also returns the seek.
    pub(super) fn write_span(
        &mut self,
        begins: Instant,
        run: Range<Lbn>,
        known: Range<Lbn>,
        arriving: Arriving,
        room: Room,
    ) -> (Span, Travel) {
        let (start, end) = (run.start, run.end);
        let (mut arm, travel) = self.write_arm(begins, start);
        arm.at += self.seek_delay(arm.at, start, true);
        let mut span = match &mut self.record {
            None => self.drive.write_in_parts(&self.last_extent, arm, run, arriving, room, &mut |_| {}),
            Some(record) => {
                let mut sees = |pass| record.see(pass);
                self.drive.write_in_parts(&self.last_extent, arm, run, arriving, room, &mut sees)
            }
        };
        span.seek += arm.at - begins;
        self.put_off(&mut span, self.write_delay(known.start, known.end));
        if !self.bad_blocks.is_sound(start, end) {
            self.bad_blocks.cure(&(start..end));
        }
        self.move_to_end(&span, end);
        (span, travel)
    }

    /// The arm when it starts to move for a media write at `start`, not before `begins`, and its travel.
    pub(super) fn write_arm(&self, begins: Instant, start: Lbn) -> (Arm, Travel) {
        let (place, _) = self.drive.target(start);
        let continues = start == self.last_lbn && begins == self.arm.at;
        let seek = self.drive.mechanics.reposition(self.arm.place, place, true);
        let wait = if continues { Nanos::ZERO } else { self.write_seek_min.saturating_sub(seek) };
        (Arm { place: self.arm.place, at: begins + wait }, self.travel_to(place))
    }

    /// The arm when it starts to move for a read at `start`, not before `begins`, and the delay by the disk's other arms.
    #[inline(always)]
    pub(super) fn read_arm(&mut self, begins: Instant, start: Lbn) -> (Arm, Nanos) {
        let disturbed = self.seek_delay(begins, start, false);
        (Arm { place: self.arm.place, at: begins + disturbed }, disturbed)
    }

    /// Time that the seek of an access to `start`, which begins at `begins`, loses to seeks of the disk's other arms.
    #[inline(always)]
    pub(super) fn seek_delay(&mut self, begins: Instant, start: Lbn, write: bool) -> Nanos {
        if self.is_plain { Nanos::ZERO } else { self.seek_delay_by_others(begins, start, write) }
    }

    #[cold]
    fn seek_delay_by_others(&mut self, begins: Instant, start: Lbn, write: bool) -> Nanos {
        let Some(interference) = &mut self.interference else { return Nanos::ZERO };
        let seek = match self.drive.mechanics.constant_access() {
            Some(_) => Nanos::ZERO,
            None => self.drive.mechanics.reposition(self.arm.place, self.drive.target(start).0, write),
        };
        interference.delay(begins, seek)
    }

    /// Time that a write of these blocks loses before its transfer: to read a physical sector that it writes a part of, a revolution
    /// earlier, and to slow blocks.
    pub(super) fn write_delay(&self, start: Lbn, end: Lbn) -> Nanos {
        let physical = self.physical_sectors;
        let is_whole = start.0.is_multiple_of(physical) && end.0.is_multiple_of(physical);
        let read_first = if is_whole { Nanos::ZERO } else { self.turns(1) };
        read_first + self.slow_time(start, end)
    }

    /// Moves the arm to the end of an access, which ends before `end`.
    #[inline]
    pub(super) fn move_to_end(&mut self, span: &Span, end: Lbn) {
        self.arm = span.arm();
        (self.last_extent, self.last_lbn) = (span.last.extent, end);
    }

    /// Accounts for an access for a command, with the seek `travel` before it.
    #[inline(always)]
    pub(super) fn account(&mut self, job: &mut Job, span: &Span, travel: Travel) {
        self.activity.command(span, travel);
        if !self.is_plain {
            self.log_access(job, span, travel);
        }
        job.travel = Some(travel);
        job.parts.seek += span.seek;
        job.parts.rotational_latency += span.rotation;
        job.parts.media += span.media;
        job.accounted = span.end;
    }

    /// Records how many commands are outstanding as the next access begins, if the log of accesses is enabled.
    #[inline(always)]
    pub(super) fn note_outstanding(&mut self, commands: usize) {
        if !self.is_plain
            && let Some(log) = &mut self.arm_log
        {
            log.outstanding = commands as u32;
        }
    }

    #[cold]
    fn log_access(&mut self, job: &Job, span: &Span, travel: Travel) {
        if let Some(log) = &mut self.arm_log {
            let request = &job.command.request;
            let work = if request.op == Op::Write { ArmWork::Write } else { ArmWork::Read };
            log.add(work, Some(job.submitted), request.lbn..request.end(), span, travel);
        }
    }

    /// Accounts for an access for cached or logged writes, of which `blocks` are the last run.
    pub(super) fn account_destage(&mut self, span: &Span, travel: Travel, blocks: Range<Lbn>, extra: Nanos) {
        self.activity.destage(span, travel, extra);
        if let Some(log) = &mut self.arm_log {
            log.add(ArmWork::Destage, None, blocks, span, travel);
        }
    }

    /// Records that a write's data arrived, to be written from `list`.
    pub(super) fn note_write(&mut self, list: List, job: &Job) {
        if let Some(record) = &mut self.record {
            record.add(list, job);
        }
    }

    /// Delays a write's transfer by revolutions lost before it.
    pub(super) fn put_off(&mut self, span: &mut Span, time: Nanos) {
        span.delay_media(time);
        if let Some(record) = &mut self.record {
            record.put_off(time);
        }
    }

    /// Delays the last planned access of a command by revolutions lost before it.
    pub(super) fn lose(&mut self, time: Nanos, job: &mut Job) {
        self.arm.at += time;
        self.activity.commands.rotational_latency += time;
        if let Some(log) = &mut self.arm_log {
            log.delay_last(time);
        }
        job.parts.rotational_latency += time;
        job.accounted += time;
        if let (Op::Write, Some(record)) = (job.command.request.op, &mut self.record) {
            record.put_off(time);
        }
    }

    /// Up to where blocks before `end` can be read ahead from `start` on: to a bad one, or to one in the cache of a shingled disk.
    #[inline]
    pub(super) fn readable_to(&self, start: Lbn, end: Lbn) -> Lbn {
        if self.is_plain { end } else { self.in_bands_to(start, self.bad_blocks.sound_to(start, end)) }
    }

    /// Time that an access to these blocks loses to slow ones.
    pub(super) fn slow_time(&self, start: Lbn, end: Lbn) -> Nanos {
        self.turns(self.bad_blocks.slow_turns(start, end))
    }

    /// Stops the arm permanently: of a write in progress, the sectors that have passed at `now` are on the media.
    pub(super) fn stop(&mut self, now: Instant) {
        if let (Work::Writing { .. }, Some(record)) = (self.work, &mut self.record) {
            record.tear(&self.drive, now, self.physical_sectors);
        }
        self.occupy(Work::Idle, Instant::MAX);
    }
}
