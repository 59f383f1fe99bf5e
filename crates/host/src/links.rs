//! The connections of a disk's thread, which alone touches them.

use crate::connection::Link;
use crate::disk::Outcome;
use crate::nbd::{Request, Wire};
use crate::shared::{Answerable, Asker, Shared, State};
use crate::{Answer, BlockError, Operation};
use headstack_model::Nanos;
use rustix::event::epoll::EventFlags;
use slab::Slab;
use std::os::fd::OwnedFd;

/// Connections by their place, and what they have for the disk.
#[derive(Default)]
pub(crate) struct Links {
    links: Slab<Link>,
    /// Places of those with something to send or to take note of.
    touched: Vec<usize>,
    /// Requests that wait for the disk to be locked.
    requests: Vec<(Answerable, Operation)>,
    numbers: u64,
    /// When all were last asked for their patience.
    swept: Nanos,
}

impl Links {
    /// How often they are asked whether a client took too long.
    pub(crate) const SWEEP: Nanos = Nanos(1_000_000_000);

    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Whether there is something for the disk.
    pub(crate) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Drops all of them, and what they asked.
    pub(crate) fn clear(&mut self) {
        self.links.clear();
        self.requests.clear();
        self.touched.clear();
    }

    /// Takes those that have just chosen the disk.
    pub(crate) fn take_arrived(&mut self, state: &mut State) {
        for mut link in state.arrived.drain(..) {
            self.numbers += 1;
            link.number = self.numbers;
            let place = self.links.insert(link);
            self.touched.push(place);
        }
    }

    /// Gives the disk what was asked of it.
    pub(crate) fn submit(&mut self, state: &mut State, now: Nanos) {
        for (answerable, operation) in self.requests.drain(..) {
            // Its place may be another's by now.
            let Answerable { link, number, handle } = answerable;
            let Some(link) = self.links.get_mut(link).filter(|link| link.number == number) else { continue };
            if state.stopping {
                link.connection.wire.answer(now, handle, Err(BlockError::ShuttingDown));
                continue;
            }
            state.submit(now, link.volume, operation, Asker::Connection(answerable));
        }
    }

    /// Hands sessions what is over.
    pub(crate) fn answer(&mut self, state: &mut State, now: Nanos) {
        for (Answerable { link: place, number, handle }, due, result) in state.over.drain(..) {
            let Some(link) = self.links.get_mut(place).filter(|link| link.number == number) else { continue };
            let session = &mut link.connection.wire;
            match result {
                Ok(Outcome::Read { volume, offset, .. }) => {
                    session.answer_read(now, handle, |into| state.emulator.read(volume, offset, into));
                }
                Ok(Outcome::Done) => session.answer(now, handle, Ok(Answer::Done)),
                Ok(Outcome::Allocation(stretches)) => {
                    session.answer(now, handle, Ok(Answer::Allocation(stretches)));
                }
                Err(error) => session.answer(now, handle, Err(error)),
            }
            link.note_due(due);
            if self.touched.last() != Some(&place) {
                self.touched.push(place);
            }
        }
    }

    /// What epoll has told of a connection.
    pub(crate) fn handle_event(&mut self, place: usize, flags: EventFlags, now: Nanos) {
        let Some(link) = self.links.get_mut(place) else { return };
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            // Nobody hears the answers. While nothing is to be read, epoll would tell of it again and again.
            link.connection.give_up();
        } else if flags.contains(EventFlags::IN) {
            link.connection.receive(now);
        }
        self.touched.push(place);
    }

    /// Sends what is to be sent, takes what was asked, and drops what is over; when the first answers were sent, if any.
    pub(crate) fn settle(&mut self, shared: &Shared, epoll: &OwnedFd) -> Option<Nanos> {
        let mut first = None;
        let now = shared.clock.elapsed();
        if now.since(self.swept) >= Links::SWEEP {
            self.swept = now;
            self.links.iter_mut().for_each(|(_, link)| link.connection.wire.handle_timeout(now));
            self.touched.extend(self.links.iter().map(|(place, _)| place));
        }
        while let Some(place) = self.touched.pop() {
            let Some(link) = self.links.get_mut(place) else { continue };
            // First, because a request may wait for room that replies take.
            link.connection.send(now);
            first = first.or(told(shared, link));
            while let Some(Request { handle, operation }) = link.connection.wire.next_request() {
                self.requests.push((Answerable { link: place, number: link.number, handle }, operation));
            }
            if link.connection.is_over() {
                link.connection.unwatch(epoll);
                self.links.remove(place);
            } else {
                link.connection.watch(epoll, place as u64);
            }
        }
        first
    }
}

/// Notes how late those answers were that were sent by now; the time now, if there were any.
fn told(shared: &Shared, link: &mut Link) -> Option<Nanos> {
    let sent = link.take_sent();
    (sent.len() > 0).then(|| shared.told(sent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use crate::connection::Connection;
    use crate::disk::{Emulator, Store, Volume};
    use crate::nbd::{Export, Exports, Handshake, Limits};
    use headstack_workload::VolumeInfo;
    use rustix::event::epoll;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    /// A connection that has chosen the only export, and its client's end.
    fn link() -> (UnixStream, Link) {
        let exports = Exports::new(vec![Export::new("d", 1 << 20)]).expect("it can be exported");
        let mut handshake = Handshake::new(exports, Limits::default(), Nanos::ZERO);
        let said = [&[0, 0, 0, 3][..], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 0]].concat();
        handshake.input_space()[..said.len()].copy_from_slice(&said);
        handshake.filled(Nanos::ZERO, said.len());
        let greeting = handshake.output().len();
        handshake.sent(Nanos::ZERO, greeting);
        let session = handshake.into_session(Nanos::ZERO).expect("the export was chosen");
        let (client, server) = UnixStream::pair().expect("there are sockets");
        (client, Link::new(Connection::new(server.into(), session, Arc::new(())), 0))
    }

    #[test]
    fn is_what_a_dead_client_asked_not_taken_for_its_successors() {
        let info = VolumeInfo { name: "d".to_string(), sectors: 2048, sector_bytes: 512 };
        let store = Store::memory(1 << 20).expect("unused memory is free");
        let clock = Clock::new(1.0).expect("it is allowed");
        let shared = Shared::new(Emulator::null(Volume::new(info, store)), clock).expect("there are events");
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("there are more");
        let mut links = Links::default();
        let (mut client, first) = link();
        shared.lock().arrived.push(first);
        links.take_arrived(&mut shared.lock());
        let read = [&[0x25, 0x60, 0x95, 0x13][..], &[0; 22], &[2, 0]].concat();
        client.write_all(&read).expect("the other end is open");
        links.handle_event(0, EventFlags::IN, Nanos::ZERO);
        links.settle(&shared, &epoll);
        assert!(links.has_requests());
        links.handle_event(0, EventFlags::HUP, Nanos::ZERO);
        links.settle(&shared, &epoll);
        assert!(links.is_empty());

        let (_client, second) = link();
        let mut state = shared.lock();
        state.arrived.push(second);
        links.take_arrived(&mut state);
        links.submit(&mut state, Nanos::ZERO);
        state.collect(&mut Vec::new());
        assert!(!links.has_requests() && state.over.is_empty(), "nobody waits for it any more");
        links.answer(&mut state, Nanos::ZERO);
        assert!(links.links[0].connection.wire.output().is_empty());
    }
}
