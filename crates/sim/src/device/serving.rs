//! The port's work: commands are received, and their data and statuses sent.

use super::disk::Work;
use super::media::Arriving;
use super::port::{PortUse, Ready, Wanted};
use super::read_ahead::Sending;
use super::split::Part;
use super::unbuffered::PassingAccess;
use super::{CacheUse, Device, Outcome, TaskAttribute};
use crate::link::{HostLink, PortSharing};
use headstack_model::cache::{Hit, SegmentState};
use headstack_model::spec::WriteCache;
use headstack_model::{Instant, Lbn, Nanos, Op};
use headstack_policy::SlotId;
use std::ops::Range;

impl Device {
    /// Makes the device share links from now on; each call of the device passes them in.
    pub(crate) fn share(&mut self, sharing: PortSharing) {
        self.port.share(sharing);
    }

    /// Handles that the device has won the bus that it requested.
    pub(crate) fn handle_bus(&mut self, link: &mut HostLink<'_>, now: Instant) {
        self.advance(link, now);
        self.port.waits = false;
        if self.health.is_dead {
            return link.release_bus(self.now);
        }
        self.run_port(link);
    }

    /// Handles that the port became free, or that a command became ready for it.
    #[inline]
    pub(super) fn handle_port(&mut self, link: &mut HostLink<'_>) {
        if self.port.busy
            && let Some(slot) = self.port.fall_free(link, self.now)
        {
            self.complete(slot, self.now);
        }
        self.run_port(link);
    }

    /// Assigns the free port to the earliest request.
    #[inline]
    fn run_port(&mut self, link: &mut HostLink<'_>) {
        if !self.port.is_open(self.now) {
            return;
        }
        while !self.port.busy {
            let received = self.port.receptions.front().filter(|slot| self.commands.may_receive(**slot));
            let arrived = received.map(|slot| self.commands.jobs[*slot as usize].submitted);
            match self.port.next(link, self.now, arrived) {
                Some(PortUse::Serve(ready)) => self.serve(link, ready),
                Some(PortUse::Receive(slot)) => self.receive(link, slot),
                None => return,
            }
        }
    }

    /// Receives a command over the port, at once if the port is free and no other command needs it.
    #[inline]
    pub(super) fn receive_or_queue(&mut self, link: &mut HostLink<'_>, slot: u32) {
        if self.port.is_unwanted(self.now) && self.commands.may_receive(slot) {
            self.port.busy = false;
            return self.receive(link, slot);
        }
        match self.commands.jobs[slot as usize].command.attribute {
            TaskAttribute::HeadOfQueue => self.port.receptions.push_front(slot),
            _ => self.port.receptions.push_back(slot),
        }
        self.run_port(link);
    }

    #[inline]
    fn serve(&mut self, link: &mut HostLink<'_>, Ready { slot, wanted, .. }: Ready) {
        let now = self.now;
        let held = self.port.bus.never_disconnects;
        let first = if held { Nanos::ZERO } else { self.port.bus.reconnect_first };
        let begins = now + first + self.port.bus.data_preparation;
        match wanted {
            Wanted::ToHost { sectors, bound, crossing } => {
                self.send(link, slot, begins, sectors, (bound, crossing));
            }
            Wanted::FromHost if self.destage.policy == WriteCache::None => {
                self.flow_through(slot, begins);
                let sent = self.receive_data(link, slot, begins);
                self.port.take(sent + self.port.bus.disconnect_write, None);
                self.note_through(slot);
                self.start_write(slot);
            }
            Wanted::FromHost => {
                let job = self.job(slot);
                job.account(Part::Overhead, job.overhead_done.min(now));
                job.account(Part::Cache, now);
                self.store_write(link, slot, begins);
            }
            Wanted::FromHostLate => {
                let before = self.port.bus.before_data;
                let late = before.map_or(Nanos::ZERO, |before| Nanos::from_ms(before.second_disconnect_ms));
                let sent = if self.port.sharing.is_shared {
                    // Only now is the arrival of the data known.
                    let sent = self.receive_data(link, slot, begins);
                    self.note_through(slot);
                    self.want_arm(slot);
                    sent
                } else {
                    let sectors = u64::from(self.commands.jobs[slot as usize].command.request.sectors);
                    begins + self.port.bus.write_time(sectors)
                };
                self.port.take(sent + late, None);
            }
            Wanted::Pass => self.serve_passing(link, slot, begins),
            Wanted::Finish => {
                let early = self.commands.jobs[slot as usize].disconnected_early;
                let again = if early && !held { self.port.bus.reconnect_other } else { first };
                self.job(slot).account(Part::Bus, now);
                let done = link.report(now + again + self.port.bus.write_completion);
                self.end(link, slot, done);
            }
        }
    }

