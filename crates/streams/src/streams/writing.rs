//! Streams of writes: coalesced in frames, answered at once, written in turns; and what a FLUSH has to wait for.
//!
//! A stream has frames only in its turn, so that few frames serve many streams: a write that needs a frame waits, unanswered, until
//! then. During the turn its client writes as fast as the disk does.
//!
//! A disk whose zones are written in sequence refuses a write that does not begin where the last one of its zone ended, and one that
//! crosses the end of a zone. So a frame ends with its zone, and the writes of a zone become commands in the order in which they came:
//! one that bypasses the streams waits until the coalesced bytes of its zone are written, and no write of a zone is coalesced while one
//! that bypasses waits. What a client writes out of order is refused by the disk, as without the scheduler.

use super::finding::ClientRun;
use super::frames::State;
use super::messages::{Outcome, Piece, Pieces, Request};
use super::stream::NEAR;
use super::waits::{Wait, WaitKey};
use super::{Step, Streams};
use headstack_model::{BlockError, Instant, Nanos};
use std::collections::{BTreeMap, VecDeque};

/// Time for which a stream whose client pauses keeps its turn: less than the disk needs to return to it.
const GRACE: Nanos = Nanos(3_000_000);

/// Frames of a stream that wait to be written, or are.
const BEHIND: u32 = 4;

/// Coalesced writes that are not on the disk yet, and requests that wait for them.
#[derive(Debug)]
pub(super) struct CoalescedWrites {
    /// Frames that are to be written, the oldest first.
    ready: VecDeque<u32>,
    /// Requests that wait until coalesced bytes are on the disk.
    held: Vec<Request>,
    /// Flushes, each with the number of the last frame before it.
    flushes: VecDeque<(u64, Request)>,
    /// Number of losses of acknowledged bytes, and the error of the last one.
    losses: (u64, BlockError),
    /// Losses reported to each client. Each connected client gets all of them, because a user may have several connections.
    reported_losses: BTreeMap<u64, u64>,
    /// When coalesced bytes have waited for long enough.
    pub(super) drain_at: Instant,
}

impl Default for CoalescedWrites {
    fn default() -> CoalescedWrites {
        CoalescedWrites {
            ready: VecDeque::new(),
            held: Vec::new(),
            flushes: VecDeque::new(),
            losses: (0, BlockError::Medium),
            reported_losses: BTreeMap::new(),
            drain_at: Instant::MAX,
        }
    }
}

impl CoalescedWrites {
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Adds a client at its first request. Earlier losses are not reported to it.
    pub(super) fn add_client(&mut self, client: u64) {
        self.reported_losses.entry(client).or_insert(self.losses.0);
    }

    pub(super) fn clients(&self) -> usize {
        self.reported_losses.len()
    }

    pub(super) fn remove_client(&mut self, client: u64) {
        self.reported_losses.remove(&client);
    }

    fn lose(&mut self, error: BlockError) {
        self.losses = (self.losses.0 + 1, error);
    }

    /// Reports losses to a client by its flush, once each.
    pub(super) fn report_loss(&mut self, client: u64) -> Result<(), BlockError> {
        let (losses, error) = self.losses;
        let reported =
            self.reported_losses.get_mut(&client).map_or(losses, |known| std::mem::replace(known, losses));
        if reported < losses { Err(error) } else { Ok(()) }
    }

    pub(super) fn has_held(&self, offset: u64, bytes: u64) -> bool {
        let overlaps = |request: &Request| {
            let (begin, length) = request.kind.run();
            begin < offset + bytes && offset < begin + length
        };
        self.held.iter().any(overlaps)
    }

    /// Whether nothing waits for the disk.
    pub(super) fn is_settled(&self) -> bool {
        self.ready.is_empty() && self.held.is_empty() && self.flushes.is_empty()
    }
}

impl Streams {
    pub(super) fn route_write(&mut self, request: Request, offset: u64, bytes: u64, fua: bool) {
        if self.coalesced.has_held(offset, bytes) || self.is_zone_held(offset) {
            // Otherwise the held requests would starve as long as others write there.
            return self.coalesced.held.push(request);
        }
        if !fua && self.is_overwritten(request, offset, bytes) || self.is_held(request, offset, bytes) {
            return;
        }
        self.invalidate(offset, bytes);
        let is_short = bytes <= self.frames.frame_bytes();
        if fua || !self.config.coalesce_writes || !is_short || self.bypasses_for_zone(offset, bytes) {
            return self.send_write_direct(request, offset);
        }
        let run = ClientRun { client: request.client, offset, bytes };
        match self.finder.writer(self.now, &mut self.schedule.table, run) {
            Some(id) if self.bypass.is_on() => self.bypass_stream(id, request, offset, bytes),
            Some(id) if self.schedule[id].frontier == offset && self.accept(id, request, offset, bytes) => {}
            Some(id) => self.wait(id, request, offset, bytes),
            None => self.send_write_direct(request, offset),
        }
    }

