//! A socket and the machine that speaks over it.

use crate::log_parts;
use crate::server::slots::ConnectionSlot;
use headstack_model::Nanos;
use headstack_nbd::{Ending, Limits, Machine, Session, Transport, Wire};
use headstack_policy::streams::Guarantee;
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
    /// The client hears nothing any more. What it said before may still be there.
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

    /// The same, of a client that the log calls so.
    pub(crate) fn named(self, client: String) -> Connection<W> {
        Connection { client, ..self }
    }

    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// The same connection with another machine, by a clock that says `now`.
    pub(crate) fn with<T>(self, now: Nanos, change: impl FnOnce(W) -> Option<T>) -> Option<Connection<T>> {
        let Connection { socket, wire, disconnected, broken, slot, client, .. } = self;
        let wire = wire.with(now, change)?;
        Some(Connection { socket, wire, interest: EventFlags::empty(), disconnected, broken, slot, client })
    }

    /// Has epoll look for what is wanted now, under this number.
    pub(crate) fn watch(&mut self, epoll: &OwnedFd, number: u64) {
        if self.disconnected {
            // It would be told of again and again.
            return self.unwatch(epoll);
        }
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, self.wire.wants_input());
        wanted.set(EventFlags::OUT, self.wire.has_output());
        if wanted == self.interest {
            return;
        }
        let data = EventData::new_u64(number);
        let result = match self.interest.is_empty() {
            true => epoll::add(epoll, &self.socket, data, wanted)
                .or_else(|_| epoll::modify(epoll, &self.socket, data, wanted)),
            false => epoll::modify(epoll, &self.socket, data, wanted),
        };
        self.interest = wanted;
        self.broken |= result.is_err();
    }

    pub(crate) fn unwatch(&mut self, epoll: &OwnedFd) {
        // Fails where it was never looked for, which is as well.
        let _ = epoll::delete(epoll, &self.socket);
        self.interest = EventFlags::empty();
    }

    /// Takes what the client has sent, as much as the machine has room for at once; whether there was anything, be it the end.
    pub(crate) fn receive(&mut self, now: Nanos) -> bool {
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

    pub(crate) fn send(&mut self, now: Nanos) {
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

    /// Takes note that the client hears nothing any more.
    pub(crate) fn mark_disconnected(&mut self) {
        self.disconnected = true;
    }

    pub(crate) fn is_disconnected(&self) -> bool {
        self.disconnected
    }

    /// Of a client that hears nothing any more, takes what it said before, and hands the machine to `take` for what it asks.
    /// Then the connection is over, unless the machine must be answered first; after that there may be more.
    pub(crate) fn take_rest(&mut self, now: Nanos, mut take: impl FnMut(&mut Transport<W>)) {
        // A client that still speaks, and hears nothing, is not listened to for ever.
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

    /// Takes note for how long the client has asked for nothing, and ends a connection whose seat another client has got.
    pub(crate) fn note_idle(&mut self, idle: Nanos) {
        self.broken |= self.slot.note_idle(idle);
    }

    pub(crate) fn has_lost_its_slot(&self) -> bool {
        self.slot.is_revoked()
    }

    /// Whether it is to be dropped.
    pub(crate) fn is_over(&self) -> bool {
        self.broken || self.wire.is_over()
    }
}

/// A connection whose client has chosen a volume of a disk.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connection: Connection<Session>,
    pub(crate) volume: u32,
    pub(crate) promised: Option<Guarantee>,
    pub(crate) is_gone: bool,
    /// Tells it from others that had its place before.
    pub(crate) number: u64,
    /// When the client said something last, or had something under way.
    pub(crate) active: Nanos,
    /// Answers that were not sent yet: the last byte of each, and when it was due.
    unsent: VecDeque<(u64, Nanos)>,
}

impl Link {
    pub(crate) fn new(connection: Connection<Session>, volume: u32) -> Link {
        let (promised, active, unsent) = (None, Nanos::ZERO, VecDeque::new());
        Link { connection, volume, promised, is_gone: false, number: 0, active, unsent }
    }

    /// Sees whether the client took too long, and for how long it has asked for nothing.
    pub(crate) fn sweep(&mut self, now: Nanos) {
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

    /// Notes an answer that was due then and is the last of what is to be sent.
    pub(crate) fn note_due(&mut self, due: Nanos) {
        self.unsent.push_back((self.connection.wire.machine.said(), due));
    }

    /// Takes when those answers were due that were sent by now.
    pub(crate) fn take_sent(&mut self) -> impl ExactSizeIterator<Item = Nanos> + '_ {
        let taken = self.connection.wire.machine.taken();
        let count = self.unsent.iter().take_while(|(last, _)| *last <= taken).count();
        self.unsent.drain(..count).map(|(_, due)| due)
    }
}
