//! Streams of reads: what is staged is fetched, the rest is read ahead in turns.

use super::classifier::Direction;
use super::finding::set_of;
use super::frames::{Frame, State};
use super::stream::{NOBODY, Stream, turned};
use super::tuning::Sample;
use super::turns::Step;
use super::words::{DiskError, Outcome, Place, Request, Transfer};
use super::{Purpose, Streams, Wait};
use headstack_model::Nanos;
use std::collections::BTreeMap;

/// Commands of a stream that the disk has at a time, so that it need not wait for the next.
const AHEAD: u32 = 2;

/// For how long a frame is left to whoever fetches of it while the disk has other work: D frames are all there may be.
const FRESH: Nanos = Nanos(20_000_000);

/// For how long a frame is left to a slow client: to read it again would cost more than others lose.
const HELD: Nanos = Nanos(1_000_000_000);

impl Streams {
    pub(super) fn take_read(&mut self, request: Request, offset: u64, bytes: u64, fua: bool) {
        if self.is_gathered(request, offset, bytes, fua) || self.holds_back(request, offset, bytes) {
            return;
        }
        if fua || bytes > self.longest() {
            return self.pass(request);
        }
        if let Some(pieces) = self.frames.pieces(offset, bytes) {
            self.fetch(request, offset, bytes, pieces, true);
            return self.give_up_emptied();
        }
        let found = self
            .reader_for(request.client, offset, bytes)
            .or_else(|| self.new_reader(request.client, offset, bytes));
        match found {
            Some(stream) if self.bypass.is_on() => self.pass_by_stream(stream, request, offset, bytes),
            Some(stream) => self.wait(stream, request, offset, bytes),
            None => self.pass(request),
        }
    }

    /// Longest request that a stream may have: its frames are all needed at once.
    fn longest(&self) -> u64 {
        let frames = if self.frames.count() < 8 { 1 } else { 2 };
        frames * self.frames.frame_bytes()
    }

    /// Answers a read with what is staged.
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

    /// Gives up frames of which all was fetched, by whoever wanted it by now.
    fn give_up_emptied(&mut self) {
        while let Some(id) = self.emptied.pop() {
            if self.frames.is_readable(id) {
                self.give_up(id);
            }
        }
    }

    /// A request of a stream came, or was answered: the next is expected behind it.
    fn advance_expected(&mut self, id: u32, client: u64, offset: u64, bytes: u64, is_hit: bool) {
        let disk_bytes = self.disk_bytes;
        let stream = &mut self.streams[id as usize];
        if is_hit {
            stream.hear(self.now);
        }
        (stream.client, stream.asked, stream.answered) = (client, self.now, Some(self.now));
        stream.was_fetched = true;
        stream.requests += 1;
        stream.request = bytes;
        stream.bytes += bytes;
        stream.hits += u64::from(is_hit);
        let direction = stream.direction();
        let end = stream.beyond(turned(direction, disk_bytes, offset, bytes), bytes).min(disk_bytes);
        if end > stream.expected {
            let before = stream.expected;
            self.expect_at(id, end);
            self.leave_behind(id, before);
            self.pass_by(id, end);
        }
        self.file(id);
    }

    /// Whether a stream has gone on behind a run.
    fn has_passed(&self, id: u32, place: u64, bytes: u64) -> bool {
        let stream = &self.streams[id as usize];
        turned(stream.direction(), self.disk_bytes, place, bytes) + bytes
            <= stream.passed_up_to(stream.expected)
    }

    /// Takes note of the frames that a stream has gone on behind, which it expected from `before` on.
    fn leave_behind(&mut self, id: u32, before: u64) {
        let stream = &self.streams[id as usize];
        let before = stream.passed_up_to(before);
        let bytes = stream.passed_up_to(stream.expected) - before;
        if bytes == 0 {
            return;
        }
        let place = turned(stream.direction(), self.disk_bytes, before, bytes);
        let is_passed = |streams: &Streams, frame: u32| {
            let Frame { stream, place, bytes, is_behind, .. } = *streams.frames.get(frame);
            stream == id && !is_behind && streams.has_passed(id, place, bytes)
        };
        let next = |streams: &Streams| {
            streams.frames.readable_in(place, place + bytes).find(|frame| is_passed(streams, *frame))
        };
        while let Some(frame) = next(self) {
            self.frames.leave_behind(frame);
        }
    }

