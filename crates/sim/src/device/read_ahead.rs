//! Reading ahead of the host: the drive file's rules, and a read-ahead from its start until it ends or is cut off.

use super::disk::{DiskArm, Work};
use super::drive::Drive;
use super::media::{Arm, Delivered};
use super::pass::Pass;
use headstack_model::cache::{Cache, SegmentState};
use headstack_model::spec::{CacheSpec, ReadAhead};
use headstack_model::{DriveSpec, Extent, Instant, Lbn, Nanos};
use std::ops::Range;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sending {
    pub(super) first: Lbn,
    pub(super) begins: Instant,
    pub(super) ends: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    segment: usize,
    began: Instant,
    /// First block of the read-ahead.
    first: Lbn,
    pass: Pass,
    /// Where it ends by itself.
    limit: Lbn,
    /// Block up to which no command may cut it off.
    keep_to: Lbn,
    /// First block of the track, if its front is still to be read after the rest.
    front: Option<Lbn>,
    /// Whether it reads that front now.
    wrapping: bool,
    /// Whether the read before it continued others in its segment.
    is_sequential: bool,
    /// Whether the pass ends before a sector for which the segment has no room when it arrives: the read-ahead continues a
    /// revolution later.
    held_back: bool,
    /// Whether the pass began a revolution late because of that.
    is_late: bool,
    /// The time up to which it was evaluated, and the sectors of the pass that had passed by then.
    followed: Instant,
    gone: u32,
}

/// Time between two adjacent sectors in which the drive finds that it may not read the next one.
const BETWEEN_SECTORS: Nanos = Nanos(1_000);

/// The drive file's rules of read-ahead.
#[derive(Clone, Debug)]
pub(super) struct ReadAheadRule {
    kind: ReadAhead,
    least: u64,
    most: u64,
    segment: u64,
    over_requested: bool,
    past_segment: bool,
    pub(super) waits_for_room: bool,
    pub(super) on_hit: bool,
    stops_in_sector: bool,
    holds_for_sector: bool,
    pub(super) from_arrival: bool,
}

impl ReadAheadRule {
    fn new(spec: &CacheSpec, kind: ReadAhead) -> ReadAheadRule {
        ReadAheadRule {
            kind: if spec.enabled { kind } else { ReadAhead::None },
            least: u64::from(spec.read_ahead_min_sectors),
            most: u64::from(spec.read_ahead_max_sectors),
            segment: u64::from(spec.segment_sectors),
            over_requested: spec.read_ahead_over_requested,
            past_segment: spec.read_ahead_past_segment,
            waits_for_room: spec.read_ahead_waits_for_room,
            on_hit: spec.read_ahead_on_hit,
            stops_in_sector: spec.read_ahead_stops_in_sector,
            holds_for_sector: spec.read_ahead_holds_for_sector && !spec.read_ahead_stops_in_sector,
            from_arrival: spec.read_on_arrival || kind == ReadAhead::OnArrival,
        }
    }

    /// First block of the track of a request that ends at `end`, where the whole track is read.
    fn front(&self, drive: &Drive, near: &Extent, end: Lbn) -> Option<Lbn> {
        (self.kind == ReadAhead::OnArrival).then(|| drive.track_of(near, Lbn(end.0 - 1)).0)
    }

    /// Block up to which to read, after a request for `start..end` whose segment holds data from `held` on.
    fn limit(&self, drive: &Drive, near: &Extent, held: Lbn, start: Lbn, end: Lbn) -> Lbn {
        let last = drive.geometry.sectors();
        let of_track = |lbn: Lbn| drive.track_of(near, lbn);
        let limit = match self.kind {
            ReadAhead::None => return end,
            ReadAhead::Track | ReadAhead::OnArrival => of_track(Lbn(end.0 - 1)).1,
            ReadAhead::Cylinder => {
                let cylinder = drive.geometry.track_at(Lbn(end.0 - 1)).cylinder;
                let mut stop = of_track(Lbn(end.0 - 1)).1;
                while stop.0 < last && stop - end < self.most {
                    let track = drive.geometry.track_at(stop);
                    if track.cylinder != cylinder {
                        break;
                    }
                    stop = track.first + u64::from(track.sectors);
                }
                stop
            }
            ReadAhead::Sequence if held == start => of_track(Lbn(end.0 - 1)).1,
            ReadAhead::Segment | ReadAhead::Sequence => end + self.most,
            ReadAhead::Stream if end.0 >= last => end,
            ReadAhead::Stream => {
                let (first, stop) = of_track(end);
                if held < first && stop.0 < last { of_track(stop).1 } else { stop }
            }
        };
        let most = match self.kind {
            ReadAhead::Stream if self.past_segment => last,
            ReadAhead::Stream => self.segment,
            _ => self.most,
        };
        let room =
            if self.over_requested { most } else { most.min(self.segment.saturating_sub(end - start)) };
        limit.min(end + room.max(self.least)).min(Lbn(last)).max(end)
    }
}

