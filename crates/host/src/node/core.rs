//! A disk's node without its clock: the stream scheduler and all bytes that it speaks of.
//!
//! It is told of requests and of ended commands, and asked for [`Action`]s until there is none. Commands are carried out by
//! whoever has the disk, who reads into [`NodeCore::room`] and writes from [`NodeCore::data`]; these stay where they are until
//! the command's end is told. Bytes that were read are fetched with [`NodeCore::fill`] before the next action is asked for.

mod data;

use super::bytes::{Pool, memory};
use super::messages::{Action, Answered, Command, Ended, Outcome, Shape, Work};
use crate::{BlockError, Operation, StatusExtent};
use headstack_model::Nanos;
use headstack_policy::streams::{
    self, Answer, Boundaries, Config, ConfigError, DiskError, Guarantee, Pieces, Request, RequestKind,
    Streams, Transfer, TransferBuffer,
};
use memmap2::MmapMut;
use slab::Slab;
use std::collections::VecDeque;
use std::io;

/// Why there is no node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A key of its configuration has a value that it cannot have.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The stream memory cannot be had.
    #[error("no {bytes} bytes of stream memory: {error}")]
    Memory {
        /// How much it was to be.
        bytes: u64,
        /// What the system says.
        error: io::Error,
    },
}

/// The node of one disk.
#[derive(Debug)]
pub struct NodeCore {
    streams: Streams,
    shape: Shape,
    /// The stream memory.
    memory: MmapMut,
    /// What is kept of each request, by the number that the scheduler knows it by.
    requests: Slab<NodeRequest>,
    /// Commands that the disk has, by id.
    commands: Vec<Option<ActiveCommand>>,
    /// Answers that the scheduler has no part in.
    ready: VecDeque<Answered>,
    /// The read that was answered last: its request, and where its bytes are.
    last: Option<(usize, Option<Pieces>)>,
    pool: Pool,
}

/// A request until it is answered.
#[derive(Debug)]
struct NodeRequest {
    ticket: u64,
    kind: RequestKind,
    content: Content,
}

impl NodeRequest {
    /// What a write brought.
    fn written_data(&self) -> &[u8] {
        match &self.content {
            Content::Written(data) => data,
            Content::Room(room) => room,
            _ => panic!("it brought none"),
        }
    }
}

#[derive(Debug)]
enum Content {
    None,
    /// Bytes to be written, as they came.
    Written(Vec<u8>),
    /// Bytes to be written, or that were read, where a device can transfer them.
    Room(MmapMut),
    /// Bytes that were read are with the disk.
    Left,
    Zero {
        may_trim: bool,
        fua: bool,
    },
    Trim,
    BlockStatus,
    Found(Vec<StatusExtent>),
}

#[derive(Clone, Copy, Debug)]
struct ActiveCommand {
    place: TransferBuffer,
    offset: u64,
    bytes: u64,
}

impl NodeCore {
    /// A node for a disk.
    ///
    /// *Errors:* a key of the configuration is out of its range, or asks for more memory than there is.
    pub fn new(config: Config, shape: Shape) -> Result<NodeCore, NodeError> {
        let most = usize::try_from(config.direct_bytes).unwrap_or(usize::MAX);
        let streams = Streams::new(config, shape.bytes)?;
        let bytes = streams.memory_bytes();
        Ok(NodeCore {
            memory: memory(bytes).map_err(|error| NodeError::Memory { bytes, error })?,
            streams,
            shape,
            requests: Slab::new(),
            commands: Vec::new(),
            ready: VecDeque::new(),
            last: None,
            pool: Pool::new(most),
        })
    }

    /// Has requests of streams end where these say.
    pub fn set_boundaries(&mut self, boundaries: Box<dyn Boundaries>) {
        self.streams.set_boundaries(boundaries);
    }

    /// The disk.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The scheduler, to look at.
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Requests that are not answered yet.
    pub fn outstanding(&self) -> usize {
        self.requests.len() + self.ready.len()
    }

