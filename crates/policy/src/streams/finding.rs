//! Assigns reads to streams, and finds new streams.

use super::classifier::Direction;
use super::stream::{NO_STREAM, Stream, StreamKind, mirrored};
use super::{NEAR, Streams};
use headstack_model::Nanos;

/// The index of the set of expected offsets for a kind of stream.
pub(super) fn set_of(kind: StreamKind) -> usize {
    match kind {
        StreamKind::Read(Direction::Forward) => 0,
        StreamKind::Read(Direction::Backward) => 1,
        StreamKind::Write => 2,
    }
}

/// Requests by which a stream with reordered requests may be out of order.
const REORDERED: u64 = 32;

/// How far ahead of the last answer a client's next request may be, by the length of its requests: depths beyond 100 are rare, and the
/// searched region of the disk must be bounded whatever clients request.
fn reach(bytes: u64) -> u64 {
    (128 * bytes).clamp(NEAR, 64 << 20)
}

impl Streams {
    /// The reader that a request continues.
    pub(super) fn reader_for(&mut self, client: u64, offset: u64, bytes: u64) -> Option<u32> {
        if let Some(frame) = self.frames.readable_at(offset) {
            let stream = self.frames.get(frame).stream;
            if self.streams.contains(stream as usize) && self.may_join(stream, client, offset, bytes) {
                return Some(stream);
            }
        }
        let directions = [Direction::Forward, Direction::Backward];
        if let Some(id) = directions
            .into_iter()
            .find_map(|direction| self.stream_with_tail(StreamKind::Read(direction), offset, bytes))
        {
            return self.may_join(id, client, offset, bytes).then_some(id);
        }
        if let Some(id) = self.strider_of(client)
            && self.may_join(id, client, offset, bytes)
        {
            return Some(id);
        }
        let mut best = None;
        for direction in [Direction::Forward, Direction::Backward] {
            let at = mirrored(direction, self.disk_bytes, offset, bytes);
            let near = (at.saturating_sub(NEAR), 0)..=(at + NEAR, NO_STREAM);
            for (expected, id) in self.expected[set_of(StreamKind::Read(direction))].range(near) {
                let distance = expected.abs_diff(at);
                if best.is_none_or(|(least, _)| distance < least) {
                    best = Some((distance, *id));
                }
            }
        }
        match best {
            Some((_, id)) => self.may_join(id, client, offset, bytes).then_some(id),
            None => self.reader_ahead_of(client, offset, bytes),
        }
    }

    /// The stream whose last request ended where this one begins, or whose read-ahead did.
    pub(super) fn stream_with_tail(&self, kind: StreamKind, offset: u64, bytes: u64) -> Option<u32> {
        let direction = if let StreamKind::Read(direction) = kind { direction } else { Direction::Forward };
        let at = mirrored(direction, self.disk_bytes, offset, bytes);
        let behind = (at.saturating_sub(reach(bytes)), 0)..=(at, NO_STREAM);
        let mut near = self.expected[set_of(kind)].range(behind).rev();
        near.find(|(_, id)| self.streams[*id as usize].tail() == at).map(|(_, id)| *id)
    }

    /// The client's stream with gaps, if it has one: its next request may be far from the last that was answered.
    fn strider_of(&self, client: u64) -> Option<u32> {
        let id = self.strides.stream_of(client);
        let stream = self.streams.get(id as usize)?;
        (stream.stride.is_some() && stream.client == client).then_some(id)
    }

    /// A reader of the client's that has requests waiting up to shortly before this one.
    fn reader_ahead_of(&mut self, client: u64, offset: u64, bytes: u64) -> Option<u32> {
        for direction in [Direction::Forward, Direction::Backward] {
            let at = mirrored(direction, self.disk_bytes, offset, bytes);
            let behind = (at.saturating_sub(reach(bytes)), 0)..=(at, NO_STREAM);
            let near = self.expected[set_of(StreamKind::Read(direction))].range(behind).next_back().copied();
            if let Some((_, id)) = near
                && self.may_join(id, client, offset, bytes)
            {
                return Some(id);
            }
        }
        None
    }

    /// Whether a request can wait in a stream: what is missing of it is still to be read ahead.
    fn may_join(&mut self, id: u32, client: u64, offset: u64, bytes: u64) -> bool {
        let disk_bytes = self.disk_bytes;
        let stream = &self.streams[id as usize];
        let direction = stream.direction();
        let (frontier, expected, stream_client) = (stream.frontier, stream.expected, stream.client);
        let slack = stream.stride.map_or(stream.slack, |(stride, _)| stride);
        let at = mirrored(direction, disk_bytes, offset, bytes);
        if stream.stride.is_some_and(|(stride, record)| at.abs_diff(expected) % stride != 0 || bytes > record)
        {
            return false;
        }
        // Bytes before the frontier must be in frames.
        let known = (at + bytes).min(frontier).saturating_sub(at);
        if known > 0 && !self.is_covered(mirrored(direction, disk_bytes, at, known), known) {
            let stream = &mut self.streams[id as usize];
            if at == expected && stream.waiting == 0 && stream.stride.is_none() {
                // The read-ahead there was discarded.
                stream.frontier = at;
                return true;
            }
            return false;
        }
        // Only the client that the stream already has may leave a gap: others are near it by chance.
        let tail = self.streams[id as usize].tail();
        at <= tail || at <= tail + slack && client == stream_client
    }

