//! A node in real time: the thread of one disk, which has the connections of its clients too.
//!
//! At each wake-up it takes all that came, has the core say what is to be done, gives the disk all new commands at once, and only
//! then sends replies, once a connection.

use super::backend::{Backend, Drive, Ends};
use super::core::NodeCore;
use super::handle::{NodeHandle, Shared, State};
use super::messages::{Action, Answered, Ended, Outcome};
use crate::disk::Kind;
use crate::links::{Links, QueuedRequest as Request};
use crate::shared::Answerable;
use crate::{Answer, BlockError, Operation, log_parts, realtime};
use headstack_model::Nanos;
use headstack_policy::streams::{Command, Config};
use log::warn;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// A node that runs. Dropped, it stops as by [`Node::stop`].
#[derive(Debug)]
pub struct Node {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    /// Starts the thread of a disk's node.
    ///
    /// *Errors:* a key of the configuration is out of its range; the system has no thread, or none of what one sleeps on.
    pub fn start(name: &str, Backend { drive, tracks, .. }: Backend, config: Config) -> io::Result<Node> {
        let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let mut core = NodeCore::new(config, drive.shape()).map_err(wrong)?;
        tracks.into_iter().for_each(|tracks| core.set_boundaries(Box::new(tracks)));
        let shared = Arc::new(Shared::new(name, drive.title(), core)?);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &shared.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        if let Some(wake) = drive.wake() {
            epoll::add(&epoll, wake, EventData::new_u64(ENDED), EventFlags::IN)?;
        }
        let mut event_loop = NodeLoop {
            drive,
            shared: Arc::clone(&shared),
            epoll,
            links: Links::new(MAX_IN_FLIGHT_COST),
            gone: Vec::new(),
            ends: Vec::new(),
            drain_deadline: None,
        };
        let run = move || {
            realtime::set_timer_slack();
            // What is half done then is only looked at; the system has told of it already.
            if catch_unwind(AssertUnwindSafe(|| event_loop.run())).is_err() {
                event_loop.break_down();
            }
        };
        let thread = Some(Builder::new().name(format!("node {name}")).spawn(run)?);
        Ok(Node { shared, thread })
    }

    /// A way to it.
    pub fn handle(&self) -> NodeHandle {
        NodeHandle::new(&self.shared)
    }

    /// Takes nothing more, puts all that was written on the media, and lets clients hear of what they asked before.
    ///
    /// *Errors:* what was written is not on the media; the node's thread failed long before.
    pub fn stop(mut self) -> Result<(), BlockError> {
        self.end();
        let state = self.shared.lock();
        if state.broken { Err(BlockError::Dead) } else { state.flushed.unwrap_or(Err(BlockError::Dead)) }
    }

    fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.handle().ask_to_stop();
            // What it left when it failed is taken as it is.
            let _ = thread.join();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

/// The event of the shared wake-up, and that of ended commands.
const WAKE: u64 = u64::MAX;
const ENDED: u64 = u64::MAX - 1;

/// The client of the flush before the end.
const OWN_CLIENT: u64 = u64::MAX;

/// Cost of requests that the core has at a time, but for one of each connection: some 250 small ones, which is more than disks
/// have queues for, or two of the largest.
const MAX_IN_FLIGHT_COST: u64 = 68 << 20;

/// The core of a thread.
pub(super) type Core = NodeCore<Option<PendingRequest>>;

/// A client's request at the core. The flush before the end has none.
#[derive(Debug)]
pub(super) struct PendingRequest {
    answerable: Answerable,
    kind: Option<(Kind, u64)>,
    begun: Nanos,
}

/// What the thread owns.
struct NodeLoop {
    // Dropped before the core, whose memory the system may have.
    drive: Box<dyn Drive>,
    shared: Arc<Shared>,
    epoll: OwnedFd,
    links: Links,
    /// Connections that the core has not been told are gone.
    gone: Vec<u64>,
    ends: Ends,
    /// Time up to when clients may take what is left for them; set once all is on the media.
    drain_deadline: Option<Nanos>,
}

impl NodeLoop {
    /// How long clients may take for the last answers.
    const FAREWELL: Nanos = Nanos(5_000_000_000);

    fn run(&mut self) {
        let mut events = Vec::with_capacity(64);
        self.drive.begin(&mut self.shared.lock().core);
        while let Some(next) = self.run_due().or_else(|| self.drain()) {
            let now = self.shared.clock.now();
            self.links.settle(
                now,
                &self.epoll,
                |link| drop(link.take_sent()),
                |number| self.gone.push(number),
            );
            // Sockets are looked at each turn, whatever waits: one client is not to have the thread for itself.
            let next = if self.links.has_ready_requests() { Nanos::ZERO } else { next };
            self.wait(next, &mut events);
        }
    }