    /// A client asks. The number is of the asker's choice; no two that are under way have the same.
    pub fn submit(&mut self, now: Nanos, client: u64, operation: Operation, ticket: u64) {
        self.release();
        let (kind, content) = match self.admit(operation) {
            Ok(Some(taken)) => taken,
            Ok(None) => return self.ready.push_back(Answered { ticket, result: Ok(Outcome::Done) }),
            Err(error) => return self.ready.push_back(Answered { ticket, result: Err(error) }),
        };
        let number = self.requests.insert(NodeRequest { ticket, kind, content }) as u64;
        self.streams.submit(now, Request { ticket: number, client, kind });
    }

    /// What the scheduler is asked for an operation; nothing for one that is a hint alone.
    fn admit(&self, operation: Operation) -> Result<Option<(RequestKind, Content)>, BlockError> {
        Ok(Some(match operation {
            Operation::Read { offset, bytes, fua } => {
                let bytes = self.within(offset, u64::from(bytes))?;
                (RequestKind::Read { offset, bytes, fua }, Content::None)
            }
            Operation::Write { offset, data, fua } => {
                let bytes = self.changed(offset, data.len() as u64)?;
                (RequestKind::Write { offset, bytes, fua }, Content::Written(data))
            }
            Operation::WriteZeroes { offset, bytes, may_trim, fua } => {
                let bytes = self.changed(offset, bytes)?;
                (RequestKind::Change { offset, bytes }, Content::Zero { may_trim, fua })
            }
            Operation::Trim { offset, bytes } => {
                let bytes = self.changed(offset, bytes)?;
                (RequestKind::Change { offset, bytes }, Content::Trim)
            }
            Operation::Allocation { offset, bytes } => {
                let bytes = self.within(offset, bytes)?;
                (RequestKind::Query { offset, bytes }, Content::BlockStatus)
            }
            Operation::Prefetch { offset, bytes } => {
                self.within(offset, bytes)?;
                return Ok(None);
            }
            Operation::Flush => (RequestKind::Flush, Content::None),
        }))
    }