    pub(super) fn is_covered(&self, place: u64, bytes: u64) -> bool {
        let (mut at, end) = (place, place + bytes);
        while at < end {
            let Some(id) = self.frames.readable_at(at) else { return false };
            at = self.frames.get(id).end();
        }
        true
    }

    /// Notes a read that continues no stream. Returns the new stream that is found by it.
    pub(super) fn new_reader(&mut self, client: u64, offset: u64, bytes: u64) -> Option<u32> {
        let Some(direction) = self.readers.observe(self.now, client, offset, bytes) else {
            return self
                .new_strider(client, offset, bytes)
                .or_else(|| self.new_reordered(client, offset, bytes));
        };
        if let Some(id) = self.own_stream_near(client, offset, bytes) {
            self.widen(id, bytes);
            return self.may_join(id, client, offset, bytes).then_some(id);
        }
        let at = mirrored(direction, self.disk_bytes, offset, bytes);
        let near = (at.saturating_sub(NEAR), 0)..=(at + NEAR, NO_STREAM);
        let neighbour =
            self.expected[set_of(StreamKind::Read(direction))].range(near).map(|(_, id)| *id).next();
        if let Some(neighbour) = neighbour {
            // Near another stream: there is a second one only if this read has a successor.
            let stream = &mut self.streams[neighbour as usize];
            if std::mem::replace(&mut stream.stray, at + bytes) != at {
                return None;
            }
        }
        self.new_stream(Stream::new(self.now, StreamKind::Read(direction), client, at))
    }

    /// Notes a read far from all streams. Returns the strided stream that is found by it.
    fn new_strider(&mut self, client: u64, offset: u64, bytes: u64) -> Option<u32> {
        let (direction, stride) = self.strides.observe(client, offset, bytes)?;
        if bytes > self.read_bytes() {
            return None;
        }
        let at = mirrored(direction, self.disk_bytes, offset, bytes);
        let stream = Stream::new(self.now, StreamKind::Read(direction), client, at);
        let id = self.new_stream(Stream { stride: Some((stride, bytes)), ..stream })?;
        self.strides.found(client, id);
        Some(id)
    }

    /// The client's forward reader near there, which would be found again because its requests are out of order.
    fn own_stream_near(&self, client: u64, offset: u64, bytes: u64) -> Option<u32> {
        if self.config.is_as_published() {
            return None;
        }
        let window = (2 * REORDERED * bytes).clamp(NEAR, 64 << 20);
        let around = (offset.saturating_sub(window), 0)..=(offset + window, NO_STREAM);
        let mut around = self.expected[set_of(StreamKind::Read(Direction::Forward))].range(around);
        let is_own = |id: u32| {
            let stream = &self.streams[id as usize];
            stream.client == client && stream.stride.is_none()
        };
        around.find(|(_, id)| is_own(*id)).map(|(_, id)| *id)
    }

    /// Lets requests of a stream be out of order.
    fn widen(&mut self, id: u32, bytes: u64) {
        let most = self.memory_bytes() / 4;
        let stream = &mut self.streams[id as usize];
        stream.slack = stream.slack.max((REORDERED * bytes).min(most));
    }

    /// Notes a read that continues no stream. Finds streams whose requests are out of order.
    fn new_reordered(&mut self, client: u64, offset: u64, bytes: u64) -> Option<u32> {
        if self.config.is_as_published() {
            return None;
        }
        let end = self.reorder.observe(client, offset, bytes)?;
        let known = self.own_stream_near(client, offset, bytes);
        let id = known.or_else(|| {
            self.new_stream(Stream::new(self.now, StreamKind::Read(Direction::Forward), client, end))
        })?;
        self.widen(id, bytes);
        // This read is of bytes that the stream has skipped.
        None
    }

    /// Sets where a stream's next request is expected.
    pub(super) fn set_expected(&mut self, id: u32, at: u64) {
        let stream = &mut self.streams[id as usize];
        let before = std::mem::replace(&mut stream.expected, at);
        let set = &mut self.expected[set_of(stream.kind)];
        set.remove(&(before, id));
        set.insert((at, id));
    }

    pub(super) fn new_stream(&mut self, stream: Stream) -> Option<u32> {
        if self.streams.len() >= self.config.classifier.regions as usize {
            return None;
        }
        let (kind, at) = (stream.kind, stream.expected);
        let id = self.streams.insert(stream) as u32;
        self.expected[set_of(kind)].insert((at, id));
        self.books.found += 1;
        self.sweep_at = self.sweep_at.min(self.now + Nanos(self.config.idle().0 / 2));
        Some(id)
    }
}
