//! The arm's work: which command next, reads with their read-ahead, writes.

use super::cost::{Cost, Target};
use super::media::{Arm, Arriving, Pass, Room, Span};
use super::port::Wanted;
use super::split::Part;
use super::{Device, Job};
use headstack_model::cache::{Hit, SegmentState};
use headstack_model::{Angle, Lbn, Nanos, Op, TrackPlace};
use headstack_policy::{Slot, SlotId};
use rand::RngExt;
use std::ops::Range;

/// What the arm does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// Nothing.
    Idle,
    /// Reads for a command, into a segment where one was free, up to `end`.
    Reading { segment: Option<usize>, start: Lbn, end: Lbn },
    /// Reads ahead of the host.
    ReadAhead(Ahead),
    /// Writes: a command's blocks, or cached ones.
    Writing { slot: Option<u32> },
}

/// A read-ahead under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    segment: usize,
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
}

/// What a command that waited for the arm finds in the cache by now.
enum Found {
    /// All of it, which is on its way to the host.
    Sent,
    /// Its first blocks, in this segment.
    Start(usize),
    /// Nothing.
    Nothing,
}

impl Target for Job {
    fn place(&self) -> TrackPlace {
        self.place
    }

    fn angle(&self) -> Angle {
        self.angle
    }

    fn is_write(&self) -> bool {
        self.request.op == Op::Write
    }
}

impl Device {
    /// Puts a command into the queue for the arm.
    pub(super) fn want_arm(&mut self, slot: u32) {
        if matches!(self.work, Work::Idle) && self.waiting.is_empty() && !self.destage_first() {
            // Nothing to choose among: the usual case at depth 1.
            let started = match self.jobs[slot as usize].request.op {
                Op::Read => self.start_read(slot),
                _ => self.start_write(slot),
            };
            if !started {
                self.run_arm();
            }
            return;
        }
        let lbn = self.jobs[slot as usize].media_from;
        let (place, angle) = self.drive.target(lbn);
        let job = self.job(slot);
        (job.place, job.angle) = (place, angle);
        if self.waiting.is_full() {
            self.beyond_window.push_back(slot);
        } else {
            self.enqueue(slot);
        }
        self.run_arm();
    }

    fn enqueue(&mut self, slot: u32) {
        let job = &self.jobs[slot as usize];
        let entry = Slot {
            id: SlotId(slot),
            request: job.request,
            arrived: job.submitted,
            cylinder: job.place.cylinder,
            head: job.place.head,
        };
        self.waiting.insert(entry).expect("it was seen to have room");
    }

    /// The arm's work came to its end, or to a point where it may be cut off.
    pub(super) fn handle_arm(&mut self) {
        self.arm_event = Nanos::MAX;
        match self.work {
            Work::Reading { segment, start, end } => self.finish_read(segment, start, end),
            Work::Writing { slot } => self.finish_write(slot),
            Work::Idle | Work::ReadAhead(_) => self.run_arm(),
        }
    }

    /// Starts the next work if there is any and the arm may leave what it does.
    pub(super) fn run_arm(&mut self) {
        if matches!(self.work, Work::Reading { .. } | Work::Writing { .. }) {
            return;
        }
        self.follow_read_ahead(self.now);
        let due = self.destage_due();
        let held_out = !self.destage.blocked.is_empty();
        if self.waiting.is_empty() && due > self.now && !held_out {
            self.arm_event = due;
            return;
        }
        if let Work::ReadAhead(ahead) = self.work
            && let Some(later) = self.cut_off(ahead)
        {
            self.arm_event = later;
            return;
        }
        if held_out {
            // The read-ahead may have had the segment that a write waits for.
            self.unblock();
        }
        self.start_next();
    }

    /// Starts a destage or a waiting command; commands that the cache can answer by now go out on the way.
    fn start_next(&mut self) {
        while !(self.destage_first() && self.start_destage()) {
            let Some(slot) = self.choose() else {
                if self.destage_due() <= self.now && self.start_destage() {
                    return;
                }
                self.arm_event = self.destage_due();
                return;
            };
            let started = match self.jobs[slot as usize].request.op {
                Op::Read => self.start_read(slot),
                _ => self.start_write(slot),
            };
            if started {
                return;
            }
            if matches!(self.work, Work::ReadAhead(_)) {
                // The hit that has just gone out made its read-ahead go on: cut it off if more waits.
                return self.run_arm();
            }
        }
    }

    fn choose(&mut self) -> Option<u32> {
        let arm = Arm { place: self.arm.place, at: self.arm.at.max(self.now) };
        let cost = Cost { drive: &self.drive, targets: &self.jobs, arm, last_lbn: self.last_lbn };
        let index = match self.waiting.len() {
            0 => return None,
            1 => 0,
            _ => self.order.pick(&self.waiting.view(), &cost)?,
        };
        let slot = self.waiting.remove(index).id.0;
        if let Some(next) = self.beyond_window.pop_front() {
            self.enqueue(next);
        }
        Some(slot)
    }

