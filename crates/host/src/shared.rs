//! A disk as threads share it: its machine, who waits for what, and how late they were answered.
//!
//! A call from any thread submits at once and takes what is done by then, so that a disk that takes no time needs no second
//! thread. Callers are answered when the disk is not locked.

use crate::connection::Link;
use crate::disk::{Answered, Emulator, Outcome};
use crate::{Answer, BlockError, Clock, Lateness, Operation};
use headstack_model::Nanos;
use headstack_policy::streams::Command;
use headstack_workload::VolumeInfo;
use rustix::event::{EventfdFlags, eventfd};
use slab::Slab;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
#[allow(clippy::disallowed_types, reason = "threads share a disk")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Somebody who waits for an operation.
pub trait Caller: Send {
    /// The operation is over. Called once, from any thread.
    fn answer(self: Box<Self>, result: Result<Answer, BlockError>);
}

/// An answer on its way to a caller.
pub(crate) struct Reply {
    caller: Box<dyn Caller>,
    due: Nanos,
    result: Result<Answer, BlockError>,
}

/// Who waits for an operation.
pub(crate) enum RequestOrigin {
    Caller(Box<dyn Caller>),
    Connection(Answerable),
    /// A node in front of the disk.
    Node(Arc<Ends>, Command),
}

impl RequestOrigin {
    /// Tells one that is no connection that nothing is done for it.
    fn refuse(self, error: BlockError) {
        match self {
            RequestOrigin::Caller(caller) => caller.answer(Err(error)),
            RequestOrigin::Node(ends, command) => ends.push(command, Err(error)),
            RequestOrigin::Connection(_) => unreachable!("those come by the disk's own thread"),
        }
    }
}

/// Commands of a node that have ended, until its thread takes them.
#[allow(clippy::disallowed_types, reason = "a disk's thread tells a node's")]
#[derive(Debug)]
pub(crate) struct Ends {
    ended: Mutex<Vec<(Command, Result<Outcome, BlockError>)>>,
    /// Wakes the node's thread.
    pub(crate) wake: OwnedFd,
}

#[allow(clippy::disallowed_types, reason = "a disk's thread tells a node's")]
impl Ends {
    pub(crate) fn new() -> io::Result<Ends> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Ends { ended: Mutex::new(Vec::new()), wake })
    }

    fn push(&self, command: Command, result: Result<Outcome, BlockError>) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.push((command, result));
        let is_first = ended.len() == 1;
        drop(ended);
        if is_first {
            // It only fails when the counter is full, and then the thread is awake.
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        }
    }

    /// Takes all of them, in exchange for an empty list.
    pub(crate) fn take_ended(&self, into: &mut Vec<(Command, Result<Outcome, BlockError>)>) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *ended, into);
    }
}

/// A request over a connection of the disk's own thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answerable {
    /// The connection's place and number; the place is its own until all that it asked for is answered, unless all connections are
    /// dropped.
    pub(crate) link: usize,
    pub(crate) number: u64,
    /// The session's handle for the request.
    pub(crate) handle: u64,
    /// What it costs the disk.
    pub(crate) cost: u64,
}

/// What only one thread at a time may touch.
pub(crate) struct State {
    pub(crate) emulator: Emulator,
    origins: Slab<RequestOrigin>,
    /// What is over and belongs to connections, which the disk's own thread has.
    pub(crate) over: Vec<(Answerable, Nanos, Result<Outcome, BlockError>)>,
    /// Connections whose clients have chosen the disk.
    pub(crate) arrived: Vec<Link>,
    /// The deadline up to which the disk's own thread sleeps, or will as soon as it has told what is over: who brings a nearer
    /// one wakes it.
    pub(crate) asleep_until: Nanos,
    pub(crate) stopping: bool,
    /// The disk's own thread failed, perhaps in the middle of something: the machine is turned no more.
    pub(crate) broken: bool,
}

impl State {
    pub(crate) fn submit(&mut self, now: Nanos, volume: u32, operation: Operation, origin: RequestOrigin) {
        let ticket = self.origins.insert(origin) as u64;
        self.emulator.submit(now, volume, operation, ticket);
    }

    /// Takes what is over; answers may come at once.
    pub(crate) fn collect(&mut self, replies: &mut Vec<Reply>) {
        while let Some(Answered { ticket, at, result }) = self.emulator.poll_answer() {
            match self.origins.remove(ticket as usize) {
                RequestOrigin::Connection(answerable) => self.over.push((answerable, at, result)),
                RequestOrigin::Node(ends, command) => ends.push(command, result),
                RequestOrigin::Caller(caller) => {
                    let result = result.and_then(|outcome| self.with_bytes(outcome));
                    replies.push(Reply { caller, due: at, result });
                }
            }
        }
    }

    /// Takes nothing more; all that is under way fails.
    pub(crate) fn break_down(&mut self, now: Nanos, replies: &mut Vec<Reply>) {
        (self.stopping, self.broken) = (true, true);
        self.arrived.clear();
        self.over.clear();
        for origin in self.origins.drain() {
            match origin {
                RequestOrigin::Caller(caller) => {
                    replies.push(Reply { caller, due: now, result: Err(BlockError::Dead) });
                }
                RequestOrigin::Node(ends, command) => ends.push(command, Err(BlockError::Dead)),
                RequestOrigin::Connection(_) => {}
            }
        }
    }

