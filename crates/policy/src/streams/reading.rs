//! Streams of reads: a request is answered from staged bytes, or waits until a turn of its stream reads them.

use super::classifier::Direction;
use super::finding::set_of;
use super::frames::{Frame, State};
use super::messages::{DiskError, Outcome, Request, Transfer, TransferBuffer};
use super::stream::{NO_STREAM, Stream, mirrored};
use super::tuning::Sample;
use super::turns::Step;
use super::{Purpose, Streams, Wait};
use headstack_model::Nanos;
use std::collections::BTreeMap;

/// Commands of a stream in flight, so that the disk does not idle between two.
const AHEAD: u32 = 2;

/// Time for which a frame is not evicted after it was last used, while the disk has other work: there may be no more than D frames.
const FRESH: Nanos = Nanos(20_000_000);

/// The same for a frame of a slow client: to read it again would cost more than others gain.
const HELD: Nanos = Nanos(1_000_000_000);

impl Streams {
    pub(super) fn route_read(&mut self, request: Request, offset: u64, bytes: u64, fua: bool) {
        if self.answers_from_dirty(request, offset, bytes, fua) || self.is_held(request, offset, bytes) {
            return;
        }
        if fua || bytes > self.longest() {
            return self.send_direct(request);
        }
        if let Some(pieces) = self.frames.pieces(offset, bytes) {
            self.fetch(request, offset, bytes, pieces, true);
            return self.discard_emptied();
        }
        let found = self
            .reader_for(request.client, offset, bytes)
            .or_else(|| self.new_reader(request.client, offset, bytes));
        match found {
            Some(stream) if self.bypass.is_on() => self.bypass_stream(stream, request, offset, bytes),
            Some(stream) => self.wait(stream, request, offset, bytes),
            None => self.send_direct(request),
        }
    }

    /// The longest request that a stream may have, because all its frames are needed at the same time.
    fn longest(&self) -> u64 {
        let frames = if self.frames.count() < 8 { 1 } else { 2 };
        frames * self.frames.frame_bytes()
    }

    /// Answers a read from staged bytes.
    fn fetch(&mut self, request: Request, offset: u64, bytes: u64, pieces: super::Pieces, at_once: bool) {
        let first = self.frames.readable_at(offset).expect("it is staged");
        let stream = self.frames.get(first).stream;
        self.answer(request.ticket, Ok(Outcome::Staged(pieces)));
        self.frames.fetch(self.now, offset, bytes, |id| self.emptied.push(id));
        self.books.read_bytes += bytes;
        self.books.hits += u64::from(at_once);
        self.bypass.answered(bytes);
        if self.streams.contains(stream as usize) {
            self.advance_expected(stream, request.client, offset, bytes, at_once);
        }
    }

    /// Discards frames whose bytes were all fetched.
    fn discard_emptied(&mut self) {
        while let Some(id) = self.emptied.pop() {
            if self.frames.is_readable(id) {
                self.discard_frame(id);
            }
        }
    }

    /// Notes a request of a stream that was answered. The next one is expected after it.
    fn advance_expected(&mut self, id: u32, client: u64, offset: u64, bytes: u64, is_hit: bool) {
        let disk_bytes = self.disk_bytes;
        let stream = &mut self.streams[id as usize];
        if is_hit {
            stream.note_request(self.now);
        }
        (stream.client, stream.last_request, stream.answered) = (client, self.now, Some(self.now));
        stream.was_fetched = true;
        stream.requests += 1;
        stream.request = bytes;
        stream.bytes += bytes;
        stream.hits += u64::from(is_hit);
        let direction = stream.direction();
        let end = stream.next_after(mirrored(direction, disk_bytes, offset, bytes), bytes).min(disk_bytes);
        if end > stream.expected {
            let before = stream.expected;
            self.set_expected(id, end);
            self.mark_passed(id, before);
            self.evict_passed(id, end);
        }
        self.enqueue(id);
    }

