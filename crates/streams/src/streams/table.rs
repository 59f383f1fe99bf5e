//! The streams, and where the next request of each is expected.

use super::classifier::Direction;
use super::config::Config;
use super::stream::{NO_STREAM, Stream, StreamKind, mirrored};
use headstack_model::{Instant, Nanos};
use slab::Slab;
use std::collections::BTreeSet;
use std::ops::{Index, IndexMut};

/// All streams. A number of a stream that has ended may be that of another one later.
#[derive(Debug)]
pub(super) struct StreamTable {
    streams: Slab<Stream>,
    /// Forward readers, backward readers and writers, by where they are expected.
    expected: [BTreeSet<(u64, u32)>; 3],
    disk_bytes: u64,
    most_streams: usize,
    sweep_interval: Nanos,
    sweep_at: Instant,
    /// Streams found since the start.
    pub(super) found: u64,
}

/// The index of the set of expected offsets for a kind of stream.
fn set_of(kind: StreamKind) -> usize {
    match kind {
        StreamKind::Read(Direction::Forward) => 0,
        StreamKind::Read(Direction::Backward) => 1,
        StreamKind::Write => 2,
    }
}

impl StreamTable {
    pub(super) fn new(config: &Config, disk_bytes: u64) -> StreamTable {
        StreamTable {
            streams: Slab::new(),
            expected: Default::default(),
            disk_bytes,
            most_streams: config.classifier.regions as usize,
            sweep_interval: Nanos(config.idle().0 / 2),
            sweep_at: Instant::MAX,
            found: 0,
        }
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    pub(super) fn len(&self) -> usize {
        self.streams.len()
    }

    /// Numbers of streams are below this.
    pub(super) fn capacity(&self) -> usize {
        self.streams.capacity()
    }

    pub(super) fn sweep_at(&self) -> Instant {
        self.sweep_at
    }

    /// Schedules the next search for idle streams and frames, if there is anything that may become idle.
    pub(super) fn schedule_sweep(&mut self, now: Instant, is_memory_used: bool) {
        let is_needed = is_memory_used || !self.streams.is_empty();
        self.sweep_at = if is_needed { now + self.sweep_interval } else { Instant::MAX };
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.streams.contains(id as usize)
    }

    pub(super) fn get(&self, id: u32) -> Option<&Stream> {
        self.streams.get(id as usize)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        self.streams.get_mut(id as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Stream)> {
        self.streams.iter().map(|(id, stream)| (id as u32, stream))
    }

    /// Adds a stream that was found, unless there are as many as are watched at a time.
    pub(super) fn insert(&mut self, stream: Stream) -> Option<u32> {
        if self.len() >= self.most_streams {
            return None;
        }
        let (kind, expected) = (stream.kind, stream.expected);
        self.sweep_at = self.sweep_at.min(stream.totals.since + self.sweep_interval);
        let id = self.streams.insert(stream) as u32;
        self.expected[set_of(kind)].insert((expected, id));
        self.found += 1;
        Some(id)
    }

    pub(super) fn remove(&mut self, id: u32) -> Stream {
        let stream = self.streams.remove(id as usize);
        self.expected[set_of(stream.kind)].remove(&(stream.expected, id));
        stream
    }

    pub(super) fn set_expected(&mut self, id: u32, at: u64) {
        let stream = &mut self.streams[id as usize];
        let before = std::mem::replace(&mut stream.expected, at);
        let set = &mut self.expected[set_of(stream.kind)];
        set.remove(&(before, id));
        set.insert((at, id));
    }

    /// Streams of a kind, with where they are expected, from one offset to another in the kind's direction.
    pub(super) fn expected_in(
        &self,
        kind: StreamKind,
        from: u64,
        to: u64,
    ) -> impl DoubleEndedIterator<Item = (u64, u32)> {
        self.expected[set_of(kind)].range((from, 0)..=(to, NO_STREAM)).copied()
    }

    /// Converts the first byte of a run between the disk's offsets and those in a stream's direction.
    pub(super) fn mirror(&self, id: u32, at: u64, bytes: u64) -> u64 {
        mirrored(self[id].direction(), self.disk_bytes, at, bytes)
    }

    pub(super) fn has_passed(&self, id: u32, place: u64, bytes: u64) -> bool {
        let stream = &self[id];
        self.mirror(id, place, bytes) + bytes <= stream.passed_up_to(stream.expected)
    }
}

impl Index<u32> for StreamTable {
    type Output = Stream;

    fn index(&self, id: u32) -> &Stream {
        &self.streams[id as usize]
    }
}

impl IndexMut<u32> for StreamTable {
    fn index_mut(&mut self, id: u32) -> &mut Stream {
        &mut self.streams[id as usize]
    }
}
