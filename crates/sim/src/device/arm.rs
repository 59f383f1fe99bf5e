//! The arm's work: which command next, reads with their read-ahead, writes.

use super::cost::{Buffer, Cost, Target};
use super::media::{Arm, Arriving, Room, Span};
use super::port::Wanted;
use super::split::Part;
use super::{CacheUse, Device, Job, TaskAttribute, Travel};
use headstack_model::cache::{Hit, SegmentState};
use headstack_model::spec::{Retries, WriteCache};
use headstack_model::{Angle, Lbn, Nanos, Op, TrackPlace};
use headstack_policy::order::Edge;
use headstack_policy::{Slot, SlotId};
use rand::RngExt;
use std::ops::Range;

/// The present work of the arm.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// Nothing.
    Idle,
    /// Nothing until the next command is chosen.
    Choosing,
    /// Reads for a command, into a segment where one was free, up to `end`.
    Reading { segment: Option<usize>, start: Lbn, end: Lbn },
    /// Reads ahead, as the device's `ahead` says.
    ReadAhead,
    /// Writes: a command's blocks, or cached ones.
    Writing { slot: Option<u32> },
    /// Moves writes of the log on the media to their own places.
    Emptying,
    /// None yet: it is reserved for a write whose data must arrive in the cache first.
    Reserved { slot: u32 },
}

/// What a command that waited for the arm now finds in the cache.
enum Found {
    /// All of it; the data are being sent to the host.
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
        self.command.request.op == Op::Write
    }
}

impl Device {
    /// Queues a command for the arm.
    pub(super) fn want_arm(&mut self, slot: u32) {
        if self.is_only_choice() {
            // The usual case at depth 1.
            let later = self.leave_read_ahead();
            if later.is_none() {
                if !self.start(slot) {
                    self.run_arm();
                }
                return;
            }
        }
        let lbn = self.commands.jobs[slot as usize].media_from;
        let (place, angle) = self.drive.target(lbn);
        let job = self.job(slot);
        (job.place, job.angle) = (place, angle);
        let Job { command, submitted, .. } = *job;
        let entry = Slot {
            urgent: command.urgent,
            deadline: command.deadline.unwrap_or(Nanos::MAX),
            ..Slot::new(SlotId(slot), command.request, submitted, place.cylinder, place.head)
        };
        match command.attribute {
            TaskAttribute::HeadOfQueue => self.commands.waiting.add_at_head(entry),
            _ => self.commands.waiting.add(entry),
        }
        self.run_arm();
    }

    /// Whether the arm's next work is the command that arrives now, as soon as the arm may leave its present work: no other
    /// command waits.
    fn is_only_choice(&self) -> bool {
        !self.arm_is_taken()
            && self.commands.waiting.is_empty()
            && !self.commands.waiting.must_ask()
            && self.destage.blocked.is_empty()
            && !self.destage_first()
            && !self.log_first()
    }

    /// Stops the read-ahead, if one is in progress; returns when that is possible if not yet.
    pub(super) fn leave_read_ahead(&mut self) -> Option<Nanos> {
        self.follow_read_ahead(self.now);
        self.cut_off()
    }

    /// The arm's work came to its end, or to a point where it may be cut off.
    pub(super) fn handle_arm(&mut self) {
        self.arm_event = Nanos::MAX;
        match self.work {
            Work::Reading { segment, start, end } => self.finish_read(segment, start, end),
            Work::Writing { slot } => self.finish_write(slot),
            Work::Choosing | Work::Emptying => {
                self.work = Work::Idle;
                self.run_arm();
            }
            Work::Idle | Work::ReadAhead | Work::Reserved { .. } => self.run_arm(),
        }
    }

    /// Chooses the next work after an access. The choice among waiting commands takes `choice_ms`, in which others may arrive; a
    /// command that continues where the access ended needs no choice.
    fn turn_to_next(&mut self) {
        let chooses = self.config.choice > Nanos::ZERO
            && matches!(self.work, Work::Idle)
            && !self.commands.waiting.is_empty()
            && !self.commands.waiting.begins_at(self.last.lbn)
            && !self.destage_first();
        if chooses {
            self.work = Work::Choosing;
            self.arm_event = self.arm.at.max(self.now) + self.config.choice;
        } else {
            self.run_arm();
        }
    }

    /// Whether the arm is at work that nothing cuts off.
    pub(super) fn arm_is_taken(&self) -> bool {
        !matches!(self.work, Work::Idle | Work::ReadAhead)
    }

