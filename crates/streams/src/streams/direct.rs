//! Direct requests, which bypass the streams: each is a command of its own, in the order of arrival.
//!
//! While streams want the disk, the two alternate: between two batches of direct requests, streams transfer `bypass_bytes`. So a
//! direct request waits for these bytes and for the commands that the disk already has, and no longer.
//!
//! A read with a duration limit precedes all others, and no bound holds it but the number of commands at the disk.

use super::config::Config;
use super::messages::{Request, RequestKind};
use headstack_model::{Instant, Nanos};
use std::collections::VecDeque;

/// Direct requests in a row before streams have the disk again.
const BATCH: u32 = 4;

/// Time after a direct request in which streams keep few commands at the disk, so that the next direct request waits for few of them.
const LATELY: Nanos = Nanos(100_000_000);

#[derive(Debug)]
pub(super) struct DirectRequests {
    most_bytes: u64,
    bypass_bytes: u64,
    /// Waiting requests, and since when each waits.
    waiting: VecDeque<(Instant, Request)>,
    /// How many of them, the first ones, precede all others.
    preceding: usize,
    /// Requests at the disk, and their bytes.
    in_flight: u32,
    in_flight_bytes: u64,
    /// Bytes of streams since the last direct request, and direct requests since streams had the disk.
    stream_bytes: u64,
    batch: u32,
    last: Option<Instant>,
    /// Requests begun since the start.
    pub(super) begun: u64,
}

impl DirectRequests {
    pub(super) fn new(config: &Config) -> DirectRequests {
        DirectRequests {
            most_bytes: config.direct_bytes,
            bypass_bytes: config.bypass_bytes,
            waiting: VecDeque::new(),
            preceding: 0,
            in_flight: 0,
            in_flight_bytes: 0,
            stream_bytes: 0,
            batch: 0,
            last: None,
            begun: 0,
        }
    }

    /// Queues a request behind all others; if it precedes, only behind those that precede, too.
    pub(super) fn push(&mut self, now: Instant, request: Request, precedes: bool) {
        self.last = Some(now);
        if precedes {
            self.waiting.insert(self.preceding, (now, request));
            self.preceding += 1;
        } else {
            self.waiting.push_back((now, request));
        }
    }

    pub(super) fn has_preceding(&self) -> bool {
        self.preceding > 0
    }

    /// Whether direct requests precede streams that want the disk.
    pub(super) fn is_turn(&self) -> bool {
        self.stream_bytes >= self.bypass_bytes || self.batch > 0 && self.batch < BATCH
    }

    pub(super) fn begin(&mut self) -> Option<(Instant, Request)> {
        let (since, request) = *self.waiting.front()?;
        let bytes = request.kind.transferred_bytes();
        if self.preceding == 0 && self.in_flight > 0 && self.in_flight_bytes + bytes > self.most_bytes {
            return None;
        }
        self.waiting.pop_front();
        self.preceding = self.preceding.saturating_sub(1);
        self.in_flight += 1;
        self.in_flight_bytes += bytes;
        (self.stream_bytes, self.batch) = (0, self.batch + 1);
        self.begun += 1;
        Some((since, request))
    }

    pub(super) fn complete(&mut self, request: &Request) {
        self.in_flight -= 1;
        self.in_flight_bytes -= request.kind.transferred_bytes();
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a write of bytes of this run waits.
    pub(super) fn has_write_in(&self, first: u64, bytes: u64) -> bool {
        let is_write = |request: &Request| matches!(request.kind, RequestKind::Write { .. });
        let is_within = |request: &Request| (first..first + bytes).contains(&request.kind.run().0);
        self.waiting.iter().any(|(_, request)| is_write(request) && is_within(request))
    }

    /// Removes and returns a client's requests that change nothing.
    pub(super) fn forget(&mut self, client: u64) -> Vec<Request> {
        let is_vain = |request: &Request| {
            request.client == client
                && matches!(request.kind, RequestKind::Read { .. } | RequestKind::BlockStatus { .. })
        };
        let gone = self.waiting.iter().map(|(_, request)| *request).filter(is_vain).collect();
        let first = self.waiting.iter().take(self.preceding);
        self.preceding -= first.filter(|(_, request)| is_vain(request)).count();
        self.waiting.retain(|(_, request)| !is_vain(request));
        gone
    }

    pub(super) fn outstanding(&self) -> usize {
        self.waiting.len() + self.in_flight as usize
    }

    pub(super) fn note_stream_bytes(&mut self, bytes: u64) {
        self.stream_bytes = self.stream_bytes.saturating_add(bytes);
        self.batch = 0;
    }

    /// Whether direct requests use the disk, or did lately.
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        self.in_flight > 0
            || !self.waiting.is_empty()
            || self.last.is_some_and(|last| now.since(last) < LATELY)
    }
}
