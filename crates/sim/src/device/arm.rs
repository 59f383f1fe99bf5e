//! The arm's work: the choice of the next command, reads with their read-ahead, writes, and the destages between them.

use super::disk::Work;
use super::job::Job;
use super::media::Arm;
use super::port::Wanted;
use super::record::List;
use super::shingled;
use super::slow::PlannedAccess;
use super::split::Part;
use super::unbuffered::PassingAccess;
use super::{CacheUse, Device};
use headstack_model::cache::{Hit, SegmentState};
use headstack_model::spec::WriteCache;
use headstack_model::{Instant, Lbn, Nanos, Op};
use std::ops::Range;

/// What a command that waited for the arm finds in the cache when the arm is free.
enum Found {
    /// All of it; the data are being sent to the host.
    Sent,
    /// Its first blocks, in this segment.
    Start(usize),
    Nothing,
}

impl Device {
    pub(super) fn want_arm(&mut self, slot: u32) {
        // The usual case at depth 1.
        if self.is_only_choice() && self.leave_read_ahead().is_none() {
            if !self.start(slot) {
                self.run_arm();
            }
            return;
        }
        self.commands.wait_for_arm(slot, &self.disk.drive);
        self.commit_ahead();
        self.run_arm();
    }

    /// Whether the command that arrives now is certainly the arm's next work, as soon as the arm may leave its present work: no other
    /// command waits.
    fn is_only_choice(&self) -> bool {
        !self.disk.work.is_fixed()
            && self.commands.waiting.is_empty()
            && !self.commands.waiting.must_ask()
            && self.destage.blocked.is_empty()
            && !self.destage_first()
            && !self.log_first()
    }

    pub(super) fn destage_first(&self) -> bool {
        self.destage.is_first(&self.commands.jobs) && !self.commands.waiting.is_overdue(self.now)
    }

    pub(super) fn log_first(&self) -> bool {
        self.media_cache.as_ref().is_some_and(|log| log.is_first())
    }

    fn log_due(&self) -> Instant {
        self.media_cache.as_ref().map_or(self.disk.cleaning_due(), |log| log.due())
    }

    pub(super) fn start_destage(&mut self) -> bool {
        let continues = self.destage.continues_at(self.disk.last_lbn);
        let starts = self.destage.start(&mut self.disk, self.now);
        if starts && !continues {
            self.stream.begin(self.disk.event);
        }
        starts
    }

    fn start_emptying(&mut self) -> bool {
        match &mut self.media_cache {
            Some(log) => log.start_emptying(&mut self.disk, self.now),
            None => self.disk.start_cleaning(self.now),
        }
    }

    #[inline(always)]
    pub(super) fn follow_read_ahead(&mut self) {
        self.ahead.follow(&mut self.disk, &mut self.cache, self.now);
    }

    fn leave_read_ahead(&mut self) -> Option<Instant> {
        self.ahead.leave(&mut self.disk, &mut self.cache, self.now)
    }

    /// Handles the end of the arm's work, or a point at which that may be cut off.
    pub(super) fn handle_arm(&mut self) {
        self.disk.event = Instant::MAX;
        match self.disk.work {
            Work::Reading { segment, start, end } => self.finish_read(segment, start..end),
            Work::Writing { slot } => self.finish_write(slot),
            Work::Choosing | Work::Emptying => {
                self.disk.work = Work::Idle;
                self.run_arm();
            }
            Work::Idle | Work::ReadAhead | Work::Reserved { .. } | Work::Passing { .. } => self.run_arm(),
        }
    }

    /// Chooses the next work after an access. The choice among waiting commands takes `choice_ms`, in which others may arrive; a
    /// command that continues where the access ended needs no choice, nor does a write that continues the log at the arm.
    fn turn_to_next(&mut self) {
        if self.continue_writes() || self.continue_log() {
            return;
        }
        let chooses = self.config.choice > Nanos::ZERO
            && matches!(self.disk.work, Work::Idle)
            && !self.commands.waiting.is_empty()
            && !self.commands.waiting.begins_at(self.disk.last_lbn)
            && !self.destage_first();
        if chooses {
            self.disk.occupy(Work::Choosing, self.disk.arm_from(self.now).at + self.config.choice);
        } else {
            self.run_arm();
        }
    }