    /// Starts the next work if there is any and the arm may leave its present work.
    pub(super) fn run_arm(&mut self) {
        if self.arm_is_taken() {
            return;
        }
        self.follow_read_ahead(self.now);
        let due = self.destage_due().min(self.log_due());
        let held_out = !self.destage.blocked.is_empty();
        if self.commands.waiting.is_empty() && due > self.now && !held_out {
            self.arm_event = due;
            return;
        }
        if let Some(later) = self.leave_read_ahead() {
            self.arm_event = later;
            return;
        }
        if held_out {
            // The read-ahead may have had the segment that a write waits for.
            self.unblock();
        }
        self.start_next();
    }

    /// Starts a destage or a waiting command. Commands that the cache can answer by now are sent on the way.
    fn start_next(&mut self) {
        if self.log_first() && self.start_emptying() {
            return;
        }
        while !(self.destage_first() && self.start_destage()) {
            let Some(slot) = self.choose() else {
                let destages = self.destage_due() <= self.now && self.start_destage();
                let is_at_work = destages || self.log_due() <= self.now && self.start_emptying();
                if !is_at_work {
                    self.arm_event = self.destage_due().min(self.log_due());
                }
                return;
            };
            if self.start(slot) {
                return;
            }
            if matches!(self.work, Work::ReadAhead) {
                // The hit that was just sent resumed its read-ahead: cut it off if more commands wait.
                return self.run_arm();
            }
        }
    }

    /// Starts a command; false when the cache can answer it by now.
    fn start(&mut self, slot: u32) -> bool {
        match self.commands.jobs[slot as usize].command.request.op {
            Op::Read => self.start_read(slot),
            _ if self.commands.jobs[slot as usize].defers_data => self.reserve_arm(slot),
            _ => self.start_write(slot),
        }
    }

    fn choose(&mut self) -> Option<u32> {
        let arm = Arm { place: self.arm.place, at: self.arm.at.max(self.now) };
        let cost = Cost {
            drive: &self.drive,
            cylinders: self.size.cylinders,
            buffer: Some(Buffer { cache: &self.cache, destage: &self.destage }),
            targets: &self.commands.jobs,
            arm,
            last_lbn: self.last.lbn,
        };
        let SlotId(slot) = self.commands.waiting.choose(&cost)?;
        self.sweep_to_edge();
        Some(slot)
    }

    /// Moves the arm to the edges of the disk that the order visits.
    fn sweep_to_edge(&mut self) {
        for edge in self.commands.waiting.way() {
            let cylinder = if *edge == Edge::First { 0 } else { self.size.cylinders - 1 };
            let from = self.arm.place;
            let to = TrackPlace { cylinder, head: from.head };
            let took = self.drive.mechanics.reposition(from, to, false);
            self.arm = Arm { place: to, at: self.arm.at.max(self.now) + took };
            self.activity.sweep_to_edge(Travel { from: from.cylinder, to: cylinder }, took);
        }
    }

    /// When a command's access starts: the arm is free and its overhead over. Accounts the time until then.
    #[inline(always)]
    pub(super) fn access_begins(&mut self, slot: u32) -> Nanos {
        let free = self.arm.at.max(self.now);
        let free = match &mut self.chance.recalibration {
            Some(recalibrate) => {
                let (at, away) = recalibrate.delay(self.arm.at, free, &mut self.chance.random);
                self.activity.recalibration += away;
                at
            }
            None => free,
        };
        let job = self.job(slot);
        let begins = free.max(job.overhead_done);
        job.account(Part::Overhead, job.overhead_done);
        job.account(Part::Queued, begins);
        begins
    }

    /// Accounts an access for a command, with the seek `travel` before it.
    #[inline(always)]
    pub(super) fn account_span(&mut self, slot: u32, span: &Span, travel: Travel) {
        self.activity.command(span, travel);
        let job = self.job(slot);
        job.travel = Some(travel);
        job.parts.seek += span.seek;
        job.parts.rotational_latency += span.rotation;
        job.parts.media += span.media;
        job.accounted = span.end;
    }

    /// Separates the time lost to retries from the rotational latency.
    fn account_retries(&mut self, slot: u32, lost: Nanos) {
        let parts = &mut self.job(slot).parts;
        parts.rotational_latency = parts.rotational_latency.since(lost);
        parts.retries += lost;
    }

