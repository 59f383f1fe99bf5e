//! The server's thread: it accepts clients, handles the handshakes, and passes each connection to the disk that its client chose.

use super::guarantees::Doors;
use super::listen::{Listener, TlsUse, room_for};
use super::slots::{ConnectionLimits, ConnectionSlots};
use super::{Mail, Rules, Served};
use crate::connection::Connection;
use crate::{Clock, log_parts};
use headstack_model::Instant;
use headstack_nbd::{Ending, Export, Exports, Gate, Handshake, Origin, Peer, Wire};
use log::{info, warn};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use slab::Slab;
use socket2::Socket;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Clients accepted before other events are handled.
const AT_ONCE: usize = 64;

const MAIL: u64 = u64::MAX;

/// Event number of the first listener; those of the others are below it.
const LISTEN: u64 = u64::MAX - 1;

/// Maximum number of listeners.
const LISTENERS: u64 = 1 << 16;

pub(super) struct Accepting {
    listeners: Vec<Listener>,
    mail: Arc<Mail>,
    epoll: OwnedFd,
    clock: Clock,
    exports: Exports,
    served: Vec<Served>,
    rules: Rules,
    slots: ConnectionSlots,
    doors: Arc<Doors>,
    greeted: Slab<Connection<Handshake>>,
}

impl Accepting {
    pub(super) fn new(
        listeners: Vec<Listener>,
        mail: Arc<Mail>,
        exports: Exports,
        served: Vec<Served>,
        rules: Rules,
    ) -> io::Result<Accepting> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &mail.wake, EventData::new_u64(MAIL), EventFlags::IN)?;
        assert!((listeners.len() as u64) < LISTENERS, "a process has fewer files");
        for (number, listener) in (0..).zip(&listeners) {
            epoll::add(&epoll, listener, EventData::new_u64(LISTEN - number), EventFlags::IN)?;
        }
        let clock = Clock::new(1.0).map_err(io::Error::other)?;
        let rules = Rules { connections: room_for(rules.connections)?, ..rules };
        let promised = |export: &Export| rules.guarantees.get(&export.name).cloned();
        let doors = Arc::new(Doors(exports.all().iter().map(promised).collect()));
        let (slots, greeted) = (ConnectionSlots::default(), Slab::new());
        Ok(Accepting { listeners, mail, epoll, clock, exports, served, rules, slots, doors, greeted })
    }

    pub(super) fn run(mut self) {
        let mut events = Vec::with_capacity(64);
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        loop {
            events.clear();
            let timeout = (!self.greeted.is_empty()).then_some(&second);
            // An interrupted wait is repeated.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), timeout);
            let now = self.clock.real_now();
            for event in &events {
                match event.data.u64() {
                    MAIL => {
                        if self.read_mail() {
                            return;
                        }
                    }
                    number if number > LISTEN - LISTENERS => self.accept((LISTEN - number) as usize, now),
                    place => self.advance(place as usize, now),
                }
            }
            let late = |(place, connection): (usize, &Connection<Handshake>)| {
                connection.wire.poll_timeout().is_some_and(|at| at <= now).then_some(place)
            };
            let late: Vec<usize> = self.greeted.iter().filter_map(late).collect();
            for place in late {
                let mut connection = self.greeted.remove(place);
                connection.wire.handle_timeout(now);
                report_end(&connection);
            }
        }
    }

    /// Handles the commands of the server's owner; returns whether to end.
    fn read_mail(&mut self) -> bool {
        let _ = rustix::io::read(&self.mail.wake, &mut [0; 8]);
        let mut letter = self.mail.lock();
        if let Some((rules, exports)) = letter.update.take() {
            let (budget, guarantees) = (self.rules.budget.take(), std::mem::take(&mut self.rules.guarantees));
            // Without room for more, there are as many as before.
            let connections = room_for(rules.connections).unwrap_or(self.rules.connections);
            self.rules = Rules { connections, budget, guarantees, ..rules };
            self.exports = exports;
        }
        letter.is_stopping
    }

    /// Accepts clients that wait at a listener, and refuses those above the limits.
    fn accept(&mut self, listener: usize, now: Instant) {
        // epoll reports the remaining clients again.
        for _ in 0..AT_ONCE {
            match self.listeners[listener].accept() {
                Ok((socket, origin, client)) => self.greet(listener, socket, (origin, client), now),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    // No descriptor is left, or the client has already disconnected. Others get time to close theirs.
                    #[allow(clippy::disallowed_methods, reason = "the system said that there is no more")]
                    std::thread::sleep(Duration::from_millis(1));
                    return;
                }
            }
        }
    }

    fn greet(&mut self, listener: usize, socket: Socket, (origin, client): (Origin, String), now: Instant) {
        let Rules { limits, connections, connections_per_address, idle, budget, tls, .. } = &self.rules;
        let address = match origin {
            Origin::Network(address) => Some(address),
            Origin::Local { .. } | Origin::Unknown => None,
        };
        let slot = match self
            .slots
            .acquire(address, ConnectionLimits::new(*connections, *connections_per_address, *idle))
        {
            Ok(slot) => slot,
            Err(refusal) => return warn!(target: log_parts::CLIENT, "{client}: refused: {refusal}"),
        };
        let tls = TlsUse::tls_for(self.listeners[listener].tls(), tls.as_ref());
        let peer = Peer { origin, names: Vec::new() };
        let handshake = Handshake::new(self.exports.clone(), limits.clone(), now);
        let handshake = handshake.with_peer(peer).with_tls(tls).with_budget(budget.clone());
        let handshake = handshake.with_gate(Some(Arc::clone(&self.doors) as Arc<dyn Gate>));
        let connection = Connection::new(socket.into(), handshake, limits, slot).named(client);
        let place = self.greeted.insert(connection);
        self.advance(place, now);
    }

    /// Advances a handshake; passes the connection on when it is done.
    fn advance(&mut self, place: usize, now: Instant) {
        let Some(connection) = self.greeted.get_mut(place) else { return };
        connection.receive(now);
        connection.send(now);
        if let Some(refusal) = connection.wire.machine.take_refusal() {
            warn!(target: log_parts::CLIENT, "{}: refused: {refusal}", connection.client());
        }
        if connection.is_over() || connection.is_disconnected() {
            report_end(&self.greeted.remove(place));
        } else if let Some(chosen) = connection.wire.machine.chosen() {
            connection.unwatch(&self.epoll);
            let connection = self.greeted.remove(place);
            report_choice(&connection, &self.exports.all()[chosen].name);
            let target = &self.served[chosen].target;
            let time = target.clock().real_now();
            if let Some(connection) = connection.with(time, |handshake| handshake.into_session(time)) {
                target.adopt(connection, self.doors.promised(chosen));
            }
        } else {
            connection.watch(&self.epoll, place as u64);
        }
    }
}

fn report_choice(connection: &Connection<Handshake>, export: &str) {
    let (client, handshake) = (connection.client(), &connection.wire.machine);
    let tls = if handshake.is_secure() { " within TLS" } else { "" };
    let names = match handshake.peer().names.join(", ") {
        names if names.is_empty() => names,
        names => format!(", certificate of {names}"),
    };
    info!(target: log_parts::CLIENT, "{client}: uses export `{export}`{tls}{names}");
}

/// Logs why a connection ended before its client chose an export.
fn report_end(connection: &Connection<Handshake>) {
    let client = connection.client();
    match connection.wire.ending() {
        Some(Ending::Broken(breach)) => warn!(target: log_parts::CLIENT, "{client}: refused: {breach}"),
        _ => info!(target: log_parts::CLIENT, "{client}: left, and chose no export"),
    }
}