    /// Starts the next work if there is any and the arm may leave its present work.
    pub(super) fn run_arm(&mut self) {
        if self.disk.work.is_fixed() {
            return;
        }
        self.follow_read_ahead();
        let due = self.destage.due().min(self.log_due());
        let held_out = !self.destage.blocked.is_empty();
        if self.commands.waiting.is_empty() && due > self.now && !held_out {
            self.disk.event = due;
            return;
        }
        if self.hold_read_ahead() {
            return;
        }
        if let Some(later) = self.leave_read_ahead() {
            self.disk.event = later;
            return;
        }
        if held_out {
            // The read-ahead may have had the segment that a write waits for.
            self.unblock();
        }
        self.start_next();
    }

    /// Starts a destage or a waiting command. Waiting commands that the cache can answer by now are sent instead.
    fn start_next(&mut self) {
        if self.log_first() && self.start_emptying() {
            return;
        }
        while !(self.destage_first() && self.start_destage()) {
            if self.commands.waiting.has_limits() {
                self.abort_overdue();
            }
            let Some(slot) = self.choose() else {
                let destages = self.destage.due() <= self.now && self.start_destage();
                let is_at_work = destages || self.log_due() <= self.now && self.start_emptying();
                if !is_at_work {
                    self.disk.event = self.destage.due().min(self.log_due());
                }
                return;
            };
            if self.start(slot) {
                return self.commit_ahead();
            }
            if self.disk.work.is_read_ahead() {
                // The hit that was just sent resumed its read-ahead: cut it off if more commands wait.
                return self.run_arm();
            }
        }
    }

    /// Starts a command; false if the cache can answer it by now.
    pub(super) fn start(&mut self, slot: u32) -> bool {
        self.disk.note_outstanding(self.commands.outstanding());
        // The code of all but reads is out of line, so that reads need less of the instruction cache.
        match self.commands.jobs[slot as usize].command.request.op {
            _ if !self.config.is_buffered => self.start_passing(slot),
            Op::Read => self.start_read(slot),
            _ if self.commands.jobs[slot as usize].defers_data => self.reserve_arm(slot),
            _ => self.start_write(slot),
        }
    }

    /// Returns when a command's access starts: the arm is free and its overhead over. Accounts for the time until then.
    #[inline(always)]
    pub(super) fn access_begins(&mut self, slot: u32) -> Instant {
        let free = self.disk.access_from(self.now);
        self.job(slot).begin_access(free)
    }

    /// Starts the access of a drive without a buffer: the arm moves, and the port is requested for the time of the first sector.
    #[inline(never)]
    fn start_passing(&mut self, slot: u32) -> bool {
        let is_write = self.commands.jobs[slot as usize].command.request.op == Op::Write;
        if !is_write && !self.disk.is_plain && self.start_unreadable(slot) {
            return true;
        }
        let begins = self.access_begins(slot);
        if is_write {
            self.note_through(slot);
            if let Some(record) = &mut self.disk.record {
                record.begin(List::Command(slot), begins);
            }
        }
        let plan = if is_write { PassingAccess::write } else { PassingAccess::read };
        let job = &mut self.commands.jobs[slot as usize];
        let access = plan(&mut self.disk, job, begins, &self.port.bus);
        self.destage.last_was_destage = false;
        self.disk.occupy(Work::Passing { is_write }, Instant::MAX);
        self.request_passing(slot, access);
        true
    }

    /// Starts a read; false if the cache can answer it by now.
    fn start_read(&mut self, slot: u32) -> bool {
        let Job { command, accounted, media_from, .. } = self.commands.jobs[slot as usize];
        let (request, mut into) = (command.request, None);
        if accounted < self.now || media_from > request.lbn {
            match self.recheck_cache(slot) {
                Found::Sent => return false,
                Found::Start(segment) => into = Some(segment),
                Found::Nothing => self.job(slot).cache = CacheUse::Miss,
            }
        }
        if !self.disk.is_plain && (self.start_unreadable(slot) || shingled::start_read(self, slot)) {
            return true;
        }
        let Job { media_from, submitted, .. } = self.commands.jobs[slot as usize];
        // A command that waited while the sectors before its own passed.
        let (last, free) = (self.disk.last_lbn, self.disk.arm.at);
        let continues =
            self.stream.is_enabled() && media_from == last && free >= self.now && submitted < free;
        self.read_from_media(slot, into, continues);
        true
    }