    /// The length of a run of blocks of the disk.
    fn within(&self, offset: u64, bytes: u64) -> Result<u64, BlockError> {
        let block = u64::from(self.shape.block_bytes);
        let is_whole = bytes > 0 && offset.is_multiple_of(block) && bytes.is_multiple_of(block);
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= self.shape.bytes);
        if is_whole && is_inside { Ok(bytes) } else { Err(BlockError::Invalid) }
    }

    fn changed(&self, offset: u64, bytes: u64) -> Result<u64, BlockError> {
        if self.shape.read_only { Err(BlockError::ReadOnly) } else { self.within(offset, bytes) }
    }

    /// A command of the disk has ended.
    pub fn end(&mut self, now: Nanos, id: u32, result: Result<Ended, BlockError>) {
        self.release();
        let ActiveCommand { place, .. } = self.commands[id as usize].take().expect("a command ends once");
        let result = result.map_err(disk_error).map(|ended| match (ended, place) {
            (Ended::Done, _) => {}
            (Ended::Left, TransferBuffer::Request(number)) => {
                self.requests[number as usize].content = Content::Left
            }
            (Ended::Allocation(found), TransferBuffer::Request(number)) => {
                self.requests[number as usize].content = Content::Found(found);
            }
            (ended, place) => panic!("a command for {place:?} does not end by {ended:?}"),
        });
        self.streams.handle_end(now, id, result);
    }

    /// It is that late.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.release();
        self.streams.handle_timeout(now);
    }

    /// When to come back with [`handle_timeout`](NodeCore::handle_timeout), if nothing else happens before.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.streams.poll_timeout()
    }

    /// Promises a client something ([`Streams::set_guarantee`]).
    pub fn set_guarantee(&mut self, client: u64, guarantee: Guarantee) {
        self.streams.set_guarantee(client, guarantee);
    }

    /// A client is gone. Answers to what it asked still come.
    pub fn forget(&mut self, now: Nanos, client: u64) {
        self.release();
        self.streams.forget(now, client);
    }

    /// What is to be done next. To be asked until there is nothing more, after each of the calls that tell something.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.release();
        if let Some(answered) = self.ready.pop_front() {
            return Some(Action::Answer(answered));
        }
        loop {
            match self.streams.poll_action()? {
                streams::Action::CopyIn { ticket, from, piece } => self.keep(ticket, from, piece),
                streams::Action::Start(command) => return Some(Action::Start(self.start(command))),
                streams::Action::Answer(answer) => return Some(Action::Answer(self.answer(answer))),
            }
        }
    }

    fn keep(&mut self, ticket: u64, from: u64, piece: streams::Piece) {
        let (at, from, bytes) = (piece.at as usize, from as usize, piece.bytes as usize);
        let data = &self.requests[ticket as usize].written_data()[from..from + bytes];
        self.memory[at..at + bytes].copy_from_slice(data);
    }

    fn start(&mut self, command: streams::Command) -> Command {
        let streams::Command { id, transfer, offset, bytes, place } = command;
        let slot = id as usize;
        if self.commands.len() <= slot {
            self.commands.resize_with(slot + 1, || None);
        }
        assert!(self.commands[slot].is_none(), "a command's number is its own until it ends");
        self.commands[slot] = Some(ActiveCommand { place, offset, bytes });
        let work = match transfer {
            Transfer::Read { fua } => Work::Read { offset, bytes, fua },
            Transfer::Write { fua } => Work::Write { offset, bytes, fua },
            Transfer::Flush => Work::Flush,
            Transfer::Own => self.own(place, offset, bytes),
        };
        Command { id, work }
    }

    /// What a request asks itself.
    fn own(&self, place: TransferBuffer, offset: u64, bytes: u64) -> Work {
        let TransferBuffer::Request(number) = place else { panic!("it is some request's own") };
        match self.requests[number as usize].content {
            Content::Zero { may_trim, fua } => Work::Zero { offset, bytes, may_trim, fua },
            Content::Trim => Work::Trim { offset, bytes },
            Content::BlockStatus => Work::BlockStatus { offset, bytes },
            _ => panic!("transfers are not a request's own"),
        }
    }

    fn answer(&mut self, Answer { ticket: number, result }: Answer) -> Answered {
        let number = number as usize;
        let NodeRequest { ticket, kind, content } = &mut self.requests[number];
        let (ticket, mut staged) = (*ticket, None);
        let result = result.map_err(block_error).map(|outcome| match (*kind, outcome) {
            (RequestKind::Read { offset, bytes, .. }, outcome) => {
                if let streams::Outcome::Staged(pieces) = outcome {
                    staged = Some(pieces);
                }
                Outcome::Read { offset, bytes: bytes as u32 }
            }
            (RequestKind::Query { .. }, _) => match std::mem::replace(content, Content::None) {
                Content::Found(found) => Outcome::Allocation(found),
                _ => panic!("a look has found something"),
            },
            _ => Outcome::Done,
        });
        self.last = Some((number, staged));
        Answered { ticket, result }
    }

    /// Gives back what the request that was answered last had.
    fn release(&mut self) {
        if let Some((number, _)) = self.last.take()
            && let Content::Room(room) = self.requests.remove(number).content
        {
            self.pool.give(room);
        }
    }

    fn active_command(&self, id: u32) -> ActiveCommand {
        self.commands[id as usize].expect("it has not ended")
    }
}

/// The first byte that is asked for.
fn first(kind: RequestKind) -> u64 {
    match kind {
        RequestKind::Read { offset, .. } | RequestKind::Write { offset, .. } => offset,
        RequestKind::Change { offset, .. } | RequestKind::Query { offset, .. } => offset,
        RequestKind::Flush => 0,
    }
}

