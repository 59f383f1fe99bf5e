//! The port: electronics and bus, one transfer at a time. Commands and data cross it.

use super::media::{Arriving, Delivered};
use super::split::Part;
use super::{CacheUse, Device, Outcome, TaskAttribute, Work};
use headstack_model::cache::Hit;
use headstack_model::spec::WriteCache;
use headstack_model::{Lbn, Nanos, Op};
use std::collections::VecDeque;

/// The next use of the port for a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// Data of a read that came from the media, the transfer ending no earlier than `bound`; `crossing` if they are already
    /// crossing a shared link, which reported that bound.
    ToHost { sectors: u64, bound: Nanos, crossing: bool },
    /// Data of a write that waited for room in the cache, or for the arm.
    FromHost,
    /// The data of a write that gave up the bus after its command.
    FromHostLate,
    /// The end of a command whose data have all been sent.
    Finish,
}

/// A command that needs the port from a time on.
#[derive(Clone, Copy, Debug)]
struct Ready {
    at: Nanos,
    slot: u32,
    wanted: Wanted,
}

/// A read's data that cross the bus, or will.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sending {
    pub(super) first: Lbn,
    pub(super) begins: Nanos,
    pub(super) ends: Nanos,
}

/// The state of the port.
#[derive(Debug)]
pub(super) struct Port {
    /// When it is free again; `Nanos::MAX` while a command that never disconnects holds it.
    pub(super) until: Nanos,
    pub(super) busy: bool,
    /// Whether it waits for a bus that others share.
    pub(super) waits: bool,
    /// The command that is done when the port falls free.
    ending: Option<u32>,
    /// Commands not yet received, in order of arrival.
    pub(super) receptions: VecDeque<u32>,
    ready: Vec<Ready>,
    /// The read's data that crossed the bus last, or cross it now.
    pub(super) sending: Sending,
}

impl Port {
    pub(super) fn new(slots: usize) -> Port {
        Port {
            until: Nanos::ZERO,
            busy: false,
            waits: false,
            ending: None,
            receptions: VecDeque::with_capacity(slots),
            ready: Vec::with_capacity(slots),
            sending: Sending::default(),
        }
    }

    fn take(&mut self, until: Nanos, ending: Option<u32>) {
        (self.busy, self.until, self.ending) = (true, until, ending);
    }
}

impl Device {
    /// When the port needs attention.
    #[inline]
    pub(super) fn port_event(&self) -> Nanos {
        let Port { until, busy, waits, ending, receptions, ready, .. } = &self.port;
        if *waits && !*busy {
            return Nanos::MAX;
        }
        if *busy && (ending.is_some() || !receptions.is_empty() || self.bus.is_shared) {
            return *until;
        }
        // That a port falls free which nothing waits for is no event.
        let ready = ready.iter().map(|ready| ready.at).min().unwrap_or(Nanos::MAX);
        if *busy { ready.max(*until) } else { ready }
    }

    /// Requests the port from `at` on.
    #[inline]
    pub(super) fn want_port(&mut self, at: Nanos, slot: u32, wanted: Wanted) {
        let at = self.earliest_bus_request(at, wanted);
        self.port.ready.push(Ready { at, slot, wanted });
        if self.config.never_disconnects && self.port.busy && self.port.until == Nanos::MAX {
            // The bus is held for this very command, which continues then.
            self.port.until = at;
        }
    }

    /// The port fell free, or something became ready for it.
    #[inline]
    pub(super) fn handle_port(&mut self) {
        if self.port.busy {
            self.port.busy = false;
            if self.port.ending.is_some() || !self.config.never_disconnects {
                self.release_bus();
            }
            if let Some(slot) = self.port.ending.take() {
                self.complete(slot, self.now);
            }
        }
        self.run_port();
    }

