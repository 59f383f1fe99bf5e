//! A snapshot of the scheduler, for monitoring.

use super::Streams;
use super::classifier::Direction;
use super::frames::State;
use super::stream::{Stream, StreamKind, mirrored};
use headstack_model::Nanos;

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Books {
    pub(super) requests: u64,
    pub(super) direct: u64,
    pub(super) hits: u64,
    pub(super) found: u64,
    pub(super) turns: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    pub(super) unfetched_bytes: u64,
    pub(super) lost_bytes: u64,
}

/// A snapshot of the scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Streams that there are, and how many were found since the beginning.
    pub streams: usize,
    /// Streams found since the beginning.
    pub found: u64,
    /// Streams that have a turn.
    pub dispatched: usize,
    /// Streams whose clients wait for a turn.
    pub waiting_streams: usize,
    /// Requests that wait for a stream's turn.
    pub waiting_requests: usize,
    /// Connected clients that have sent a request.
    pub clients: usize,
    /// M, and how much of it is in use, was at most, is read ahead, and is gathered.
    pub memory_bytes: u64,
    /// Bytes of frames in use.
    pub used_bytes: u64,
    /// The most that were in use at a time.
    pub high_water_bytes: u64,
    /// Bytes that were read ahead and wait for clients.
    pub staged_bytes: u64,
    /// Bytes that were written and are not on the disk yet.
    pub coalesced_bytes: u64,
    /// Commands in flight.
    pub in_flight: usize,
    /// Requests since the beginning.
    pub requests: u64,
    /// Those that went to the disk by themselves.
    pub direct: u64,
    /// Reads that were answered at once.
    pub hits: u64,
    /// Turns.
    pub turns: u64,
    /// Bytes that clients got.
    pub read_bytes: u64,
    /// Bytes that were written to the disk.
    pub written_bytes: u64,
    /// Bytes that were read ahead in vain.
    pub unfetched_bytes: u64,
    /// Bytes of gathered writes that the disk did not take.
    pub lost_bytes: u64,
    /// Bytes a second within a stream, as measured.
    pub bandwidth: f64,
    /// Positioning time to a stream, as measured.
    pub positioning: Nanos,
    /// R, N and D as they are now.
    pub read_ahead_bytes: u64,
    /// Requests a turn.
    pub requests_per_turn: u32,
    /// Streams that may have a turn at a time.
    pub dispatch_set: u32,
    /// Whether requests of streams bypass the scheduler, because turns would gain too little.
    pub bypass: bool,
}

/// A snapshot of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamView {
    /// Its number, which another stream may get after it has ended.
    pub id: u32,
    /// The client of its last request.
    pub client: u64,
    /// Whether it writes.
    pub writes: bool,
    /// Its direction.
    pub direction: Direction,
    /// Where the next request is expected.
    pub offset: u64,
    /// Bytes so far.
    pub bytes: u64,
    /// Requests so far.
    pub requests: u64,
    /// Reads that were answered at once.
    pub hits: u64,
    /// Requests that wait.
    pub waiting: u32,
    /// Bytes of frames that it has.
    pub memory_bytes: u64,
    /// Whether it has a turn.
    pub has_turn: bool,
    /// When it was found.
    pub since: Nanos,
    /// When its last request arrived.
    pub last_request: Nanos,
}

impl Streams {
    /// What it is doing.
    pub fn view(&self) -> View {
        let (mut staged, mut coalesced) = (0, 0);
        for (_, frame) in self.frames.iter() {
            match frame.state {
                State::Staged => staged += frame.bytes,
                State::Coalescing | State::Ready | State::Writing => coalesced += frame.bytes,
                State::Reading => {}
            }
        }
        let (books, frame_bytes) = (self.books, self.frames.frame_bytes());
        View {
            streams: self.streams.len(),
            found: books.found,
            dispatched: self.dispatch.len(),
            waiting_streams: self.dispatch.blocked(),
            waiting_requests: self.reads.len() + self.writes.len(),
            clients: self.coalesced.clients(),
            memory_bytes: self.memory_bytes(),
            used_bytes: self.frames.used() as u64 * frame_bytes,
            high_water_bytes: self.frames.high_water() as u64 * frame_bytes,
            staged_bytes: staged,
            coalesced_bytes: coalesced,
            in_flight: self.in_flight.len(),
            requests: books.requests,
            direct: books.direct,
            hits: books.hits,
            turns: books.turns,
            read_bytes: books.read_bytes,
            written_bytes: books.written_bytes,
            unfetched_bytes: books.unfetched_bytes,
            lost_bytes: books.lost_bytes,
            bandwidth: self.tuning.bandwidth(),
            positioning: self.tuning.positioning(),
            read_ahead_bytes: self.read_bytes(),
            requests_per_turn: self.turn_requests(),
            dispatch_set: self.config.dispatch_set.unwrap_or(1),
            bypass: self.bypass.is_on(),
        }
    }

    /// Its streams.
    pub fn stream_views(&self) -> impl Iterator<Item = StreamView> + '_ {
        self.streams.iter().map(|(id, stream)| self.view_of(id as u32, stream))
    }

    fn view_of(&self, id: u32, stream: &Stream) -> StreamView {
        let direction = stream.direction();
        StreamView {
            id,
            client: stream.client,
            writes: stream.kind == StreamKind::Write,
            direction,
            offset: mirrored(direction, self.disk_bytes, stream.expected, 0),
            bytes: stream.bytes,
            requests: stream.requests,
            hits: stream.hits,
            waiting: stream.waiting,
            memory_bytes: u64::from(stream.frames) * self.frames.frame_bytes(),
            has_turn: stream.turn.is_some(),
            since: stream.since,
            last_request: stream.last_request,
        }
    }
}