    /// Whether a stream has continued past a run.
    fn has_passed(&self, id: u32, place: u64, bytes: u64) -> bool {
        let stream = &self.streams[id as usize];
        mirrored(stream.direction(), self.disk_bytes, place, bytes) + bytes
            <= stream.passed_up_to(stream.expected)
    }

    /// Marks the frames that a stream has passed since it was expected at `before`.
    fn mark_passed(&mut self, id: u32, before: u64) {
        let stream = &self.streams[id as usize];
        let before = stream.passed_up_to(before);
        let bytes = stream.passed_up_to(stream.expected) - before;
        if bytes == 0 {
            return;
        }
        let place = mirrored(stream.direction(), self.disk_bytes, before, bytes);
        let is_passed = |streams: &Streams, frame: u32| {
            let Frame { stream, place, bytes, is_behind, .. } = *streams.frames.get(frame);
            stream == id && !is_behind && streams.has_passed(id, place, bytes)
        };
        let next = |streams: &Streams| {
            streams.frames.readable_in(place, place + bytes).find(|frame| is_passed(streams, *frame))
        };
        while let Some(frame) = next(self) {
            self.frames.mark_passed(frame);
        }
    }

    /// Discards a frame of a stream that is more than its slack behind.
    fn evict_passed(&mut self, id: u32, expected: u64) {
        let slack = self.streams[id as usize].slack;
        let Some(behind) = expected.checked_sub(slack + 1) else { return };
        let direction = self.streams[id as usize].direction();
        let place = mirrored(direction, self.disk_bytes, behind, 1);
        if let Some(frame) = self.frames.readable_at(place) {
            let found = self.frames.get(frame);
            let near =
                mirrored(direction, self.disk_bytes, found.place, found.bytes) + found.bytes > behind + 1;
            if found.stream == id && found.state == State::Staged && !near {
                self.books.unfetched_bytes += found.unfetched();
                self.discard_frame(frame);
            }
        }
    }

