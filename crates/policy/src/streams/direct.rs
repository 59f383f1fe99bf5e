//! Direct requests, which bypass the streams: each is a command of its own, in the order of arrival.
//!
//! While streams want the disk, the two alternate: between two batches of direct requests, streams transfer `bypass_bytes`. So a
//! direct request waits for these bytes and for the commands that the disk already has, and no longer.

use super::messages::{DiskError, Outcome, Request, RequestKind, Transfer, TransferBuffer};
use super::{Purpose, Streams};
use headstack_model::Nanos;
use std::collections::VecDeque;

/// Direct requests in a row before streams have the disk again.
const BATCH: u32 = 4;

/// Time after a direct request in which streams keep few commands at the disk, so that the next direct request waits for few.
const LATELY: Nanos = Nanos(100_000_000);

/// Direct requests.
#[derive(Debug, Default)]
pub(super) struct DirectRequests {
    waiting: VecDeque<Request>,
    /// Requests at the disk, and their bytes.
    in_flight: u32,
    in_flight_bytes: u64,
    /// Bytes of streams since the last direct request, and direct requests since streams had the disk.
    stream_bytes: u64,
    batch: u32,
    /// When the last one arrived.
    last: Option<Nanos>,
}

impl DirectRequests {
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Removes and returns a client's requests that change nothing.
    pub(super) fn forget(&mut self, client: u64) -> Vec<Request> {
        let is_vain = |request: &Request| {
            request.client == client
                && matches!(request.kind, RequestKind::Read { .. } | RequestKind::Query { .. })
        };
        let gone = self.waiting.iter().copied().filter(is_vain).collect();
        self.waiting.retain(|request| !is_vain(request));
        gone
    }

    /// Requests that wait or are at the disk.
    pub(super) fn outstanding(&self) -> usize {
        self.waiting.len() + self.in_flight as usize
    }

    /// Counts a command of a stream.
    pub(super) fn note_stream_bytes(&mut self, bytes: u64) {
        self.stream_bytes = self.stream_bytes.saturating_add(bytes);
        self.batch = 0;
    }

    /// Whether direct requests use the disk, or did lately.
    pub(super) fn is_busy(&self, now: Nanos) -> bool {
        self.in_flight > 0
            || !self.waiting.is_empty()
            || self.last.is_some_and(|last| now.since(last) < LATELY)
    }
}

impl Streams {
    /// Queues a request as a direct one.
    pub(super) fn send_direct(&mut self, request: Request) {
        self.direct.last = Some(self.now);
        self.direct.waiting.push_back(request);
    }

    /// Whether it is the turn of direct requests.
    pub(super) fn is_direct_turn(&self) -> bool {
        let DirectRequests { stream_bytes, batch, .. } = self.direct;
        stream_bytes >= self.config.bypass_bytes || batch > 0 && batch < BATCH || !self.streams_want_disk()
    }

    /// Begins a direct request, if one waits and may begin.
    pub(super) fn start_direct(&mut self) -> bool {
        let Some(request) = self.direct.waiting.front().copied() else { return false };
        let (transferred, (transfer, run, place)) = (transferred_bytes(&request), command(request));
        let direct = &mut self.direct;
        if direct.in_flight > 0 && direct.in_flight_bytes + transferred > self.config.direct_bytes {
            return false;
        }
        direct.waiting.pop_front();
        direct.in_flight += 1;
        direct.in_flight_bytes += transferred;
        (direct.stream_bytes, direct.batch) = (0, direct.batch + 1);
        self.books.direct += 1;
        if transferred > 0 {
            self.suspend_turns();
            self.dispatch.send_arm(run.0 + run.1, false);
        }
        self.start(Purpose::Direct(request), transfer, run, place);
        true
    }

    /// Takes the end of a direct request.
    pub(super) fn direct_ended(&mut self, request: Request, result: Result<(), DiskError>) {
        self.direct.in_flight -= 1;
        self.direct.in_flight_bytes -= transferred_bytes(&request);
        self.tuning.disturb();
        match request.kind {
            RequestKind::Write { offset, bytes, .. } => {
                self.books.written_bytes += bytes;
                self.bypass.answered(bytes);
                self.invalidate(offset, bytes);
            }
            RequestKind::Change { offset, bytes } => self.invalidate(offset, bytes),
            RequestKind::Read { bytes, .. } => {
                self.books.read_bytes += bytes;
                self.bypass.answered(bytes);
            }
            RequestKind::Query { .. } | RequestKind::Flush => {}
        }
        let result = match request.kind {
            RequestKind::Flush => result.and(self.coalesced.report_loss(request.client)),
            _ => result,
        };
        self.answer(request.ticket, result.map(|()| Outcome::Done));
    }
}

/// Bytes that the disk transfers for a request.
fn transferred_bytes(request: &Request) -> u64 {
    match request.kind {
        RequestKind::Read { bytes, .. } | RequestKind::Write { bytes, .. } => bytes,
        RequestKind::Change { .. } | RequestKind::Query { .. } | RequestKind::Flush => 0,
    }
}

/// The transfer for a request, its offset and bytes on the disk, and its buffer.
fn command(Request { ticket, kind, .. }: Request) -> (Transfer, (u64, u64), TransferBuffer) {
    let place = TransferBuffer::Request(ticket);
    match kind {
        RequestKind::Read { offset, bytes, fua } => (Transfer::Read { fua }, (offset, bytes), place),
        RequestKind::Write { offset, bytes, fua } => (Transfer::Write { fua }, (offset, bytes), place),
        RequestKind::Change { offset, bytes } | RequestKind::Query { offset, bytes } => {
            (Transfer::Own, (offset, bytes), place)
        }
        RequestKind::Flush => (Transfer::Flush, (0, 0), TransferBuffer::None),
    }
}