    fn with_bytes(&self, outcome: Outcome) -> Result<Answer, BlockError> {
        match outcome {
            Outcome::Done => Ok(Answer::Done),
            Outcome::Allocation(extents) => Ok(Answer::Allocation(extents)),
            Outcome::Read { volume, offset, bytes } => {
                let mut data = vec![0; bytes as usize];
                self.emulator.read(volume, offset, &mut data)?;
                Ok(Answer::Data(data))
            }
        }
    }
}

/// A disk and what its threads need of it.
#[allow(clippy::disallowed_types, reason = "threads share a disk")]
pub(crate) struct Shared {
    state: Mutex<State>,
    lateness: Mutex<Lateness>,
    /// Wakes the disk's own thread.
    pub(crate) wake: OwnedFd,
    pub(crate) clock: Clock,
    volumes: Vec<VolumeInfo>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Shared").field("volumes", &self.volumes).finish_non_exhaustive()
    }
}

impl Shared {
    #[allow(clippy::disallowed_types, reason = "threads share a disk")]
    pub(crate) fn new(emulator: Emulator, clock: Clock) -> io::Result<Shared> {
        let volumes = emulator.volumes().iter().map(|volume| volume.info().clone()).collect();
        let state = State {
            emulator,
            origins: Slab::new(),
            over: Vec::new(),
            arrived: Vec::new(),
            asleep_until: Nanos::ZERO,
            stopping: false,
            broken: false,
        };
        Ok(Shared {
            state: Mutex::new(state),
            lateness: Mutex::new(Lateness::new()),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            clock,
            volumes,
        })
    }

    /// A panic elsewhere leaves the state as it was between two calls: it is used on, so that clients can be told.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lateness(&self) -> MutexGuard<'_, Lateness> {
        self.lateness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wake(&self) {
        // It only fails when the counter is full, and then the thread is awake.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Answers callers and notes how late they were told; when the first was, if any.
    pub(crate) fn answer(&self, replies: &mut Vec<Reply>) -> Option<Nanos> {
        let mut first = None;
        for Reply { caller, due, result } in replies.drain(..) {
            caller.answer(result);
            let reported = self.record_lateness([due]);
            first.get_or_insert(reported);
        }
        first
    }

    /// Notes how late those were told by now whose requests were done at these times; the time now.
    pub(crate) fn record_lateness(&self, dues: impl IntoIterator<Item = Nanos>) -> Nanos {
        let now = self.clock.now();
        let mut lateness = self.lateness();
        dues.into_iter().for_each(|due| lateness.record(self.clock.real(now.since(due))));
        now
    }
}

/// A way to a disk, for any thread.
#[derive(Clone, Debug)]
pub struct DiskHandle(pub(crate) Arc<Shared>);

impl DiskHandle {
    /// The volumes, in the order of their numbers.
    pub fn volumes(&self) -> &[VolumeInfo] {
        &self.0.volumes
    }

    /// The disk's clock.
    pub fn clock(&self) -> Clock {
        self.0.clock
    }

    /// Asks a volume for an operation; `caller` is answered when the model is done with it, perhaps before this returns.
    pub fn submit(&self, volume: u32, operation: Operation, caller: Box<dyn Caller>) {
        self.submit_all([(volume, operation, RequestOrigin::Caller(caller))]);
    }

    /// Asks for operations, all at one time.
    pub(crate) fn submit_all(&self, all: impl IntoIterator<Item = (u32, Operation, RequestOrigin)>) {
        let mut replies = Vec::new();
        let mut state = self.0.lock();
        if state.stopping {
            let error = if state.broken { BlockError::Dead } else { BlockError::ShuttingDown };
            drop(state);
            return all.into_iter().for_each(|(_, _, origin)| origin.refuse(error));
        }
        let now = self.0.clock.now();
        for (volume, operation, origin) in all {
            state.submit(now, volume, operation, origin);
        }
        state.collect(&mut replies);
        let next = state.emulator.poll_timeout().unwrap_or(Nanos::MAX);
        let is_wanted = next < state.asleep_until || !state.over.is_empty();
        drop(state);
        if is_wanted {
            self.0.wake();
        }
        self.0.answer(&mut replies);
    }

    /// Reads what was written last, without taking time.
    pub(crate) fn read(&self, volume: u32, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.0.lock().emulator.read(volume, offset, into)
    }

    /// Looks at the machine as it is now. The disk stands still meanwhile: be brief.
    pub fn inspect<R>(&self, look: impl FnOnce(&Emulator) -> R) -> R {
        let mut state = self.0.lock();
        if !state.broken {
            let now = self.0.clock.now();
            state.emulator.handle_timeout(now);
        }
        look(&state.emulator)
    }

    /// How late answers were so far.
    pub fn lateness(&self) -> Lateness {
        self.0.lateness().clone()
    }

    /// Cuts the disk's power now.
    pub fn cut_power(&self) {
        let mut state = self.0.lock();
        if !state.broken {
            let now = self.0.clock.now();
            state.emulator.cut_power(now);
        }
        drop(state);
        self.0.wake();
    }

    /// Gives the disk's thread a connection, which is closed where that thread ends.
    pub(crate) fn adopt(&self, link: Link) {
        let mut state = self.0.lock();
        if !state.stopping {
            state.arrived.push(link);
        }
        drop(state);
        self.0.wake();
    }
}