    /// Assigns the free port to the earliest request.
    #[inline]
    pub(super) fn run_port(&mut self) {
        let held = self.config.never_disconnects;
        let now = self.now;
        if self.port.until <= now && self.port.ending.is_none() && !self.bus.is_shared {
            self.port.busy = false;
        }
        if self.port.ready.is_empty() && self.port.receptions.is_empty() {
            return;
        }
        while !self.port.busy {
            let due = |ready: &Ready| ready.at <= now;
            let first = (0..self.port.ready.len())
                .filter(|index| due(&self.port.ready[*index]))
                .min_by_key(|index| (self.port.ready[*index].at, *index));
            let received = self.port.receptions.front().filter(|slot| self.may_receive(**slot));
            let arrived = received.map(|slot| self.commands.jobs[*slot as usize].submitted);
            match (first, arrived) {
                (Some(index), arrived)
                    if held || arrived.is_none_or(|at| self.port.ready[index].at <= at) =>
                {
                    if !self.has_bus() {
                        return;
                    }
                    let ready = self.port.ready.swap_remove(index);
                    self.serve(ready);
                }
                (_, Some(_)) => {
                    if !self.has_bus() {
                        return;
                    }
                    let slot = self.port.receptions.pop_front().expect("it was seen");
                    self.receive(slot);
                }
                _ => return,
            }
        }
    }

    /// Receives a command over the port, at once if the port is free and no other command needs it.
    #[inline]
    pub(super) fn receive_or_queue(&mut self, slot: u32) {
        let Port { until, busy, ending, receptions, ready, .. } = &self.port;
        let is_free = !busy || *until <= self.now && ending.is_none();
        let is_wanted = !receptions.is_empty() || !ready.is_empty();
        if is_free && !is_wanted && !self.bus.is_shared && self.may_receive(slot) {
            self.port.busy = false;
            return self.receive(slot);
        }
        match self.commands.jobs[slot as usize].command.attribute {
            TaskAttribute::HeadOfQueue => self.port.receptions.push_front(slot),
            _ => self.port.receptions.push_back(slot),
        }
        self.run_port();
    }

    #[inline]
    fn serve(&mut self, ready: Ready) {
        let (now, slot) = (self.now, ready.slot);
        let held = self.config.never_disconnects;
        let first = if held { Nanos::ZERO } else { self.config.reconnect_first };
        let preparation = self.config.data_preparation;
        match ready.wanted {
            Wanted::ToHost { sectors, bound, crossing } => {
                let time = self.bus_time(self.config.read_sector, sectors);
                let streams = !crossing && self.streams();
                let bound = if streams {
                    self.cross_to_host(now + first + preparation, sectors, bound)
                } else {
                    bound
                };
                let crossing = crossing || streams;
                let in_time = bound.since(first + preparation + time);
                if in_time > now && !held && !self.config.holds_for_reads {
                    // The media are not far enough: others may use the bus until the data can cross it without a pause.
                    return self.want_port(in_time, slot, Wanted::ToHost { sectors, bound, crossing });
                }
                let begins = now + first + preparation;
                let sent = match crossing {
                    true => (begins + time).max(bound),
                    false => self.cross_to_host(begins, sectors, bound),
                };
                self.end_read(slot, sectors, begins, sent);
            }
            Wanted::FromHost if self.destage.policy == WriteCache::None => {
                let begins = now + first + preparation;
                self.flow_through(slot, begins);
                let sent = self.receive_data(slot, begins);
                self.port.take(sent + self.config.disconnect_write, None);
                self.note_through(slot);
                self.start_write(slot);
            }
            Wanted::FromHost => {
                let job = self.job(slot);
                job.account(Part::Overhead, job.overhead_done.min(now));
                job.account(Part::Cache, now);
                self.store_write(slot, now + first + preparation);
            }
            Wanted::FromHostLate => {
                let late = self.config.before_data.map_or(Nanos::ZERO, |b| b.second_disconnect);
                let begins = now + first + preparation;
                let sent = if self.bus.lent.is_some() {
                    // Only now is the arrival of the data known.
                    let sent = self.receive_data(slot, begins);
                    self.note_through(slot);
                    self.want_arm(slot);
                    sent
                } else {
                    let sectors = u64::from(self.commands.jobs[slot as usize].command.request.sectors);
                    begins + self.bus_time(self.config.write_sector, sectors)
                };
                self.port.take(sent + late, None);
            }
            Wanted::Finish => {
                let early = self.commands.jobs[slot as usize].disconnected_early;
                let again = if early && !held { self.config.reconnect_other } else { first };
                self.job(slot).account(Part::Bus, now);
                let done = self.status_received_at(now + again + self.config.write_completion);
                self.end(slot, done);
            }
        }
    }

