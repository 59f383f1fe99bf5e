//! The server's thread: it accepts, does the handshakes, and hands each connection to the disk that its client chose.

use super::guarantees::Doors;
use super::listen::{Listener, room_for};
use super::seats::Seats;
use super::{Rules, Served};
use crate::Clock;
use crate::connection::Connection;
use crate::nbd::{Export, Exports, Gate, Handshake, Origin, Peer, Wire};
use headstack_model::Nanos;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use slab::Slab;
use socket2::Socket;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Clients that are greeted before others are looked after.
const AT_ONCE: usize = 64;

const STOP: u64 = u64::MAX;

/// The first listener's number; the others are below it.
const LISTEN: u64 = u64::MAX - 1;

/// Most listeners.
const LISTENERS: u64 = 1 << 16;

/// What the server's thread owns.
pub(super) struct Accepting {
    listeners: Vec<Listener>,
    epoll: OwnedFd,
    clock: Clock,
    exports: Exports,
    served: Vec<Served>,
    rules: Rules,
    seats: Seats,
    doors: Arc<Doors>,
    /// Those that have not chosen.
    greeted: Slab<Connection<Handshake>>,
}

impl Accepting {
    pub(super) fn new(
        listeners: Vec<Listener>,
        stop: &OwnedFd,
        exports: Exports,
        served: Vec<Served>,
        rules: Rules,
    ) -> io::Result<Accepting> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, stop, EventData::new_u64(STOP), EventFlags::IN)?;
        assert!((listeners.len() as u64) < LISTENERS, "a process has fewer files");
        for (number, listener) in (0..).zip(&listeners) {
            epoll::add(&epoll, listener, EventData::new_u64(LISTEN - number), EventFlags::IN)?;
        }
        let clock = Clock::new(1.0).map_err(io::Error::other)?;
        let rules = Rules { connections: room_for(rules.connections), ..rules };
        let promised = |export: &Export| rules.guarantees.get(&export.name).cloned();
        let doors = Arc::new(Doors(exports.all().iter().map(promised).collect()));
        let (seats, greeted) = (Seats::default(), Slab::new());
        Ok(Accepting { listeners, epoll, clock, exports, served, rules, seats, doors, greeted })
    }

    pub(super) fn run(mut self) {
        let mut events = Vec::with_capacity(64);
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        loop {
            events.clear();
            let patience = (!self.greeted.is_empty()).then_some(&second);
            // Interrupted, it looks again.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), patience);
            let now = self.clock.elapsed();
            for event in &events {
                match event.data.u64() {
                    STOP => return,
                    number if number > LISTEN - LISTENERS => self.accept((LISTEN - number) as usize, now),
                    place => self.go_on(place as usize, now),
                }
            }
            let late = |(place, connection): (usize, &Connection<Handshake>)| {
                connection.wire.poll_timeout().is_some_and(|at| at <= now).then_some(place)
            };
            let late: Vec<usize> = self.greeted.iter().filter_map(late).collect();
            late.into_iter().for_each(|place| drop(self.greeted.remove(place)));
        }
    }

    /// Greets those who wait at a listener, or sends them away where there are too many.
    fn accept(&mut self, listener: usize, now: Nanos) {
        // Of those that are left, epoll tells again.
        for _ in 0..AT_ONCE {
            match self.listeners[listener].accept() {
                Ok((socket, origin)) => self.greet(socket, origin, now),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    // No descriptor is left, or the client has gone already. Others must get time to close theirs.
                    #[allow(clippy::disallowed_methods, reason = "the system said that there is no more")]
                    std::thread::sleep(Duration::from_millis(1));
                    return;
                }
            }
        }
    }

    fn greet(&mut self, socket: Socket, origin: Origin, now: Nanos) {
        let Rules { limits, connections, connections_per_address, budget, tls, .. } = &self.rules;
        let address = match origin {
            Origin::Network(address) => Some(address),
            Origin::Local { .. } | Origin::Unknown => None,
        };
        let Some(seat) = self.seats.take(address, *connections, *connections_per_address) else { return };
        let peer = Peer { origin, names: Vec::new() };
        let handshake = Handshake::new(self.exports.clone(), limits.clone(), now);
        let handshake = handshake.with_peer(peer).with_tls(tls.clone()).with_budget(budget.clone());
        let handshake = handshake.with_gate(Some(Arc::clone(&self.doors) as Arc<dyn Gate>));
        let connection = Connection::new(socket.into(), handshake, limits, seat);
        let place = self.greeted.insert(connection);
        self.go_on(place, now);
    }

    /// Does what a handshake can do now; hands the connection over where it is done.
    fn go_on(&mut self, place: usize, now: Nanos) {
        let Some(connection) = self.greeted.get_mut(place) else { return };
        connection.receive(now);
        connection.send(now);
        if connection.is_over() || connection.is_deserted() {
            self.greeted.remove(place);
        } else if let Some(chosen) = connection.wire.machine.chosen() {
            connection.unwatch(&self.epoll);
            let connection = self.greeted.remove(place);
            let target = &self.served[chosen].target;
            let time = target.clock().elapsed();
            if let Some(connection) = connection.with(time, |handshake| handshake.into_session(time)) {
                target.adopt(connection, self.doors.promised(chosen));
            }
        } else {
            connection.watch(&self.epoll, place as u64);
        }
    }
}