    /// When a command's access starts: the arm is free and its overhead over. Accounts the time until then.
    fn access_begins(&mut self, slot: u32) -> Nanos {
        let free = self.arm.at.max(self.now);
        let free = match &mut self.recalibration {
            Some(recalibrate) => recalibrate.delay(self.arm.at, free, &mut self.random),
            None => free,
        };
        let job = self.job(slot);
        let begins = free.max(job.overhead_done);
        job.account(Part::Overhead, job.overhead_done);
        job.account(Part::Queued, begins);
        begins
    }

    /// Accounts an access for a command.
    fn account_span(&mut self, slot: u32, span: &Span) {
        let job = self.job(slot);
        job.parts.seek += span.seek;
        job.parts.rotational_latency += span.rotation;
        job.parts.media += span.media;
        job.accounted = span.end;
    }

    /// Turns lost to retries of one access.
    fn retry_time(&mut self) -> Nanos {
        let Some(retries) = self.retries else { return Nanos::ZERO };
        let mut turns = 0;
        while turns < retries.turns_max && self.random.random_bool(retries.probability) {
            turns += 1;
        }
        Nanos(self.drive.mechanics.spindle().period().0 * u64::from(turns))
    }

    /// Starts a read; false when the cache can answer it by now.
    fn start_read(&mut self, slot: u32) -> bool {
        let request = self.jobs[slot as usize].request;
        let mut into = None;
        if self.jobs[slot as usize].accounted < self.now || self.jobs[slot as usize].media_from > request.lbn
        {
            match self.look_again(slot) {
                Found::Sent => return false,
                Found::Start(segment) => into = Some(segment),
                Found::Nothing => {}
            }
        }
        let begins = self.access_begins(slot);
        let start = self.jobs[slot as usize].media_from;
        let mut delivered = self.delivery(slot);
        let arm = Arm { place: self.arm.place, at: begins };
        let pass = self.drive.plan(&self.near, arm, start, request.end() - start, false);
        let mut span = self.drive.read(arm, pass, request.end(), &mut delivered);
        self.near = span.last.extent;
        span.delay(self.retry_time(), &mut delivered);
        self.account_span(slot, &span);
        let delay = self.drive.mechanics.read_delay();
        delivered.delay(delay);
        self.job(slot).account(Part::Overhead, span.end + delay);
        let segment = into.or_else(|| self.cache.take_for_read(start));
        if let Some(index) = segment {
            self.cache.set_state(index, SegmentState::Filling);
            if self.rule.from_arrival && into.is_none() {
                let first = self.drive.landed_before(&pass);
                self.cache.set_start(index, first);
            }
        }
        // What the buffer came to hold while the command waited has yet to cross the bus as well.
        let job = &self.jobs[slot as usize];
        let (unsent, ready) = (start.min(job.sent_to), delivered.ready.max(job.sent_at));
        let wanted = Wanted::ToHost { sectors: request.end() - unsent, bound: delivered.bound };
        self.want_port(ready, slot, wanted);
        self.arm = span.arm();
        self.last_lbn = request.end();
        self.destage.last_was_destage = false;
        self.arm_event = span.end;
        self.work = Work::Reading { segment, start: request.lbn, end: request.end() };
        true
    }

    /// Looks a command that waited up again; what it finds whole goes out without the arm.
    fn look_again(&mut self, slot: u32) -> Found {
        let request = self.jobs[slot as usize].request;
        if request.fua {
            return Found::Nothing;
        }
        if self.destage.holds(request.lbn, request.end()) {
            self.send_again(slot);
            return Found::Sent;
        }
        match self.cache.find(request.lbn, request.end()) {
            Hit::Whole(segment) => {
                self.note_hit(slot, segment);
                self.send_again(slot);
                Found::Sent
            }
            Hit::Part(segment) if self.cache.segment(segment).state == SegmentState::Read => {
                self.job(slot).media_from = self.cache.segment(segment).end;
                Found::Start(segment)
            }
            _ => {
                self.job(slot).media_from = request.lbn;
                Found::Nothing
            }
        }
    }

    /// Sends a command's data that the cache holds by now.
    fn send_again(&mut self, slot: u32) {
        let now = self.now;
        let job = self.job(slot);
        let ready = now.max(job.overhead_done);
        job.account(Part::Overhead, job.overhead_done.min(now));
        job.account(Part::Queued, now);
        job.account(Part::Overhead, ready);
        let sectors = u64::from(job.request.sectors);
        self.want_port(ready, slot, Wanted::ToHost { sectors, bound: Nanos::ZERO });
    }

