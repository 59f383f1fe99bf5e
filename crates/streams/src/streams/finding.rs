//! Assigns requests to streams, and finds new streams.

use super::around::AroundRequests;
use super::classifier::{Classifier, Direction};
use super::config::{Config, RegionForm};
use super::frames::Frames;
use super::reorder::Reorder;
use super::stream::{NEAR, Stream, StreamKind, mirrored};
use super::strides::Strides;
use super::table::StreamTable;
use headstack_model::Instant;

/// Number of requests by which a stream with reordered requests may be out of order.
const REORDERED: u64 = 32;

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

/// How far ahead of the last answer a client's next request may be, for requests of this length: queue depths beyond 100 are rare, and the
/// searched region of the disk must be bounded whatever clients request.
fn reach(bytes: u64) -> u64 {
    (128 * bytes).clamp(NEAR, 64 << 20)
}

/// A run of the disk that a client requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientRun {
    pub(super) client: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// The classifier that the configuration selects.
#[derive(Debug)]
enum StreamDetector {
    Fixed(Box<Classifier>),
    Around(AroundRequests),
}

impl StreamDetector {
    fn new(config: &Config) -> StreamDetector {
        match config.classifier.form {
            RegionForm::Fixed => {
                let classifier = Classifier::new(&config.classifier, config.is_as_published());
                StreamDetector::Fixed(Box::new(classifier))
            }
            RegionForm::Around => StreamDetector::Around(AroundRequests::new(&config.classifier)),
        }
    }

    fn observe(&mut self, now: Instant, run: ClientRun) -> Option<Direction> {
        let ClientRun { client, offset, bytes } = run;
        match self {
            StreamDetector::Fixed(classifier) => classifier.observe(now, client, offset, bytes),
            StreamDetector::Around(regions) => regions.observe(now, offset, bytes),
        }
    }
}

/// Decides which stream a request belongs to.
#[derive(Debug)]
pub(super) struct StreamFinder {
    readers: StreamDetector,
    writers: StreamDetector,
    strides: Strides,
    reorder: Reorder,
    is_as_published: bool,
    read_bytes: u64,
    /// Bytes by which requests of a stream may be out of order, at most.
    most_slack: u64,
}

impl StreamFinder {
    pub(super) fn new(config: &Config, frames: &Frames) -> StreamFinder {
        let is_as_published = config.is_as_published();
        StreamFinder {
            readers: StreamDetector::new(config),
            writers: StreamDetector::new(config),
            strides: Strides::new(),
            reorder: Reorder::new(),
            is_as_published,
            read_bytes: config.read_bytes(frames.frame_bytes()),
            most_slack: frames.memory_bytes() / 4,
        }
    }

    /// The reader that a request belongs to, which may be a new one.
    pub(super) fn reader(
        &mut self,
        now: Instant,
        table: &mut StreamTable,
        frames: &Frames,
        run: ClientRun,
    ) -> Option<u32> {
        self.continued_reader(table, frames, run).or_else(|| self.new_reader(now, table, frames, run))
    }

    /// The writer that a write belongs to, which may be a new one.
    pub(super) fn writer(&mut self, now: Instant, table: &mut StreamTable, run: ClientRun) -> Option<u32> {
        let ClientRun { client, offset, .. } = run;
        let near = || table.expected_in(StreamKind::Write, offset.saturating_sub(NEAR), offset).next_back();
        let continued = stream_with_tail(table, StreamKind::Write, run).or_else(|| near().map(|(_, id)| id));
        continued.or_else(|| {
            let direction = self.writers.observe(now, run)?;
            (direction == Direction::Forward).then_some(())?;
            table.insert(Stream::new(now, StreamKind::Write, client, offset))
        })
    }

    fn continued_reader(&self, table: &mut StreamTable, frames: &Frames, run: ClientRun) -> Option<u32> {
        let ClientRun { client, offset, bytes } = run;
        if let Some(frame) = frames.readable_at(offset) {
            let stream = frames.get(frame).stream;
            if table.contains(stream) && may_join(table, frames, stream, run) {
                return Some(stream);
            }
        }
        let with_tail = |direction| stream_with_tail(table, StreamKind::Read(direction), run);
        if let Some(id) = DIRECTIONS.into_iter().find_map(with_tail) {
            return may_join(table, frames, id, run).then_some(id);
        }
        if let Some(id) = self.strided_stream(table, client)
            && may_join(table, frames, id, run)
        {
            return Some(id);
        }
        let mut best = None;
        for direction in DIRECTIONS {
            let at = mirrored(direction, table.disk_bytes(), offset, bytes);
            let kind = StreamKind::Read(direction);
            for (expected, id) in table.expected_in(kind, at.saturating_sub(NEAR), at + NEAR) {
                let distance = expected.abs_diff(at);
                if best.is_none_or(|(least, _)| distance < least) {
                    best = Some((distance, id));
                }
            }
        }
        match best {
            Some((_, id)) => may_join(table, frames, id, run).then_some(id),
            None => reader_ahead_of(table, frames, run),
        }
    }

    /// The client's stream with gaps, if it has one: its next request may be far from the last one that was answered.
    fn strided_stream(&self, table: &StreamTable, client: u64) -> Option<u32> {
        let id = self.strides.stream_of(client);
        let stream = table.get(id)?;
        (stream.stride.is_some() && stream.client.id == client).then_some(id)
    }