    /// Sends a read's data from `begins` on, no earlier than `bound` and than they arrive from the media.
    fn send(
        &mut self,
        link: &mut HostLink<'_>,
        slot: u32,
        begins: Instant,
        sectors: u64,
        (mut bound, mut crossing): (Instant, bool),
    ) {
        let now = self.now;
        if !crossing && self.port.sharing.streams {
            (bound, crossing) = (self.port.send(link, now, begins, sectors, bound), true);
        }
        let time = self.port.bus.read_time(sectors);
        let in_time = bound.saturating_sub(begins - now + time);
        if in_time > now && !self.port.bus.holds() {
            // The media are not far enough: others may use the bus until the data can cross it without a pause.
            return self.port.want(in_time, slot, Wanted::ToHost { sectors, bound, crossing });
        }
        let sent = if crossing {
            (begins + time).max(bound)
        } else {
            self.port.send(link, now, begins, sectors, bound)
        };
        self.end_read(link, slot, sectors, begins, sent);
    }

    /// Serves the access of a drive without a buffer, whose data could begin to cross at `begins`: in time for its first sector, or too
    /// late.
    fn serve_passing(&mut self, link: &mut HostLink<'_>, slot: u32, begins: Instant) {
        let mut access = self.passing.take().expect("an access requested the port");
        let job = &mut self.commands.jobs[slot as usize];
        let late = access.late_by(begins);
        if late > Nanos::ZERO {
            access.lose_turns(&mut self.disk, job, late);
            if self.port.bus.never_disconnects {
                self.port.take_for_command(begins)
            } else {
                link.release_bus(self.now)
            }
            return self.request_passing(slot, access);
        }
        let bytes = self.port.bytes(u64::from(job.command.request.sectors));
        let late = link.transfer(self.now, access.transfer(bytes)).since(access.crossed);
        if late > Nanos::ZERO {
            access.lose_turns(&mut self.disk, job, late);
        }
        if access.is_write {
            self.disk.occupy(Work::Writing { slot: Some(slot) }, access.media_end);
            self.port.take_for_command(access.crossed + self.port.bus.disconnect_write);
            return self.port.want(access.crossed, slot, Wanted::Finish);
        }
        let (start, end) = (job.command.request.lbn, job.command.request.end());
        job.account(Part::Bus, access.crossed);
        self.disk.occupy(Work::Reading { segment: None, start, end }, access.media_end);
        self.end(link, slot, access.crossed + self.port.bus.read_completion);
    }

    /// Requests the port for the time at which the data of the access must begin to cross.
    pub(super) fn request_passing(&mut self, slot: u32, access: PassingAccess) {
        self.port.want(access.request_at(self.port.lead()), slot, Wanted::Pass);
        self.passing = Some(access);
    }

    fn end(&mut self, link: &mut HostLink<'_>, slot: u32, done: Instant) {
        self.port.end(link, self.now, slot, &mut self.commands.jobs[slot as usize], done);
    }

    /// Occupies the port until the end of a read, the last of whose data cross from `begins` to `sent`.
    fn end_read(&mut self, link: &mut HostLink<'_>, slot: u32, sectors: u64, begins: Instant, sent: Instant) {
        let job = self.job(slot);
        job.account(Part::Bus, sent);
        let first = Lbn(job.command.request.end().0 - sectors);
        self.ahead.sending = Sending { first, begins, ends: sent };
        self.end(link, slot, sent + self.port.bus.read_completion);
    }

    /// Sends `sectors` blocks, the last of a read that the arm starts, to the host as they come from the media: from `ready` on,
    /// the last no earlier than `bound`.
    #[inline]
    pub(super) fn send_from_media(&mut self, slot: u32, sectors: u64, ready: Instant, bound: Instant) {
        let is_known = self.port.is_one_commands() && !self.health.dies() && !self.ahead.rule.waits_for_room;
        if !is_known {
            return self.send_later(slot, sectors, ready, bound);
        }
        // No other command can need the port before the read ends, so its end is known now and no further event is needed.
        let begins = self.port.next_crossing(self.now, ready, sectors, bound);
        let own = &mut HostLink::default();
        let sent = self.port.send(own, self.now, begins, sectors, bound);
        self.end_read(own, slot, sectors, begins, sent);
    }