    /// Gives up frames of a stream that it has left far behind.
    fn pass_by(&mut self, id: u32, expected: u64) {
        let slack = self.streams[id as usize].slack;
        let Some(behind) = expected.checked_sub(slack + 1) else { return };
        let direction = self.streams[id as usize].direction();
        let place = turned(direction, self.disk_bytes, behind, 1);
        if let Some(frame) = self.frames.readable_at(place) {
            let found = self.frames.get(frame);
            let near =
                turned(direction, self.disk_bytes, found.place, found.bytes) + found.bytes > behind + 1;
            if found.stream == id && found.state == State::Staged && !near {
                self.books.unfetched_bytes += found.unfetched();
                self.give_up(frame);
            }
        }
    }

    /// Gives up a stream that nothing waits for.
    pub(super) fn drop_stream(&mut self, id: u32) {
        self.unfile(id);
        self.unpress(id);
        self.dispatch.leave(id);
        let stream = self.streams.remove(id as usize);
        assert!(stream.waiting == 0, "a stream that goes leaves nobody waiting");
        if stream.in_flight > 0 && stream.turn.is_none() {
            self.dispatch.arrive_early();
        }
        self.expected[set_of(stream.way)].remove(&(stream.expected, id));
        let own: Vec<u32> = self.frames.of(id).collect();
        for frame in own {
            self.frames.give(frame, NOBODY);
            match self.frames.get(frame).state {
                State::Staged => self.give_up(frame),
                State::Gathering => self.close(frame),
                State::Reading | State::Ready | State::Writing => {}
            }
        }
    }

    /// Has a request wait in a stream.
    pub(super) fn wait(&mut self, id: u32, request: Request, offset: u64, bytes: u64) {
        let disk_bytes = self.disk_bytes;
        let stream = &mut self.streams[id as usize];
        stream.waiting += 1;
        stream.hear(self.now);
        stream.asked = self.now;
        stream.request = bytes;
        stream.client = request.client;
        // It waits for what the disk is just bringing, or has taken at once what it brought.
        stream.is_slow &= stream.in_flight == 0 && self.now.since(stream.landed) > FRESH;
        let end = turned(stream.direction(), disk_bytes, offset, bytes) + bytes;
        stream.wanted = stream.wanted.max(end);
        let is_writer = stream.is_writer();
        let wait = Wait { request, bytes, stream: id, is_again: false };
        self.waits(is_writer).insert((offset, request.ticket), wait);
        self.file(id);
        self.press(id);
    }

    /// Requests of readers, or of writers, that wait.
    fn waits(&mut self, is_writer: bool) -> &mut BTreeMap<(u64, u64), Wait> {
        if is_writer { &mut self.writes } else { &mut self.reads }
    }

    /// Takes out a read, or a write, that waits.
    pub(super) fn take_wait(&mut self, is_writer: bool, key: (u64, u64)) -> Wait {
        let wait = self.waits(is_writer).remove(&key).expect("it waits");
        let stream = &mut self.streams[wait.stream as usize];
        stream.waiting -= 1;
        stream.skip_passed();
        if stream.waiting == 0 {
            self.unpress(wait.stream);
        }
        self.file(wait.stream);
        wait
    }

    /// Sends reads that wait for bytes of a run, and will not get them from a frame, on another way.
    pub(super) fn dislodge(&mut self, place: u64, bytes: u64) {
        let mut from = (place.saturating_sub(self.longest()), 0);
        while let Some(key) = self.next_wait(place, bytes, from) {
            from = (key.0, key.1 + 1);
            if self.spared.contains(&key) {
                continue;
            }
            let Wait { request, bytes, .. } = self.take_wait(false, key);
            self.pass_behind(request, key.0, bytes);
        }
    }

