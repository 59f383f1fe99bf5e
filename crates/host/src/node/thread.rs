//! A node in real time: the service of one disk's thread.
//!
//! At each wake-up it takes all ended commands and new requests, carries out the core's actions, and passes all new commands to the disk
//! together. Only then does it send replies, together for each connection.

use super::backend::{Backend, Drive, Ends};
use super::core::NodeCore;
use super::handle::{NodeDetails, NodeHandle, NodeShared, PendingRequest, ServedNode};
use super::live::ClientRequest;
use super::messages::{Action, Answered, Ended, Outcome, Shape};
use super::slowness::SlownessWatch;
use crate::event_loop::{ServiceThread, Shared, State, ThreadService, ThreadSettings};
use crate::links::{Links, QueuedRequest};
use crate::{Answer, BlockError, Clock, Operation, log_parts};
use headstack_model::Instant;
use headstack_streams::position::MapState;
use headstack_streams::streams::{Command, Config};
use log::{info, warn};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// A running node. Dropping it stops it as [`Node::stop`] does.
#[derive(Debug)]
pub struct Node {
    thread: ServiceThread<ServedNode, NodeDetails>,
}

impl Node {
    /// Starts the thread of a disk's node.
    ///
    /// *Errors:* a key of the configuration is out of range; the system refuses a thread or a descriptor; the disk has a reserved region
    /// that the backend does not use.
    pub fn start(name: &str, backend: Backend, config: Config) -> io::Result<Node> {
        let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        backend.refuse_unused_region()?;
        let Backend {
            drive,
            tracks,
            layers,
            visible_bytes,
            worst_access,
            arm_firsts,
            zone_bytes,
            has_duration_limits,
            ..
        } = backend;
        let of_disk = drive.shape();
        let shape = Shape { bytes: visible_bytes.unwrap_or(of_disk.bytes), ..of_disk };
        let mut core = NodeCore::new(config, shape).map_err(wrong)?;
        if visible_bytes.is_none() {
            // A rearranger moves blocks from the range of one arm to that of another.
            core.set_arms(&arm_firsts);
        }
        if !has_duration_limits && core.clear_read_limits() {
            warn!(
                "{name}: `read_limits_ms` is ignored: the system sends no command duration limits to this disk (see `device/cdl_enable`)"
            );
        }
        zone_bytes.into_iter().for_each(|bytes| core.set_write_zones(bytes));
        tracks.into_iter().for_each(|tracks| core.set_boundaries(Box::new(tracks)));
        layers.into_iter().for_each(|layer| core.add_layer(layer));
        let info = NodeDetails { name: name.to_string(), title: drive.title(), shape };
        let clock = Clock::new(1.0).map_err(io::Error::other)?;
        let slowness = SlownessWatch::new(worst_access, of_disk.bytes);
        let shared = Shared::new(ServedNode::new(core, slowness), info, clock)?;
        let service = NodeService { drive, gone: Vec::new(), ends: Vec::new() };
        let settings =
            ThreadSettings { spin: Duration::ZERO, real_time: false, max_in_flight_cost: MAX_IN_FLIGHT_COST };
        Ok(Node { thread: ServiceThread::start(format!("node {name}"), service, shared, settings)? })
    }

    /// A handle to it.
    pub fn handle(&self) -> NodeHandle {
        NodeHandle(Arc::clone(&self.thread.shared))
    }

    /// Stops the node: it accepts no more requests, answers those it has, and flushes the disk.
    ///
    /// *Errors:* the flush failed; the node's thread had failed before.
    pub fn stop(mut self) -> Result<(), BlockError> {
        self.thread.end();
        let state = self.thread.shared.lock();
        if state.broken {
            Err(BlockError::Dead)
        } else {
            state.served.flushed.unwrap_or(Err(BlockError::Dead))
        }
    }
}

/// Client number of the final flush.
const OWN_CLIENT: u64 = u64::MAX;

/// Maximum cost of the requests at the core, except for one of each connection: some 250 small ones, more than the queues of
/// disks hold, or two of the largest.
const MAX_IN_FLIGHT_COST: u64 = 68 << 20;

struct NodeService {
    drive: Box<dyn Drive>,
    /// Connections that have closed, until the core forgets them.
    gone: Vec<u64>,
    /// Kept to reuse its memory.
    ends: Ends,
}

impl ThreadService for NodeService {
    type State = ServedNode;
    type Info = NodeDetails;

