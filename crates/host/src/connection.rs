//! A socket and the protocol machine that uses it.

use crate::log_parts;
use crate::server::slots::ConnectionSlot;
use headstack_model::{Instant, Nanos};
use headstack_nbd::{Ending, Limits, Machine, Session, Transport, Wire};
use headstack_streams::streams::Guarantee;
use log::{info, warn};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

#[derive(Debug)]
pub(crate) struct Connection<W> {
    socket: OwnedFd,
    pub(crate) wire: Transport<W>,
    interest: EventFlags,
    /// The client no longer receives. What it sent before may still be in the socket.
    disconnected: bool,
    broken: bool,
    slot: ConnectionSlot,
    client: String,
}

impl<W: Machine> Connection<W> {
    pub(crate) fn new(socket: OwnedFd, machine: W, limits: &Limits, slot: ConnectionSlot) -> Connection<W> {
        let (wire, interest) = (Transport::new(machine, limits), EventFlags::empty());
        Connection { socket, wire, interest, disconnected: false, broken: false, slot, client: String::new() }
    }

    /// Sets the client's name for the log.
    pub(crate) fn named(self, client: String) -> Connection<W> {
        Connection { client, ..self }
    }

    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// Replaces the machine, at time `now`; `None` from `change` drops the connection.
    pub(crate) fn with<T>(self, now: Instant, change: impl FnOnce(W) -> Option<T>) -> Option<Connection<T>> {
        let Connection { socket, wire, disconnected, broken, slot, client, .. } = self;
        let wire = wire.with(now, change)?;
        Some(Connection { socket, wire, interest: EventFlags::empty(), disconnected, broken, slot, client })
    }

    /// Registers the wanted events with epoll, under this number.
    pub(crate) fn watch(&mut self, epoll: &OwnedFd, number: u64) {
        if self.disconnected {
            // Otherwise epoll would report it again and again.
            return self.unwatch(epoll);
        }
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, self.wire.wants_input());
        wanted.set(EventFlags::OUT, self.wire.has_output());
        if wanted == self.interest {
            return;
        }
        let data = EventData::new_u64(number);
        let result = if self.interest.is_empty() {
            epoll::add(epoll, &self.socket, data, wanted)
                .or_else(|_| epoll::modify(epoll, &self.socket, data, wanted))
        } else {
            epoll::modify(epoll, &self.socket, data, wanted)
        };
        self.interest = wanted;
        self.broken |= result.is_err();
    }

    pub(crate) fn unwatch(&mut self, epoll: &OwnedFd) {
        // Fails only if it was not registered.
        let _ = epoll::delete(epoll, &self.socket);
        self.interest = EventFlags::empty();
    }

    /// Receives as much as the machine has space for. Returns whether there was anything, the end of input included.
    pub(crate) fn receive(&mut self, now: Instant) -> bool {
        if !self.wire.wants_input() {
            return false;
        }
        match rustix::net::recv(&self.socket, self.wire.input_space(), RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.wire.input_ended(),
            Ok((bytes, _)) => self.wire.filled(now, bytes),
            Err(Errno::AGAIN | Errno::INTR) => return false,
            Err(_) => self.broken = true,
        }
        true
    }

    pub(crate) fn send(&mut self, now: Instant) {
        while !self.broken && !self.disconnected {
            let (flags, output) = (SendFlags::DONTWAIT | SendFlags::NOSIGNAL, self.wire.output());
            if output.is_empty() {
                return;
            }
            match rustix::net::send(&self.socket, output, flags) {
                Ok(bytes) => self.wire.sent(now, bytes),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.disconnected = true,
            }
        }
    }

    pub(crate) fn mark_disconnected(&mut self) {
        self.disconnected = true;
    }

    pub(crate) fn is_disconnected(&self) -> bool {
        self.disconnected
    }

    /// For a client that no longer receives: receives what it sent before, and passes the machine to `take` to collect the
    /// requests. Then the connection is over, unless the machine waits for answers, after which more requests may follow.
    pub(crate) fn take_rest(&mut self, now: Instant, mut take: impl FnMut(&mut Transport<W>)) {
        // Bounds the pieces that are received from a client that continues to send.
        const PIECES: usize = 1024;
        if !self.disconnected {
            return;
        }
        for _ in 0..PIECES {
            let unheard = self.wire.output().len();
            self.wire.sent(now, unheard);
            take(&mut self.wire);
            if self.wire.ending().is_some() {
                break;
            }
            if self.wire.has_output() {
                continue;
            }
            if !self.wire.wants_input() {
                return;
            }
            if !self.receive(now) {
                break;
            }
        }
        self.broken = true;
    }

    /// Records how long the client has sent no request, and ends the connection if its slot was given to another client.
    pub(crate) fn note_idle(&mut self, idle: Nanos) {
        self.broken |= self.slot.note_idle(idle);
    }

    pub(crate) fn has_lost_its_slot(&self) -> bool {
        self.slot.is_revoked()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.broken || self.wire.is_over()
    }
}

/// A connection whose client has chosen an export.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connection: Connection<Session>,
    pub(crate) volume: u32,
    pub(crate) promised: Option<Guarantee>,
    pub(crate) is_gone: bool,
    /// Distinguishes it from earlier connections with the same index.
    pub(crate) number: u64,
    /// When the client last sent something or had a request in flight.
    pub(crate) active: Instant,
    /// Answers not sent yet: the position of the last byte of each, and its deadline.
    unsent: VecDeque<(u64, Instant)>,
}

impl Link {
    pub(crate) fn new(connection: Connection<Session>, volume: u32) -> Link {
        let (promised, active, unsent) = (None, Instant::ZERO, VecDeque::new());
        Link { connection, volume, promised, is_gone: false, number: 0, active, unsent }
    }

    /// Applies the timeouts, and updates the idle time.
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.connection.wire.handle_timeout(now);
        if self.connection.wire.machine.in_flight() > 0 || self.connection.wire.has_output() {
            self.active = now;
        }
        self.connection.note_idle(now.since(self.active));
    }

    pub(crate) fn report_end(&self) {
        let (client, export) = (self.connection.client(), self.connection.wire.machine.export_name());
        match self.connection.wire.ending() {
            Some(Ending::Broken(breach)) => warn!(target: log_parts::CLIENT, "{client}: closed: {breach}"),
            _ if self.connection.has_lost_its_slot() => {
                info!(target: log_parts::CLIENT, "{client}: closed: it asked for nothing, and another client came");
            }
            _ => info!(target: log_parts::CLIENT, "{client}: left export `{export}`"),
        }
    }

    pub(crate) fn promised(self, promised: Option<Guarantee>) -> Link {
        Link { promised, ..self }
    }

    /// Records the deadline of the answer that ends the output so far.
    pub(crate) fn note_due(&mut self, due: Instant) {
        self.unsent.push_back((self.connection.wire.machine.said(), due));
    }

    /// Removes and returns the deadlines of answers that have been sent.
    pub(crate) fn take_sent(&mut self) -> impl ExactSizeIterator<Item = Instant> + '_ {
        let taken = self.connection.wire.machine.taken();
        let count = self.unsent.iter().take_while(|(last, _)| *last <= taken).count();
        self.unsent.drain(..count).map(|(_, due)| due)
    }
}