    /// Occupies the port until the end of a command, whose last part is overhead.
    pub(super) fn end(&mut self, slot: u32, done: Nanos) {
        let done = self.interrupt_at(done);
        self.job(slot).account(Part::Overhead, done);
        self.port.take(done, Some(slot));
    }

    /// Whether a command may be received while others are in flight.
    fn may_receive(&self, slot: u32) -> bool {
        let command = &self.commands.jobs[slot as usize].command;
        command.attribute == TaskAttribute::HeadOfQueue
            || self.commands.alone.is_none()
                && (self.commands.in_flight == 0 || !command.must_be_alone(self.commands.tagging))
    }

    /// Receives a command over the free port.
    fn receive(&mut self, slot: u32) {
        let now = self.now;
        self.commands.in_flight += 1;
        if self.commands.jobs[slot as usize].command.must_be_alone(self.commands.tagging) {
            self.commands.alone = Some(slot);
        }
        let alone = self.outstanding() == 1;
        let job = self.job(slot);
        job.account(Part::Queued, now);
        let request = job.command.request;
        let valid = match request.op {
            Op::Flush => true,
            _ => request.sectors > 0 && request.lbn.0.checked_add(u64::from(request.sectors)).is_some(),
        };
        if !valid || request.op != Op::Flush && request.end().0 > self.size.sectors {
            let done = now + self.config.overheads(self.last.was_write).read_miss;
            let done = self.status_received_at(done);
            self.job(slot).outcome = Outcome::OutOfRange;
            return self.end(slot, done);
        }
        let came = self.command_comes(now, request.sectors);
        let start = if alone { came + self.config.first } else { came };
        match request.op {
            Op::Read => self.receive_read(slot, start),
            Op::Write => self.receive_write(slot, start),
            Op::Flush => self.receive_flush(slot, start),
        }
        self.last.was_write = request.op == Op::Write;
    }