    /// Queues a direct request, after coalesced bytes that it overlaps are written.
    pub(super) fn send_direct_after_writes(&mut self, request: Request, offset: u64, bytes: u64) {
        if !self.is_held(request, offset, bytes) {
            self.send_direct(request);
        }
    }

    /// Queues a request that changes bytes, after coalesced bytes that it overlaps are written.
    pub(super) fn route_change(&mut self, request: Request, offset: u64, bytes: u64) {
        if !self.is_held(request, offset, bytes) {
            self.invalidate(offset, bytes);
            self.send_direct(request);
        }
    }

    pub(super) fn route_flush(&mut self, request: Request) {
        let open: Vec<u32> = self.frames.all_dirty().collect();
        open.into_iter().for_each(|id| self.close(id));
        if self.frames.dirty() == 0 {
            return self.send_direct(request);
        }
        self.coalesced.flushes.push_back((self.frames.serial(), request));
    }

    /// Answers a read of bytes that are all dirty in one frame. Returns whether they are.
    pub(super) fn answers_from_dirty(
        &mut self,
        request: Request,
        offset: u64,
        bytes: u64,
        fua: bool,
    ) -> bool {
        let Some(id) = self.frames.dirty_in(offset, bytes).next().filter(|_| !fua) else { return false };
        let frame = self.frames.get(id);
        if frame.place > offset || frame.end() < offset + bytes {
            return false;
        }
        let mut pieces = Pieces::default();
        pieces.push(Piece { at: self.frames.memory_offset(id, offset), bytes });
        self.counters.hits += 1;
        self.counters.read_bytes += bytes;
        self.answer(request.ticket, Ok(Outcome::Staged(pieces)));
        true
    }

    /// Overwrites bytes that are being coalesced. Returns whether the write is done by that.
    fn is_overwritten(&mut self, request: Request, offset: u64, bytes: u64) -> bool {
        let Some(id) = self.frames.dirty_in(offset, bytes).next() else { return false };
        let frame = self.frames.get(id);
        if frame.state != State::Coalescing || frame.place > offset || frame.end() < offset + bytes {
            return false;
        }
        // A flush that waits for the frame closed it, so these bytes were coalesced after all flushes.
        let piece = Piece { at: self.frames.memory_offset(id, offset), bytes };
        self.actions.copy_in(request.ticket, 0, piece);
        self.answer(request.ticket, Ok(Outcome::Done));
        true
    }

    /// Holds a request if coalesced bytes that it overlaps must be written before. Returns whether it is held.
    pub(super) fn is_held(&mut self, request: Request, offset: u64, bytes: u64) -> bool {
        let before: Vec<u32> = self.frames.dirty_in(offset, bytes).collect();
        if before.is_empty() {
            return false;
        }
        before.into_iter().for_each(|id| self.close(id));
        self.coalesced.held.push(request);
        true
    }

    /// Coalesces a write at its stream's frontier, if there is memory for it.
    fn accept(&mut self, id: u32, request: Request, offset: u64, bytes: u64) -> bool {
        let frame_bytes = self.frames.frame_bytes();
        let open = self.schedule[id].open;
        let space = open.map_or(0, |open| frame_bytes - self.frames.get(open).bytes);
        let first = bytes.min(space);
        if bytes > space && !self.open_frame(id, offset + first, bytes - first) {
            return false;
        }
        if let Some(open) = open.filter(|_| first > 0) {
            let at = self.frames.memory_offset(open, offset);
            self.frames.get_mut(open).bytes += first;
            self.actions.copy_in(request.ticket, 0, Piece { at, bytes: first });
            self.close_full(open);
        }
        if let Some(second) = self.schedule[id].open.filter(|_| bytes > first) {
            let at = self.frames.memory_offset(second, offset + first);
            self.actions.copy_in(request.ticket, first, Piece { at, bytes: bytes - first });
            self.close_full(second);
        }
        let stream = &mut self.schedule[id];
        (stream.client.id, stream.client.last_request) = (request.client, self.now);
        stream.totals.add(bytes, false);
        stream.frontier = offset + bytes;
        self.schedule.table.set_expected(id, offset + bytes);
        self.bypass.answered(bytes);
        self.answer(request.ticket, Ok(Outcome::Done));
        self.schedule.enqueue(id);
        // Other waiting writes of the same bytes become direct.
        while let Some((key, wait)) = self.waits.first_write_of(id, offset, offset + bytes) {
            self.waits.remove(&mut self.schedule, true, key);
            self.route_change(wait.request, key.0, wait.bytes);
        }
        true
    }

