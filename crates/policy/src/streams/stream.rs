//! A stream, and what is known of it.
//!
//! Places of a stream are counted along its way, so that backwards is no other case: for a stream that goes down, from the
//! disk's end.

use super::NEAR;
use super::classifier::Direction;
use headstack_model::Nanos;

/// Which stream has a frame that outlived its own.
pub(super) const NO_STREAM: u32 = u32::MAX;

/// What a stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// It reads.
    Read(Direction),
    /// It writes, upwards.
    Write,
}

/// Where a stream without a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// Among those whose clients wait for the disk, from this round on.
    Blocked(u64),
    /// Among those of which little is staged.
    WantsPrefetch,
}

/// A stream.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) kind: StreamKind,
    /// Who asked last.
    pub(super) client: u64,
    /// Where the next request is expected, and up to where it was read ahead or taken in: along its way.
    pub(super) expected: u64,
    pub(super) frontier: u64,
    /// Up to where requests wait.
    pub(super) wanted: u64,
    /// Up to where requests bypassed it.
    pub(super) passed: u64,
    /// Bytes by which its requests may come out of their order.
    pub(super) slack: u64,
    /// Bytes of its last request.
    pub(super) request: u64,
    /// Requests that wait.
    pub(super) waiting: u32,
    /// Frames that it has, and those that a command is working on.
    pub(super) frames: u32,
    pub(super) in_flight: u32,
    /// Commands that are left of its turn, if it has one.
    pub(super) turn: Option<u32>,
    /// The round of its last turn, and what it may still have in that.
    pub(super) round: u64,
    pub(super) left: u32,
    /// Commands by which its turn brings what its client was promised; none where another turn is for that.
    pub(super) promised: u32,
    /// The client whose promise it waits for.
    pub(super) escalated_for: Option<u64>,
    /// Where it stands in which queue.
    pub(super) queued: Option<(Queue, u64)>,
    /// The frame that writes are gathered in.
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
    /// When it was asked last, and whether anything was fetched since its last turn.
    pub(super) last_request: Nanos,
    pub(super) was_fetched: bool,
    /// When it was answered last, and how long after an answer its client asked for more.
    pub(super) answered: Option<Nanos>,
    pub(super) think_time: Nanos,
    /// When it was found, and what came of it.
    pub(super) since: Nanos,
    pub(super) requests: u64,
    pub(super) hits: u64,
    pub(super) bytes: u64,
}

impl Stream {
    /// A stream that begins here, along its way.
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

    /// Its client asks for more.
    pub(super) fn note_request(&mut self, now: Nanos) {
        self.think_time = self.answered.map_or(Nanos::MAX, |answered| now.since(answered));
    }

    pub(super) fn direction(&self) -> Direction {
        match self.kind {
            StreamKind::Read(direction) => direction,
            StreamKind::Write => Direction::Forward,
        }
    }

    /// Where the next is expected after a run, or is to be read: along its way.
    pub(super) fn next_after(&self, at: u64, bytes: u64) -> u64 {
        at + self.stride.map_or(bytes, |(stride, _)| stride)
    }

    /// Where to end what is read from here on up to `end`, so that no request lies on both sides when the turn is over.
    pub(super) fn whole_requests(&self, at: u64, end: u64) -> u64 {
        let (Some(over), true) = (end.checked_sub(self.expected), self.request > 0) else { return end };
        let whole = end - over % self.request;
        if whole > at { whole } else { end }
    }

    /// Whether what was read ahead ends amid a request that is no longer than this.
    pub(super) fn ends_inside_request(&self, longest: u64) -> bool {
        let is_read = !self.is_writer() && self.stride.is_none() && (1..=longest).contains(&self.request);
        is_read && self.frontier.checked_sub(self.expected).is_some_and(|over| over % self.request != 0)
    }

    /// Behind all that was asked for and all that was read ahead, along its way.
    pub(super) fn tail(&self) -> u64 {
        self.frontier.max(self.wanted).max(self.passed)
    }

    /// Up to where all was asked for, where requests were asked for up to `expected`.
    pub(super) fn passed_up_to(&self, expected: u64) -> u64 {
        expected.saturating_sub(self.slack - NEAR)
    }

    /// What went past the stream needs no reading ahead, once nobody waits for what lies before it.
    pub(super) fn skip_passed(&mut self) {
        if self.waiting == 0 {
            self.frontier = self.frontier.max(self.passed);
        }
    }

    pub(super) fn is_writer(&self) -> bool {
        self.kind == StreamKind::Write
    }

    /// Whether a client waits for what the disk has not been told.
    pub(super) fn is_blocked(&self) -> bool {
        self.waiting > 0 && (self.is_writer() || self.wanted > self.frontier)
    }

    /// Whether reading ahead is worth while though nobody waits.
    pub(super) fn wants_prefetch(&self, disk_bytes: u64) -> bool {
        !self.is_writer() && self.was_fetched && self.frames < 2 && self.frontier < disk_bytes
    }
}

/// The first byte of a run along a way; its place on the disk, given that along the way. The same both ways.
pub(super) fn mirrored(direction: Direction, disk_bytes: u64, at: u64, bytes: u64) -> u64 {
    match direction {
        Direction::Forward => at,
        Direction::Backward => disk_bytes - at - bytes,
    }
}