    /// Reads the blocks of a command from the media, into a segment that has its first ones or into a new one. Where it `continues` the
    /// access that ends now, its sectors pass while its overhead is not over.
    pub(super) fn read_from_media(&mut self, slot: u32, mut into: Option<usize>, continues: bool) {
        let free = self.disk.access_from(self.now);
        let job = &mut self.commands.jobs[slot as usize];
        let (request, start) = (job.command.request, job.media_from);
        let begins = if continues { job.continue_access(free) } else { job.begin_access(free) };
        if into.is_none() && self.stream.is_enabled() {
            into = self.cache.continued_read(start);
        }
        let mut delivered = self.config.buffer.delivery(job, self.port.bus.read_sector);
        let (arm, disturbed) = self.disk.read_arm(begins, start);
        let near = if job.extent.contains(start) { &job.extent } else { &self.disk.last_extent };
        let pass = self.disk.drive.plan(near, arm, start, request.end() - start, false);
        let mut span = self.disk.drive.read(arm, pass, request.end(), &mut delivered);
        span.seek += disturbed;
        let blocks = start..request.end();
        let lost = self.disk.delay_read(job.found_idle, begins, blocks, &mut span, &mut delivered);
        let travel = self.disk.travel_to(pass.place());
        self.disk.account(job, &span, travel);
        job.account_retries(lost);
        job.account(Part::Overhead, job.overhead_done);
        // Data that arrived in the buffer while the command waited have yet to cross the bus as well.
        let ready = delivered.ready.max(job.sent_at).max(job.overhead_done);
        let unsent = start.min(job.sent_to);
        let segment = into.or_else(|| self.cache.take_for_read(start));
        if let Some(index) = segment {
            self.cache.set_state(index, SegmentState::Filling);
            if self.ahead.rule.from_arrival && into.is_none() {
                let landed = self.disk.drive.landed_before(&pass);
                self.cache.set_start(index, self.disk.bad_blocks.sound_from(landed, start));
            }
        }
        if job.command.limit > 0 && self.commands.abort_if_overdue(slot, begins, span.end) {
            self.port.want(span.end, slot, Wanted::Finish);
        } else {
            self.send_from_media(slot, request.end() - unsent, ready, delivered.bound);
        }
        self.disk.move_to_end(&span, request.end());
        self.destage.last_was_destage = false;
        self.disk.occupy(Work::Reading { segment, start: request.lbn, end: request.end() }, span.end);
        if !continues {
            // What the command itself reads is a part of the time.
            self.stream.begin(span.end.saturating_sub(span.media));
        }
    }

    /// Looks up again in the cache a command that waited; a whole hit is sent without the arm.
    #[inline(never)]
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
                let held = self.cache.blocks(segment).end;
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

    /// Sends the data of a command that are in the cache by now.
    pub(super) fn send_again(&mut self, slot: u32) {
        let now = self.now;
        let job = self.job(slot);
        job.cache = CacheUse::Whole;
        let ready = now.max(job.overhead_done);
        job.wait_until(now);
        job.account(Part::Overhead, ready);
        let sectors = u64::from(job.command.request.sectors);
        self.port.want(ready, slot, Wanted::ToHost { sectors, bound: Instant::ZERO, crossing: false });
    }

    fn finish_read(&mut self, segment: Option<usize>, blocks: Range<Lbn>) {
        self.disk.work = Work::Idle;
        if let Some(index) = segment {
            self.cache.slide(index, blocks.end);
            self.cache.touch(index, blocks.end);
            self.cache.set_state(index, SegmentState::Read);
            if self.continue_reads(index) {
                return self.commit_ahead();
            }
            self.begin_read_ahead(index, blocks, self.now);
        }
        self.turn_to_next();
    }

    fn begin_read_ahead(&mut self, segment: usize, blocks: Range<Lbn>, from: Instant) {
        let busy = !self.commands.waiting.is_empty() || self.destage.due() <= self.now;
        let held = busy && self.may_hold();
        self.ahead.begin(&mut self.disk, &mut self.cache, self.now, segment, blocks, (from, busy, held));
    }

    /// Records that a command was answered from a segment, whose read-ahead then continues as far as its rule allows.
    pub(super) fn note_hit(&mut self, slot: u32, segment: usize) {
        let Job { command, overhead_done: ready, .. } = &self.commands.jobs[slot as usize];
        let (blocks, ready) = (command.request.lbn..command.request.end(), *ready);
        self.cache.touch(segment, blocks.end);
        match self.disk.work {
            Work::ReadAhead if self.ahead.fills(&self.disk, segment) => {
                self.ahead.extend(&self.disk, &mut self.cache, self.now, segment, blocks);
            }
            Work::Idle
                if self.ahead.rule.on_hit && self.cache.segment(segment).state == SegmentState::Read =>
            {
                self.begin_read_ahead(segment, blocks, ready);
            }
            _ => {}
        }
    }