    /// Does what is due; says when there is more, nothing once all is done and the node is to stop.
    fn run_due(&mut self) -> Option<Nanos> {
        let now = self.shared.clock.now();
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        let state = &mut *state;
        let core = &mut state.core;
        self.links.take_arrived(&mut state.arrived, |link| {
            if let Some(promised) = link.promised {
                core.set_guarantee(link.number, promised);
            }
        });
        state.connections = self.links.len();
        self.forget(state, now);
        self.take_ended(state, now);
        self.submit(state, now);
        if state.core.poll_timeout().is_some_and(|at| at <= now) {
            state.core.handle_timeout(now);
            self.carry_out(state, now);
        }
        self.drive.issue(&mut state.core);
        // What takes no time is over by now.
        while self.take_ended(state, now) {
            self.drive.issue(&mut state.core);
        }
        if state.stopping && self.finish(state, now) {
            return None;
        }
        Some(state.core.poll_timeout().unwrap_or(Nanos::MAX))
    }

    fn forget(&mut self, state: &mut State, now: Nanos) {
        while let Some(client) = self.gone.pop() {
            state.core.forget(now, client);
            state.responses.forget(client);
            self.carry_out(state, now);
        }
    }

    /// Tells the core what ended; whether anything did.
    fn take_ended(&mut self, state: &mut State, now: Nanos) -> bool {
        self.drive.take_ended(&mut state.core, &mut self.ends);
        let mut ends = std::mem::take(&mut self.ends);
        let is_any = !ends.is_empty();
        state.busy.end(now, ends.len());
        for (command, result) in ends.drain(..) {
            self.report(&command, &result);
            state.core.end(now, command, result);
            self.carry_out(state, now);
        }
        self.ends = ends;
        is_any
    }

    /// Logs a command that failed.
    fn report(&self, command: &Command, result: &Result<Ended, BlockError>) {
        if let Err(error) = result {
            let ((offset, bytes), name) = (command.kind.run(), &self.shared.name);
            warn!(target: log_parts::DISK, "{name}: {bytes} bytes at {offset}: {error}");
        }
    }

    fn submit(&mut self, state: &mut State, now: Nanos) {
        self.links.begin_round();
        while let Some(pending) = self.links.next_request(now, state.stopping) {
            let Request { answerable, operation, .. } = pending;
            let kind = Kind::from_operation(&operation);
            let ticket = Some(PendingRequest { answerable, kind, begun: now });
            state.core.submit(now, answerable.number, operation, ticket);
            self.carry_out(state, now);
        }
    }

    /// Does what the core wants done.
    fn carry_out(&mut self, state: &mut State, now: Nanos) {
        while let Some(action) = state.core.poll_action() {
            match action {
                Action::Start(command) => {
                    state.busy.begin(now);
                    self.drive.start(&mut state.core, command);
                }
                Action::Answer(Answered { ticket: Some(pending), result }) => {
                    self.answer(state, now, pending, result);
                }
                Action::Answer(Answered { ticket: None, result }) => {
                    state.flushed = Some(result.map(|_| ()));
                }
            }
        }
    }

    fn answer(
        &mut self,
        state: &mut State,
        now: Nanos,
        PendingRequest { answerable, kind, begun }: PendingRequest,
        mut result: Result<Outcome, BlockError>,
    ) {
        if let Some(kind) = kind {
            state.books.record(kind, now.since(begun), result.is_ok());
            state.responses.record(answerable, now.since(begun));
        }
        let (core, drive) = (&state.core, &self.drive);
        self.links.answer(answerable, begun, |session, handle| match &mut result {
            Ok(Outcome::Read { offset, data, .. }) => session.answer_read(now, handle, |into| {
                if !core.fill(data, into) {
                    drive.fetch(*offset, into);
                }
                Ok(())
            }),
            Ok(Outcome::Done) => session.answer(now, handle, Ok(Answer::Done)),
            Ok(Outcome::BlockStatus(extents)) => {
                session.answer(now, handle, Ok(Answer::Allocation(std::mem::take(extents))));
            }
            Err(error) => session.answer(now, handle, Err(*error)),
        });
        if let Ok(Outcome::Read { data, .. }) = result {
            state.core.release(data);
        }
    }

    /// Once nothing is under way, has all that was written put on the media; whether that is done.
    fn finish(&mut self, state: &mut State, now: Nanos) -> bool {
        if state.core.outstanding() == 0 && state.flushed.is_none() {
            state.core.submit(now, OWN_CLIENT, Operation::Flush, None);
            self.carry_out(state, now);
            self.drive.issue(&mut state.core);
            while self.take_ended(state, now) {
                self.drive.issue(&mut state.core);
            }
        }
        state.flushed.is_some() && state.core.outstanding() == 0
    }