    fn wake_source(&self) -> Option<BorrowedFd<'_>> {
        self.drive.wake()
    }

    fn woken(&mut self) {
        self.drive.woken();
    }

    fn begin(&mut self, state: &mut ServedNode) {
        self.drive.begin(&mut state.core);
    }

    fn run_due(&mut self, shared: &NodeShared, links: &mut Links) -> Option<Instant> {
        let next = self.advance(&mut shared.lock(), shared, links);
        self.settle(shared, links);
        next
    }

    fn settle(&mut self, shared: &NodeShared, links: &mut Links) {
        let now = shared.clock.real_now();
        links.settle(now, |link| drop(link.take_sent()), |number| self.gone.push(number));
    }

    fn break_down(&mut self, shared: &NodeShared) {
        shared.lock().served.connections = 0;
    }
}

impl NodeService {
    /// Handles what is due. Returns the time of the next call, or none once the node has stopped.
    fn advance(
        &mut self,
        state: &mut State<ServedNode>,
        shared: &NodeShared,
        links: &mut Links,
    ) -> Option<Instant> {
        let now = shared.clock.now();
        let State { served, arrived, stopping, .. } = state;
        links.take_arrived(arrived, |link| {
            if let Some(promised) = link.promised {
                served.core.set_guarantee(link.number, promised);
            }
        });
        served.connections = links.len();
        let mut wake_up = WakeUp { service: self, state: served, links, now, name: &shared.info.name };
        wake_up.forget();
        wake_up.take_ended();
        wake_up.submit(*stopping);
        if wake_up.state.core.poll_timeout().is_some_and(|at| at <= now) {
            wake_up.state.core.handle_timeout(now);
            wake_up.carry_out();
        }
        wake_up.issue();
        if *stopping && wake_up.finish() {
            return None;
        }
        Some(served.core.poll_timeout().unwrap_or(Instant::MAX))
    }
}

struct WakeUp<'a> {
    service: &'a mut NodeService,
    state: &'a mut ServedNode,
    links: &'a mut Links,
    now: Instant,
    name: &'a str,
}

