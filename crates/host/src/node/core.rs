//! A disk's node without its clock: the stream scheduler and the bytes of all requests.
//!
//! Between the scheduler and the disk are layers ([`NodeLayer`]), which commands pass on their way down and their ends on the way up.
//!
//! Its owner submits requests, reports ended commands, and polls for [`Action`]s until there is none. The owner also carries out the
//! commands: it reads into [`NodeCore::buffer`] and writes from [`NodeCore::data`], which stay in place until the end of the command is
//! reported. The bytes of a read travel with its answer ([`ReadData`]).

mod data;

use super::bytes::{Pool, memory};
use super::messages::{Action, Answered, Ended, Outcome, ReadData, Shape};
use super::rearrange::{NodeRearrangeView, NodeRearranger};
use super::stack::{CommandEnd, NodeLayer, NodeOut, NodeStack};
use crate::{BlockError, Operation, StatusExtent};
use headstack_model::Instant;
use headstack_model::spec::Fault;
use headstack_streams::position::{MapState, OrderView, PositionQueue};
use headstack_streams::streams::{
    self, Answer, Boundaries, Command, Config, DiskLayer, Guarantee, Request, RequestKind, Streams,
};
use memmap2::MmapMut;
use slab::Slab;
use std::collections::VecDeque;
use std::io;

/// Why a node cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A key of the configuration is out of range.
    #[error(transparent)]
    Config(#[from] Fault),
    /// The stream memory cannot be allocated.
    #[error("no {bytes} bytes of stream memory: {error}")]
    Memory {
        /// Its size.
        bytes: u64,
        /// The system's error.
        error: io::Error,
    },
}

/// The node of one disk. A request has a ticket of the owner's until it is answered.
#[derive(Debug)]
pub struct NodeCore<T> {
    streams: Streams,
    shape: Shape,
    memory: MmapMut,
    /// Requests at the scheduler, by its tickets.
    requests: Slab<NodeRequest<T>>,
    /// Answers that bypass the scheduler: of rejected requests and of hints.
    ready: VecDeque<Answered<T>>,
    pool: Pool,
    /// The layers between the scheduler and the disk.
    stack: NodeStack,
    /// The time of the last call.
    now: Instant,
}

#[derive(Debug)]
struct NodeRequest<T> {
    ticket: T,
    kind: RequestKind,
    content: Content,
}

impl<T> NodeRequest<T> {
    fn written_data(&self) -> &[u8] {
        match &self.content {
            Content::Written(data) => data,
            Content::Buffer(buffer) => buffer,
            _ => panic!("only a write has data"),
        }
    }
}

#[derive(Debug)]
enum Content {
    None,
    Written(Vec<u8>),
    /// Bytes to write, or that were read, in whole pages for the device.
    Buffer(MmapMut),
    Left,
    Found(Vec<StatusExtent>),
}

impl<T> NodeCore<T> {
    /// A node for a disk.
    ///
    /// *Errors:* a key of the configuration is out of range, or requires more memory than there is.
    pub fn new(config: Config, shape: Shape) -> Result<NodeCore<T>, NodeError> {
        let most = usize::try_from(config.direct_bytes).unwrap_or(usize::MAX);
        let streams = Streams::new(config, shape.bytes)?;
        let bytes = streams.memory_bytes();
        Ok(NodeCore {
            memory: memory(bytes).map_err(|error| NodeError::Memory { bytes, error })?,
            streams,
            shape,
            requests: Slab::new(),
            ready: VecDeque::new(),
            pool: Pool::new(most),
            stack: NodeStack::default(),
            now: Instant::ZERO,
        })
    }

    /// Sets the ranges of the disk's arms by their first bytes. Call it before the first request.
    pub fn set_arms(&mut self, firsts: &[u64]) {
        self.streams.set_arms(firsts);
    }

    /// Makes writes obey the zones of the disk, each of this many bytes. Call it before the first request.
    pub fn set_write_zones(&mut self, zone_bytes: u64) {
        self.streams.set_write_zones(zone_bytes);
    }

    /// Sends all reads without a duration limit. Returns whether the configuration gives some.
    pub(super) fn clear_read_limits(&mut self) -> bool {
        let had_any = self.streams.has_read_limits();
        self.streams.clear_read_limits();
        had_any
    }

