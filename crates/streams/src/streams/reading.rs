//! Streams of reads: a request is answered from staged bytes, or waits until a turn of its stream reads them.

use super::actions::Purpose;
use super::classifier::Direction;
use super::finding::ClientRun;
use super::frames::{Frame, Frames, State};
use super::limits::ReadLimits;
use super::messages::{Command, Outcome, Pieces, Request, RequestKind, TransferBuffer};
use super::stream::{FRESH, NO_STREAM, Stream};
use super::tuning::Sample;
use super::{Boundaries, Step, Streams};
use headstack_model::{BlockError, Instant, Nanos};

/// Commands that a stream keeps in flight, so that the disk does not idle between two.
const AHEAD: u32 = 2;

/// Time for which a slow client's frame is not evicted after its last use: reading it again would cost more than others gain.
const HELD: Nanos = Nanos(1_000_000_000);

impl Streams {
    /// The ticket of the request that a command in flight is; `None` if the command is the scheduler's own.
    pub fn ticket_of(&self, id: u32) -> Option<u64> {
        match self.actions.purpose(id) {
            Purpose::Direct(request) => Some(request.ticket),
            Purpose::Frame(_) => None,
        }
    }

    pub(super) fn route_read(&mut self, request: Request, offset: u64, bytes: u64, fua: bool) {
        if self.answers_from_dirty(request, offset, bytes, fua) || self.is_held(request, offset, bytes) {
            return;
        }
        if fua || bytes > self.waits.longest() {
            return self.send_direct(request);
        }
        if let Some(pieces) = self.frames.pieces(offset, bytes) {
            self.fetch(request, offset, bytes, pieces, true);
            return self.discard_emptied();
        }
        let run = ClientRun { client: request.client, offset, bytes };
        match self.finder.reader(self.now, &mut self.schedule.table, &self.frames, run) {
            Some(stream) if self.bypass.is_on() => self.bypass_stream(stream, request, offset, bytes),
            Some(stream) => self.wait(stream, request, offset, bytes),
            None => self.send_direct(request),
        }
    }

    fn fetch(&mut self, request: Request, offset: u64, bytes: u64, pieces: Pieces, at_once: bool) {
        let first = self.frames.readable_at(offset).expect("it is staged");
        let stream = self.frames.get(first).stream;
        self.answer(request.ticket, Ok(Outcome::Staged(pieces)));
        self.frames.fetch(self.now, offset, bytes);
        self.counters.read_bytes += bytes;
        self.counters.hits += u64::from(at_once);
        self.bypass.answered(bytes);
        if self.schedule.table.contains(stream) {
            self.advance_expected(stream, request.client, offset, bytes, at_once);
        }
    }

    fn discard_emptied(&mut self) {
        while let Some(id) = self.frames.pop_emptied() {
            if self.frames.is_readable(id) {
                self.discard_frame(id);
            }
        }
    }

    /// Records that a request of a stream was answered. The next one is expected after it.
    fn advance_expected(&mut self, id: u32, client: u64, offset: u64, bytes: u64, is_hit: bool) {
        self.schedule.note_fetch(self.now, id, client, bytes, is_hit);
        let at = self.schedule.table.mirror(id, offset, bytes);
        let stream = &self.schedule[id];
        let end = stream.next_after(at, bytes).min(self.disk_bytes());
        if end > stream.expected {
            let before = stream.expected;
            self.schedule.table.set_expected(id, end);
            self.mark_passed(id, before);
            self.evict_passed(id, end);
        }
        self.schedule.enqueue(id);
    }

    /// Marks the frames that a stream has passed since it was expected at `before`.
    fn mark_passed(&mut self, id: u32, before: u64) {
        let stream = &self.schedule[id];
        let before = stream.passed_up_to(before);
        let bytes = stream.passed_up_to(stream.expected) - before;
        if bytes == 0 {
            return;
        }
        let Streams { schedule, frames, .. } = self;
        let place = schedule.table.mirror(id, before, bytes);
        let is_passed = |frame: &Frame| {
            frame.stream == id && !frame.is_behind && schedule.table.has_passed(id, frame.place, frame.bytes)
        };
        let next = |frames: &Frames| {
            frames.readable_in(place, place + bytes).find(|frame| is_passed(frames.get(*frame)))
        };
        while let Some(frame) = next(frames) {
            frames.mark_passed(frame);
        }
    }