impl WakeUp<'_> {
    fn forget(&mut self) {
        while let Some(client) = self.service.gone.pop() {
            self.state.core.forget(self.now, client);
            self.state.responses.forget(client);
            self.carry_out();
        }
    }

    /// Passes all new commands to the disk, and handles those that end at once.
    fn issue(&mut self) {
        loop {
            self.service.drive.issue(&mut self.state.core);
            if !self.take_ended() {
                return;
            }
        }
    }

    /// Reports ended commands to the core; returns whether there were any.
    fn take_ended(&mut self) -> bool {
        let mut ends = std::mem::take(&mut self.service.ends);
        self.service.drive.take_ended(&mut self.state.core, &mut ends);
        let is_any = !ends.is_empty();
        let mut outstanding = self.state.busy.commands();
        self.state.busy.end(self.now, ends.len());
        for (command, result) in ends.drain(..) {
            self.report(&command, &result);
            if self.state.slowness.end(self.now, &command, outstanding) {
                self.report_slowness();
            }
            if let Some(live) = &mut self.state.live {
                live.end(self.now, &command, outstanding);
            }
            outstanding -= 1;
            self.state.core.end(self.now, command, result);
            self.report_order();
            self.carry_out();
        }
        self.service.ends = ends;
        is_any
    }

    fn report(&self, command: &Command, result: &Result<Ended, BlockError>) {
        if let Err(error) = result {
            let ((offset, bytes), name) = (command.kind.run(), self.name);
            warn!(target: log_parts::DISK, "{name}: {bytes} bytes at {offset}: {error}");
        }
    }

    /// Logs that the drive file of the order agrees with the disk, or does not any more.
    fn report_order(&mut self) {
        let Some(state) = self.state.core.poll_order_change() else { return };
        let (name, view) = (self.name, self.state.core.order());
        let wanted = view.map_or(String::new(), |view| view.wanted);
        match state {
            MapState::Agrees => {
                info!(target: log_parts::DISK, "{name}: the disk answers as its drive file predicts: ordered by {wanted}");
            }
            _ => warn!(
                target: log_parts::DISK,
                "{name}: the disk does not answer as its drive file predicts: ordered by block number until it does; \
                 probe the disk if it is another one"
            ),
        }
    }

    /// Logs that the disk is slow, or is not any more.
    fn report_slowness(&self) {
        let (name, view) = (self.name, self.state.slowness.view());
        if view.is_slow {
            warn!(
                target: log_parts::DISK,
                "{name}: the disk is slow: its reads take {:.1} times as long as at first, and late commands cost {:.1} % of its time",
                view.slowdown,
                100.0 * view.late_share
            )
        } else {
            info!(target: log_parts::DISK, "{name}: the disk is not slow any more")
        }
    }

    fn submit(&mut self, is_stopping: bool) {
        self.links.begin_round();
        while let Some(request) = self.links.next_request(self.now, is_stopping) {
            let QueuedRequest { answerable, operation, .. } = request;
            let client = answerable.number;
            let request = ClientRequest::new(self.state.requests, client, &operation, self.now);
            self.state.requests += 1;
            if let Some(live) = &mut self.state.live {
                live.submitted(request);
            }
            let ticket = Some(PendingRequest { answerable, request });
            self.state.core.submit(self.now, client, operation, ticket);
            self.carry_out();
        }
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.state.core.poll_action() {
            match action {
                Action::Start(command) => {
                    self.state.busy.begin(self.now);
                    self.state.slowness.begin(self.now, &command);
                    if let Some(live) = &mut self.state.live {
                        live.begin(self.now, &command);
                    }
                    self.service.drive.start(&mut self.state.core, command);
                }
                Action::Answer(Answered { ticket: Some(pending), result }) => self.answer(pending, result),
                Action::Answer(Answered { ticket: None, result }) => {
                    self.state.flushed = Some(result.map(|_| ()));
                }
            }
        }
    }

    fn answer(&mut self, pending: PendingRequest, mut result: Result<Outcome, BlockError>) {
        let PendingRequest { answerable, request } = pending;
        let (now, begun, state) = (self.now, request.begun, &mut *self.state);
        if let Some(kind) = request.kind {
            state.books.record((kind, request.bytes), now.since(begun), result.is_ok());
            state.responses.record(answerable.link, answerable.number, now.since(begun));
        }
        if let Some(live) = &mut state.live {
            live.answered(request, now, result.is_ok());
        }
        let (core, drive) = (&state.core, &self.service.drive);
        self.links.answer(answerable, begun, |session, handle| match &mut result {
            Ok(Outcome::Read { offset, data, .. }) => session.answer_read(now, handle, |into| {
                if !core.move_out(data, into) {
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

    /// Flushes the disk once no request is left; returns whether that is done.
    fn finish(&mut self) -> bool {
        if self.state.core.outstanding() == 0 && self.state.flushed.is_none() {
            self.state.core.submit(self.now, OWN_CLIENT, Operation::Flush, None);
            self.carry_out();
            self.issue();
        }
        if self.state.flushed.is_none() || self.state.core.outstanding() > 0 {
            return false;
        }
        self.state.core.close(self.now);
        self.carry_out();
        self.issue();
        self.state.core.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Connection, Link};
    use crate::node::handle::Core;
    use crate::server::slots::{ConnectionLimits, ConnectionSlots};
    use headstack_model::Nanos;
    use headstack_nbd::{Exports, Handshake, Limits, Wire};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// A disk whose first command makes it panic.
    struct Broken;

    impl Drive for Broken {
        fn shape(&self) -> Shape {
            Shape { bytes: 1 << 20, block_bytes: 512, read_only: false }
        }

        fn title(&self) -> String {
            "broken".to_string()
        }

        fn read_at_start(&self, _offset: u64, into: &mut [u8]) -> io::Result<()> {
            into.fill(0);
            Ok(())
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
        let mut handshake = Handshake::new(exports, Limits::default(), Instant::ZERO);
        let said = [&[0, 0, 0, 3][..], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 0]].concat();
        handshake.input_space()[..said.len()].copy_from_slice(&said);
        handshake.filled(Instant::ZERO, said.len());
        let greeting = handshake.output().len();
        handshake.sent(Instant::ZERO, greeting);
        let session = handshake.into_session(Instant::ZERO).expect("the export was chosen");
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
        node.handle().0.adopt(link);
        let read = [&[0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0][..], &[0; 16], &[0, 0, 2, 0]].concat();
        client.write_all(&read).expect("it reads");
        assert_eq!(client.read(&mut [0; 1]).expect("it is closed in order"), 0, "no server is left");
        assert!(node.handle().view().has_failed);
        assert_eq!(node.stop(), Err(BlockError::Dead));
    }
}
