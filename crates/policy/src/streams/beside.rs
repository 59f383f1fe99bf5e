//! Requests beside the streams: each a command of the disk of its own, in the order in which they came.
//!
//! While streams want the disk, the two take turns: between two batches beside them, streams have a stated number of bytes. So
//! such a request waits for that, and for what the disk has by then, and no longer.

use super::words::{Ask, DiskError, Outcome, Place, Request, Transfer};
use super::{Purpose, Streams};
use headstack_model::Nanos;
use std::collections::VecDeque;

/// Requests that go one after the other before streams have the disk again.
const BATCH: u32 = 4;

/// For how long after such a request streams keep little with the disk, so that the next does not wait for much.
const LATELY: Nanos = Nanos(100_000_000);

/// Requests beside the streams.
#[derive(Debug, Default)]
pub(super) struct Beside {
    waiting: VecDeque<Request>,
    /// Those that the disk has, and their bytes.
    underway: u32,
    underway_bytes: u64,
    /// Bytes of streams that were begun since, and requests since streams had the disk.
    stream_bytes: u64,
    batch: u32,
    /// When the last one came.
    last: Option<Nanos>,
}

impl Beside {
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes out those of a client that change nothing.
    pub(super) fn forget(&mut self, client: u64) -> Vec<Request> {
        let is_vain = |request: &Request| {
            request.client == client && matches!(request.ask, Ask::Read { .. } | Ask::Look { .. })
        };
        let gone = self.waiting.iter().copied().filter(is_vain).collect();
        self.waiting.retain(|request| !is_vain(request));
        gone
    }

    /// Requests that wait, and that the disk has.
    pub(super) fn outstanding(&self) -> usize {
        self.waiting.len() + self.underway as usize
    }

    /// Streams begin a command.
    pub(super) fn streams_began(&mut self, bytes: u64) {
        self.stream_bytes = self.stream_bytes.saturating_add(bytes);
        self.batch = 0;
    }

    /// Whether others than streams use the disk, too.
    pub(super) fn is_busy(&self, now: Nanos) -> bool {
        self.underway > 0
            || !self.waiting.is_empty()
            || self.last.is_some_and(|last| now.since(last) < LATELY)
    }
}

impl Streams {
    /// Sends a request to the disk by itself.
    pub(super) fn pass(&mut self, request: Request) {
        self.beside.last = Some(self.now);
        self.beside.waiting.push_back(request);
    }

    /// Whether it is the turn of requests beside the streams.
    pub(super) fn is_turn_beside(&self) -> bool {
        let Beside { stream_bytes, batch, .. } = self.beside;
        stream_bytes >= self.config.beside_bytes || batch > 0 && batch < BATCH || !self.streams_want_disk()
    }

    /// Begins a request beside the streams, if there is one.
    pub(super) fn start_beside(&mut self) -> bool {
        let Some(request) = self.beside.waiting.front().copied() else { return false };
        let (carried, (transfer, run, place)) = (carried(&request), command(request));
        let beside = &mut self.beside;
        if beside.underway > 0 && beside.underway_bytes + carried > self.config.direct_bytes {
            return false;
        }
        beside.waiting.pop_front();
        beside.underway += 1;
        beside.underway_bytes += carried;
        (beside.stream_bytes, beside.batch) = (0, beside.batch + 1);
        self.books.direct += 1;
        if carried > 0 {
            self.suspend_turns();
            self.dispatch.send_arm(run.0 + run.1, false);
        }
        self.start(Purpose::Direct(request), transfer, run, place);
        true
    }

    /// A request beside the streams has ended.
    pub(super) fn direct_ended(&mut self, request: Request, result: Result<(), DiskError>) {
        self.beside.underway -= 1;
        self.beside.underway_bytes -= carried(&request);
        self.tuning.disturb();
        match request.ask {
            Ask::Write { offset, bytes, .. } => {
                self.books.written_bytes += bytes;
                self.bypass.answered(bytes);
                self.outdate(offset, bytes);
            }
            Ask::Change { offset, bytes } => self.outdate(offset, bytes),
            Ask::Read { bytes, .. } => {
                self.books.read_bytes += bytes;
                self.bypass.answered(bytes);
            }
            Ask::Look { .. } | Ask::Flush => {}
        }
        let result = match request.ask {
            Ask::Flush => result.and(self.gathered.tell_loss(request.client)),
            _ => result,
        };
        self.answer(request.ticket, result.map(|()| Outcome::Done));
    }
}

/// Bytes that the disk transfers for a request.
fn carried(request: &Request) -> u64 {
    match request.ask {
        Ask::Read { bytes, .. } | Ask::Write { bytes, .. } => bytes,
        Ask::Change { .. } | Ask::Look { .. } | Ask::Flush => 0,
    }
}

/// What the disk is to do for a request, with which run of its bytes, and where these are.
fn command(Request { ticket, ask, .. }: Request) -> (Transfer, (u64, u64), Place) {
    let place = Place::Request(ticket);
    match ask {
        Ask::Read { offset, bytes, fua } => (Transfer::Read { fua }, (offset, bytes), place),
        Ask::Write { offset, bytes, fua } => (Transfer::Write { fua }, (offset, bytes), place),
        Ask::Change { offset, bytes } | Ask::Look { offset, bytes } => {
            (Transfer::Own, (offset, bytes), place)
        }
        Ask::Flush => (Transfer::Flush, (0, 0), Place::None),
    }
}