    /// Records a read that continues no stream. Returns the new stream that it reveals, if any.
    fn new_reader(
        &mut self,
        now: Instant,
        table: &mut StreamTable,
        frames: &Frames,
        run: ClientRun,
    ) -> Option<u32> {
        let ClientRun { client, offset, bytes } = run;
        let Some(direction) = self.readers.observe(now, run) else {
            let found = self.new_strider(now, table, run);
            return found.or_else(|| self.new_reordered(now, table, run));
        };
        if let Some(id) = self.own_stream_near(table, run) {
            self.widen(&mut table[id], bytes);
            return may_join(table, frames, id, run).then_some(id);
        }
        let at = mirrored(direction, table.disk_bytes(), offset, bytes);
        let kind = StreamKind::Read(direction);
        let neighbour = table.expected_in(kind, at.saturating_sub(NEAR), at + NEAR).next();
        if let Some((_, neighbour)) = neighbour {
            // Near another stream: there is a second one only if this read has a successor.
            if std::mem::replace(&mut table[neighbour].stray, at + bytes) != at {
                return None;
            }
        }
        table.insert(Stream::new(now, kind, client, at))
    }

    /// Records a read far from all streams. Returns the strided stream that it reveals, if any.
    fn new_strider(&mut self, now: Instant, table: &mut StreamTable, run: ClientRun) -> Option<u32> {
        let ClientRun { client, offset, bytes } = run;
        let (direction, stride) = self.strides.observe(client, offset, bytes)?;
        if bytes > self.read_bytes {
            return None;
        }
        let at = mirrored(direction, table.disk_bytes(), offset, bytes);
        let stream = Stream::new(now, StreamKind::Read(direction), client, at);
        let id = table.insert(Stream { stride: Some((stride, bytes)), ..stream })?;
        self.strides.found(client, id);
        Some(id)
    }

    /// A forward reader of the client near this run. Without it, the same stream would be found again because its requests are out of order.
    fn own_stream_near(&self, table: &StreamTable, run: ClientRun) -> Option<u32> {
        if self.is_as_published {
            return None;
        }
        let window = (2 * REORDERED * run.bytes).clamp(NEAR, 64 << 20);
        let (from, to) = (run.offset.saturating_sub(window), run.offset + window);
        let is_own = |id: u32| table[id].client.id == run.client && table[id].stride.is_none();
        let mut around = table.expected_in(StreamKind::Read(Direction::Forward), from, to).map(|(_, id)| id);
        around.find(|id| is_own(*id))
    }

    fn widen(&self, stream: &mut Stream, bytes: u64) {
        stream.slack = stream.slack.max((REORDERED * bytes).min(self.most_slack));
    }

    /// Records a read that continues no stream, and finds streams whose requests are out of order.
    fn new_reordered(&mut self, now: Instant, table: &mut StreamTable, run: ClientRun) -> Option<u32> {
        if self.is_as_published {
            return None;
        }
        let end = self.reorder.observe(run.client, run.offset, run.bytes)?;
        let kind = StreamKind::Read(Direction::Forward);
        let own = self.own_stream_near(table, run);
        let id = own.or_else(|| table.insert(Stream::new(now, kind, run.client, end)))?;
        self.widen(&mut table[id], run.bytes);
        // This read is of bytes that the stream has skipped.
        None
    }
}

/// The stream whose last request, or whose read-ahead, ended where this one begins.
fn stream_with_tail(table: &StreamTable, kind: StreamKind, run: ClientRun) -> Option<u32> {
    let direction = if let StreamKind::Read(direction) = kind { direction } else { Direction::Forward };
    let at = mirrored(direction, table.disk_bytes(), run.offset, run.bytes);
    let mut near = table.expected_in(kind, at.saturating_sub(reach(run.bytes)), at).rev();
    near.find(|(_, id)| table[*id].tail() == at).map(|(_, id)| id)
}

/// A reader of the client whose waiting requests end shortly before this one.
fn reader_ahead_of(table: &mut StreamTable, frames: &Frames, run: ClientRun) -> Option<u32> {
    DIRECTIONS.into_iter().find_map(|direction| {
        let at = mirrored(direction, table.disk_bytes(), run.offset, run.bytes);
        let from = at.saturating_sub(reach(run.bytes));
        let (_, id) = table.expected_in(StreamKind::Read(direction), from, at).next_back()?;
        may_join(table, frames, id, run).then_some(id)
    })
}

/// Whether a request can wait in a stream: the bytes that it lacks are still to be read ahead.
fn may_join(table: &mut StreamTable, frames: &Frames, id: u32, run: ClientRun) -> bool {
    let ClientRun { client, offset, bytes } = run;
    let at = table.mirror(id, offset, bytes);
    let stream = &table[id];
    let (frontier, expected, stream_client) = (stream.frontier, stream.expected, stream.client.id);
    let slack = stream.stride.map_or(stream.slack, |(stride, _)| stride);
    if stream.stride.is_some_and(|(stride, record)| at.abs_diff(expected) % stride != 0 || bytes > record) {
        return false;
    }
    // Bytes before the frontier must be in frames.
    let passed = (at + bytes).min(frontier).saturating_sub(at);
    if passed > 0 && !frames.covers(table.mirror(id, at, passed), passed) {
        let is_discarded = at == expected && stream.waiting == 0 && stream.stride.is_none();
        if is_discarded {
            table[id].frontier = at;
        }
        return is_discarded;
    }
    // Only the client that the stream already has may leave a gap: others are near it by chance.
    let tail = stream.tail();
    at <= tail || at <= tail + slack && client == stream_client
}