    /// A read is off the media: reads ahead, or goes on to the next work.
    fn finish_read(&mut self, segment: Option<usize>, start: Lbn, end: Lbn) {
        self.work = Work::Idle;
        if let Some(index) = segment {
            self.cache.slide(index, end);
            self.cache.touch(index, end);
            self.cache.set_state(index, SegmentState::Read);
            self.begin_read_ahead(index, start, end, self.now);
        }
        self.run_arm();
    }

    /// Begins to read ahead from the end of a segment, where the rule says so.
    fn begin_read_ahead(&mut self, segment: usize, start: Lbn, end: Lbn, from: Nanos) {
        let held = self.cache.segment(segment);
        let (held_from, from_end) = (held.start, held.end);
        let limit = self.rule.limit(&self.drive, &self.near, held_from, start, end);
        let keep_to = (end + self.rule.least).min(limit);
        let busy = !self.waiting.is_empty() || self.destage_due() <= self.now;
        let front = self.rule.front(&self.drive, &self.near, end).filter(|front| *front < held_from);
        if limit <= from_end && front.is_none() || busy && keep_to <= from_end {
            return;
        }
        let arm = Arm { place: self.arm.place, at: self.arm.at.max(from) };
        let wrapping = limit <= from_end;
        let (next, limit) = if wrapping { (front.unwrap_or(end), held_from) } else { (from_end, limit) };
        let pass = self.drive.plan(&self.near, arm, next, limit - next, false);
        self.cache.set_state(segment, SegmentState::Filling);
        self.work = Work::ReadAhead(Ahead { segment, pass, limit, keep_to, front, wrapping });
    }

    /// Brings the read-ahead up to `now`: what has been read is in its segment.
    pub(super) fn follow_read_ahead(&mut self, now: Nanos) {
        let Work::ReadAhead(mut ahead) = self.work else { return };
        let mut ends = ahead.pass.end(&self.drive);
        while ends <= now && ahead.pass.end_lbn() < ahead.limit {
            let arm = Arm { place: ahead.pass.place(), at: ends };
            let next = ahead.pass.end_lbn();
            ahead.pass = self.drive.plan(&ahead.pass.extent, arm, next, ahead.limit - next, false);
            ends = ahead.pass.end(&self.drive);
        }
        if !ahead.wrapping {
            let read = ahead.pass.first + u64::from(ahead.pass.gone_by(&self.drive, now));
            self.cache.slide(ahead.segment, read);
        }
        self.work = Work::ReadAhead(ahead);
        if ends <= now {
            self.end_read_ahead(ahead, Arm { place: ahead.pass.place(), at: ends });
        }
    }

    /// The read-ahead came to its own end: the front of the track follows where the drive reads whole tracks.
    fn end_read_ahead(&mut self, mut ahead: Ahead, arm: Arm) {
        let held_from = self.cache.segment(ahead.segment).start;
        match ahead.front {
            Some(front) if ahead.wrapping => self.cache.set_start(ahead.segment, front),
            Some(front) if front < held_from => {
                ahead.pass = self.drive.plan(&ahead.pass.extent, arm, front, held_from - front, false);
                (ahead.limit, ahead.wrapping) = (held_from, true);
                self.work = Work::ReadAhead(ahead);
                return self.follow_read_ahead(self.now);
            }
            _ => {}
        }
        self.stop_read_ahead(ahead, arm);
    }

    fn stop_read_ahead(&mut self, ahead: Ahead, arm: Arm) {
        self.cache.set_state(ahead.segment, SegmentState::Read);
        self.near = ahead.pass.extent;
        self.arm = arm;
        self.work = Work::Idle;
    }

    /// Cuts the read-ahead off for other work; says when that will be possible where it is not yet.
    fn cut_off(&mut self, ahead: Ahead) -> Option<Nanos> {
        let (now, pass) = (self.now, ahead.pass);
        let read = self.cache.segment(ahead.segment).end;
        if read < ahead.keep_to {
            let count = pass.sectors.min((ahead.keep_to.0 - pass.first.0).min(u64::from(u32::MAX)) as u32);
            return Some(pass.end_of(&self.drive, count));
        }
        let mut at = now.max(pass.on_track);
        if now > pass.begins && !self.rule.stops_in_sector {
            let count = pass.gone_by(&self.drive, now) + 1;
            at = pass.end_of(&self.drive, count.min(pass.sectors));
            if !ahead.wrapping {
                self.cache.slide(ahead.segment, pass.first + u64::from(count.min(pass.sectors)));
            }
        }
        self.stop_read_ahead(ahead, Arm { place: pass.place(), at });
        None
    }