    /// Discards a frame of a stream that is more than its slack behind.
    fn evict_passed(&mut self, id: u32, expected: u64) {
        let Streams { schedule, frames, .. } = self;
        let Some(behind) = expected.checked_sub(schedule[id].slack + 1) else { return };
        let place = schedule.table.mirror(id, behind, 1);
        if let Some(frame) = frames.readable_at(place) {
            let found = frames.get(frame);
            let near = schedule.table.mirror(id, found.place, found.bytes) + found.bytes > behind + 1;
            if found.stream == id && found.state == State::Staged && !near {
                self.counters.unfetched_bytes += found.unfetched();
                self.discard_frame(frame);
            }
        }
    }

    pub(super) fn drop_stream(&mut self, id: u32) {
        self.schedule.remove(id);
        let own: Vec<u32> = self.frames.owned_by(id).collect();
        for frame in own {
            self.frames.set_owner(frame, NO_STREAM);
            match self.frames.get(frame).state {
                State::Staged => self.discard_frame(frame),
                State::Coalescing => self.close(frame),
                State::Reading | State::Ready | State::Writing => {}
            }
        }
    }

    /// Redirects reads that wait for bytes of a run which no frame will supply: they become direct requests.
    pub(super) fn redirect_waiters(&mut self, place: u64, bytes: u64) {
        let mut search = self.waits.overlapping(place, bytes);
        while let Some(key) = self.waits.next(&mut search) {
            if self.waits.is_spared(key) {
                continue;
            }
            let wait = self.waits.remove(&mut self.schedule, false, key);
            self.send_direct_after_writes(wait.request, key.0, wait.bytes);
        }
    }

    /// Makes a stream whose frame is evicted read ahead from there again.
    fn rewind_owner(&mut self, frame: &Frame) {
        let Frame { stream: id, place, bytes, .. } = *frame;
        // A stream with waiting requests rereads only what they need. Otherwise two streams would evict each other's frames forever.
        let may_go_back = |stream: &Stream| stream.stride.is_none() && stream.waiting == 0;
        let Streams { schedule, .. } = self;
        if !schedule.table.get(id).is_some_and(may_go_back) || schedule.table.has_passed(id, place, bytes) {
            return;
        }
        let at = schedule.table.mirror(id, place, bytes);
        schedule[id].frontier = schedule[id].frontier.min(at);
        schedule.enqueue(id);
    }

    /// Invalidates staged bytes of a run that is being changed or was changed.
    pub(super) fn invalidate(&mut self, place: u64, bytes: u64) {
        let mut unused = Vec::new();
        self.frames.invalidate(place, bytes, |id| unused.push(id));
        unused.into_iter().for_each(|id| self.discard_frame(id));
        self.redirect_waiters(place, bytes);
    }

    /// Discards a frame, and redirects the reads that wait for its bytes.
    pub(super) fn discard_frame(&mut self, id: u32) {
        let frame = *self.frames.get(id);
        if let Some(stream) = self.frames.retire(id) {
            self.schedule.frame_freed(stream);
        }
        self.redirect_waiters(frame.place, frame.bytes);
    }

    pub(super) fn advance_reader(&mut self, id: u32) -> Step {
        self.skip_held(id);
        let stream = &self.schedule[id];
        let (at, is_blocked, disk_bytes) = (stream.frontier, stream.is_blocked(), self.disk_bytes());
        if at >= disk_bytes || self.bypass.is_on() && !is_blocked {
            return Step::Over;
        }
        let read_bytes = self.schedule.read_bytes();
        let staged = (stream.frames - stream.in_flight) as usize;
        // The more bytes of other streams are staged, the fewer this one may stage; but there is room for its next request.
        let is_split = self.boundaries.is_some() || stream.client.request > read_bytes;
        let spans = if is_split { stream.client.request.div_ceil(read_bytes) + 2 } else { 1 };
        let most = self.frames.free().max(spans as usize);
        if !is_blocked && staged >= most && !self.may_evict(id, staged) {
            // Its client is slower than the disk, or has disconnected.
            self.schedule[id].client.is_slow = true;
            return Step::Over;
        }
        let ahead = if self.direct.is_busy(self.now) { 1 } else { AHEAD };
        if stream.in_flight >= ahead {
            return Step::Waits;
        }
        if self.frames.free() == 0 && !self.make_room(id, is_blocked || self.may_evict(id, staged)) {
            return if is_blocked { Step::Waits } else { Step::Over };
        }
        self.read_frame(id, at);
        Step::Began
    }