    /// Sets the track boundaries at which requests of streams end.
    pub fn set_boundaries(&mut self, boundaries: Box<dyn Boundaries>) {
        self.streams.set_boundaries(boundaries);
    }

    /// Adds a layer in front of the disk, below those that were added before. Call it before the first request.
    ///
    /// Panics if it is a rearranger that leaves a disk of another size visible than the node was made for.
    pub fn add_layer(&mut self, layer: NodeLayer) {
        self.stack.push(layer);
        let visible = self.stack.layer().map_or(self.shape.bytes, NodeRearranger::visible_bytes);
        assert_eq!(self.shape.bytes, visible, "the node serves what the region leaves");
    }

    /// The first layer of a type, for what it shows.
    pub fn layer<L: DiskLayer<NodeOut>>(&self) -> Option<&L> {
        self.stack.layer()
    }

    /// The rearranger, if there is one.
    pub fn rearranger(&self) -> Option<NodeRearrangeView> {
        self.stack.layer().map(NodeRearranger::view)
    }

    /// Begins an orderly end of the layers. Call it when no request is pending.
    pub fn close(&mut self, now: Instant) {
        self.now = now;
        self.stack.close(now);
    }

    /// Whether nothing is left to do for an orderly end.
    pub fn is_closed(&self) -> bool {
        self.stack.is_closed()
    }

    /// The queue that orders the commands of the disk; without one they start in the scheduler's order.
    pub fn order(&self) -> Option<OrderView> {
        self.stack.layer::<PositionQueue>().map(PositionQueue::view)
    }

    /// Whether the drive file of the order agrees with the disk, if that has changed since the last call.
    pub fn poll_order_change(&mut self) -> Option<MapState> {
        self.stack.layer_mut::<PositionQueue>()?.poll_change()
    }

    /// The disk.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The scheduler.
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Number of pending requests.
    pub fn outstanding(&self) -> usize {
        self.requests.len() + self.ready.len()
    }

    /// Takes a client's request.
    pub fn submit(&mut self, now: Instant, client: u64, operation: Operation, ticket: T) {
        self.now = now;
        let (kind, content) = match self.admit(operation) {
            Ok(Some(admitted)) => admitted,
            Ok(None) => return self.ready.push_back(Answered { ticket, result: Ok(Outcome::Done) }),
            Err(error) => return self.ready.push_back(Answered { ticket, result: Err(error) }),
        };
        let number = self.requests.insert(NodeRequest { ticket, kind, content }) as u64;
        self.streams.submit(now, Request { ticket: number, client, kind });
    }

    /// The scheduler's request for an operation; none for a prefetch, which is only a hint.
    fn admit(&self, operation: Operation) -> Result<Option<(RequestKind, Content)>, BlockError> {
        let mut content = Content::None;
        let kind = match operation {
            Operation::Read { offset, bytes, fua } => RequestKind::Read { offset, bytes: bytes.into(), fua },
            Operation::Write { offset, data, fua } => {
                let bytes = data.len() as u64;
                content = Content::Written(data);
                RequestKind::Write { offset, bytes, fua }
            }
            Operation::WriteZeroes { offset, bytes, may_trim, fua } => {
                RequestKind::Zero { offset, bytes, may_trim, fua }
            }
            Operation::Trim { offset, bytes } => RequestKind::Trim { offset, bytes },
            Operation::Allocation { offset, bytes } => RequestKind::BlockStatus { offset, bytes },
            Operation::Prefetch { offset, bytes } => return self.within(offset, bytes).map(|()| None),
            Operation::Flush => return Ok(Some((RequestKind::Flush, content))),
        };
        if self.shape.read_only && !matches!(kind, RequestKind::Read { .. } | RequestKind::BlockStatus { .. })
        {
            return Err(BlockError::ReadOnly);
        }
        let (offset, bytes) = kind.run();
        self.within(offset, bytes).map(|()| Some((kind, content)))
    }