    /// Opens a frame with these bytes for a stream in its turn. Returns whether it gets one.
    fn open_frame(&mut self, id: u32, place: u64, bytes: u64) -> bool {
        let stream = &self.schedule[id];
        let is_turn = stream.has_turn();
        if !is_turn || stream.frames >= BEHIND.min((self.frames.count() / 2) as u32).max(1) {
            return false;
        }
        if self.frames.free() == 0 && !self.make_room(id, true) {
            return false;
        }
        if let Some(open) = self.schedule[id].open {
            self.close(open);
        }
        let frame =
            self.frames.allocate(self.now, State::Coalescing, id, place, bytes).expect("there is a free one");
        let stream = &mut self.schedule[id];
        stream.frames += 1;
        stream.open = Some(frame);
        self.coalesced.drain_at = self.coalesced.drain_at.min(self.now + self.config.coalesce());
        true
    }

    fn close_full(&mut self, id: u32) {
        let frame = self.frames.get(id);
        let is_zone_full = self.zone_left(frame.end() - 1) == 1;
        if frame.bytes == self.frames.frame_bytes() || is_zone_full {
            self.close(id);
        }
    }

    /// Closes a frame in which writes are coalesced, so that it is written.
    pub(super) fn close(&mut self, id: u32) {
        let frame = self.frames.get_mut(id);
        if frame.state != State::Coalescing {
            return;
        }
        frame.state = State::Ready;
        let stream = frame.stream;
        self.coalesced.ready.push_back(id);
        let Some(found) = self.schedule.table.get_mut(stream).filter(|stream| stream.open == Some(id)) else {
            return;
        };
        found.open = None;
        if found.has_turn() {
            // Not earlier, so that no other stream's frame comes between this frame and those before it.
            self.schedule.spend_turn(self.now, stream);
        }
    }

    /// Closes the oldest open frame, because memory is short. Returns whether any frame is dirty.
    pub(super) fn close_oldest(&mut self) -> bool {
        let open = self.frames.all_dirty().filter(|id| self.frames.get(*id).state == State::Coalescing);
        if let Some(id) = open.min_by_key(|id| self.frames.get(*id).serial) {
            self.close(id);
        }
        self.frames.dirty() > 0
    }

    pub(super) fn drain_late(&mut self) {
        let (now, coalesce) = (self.now, self.config.coalesce());
        if now < self.coalesced.drain_at {
            return;
        }
        let (mut late, mut next) = (Vec::new(), Instant::MAX);
        for id in self.frames.all_dirty().filter(|id| self.frames.get(*id).state == State::Coalescing) {
            let at = self.frames.get(id).touched + coalesce;
            if at <= now { late.push(id) } else { next = next.min(at) }
        }
        late.sort_unstable();
        late.into_iter().for_each(|id| self.close(id));
        self.coalesced.drain_at = next;
    }

    pub(super) fn start_ready(&mut self) -> bool {
        let Some(id) = self.coalesced.ready.pop_front() else { return false };
        self.frames.get_mut(id).state = State::Writing;
        self.start_for_frame(id);
        true
    }

    pub(super) fn frame_written(&mut self, id: u32, result: Result<(), BlockError>) {
        let frame = *self.frames.get(id);
        match result {
            Ok(()) => self.counters.written_bytes += frame.bytes,
            Err(error) => {
                self.coalesced.lose(error);
                self.counters.lost_bytes += frame.bytes;
            }
        }
        self.discard_frame(id);
        self.invalidate(frame.place, frame.bytes);
        while let Some((serial, request)) = self.coalesced.flushes.front().copied() {
            if self.frames.has_dirty_until(serial) {
                break;
            }
            self.coalesced.flushes.pop_front();
            self.send_direct(request);
        }
        // Requests that must still wait are held again.
        for request in std::mem::take(&mut self.coalesced.held) {
            self.route(request);
        }
    }

