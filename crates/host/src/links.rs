//! The connections of a service's thread; only this thread uses them.

use crate::connection::Link;
use crate::fair::FairQueue;
use crate::{BlockError, Operation, memory};
use headstack_model::{Instant, Nanos};
use headstack_nbd::{ReplyHandle, Request, Session, Transport, Wire};
use rustix::event::epoll::{self, EventFlags};
use slab::Slab;
use std::io;
use std::os::fd::OwnedFd;

/// The connection of a request, and what its answer needs.
#[derive(Debug)]
pub(crate) struct Answerable {
    /// The connection's index and number. The index belongs to the connection until all its requests are answered, unless all
    /// connections are dropped.
    pub(crate) link: usize,
    pub(crate) number: u64,
    pub(crate) handle: ReplyHandle,
    pub(crate) cost: u64,
}

pub(crate) struct QueuedRequest {
    pub(crate) answerable: Answerable,
    pub(crate) volume: u32,
    pub(crate) operation: Operation,
}

/// Connections by index, and their requests for the disk.
pub(crate) struct Links {
    epoll: OwnedFd,
    links: Slab<Link>,
    /// Connections with something to send or to handle.
    touched: Vec<usize>,
    /// Connections that wait for memory that others hold.
    short: Vec<usize>,
    /// Requests that wait for the disk, by index of their connections.
    requests: FairQueue<QueuedRequest>,
    numbers: u64,
    swept: Instant,
}

impl Links {
    /// Interval of the checks whether a client took too long.
    pub(crate) const SWEEP: Nanos = Nanos(1_000_000_000);

    /// No connections yet. `max_in_flight_cost` limits the requests at the disk, except for one of each connection.
    pub(crate) fn new(max_in_flight_cost: u64) -> io::Result<Links> {
        Ok(Links {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            links: Slab::new(),
            touched: Vec::new(),
            short: Vec::new(),
            requests: FairQueue::new(max_in_flight_cost),
            numbers: 0,
            swept: Instant::ZERO,
        })
    }

    /// Waits for events of the connections; the event data are their indices.
    pub(crate) fn epoll(&self) -> &OwnedFd {
        &self.epoll
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    pub(crate) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Whether requests wait that may be dispatched now.
    pub(crate) fn has_ready_requests(&self) -> bool {
        self.requests.is_ready()
    }

    /// Longest sleep while there are connections: timeouts must be checked, and whether memory is free for those that wait for
    /// it, because connections of another disk free it without an event.
    pub(crate) fn longest_sleep(&self) -> Nanos {
        const MEMORY: Nanos = Nanos(5_000_000);
        match (self.links.is_empty(), self.short.is_empty()) {
            (true, _) => Nanos::MAX,
            (false, true) => Links::SWEEP,
            (false, false) => MEMORY,
        }
    }

    /// Begins a round of requests, after which the sockets are polled.
    pub(crate) fn begin_round(&mut self) {
        self.requests.begin_round();
    }

    /// Whether there is data that clients have not received.
    pub(crate) fn have_unsent(&self) -> bool {
        let mut connections = self.links.iter().map(|(_, link)| &link.connection);
        connections.any(|connection| connection.wire.has_output() && !connection.is_disconnected())
    }

    pub(crate) fn clear(&mut self) {
        self.links.clear();
        self.requests.clear();
        self.touched.clear();
        self.short.clear();
    }

    /// Adds the connections that have just chosen an export, and calls `greet` for each.
    pub(crate) fn take_arrived(&mut self, arrived: &mut Vec<Link>, mut greet: impl FnMut(&Link)) {
        for mut link in arrived.drain(..) {
            self.numbers += 1;
            link.number = self.numbers;
            greet(&link);
            let place = self.links.insert(link);
            self.touched.push(place);
        }
    }

    /// The next request for the disk, and its volume; none if the round is over or the disk has reached its limit. When stopping,
    /// all requests are refused at this real time.
    pub(crate) fn next_request(&mut self, real: Instant, is_stopping: bool) -> Option<QueuedRequest> {
        if is_stopping {
            let refused = self.requests.withdraw_all();
            refused.into_iter().for_each(|request| self.refuse(real, request));
        }
        self.requests.next()
    }

    /// Answers a request that was not dispatched.
    fn refuse(
        &mut self,
        now: Instant,
        QueuedRequest { answerable: Answerable { link: place, handle, .. }, .. }: QueuedRequest,
    ) {
        let link = self.links.get_mut(place).expect("it keeps its place until all is answered");
        link.connection.wire.machine.answer(now, handle, Err(BlockError::ShuttingDown));
        self.touched.push(place);
    }

    /// Calls `write` with the session of the request, unless the connection has been dropped.
    pub(crate) fn answer(
        &mut self,
        Answerable { link: place, number, handle, cost }: Answerable,
        due: Instant,
        write: impl FnOnce(&mut Session, ReplyHandle),
    ) {
        let Some(link) = self.links.get_mut(place).filter(|link| link.number == number) else { return };
        self.requests.end(place, cost);
        write(&mut link.connection.wire.machine, handle);
        link.note_due(due);
        if self.touched.last() != Some(&place) {
            self.touched.push(place);
        }
    }

    pub(crate) fn handle_event(&mut self, place: usize, flags: EventFlags, now: Instant) {
        let Some(link) = self.links.get_mut(place) else { return };
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            // The client receives no answers. What it sent before is still to be read.
            link.connection.mark_disconnected();
        } else if flags.contains(EventFlags::IN) {
            link.active = now;
            link.connection.receive(now);
        }
        self.touched.push(place);
    }

