//! To which stream a read belongs, and when there is a new one.

use super::classifier::Direction;
use super::stream::{NOBODY, Stream, Way, turned};
use super::{NEAR, Streams};
use headstack_model::Nanos;

/// Into which set of expected places a way belongs.
pub(super) fn set_of(way: Way) -> usize {
    match way {
        Way::Read(Direction::Forward) => 0,
        Way::Read(Direction::Backward) => 1,
        Way::Write => 2,
    }
}

impl Streams {
    /// The reader that a request goes on with.
    pub(super) fn reader_for(&mut self, client: u64, offset: u64, bytes: u64) -> Option<u32> {
        if let Some(frame) = self.frames.readable_at(offset) {
            let stream = self.frames.get(frame).stream;
            if self.streams.contains(stream as usize) && self.may_join(stream, client, offset, bytes) {
                return Some(stream);
            }
        }
        let mut best = None;
        for direction in [Direction::Forward, Direction::Backward] {
            let at = turned(direction, self.disk_bytes, offset, bytes);
            let near = (at.saturating_sub(NEAR), 0)..=(at + NEAR, NOBODY);
            for (expected, id) in self.expected[set_of(Way::Read(direction))].range(near) {
                let distance = expected.abs_diff(at);
                if best.is_none_or(|(least, _)| distance < least) {
                    best = Some((distance, *id));
                }
            }
        }
        let (_, id) = best?;
        self.may_join(id, client, offset, bytes).then_some(id)
    }

    /// Whether a request can wait in a stream: what is missing of it is still to be read ahead.
    fn may_join(&mut self, id: u32, client: u64, offset: u64, bytes: u64) -> bool {
        let disk_bytes = self.disk_bytes;
        let stream = &self.streams[id as usize];
        let direction = stream.direction();
        let (frontier, expected, stream_client) = (stream.frontier, stream.expected, stream.client);
        let at = turned(direction, disk_bytes, offset, bytes);
        if stream.stride.is_some_and(|(stride, record)| at.abs_diff(expected) % stride != 0 || bytes > record)
        {
            return false;
        }
        // Bytes before the frontier must be in frames.
        let known = (at + bytes).min(frontier).saturating_sub(at);
        if known > 0 && !self.is_covered(turned(direction, disk_bytes, at, known), known) {
            let stream = &mut self.streams[id as usize];
            if at == expected && stream.waiting == 0 && stream.stride.is_none() {
                // What was read ahead there had to be given up.
                stream.frontier = at;
                return true;
            }
            return false;
        }
        // Over a gap goes who has gone on with the stream before: others are beside it by chance.
        at <= frontier || at <= frontier + NEAR && client == stream_client
    }

    fn is_covered(&self, place: u64, bytes: u64) -> bool {
        let (mut at, end) = (place, place + bytes);
        while at < end {
            let Some(id) = self.frames.readable_at(at) else { return false };
            at = self.frames.get(id).end();
        }
        true
    }

    /// Takes note of a read that no stream goes on with; the stream that it is found to be of.
    pub(super) fn new_reader(&mut self, client: u64, offset: u64, bytes: u64) -> Option<u32> {
        let Some(direction) = self.readers.observe(self.now, offset, bytes) else {
            return self.new_strider(client, offset, bytes);
        };
        let at = turned(direction, self.disk_bytes, offset, bytes);
        let near = (at.saturating_sub(NEAR), 0)..=(at + NEAR, NOBODY);
        let beside = self.expected[set_of(Way::Read(direction))].range(near).map(|(_, id)| *id).next();
        if let Some(beside) = beside {
            // Behind a stream, or away from it: another is there when it goes on by itself.
            let stream = &mut self.streams[beside as usize];
            if std::mem::replace(&mut stream.stray, at + bytes) != at {
                return None;
            }
        }
        self.new_stream(Stream::new(self.now, Way::Read(direction), client, at))
    }

    /// Takes note of a read far from all streams; the stream with gaps that it is found to be of.
    fn new_strider(&mut self, client: u64, offset: u64, bytes: u64) -> Option<u32> {
        let (direction, stride) = self.strides.observe(client, offset, bytes)?;
        if bytes > self.read_bytes() {
            return None;
        }
        self.strides.forget(client);
        let at = turned(direction, self.disk_bytes, offset, bytes);
        let stream = Stream::new(self.now, Way::Read(direction), client, at);
        self.new_stream(Stream { stride: Some((stride, bytes)), ..stream })
    }

    /// Expects a stream's next request there.
    pub(super) fn expect_at(&mut self, id: u32, at: u64) {
        let stream = &mut self.streams[id as usize];
        let before = std::mem::replace(&mut stream.expected, at);
        let set = &mut self.expected[set_of(stream.way)];
        set.remove(&(before, id));
        set.insert((at, id));
    }

    pub(super) fn new_stream(&mut self, stream: Stream) -> Option<u32> {
        if self.streams.len() >= self.config.classifier.regions as usize {
            return None;
        }
        let (way, at) = (stream.way, stream.expected);
        let id = self.streams.insert(stream) as u32;
        self.expected[set_of(way)].insert((at, id));
        self.books.found += 1;
        self.sweep_at = self.sweep_at.min(self.now + Nanos(self.config.idle().0 / 2));
        Some(id)
    }
}