    /// Has streams read again what is wanted of a run that is given up; of each request once.
    fn rewind(&mut self, place: u64, bytes: u64) {
        let mut from = (place.saturating_sub(self.longest()), 0);
        while let Some(key) = self.next_wait(place, bytes, from) {
            from = (key.0, key.1 + 1);
            let disk_bytes = self.disk_bytes;
            let wait = self.reads.get_mut(&key).expect("it waits");
            let stream = &mut self.streams[wait.stream as usize];
            if wait.is_again || stream.stride.is_some() {
                continue;
            }
            wait.is_again = true;
            stream.frontier = stream.frontier.min(turned(stream.direction(), disk_bytes, key.0, wait.bytes));
            let id = wait.stream;
            self.spared.push(key);
            self.file(id);
        }
    }

    /// Has a stream that a frame is taken from read ahead from there again.
    fn read_again(&mut self, frame: &Frame) {
        let Frame { stream: id, place, bytes, .. } = *frame;
        // What those wait for that wait is read again in any case, and no more, so that two of them do not take frames from each other
        // for ever.
        let may_go_back = |stream: &Stream| stream.stride.is_none() && stream.waiting == 0;
        if !self.streams.get(id as usize).is_some_and(may_go_back) || self.has_passed(id, place, bytes) {
            return;
        }
        let disk_bytes = self.disk_bytes;
        let stream = &mut self.streams[id as usize];
        stream.frontier = stream.frontier.min(turned(stream.direction(), disk_bytes, place, bytes));
        self.file(id);
    }

    /// The first read from `from` on that waits for bytes of a run.
    fn next_wait(&self, place: u64, bytes: u64, from: (u64, u64)) -> Option<(u64, u64)> {
        let upto = (place.saturating_add(bytes), 0);
        let mut waits = self.reads.range(from..upto.max(from));
        waits.find(|((offset, _), wait)| offset + wait.bytes > place).map(|(key, _)| *key)
    }

    /// Nobody may fetch what the disk had in a run, which is being changed, or was.
    pub(super) fn outdate(&mut self, place: u64, bytes: u64) {
        let mut unused = Vec::new();
        self.frames.outdate(place, bytes, |id| unused.push(id));
        unused.into_iter().for_each(|id| self.give_up(id));
        self.dislodge(place, bytes);
    }

    /// Gives a frame back whose bytes nobody needs.
    pub(super) fn give_up(&mut self, id: u32) {
        let frame = *self.frames.get(id);
        if let Some(stream) = self.frames.retire(id) {
            self.frame_freed(stream);
        }
        self.dislodge(frame.place, frame.bytes);
    }

    /// A frame of a stream is free.
    pub(super) fn frame_freed(&mut self, stream: u32) {
        if let Some(found) = self.streams.get_mut(stream as usize) {
            found.frames -= 1;
            self.file(stream);
        }
    }