    /// Ends a stream for which no request waits.
    pub(super) fn drop_stream(&mut self, id: u32) {
        self.dequeue(id);
        self.end_escalation(id);
        self.dispatch.leave(id);
        let stream = self.streams.remove(id as usize);
        assert!(stream.waiting == 0, "no request waits for a stream that ends");
        if stream.in_flight > 0 && stream.turn.is_none() {
            self.dispatch.remove_leaving();
        }
        self.expected[set_of(stream.kind)].remove(&(stream.expected, id));
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

    /// Queues a request in a stream.
    pub(super) fn wait(&mut self, id: u32, request: Request, offset: u64, bytes: u64) {
        let disk_bytes = self.disk_bytes;
        let stream = &mut self.streams[id as usize];
        stream.waiting += 1;
        stream.note_request(self.now);
        stream.last_request = self.now;
        stream.request = bytes;
        stream.client = request.client;
        // Its client is not slow if it waits for a command in flight, or asks soon after one has ended.
        stream.is_slow &= stream.in_flight == 0 && self.now.since(stream.last_end) > FRESH;
        let end = mirrored(stream.direction(), disk_bytes, offset, bytes) + bytes;
        stream.wanted = stream.wanted.max(end);
        let is_writer = stream.is_writer();
        let wait = Wait { request, bytes, stream: id, is_reread: false };
        self.waits(is_writer).insert((offset, request.ticket), wait);
        self.enqueue(id);
        self.escalate(id);
    }

    /// The waiting requests of readers, or of writers.
    fn waits(&mut self, is_writer: bool) -> &mut BTreeMap<(u64, u64), Wait> {
        if is_writer { &mut self.writes } else { &mut self.reads }
    }

    /// Removes a waiting read or write.
    pub(super) fn remove_wait(&mut self, is_writer: bool, key: (u64, u64)) -> Wait {
        let wait = self.waits(is_writer).remove(&key).expect("it waits");
        let stream = &mut self.streams[wait.stream as usize];
        stream.waiting -= 1;
        stream.skip_passed();
        if stream.waiting == 0 {
            self.end_escalation(wait.stream);
        }
        self.enqueue(wait.stream);
        wait
    }

    /// Redirects reads that wait for bytes of a run and will not get them from a frame: they become direct requests.
    pub(super) fn redirect_waiters(&mut self, place: u64, bytes: u64) {
        let mut from = (place.saturating_sub(self.longest()), 0);
        while let Some(key) = self.next_wait(place, bytes, from) {
            from = (key.0, key.1 + 1);
            if self.spared.contains(&key) {
                continue;
            }
            let Wait { request, bytes, .. } = self.remove_wait(false, key);
            self.send_direct_after_writes(request, key.0, bytes);
        }
    }

    /// Makes streams reread what waiting requests need of a run that is discarded. Each request causes this once.
    fn rewind(&mut self, place: u64, bytes: u64) {
        let mut from = (place.saturating_sub(self.longest()), 0);
        while let Some(key) = self.next_wait(place, bytes, from) {
            from = (key.0, key.1 + 1);
            let disk_bytes = self.disk_bytes;
            let wait = self.reads.get_mut(&key).expect("it waits");
            let stream = &mut self.streams[wait.stream as usize];
            if wait.is_reread || stream.stride.is_some() {
                continue;
            }
            wait.is_reread = true;
            stream.frontier =
                stream.frontier.min(mirrored(stream.direction(), disk_bytes, key.0, wait.bytes));
            let id = wait.stream;
            self.spared.push(key);
            self.enqueue(id);
        }
    }

    /// Makes a stream whose frame is evicted read ahead from there again.
    fn rewind_owner(&mut self, frame: &Frame) {
        let Frame { stream: id, place, bytes, .. } = *frame;
        // A stream with waiting requests rereads only what they need. Otherwise two streams would evict each other's frames forever.
        let may_go_back = |stream: &Stream| stream.stride.is_none() && stream.waiting == 0;
        if !self.streams.get(id as usize).is_some_and(may_go_back) || self.has_passed(id, place, bytes) {
            return;
        }
        let disk_bytes = self.disk_bytes;
        let stream = &mut self.streams[id as usize];
        stream.frontier = stream.frontier.min(mirrored(stream.direction(), disk_bytes, place, bytes));
        self.enqueue(id);
    }

    /// The first read at or after `from` that waits for bytes of a run.
    fn next_wait(&self, place: u64, bytes: u64, from: (u64, u64)) -> Option<(u64, u64)> {
        let upto = (place.saturating_add(bytes), 0);
        let mut waits = self.reads.range(from..upto.max(from));
        waits.find(|((offset, _), wait)| offset + wait.bytes > place).map(|(key, _)| *key)
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
            self.frame_freed(stream);
        }
        self.redirect_waiters(frame.place, frame.bytes);
    }

    /// Notes that a frame of a stream is free.
    pub(super) fn frame_freed(&mut self, stream: u32) {
        if let Some(found) = self.streams.get_mut(stream as usize) {
            found.frames -= 1;
            self.enqueue(stream);
        }
    }