    /// Requests the port for `sectors` blocks, the last of a read, which cross it from `ready` on, the last no earlier than
    /// `bound`. The rest of a read whose first part is crossing the bus follows that part.
    fn send_later(&mut self, slot: u32, sectors: u64, ready: Instant, bound: Instant) {
        let first = Lbn(self.commands.jobs[slot as usize].command.request.end().0 - sectors);
        let ends = (ready + self.port.bus.read_time(sectors)).max(bound);
        let sending = &mut self.ahead.sending;
        if ready == sending.ends && sending.first < first {
            sending.ends = ends;
        } else {
            *sending = Sending { first, begins: ready, ends };
        }
        self.port.want(ready, slot, Wanted::ToHost { sectors, bound, crossing: false });
    }

    fn receive(&mut self, link: &mut HostLink<'_>, slot: u32) {
        let now = self.now;
        self.commands.begin(slot);
        if let Some(shingles) = &mut self.disk.shingled {
            shingles.note_command(now);
        }
        let alone = self.outstanding() == 1;
        let job = &mut self.commands.jobs[slot as usize];
        job.account(Part::Queued, now);
        let command = &job.command;
        let request = command.request;
        let end = request.lbn.0.checked_add(u64::from(request.sectors));
        let is_inside = request.sectors > 0 && end.is_some_and(|end| end <= self.disk.sectors);
        if !is_inside && request.op != Op::Flush {
            return self.refuse(link, slot, Outcome::OutOfRange);
        }
        if request.op == Op::Write && self.zones.as_mut().is_some_and(|zones| !zones.allow(command)) {
            return self.refuse(link, slot, Outcome::ZoneRefused);
        }
        let arrived = link.command(now, self.port.bytes(u64::from(request.sectors)));
        let start = if alone { arrived + self.config.first } else { arrived };
        match request.op {
            Op::Read => self.receive_read(link, slot, start),
            Op::Write => self.receive_write(link, slot, start),
            Op::Flush => self.receive_flush(slot, start),
        }
        self.last.was_write = request.op == Op::Write;
    }

    /// Ends a command without carrying it out.
    #[cold]
    fn refuse(&mut self, link: &mut HostLink<'_>, slot: u32, outcome: Outcome) {
        let done = link.report(self.now + self.config.overheads(self.last.was_write, false).read_miss);
        self.job(slot).outcome = outcome;
        self.end(link, slot, done);
    }

    fn receive_read(&mut self, link: &mut HostLink<'_>, slot: u32, start: Instant) {
        let request = self.commands.jobs[slot as usize].command.request;
        let overheads = self.config.overheads(self.last.was_write, request.lbn == self.last.read_end);
        self.last.read_end = request.end();
        self.job(slot).overhead_done = start + overheads.read_miss;
        let begins = start + overheads.read_hit + self.port.bus.data_preparation;
        let occupied = self.config.occupied(overheads.read_miss);
        let disconnected = start + occupied + self.port.bus.disconnect_read(self.last.was_write);
        self.follow_read_ahead();
        let hit = if request.fua { Hit::Miss } else { self.cache.find(request.lbn, request.end()) };
        if !request.fua && self.destage.holds(request.lbn, request.end()) {
            return self.send_hit(link, slot, begins);
        }
        if self.zones.as_ref().is_some_and(|zones| zones.is_unwritten(&request)) {
            return self.send_hit(link, slot, begins);
        }
        if self.config.hits_take_arm && (self.disk.work.is_fixed() || !self.commands.waiting.is_empty()) {
            // The cache is looked up again when the arm is free.
            self.port.take_for_command(disconnected);
            return self.want_arm(slot);
        }
        match hit {
            Hit::Whole(segment) => {
                if self.config.hits_take_arm {
                    self.ahead.leave_other(&mut self.disk, &mut self.cache, self.now, segment);
                }
                self.send_hit(link, slot, begins);
                self.note_hit(slot, segment);
            }
            Hit::Part(segment) if self.may_join(segment, request.lbn..request.end()) => {
                self.join(slot, begins);
            }
            Hit::Part(segment) if self.disk.work.filling() != Some(segment) => {
                // The first part is in the buffer; it goes out while the arm fetches the rest.
                let held = self.cache.blocks(segment).end;
                let sent = self.port.send(link, self.now, begins, held - request.lbn, Instant::ZERO);
                self.ahead.sending = Sending { first: request.lbn, begins, ends: sent };
                let job = self.job(slot);
                (job.media_from, job.sent_to, job.sent_at) = (held, held, sent);
                job.cache = CacheUse::Part;
                self.cache.touch(segment, held);
                self.port.take_for_command(sent + self.port.bus.disconnect_read(self.last.was_write));
                self.want_arm(slot);
            }
            _ => {
                self.port.take_for_command(disconnected);
                self.want_arm(slot);
            }
        }
    }