    /// Reads ahead for a stream that has a turn.
    pub(super) fn advance_reader(&mut self, id: u32) -> Step {
        self.skip_held(id);
        let stream = &self.streams[id as usize];
        let (direction, at, is_needy) = (stream.direction(), stream.frontier, stream.is_needy());
        if at >= self.disk_bytes || self.bypass.is_on() && !is_needy {
            return Step::Over;
        }
        let staged = (stream.frames - stream.in_flight) as usize;
        // The more lies staged of others, the less may of this one; but what its next request lies in must find room.
        let is_split = self.boundaries.is_some() || stream.request > self.read_bytes();
        let spans = if is_split { stream.request.div_ceil(self.read_bytes()) + 2 } else { 1 };
        let most = self.frames.free().max(spans as usize);
        if !is_needy && staged >= most && !self.may_oust(id, staged) {
            // Its client is slower than the disk, or has gone.
            self.streams[id as usize].is_slow = true;
            return Step::Over;
        }
        let ahead = if self.beside.is_busy(self.now) { 1 } else { AHEAD };
        if stream.in_flight >= ahead {
            return Step::Waits;
        }
        if self.frames.free() == 0 && !self.make_room(id, is_needy || self.may_oust(id, staged)) {
            return if is_needy { Step::Waits } else { Step::Over };
        }
        let bytes = self.streams[id as usize].stride.map_or(self.read_bytes(), |(_, bytes)| bytes);
        let bytes = self.read_length(direction, at, bytes.min(self.disk_bytes - at));
        let stream = &self.streams[id as usize];
        let may_span = self.boundaries.is_some() && stream.turn != Some(1) || stream.stride.is_some();
        let bytes = if may_span { bytes } else { stream.whole_requests(at, at + bytes) - at };
        let place = turned(direction, self.disk_bytes, at, bytes);
        let frame =
            self.frames.take(self.now, State::Reading, id, place, bytes).expect("there is a free one");
        let stream = &mut self.streams[id as usize];
        stream.frontier = stream.beyond(at, bytes).min(self.disk_bytes);
        stream.frames += 1;
        self.fly(id);
        self.beside.streams_began(bytes);
        self.dispatch.send_arm(place + bytes, true);
        let memory = Place::Memory(self.frames.at(frame, place));
        self.start(Purpose::Frame(frame), Transfer::Read { fua: false }, (place, bytes), memory);
        self.spend_turn(id);
        Step::Began
    }

    /// Whether what others do not fetch is to be given up for a stream in its turn, as it would be if its client waited for more: the
    /// client takes its bytes about as quickly as the disk brings them, so that they do not stay. Where D is given, what others have is of
    /// turns as good as this one.
    fn may_oust(&self, id: u32, staged: usize) -> bool {
        let stream = &self.streams[id as usize];
        let disk_ns = stream.request as f64 / self.tuning.bandwidth() * 1e9;
        let is_quick = stream.thinks.0 as f64 <= disk_ns;
        self.config.dispatch_set.is_none() && is_quick && staged < self.frames.count() / 4
    }

    /// Moves a stream on over what is in the memory already.
    fn skip_held(&mut self, id: u32) {
        let disk_bytes = self.disk_bytes;
        let direction = self.streams[id as usize].direction();
        while let stream = &mut self.streams[id as usize]
            && stream.frontier < disk_bytes
        {
            let Some(holder) = self.frames.holder(turned(direction, disk_bytes, stream.frontier, 1)) else {
                return;
            };
            let frame = self.frames.get(holder);
            let end = turned(direction, disk_bytes, frame.place, frame.bytes) + frame.bytes;
            let Some((stride, record)) = stream.stride else {
                stream.frontier = end;
                continue;
            };
            let at = stream.frontier;
            // It may lead beyond the disk.
            stream.frontier = (at + stride).min(disk_bytes);
            let record = record.min(disk_bytes - at);
            if end < at + record {
                // The rest of the record is not read ahead: who waits for it asks the disk.
                self.dislodge(turned(direction, disk_bytes, at, record), record);
            }
        }
    }

    /// How many bytes to read from here on along a way, where so many are wanted.
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

    /// Has a frame free for a stream, where that is fair; whether there is one.
    pub(super) fn make_room(&mut self, id: u32, is_needy: bool) -> bool {
        let victim = self.frames.left_behind();
        let victim = victim.or_else(|| if is_needy { self.victim(id) } else { None });
        if let Some(victim) = victim {
            let frame = *self.frames.get(victim);
            self.books.unfetched_bytes += frame.unfetched();
            self.rewind(frame.place, frame.bytes);
            if frame.stream != id {
                self.read_again(&frame);
            }
            self.give_up(victim);
            self.spared.clear();
            return self.frames.free() > 0;
        }
        if !is_needy {
            return false;
        }
        if !self.close_oldest() && self.underway.is_empty() {
            // All memory is with others that wait for more: this one does without.
            let stream = &self.streams[id as usize];
            let (direction, at) = (stream.direction(), stream.frontier);
            let bytes = stream.wanted.saturating_sub(at);
            self.dislodge(turned(direction, self.disk_bytes, at, bytes), bytes);
        }
        // Frames that are held may be taken after a while, of which nobody tells.
        self.dispatch.grace_at = self.dispatch.grace_at.min(self.now + FRESH);
        false
    }

