//! A snapshot of the scheduler, for monitoring.

use super::Streams;
use super::classifier::Direction;
use super::stream::{Stream, StreamKind, mirrored};
use headstack_model::{Instant, Nanos};

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Counters {
    pub found: u64,
    pub requests: u64,
    /// Requests that bypassed the streams.
    pub direct: u64,
    /// Reads that were answered at once.
    pub hits: u64,
    pub turns: u64,
    /// Bytes that clients got.
    pub read_bytes: u64,
    /// Bytes that were written to the disk.
    pub written_bytes: u64,
    /// Bytes that were read ahead but never fetched.
    pub unfetched_bytes: u64,
    /// Bytes of coalesced writes that the disk failed to write.
    pub lost_bytes: u64,
}

/// Use of the stream memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryView {
    /// M.
    pub bytes: u64,
    /// Bytes of frames in use.
    pub used_bytes: u64,
    /// The most that were in use at a time.
    pub high_water_bytes: u64,
    /// Bytes that were read ahead and wait for clients.
    pub staged_bytes: u64,
    /// Bytes that were written and are not on the disk yet.
    pub coalesced_bytes: u64,
}

/// Measurements, and the parameters of turns as they are now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuningView {
    /// Bytes a second within a stream, as measured: of a disk with several arms, at the one that transferred most.
    pub bandwidth: f64,
    /// Positioning time to a stream, as measured.
    pub positioning: Nanos,
    /// R.
    pub read_ahead_bytes: u64,
    /// N.
    pub requests_per_turn: u32,
    /// D of each arm.
    pub dispatch_set: u32,
}

/// A snapshot of the scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Number of streams.
    pub streams: usize,
    /// Streams that have a turn.
    pub dispatched: usize,
    /// Streams whose clients wait for a turn.
    pub waiting_streams: usize,
    /// Requests that wait for a stream's turn.
    pub waiting_requests: usize,
    /// Connected clients that have sent a request.
    pub clients: usize,
    /// Commands in flight.
    pub in_flight: usize,
    /// Use of the stream memory.
    pub memory: MemoryView,
    /// Counts since the start.
    pub counters: Counters,
    /// Measurements, and R, N and D.
    pub tuning: TuningView,
    /// Whether requests of streams bypass the scheduler, because turns would gain too little.
    pub bypass: bool,
}

/// A snapshot of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct StreamView {
    /// Its number, which another stream may get after it has ended.
    pub id: u32,
    /// The client of its last request.
    pub client: u64,
    pub writes: bool,
    pub direction: Direction,
    /// Where the next request is expected.
    pub offset: u64,
    pub bytes: u64,
    pub requests: u64,
    /// Reads that were answered at once.
    pub hits: u64,
    pub waiting: u32,
    /// Bytes of frames that it has.
    pub memory_bytes: u64,
    pub has_turn: bool,
    /// When it was found.
    pub since: Instant,
    pub last_request: Instant,
}

impl View {
    pub(super) fn new(streams: &Streams) -> View {
        let Streams { frames, schedule, waits, counters, .. } = streams;
        let arm = schedule.arms.most_measured();
        let tuning = &schedule.arms[arm].tuning;
        View {
            streams: schedule.table.len(),
            dispatched: schedule.arms.dispatched(),
            waiting_streams: schedule.arms.blocked(),
            waiting_requests: waits.len(),
            clients: streams.coalesced.clients(),
            in_flight: streams.actions.in_flight(),
            memory: frames.view(),
            counters: Counters {
                found: schedule.table.found,
                direct: streams.direct.begun,
                turns: schedule.turns,
                ..*counters
            },
            tuning: TuningView {
                bandwidth: tuning.bandwidth(),
                positioning: tuning.positioning(),
                read_ahead_bytes: schedule.read_bytes(),
                requests_per_turn: schedule.turn_requests(arm),
                dispatch_set: streams.config.dispatch_set.unwrap_or(1),
            },
            bypass: streams.bypass.is_on(),
        }
    }
}

impl StreamView {
    pub(super) fn new(id: u32, stream: &Stream, disk_bytes: u64, frame_bytes: u64) -> StreamView {
        let direction = stream.direction();
        StreamView {
            id,
            client: stream.client.id,
            writes: stream.kind == StreamKind::Write,
            direction,
            offset: mirrored(direction, disk_bytes, stream.expected, 0),
            bytes: stream.totals.bytes,
            requests: stream.totals.requests,
            hits: stream.totals.hits,
            waiting: stream.waiting,
            memory_bytes: u64::from(stream.frames) * frame_bytes,
            has_turn: stream.has_turn(),
            since: stream.totals.since,
            last_request: stream.client.last_request,
        }
    }
}