    /// Sweeps all links, and visits each, when the last sweep is [`Links::SWEEP`] ago.
    fn sweep_if_due(&mut self, now: Instant) {
        if now.since(self.swept) >= Links::SWEEP {
            self.swept = now;
            self.links.iter_mut().for_each(|(_, link)| link.sweep(now));
            self.touched.extend(self.links.iter().map(|(place, _)| place));
        }
    }

    /// Sends pending data, takes new requests, and drops connections that are over. Calls `sent` for each connection that has
    /// sent something, and `gone` with the number of each whose client has disconnected, again when its last request is done. Of
    /// the requests of such a client, only those that change the disk are carried out.
    pub(crate) fn settle(
        &mut self,
        now: Instant,
        mut sent: impl FnMut(&mut Link),
        mut gone: impl FnMut(u64),
    ) {
        self.touched.append(&mut self.short);
        self.sweep_if_due(now);
        while let Some(place) = self.touched.pop() {
            let Some(link) = self.links.get_mut(place) else { continue };
            // First, because a request may wait for memory that replies hold.
            link.connection.send(now);
            if !link.connection.is_disconnected() {
                sent(link);
            }
            return_memory(link);
            let (number, volume) = (link.number, link.volume);
            let is_disconnected = link.connection.is_disconnected();
            if is_disconnected {
                // First, to free memory for what is still in the socket.
                withdraw(&mut self.requests, now, place, link);
            }
            let mut take = |wire: &mut Transport<Session>| {
                while let Some(Request { handle, operation }) = wire.next_request() {
                    if is_disconnected && !changes(&operation) {
                        wire.machine.answer(now, handle, Err(BlockError::ShuttingDown));
                        continue;
                    }
                    let cost = cost(&operation);
                    let answerable = Answerable { link: place, number, handle, cost };
                    self.requests.push(place, cost, QueuedRequest { answerable, volume, operation });
                }
            };
            take(&mut link.connection.wire);
            link.connection.take_rest(now, take);
            let is_over = link.connection.is_over();
            let is_news = (is_disconnected || is_over) && !std::mem::replace(&mut link.is_gone, true);
            if is_over {
                withdraw(&mut self.requests, now, place, link);
                link.connection.unwatch(&self.epoll);
                // Its requests hold memory until they are done, and count as the client's until then.
                let is_done = link.connection.wire.machine.in_flight() == 0;
                if is_news || is_done {
                    gone(number);
                }
                if is_done {
                    self.links.remove(place).report_end();
                }
            } else {
                if link.connection.wire.machine.lacks_memory() {
                    self.short.push(place);
                }
                link.connection.watch(&self.epoll, place as u64);
                if is_news {
                    gone(number);
                }
            }
        }
    }
}

/// Returns free memory of the heap to the system, if connections have freed much.
fn return_memory(link: &Link) {
    if let Some(budget) = link.connection.wire.machine.budget().filter(|budget| budget.take_returned()) {
        memory::trim(budget);
    }
}

/// Removes the queued requests of a disconnected client, except for those that change the disk.
fn withdraw(requests: &mut FairQueue<QueuedRequest>, now: Instant, place: usize, link: &mut Link) {
    for request in requests.withdraw(place, |request| !changes(&request.operation)) {
        let handle = request.answerable.handle;
        link.connection.wire.machine.answer(now, handle, Err(BlockError::ShuttingDown));
    }
}