    /// Reads ahead for a stream that has a turn.
    pub(super) fn advance_reader(&mut self, id: u32) -> Step {
        self.skip_held(id);
        let stream = &self.streams[id as usize];
        let (direction, at, is_blocked) = (stream.direction(), stream.frontier, stream.is_blocked());
        if at >= self.disk_bytes || self.bypass.is_on() && !is_blocked {
            return Step::Over;
        }
        let staged = (stream.frames - stream.in_flight) as usize;
        // The more bytes of other streams are staged, the fewer this one may stage; but there is room for its next request.
        let is_split = self.boundaries.is_some() || stream.request > self.read_bytes();
        let spans = if is_split { stream.request.div_ceil(self.read_bytes()) + 2 } else { 1 };
        let most = self.frames.free().max(spans as usize);
        if !is_blocked && staged >= most && !self.may_evict(id, staged) {
            // Its client is slower than the disk, or has disconnected.
            self.streams[id as usize].is_slow = true;
            return Step::Over;
        }
        let ahead = if self.direct.is_busy(self.now) { 1 } else { AHEAD };
        if stream.in_flight >= ahead {
            return Step::Waits;
        }
        if self.frames.free() == 0 && !self.make_room(id, is_blocked || self.may_evict(id, staged)) {
            return if is_blocked { Step::Waits } else { Step::Over };
        }
        let bytes = self.streams[id as usize].stride.map_or(self.read_bytes(), |(_, bytes)| bytes);
        let bytes = self.read_length(direction, at, bytes.min(self.disk_bytes - at));
        let stream = &self.streams[id as usize];
        let may_span = self.boundaries.is_some() && stream.turn != Some(1) || stream.stride.is_some();
        let bytes = if may_span { bytes } else { stream.whole_requests(at, at + bytes) - at };
        let place = mirrored(direction, self.disk_bytes, at, bytes);
        let frame =
            self.frames.allocate(self.now, State::Reading, id, place, bytes).expect("there is a free one");
        let stream = &mut self.streams[id as usize];
        stream.frontier = stream.next_after(at, bytes).min(self.disk_bytes);
        stream.frames += 1;
        self.mark_in_flight(id);
        self.direct.note_stream_bytes(bytes);
        self.dispatch.send_arm(place + bytes, true);
        let memory = TransferBuffer::Memory(self.frames.memory_offset(frame, place));
        self.start(Purpose::Frame(frame), Transfer::Read { fua: false }, (place, bytes), memory);
        self.spend_turn(id);
        Step::Began
    }

    /// Whether a stream in its turn may evict staged bytes of others although its client does not wait: its client fetches bytes about as
    /// quickly as the disk reads them, so that they do not stay. Never where D is given: then the bytes of others are of turns as good as
    /// this one.
    fn may_evict(&self, id: u32, staged: usize) -> bool {
        let stream = &self.streams[id as usize];
        let disk_ns = stream.request as f64 / self.tuning.bandwidth() * 1e9;
        let is_quick = stream.think_time.0 as f64 <= disk_ns;
        self.config.dispatch_set.is_none() && is_quick && staged < self.frames.count() / 4
    }

    /// Advances a stream past bytes that are in the memory already.
    fn skip_held(&mut self, id: u32) {
        let disk_bytes = self.disk_bytes;
        let direction = self.streams[id as usize].direction();
        while let stream = &mut self.streams[id as usize]
            && stream.frontier < disk_bytes
        {
            let Some(holder) = self.frames.holder(mirrored(direction, disk_bytes, stream.frontier, 1)) else {
                return;
            };
            let frame = self.frames.get(holder);
            let end = mirrored(direction, disk_bytes, frame.place, frame.bytes) + frame.bytes;
            let Some((stride, record)) = stream.stride else {
                stream.frontier = end;
                continue;
            };
            let at = stream.frontier;
            // The stride may exceed the disk.
            stream.frontier = (at + stride).min(disk_bytes);
            let record = record.min(disk_bytes - at);
            if end < at + record {
                // The rest of the record is not read ahead: requests for it become direct.
                self.redirect_waiters(mirrored(direction, disk_bytes, at, record), record);
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
                let end = self.disk_bytes - at;
                most.min(end - self.frames.end_below(end))
            }
        }
    }

    /// Evicts a frame for a stream, where that is fair. Returns whether a frame is free.
    pub(super) fn make_room(&mut self, id: u32, is_blocked: bool) -> bool {
        let victim = self.frames.oldest_passed();
        let victim = victim.or_else(|| if is_blocked { self.victim(id) } else { None });
        if let Some(victim) = victim {
            let frame = *self.frames.get(victim);
            self.books.unfetched_bytes += frame.unfetched();
            self.rewind(frame.place, frame.bytes);
            if frame.stream != id {
                self.rewind_owner(&frame);
            }
            self.discard_frame(victim);
            self.spared.clear();
            return self.frames.free() > 0;
        }
        if !is_blocked {
            return false;
        }
        if !self.close_oldest() && self.in_flight.is_empty() {
            // Streams that wait hold all memory: this one's requests become direct.
            let stream = &self.streams[id as usize];
            let (direction, at) = (stream.direction(), stream.frontier);
            let bytes = stream.wanted.saturating_sub(at);
            self.redirect_waiters(mirrored(direction, self.disk_bytes, at, bytes), bytes);
        }
        // Frames in use may be evicted after a while, without another event.
        self.dispatch.grace_at = self.dispatch.grace_at.min(self.now + FRESH);
        false
    }

