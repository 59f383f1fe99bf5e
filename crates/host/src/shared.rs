//! An emulated disk shared by threads: its machine, the origins of its requests, and the lateness of its answers.
//!
//! A call from any thread submits at once and collects what is done by then, so that a disk that takes no time needs no second
//! thread. Callers are answered while the disk is not locked.

use crate::disk::{Answered, Emulator, LiveEvent, Outcome};
use crate::event_loop::{self, Shared};
use crate::links::Answerable;
use crate::{Answer, BlockError, Clock, Lateness, Operation};
use headstack_model::Instant;
use headstack_streams::streams::Command;
use headstack_workload::VolumeInfo;
use slab::Slab;
use std::io;
use std::os::fd::OwnedFd;
#[allow(clippy::disallowed_types, reason = "threads share a disk")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError};

/// The caller of an operation, who gets its answer.
pub trait Caller: Send {
    /// Called once, from any thread, when the operation is over.
    fn answer(self: Box<Self>, result: Result<Answer, BlockError>);
}

pub(crate) struct Reply {
    caller: Box<dyn Caller>,
    due: Instant,
    result: Result<Answer, BlockError>,
}

pub(crate) enum RequestOrigin {
    Caller(Box<dyn Caller>),
    Connection(Answerable),
    Node(Arc<Ends>, Command),
}

impl RequestOrigin {
    /// Refuses an operation of a caller that is no connection.
    fn refuse(self, error: BlockError) {
        match self {
            RequestOrigin::Caller(caller) => caller.answer(Err(error)),
            RequestOrigin::Node(ends, command) => ends.push(command, Err(error)),
            RequestOrigin::Connection(_) => {
                unreachable!("the disk's own thread submits what connections request")
            }
        }
    }
}

/// Ended commands of a node, until its thread takes them.
#[allow(clippy::disallowed_types, reason = "a disk's thread tells a node's")]
#[derive(Debug)]
pub(crate) struct Ends {
    ended: Mutex<Vec<(Command, Result<Outcome, BlockError>)>>,
    pub(crate) wake: OwnedFd,
}

#[allow(clippy::disallowed_types, reason = "a disk's thread tells a node's")]
impl Ends {
    pub(crate) fn new() -> io::Result<Ends> {
        Ok(Ends { ended: Mutex::new(Vec::new()), wake: event_loop::event_counter()? })
    }

    fn push(&self, command: Command, result: Result<Outcome, BlockError>) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.push((command, result));
        let is_first = ended.len() == 1;
        drop(ended);
        if is_first {
            event_loop::signal(&self.wake);
        }
    }

    /// Takes all ended commands, in exchange for an empty list.
    pub(crate) fn take_ended(&self, into: &mut Vec<(Command, Result<Outcome, BlockError>)>) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *ended, into);
    }
}

/// The state of a disk that its threads share.
pub(crate) struct ServedDisk {
    pub(crate) emulator: Emulator,
    origins: Slab<RequestOrigin>,
    /// Answers to connections, which the disk's own thread serves.
    pub(crate) over: Vec<(Answerable, Instant, Result<Outcome, BlockError>)>,
    /// The deadline up to which the disk's own thread sleeps, or will after sending the answers: a thread that submits a request
    /// with an earlier deadline wakes it.
    pub(crate) asleep_until: Instant,
}

impl ServedDisk {
    pub(crate) fn submit(&mut self, now: Instant, volume: u32, operation: Operation, origin: RequestOrigin) {
        let ticket = self.origins.insert(origin) as u64;
        self.emulator.submit(now, volume, operation, ticket);
    }

    /// Collects completed operations; some answers may be due at once.
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