    /// Reads from `at` on into a free frame, for a stream in its turn.
    fn read_frame(&mut self, id: u32, at: u64) {
        let disk_bytes = self.disk_bytes();
        let stream = &self.schedule[id];
        let bytes = stream.stride.map_or(self.schedule.read_bytes(), |(_, bytes)| bytes);
        let bytes = self.read_length(stream.direction(), at, bytes.min(disk_bytes - at));
        let may_split =
            self.boundaries.is_some() && stream.turn.commands != Some(1) || stream.stride.is_some();
        let bytes = if may_split { bytes } else { stream.whole_requests(at, at + bytes) - at };
        let place = self.schedule.table.mirror(id, at, bytes);
        let frame =
            self.frames.allocate(self.now, State::Reading, id, place, bytes).expect("there is a free one");
        let stream = &mut self.schedule[id];
        stream.frontier = stream.next_after(at, bytes).min(disk_bytes);
        stream.frames += 1;
        self.start_for_frame(frame);
        self.schedule.spend_turn(self.now, id);
    }

    pub(super) fn start_for_frame(&mut self, id: u32) {
        let Frame { stream, place, bytes, state, .. } = *self.frames.get(id);
        self.schedule.mark_in_flight(stream);
        self.direct.note_stream_bytes(bytes);
        self.schedule.arms.arm_at(place).dispatch.send_arm(place + bytes, true);
        let memory = TransferBuffer::Memory(self.frames.memory_offset(id, place));
        let kind = match state {
            State::Writing => RequestKind::Write { offset: place, bytes, fua: false },
            _ => RequestKind::Read { offset: place, bytes, fua: false },
        };
        let limit = if state == State::Writing { 0 } else { self.frame_limit(stream, place, bytes) };
        self.actions.start(self.now, Purpose::Frame(id), Command { id: 0, kind, place: memory, limit });
    }

    /// Whether a stream in its turn may evict staged bytes of others although its client does not wait: its client fetches bytes about as
    /// quickly as the disk reads them, so that they do not stay. Never where D is given: the staged bytes of others then come from turns
    /// with the same right to the memory.
    fn may_evict(&self, id: u32, staged: usize) -> bool {
        let Stream { client, arm, .. } = &self.schedule[id];
        let disk_ns = client.request as f64 / self.schedule.arms[*arm].tuning.bandwidth() * 1e9;
        let is_quick = client.think_time.0 as f64 <= disk_ns;
        self.config.dispatch_set.is_none() && is_quick && staged < self.frames.count() / 4
    }

    /// Advances a stream past bytes that are in the memory already.
    fn skip_held(&mut self, id: u32) {
        let disk_bytes = self.disk_bytes();
        while self.schedule[id].frontier < disk_bytes {
            let at = self.schedule[id].frontier;
            let Some(holder) = self.frames.holder(self.schedule.table.mirror(id, at, 1)) else { return };
            let frame = self.frames.get(holder);
            let end = self.schedule.table.mirror(id, frame.place, frame.bytes) + frame.bytes;
            let Some((stride, record)) = self.schedule[id].stride else {
                self.schedule[id].frontier = end;
                continue;
            };
            // The stride may exceed the disk.
            self.schedule[id].frontier = (at + stride).min(disk_bytes);
            let record = record.min(disk_bytes - at);
            if end < at + record {
                // The rest of the record is not read ahead: requests for it become direct.
                self.redirect_waiters(self.schedule.table.mirror(id, at, record), record);
            }
        }
    }

    /// Bytes to read from here in a direction, at most `most`.
    fn read_length(&self, direction: Direction, at: u64, most: u64) -> u64 {
        match direction {
            Direction::Forward => {
                let room = self.frames.begin_above(at) - at;
                let bytes = most.min(room);
                let end = self
                    .boundaries
                    .as_ref()
                    .map_or(at + bytes, |boundaries| last_boundary(&**boundaries, at, at + bytes));
                end - at
            }
            Direction::Backward => {
                let end = self.disk_bytes() - at;
                most.min(end - self.frames.end_below(end))
            }
        }
    }