#[derive(Debug)]
pub(super) struct ReadAheadControl {
    pub(super) rule: ReadAheadRule,
    /// Time of a sector on the bus, in 2⁻¹⁰ ns.
    bus_sector: u64,
    /// The read's data that crossed the bus last, or cross it now. A read-ahead that waits for room overwrites none of them.
    pub(super) sending: Sending,
    /// The read-ahead in progress, or the last one. It is separate from the arm's work, which is then small to copy.
    current: Ahead,
}

impl ReadAheadControl {
    /// Read-ahead of a drive at which a host has up to `depth` commands outstanding.
    pub(super) fn new(spec: &DriveSpec, depth: usize, bus_sector: u64) -> ReadAheadControl {
        let may = spec.queue.read_ahead || depth == 1;
        let rule = ReadAheadRule::new(&spec.cache, if may { spec.cache.read_ahead } else { ReadAhead::None });
        ReadAheadControl { rule, bus_sector, sending: Sending::default(), current: Ahead::default() }
    }

    /// Begins to read ahead from the end of a segment after a read of `blocks`, from `from` on, if the rule says so. If the arm is `busy`,
    /// it reads ahead no further than the minimum, unless the read continued a run, which is `held` on the arm.
    pub(super) fn begin(
        &mut self,
        disk: &mut DiskArm,
        cache: &mut Cache,
        now: Instant,
        segment: usize,
        blocks: Range<Lbn>,
        (from, busy, held): (Instant, bool, bool),
    ) {
        let Range { start, end } = blocks;
        let Range { start: held_from, end: from_end } = cache.blocks(segment);
        let limit = self.rule.limit(&disk.drive, &disk.last_extent, held_from, start, end);
        let limit = cache.extend_read_ahead(segment, limit);
        let limit = disk.readable_to(from_end, limit);
        let keep_to = (end + self.rule.least).min(limit);
        let front = self.rule.front(&disk.drive, &disk.last_extent, end);
        let front = front.map(|front| disk.bad_blocks.sound_from(front, held_from));
        let front = front.filter(|front| *front < held_from);
        let is_sequential = held_from < start;
        if limit <= from_end && front.is_none() || busy && !(held && is_sequential) && keep_to <= from_end {
            return;
        }
        let arm = disk.arm_from(from);
        let wrapping = limit <= from_end;
        let (next, limit) = if wrapping { (front.unwrap_or(end), held_from) } else { (from_end, limit) };
        let pass = disk.drive.plan_after(&disk.last_extent, arm, next, limit - next);
        cache.set_state(segment, SegmentState::Filling);
        let (began, followed) = (arm.at, Instant::MAX);
        self.current = Ahead {
            segment,
            began,
            first: next,
            pass,
            limit,
            keep_to,
            front,
            wrapping,
            is_sequential,
            followed,
            ..Ahead::default()
        };
        disk.work = Work::ReadAhead;
        self.hold_back(disk, arm.at);
        let is_slid = from_end - held_from <= cache.segment_sectors();
        if arm.at == now && is_slid && !self.current.held_back && self.current.pass.takes_time() {
            // No sector has passed, and the segment ends where the read-ahead begins: there is nothing to evaluate yet.
            self.current.followed = arm.at;
        }
    }

    /// Evaluates the read-ahead up to `now`, and adds the sectors read to its segment.
    #[inline(always)]
    pub(super) fn follow(&mut self, disk: &mut DiskArm, cache: &mut Cache, now: Instant) {
        if disk.work.is_read_ahead() && self.current.followed != now {
            self.follow_passes(disk, cache, now);
        }
    }

    fn follow_passes(&mut self, disk: &mut DiskArm, cache: &mut Cache, now: Instant) {
        let mut ends = self.current.pass.end(&disk.drive);
        while ends <= now && self.current.pass.end_lbn() < self.current.limit {
            self.plan_next_pass(disk, ends);
            ends = self.current.pass.end(&disk.drive);
        }
        let ahead = &mut self.current;
        (ahead.followed, ahead.gone) = (now, ahead.pass.gone_by_of(&disk.drive, now, ends));
        if !ahead.wrapping {
            cache.slide(ahead.segment, ahead.pass.first + u64::from(ahead.gone));
        }
        if ends <= now {
            let place = ahead.pass.place();
            self.end(disk, cache, Arm { place, at: ends }, now);
        }
    }

