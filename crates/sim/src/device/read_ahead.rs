//! Reading ahead of the host: the drive file's rules, and a read-ahead from its start until it ends or is cut off.

use super::Device;
use super::arm::Work;
use super::drive::Drive;
use super::media::Arm;
use super::pass::Pass;
use super::port::Sending;
use headstack_model::cache::SegmentState;
use headstack_model::spec::{CacheSpec, ReadAhead};
use headstack_model::{Extent, Lbn, Nanos};

/// A read-ahead in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ahead {
    segment: usize,
    /// When the arm started it.
    began: Nanos,
    /// The pass that runs now.
    pass: Pass,
    /// Where it ends by itself.
    limit: Lbn,
    /// Up to where no command may cut it off.
    keep_to: Lbn,
    /// First block of the track, where its front is still to be read after the rest.
    front: Option<Lbn>,
    /// Whether it reads that front now.
    wrapping: bool,
    /// Whether the pass ends before a sector for which the segment has no room when it arrives: the read-ahead continues a
    /// revolution later.
    held_back: bool,
    /// Whether the pass began a revolution late for that reason.
    is_late: bool,
    /// The time up to which it was evaluated, and the sectors of the pass that had passed by then.
    followed: Nanos,
    gone: u32,
}

/// Time between two adjacent sectors in which the drive finds that it may not read the next one.
const BETWEEN_SECTORS: Nanos = Nanos(1_000);

/// The drive file's rules of read-ahead.
#[derive(Clone, Debug)]
pub(super) struct ReadAheadRule {
    kind: ReadAhead,
    pub(super) least: u64,
    most: u64,
    segment: u64,
    over_requested: bool,
    past_segment: bool,
    pub(super) waits_for_room: bool,
    pub(super) on_hit: bool,
    pub(super) stops_in_sector: bool,
    holds_for_sector: bool,
    pub(super) from_arrival: bool,
}

impl ReadAheadRule {
    pub(super) fn new(spec: &CacheSpec) -> ReadAheadRule {
        ReadAheadRule {
            kind: if spec.enabled { spec.read_ahead } else { ReadAhead::None },
            least: u64::from(spec.read_ahead_min_sectors),
            most: u64::from(spec.read_ahead_max_sectors),
            segment: u64::from(spec.segment_sectors),
            over_requested: spec.read_ahead_over_requested,
            past_segment: spec.read_ahead_past_segment,
            waits_for_room: spec.read_ahead_waits_for_room,
            on_hit: spec.read_ahead_on_hit,
            stops_in_sector: spec.read_ahead_stops_in_sector,
            holds_for_sector: spec.read_ahead_holds_for_sector && !spec.read_ahead_stops_in_sector,
            from_arrival: spec.read_on_arrival || spec.read_ahead == ReadAhead::OnArrival,
        }
    }

    /// First block of the track of a request that ends at `end`, where the whole track is read.
    pub(super) fn front(&self, drive: &Drive, near: &Extent, end: Lbn) -> Option<Lbn> {
        (self.kind == ReadAhead::OnArrival).then(|| drive.track_of(near, Lbn(end.0 - 1)).0)
    }