    /// Evicts a frame for a stream, if the rules of eviction allow it. Returns whether a frame is free.
    pub(super) fn make_room(&mut self, id: u32, is_blocked: bool) -> bool {
        let victim = self.frames.oldest_passed();
        let victim = victim.or_else(|| if is_blocked { self.victim(id) } else { None });
        if let Some(victim) = victim {
            let frame = *self.frames.get(victim);
            self.counters.unfetched_bytes += frame.unfetched();
            self.waits.rewind(&mut self.schedule, frame.place, frame.bytes);
            if frame.stream != id {
                self.rewind_owner(&frame);
            }
            self.discard_frame(victim);
            self.waits.clear_spared();
            return self.frames.free() > 0;
        }
        if !is_blocked {
            return false;
        }
        if !self.close_oldest() && self.actions.is_disk_idle() && !self.is_only_frame_in_use() {
            // Streams that wait hold all memory: this one's requests become direct.
            let stream = &self.schedule[id];
            let (at, bytes) = (stream.frontier, stream.wanted.saturating_sub(stream.frontier));
            self.redirect_waiters(self.schedule.table.mirror(id, at, bytes), bytes);
        }
        // Frames in use may be evicted after a while, without another event.
        self.schedule.arms.set_grace(self.now + FRESH);
        false
    }

    /// Whether the memory is one frame, from which a client has fetched just now.
    fn is_only_frame_in_use(&self) -> bool {
        let is_fresh = |(_, frame): (u32, &Frame)| self.now.since(frame.touched) < FRESH;
        self.frames.count() == 1 && self.frames.expected().any(is_fresh)
    }

    /// The least recently used frame that may be evicted for a stream whose client waits: one of another stream, or else one of its own
    /// for which no request waits.
    fn victim(&self, id: u32) -> Option<u32> {
        // An only frame keeps its bytes for its client although the disk idles meanwhile.
        let is_idle = self.actions.is_disk_idle() && self.frames.count() > 1;
        let is_unused_for = |frame: &Frame, time: Nanos| is_idle || self.now.since(frame.touched) >= time;
        let may_be_evicted = |frame: &Frame| {
            let owner = self.schedule.table.get(frame.stream);
            let is_slow = owner.is_some_and(|owner| owner.client.is_slow && owner.waiting == 0);
            frame.stream != id && is_unused_for(frame, if is_slow { HELD } else { FRESH })
        };
        let old = self.frames.expected().take_while(|(_, frame)| is_unused_for(frame, FRESH));
        let from_others = old.filter(|(_, frame)| may_be_evicted(frame)).map(|(victim, _)| victim).next();
        from_others.or_else(|| {
            let own = self.frames.owned_by(id).map(|victim| (victim, self.frames.get(victim)));
            let unwanted = own.filter(|(_, frame)| {
                let mut search = self.waits.overlapping(frame.place, frame.bytes);
                frame.is_evictable() && self.waits.next(&mut search).is_none()
            });
            unwanted.min_by_key(|(victim, frame)| (frame.touched, *victim)).map(|(victim, _)| victim)
        })
    }

    pub(super) fn frame_ended(&mut self, id: u32, issued: Instant, result: Result<(), BlockError>) {
        let (frame, now) = (*self.frames.get(id), self.now);
        let is_clean = result.is_ok() && !self.direct.is_busy(now);
        let (place, bytes) = (frame.place, frame.bytes);
        let sample = Sample { issued, ended: now, place, bytes, is_clean };
        self.schedule.arms.arm_at(place).tuning.learn(&sample);
        self.schedule.note_command_end(now, frame.stream);
        if frame.state == State::Writing {
            return self.frame_written(id, result);
        }
        if result.is_err() || frame.is_hidden {
            // Requests that wait for it become direct, and read no more than their own bytes.
            self.discard_frame(id);
            let stream = self.schedule.table.get(frame.stream);
            if result.is_err() && stream.is_some_and(|stream| stream.waiting == 0) {
                // More read-ahead would fail, too.
                self.drop_stream(frame.stream);
            }
            return;
        }
        self.frames.stage(now, id);
        let has_stream = |streams: &Streams| streams.schedule.table.contains(frame.stream);
        if has_stream(self) && self.schedule.table.has_passed(frame.stream, place, bytes) {
            self.frames.mark_passed(id);
        }
        self.answer_waits(place, bytes);
        if has_stream(self) {
            self.schedule.enqueue(frame.stream);
        } else if self.frames.is_readable(id) {
            self.discard_frame(id);
        }
    }

