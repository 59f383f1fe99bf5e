//! The state of a stream.
//!
//! Offsets of a stream are counted in its direction, so that a backward stream is no special case: its offsets are counted from the
//! end of the disk.

use super::classifier::Direction;
use headstack_model::{Instant, Nanos};

/// How far from where a stream is expected a request may be and still belong to it.
pub(super) const NEAR: u64 = 256 << 10;

/// Time for which a frame is not evicted after its last use while the disk has other work: the memory may hold only D frames.
pub(super) const FRESH: Nanos = Nanos(20_000_000);

/// The owner of a frame whose stream has ended.
pub(super) const NO_STREAM: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    Read(Direction),
    /// It writes, forward.
    Write,
}

/// The queue of a stream without a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// Its client waits for the disk; the stream may have a turn from this round on.
    Blocked(u64),
    /// Few of its bytes are staged.
    WantsPrefetch,
}

/// The client of a stream, by its latest requests.
#[derive(Clone, Debug)]
pub(super) struct StreamClient {
    pub(super) id: u64,
    pub(super) request: u64,
    pub(super) last_request: Instant,
    answered: Option<Instant>,
    /// Time from an answer to the next request.
    pub(super) think_time: Nanos,
    /// Whether it was slower than the disk in the stream's last turn.
    pub(super) is_slow: bool,
    /// Whether it has fetched anything since the stream's last turn.
    pub(super) has_fetched: bool,
}

impl StreamClient {
    /// Records a request that is not answered at once.
    pub(super) fn request(&mut self, now: Instant, client: u64, bytes: u64) {
        self.note_think_time(now);
        (self.id, self.last_request, self.request) = (client, now, bytes);
    }

    pub(super) fn fetch(&mut self, now: Instant, client: u64, bytes: u64, is_hit: bool) {
        if is_hit {
            self.note_think_time(now);
        }
        (self.id, self.last_request, self.request) = (client, now, bytes);
        (self.answered, self.has_fetched) = (Some(now), true);
    }

    fn note_think_time(&mut self, now: Instant) {
        self.think_time = self.answered.map_or(Nanos::MAX, |answered| now.since(answered));
    }
}

#[derive(Clone, Debug)]
pub(super) struct StreamTurn {
    /// Remaining commands of the turn, if there is one.
    pub(super) commands: Option<u32>,
    /// The round of the last turn, and the commands that the stream may still have in it.
    pub(super) round: u64,
    pub(super) left: u32,
    /// Commands by which the turn fulfils the client's guarantee; 0 if another turn does.
    pub(super) guaranteed: u32,
    pub(super) began: Instant,
}

#[derive(Clone, Debug)]
pub(super) struct StreamTotals {
    pub(super) since: Instant,
    pub(super) requests: u64,
    pub(super) hits: u64,
    pub(super) bytes: u64,
}

impl StreamTotals {
    pub(super) fn add(&mut self, bytes: u64, is_hit: bool) {
        self.requests += 1;
        self.bytes += bytes;
        self.hits += u64::from(is_hit);
    }
}

#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) kind: StreamKind,
    pub(super) client: StreamClient,
    pub(super) turn: StreamTurn,
    pub(super) totals: StreamTotals,
    /// Where the next request is expected, and up to where bytes were read ahead or coalesced.
    pub(super) expected: u64,
    pub(super) frontier: u64,
    /// The end of the waiting requests.
    pub(super) wanted: u64,
    /// The end of the requests that bypassed it.
    pub(super) passed: u64,
    /// Bytes by which its requests may be out of order.
    pub(super) slack: u64,
    /// From one record to the next, and the bytes of one, where there are gaps.
    pub(super) stride: Option<(u64, u64)>,
    /// Where the last request behind the stream ended: another reader may be there.
    pub(super) stray: u64,
    pub(super) waiting: u32,
    /// Its frames, and those of them with a command in flight.
    pub(super) frames: u32,
    pub(super) in_flight: u32,
    /// When a command of it ended last.
    pub(super) last_end: Instant,
    /// The client for whose guarantee it waits.
    pub(super) escalated_for: Option<u64>,
    /// The arm in whose queue it is, or has its turn.
    pub(super) arm: usize,
    /// Its queue, and its key in it.
    pub(super) queued: Option<(Queue, u64)>,
    /// The frame in which writes are coalesced.
    pub(super) open: Option<u32>,
}