    /// Block up to which to read, after a request for `start..end` whose segment holds data from `held` on.
    pub(super) fn limit(&self, drive: &Drive, near: &Extent, held: Lbn, start: Lbn, end: Lbn) -> Lbn {
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
            ReadAhead::Segment => end + self.most,
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

impl Device {
    /// Begins to read ahead from the end of a segment, if the rule says so.
    pub(super) fn begin_read_ahead(&mut self, segment: usize, start: Lbn, end: Lbn, from: Nanos) {
        let held = self.cache.segment(segment);
        let (held_from, from_end) = (held.start, held.end);
        let limit = self.rule.limit(&self.drive, &self.last.extent, held_from, start, end);
        let limit = self.cache.extend_read_ahead(segment, limit);
        let limit = self.sound_to(from_end, limit);
        let keep_to = (end + self.rule.least).min(limit);
        let busy = !self.commands.waiting.is_empty() || self.destage_due() <= self.now;
        let front = self.rule.front(&self.drive, &self.last.extent, end);
        let front = front.map(|front| self.sound_from(front, held_from)).filter(|front| *front < held_from);
        if limit <= from_end && front.is_none() || busy && keep_to <= from_end {
            return;
        }
        let arm = Arm { place: self.arm.place, at: self.arm.at.max(from) };
        let wrapping = limit <= from_end;
        let (next, limit) = if wrapping { (front.unwrap_or(end), held_from) } else { (from_end, limit) };
        let pass = self.drive.plan_after(&self.last.extent, arm, next, limit - next);
        self.cache.set_state(segment, SegmentState::Filling);
        self.ahead = Ahead {
            segment,
            began: arm.at,
            pass,
            limit,
            keep_to,
            front,
            wrapping,
            held_back: false,
            is_late: false,
            followed: Nanos::MAX,
            gone: 0,
        };
        self.work = Work::ReadAhead;
        self.hold_back(arm.at);
        let is_slid = from_end - held_from <= self.cache.segment_sectors();
        if arm.at == self.now && is_slid && !self.ahead.held_back && self.ahead.pass.takes_time() {
            // No sector has passed, and the segment ends where the read-ahead begins: there is nothing to evaluate yet.
            self.ahead.followed = arm.at;
        }
    }

    /// Evaluates the read-ahead up to `now`, and adds the sectors read to its segment.
    #[inline(always)]
    pub(super) fn follow_read_ahead(&mut self, now: Nanos) {
        if matches!(self.work, Work::ReadAhead) && self.ahead.followed != now {
            self.follow_passes(now);
        }
    }

    fn follow_passes(&mut self, now: Nanos) {
        let mut ends = self.ahead.pass.end(&self.drive);
        while ends <= now && self.ahead.pass.end_lbn() < self.ahead.limit {
            self.plan_next_pass(ends);
            ends = self.ahead.pass.end(&self.drive);
        }
        let ahead = &mut self.ahead;
        (ahead.followed, ahead.gone) = (now, ahead.pass.gone_by_of(&self.drive, now, ends));
        if !ahead.wrapping {
            self.cache.slide(ahead.segment, ahead.pass.first + u64::from(ahead.gone));
        }
        if ends <= now {
            let place = ahead.pass.place();
            self.end_read_ahead(Arm { place, at: ends });
        }
    }

    /// Plans the pass that follows on the read-ahead's pass, which ends at `ends`.
    fn plan_next_pass(&mut self, ends: Nanos) {
        let ahead = &mut self.ahead;
        let lost = if ahead.held_back { BETWEEN_SECTORS } else { Nanos::ZERO };
        let arm = Arm { place: ahead.pass.place(), at: ends + lost };
        let next = ahead.pass.end_lbn();
        ahead.pass = self.drive.plan(&ahead.pass.extent, arm, next, ahead.limit - next, false);
        (ahead.is_late, ahead.held_back) = (ahead.held_back, false);
        self.hold_back(ends);
    }

    /// Ends the pass before the first sector that arrives at `from` or later and would overwrite data not yet sent by then.
    #[inline]
    fn hold_back(&mut self, from: Nanos) {
        if self.rule.waits_for_room {
            self.hold_back_for_room(from);
        }
    }

    fn hold_back_for_room(&mut self, from: Nanos) {
        let Sending { first, begins, ends } = self.port.sending;
        let ahead = &mut self.ahead;
        let pass = &mut ahead.pass;
        let room = first + self.rule.segment;
        if ahead.wrapping || pass.begins >= ends || pass.end_lbn() <= room {
            return;
        }
        let fits = room.0.saturating_sub(pass.first.0) as u32;
        for count in fits.max(pass.gone_by(&self.drive, from))..pass.sectors {
            let comes = pass.end_of(&self.drive, count);
            let sent = (comes.since(begins).0 << 10) / self.config.read_sector.max(1);
            if comes >= ends {
                return;
            }
            if pass.first.0 + u64::from(count) >= room.0 + sent {
                (pass.sectors, ahead.held_back) = (count, true);
                return;
            }
        }
    }

    /// The read-ahead came to its own end: the front of the track follows where the drive reads whole tracks.
    fn end_read_ahead(&mut self, arm: Arm) {
        let ahead = &mut self.ahead;
        let held_from = self.cache.segment(ahead.segment).start;
        match ahead.front {
            Some(front) if ahead.wrapping => self.cache.set_start(ahead.segment, front),
            Some(front) if front < held_from => {
                ahead.pass = self.drive.plan(&ahead.pass.extent, arm, front, held_from - front, false);
                (ahead.limit, ahead.wrapping, ahead.followed) = (held_from, true, Nanos::MAX);
                return self.follow_read_ahead(self.now);
            }
            _ => {}
        }
        self.stop_read_ahead(arm);
    }

    fn stop_read_ahead(&mut self, arm: Arm) {
        let ahead = &self.ahead;
        self.cache.set_state(ahead.segment, SegmentState::Read);
        self.activity.read_ahead += arm.at.since(ahead.began);
        self.last.extent = ahead.pass.extent;
        self.arm = arm;
        self.work = Work::Idle;
    }

    /// Cuts the read-ahead, which was evaluated up to now, off for other work; returns when that is possible if not yet.
    pub(super) fn cut_off(&mut self) -> Option<Nanos> {
        if !matches!(self.work, Work::ReadAhead) {
            return None;
        }
        let (now, ahead) = (self.now, &self.ahead);
        let pass = &ahead.pass;
        let read = self.cache.segment(ahead.segment).end;
        if read < ahead.keep_to {
            let count = pass.sectors.min((ahead.keep_to.0 - pass.first.0).min(u64::from(u32::MAX)) as u32);
            return Some(pass.end_of(&self.drive, count));
        }
        let mut at = now.max(pass.on_track);
        if self.rule.holds_for_sector && now >= pass.on_track && now <= pass.begins {
            // The first sector that it waits for; sectors pass one after the other while it waits for room.
            let wait = pass.begins - now;
            at = if ahead.is_late { now + Nanos(wait.0 % pass.sector(&self.drive).0) } else { pass.begins };
        } else if !self.rule.stops_in_sector && now > pass.begins {
            let count = ahead.gone + 1;
            at = pass.end_of(&self.drive, count.min(pass.sectors));
        }
        let place = pass.place();
        self.stop_read_ahead(Arm { place, at });
        None
    }

    /// Stops the read-ahead into a segment other than this one, unless it may not be cut off yet.
    pub(super) fn stop_other_read_ahead(&mut self, segment: usize) {
        if matches!(self.work, Work::ReadAhead) && self.ahead.segment != segment {
            self.leave_read_ahead();
        }
    }

    /// Whether this segment is the one being read ahead into.
    pub(super) fn is_read_ahead(&self, segment: usize) -> bool {
        matches!(self.work, Work::ReadAhead) && self.ahead.segment == segment && !self.ahead.wrapping
    }

    /// Whether a command whose blocks can be read at once may wait for the read-ahead: for blocks that are read in any case, or if
    /// no other command waits for the arm.
    pub(super) fn may_join_read_ahead(&self, start: Lbn, end: Lbn) -> bool {
        matches!(self.work, Work::ReadAhead)
            && (self.commands.waiting.is_empty() || end <= self.ahead.keep_to)
            && self.is_sound(start, end)
    }

    /// The segment that a command's read is filling.
    pub(super) fn filling_segment(&self) -> Option<usize> {
        match self.work {
            Work::Reading { segment, .. } => segment,
            _ => None,
        }
    }

    /// Whether cached data are being written.
    pub(super) fn is_writing(&self) -> bool {
        matches!(self.work, Work::Writing { .. })
    }

    /// A command whose first blocks are being read ahead joins the read-ahead. Returns when all its blocks have left the media,
    /// and the earliest end of their transfer.
    pub(super) fn join_read_ahead(&mut self, slot: u32, segment: usize) -> (Nanos, Nanos) {
        assert!(matches!(self.work, Work::ReadAhead), "the segment is read ahead into");
        let ahead = self.ahead;
        let request = self.commands.jobs[slot as usize].command.request;
        let read = self.cache.segment(segment).end.max(request.lbn);
        let mut delivered = self.delivery(slot);
        delivered.end = request.end();
        let running = ahead.pass.part(&self.drive, read, request.end());
        let span = self.drive.read_in_order(self.now, running, request.end(), &mut delivered);
        self.cache.touch(segment, request.end());
        if request.end() <= ahead.keep_to && !self.commands.waiting.is_empty() {
            // The arm continues unchanged; only the bus waits for it.
            return (span.end, delivered.bound);
        }
        self.activity.read_ahead += self.now.since(ahead.began);
        self.activity.join(&span);
        self.last.extent = span.last.extent;
        self.arm = span.arm();
        self.last.lbn = request.end();
        self.arm_event = span.end;
        self.work = Work::Reading { segment: Some(segment), start: request.lbn, end: request.end() };
        (span.end, delivered.bound)
    }

    /// A command was answered from a segment: its read-ahead continues as far as its rule allows.
    pub(super) fn note_hit(&mut self, slot: u32, segment: usize) {
        let job = &self.commands.jobs[slot as usize];
        let (start, end, ready) = (job.command.request.lbn, job.command.request.end(), job.overhead_done);
        self.cache.touch(segment, end);
        let held = self.cache.segment(segment);
        if matches!(self.work, Work::ReadAhead) {
            if self.is_read_ahead(segment) {
                let limit = self.rule.limit(&self.drive, &self.ahead.pass.extent, held.start, start, end);
                let limit = self.cache.extend_read_ahead(segment, limit);
                self.ahead.limit = self.ahead.limit.max(self.sound_to(held.end, limit));
                self.hold_back(self.now);
            }
        } else if self.rule.on_hit && held.state == SegmentState::Read && matches!(self.work, Work::Idle) {
            self.begin_read_ahead(segment, start, end, ready);
        }
    }
}
