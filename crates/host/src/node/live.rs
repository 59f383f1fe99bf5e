//! Events of a node, for a page that shows it live. Nothing is recorded until a page asks. The log is bounded, so that for a page that does
//! not keep up, events are lost but the node is not delayed.

use super::{Command, RequestKind};
use crate::Operation;
use crate::disk::Kind;
use headstack_model::Instant;
use std::collections::VecDeque;

/// Maximum number of events that are kept until they are drained; beyond it the oldest are dropped and counted. *Source:* assumption, a
/// twentieth of a second of a node whose memory answers 80,000 requests a second.
const EVENTS_MAX: usize = 4096;

/// A client's request at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct ClientRequest {
    pub number: u64,
    /// The client's number, as in streams.
    pub client: u64,
    /// None for a query that costs the disk no time.
    pub kind: Option<Kind>,
    pub offset: u64,
    pub bytes: u64,
    pub begun: Instant,
}

impl ClientRequest {
    pub(super) fn new(number: u64, client: u64, operation: &Operation, begun: Instant) -> ClientRequest {
        let (kind, bytes) = Kind::from_operation(operation).unzip();
        let offset = match *operation {
            Operation::Read { offset, .. }
            | Operation::Write { offset, .. }
            | Operation::WriteZeroes { offset, .. }
            | Operation::Trim { offset, .. }
            | Operation::Allocation { offset, .. }
            | Operation::Prefetch { offset, .. } => offset,
            Operation::Flush => 0,
        };
        ClientRequest { number, client, kind, offset, bytes: bytes.unwrap_or(0), begun }
    }
}

/// A command that a node passed to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct NodeCommand {
    pub kind: RequestKind,
    pub begun: Instant,
    /// Whether it belongs to one request and not to the stream memory.
    pub is_for_request: bool,
}

/// Something that happened in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// A client submitted a request.
    Submitted(ClientRequest),
    /// A request was answered at this time; the last value says whether it succeeded.
    Answered(ClientRequest, Instant, bool),
    /// A command ended at this time; the last value is the number of commands at the disk then, itself included.
    Ended(NodeCommand, Instant, usize),
}

/// The events that have not been drained, and the commands at the disk.
#[derive(Debug)]
pub(super) struct NodeLiveLog {
    events: VecDeque<NodeEvent>,
    dropped: u64,
    /// By the command's number; those that began before the log are missing.
    at_disk: Vec<Option<NodeCommand>>,
}

impl NodeLiveLog {
    /// All the memory of its events is allocated here, not by the node's thread later.
    pub(super) fn new() -> NodeLiveLog {
        NodeLiveLog { events: VecDeque::with_capacity(EVENTS_MAX), dropped: 0, at_disk: Vec::new() }
    }

    fn push(&mut self, event: NodeEvent) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
            self.dropped += 1;
        }
        self.events.push_back(event);
    }

    pub(super) fn submitted(&mut self, request: ClientRequest) {
        if request.kind.is_some() {
            self.push(NodeEvent::Submitted(request));
        }
    }

    pub(super) fn answered(&mut self, request: ClientRequest, now: Instant, succeeded: bool) {
        if request.kind.is_some() {
            self.push(NodeEvent::Answered(request, now, succeeded));
        }
    }

    pub(super) fn begin(&mut self, now: Instant, command: &Command) {
        let index = command.id as usize;
        if self.at_disk.len() <= index {
            self.at_disk.resize(index + 1, None);
        }
        let is_for_request = command.is_for_request();
        self.at_disk[index] = Some(NodeCommand { kind: command.kind, begun: now, is_for_request });
    }

    pub(super) fn end(&mut self, now: Instant, command: &Command, outstanding: usize) {
        let begun = self.at_disk.get_mut(command.id as usize).and_then(Option::take);
        if let Some(command) = begun {
            self.push(NodeEvent::Ended(command, now, outstanding));
        }
    }

    /// The events since the last call, and how many have been dropped since the start.
    pub(super) fn drain(&mut self) -> (Vec<NodeEvent>, u64) {
        (self.events.drain(..).collect(), self.dropped)
    }

    pub(super) fn at_disk(&self) -> impl Iterator<Item = NodeCommand> + '_ {
        self.at_disk.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_streams::streams::TransferBuffer;

    #[test]
    fn log_keeps_the_newest_events_and_the_commands_at_the_disk() {
        let mut log = NodeLiveLog::new();
        let read = Operation::Read { offset: 4096, bytes: 512, fua: false };
        for number in 0..EVENTS_MAX as u64 + 3 {
            log.submitted(ClientRequest::new(number, 1, &read, Instant(number)));
        }
        let query = Operation::Allocation { offset: 0, bytes: 512 };
        log.submitted(ClientRequest::new(9999, 1, &query, Instant(9)));
        let (events, dropped) = log.drain();
        assert_eq!((events.len(), dropped), (EVENTS_MAX, 3), "a query is not recorded");
        let NodeEvent::Submitted(first) = events[0] else { panic!("{:?} is a request", events[0]) };
        assert_eq!((first.number, first.offset, first.bytes), (3, 4096, 512));

        let kind = RequestKind::Read { offset: 8192, bytes: 4096, fua: false };
        let command = |id| Command { id, kind, place: TransferBuffer::Memory(0), limit: 0 };
        log.begin(Instant(10), &command(2));
        log.begin(Instant(11), &command(0));
        assert_eq!(log.at_disk().count(), 2);
        log.end(Instant(20), &command(2), 2);
        log.end(Instant(21), &command(1), 2);
        let expected = NodeCommand { kind, begun: Instant(10), is_for_request: false };
        assert_eq!(
            log.drain().0,
            [NodeEvent::Ended(expected, Instant(20), 2)],
            "the other began before the log"
        );
        assert_eq!(log.at_disk().count(), 1);
    }
}