    /// The least recently used frame that may be evicted for a stream whose client waits: one of another stream, or else one of its own
    /// for which no request waits.
    fn victim(&self, id: u32) -> Option<u32> {
        let is_left = |frame: &Frame| {
            let owner = self.streams.get(frame.stream as usize);
            let is_slow = owner.is_some_and(|owner| owner.is_slow && owner.waiting == 0);
            self.in_flight.is_empty() || self.now.since(frame.touched) >= if is_slow { HELD } else { FRESH }
        };
        let may_be_left = |frame: &Frame| self.in_flight.is_empty() || self.now.since(frame.touched) >= FRESH;
        let old = self.frames.expected().take_while(|(_, frame)| may_be_left(frame));
        let from_others =
            old.filter(|(_, frame)| frame.stream != id && is_left(frame)).map(|(victim, _)| victim);
        from_others.into_iter().next().or_else(|| {
            let own = self.frames.owned_by(id).map(|victim| (victim, self.frames.get(victim)));
            let own = own.filter(|(_, frame)| frame.state == State::Staged && !frame.is_hidden);
            let unwanted = own.filter(|(_, frame)| {
                let from = (frame.place.saturating_sub(self.longest()), 0);
                self.next_wait(frame.place, frame.bytes, from).is_none()
            });
            unwanted.min_by_key(|(victim, frame)| (frame.touched, *victim)).map(|(victim, _)| victim)
        })
    }

    /// Takes the end of a command for a frame.
    pub(super) fn frame_ended(&mut self, id: u32, issued: Nanos, result: Result<(), DiskError>) {
        let (frame, now) = (*self.frames.get(id), self.now);
        let is_clean = result.is_ok() && !self.direct.is_busy(now);
        self.tuning.learn(&Sample { issued, ended: now, place: frame.place, bytes: frame.bytes, is_clean });
        self.note_command_end(frame.stream);
        if frame.state == State::Writing {
            return self.frame_written(id, result);
        }
        if result.is_err() || frame.is_hidden {
            // Requests that wait for it become direct, and read no more than their own bytes.
            self.discard_frame(id);
            let stream = self.streams.get(frame.stream as usize);
            if result.is_err() && stream.is_some_and(|stream| stream.waiting == 0) {
                // More read-ahead would fail, too.
                self.drop_stream(frame.stream);
            }
            return;
        }
        self.frames.stage(now, id);
        if self.streams.contains(frame.stream as usize)
            && self.has_passed(frame.stream, frame.place, frame.bytes)
        {
            self.frames.mark_passed(id);
        }
        self.answer_waits(frame.place, frame.bytes);
        if self.streams.contains(frame.stream as usize) {
            self.enqueue(frame.stream);
        } else if self.frames.is_readable(id) {
            self.discard_frame(id);
        }
    }

    /// Answers the requests whose bytes are all staged now.
    fn answer_waits(&mut self, place: u64, bytes: u64) {
        let mut from = (place.saturating_sub(self.longest()), 0);
        while let Some(key) = self.next_wait(place, bytes, from) {
            from = (key.0, key.1 + 1);
            let wait = self.reads[&key];
            if let Some(pieces) = self.frames.pieces(key.0, wait.bytes) {
                self.remove_wait(false, key);
                self.fetch(wait.request, key.0, wait.bytes, pieces, false);
            }
        }
        self.discard_emptied();
    }
}

/// The last boundary up to `end`, where that leaves at least a quarter; else `end`.
fn last_boundary(boundaries: &dyn super::Boundaries, begin: u64, end: u64) -> u64 {
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