    /// Checks that a run is within the disk and in whole blocks.
    fn within(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        let block = u64::from(self.shape.block_bytes);
        let is_whole = bytes > 0 && offset.is_multiple_of(block) && bytes.is_multiple_of(block);
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= self.shape.bytes);
        if is_whole && is_inside { Ok(()) } else { Err(BlockError::Invalid) }
    }

    /// Reports the end of a command of the disk.
    pub fn end(&mut self, now: Instant, command: Command, result: Result<Ended, BlockError>) {
        self.now = now;
        self.stack.end(now, command.id, result);
    }

    /// Handles the end of a command of the scheduler.
    fn finish(&mut self, id: u32, end: CommandEnd) {
        let result = end.map(|ended| {
            let content = match ended {
                Ended::Done => return,
                Ended::Left => Content::Left,
                Ended::BlockStatus(found) => Content::Found(found),
            };
            let number = self.streams.ticket_of(id).expect("only a request has such an end");
            self.requests[number as usize].content = content;
        });
        self.streams.handle_end(self.now, id, result);
    }

    /// Does the work of the scheduler and of the layers that is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.streams.handle_timeout(now);
        self.stack.wake(now);
    }

    /// When to call [`handle_timeout`](NodeCore::handle_timeout) next. Any other call can change this time. `None` if nothing is due
    /// later.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.streams.poll_timeout().into_iter().chain(self.stack.poll_timeout()).min()
    }

    /// Sets a client's guaranteed rate and response time ([`Streams::set_guarantee`]).
    pub fn set_guarantee(&mut self, client: u64, guarantee: Guarantee) {
        self.streams.set_guarantee(client, guarantee);
    }

    /// Forgets a disconnected client. Its requests are still answered.
    pub fn forget(&mut self, now: Instant, client: u64) {
        self.now = now;
        self.streams.forget(now, client);
    }

    /// The next action for the owner. Call it after each other call, until it returns none.
    pub fn poll_action(&mut self) -> Option<Action<T>> {
        if let Some(answered) = self.ready.pop_front() {
            return Some(Action::Answer(answered));
        }
        loop {
            while let Some(action) = self.streams.poll_action() {
                match action {
                    streams::Action::CopyIn { ticket, from, piece } => self.copy_in(ticket, from, piece),
                    streams::Action::Answer(answer) => return Some(Action::Answer(self.answer(answer))),
                    streams::Action::Start(command) if self.stack.is_empty() => {
                        return Some(Action::Start(command));
                    }
                    streams::Action::Start(command) => self.stack.submit(self.now, command),
                }
            }
            if let Some((id, end)) = self.stack.poll_end() {
                self.finish(id, end);
            } else if !self.stack.wake_after_arrivals(self.now) {
                return self.stack.poll_start().map(Action::Start);
            }
        }
    }

    fn copy_in(&mut self, ticket: u64, from: u64, piece: streams::Piece) {
        let (at, from, bytes) = (piece.at as usize, from as usize, piece.bytes as usize);
        let data = &self.requests[ticket as usize].written_data()[from..from + bytes];
        self.memory[at..at + bytes].copy_from_slice(data);
    }

    fn answer(&mut self, Answer { ticket: number, result }: Answer) -> Answered<T> {
        let NodeRequest { ticket, kind, content } = self.requests.remove(number as usize);
        let result = match (result, kind, content) {
            (Ok(streams::Outcome::Staged(pieces)), RequestKind::Read { offset, bytes, .. }, _) => {
                Ok(Outcome::Read { offset, bytes, data: ReadData::Staged(pieces) })
            }
            (Ok(_), RequestKind::Read { offset, bytes, .. }, Content::Buffer(buffer)) => {
                Ok(Outcome::Read { offset, bytes, data: ReadData::Buffer(buffer) })
            }
            (Ok(_), RequestKind::Read { offset, bytes, .. }, _) => {
                Ok(Outcome::Read { offset, bytes, data: ReadData::Left })
            }
            (Ok(_), RequestKind::BlockStatus { .. }, Content::Found(found)) => {
                Ok(Outcome::BlockStatus(found))
            }
            (result, _, content) => {
                if let Content::Buffer(buffer) = content {
                    self.pool.give(buffer);
                }
                result.map(|_| Outcome::Done)
            }
        };
        Answered { ticket, result }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn core(read_only: bool) -> NodeCore<u64> {
        let shape = Shape { bytes: 1 << 20, block_bytes: 4096, read_only };
        let config = Config { scheduling: false, ..Config::default() };
        NodeCore::new(config, shape).expect("the defaults suit")
    }

    fn answered(core: &mut NodeCore<u64>) -> (u64, Result<Outcome, BlockError>) {
        match core.poll_action() {
            Some(Action::Answer(Answered { ticket, result })) => (ticket, result),
            other => panic!("{other:?} is no answer"),
        }
    }

    fn started(core: &mut NodeCore<u64>) -> Command {
        match core.poll_action() {
            Some(Action::Start(command)) => command,
            other => panic!("{other:?} is no command"),
        }
    }

    #[test]
    fn invalid_range_or_change_of_a_read_only_disk_is_rejected() {
        let (mut core, mut fixed) = (core(false), core(true));
        let read = |offset, bytes| Operation::Read { offset, bytes, fua: false };
        let wrong = [read(0, 512), read(512, 4096), read(1 << 20, 4096), read(!4095, 8192), read(0, 0)];
        for operation in wrong {
            core.submit(NOW, 1, operation, 5);
            assert!(matches!(answered(&mut core), (5, Err(BlockError::Invalid))));
        }
        fixed.submit(NOW, 1, Operation::Trim { offset: 0, bytes: 4096 }, 6);
        assert!(matches!(answered(&mut fixed), (6, Err(BlockError::ReadOnly))));
        fixed.submit(NOW, 1, read(0, 4096), 7);
        assert_eq!(started(&mut fixed).kind, RequestKind::Read { offset: 0, bytes: 4096, fua: false });
        assert_eq!((core.outstanding(), fixed.outstanding()), (0, 1));
    }

    #[test]
    fn data_is_aligned_for_device_transfers() {
        let mut core = core(false);
        core.submit(NOW, 1, Operation::Write { offset: 4096, data: vec![7; 8192], fua: true }, 1);
        let write = started(&mut core);
        assert_eq!(core.data(&write), [7; 8192]);
        let data = core.aligned_data(&write);
        assert!(data == [7; 8192] && (data.as_ptr() as usize).is_multiple_of(4096));
        core.end(NOW, write, Ok(Ended::Done));
        assert!(matches!(answered(&mut core), (1, Ok(Outcome::Done))));

        core.submit(NOW, 1, Operation::Read { offset: 0, bytes: 8192, fua: true }, 2);
        let read = started(&mut core);
        assert!(read.is_for_request());
        let buffer = core.buffer(&read);
        assert!((buffer.as_ptr() as usize).is_multiple_of(4096));
        buffer.fill(9);
        core.end(NOW, read, Ok(Ended::Done));
        let (2, Ok(Outcome::Read { offset: 0, bytes: 8192, data })) = answered(&mut core) else {
            panic!("the read is answered")
        };
        let mut into = [0; 8192];
        assert!(core.fill(&data, &mut into) && into == [9; 8192]);
        core.release(data);
        assert!(core.poll_action().is_none() && core.outstanding() == 0);
    }

    #[test]
    fn disk_failure_is_returned_to_the_requester() {
        let mut core = core(false);
        for error in [BlockError::Medium, BlockError::Dead, BlockError::NoSpace, BlockError::ReadOnly] {
            core.submit(NOW, 1, Operation::Flush, 3);
            let flush = started(&mut core);
            core.end(NOW, flush, Err(error));
            let (ticket, result) = answered(&mut core);
            assert_eq!((ticket, result.err()), (3, Some(error)));
        }
        core.submit(NOW, 1, Operation::Allocation { offset: 0, bytes: 4096 }, 4);
        let query = started(&mut core);
        assert_eq!(query.kind, RequestKind::BlockStatus { offset: 0, bytes: 4096 });
        let found = vec![StatusExtent { bytes: 4096, hole: true }];
        core.end(NOW, query, Ok(Ended::BlockStatus(found.clone())));
        let (4, Ok(Outcome::BlockStatus(reported))) = answered(&mut core) else {
            panic!("the extents are reported")
        };
        assert_eq!(reported, found);
    }
}