    /// Time that an access from `start` on loses to retries and to the drive's own work. An access that continues where the last
    /// one ended is already on its track and loses nothing to the latter.
    fn retry_time(&mut self, slot: u32, start: Lbn) -> Nanos {
        let mut time = self.chance.retries.map_or(Nanos::ZERO, |retries| self.geometric_retries(retries));
        if let Some(lost) = &self.chance.lost
            && start != self.last.lbn
            && (self.commands.jobs[slot as usize].found_idle || !lost.from_idle_only)
        {
            time += lost.draw(&mut self.chance.random);
        }
        time
    }

    /// Revolutions lost to retries that each follow with the same probability.
    fn geometric_retries(&mut self, retries: Retries) -> Nanos {
        let mut turns = 0;
        while turns < retries.turns_max && self.chance.random.random_bool(retries.probability) {
            turns += 1;
        }
        Nanos(self.drive.mechanics.spindle().period().0 * u64::from(turns))
    }

    /// Starts a read; false when the cache can answer it by now.
    fn start_read(&mut self, slot: u32) -> bool {
        let request = self.commands.jobs[slot as usize].command.request;
        let mut into = None;
        if self.commands.jobs[slot as usize].accounted < self.now
            || self.commands.jobs[slot as usize].media_from > request.lbn
        {
            match self.recheck_cache(slot) {
                Found::Sent => return false,
                Found::Start(segment) => into = Some(segment),
                Found::Nothing => self.job(slot).cache = CacheUse::Miss,
            }
        }
        if self.start_unreadable(slot) {
            return true;
        }
        let begins = self.access_begins(slot);
        let start = self.commands.jobs[slot as usize].media_from;
        let mut delivered = self.delivery(slot);
        let arm = Arm { place: self.arm.place, at: begins };
        let pass = self.drive.plan(&self.last.extent, arm, start, request.end() - start, false);
        let mut span = self.drive.read(arm, pass, request.end(), &mut delivered);
        self.last.extent = span.last.extent;
        let lost = self.retry_time(slot, start);
        span.delay(lost + self.slow_time(start, request.end()), &mut delivered);
        let travel = Travel { from: self.arm.place.cylinder, to: pass.place().cylinder };
        self.account_span(slot, &span, travel);
        self.account_retries(slot, lost);
        let segment = into.or_else(|| self.cache.take_for_read(start));
        if let Some(index) = segment {
            self.cache.set_state(index, SegmentState::Filling);
            if self.rule.from_arrival && into.is_none() {
                let first = self.sound_from(self.drive.landed_before(&pass), start);
                self.cache.set_start(index, first);
            }
        }
        // Data that arrived in the buffer while the command waited have yet to cross the bus as well.
        let job = &self.commands.jobs[slot as usize];
        let (unsent, ready) = (start.min(job.sent_to), delivered.ready.max(job.sent_at));
        self.send_from_media(slot, unsent, request.end() - unsent, ready, delivered.bound);
        self.arm = span.arm();
        self.last.lbn = request.end();
        self.destage.last_was_destage = false;
        self.arm_event = span.end;
        self.work = Work::Reading { segment, start: request.lbn, end: request.end() };
        true
    }