    fn plan_next_pass(&mut self, disk: &DiskArm, ends: Instant) {
        let ahead = &mut self.current;
        let lost = if ahead.held_back { BETWEEN_SECTORS } else { Nanos::ZERO };
        let arm = Arm { place: ahead.pass.place(), at: ends + lost };
        let next = ahead.pass.end_lbn();
        ahead.pass = disk.drive.plan(&ahead.pass.extent, arm, next, ahead.limit - next, false);
        (ahead.is_late, ahead.held_back) = (ahead.held_back, false);
        self.hold_back(disk, ends);
    }

    /// Ends the pass before the first sector that arrives at `from` or later and would overwrite data that are not yet sent by then.
    #[inline]
    fn hold_back(&mut self, disk: &DiskArm, from: Instant) {
        if self.rule.waits_for_room {
            self.hold_back_for_room(&disk.drive, from);
        }
    }

    fn hold_back_for_room(&mut self, drive: &Drive, from: Instant) {
        let Sending { first, begins, ends } = self.sending;
        let ahead = &mut self.current;
        let pass = &mut ahead.pass;
        let room = first + self.rule.segment;
        if ahead.wrapping || pass.begins >= ends || pass.end_lbn() <= room {
            return;
        }
        let fits = room.0.saturating_sub(pass.first.0) as u32;
        for count in fits.max(pass.gone_by(drive, from))..pass.sectors {
            let comes = pass.end_of(drive, count);
            let sent = (comes.since(begins).0 << 10) / self.bus_sector.max(1);
            if comes >= ends {
                return;
            }
            if pass.first.0 + u64::from(count) >= room.0 + sent {
                (pass.sectors, ahead.held_back) = (count, true);
                return;
            }
        }
    }

    /// Ends a read-ahead that reached its limit: the front of the track follows if the drive reads whole tracks.
    fn end(&mut self, disk: &mut DiskArm, cache: &mut Cache, arm: Arm, now: Instant) {
        let ahead = &mut self.current;
        let held_from = cache.blocks(ahead.segment).start;
        match ahead.front {
            Some(front) if ahead.wrapping => cache.set_start(ahead.segment, front),
            Some(front) if front < held_from => {
                ahead.pass = disk.drive.plan(&ahead.pass.extent, arm, front, held_from - front, false);
                (ahead.limit, ahead.wrapping, ahead.followed) = (held_from, true, Instant::MAX);
                return self.follow(disk, cache, now);
            }
            _ => {}
        }
        self.stop(disk, cache, arm);
    }

    fn stop(&mut self, disk: &mut DiskArm, cache: &mut Cache, arm: Arm) {
        cache.set_state(self.current.segment, SegmentState::Read);
        disk.activity.read_ahead += arm.at.since(self.current.began);
        self.log(disk, cache, arm.at);
        disk.last_extent = self.current.pass.extent;
        (disk.arm, disk.work) = (arm, Work::Idle);
    }

    /// Logs the read-ahead, which ends at `ends`, if the log of accesses is enabled.
    #[inline(always)]
    fn log(&self, disk: &mut DiskArm, cache: &Cache, ends: Instant) {
        if !disk.is_plain {
            self.log_if_enabled(disk, cache, ends);
        }
    }

    #[cold]
    fn log_if_enabled(&self, disk: &mut DiskArm, cache: &Cache, ends: Instant) {
        if let Some(log) = &mut disk.arm_log {
            let (read, ahead) = (cache.blocks(self.current.segment).end, &self.current);
            log.add_read_ahead(ahead.first..read.max(ahead.first), ahead.pass.place(), (ahead.began, ends));
        }
    }

    /// Blocks from the start of the read-ahead in progress to the one under the head at `now`, or to the end of its present pass.
    /// Changes no state.
    pub(super) fn visible(&self, disk: &DiskArm, now: Instant) -> Option<Range<Lbn>> {
        let Ahead { first, pass, .. } = &self.current;
        let read = || pass.first + u64::from(pass.gone_by(&disk.drive, now));
        disk.work.is_read_ahead().then(|| *first..read().max(*first))
    }