    /// Coalesces the writes that wait for a stream in its turn.
    pub(super) fn advance_writer(&mut self, id: u32) -> Step {
        let frontier = self.schedule[id].frontier;
        let Some((key, wait)) = self.waits.first_write_of(id, frontier, frontier.saturating_add(NEAR + 1))
        else {
            let step = self.pause(id);
            if step == Step::Over {
                self.release_far_writes(id);
            }
            return step;
        };
        if key.0 > frontier {
            return self.skip_gap(id, key);
        }
        let fits = self.schedule[id].frames < BEHIND || self.schedule[id].open.is_some();
        if !fits {
            return Step::Waits;
        }
        self.waits.remove(&mut self.schedule, true, key);
        // Others may have coalesced bytes there since.
        let Wait { request, bytes, .. } = wait;
        if self.coalesced.has_held(frontier, bytes) {
            self.coalesced.held.push(request);
            return Step::Began;
        }
        if self.is_overwritten(request, frontier, bytes) || self.is_held(request, frontier, bytes) {
            return Step::Began;
        }
        self.invalidate(frontier, bytes);
        if self.accept(id, request, frontier, bytes) {
            return Step::Began;
        }
        self.wait(id, request, frontier, bytes);
        Step::Waits
    }

    /// Handles a turn whose next write has not arrived.
    fn pause(&mut self, id: u32) -> Step {
        let end = self.schedule[id].client.last_request + GRACE;
        if end <= self.now {
            return Step::Over;
        }
        self.schedule.arms.set_grace(end);
        Step::Waits
    }

    /// Handles writes that wait after a gap: if the gap is not filled soon, the stream continues after it.
    fn skip_gap(&mut self, id: u32, key: WaitKey) -> Step {
        if self.pause(id) == Step::Waits {
            return Step::Waits;
        }
        if let Some(open) = self.schedule[id].open {
            self.close(open);
        }
        self.schedule[id].frontier = key.0;
        self.schedule.table.set_expected(id, key.0);
        self.advance_writer(id)
    }

    /// The first byte and the number of bytes of the zone of a byte; `None` for a disk without zones.
    fn zone_at(&self, place: u64) -> Option<(u64, u64)> {
        let bytes = self.zone_bytes?;
        Some((place / bytes * bytes, bytes))
    }

    /// Bytes from this one to the end of its zone.
    pub(super) fn zone_left(&self, place: u64) -> u64 {
        self.zone_at(place).map_or(u64::MAX, |(first, bytes)| first + bytes - place)
    }

    /// Whether a write must bypass the streams for the sake of its zone's order.
    pub(super) fn bypasses_for_zone(&self, offset: u64, bytes: u64) -> bool {
        let Some((first, length)) = self.zone_at(offset) else { return false };
        bytes > self.zone_left(offset) || self.direct.has_write_in(first, length)
    }

    /// Whether writes of the zone are held, so that a later one must be held, too.
    pub(super) fn is_zone_held(&self, offset: u64) -> bool {
        let zone = self.zone_at(offset);
        zone.is_some_and(|(first, bytes)| self.coalesced.has_held(first, bytes))
    }

    /// Queues a write that bypasses the streams, after all earlier writes of its zone: those that wait for a turn bypass the streams, too.
    pub(super) fn send_write_direct(&mut self, request: Request, offset: u64) {
        let Some((first, bytes)) = self.zone_at(offset) else { return self.send_direct(request) };
        while let Some((key, wait)) = self.waits.first_write_in(first, first + bytes) {
            self.waits.remove(&mut self.schedule, true, key);
            self.skip(wait.stream, key.0, wait.bytes);
            self.send_direct_after_writes(wait.request, first, bytes);
        }
        self.send_direct_after_writes(request, first, bytes);
    }

    /// Lets all waiting writes of a stream bypass it when none of them is near where the stream continues: the writes between bypassed it or
    /// are held. Otherwise the stream would have turns in which it could do nothing.
    fn release_far_writes(&mut self, id: u32) {
        while self.schedule[id].waiting > 0
            && let Some((key, wait)) = self.waits.first_write_of(id, 0, u64::MAX)
        {
            self.waits.remove(&mut self.schedule, true, key);
            self.skip(id, key.0, wait.bytes);
            match self.zone_at(key.0) {
                Some((first, bytes)) => self.send_direct_after_writes(wait.request, first, bytes),
                None => self.route_change(wait.request, key.0, wait.bytes),
            }
        }
    }
}
