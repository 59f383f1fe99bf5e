//! A snapshot of the scheduler, for monitoring.

use super::Streams;
use super::classifier::Direction;
use super::stream::{Stream, StreamKind, mirrored};
use headstack_model::report::QuantityUnit;
use headstack_model::{Instant, Nanos, QuantityReport};

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

impl Counters {
    /// Adds the counts, without the streams found.
    fn report(&self, into: &mut QuantityReport) {
        into.counter("requests", self.requests, "Requests of clients");
        into.counter("direct", self.direct, "Requests that bypassed the streams").metric("bypass_requests");
        into.counter("hits", self.hits, "Reads answered from stream memory at once");
        into.counter("turns", self.turns, "Turns of streams");
        into.counter("disk_read_bytes", self.read_bytes, "Bytes read from the disk");
        into.counter("disk_written_bytes", self.written_bytes, "Bytes written to the disk");
        into.counter("unfetched_bytes", self.unfetched_bytes, "Bytes read ahead in vain");
        into.counter("lost_bytes", self.lost_bytes, "Bytes acknowledged that the disk then did not take");
    }
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

impl MemoryView {
    /// Adds the use of the memory.
    fn report(&self, into: &mut QuantityReport) {
        into.gauge("memory_bytes", self.bytes, "Stream memory, M").metric("stream_memory_bytes");
        into.gauge("used_bytes", self.used_bytes, "Stream memory in use").metric("stream_memory_used_bytes");
        into.gauge("high_water_bytes", self.high_water_bytes, "Most stream memory that was in use").detail();
        into.gauge("staged_bytes", self.staged_bytes, "Bytes read ahead and not fetched");
        into.gauge("coalesced_bytes", self.coalesced_bytes, "Bytes written and not on the disk");
    }
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

impl TuningView {
    /// Adds the measurements and the parameters.
    fn report(&self, into: &mut QuantityReport) {
        into.gauge("bandwidth_mb_s", self.bandwidth / 1e6, "Speed of the disk within a stream, as measured")
            .unit(QuantityUnit::MegabytesPerSecond);
        into.gauge("positioning_ms", self.positioning, "Time to get to a stream, as measured");
        into.gauge("read_ahead_bytes", self.read_ahead_bytes, "Bytes of a request to the disk, R");
        into.gauge("requests_per_turn", self.requests_per_turn, "Requests in a turn of a stream, N");
        into.gauge("dispatch_set", self.dispatch_set, "Streams that have a turn at a time, D");
    }
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

    /// Adds the state and the counts.
    pub fn report(&self, into: &mut QuantityReport) {
        into.gauge("streams", self.streams, "Streams that there are");
        into.counter("found", self.counters.found, "Streams found").metric("streams_found");
        into.gauge("dispatched", self.dispatched, "Streams that have a turn").metric("streams_dispatched");
        into.gauge("waiting_streams", self.waiting_streams, "Streams whose clients wait for a turn")
            .metric("streams_waiting");
        self.memory.report(into);
        into.gauge("in_flight", self.in_flight, "Commands that the disk has").metric("disk_commands");
        self.counters.report(into);
        self.tuning.report(into);
        let help =
            "1 while the disk gets requests of streams as they come, because turns would gain too little";
        into.gauge("bypass", self.bypass, help);
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

    /// Its kind: `read` or `write`.
    pub fn kind(&self) -> &'static str {
        if self.writes { "write" } else { "read" }
    }

    /// Adds the stream with its place among the reported ones, which is reused, and its present rate.
    pub fn report(&self, slot: usize, mb_s: f64, into: &mut QuantityReport) {
        into.fact("id", self.id);
        into.fact("slot", slot).label("stream");
        into.fact("client", self.client);
        into.fact("kind", self.kind()).label("kind");
        into.fact("direction", if self.direction == Direction::Forward { "forward" } else { "backward" });
        into.gauge("offset", self.offset, "Where the next request is expected").detail();
        into.gauge("mb_s", mb_s, "Rates of the busiest streams over the last 20 s or so")
            .unit(QuantityUnit::MegabytesPerSecond)
            .metric("stream_bytes_per_second");
        into.counter("bytes", self.bytes, "Bytes of its requests").detail();
        into.counter("requests", self.requests, "Its requests").detail();
        into.counter("hits", self.hits, "Reads answered from stream memory at once").detail();
        into.gauge("waiting", self.waiting, "Requests that wait for its turn").detail();
        into.gauge("memory_bytes", self.memory_bytes, "Stream memory of the busiest streams")
            .metric("stream_bytes_in_memory");
        into.gauge("has_turn", self.has_turn, "Whether it has a turn").detail();
    }
}