/// The cost of a request in bytes of a transfer that would take as long: each request takes the disk some milliseconds of
/// positioning, and one to the media a revolution more.
fn cost(operation: &Operation) -> u64 {
    const REQUEST: u64 = 256 << 10;
    const MEDIA: u64 = 1 << 20;
    REQUEST
        + match operation {
            Operation::Read { bytes, fua: false, .. } => u64::from(*bytes),
            Operation::Read { bytes, fua: true, .. } => MEDIA + u64::from(*bytes),
            Operation::Write { data, fua: false, .. } => data.len() as u64,
            Operation::Write { data, fua: true, .. } => MEDIA + data.len() as u64,
            Operation::WriteZeroes { bytes, may_trim: false, .. } => *bytes,
            Operation::Flush => MEDIA,
            Operation::WriteZeroes { .. } | Operation::Trim { .. } => 0,
            Operation::Prefetch { .. } | Operation::Allocation { .. } => 0,
        }
}

/// Whether a request has an effect without its answer.
fn changes(operation: &Operation) -> bool {
    match operation {
        Operation::Read { .. } | Operation::Prefetch { .. } | Operation::Allocation { .. } => false,
        Operation::Write { .. } | Operation::WriteZeroes { .. } => true,
        Operation::Trim { .. } | Operation::Flush => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use crate::connection::Connection;
    use crate::disk::{Emulator, Store, Volume};
    use crate::disk_thread::{answer, settle, submit};
    use crate::server::slots::{ConnectionLimits, ConnectionSlots};
    use crate::shared::{self, DiskShared};
    use headstack_nbd::{Export, Exports, Handshake, Limits};
    use headstack_workload::VolumeInfo;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// A connection that has chosen the only export, and its client's end.
    fn link() -> (UnixStream, Link) {
        let exports = Exports::new(vec![Export::new("d", 1 << 20)]).expect("it can be exported");
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

    /// A disk of 1 MiB that takes no time, a connection to it, and its client's end.
    fn disk() -> (DiskShared, Links, UnixStream) {
        let info = VolumeInfo { name: "d".to_string(), sectors: 2048, sector_bytes: 512, zones: None };
        let store = Store::memory(1 << 20).expect("unused memory is free");
        let clock = Clock::new(1.0).expect("it is allowed");
        let shared = shared::new(Emulator::null(Volume::new(info, store)), clock).expect("there are events");
        let mut links = Links::new(u64::MAX).expect("there are more");
        let (client, first) = link();
        shared.lock().arrived.push(first);
        links.take_arrived(&mut shared.lock().arrived, |_| {});
        (shared, links, client)
    }

    fn request(command: u8, offset: u32, length: u32) -> Vec<u8> {
        let place = [&[0; 8][..], &[0; 4], &offset.to_be_bytes(), &length.to_be_bytes()].concat();
        [&[0x25, 0x60, 0x95, 0x13, 0, 0, 0, command][..], &place].concat()
    }

    #[test]
    fn complete_requests_are_served_after_the_client_closes() {
        let (shared, mut links, mut client) = disk();
        client.set_nonblocking(true).expect("it is a socket");
        // The last request is incomplete; those that exceed the server's limit are still in the socket.
        let write = |turn: u32| [request(1, turn * 512, 512), vec![turn as u8 + 1; 512]].concat();
        let said: Vec<u8> = (0..200).flat_map(write).chain(request(2, 0, 0)).chain(write(200)).collect();
        client.write_all(&said).expect("the other end has room");
        drop(client);
        links.handle_event(0, EventFlags::IN | EventFlags::HUP, Instant::ZERO);
        settle(&mut links, &shared);
        assert!(links.links[0].is_gone, "the client has gone, its requests are still there");
        let mut state = shared.lock();
        submit(&mut links, &mut state, Instant::ZERO, Instant::ZERO);
        state.served.collect(&mut Vec::new());
        answer(&mut links, &mut state, Instant::ZERO);
        drop(state);
        settle(&mut links, &shared);
        assert!(links.is_empty(), "what was asked is done");
        let state = shared.lock();
        let mut bytes = vec![0; 201 * 512];
        state.served.emulator.read(0, 0, &mut bytes).expect("it is within the disk");
        assert!(bytes.chunks(512).zip(0..200u8).all(|(block, turn)| block == [turn + 1; 512]));
        assert!(bytes[200 * 512..].iter().all(|byte| *byte == 0), "who takes its leave asks for no more");
    }

    #[test]
    fn disconnect_is_reported_at_once_and_after_completion() {
        let (shared, mut links, mut client) = disk();
        client.write_all(&[request(1, 0, 512), vec![7; 512]].concat()).expect("the other end is open");
        drop(client);
        links.handle_event(0, EventFlags::IN | EventFlags::HUP, Instant::ZERO);
        let mut gone = Vec::new();
        links.settle(Instant::ZERO, |_| {}, |number| gone.push(number));
        assert_eq!(gone, [1], "what waits for an answer is not worth while");
        let mut state = shared.lock();
        submit(&mut links, &mut state, Instant::ZERO, Instant::ZERO);
        state.served.collect(&mut Vec::new());
        answer(&mut links, &mut state, Instant::ZERO);
        drop(state);
        links.settle(Instant::ZERO, |_| {}, |number| gone.push(number));
        assert!(links.is_empty());
        assert_eq!(gone, [1, 1], "who does something for it may have taken note of it again");
    }

    #[test]
    fn backlog_of_a_closed_client_is_served_completely() {
        let (shared, mut links, mut client) = disk();
        client.set_nonblocking(true).expect("it is a socket");
        // More requests than a connection may have at the disk, some of them invalid.
        let said: Vec<u8> =
            (0..2000).flat_map(|turn: u32| request(6 + (turn % 2 * 90) as u8, 0, 512)).collect();
        let said = [said, request(6, 512, 512).repeat(1500)].concat();
        client.write_all(&said).expect("the other end has room");
        drop(client);
        links.handle_event(0, EventFlags::HUP, Instant::ZERO);
        let mut turns = 0;
        loop {
            settle(&mut links, &shared);
            if !links.has_requests() {
                break;
            }
            turns += 1;
            let mut state = shared.lock();
            submit(&mut links, &mut state, Instant::ZERO, Instant::ZERO);
            state.served.collect(&mut Vec::new());
            answer(&mut links, &mut state, Instant::ZERO);
        }
        assert!(links.is_empty() && turns > 1, "{turns}");
        assert_eq!(shared.lock().served.emulator.books(0).all().done, 2500);
    }

    #[test]
    fn pending_request_is_rejected_with_a_shutdown_error() {
        let (shared, mut links, mut client) = disk();
        client.write_all(&request(0, 0, 512)).expect("the other end is open");
        links.handle_event(0, EventFlags::IN, Instant::ZERO);
        settle(&mut links, &shared);
        assert!(links.has_requests());
        let mut state = shared.lock();
        state.stopping = true;
        submit(&mut links, &mut state, Instant::MAX, Instant(7));
        drop(state);
        assert!(links.have_unsent());
        let patience = links.links[0].connection.wire.poll_timeout();
        assert_eq!(patience, Some(Instant(7) + Limits::default().reply), "patience is of real time");
        settle(&mut links, &shared);
        assert!(!links.have_unsent());
        let mut reply = [0; 16];
        client.read_exact(&mut reply).expect("it is answered");
        assert_eq!(reply[4..8], [0, 0, 0, 108]);
    }

    #[test]
    fn reads_of_a_disconnected_client_are_dropped_at_once() {
        let (shared, mut links, mut client) = disk();
        // More requests than a connection may have at the disk: the rest stays in the socket.
        client.set_nonblocking(true).expect("it is a socket");
        let said: Vec<u8> = (0..2000).flat_map(|turn| request(0, turn, 512)).collect();
        client.write_all(&said).expect("the other end has room");
        links.handle_event(0, EventFlags::IN, Instant::ZERO);
        settle(&mut links, &shared);
        assert!(links.has_requests());
        drop(client);
        links.handle_event(0, EventFlags::HUP, Instant::ZERO);
        let mut gone = Vec::new();
        links.settle(Instant::ZERO, |_| {}, |number| gone.push(number));
        assert!(links.is_empty() && !links.has_requests(), "no client waits for any of it");
        assert_eq!(gone, [1]);

        let (_client, second) = link();
        let mut state = shared.lock();
        state.arrived.push(second);
        links.take_arrived(&mut state.arrived, |_| {});
        submit(&mut links, &mut state, Instant::ZERO, Instant::ZERO);
        state.served.collect(&mut Vec::new());
        answer(&mut links, &mut state, Instant::ZERO);
        assert_eq!(state.served.emulator.books(0).all().done, 0);
        assert!(links.links[0].connection.wire.output().is_empty(), "the index is the new connection's");
    }

    #[test]
    fn late_response_is_not_sent_to_a_new_client() {
        let (shared, mut links, mut client) = disk();
        client.write_all(&request(0, 0, 512)).expect("the other end is open");
        links.handle_event(0, EventFlags::IN, Instant::ZERO);
        settle(&mut links, &shared);
        let mut state = shared.lock();
        submit(&mut links, &mut state, Instant::ZERO, Instant::ZERO);
        state.served.collect(&mut Vec::new());
        assert_eq!(state.served.over.len(), 1, "it is done and not reported");
        links.clear();
        let (_client, second) = link();
        state.arrived.push(second);
        links.take_arrived(&mut state.arrived, |_| {});
        answer(&mut links, &mut state, Instant::ZERO);
        assert!(links.links[0].connection.wire.output().is_empty(), "the index is the new connection's");
    }
}