    /// When to look again whether clients have taken the last answers; nothing once they have, or had time enough.
    fn drain(&mut self) -> Option<Nanos> {
        let now = self.shared.clock.now();
        let Some(end) = self.drain_deadline else {
            // Those are answered, too, who have asked by now.
            self.drain_deadline = Some(now + NodeLoop::FAREWELL);
            return Some(Nanos::ZERO);
        };
        let is_wanted = now < end && (self.links.have_unsent() || self.links.has_requests());
        is_wanted.then_some(end)
    }

    /// Sends all clients away, since nobody will serve them any more.
    fn break_down(&mut self) {
        let mut state = self.shared.lock();
        (state.stopping, state.broken) = (true, true);
        state.arrived.clear();
        state.connections = 0;
        self.links.clear();
    }

    /// Sleeps until `next`, unless something comes.
    fn wait(&mut self, next: Nanos, events: &mut Vec<epoll::Event>) {
        let mut sleep = next.since(self.shared.clock.now());
        sleep = sleep.min(self.links.longest_sleep());
        let timeout =
            Timespec { tv_sec: (sleep.0 / 1_000_000_000) as i64, tv_nsec: (sleep.0 % 1_000_000_000) as i64 };
        let for_ever = next == Nanos::MAX && self.links.is_empty();
        events.clear();
        // Interrupted, it has slept long enough.
        let _ = epoll::wait(&self.epoll, spare_capacity(events), (!for_ever).then_some(&timeout));
        let now = self.shared.clock.now();
        for event in events {
            match event.data.u64() {
                WAKE => drop(rustix::io::read(&self.shared.wake, &mut [0; 8])),
                ENDED => self.drive.woken(),
                place => self.links.handle_event(place as usize, event.flags, now),
            }
        }
        self.links.settle(now, &self.epoll, |link| drop(link.take_sent()), |number| self.gone.push(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Connection, Link};
    use crate::node::messages::Shape;
    use crate::server::slots::{ConnectionLimits, ConnectionSlots};
    use headstack_nbd::{Exports, Handshake, Limits, Wire};
    use std::io::{Read, Write};
    use std::os::fd::BorrowedFd;
    use std::os::unix::net::UnixStream;

    /// A disk that its first command breaks.
    struct Broken;

    impl Drive for Broken {
        fn shape(&self) -> Shape {
            Shape { bytes: 1 << 20, block_bytes: 512, read_only: false }
        }

        fn title(&self) -> String {
            "broken".to_string()
        }

        fn wake(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn start(&mut self, _core: &mut Core, command: Command) {
            panic!("as planned: {command:?}");
        }

        fn issue(&mut self, _core: &mut Core) {}

        fn take_ended(&mut self, _core: &mut Core, _ends: &mut Ends) {}

        fn fetch(&self, _offset: u64, _into: &mut [u8]) {}
    }

    /// A connection to the only export, and its client's end.
    fn link(node: &NodeHandle) -> (UnixStream, Link) {
        let exports = Exports::new(vec![node.export("d")]).expect("it can be exported");
        let mut handshake = Handshake::new(exports, Limits::default(), Nanos::ZERO);
        let said = [&[0, 0, 0, 3][..], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 0]].concat();
        handshake.input_space()[..said.len()].copy_from_slice(&said);
        handshake.filled(Nanos::ZERO, said.len());
        let greeting = handshake.output().len();
        handshake.sent(Nanos::ZERO, greeting);
        let session = handshake.into_session(Nanos::ZERO).expect("the export was chosen");
        let connection_limits = ConnectionLimits::new(1, 1, Nanos::MAX);
        let slot = ConnectionSlots::default().acquire(None, connection_limits).expect("it is free");
        let (client, server) = UnixStream::pair().expect("there are sockets");
        (client, Link::new(Connection::new(server.into(), session, &Limits::default(), slot), 0))
    }

    #[test]
    fn failed_node_thread_is_reported() {
        let backend = Backend::new(Box::new(Broken), Vec::new());
        let node = Node::start("n", backend, Config::default()).expect("there are threads");
        assert!(!node.handle().view().has_failed);
        let (mut client, link) = link(&node.handle());
        node.handle().adopt(link);
        let read = [&[0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0][..], &[0; 16], &[0, 0, 2, 0]].concat();
        client.write_all(&read).expect("it reads");
        assert_eq!(client.read(&mut [0; 1]).expect("it is closed in order"), 0, "nobody serves it");
        assert!(node.handle().view().has_failed);
        assert_eq!(node.stop(), Err(BlockError::Dead));
    }
}