impl Stream {
    pub(super) fn new(now: Instant, kind: StreamKind, client: u64, at: u64) -> Stream {
        Stream {
            kind,
            client: StreamClient {
                id: client,
                request: 0,
                last_request: now,
                answered: None,
                think_time: Nanos::MAX,
                is_slow: false,
                has_fetched: true,
            },
            turn: StreamTurn { commands: None, round: 0, left: 0, guaranteed: 0, began: now },
            totals: StreamTotals { since: now, requests: 0, hits: 0, bytes: 0 },
            expected: at,
            frontier: at,
            wanted: at,
            passed: at,
            slack: NEAR,
            stride: None,
            stray: u64::MAX,
            waiting: 0,
            frames: 0,
            in_flight: 0,
            last_end: now,
            escalated_for: None,
            arm: 0,
            queued: None,
            open: None,
        }
    }

    pub(super) fn wait(&mut self, now: Instant, client: u64, bytes: u64, end: u64) {
        self.waiting += 1;
        self.wanted = self.wanted.max(end);
        self.client.request(now, client, bytes);
        // The client is not slow if it waits for a command in flight, or for bytes soon after one has ended.
        self.client.is_slow &= self.in_flight == 0 && now.since(self.last_end) > FRESH;
    }

    pub(super) fn has_turn(&self) -> bool {
        self.turn.commands.is_some()
    }

    pub(super) fn direction(&self) -> Direction {
        match self.kind {
            StreamKind::Read(direction) => direction,
            StreamKind::Write => Direction::Forward,
        }
    }

    /// Where the request after this run is expected, or the next read begins.
    pub(super) fn next_after(&self, at: u64, bytes: u64) -> u64 {
        at + self.stride.map_or(bytes, |(stride, _)| stride)
    }

    /// Where a read from here to at most `end` should end, so that it splits no request.
    pub(super) fn whole_requests(&self, at: u64, end: u64) -> u64 {
        let (Some(over), true) = (end.checked_sub(self.expected), self.client.request > 0) else {
            return end;
        };
        let whole = end - over % self.client.request;
        if whole > at { whole } else { end }
    }

    /// Whether read-ahead ends inside a request of at most this length.
    pub(super) fn ends_inside_request(&self, longest: u64) -> bool {
        let is_read =
            !self.is_writer() && self.stride.is_none() && (1..=longest).contains(&self.client.request);
        is_read
            && self.frontier.checked_sub(self.expected).is_some_and(|over| over % self.client.request != 0)
    }

    /// The end of all requested and all read-ahead bytes.
    pub(super) fn tail(&self) -> u64 {
        self.frontier.max(self.wanted).max(self.passed)
    }

    /// Up to where all bytes were requested, if the stream is expected at `expected`.
    pub(super) fn passed_up_to(&self, expected: u64) -> u64 {
        expected.saturating_sub(self.slack - NEAR)
    }

    /// Skips read-ahead of bytes whose requests bypassed the stream, once no request waits.
    pub(super) fn skip_passed(&mut self) {
        if self.waiting == 0 {
            self.frontier = self.frontier.max(self.passed);
        }
    }

    pub(super) fn is_writer(&self) -> bool {
        self.kind == StreamKind::Write
    }

    /// Whether a client waits for bytes that no command reads yet.
    pub(super) fn is_blocked(&self) -> bool {
        self.waiting > 0 && (self.is_writer() || self.wanted > self.frontier)
    }

    /// Whether read-ahead is worthwhile although no client waits.
    pub(super) fn wants_prefetch(&self, disk_bytes: u64) -> bool {
        !self.is_writer() && self.client.has_fetched && self.frames < 2 && self.frontier < disk_bytes
    }
}

/// Converts the first byte of a run between the disk's offsets and those of a direction. It is its own inverse.
pub(super) fn mirrored(direction: Direction, disk_bytes: u64, at: u64, bytes: u64) -> u64 {
    match direction {
        Direction::Forward => at,
        Direction::Backward => disk_bytes - at - bytes,
    }
}