    fn receive_read(&mut self, slot: u32, start: Nanos) {
        let request = self.commands.jobs[slot as usize].command.request;
        let overheads = *self.config.overheads(self.last.was_write);
        let sequential = self.config.sequential.filter(|_| request.lbn == self.last.read_end);
        let (hit_time, miss_time) =
            (sequential.unwrap_or(overheads.read_hit), sequential.unwrap_or(overheads.read_miss));
        self.last.read_end = request.end();
        self.job(slot).overhead_done = start + miss_time;
        self.follow_read_ahead(self.now);
        let hit = if request.fua { Hit::Miss } else { self.cache.find(request.lbn, request.end()) };
        let sectors = u64::from(request.sectors);
        if !request.fua && self.destage.holds(request.lbn, request.end()) {
            let begins = start + hit_time + self.config.data_preparation;
            self.job(slot).cache = CacheUse::Whole;
            return self.send_hit(slot, begins);
        }
        if self.config.hits_take_arm && (self.arm_is_taken() || !self.commands.waiting.is_empty()) {
            // The cache is looked up again when the arm is free.
            self.take_port(start + miss_time + self.config.disconnect_read(self.last.was_write));
            return self.want_arm(slot);
        }
        match hit {
            Hit::Whole(segment) => {
                if self.config.hits_take_arm {
                    self.stop_other_read_ahead(segment);
                }
                self.job(slot).cache = CacheUse::Whole;
                let begins = start + hit_time + self.config.data_preparation;
                self.send_hit(slot, begins);
                self.note_hit(slot, segment);
            }
            Hit::Part(segment)
                if self.is_read_ahead(segment) && self.may_join_read_ahead(request.lbn, request.end()) =>
            {
                let begins = start + hit_time + self.config.data_preparation;
                let job = self.job(slot);
                job.cache = CacheUse::Joined;
                job.account(Part::Overhead, begins);
                let (read, bound) = self.join_read_ahead(slot, segment);
                self.job(slot).account(Part::Cache, read);
                let time = self.bus_time(self.config.read_sector, sectors);
                // Frames leave as the data arrive; a bus is requested when they can cross it without a pause.
                let last = if self.streams() { Nanos::ZERO } else { bound.since(time) };
                let ready = last.max(begins);
                self.expect_sending(request.lbn, sectors, ready, bound);
                self.take_port(begins);
                self.want_port(ready, slot, Wanted::ToHost { sectors, bound, crossing: false });
            }
            Hit::Part(segment) if !self.is_filling(segment) => {
                // The first part is in the buffer; it goes out while the arm fetches the rest.
                let held = self.cache.segment(segment).end;
                let begins = start + hit_time + self.config.data_preparation;
                let sent = self.cross_to_host(begins, held - request.lbn, Nanos::ZERO);
                self.port.sending = Sending { first: request.lbn, begins, ends: sent };
                let job = self.job(slot);
                (job.media_from, job.sent_to, job.sent_at) = (held, held, sent);
                job.cache = CacheUse::Part;
                self.cache.touch(segment, held);
                self.take_port(sent + self.config.disconnect_read(self.last.was_write));
                self.want_arm(slot);
            }
            _ => {
                self.take_port(start + miss_time + self.config.disconnect_read(self.last.was_write));
                self.want_arm(slot);
            }
        }
    }

    /// Occupies the port until `until`, or until the end of the command if the drive never disconnects.
    fn take_port(&mut self, until: Nanos) {
        let until = if self.config.never_disconnects { Nanos::MAX } else { until };
        self.port.take(until, None);
    }

    /// How a read's transfer to the host depends on the media.
    pub(super) fn delivery(&self, slot: u32) -> Delivered {
        let job = &self.commands.jobs[slot as usize];
        let request = job.command.request;
        let sectors = u64::from(request.sectors);
        let mark = request.lbn + (self.config.watermark(sectors) - 1);
        Delivered {
            end: request.end(),
            watermark: mark.max(job.media_from),
            bus_sector: self.config.read_sector,
            bound: Nanos::ZERO,
            ready: Nanos::ZERO,
            order: self.config.delivery,
        }
    }

    fn receive_write(&mut self, slot: u32, start: Nanos) {
        let request = self.commands.jobs[slot as usize].command.request;
        let continues = request.lbn == self.last.write_end;
        let overheads = *self.config.overheads(self.last.was_write);
        let sequential = self.config.sequential.filter(|_| continues);
        let overhead = sequential.unwrap_or(overheads.write);
        let follows_elsewhere = self.last.was_write && !continues;
        self.last.write_end = request.end();
        self.job(slot).overhead_done = start + overhead;
        self.follow_read_ahead(self.now);
        if self.defers_data(slot, continues) {
            self.job(slot).defers_data = true;
            self.take_port(start + overhead + self.config.disconnect_write);
            return self.want_arm(slot);
        }
        if self.caches_write(slot, continues) {
            if self.reserve_write(slot) {
                self.store_write(slot, start + overhead + self.config.data_preparation);
            } else {
                self.destage.blocked.push_back(slot);
                self.take_port(start + overhead + self.config.disconnect_write);
                self.run_arm();
            }
            return;
        }
        let begins = start + overhead + self.config.data_preparation;
        self.flow_through(slot, begins);
        match self.config.before_data {
            Some(before) if follows_elsewhere && !self.config.never_disconnects => {
                let away = start + before.command + before.disconnect;
                let back = away + before.away;
                let begins = back + self.config.reconnect_first + self.config.data_preparation;
                let job = self.job(slot);
                job.arriving.begins = begins;
                job.overhead_done = start + before.command + before.seek_delay;
                job.disconnected_early = true;
                self.port.take(away, None);
                self.want_port(back, slot, Wanted::FromHostLate);
                if self.bus.lent.is_some() {
                    // When the data arrive is known only then: the arm waits for that.
                    return;
                }
            }
            _ => {
                let sent = self.receive_data(slot, begins);
                self.take_port(sent + self.config.disconnect_write);
            }
        }
        self.note_through(slot);
        self.want_arm(slot);
    }