    /// Sends a read that the buffer holds, from `begins` on.
    fn send_hit(&mut self, link: &mut HostLink<'_>, slot: u32, begins: Instant) {
        if let Some(free) = self.overlapping_from(begins) {
            return self.send_hit_later(slot, free, begins);
        }
        let sectors = u64::from(self.commands.jobs[slot as usize].command.request.sectors);
        let sent = self.port.send(link, self.now, begins, sectors, Instant::ZERO);
        let job = self.job(slot);
        job.cache = CacheUse::Whole;
        job.account(Part::Overhead, begins);
        self.end_read(link, slot, sectors, begins, sent);
    }

    /// Whether a read of blocks may wait for the read-ahead into a segment.
    fn may_join(&self, segment: usize, blocks: Range<Lbn>) -> bool {
        let others_wait = self.others_press();
        self.ahead.fills(&self.disk, segment) && self.ahead.may_join(&self.disk, blocks, others_wait)
    }

    /// Makes a read wait for the read-ahead that reads its blocks; they cross the bus from `begins` on.
    fn join(&mut self, slot: u32, begins: Instant) {
        let job = self.job(slot);
        job.cache = CacheUse::Joined;
        job.account(Part::Overhead, begins);
        let sectors = u64::from(job.command.request.sectors);
        let start = job.command.request.lbn;
        let others_wait = self.others_press();
        let job = &mut self.commands.jobs[slot as usize];
        let delivered = self.config.buffer.delivery(job, self.port.bus.read_sector);
        let (disk, cache) = (&mut self.disk, &mut self.cache);
        let (read, bound) = self.ahead.join(disk, cache, self.now, start, delivered, others_wait);
        job.account(Part::Cache, read);
        let time = self.port.bus.read_time(sectors);
        // Frames leave as the data arrive; a bus is requested when they can cross it without a pause.
        let last = if self.port.sharing.streams { Instant::ZERO } else { bound.saturating_sub(time) };
        self.port.take_for_command(begins);
        self.send_later(slot, sectors, last.max(begins), bound);
    }

    #[inline(never)]
    fn receive_write(&mut self, link: &mut HostLink<'_>, slot: u32, start: Instant) {
        let request = self.commands.jobs[slot as usize].command.request;
        let continues = request.lbn == self.last.write_end;
        let overhead = self.config.overheads(self.last.was_write, continues).write;
        let follows_elsewhere = self.last.was_write && !continues;
        self.last.write_end = request.end();
        self.job(slot).overhead_done = start + overhead;
        self.follow_read_ahead();
        let disconnected = start + self.config.occupied(overhead) + self.port.bus.disconnect_write;
        if !self.config.is_buffered {
            self.port.take_for_command(disconnected);
            return self.want_arm(slot);
        }
        if self.defers_data(slot, continues) {
            self.job(slot).defers_data = true;
            self.port.take_for_command(disconnected);
            return self.want_arm(slot);
        }
        let begins = start + overhead + self.port.bus.data_preparation;
        if self.caches_write(slot, continues) {
            // Room is assigned in order of arrival.
            if self.destage.blocked.is_empty() && self.reserve_write(slot) {
                self.accept_write(link, slot, begins);
            } else {
                self.destage.blocked.push_back(slot);
                self.port.take_for_command(disconnected);
                self.run_arm();
            }
            return;
        }
        self.flow_through(slot, begins);
        match self.port.bus.before_data {
            Some(before) if follows_elsewhere && !self.port.bus.never_disconnects => {
                let received = start + Nanos::from_ms(before.command_ms);
                let away = received + Nanos::from_ms(before.disconnect_ms);
                let back = away + Nanos::from_ms(before.away_ms);
                let bus = &self.port.bus;
                let begins = back + bus.reconnect_first + bus.data_preparation;
                let job = self.job(slot);
                job.arriving.begins = begins;
                job.overhead_done = received + Nanos::from_ms(before.seek_delay_ms);
                job.disconnected_early = true;
                self.port.take(away, None);
                self.port.want(back, slot, Wanted::FromHostLate);
                if self.port.sharing.is_shared {
                    // When the data arrive is known only then: the arm waits for that.
                    return;
                }
            }
            _ => {
                let sent = self.receive_data(link, slot, begins);
                self.port.take_for_command(sent + self.port.bus.disconnect_write);
            }
        }
        self.note_through(slot);
        self.want_arm(slot);
    }