    /// Whether this segment is the one being read ahead into.
    pub(super) fn is_read_ahead(&self, segment: usize) -> bool {
        matches!(self.work, Work::ReadAhead(ahead) if ahead.segment == segment && !ahead.wrapping)
    }

    /// Whether a command up to `end` may wait for the read-ahead: for what is read in any case, or where nobody else
    /// waits for the arm.
    pub(super) fn may_ride(&self, end: Lbn) -> bool {
        match self.work {
            Work::ReadAhead(ahead) => self.waiting.is_empty() || end <= ahead.keep_to,
            _ => false,
        }
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

    /// A command whose first blocks are read ahead takes the read-ahead over. Returns when all its blocks are in the
    /// buffer, and the earliest end of their transfer.
    pub(super) fn ride_read_ahead(&mut self, slot: u32, segment: usize) -> (Nanos, Nanos) {
        let Work::ReadAhead(ahead) = self.work else { unreachable!("the segment is read ahead into") };
        let request = self.jobs[slot as usize].request;
        let read = self.cache.segment(segment).end.max(request.lbn);
        let mut delivered = self.delivery(slot);
        delivered.end = request.end();
        let running = ahead.pass.part(&self.drive, read, request.end());
        let span = self.drive.read_in_order(self.now, running, request.end(), &mut delivered);
        let delay = self.drive.mechanics.read_delay();
        delivered.delay(delay);
        self.cache.touch(segment, request.end());
        if request.end() <= ahead.keep_to && !self.waiting.is_empty() {
            // The arm goes on as it would have; only the bus waits for it.
            return (span.end + delay, delivered.bound);
        }
        self.near = span.last.extent;
        self.arm = span.arm();
        self.last_lbn = request.end();
        self.arm_event = span.end;
        self.work = Work::Reading { segment: Some(segment), start: request.lbn, end: request.end() };
        (span.end + delay, delivered.bound)
    }

    /// A command was answered from a segment: a read-ahead for it goes on as far as its rule allows.
    pub(super) fn note_hit(&mut self, slot: u32, segment: usize) {
        let job = &self.jobs[slot as usize];
        let (start, end, ready) = (job.request.lbn, job.request.end(), job.overhead_done);
        self.cache.touch(segment, end);
        let held = self.cache.segment(segment);
        if let Work::ReadAhead(ahead) = &mut self.work {
            if ahead.segment == segment && !ahead.wrapping {
                let limit = self.rule.limit(&self.drive, &ahead.pass.extent, held.start, start, end);
                ahead.limit = ahead.limit.max(limit);
            }
        } else if self.rule.on_hit && held.state == SegmentState::Read && matches!(self.work, Work::Idle) {
            self.begin_read_ahead(segment, start, end, ready);
        }
    }

    /// Starts a write-through.
    fn start_write(&mut self, slot: u32) -> bool {
        let begins = self.access_begins(slot);
        let job = self.jobs[slot as usize];
        let run = job.request.lbn..job.request.end();
        let mut span = self.write_span(begins, run, job.arriving, self.config.room());
        span.delay_media(self.retry_time());
        self.arm.at = span.end;
        self.account_span(slot, &span);
        self.want_port(span.end, slot, Wanted::Finish);
        self.destage.last_was_destage = false;
        self.arm_event = span.end;
        self.work = Work::Writing { slot: Some(slot) };
        true
    }

    /// Plans a media write, from `begins` on: the least seek of a write elsewhere, whole physical sectors.
    pub(super) fn write_span(
        &mut self,
        begins: Nanos,
        run: Range<Lbn>,
        arriving: Arriving,
        room: Room,
    ) -> Span {
        let (start, end) = (run.start, run.end);
        let (place, _) = self.drive.target(start);
        let continues = start == self.last_lbn;
        let seek = self.drive.mechanics.reposition(self.arm.place, place, true);
        let wait = if continues { Nanos::ZERO } else { self.config.write_seek_min.since(seek) };
        let arm = Arm { place: self.arm.place, at: begins + wait };
        let mut span = self.drive.write_in_parts(&self.near, arm, run, arriving, room);
        self.near = span.last.extent;
        span.seek += wait;
        let physical = self.config.physical_sectors;
        if !start.0.is_multiple_of(physical) || !end.0.is_multiple_of(physical) {
            // Part of a physical sector: it is read first, and written when it comes round again.
            span.delay_media(self.drive.mechanics.spindle().period());
        }
        self.arm = span.arm();
        self.last_lbn = end;
        span
    }

    fn finish_write(&mut self, slot: Option<u32>) {
        self.work = Work::Idle;
        match slot {
            Some(slot) => {
                let job = self.jobs[slot as usize];
                self.settle_segment(job.segment, job.request.end());
                self.unblock();
            }
            None => self.finish_destage(),
        }
        self.run_arm();
    }
}