    /// Reserves the arm for a write that deferred its data while the arm did other work; false where the cache has no room
    /// for them.
    #[inline(never)]
    fn reserve_arm(&mut self, slot: u32) -> bool {
        let now = self.now;
        let job = self.job(slot);
        job.defers_data = false;
        job.wait_until(now);
        if self.destage.policy != WriteCache::None && !self.reserve_write(slot) {
            self.destage.blocked.push_back(slot);
            return false;
        }
        self.disk.occupy(Work::Reserved { slot }, Instant::MAX);
        self.port.want(now, slot, Wanted::FromHost);
        true
    }

    pub(super) fn reserve_write(&mut self, slot: u32) -> bool {
        self.destage.reserve(&mut self.cache, &mut self.commands.jobs[slot as usize])
    }

    /// Starts a write-through: to the log on the media, or to its own place.
    #[inline(never)]
    pub(super) fn start_write(&mut self, slot: u32) -> bool {
        let request = self.commands.jobs[slot as usize].command.request;
        let is_fast = self.is_of_fast_stream(slot);
        let log = self.media_cache.as_mut();
        let is_logged = log.is_some_and(|log| log.accepts(&self.disk, slot, &request, is_fast));
        let begins = self.access_begins(slot);
        if let Some(record) = &mut self.disk.record {
            record.begin(List::Command(slot), begins);
        }
        let job = &mut self.commands.jobs[slot as usize];
        let end = match &mut self.media_cache {
            _ if self.disk.shingled.is_some() => self.disk.log_command(job, begins),
            Some(log) if is_logged => {
                let (span, place) = log.span(&self.disk, job, begins);
                let travel = self.disk.travel_to(place);
                self.disk.account(job, &span, travel);
                self.disk.arm = Arm { place, at: span.end };
                span.end
            }
            _ => {
                let run = request.lbn..request.end();
                let retries = self.disk.retry_time(job.found_idle, run.start);
                let room = self.config.buffer.room;
                let (mut span, travel) =
                    self.disk.write_span(begins, run.clone(), run.clone(), job.arriving, room);
                let access = PlannedAccess { begins, ends: span.end, blocks: run };
                let lost = retries + self.disk.slowness_time(access);
                self.disk.put_off(&mut span, lost);
                self.disk.arm.at = span.end;
                self.disk.account(job, &span, travel);
                job.account_retries(lost);
                span.end
            }
        };
        if job.command.limit > 0 {
            self.commands.abort_if_overdue(slot, begins, end);
        }
        self.port.want(end, slot, Wanted::Finish);
        self.destage.last_was_destage = false;
        self.disk.occupy(Work::Writing { slot: Some(slot) }, end);
        true
    }

    /// Records that a write's data bypass the cache.
    pub(super) fn note_through(&mut self, slot: u32) {
        self.disk.note_write(List::Command(slot), &self.commands.jobs[slot as usize]);
    }

    fn finish_write(&mut self, slot: Option<u32>) {
        if !self.destage.ends_going_over() {
            if let Some(record) = &mut self.disk.record {
                record.end_access(&self.disk.drive);
            }
            if slot.is_none() && self.destage.go_over_joined(&mut self.disk) {
                return;
            }
        }
        self.disk.work = Work::Idle;
        self.disk.finish_logged(self.now);
        match slot {
            Some(slot) => {
                let Job { command, segment, .. } = self.commands.jobs[slot as usize];
                self.destage.clean(&mut self.cache, segment, command.request.end());
                if let Some(log) = &mut self.media_cache {
                    log.finish(&mut self.disk, slot, &command.request, self.now);
                }
            }
            None => {
                self.destage.finish(&mut self.cache);
                self.finish_flushes(self.now);
            }
        }
        self.unblock();
        if self.continue_destage() {
            return;
        }
        self.turn_to_next();
    }

    /// Accepts writes that waited for room.
    fn unblock(&mut self) {
        while let Some(slot) = self.destage.blocked.front().copied() {
            if !self.reserve_write(slot) {
                return;
            }
            self.destage.blocked.pop_front();
            self.port.want(self.now, slot, Wanted::FromHost);
        }
    }

    /// Ends the flushes once nothing is dirty.
    pub(super) fn finish_flushes(&mut self, at: Instant) {
        while let Some(slot) = self.destage.next_flushed() {
            let done = at + self.config.flush;
            self.job(slot).account(Part::Cache, done);
            self.port.want(done, slot, Wanted::Finish);
        }
    }
}
