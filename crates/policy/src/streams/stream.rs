//! The state of a stream.
//!
//! Offsets of a stream are counted in its direction, so that a backward stream is no special case: its offsets are counted from the
//! end of the disk.

use super::NEAR;
use super::classifier::Direction;
use headstack_model::Nanos;

/// The owner of a frame whose stream has ended.
pub(super) const NO_STREAM: u32 = u32::MAX;

/// What a stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// It reads.
    Read(Direction),
    /// It writes, forward.
    Write,
}

/// The queue of a stream without a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// Its client waits for the disk; it may have a turn from this round on.
    Blocked(u64),
    /// Few of its bytes are staged.
    WantsPrefetch,
}

/// A stream.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) kind: StreamKind,
    /// The client of its last request.
    pub(super) client: u64,
    /// Where the next request is expected, and up to where bytes were read ahead or coalesced.
    pub(super) expected: u64,
    pub(super) frontier: u64,
    /// The end of the waiting requests.
    pub(super) wanted: u64,
    /// The end of the requests that bypassed it.
    pub(super) passed: u64,
    /// Bytes by which its requests may be out of order.
    pub(super) slack: u64,
    /// Bytes of its last request.
    pub(super) request: u64,
    /// Requests that wait.
    pub(super) waiting: u32,
    /// Its frames, and those of them with a command in flight.
    pub(super) frames: u32,
    pub(super) in_flight: u32,
    /// Remaining commands of its turn, if it has one.
    pub(super) turn: Option<u32>,
    /// The round of its last turn, and the commands that it may still have in it.
    pub(super) round: u64,
    pub(super) left: u32,
    /// Commands by which its turn fulfils its client's guarantee; 0 if another turn does.
    pub(super) promised: u32,
    /// The client for whose guarantee it waits.
    pub(super) escalated_for: Option<u64>,
    /// Its queue, and its key in it.
    pub(super) queued: Option<(Queue, u64)>,
    /// The frame in which writes are coalesced.
    pub(super) open: Option<u32>,
    /// When its turn began, and when a command of it ended last.
    pub(super) began: Nanos,
    pub(super) last_end: Nanos,
    /// Whether its client was slower than the disk in its last turn.
    pub(super) is_slow: bool,
    /// From one record to the next, and the bytes of one, where there are gaps.
    pub(super) stride: Option<(u64, u64)>,
    /// Where the last request behind it ended: another reader may be there.
    pub(super) stray: u64,
    /// When its last request arrived, and whether anything was fetched since its last turn.
    pub(super) last_request: Nanos,
    pub(super) was_fetched: bool,
    /// When it was answered last, and the time from an answer to the client's next request.
    pub(super) answered: Option<Nanos>,
    pub(super) think_time: Nanos,
    /// When it was found, and its requests, hits and bytes since.
    pub(super) since: Nanos,
    pub(super) requests: u64,
    pub(super) hits: u64,
    pub(super) bytes: u64,
}

impl Stream {
    /// A stream that begins here.
    pub(super) fn new(now: Nanos, kind: StreamKind, client: u64, at: u64) -> Stream {
        Stream {
            kind,
            client,
            expected: at,
            frontier: at,
            wanted: at,
            passed: at,
            slack: NEAR,
            request: 0,
            waiting: 0,
            frames: 0,
            in_flight: 0,
            turn: None,
            round: 0,
            left: 0,
            promised: 0,
            escalated_for: None,
            queued: None,
            open: None,
            began: now,
            last_end: now,
            is_slow: false,
            stride: None,
            stray: u64::MAX,
            last_request: now,
            was_fetched: true,
            answered: None,
            think_time: Nanos::MAX,
            since: now,
            requests: 0,
            hits: 0,
            bytes: 0,
        }
    }

    /// Notes the time of a client's request.
    pub(super) fn note_request(&mut self, now: Nanos) {
        self.think_time = self.answered.map_or(Nanos::MAX, |answered| now.since(answered));
    }

    pub(super) fn direction(&self) -> Direction {
        match self.kind {
            StreamKind::Read(direction) => direction,
            StreamKind::Write => Direction::Forward,
        }
    }

    /// Where the next request after a run is expected, or the next read begins.
    pub(super) fn next_after(&self, at: u64, bytes: u64) -> u64 {
        at + self.stride.map_or(bytes, |(stride, _)| stride)
    }

    /// Where a read from here to at most `end` should end, so that it splits no request.
    pub(super) fn whole_requests(&self, at: u64, end: u64) -> u64 {
        let (Some(over), true) = (end.checked_sub(self.expected), self.request > 0) else { return end };
        let whole = end - over % self.request;
        if whole > at { whole } else { end }
    }

    /// Whether read-ahead ends inside a request of at most this length.
    pub(super) fn ends_inside_request(&self, longest: u64) -> bool {
        let is_read = !self.is_writer() && self.stride.is_none() && (1..=longest).contains(&self.request);
        is_read && self.frontier.checked_sub(self.expected).is_some_and(|over| over % self.request != 0)
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

    /// Whether read-ahead is worth while although no client waits.
    pub(super) fn wants_prefetch(&self, disk_bytes: u64) -> bool {
        !self.is_writer() && self.was_fetched && self.frames < 2 && self.frontier < disk_bytes
    }
}

/// Converts the first byte of a run between the disk's offsets and those of a direction. It is its own inverse.
pub(super) fn mirrored(direction: Direction, disk_bytes: u64, at: u64, bytes: u64) -> u64 {
    match direction {
        Direction::Forward => at,
        Direction::Backward => disk_bytes - at - bytes,
    }
}