/// What a scheduler is told of an error.
fn disk_error(error: BlockError) -> DiskError {
    match error {
        BlockError::Invalid | BlockError::ReadOnly => DiskError::Refused,
        BlockError::Medium => DiskError::Medium,
        BlockError::Dead | BlockError::ShuttingDown => DiskError::Dead,
        BlockError::NoSpace => DiskError::NoSpace,
    }
}

/// What a client is told of an error that a scheduler reports.
fn block_error(error: DiskError) -> BlockError {
    match error {
        DiskError::Medium => BlockError::Medium,
        DiskError::Dead => BlockError::Dead,
        DiskError::NoSpace => BlockError::NoSpace,
        DiskError::Refused => BlockError::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos::ZERO;

    fn core(read_only: bool) -> NodeCore {
        let shape = Shape { bytes: 1 << 20, block_bytes: 4096, read_only };
        let config = Config { scheduling: false, ..Config::default() };
        NodeCore::new(config, shape).expect("the defaults suit")
    }

    fn answered(core: &mut NodeCore) -> Answered {
        match core.poll_action() {
            Some(Action::Answer(answered)) => answered,
            other => panic!("{other:?} is no answer"),
        }
    }

    fn started(core: &mut NodeCore) -> Command {
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
            assert_eq!(answered(&mut core), Answered { ticket: 5, result: Err(BlockError::Invalid) });
        }
        fixed.submit(NOW, 1, Operation::Trim { offset: 0, bytes: 4096 }, 6);
        assert_eq!(answered(&mut fixed).result, Err(BlockError::ReadOnly));
        fixed.submit(NOW, 1, read(0, 4096), 7);
        assert_eq!(started(&mut fixed).work, Work::Read { offset: 0, bytes: 4096, fua: false });
        assert_eq!((core.outstanding(), fixed.outstanding()), (0, 1));
    }

    #[test]
    fn data_is_aligned_for_device_transfers() {
        let mut core = core(false);
        core.submit(NOW, 1, Operation::Write { offset: 4096, data: vec![7; 8192], fua: true }, 1);
        let write = started(&mut core);
        assert_eq!(core.data(write.id), [7; 8192]);
        let data = core.aligned_data(write.id);
        assert!(data == [7; 8192] && (data.as_ptr() as usize).is_multiple_of(4096));
        core.end(NOW, write.id, Ok(Ended::Done));
        assert_eq!(answered(&mut core), Answered { ticket: 1, result: Ok(Outcome::Done) });

        core.submit(NOW, 1, Operation::Read { offset: 0, bytes: 8192, fua: true }, 2);
        let read = started(&mut core);
        assert!(core.is_for_request(read.id));
        let room = core.room(read.id);
        assert!((room.as_ptr() as usize).is_multiple_of(4096));
        room.fill(9);
        core.end(NOW, read.id, Ok(Ended::Done));
        let over = Answered { ticket: 2, result: Ok(Outcome::Read { offset: 0, bytes: 8192 }) };
        assert_eq!(answered(&mut core), over);
        let mut into = [0; 8192];
        assert!(core.fill(&mut into) && into == [9; 8192]);
        assert_eq!((core.poll_action(), core.outstanding()), (None, 0));
    }

    #[test]
    fn disk_failure_is_returned_to_the_requester() {
        let mut core = core(false);
        for error in [BlockError::Medium, BlockError::Dead, BlockError::NoSpace] {
            core.submit(NOW, 1, Operation::Flush, 3);
            let Command { id, .. } = started(&mut core);
            core.end(NOW, id, Err(error));
            assert_eq!(answered(&mut core), Answered { ticket: 3, result: Err(error) });
        }
        core.submit(NOW, 1, Operation::Allocation { offset: 0, bytes: 4096 }, 4);
        let Command { id, work } = started(&mut core);
        assert_eq!(work, Work::BlockStatus { offset: 0, bytes: 4096 });
        let found = vec![StatusExtent { bytes: 4096, hole: true }];
        core.end(NOW, id, Ok(Ended::Allocation(found.clone())));
        assert_eq!(answered(&mut core).result, Ok(Outcome::Allocation(found)));
    }
}