    /// Answers the requests whose bytes are all staged now.
    fn answer_waits(&mut self, place: u64, bytes: u64) {
        let mut search = self.waits.overlapping(place, bytes);
        while let Some(key) = self.waits.next(&mut search) {
            let wait = *self.waits.read(key);
            if let Some(pieces) = self.frames.pieces(key.0, wait.bytes) {
                self.waits.remove(&mut self.schedule, false, key);
                self.fetch(wait.request, key.0, wait.bytes, pieces, false);
            }
        }
        self.discard_emptied();
    }

    /// Sets the duration limits of the disk's reads, each by its number with its time. To be called before the first request. The key
    /// `read_limits_ms`, if set, overrides them.
    pub fn set_read_limits(&mut self, limits: impl IntoIterator<Item = (u8, Nanos)>) {
        assert!(self.counters.requests == 0, "no request came before the duration limits were set");
        if self.config.read_limits_ms.is_none() {
            self.limits = ReadLimits::sorted(limits);
        }
    }

    /// Sends all reads without a duration limit, whatever the configuration says: the disk has none, or they are off.
    pub fn clear_read_limits(&mut self) {
        self.limits = ReadLimits::default();
    }

    /// Whether reads of clients with a guarantee are sent with duration limits.
    pub fn has_read_limits(&self) -> bool {
        !self.limits.is_empty()
    }

    /// Counts a request against the rate of its client's guarantee.
    pub(super) fn count_for_limits(&mut self, request: &Request) {
        if !self.limits.is_empty() {
            let bytes = request.kind.transferred_bytes();
            self.schedule.guarantees.note_request(self.now, request.client, bytes);
        }
    }

    /// Whether a direct request is sent with a limit. It then precedes others in the node as well as at the disk, and the guard does not hold it.
    pub(super) fn has_limit(&self, request: &Request) -> bool {
        self.direct_limit(request, self.now) > 0
    }

    /// The limit of a direct request that has waited since then.
    pub(super) fn direct_limit(&self, request: &Request, since: Instant) -> u8 {
        if self.limits.is_empty() || !matches!(request.kind, RequestKind::Read { .. }) {
            return 0;
        }
        let response = self.schedule.guarantees.response(request.client);
        response.map_or(0, |response| self.limits.fitting(response.saturating_sub(self.now.since(since))))
    }

    /// The duration limit of a read of a stream: the one that fits the most urgent of the requests that wait for its bytes, which is the one
    /// with the least time left per command that it needs.
    pub(super) fn frame_limit(&self, stream: u32, place: u64, bytes: u64) -> u8 {
        if self.limits.is_empty() {
            return 0;
        }
        let Streams { schedule, waits, now, .. } = self;
        let owner =
            schedule.table.get(stream).and_then(|stream| schedule.guarantees.response(stream.client.id));
        let (mut least, mut search) = (owner, waits.overlapping(place, bytes));
        while let Some(key) = waits.next(&mut search) {
            let wait = waits.read(key);
            let Some(response) = schedule.guarantees.response(wait.request.client) else { continue };
            let left = response.saturating_sub(now.since(wait.since));
            let each = Nanos(left.0 / wait.bytes.div_ceil(bytes).max(1));
            least = Some(least.map_or(each, |least| least.min(each)));
        }
        least.map_or(0, |left| self.limits.fitting(left))
    }
}

/// The last boundary up to `end`, if at least a quarter of the run lies before it; else `end`.
fn last_boundary(boundaries: &dyn Boundaries, begin: u64, end: u64) -> u64 {
    let (mut last, mut at) = (begin, begin);
    loop {
        at = boundaries.next_boundary(at);
        if at > end || at <= last {
            break;
        }
        last = at;
    }
    if (last - begin) * 4 >= end - begin { last } else { end }
}