    /// Stops the read-ahead for other work, if one is in progress; returns when that is possible if not yet.
    pub(super) fn leave(&mut self, disk: &mut DiskArm, cache: &mut Cache, now: Instant) -> Option<Instant> {
        self.follow(disk, cache, now);
        if !disk.work.is_read_ahead() {
            return None;
        }
        let ahead = &self.current;
        let pass = &ahead.pass;
        let read = cache.blocks(ahead.segment).end;
        if read < ahead.keep_to {
            let count = pass.sectors.min((ahead.keep_to.0 - pass.first.0).min(u64::from(u32::MAX)) as u32);
            return Some(pass.end_of(&disk.drive, count));
        }
        let mut at = now.max(pass.on_track);
        if self.rule.holds_for_sector && now >= pass.on_track && now <= pass.begins {
            // The first sector that it waits for; sectors pass one after the other while it waits for room.
            let wait = pass.begins - now;
            at = if ahead.is_late { now + Nanos(wait.0 % pass.sector(&disk.drive).0) } else { pass.begins };
        } else if !self.rule.stops_in_sector && now > pass.begins {
            let count = ahead.gone + 1;
            at = pass.end_of(&disk.drive, count.min(pass.sectors));
        }
        let place = pass.place();
        self.stop(disk, cache, Arm { place, at });
        None
    }

    /// The segment of the read-ahead in progress.
    pub(super) fn segment(&self) -> usize {
        self.current.segment
    }

    /// Whether the read-ahead in progress is that of a sequential run.
    pub(super) fn is_sequential(&self) -> bool {
        self.current.is_sequential && !self.current.wrapping
    }

    /// When the present pass of the read-ahead ends, or has passed the blocks before `wanted`.
    pub(super) fn next_point(&self, disk: &DiskArm, wanted: Option<Lbn>) -> Instant {
        let pass = &self.current.pass;
        match wanted {
            Some(end) if pass.first < end && end <= pass.end_lbn() => {
                pass.end_of(&disk.drive, (end - pass.first) as u32)
            }
            _ => pass.end(&disk.drive),
        }
    }

    pub(super) fn fills(&self, disk: &DiskArm, segment: usize) -> bool {
        disk.work.is_read_ahead() && self.current.segment == segment && !self.current.wrapping
    }

    /// Stops the read-ahead into a segment other than this one, unless it may not be cut off yet.
    pub(super) fn leave_other(
        &mut self,
        disk: &mut DiskArm,
        cache: &mut Cache,
        now: Instant,
        segment: usize,
    ) {
        if disk.work.is_read_ahead() && self.current.segment != segment {
            self.leave(disk, cache, now);
        }
    }

    /// Whether a read of blocks that are being read ahead may wait for them: they are certain to be read, or no other command
    /// waits for the arm.
    pub(super) fn may_join(&self, disk: &DiskArm, blocks: Range<Lbn>, others_wait: bool) -> bool {
        disk.work.is_read_ahead()
            && (!others_wait || blocks.end <= self.current.keep_to)
            && disk.readable_to(blocks.start, blocks.end) == blocks.end
    }

    /// A read from `start` on, whose first blocks are being read ahead, joins the read-ahead. Returns when all its blocks have left
    /// the media, and the earliest end of their transfer.
    pub(super) fn join(
        &mut self,
        disk: &mut DiskArm,
        cache: &mut Cache,
        now: Instant,
        start: Lbn,
        mut delivered: Delivered,
        others_wait: bool,
    ) -> (Instant, Instant) {
        assert!(disk.work.is_read_ahead(), "the segment is read ahead into");
        let (ahead, end) = (self.current, delivered.end);
        let read = cache.blocks(ahead.segment).end.max(start);
        let running = ahead.pass.part(&disk.drive, read, end);
        let span = disk.drive.read_in_order(now, running, end, &mut delivered);
        cache.touch(ahead.segment, end);
        if end <= ahead.keep_to && others_wait {
            // The arm continues unchanged; only the bus waits for it.
            return (span.end, delivered.bound);
        }
        disk.activity.read_ahead += now.since(ahead.began);
        disk.activity.join(&span);
        self.log(disk, cache, now);
        disk.move_to_end(&span, end);
        disk.occupy(Work::Reading { segment: Some(ahead.segment), start, end }, span.end);
        (span.end, delivered.bound)
    }

    /// Extends a read-ahead from whose segment a read of `blocks` was answered, as far as its rule allows.
    pub(super) fn extend(
        &mut self,
        disk: &DiskArm,
        cache: &mut Cache,
        now: Instant,
        segment: usize,
        blocks: Range<Lbn>,
    ) {
        let Range { start: from, end } = cache.blocks(segment);
        let extent = &self.current.pass.extent;
        let limit = self.rule.limit(&disk.drive, extent, from, blocks.start, blocks.end);
        let limit = cache.extend_read_ahead(segment, limit);
        self.current.limit = self.current.limit.max(disk.readable_to(end, limit));
        self.hold_back(disk, now);
    }
}