    pub(crate) fn break_down(&mut self, now: Instant, replies: &mut Vec<Reply>) {
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

/// What threads use of a disk without its lock.
#[allow(clippy::disallowed_types, reason = "threads share a disk")]
#[derive(Debug)]
pub(crate) struct DiskDetails {
    lateness: Mutex<Lateness>,
    volumes: Vec<VolumeInfo>,
}

pub(crate) type DiskShared = Shared<ServedDisk, DiskDetails>;

/// A disk for several threads.
#[allow(clippy::disallowed_types, reason = "threads share a disk")]
pub(crate) fn new(emulator: Emulator, clock: Clock) -> io::Result<DiskShared> {
    let volumes = emulator.volumes().iter().map(|volume| volume.info().clone()).collect();
    let info = DiskDetails { lateness: Mutex::new(Lateness::new()), volumes };
    let (origins, over, asleep_until) = (Slab::new(), Vec::new(), Instant::ZERO);
    Shared::new(ServedDisk { emulator, origins, over, asleep_until }, info, clock)
}

impl DiskShared {
    fn lateness(&self) -> MutexGuard<'_, Lateness> {
        self.info.lateness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers callers and records the lateness; returns when the first was answered, if any.
    pub(crate) fn answer(&self, replies: &mut Vec<Reply>) -> Option<Instant> {
        let mut first = None;
        for Reply { caller, due, result } in replies.drain(..) {
            caller.answer(result);
            let reported = self.record_lateness([due]);
            first.get_or_insert(reported);
        }
        first
    }

    /// Records the lateness of answers with these deadlines; returns the time now.
    pub(crate) fn record_lateness(&self, dues: impl IntoIterator<Item = Instant>) -> Instant {
        let now = self.clock.now();
        let mut lateness = self.lateness();
        dues.into_iter().for_each(|due| lateness.record(self.clock.real(now.since(due))));
        now
    }
}

/// A handle to a disk, for any thread.
#[derive(Clone, Debug)]
pub struct DiskHandle(pub(crate) Arc<DiskShared>);

impl DiskHandle {
    /// The volumes, in the order of their indices.
    pub fn volumes(&self) -> &[VolumeInfo] {
        &self.0.info.volumes
    }

    /// The disk's clock.
    pub fn clock(&self) -> Clock {
        self.0.clock
    }

    /// Submits an operation on a volume; `caller` is answered when the model completes it, perhaps before this returns.
    pub fn submit(&self, volume: u32, operation: Operation, caller: Box<dyn Caller>) {
        self.submit_all([(volume, operation, RequestOrigin::Caller(caller))]);
    }

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
            state.served.submit(now, volume, operation, origin);
        }
        state.served.collect(&mut replies);
        let next = state.served.emulator.poll_timeout().unwrap_or(Instant::MAX);
        let is_wanted = next < state.served.asleep_until || !state.served.over.is_empty();
        drop(state);
        if is_wanted {
            self.0.wake();
        }
        self.0.answer(&mut replies);
    }

    /// Reads the newest data, in no time.
    pub(crate) fn read(&self, volume: u32, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.0.lock().served.emulator.read(volume, offset, into)
    }

    /// Calls `look` with the emulator. The disk waits meanwhile: be brief.
    pub fn inspect<R>(&self, look: impl FnOnce(&Emulator) -> R) -> R {
        let mut state = self.0.lock();
        if !state.broken {
            let now = self.0.clock.now();
            state.served.emulator.handle_timeout(now);
        }
        look(&state.served.emulator)
    }

    /// Calls `look` with the emulator and the events since the last call, as [`Emulator::drain_events`]. The disk waits meanwhile: be
    /// brief.
    pub(crate) fn inspect_events<R>(
        &self,
        events: &mut Vec<LiveEvent>,
        look: impl FnOnce(&Emulator, Instant, u64) -> R,
    ) -> R {
        let mut state = self.0.lock();
        let now = self.0.clock.now();
        if !state.broken {
            state.served.emulator.handle_timeout(now);
        }
        let dropped = state.served.emulator.drain_events(events);
        look(&state.served.emulator, now, dropped)
    }

    /// Calls `change` with the faults that a test has set, and the emulator's places of blocks.
    ///
    /// *Errors:* those of `change`.
    pub fn change_faults<R>(&self, change: impl FnOnce(&mut Emulator) -> R) -> R {
        let result = change(&mut self.0.lock().served.emulator);
        self.0.wake();
        result
    }

    /// Lateness of the answers so far.
    pub fn lateness(&self) -> Lateness {
        self.0.lateness().clone()
    }

    /// Cuts the disk's power now.
    pub fn cut_power(&self) {
        let mut state = self.0.lock();
        if !state.broken {
            let now = self.0.clock.now();
            state.served.emulator.cut_power(now);
        }
        drop(state);
        self.0.wake();
    }
}