    /// The staged frame, wanted longest ago, that may be given up for a stream whose client waits: one of others, or else of its own
    /// that nobody waits for.
    fn victim(&self, id: u32) -> Option<u32> {
        let is_left = |frame: &Frame| {
            let owner = self.streams.get(frame.stream as usize);
            let is_slow = owner.is_some_and(|owner| owner.is_slow && owner.waiting == 0);
            self.underway.is_empty() || self.now.since(frame.touched) >= if is_slow { HELD } else { FRESH }
        };
        let may_be_left = |frame: &Frame| self.underway.is_empty() || self.now.since(frame.touched) >= FRESH;
        let old = self.frames.expected().take_while(|(_, frame)| may_be_left(frame));
        let of_others =
            old.filter(|(_, frame)| frame.stream != id && is_left(frame)).map(|(victim, _)| victim);
        of_others.into_iter().next().or_else(|| {
            let own = self.frames.of(id).map(|victim| (victim, self.frames.get(victim)));
            let own = own.filter(|(_, frame)| frame.state == State::Staged && !frame.is_hidden);
            let unwanted = own.filter(|(_, frame)| {
                let from = (frame.place.saturating_sub(self.longest()), 0);
                self.next_wait(frame.place, frame.bytes, from).is_none()
            });
            unwanted.min_by_key(|(victim, frame)| (frame.touched, *victim)).map(|(victim, _)| victim)
        })
    }

    /// A command for a frame has ended.
    pub(super) fn frame_ended(&mut self, id: u32, issued: Nanos, result: Result<(), DiskError>) {
        let (frame, now) = (*self.frames.get(id), self.now);
        let is_clean = result.is_ok() && !self.beside.is_busy(now);
        self.tuning.learn(&Sample { issued, ended: now, place: frame.place, bytes: frame.bytes, is_clean });
        self.landed(frame.stream);
        if frame.state == State::Writing {
            return self.frame_written(id, result);
        }
        if result.is_err() || frame.is_hidden {
            // Who waits for it asks the disk for no more than its own bytes.
            self.give_up(id);
            let stream = self.streams.get(frame.stream as usize);
            if result.is_err() && stream.is_some_and(|stream| stream.waiting == 0) {
                // More of what nobody waits for would be read in vain, too.
                self.drop_stream(frame.stream);
            }
            return;
        }
        self.frames.stage(now, id);
        if self.streams.contains(frame.stream as usize)
            && self.has_passed(frame.stream, frame.place, frame.bytes)
        {
            self.frames.leave_behind(id);
        }
        self.answer_waits(frame.place, frame.bytes);
        if self.streams.contains(frame.stream as usize) {
            self.file(frame.stream);
        } else if self.frames.is_readable(id) {
            self.give_up(id);
        }
    }

    /// Answers those for whom all is staged now.
    fn answer_waits(&mut self, place: u64, bytes: u64) {
        let mut from = (place.saturating_sub(self.longest()), 0);
        while let Some(key) = self.next_wait(place, bytes, from) {
            from = (key.0, key.1 + 1);
            let wait = self.reads[&key];
            if let Some(pieces) = self.frames.pieces(key.0, wait.bytes) {
                self.take_wait(false, key);
                self.fetch(wait.request, key.0, wait.bytes, pieces, false);
            }
        }
        self.give_up_emptied();
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