    /// Sends a write-through's data, from `begins` on, through a segment, whose contents are dropped.
    fn flow_through(&mut self, slot: u32, begins: Nanos) {
        let request = self.commands.jobs[slot as usize].command.request;
        let segment = self.cache.take_for_write(request.lbn, request.end(), request.lbn);
        self.cache.invalidate(request.lbn, request.end(), segment);
        let least = self.config.write_start_sectors.min(u64::from(request.sectors));
        let arriving = Arriving { begins, bus_sector: self.config.write_sector, least };
        let job = self.job(slot);
        (job.segment, job.arriving) = (segment, arriving);
    }

    /// Whether a write is acknowledged before it is on the media.
    fn caches_write(&self, slot: u32, continues: bool) -> bool {
        if self.commands.jobs[slot as usize].command.request.fua {
            return false;
        }
        match self.destage.policy {
            WriteCache::None => false,
            WriteCache::Sequential => continues && self.is_writing(),
            WriteCache::Segment | WriteCache::Full => true,
        }
    }

    /// Whether a write keeps its data back until the arm is free for it.
    fn defers_data(&self, slot: u32, continues: bool) -> bool {
        let joins = continues && self.is_writing() && self.may_join();
        let is_next = !self.arm_is_taken() && self.commands.waiting.is_empty() && self.destage.is_clean();
        if self.config.write_prebuffering || joins || is_next {
            return false;
        }
        match self.destage.policy {
            WriteCache::None => true,
            WriteCache::Segment => self.caches_write(slot, continues),
            WriteCache::Sequential | WriteCache::Full => false,
        }
    }

    /// Moves a write's data, from `begins` on, into the room reserved for it, and reports it.
    fn store_write(&mut self, slot: u32, begins: Nanos) {
        self.job(slot).arriving.least = 1;
        let sent = self.receive_data(slot, begins);
        let job = self.job(slot);
        job.account(Part::Overhead, begins);
        job.account(Part::Bus, sent);
        job.cache = CacheUse::Buffered;
        let done = self.status_received_at(sent + self.config.write_completion);
        self.end(slot, done);
        if matches!(self.work, Work::Reserved { slot: kept } if kept == slot) {
            self.work = Work::Idle;
        }
        self.enqueue_dirty(slot);
        self.run_arm();
    }

    fn receive_flush(&mut self, slot: u32, start: Nanos) {
        let overhead = self.config.overheads(self.last.was_write).write;
        let ready = start + overhead;
        let job = self.job(slot);
        job.account(Part::Overhead, ready);
        job.overhead_done = ready;
        self.port.take(ready, None);
        self.destage.flushes.push_back(slot);
        self.finish_flushes(ready);
        self.run_arm();
    }

    /// Whether a segment is being filled by a command (not by mere read-ahead).
    fn is_filling(&self, segment: usize) -> bool {
        self.filling_segment() == Some(segment)
    }
}