    /// Looks a command that waited up in the cache again; a whole hit is sent without the arm.
    fn recheck_cache(&mut self, slot: u32) -> Found {
        let request = self.commands.jobs[slot as usize].command.request;
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
            Hit::Part(segment) if self.cache.segment(segment).is_clean() => {
                let held = self.cache.segment(segment).end;
                let job = self.job(slot);
                (job.media_from, job.cache) = (held, CacheUse::Part);
                Found::Start(segment)
            }
            _ => {
                self.job(slot).media_from = request.lbn;
                Found::Nothing
            }
        }
    }

    /// Sends the data of a command that the cache holds by now.
    fn send_again(&mut self, slot: u32) {
        let now = self.now;
        let job = self.job(slot);
        job.cache = CacheUse::Whole;
        let ready = now.max(job.overhead_done);
        job.account(Part::Overhead, job.overhead_done.min(now));
        job.account(Part::Queued, now);
        job.account(Part::Overhead, ready);
        let sectors = u64::from(job.command.request.sectors);
        self.want_port(ready, slot, Wanted::ToHost { sectors, bound: Nanos::ZERO, crossing: false });
    }

    /// A read has left the media: reads ahead, or continues with the next work.
    fn finish_read(&mut self, segment: Option<usize>, start: Lbn, end: Lbn) {
        self.work = Work::Idle;
        if let Some(index) = segment {
            self.cache.slide(index, end);
            self.cache.touch(index, end);
            self.cache.set_state(index, SegmentState::Read);
            self.begin_read_ahead(index, start, end, self.now);
        }
        self.turn_to_next();
    }

    /// Keeps the arm for a write that kept its data back while the arm was another's; false where the cache has no room
    /// for them.
    fn reserve_arm(&mut self, slot: u32) -> bool {
        let now = self.now;
        let job = self.job(slot);
        job.defers_data = false;
        job.account(Part::Overhead, job.overhead_done.min(now));
        job.account(Part::Queued, now);
        if self.destage.policy != WriteCache::None && !self.reserve_write(slot) {
            self.destage.blocked.push_back(slot);
            return false;
        }
        self.work = Work::Reserved { slot };
        self.arm_event = Nanos::MAX;
        self.want_port(now, slot, Wanted::FromHost);
        true
    }

    /// Starts a write-through.
    pub(super) fn start_write(&mut self, slot: u32) -> bool {
        if self.start_logging(slot) {
            return true;
        }
        let begins = self.access_begins(slot);
        let job = self.commands.jobs[slot as usize];
        let run = job.command.request.lbn..job.command.request.end();
        if let Some(record) = &mut self.record {
            record.begin_command(slot, begins);
        }
        let lost = self.retry_time(slot, run.start);
        let (mut span, travel) = self.write_span(begins, run, job.arriving, self.config.room());
        self.put_off(&mut span, lost);
        self.arm.at = span.end;
        self.account_span(slot, &span, travel);
        self.account_retries(slot, lost);
        self.want_port(span.end, slot, Wanted::Finish);
        self.destage.last_was_destage = false;
        self.arm_event = span.end;
        self.work = Work::Writing { slot: Some(slot) };
        true
    }

    /// Plans a media write, from `begins` on: with the shortest seek of a write, unless it continues the last access without a
    /// stop, and in whole physical sectors. Also returns the seek.
    pub(super) fn write_span(
        &mut self,
        begins: Nanos,
        run: Range<Lbn>,
        arriving: Arriving,
        room: Room,
    ) -> (Span, Travel) {
        let (start, end) = (run.start, run.end);
        let (place, _) = self.drive.target(start);
        let travel = Travel { from: self.arm.place.cylinder, to: place.cylinder };
        let continues = start == self.last.lbn && begins == self.arm.at;
        let seek = self.drive.mechanics.reposition(self.arm.place, place, true);
        let wait = if continues { Nanos::ZERO } else { self.config.write_seek_min.since(seek) };
        let arm = Arm { place: self.arm.place, at: begins + wait };
        let mut span = match &mut self.record {
            None => self.drive.write_in_parts(&self.last.extent, arm, run, arriving, room, &mut |_| {}),
            Some(record) => {
                let mut sees = |pass| record.see(pass);
                self.drive.write_in_parts(&self.last.extent, arm, run, arriving, room, &mut sees)
            }
        };
        self.last.extent = span.last.extent;
        span.seek += wait;
        let physical = self.config.physical_sectors;
        if !start.0.is_multiple_of(physical) || !end.0.is_multiple_of(physical) {
            // Part of a physical sector: it is read first, and written a revolution later.
            self.put_off(&mut span, self.drive.mechanics.spindle().period());
        }
        if !self.is_sound(start, end) {
            self.put_off(&mut span, self.slow_time(start, end));
            self.cure(&(start..end));
        }
        self.arm = span.arm();
        self.last.lbn = end;
        (span, travel)
    }

    /// Delays a write's transfer by revolutions lost before it.
    fn put_off(&mut self, span: &mut Span, time: Nanos) {
        span.delay_media(time);
        if let Some(record) = &mut self.record {
            record.put_off(time);
        }
    }

    fn finish_write(&mut self, slot: Option<u32>) {
        if !self.destage.ends_going_over() {
            if let Some(record) = &mut self.record {
                record.end_access(&self.drive);
            }
            if slot.is_none() && self.go_over_joined() {
                return;
            }
        }
        self.work = Work::Idle;
        match slot {
            Some(slot) => {
                let job = self.commands.jobs[slot as usize];
                self.settle_segment(job.segment, job.command.request.end());
                self.finish_logging(slot);
                self.unblock();
            }
            None => self.finish_destage(),
        }
        self.turn_to_next();
    }
}