    fn receive_data(&mut self, link: &mut HostLink<'_>, slot: u32, begins: Instant) -> Instant {
        self.port.receive(link, self.now, &mut self.commands.jobs[slot as usize], begins)
    }

    /// Sends a write-through's data, from `begins` on, through a segment, whose contents are dropped.
    fn flow_through(&mut self, slot: u32, begins: Instant) {
        let request = self.commands.jobs[slot as usize].command.request;
        let segment = self.cache.take_for_write(request.lbn, request.end(), request.lbn);
        self.cache.invalidate(request.lbn, request.end(), segment);
        let least = self.config.buffer.write_start_sectors.min(u64::from(request.sectors));
        let arriving = Arriving { begins, bus_sector: self.port.bus.write_sector, least };
        let job = self.job(slot);
        (job.segment, job.arriving) = (segment, arriving);
    }

    /// Whether a write is acknowledged before it is on the media.
    fn caches_write(&self, slot: u32, continues: bool) -> bool {
        match self.destage.policy {
            _ if self.commands.jobs[slot as usize].command.request.fua => false,
            WriteCache::None => false,
            WriteCache::Sequential => continues && self.disk.work.is_writing(),
            WriteCache::Segment | WriteCache::Full => true,
        }
    }

    /// Whether a write defers its data until the arm is free for it.
    fn defers_data(&self, slot: u32, continues: bool) -> bool {
        let joins = continues
            && self.disk.work.is_writing()
            && self.destage.may_join(!self.commands.waiting.is_empty());
        let is_next =
            !self.disk.work.is_fixed() && self.commands.waiting.is_empty() && self.destage.is_clean();
        if self.config.write_prebuffering || joins || is_next {
            return false;
        }
        match self.destage.policy {
            WriteCache::None => true,
            WriteCache::Segment => self.caches_write(slot, continues),
            WriteCache::Sequential | WriteCache::Full => false,
        }
    }

    /// Moves a write's data, from `begins` on, into the room reserved for it, and completes the write.
    pub(super) fn store_write(&mut self, link: &mut HostLink<'_>, slot: u32, begins: Instant) {
        self.job(slot).arriving.least = 1;
        let sent = self.receive_data(link, slot, begins);
        let job = self.job(slot);
        job.account(Part::Overhead, begins);
        job.account(Part::Bus, sent);
        job.cache = CacheUse::Buffered;
        let done = link.report(sent + self.port.bus.write_completion);
        self.end(link, slot, done);
        if matches!(self.disk.work, Work::Reserved { slot: kept } if kept == slot) {
            self.disk.work = Work::Idle;
        }
        let job = &self.commands.jobs[slot as usize];
        self.destage.enqueue(&mut self.disk, &self.cache, self.now, job);
        self.run_arm();
    }

    /// Ends the waiting commands that have exceeded a duration limit whose policy is to abort them.
    #[cold]
    pub(super) fn abort_overdue(&mut self) {
        let now = self.now;
        while let Some(SlotId(slot)) = self.commands.waiting.take_aborted(now) {
            let job = self.job(slot);
            job.outcome = Outcome::Aborted;
            job.wait_until(now);
            if let Some(segment) = job.segment.take() {
                // The segment holds what no read may find.
                self.cache.set_state(segment, SegmentState::Empty);
            }
            if let Some(record) = &mut self.disk.record {
                record.drop_command(slot);
            }
            self.port.want(now, slot, Wanted::Finish);
        }
    }
}
