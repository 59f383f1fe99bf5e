//! Carries the bytes of a machine over the socket: in the clear, or in TLS once the client has requested it.
//!
//! Bytes received before the TLS handshake are never taken for bytes within it: the machine refuses what follows a STARTTLS at
//! once, and later bytes must be TLS.

use headstack_model::{Instant, Nanos};

use super::limits::{Breach, Ending, Limits};
use super::records::Records;
use super::session::{Request, Session};
use super::wire::{Machine, Tls, Wire};

/// A machine with its transport.
#[derive(Debug)]
pub struct Transport<W> {
    /// The machine.
    pub machine: W,
    /// Time for a record to be completed.
    timeout: Nanos,
    records: Option<Box<Records>>,
}

impl<W: Machine> Transport<W> {
    /// A machine in the clear until it begins TLS.
    pub fn new(machine: W, limits: &Limits) -> Transport<W> {
        Transport { machine, timeout: limits.request, records: None }
    }

    /// The same transport for another machine, which continues where this one ended, by a clock that says `now`.
    pub fn with<T>(self, now: Instant, change: impl FnOnce(W) -> Option<T>) -> Option<Transport<T>> {
        let Transport { machine, timeout, mut records } = self;
        if let Some(records) = &mut records {
            records.rebase(now);
        }
        Some(Transport { machine: change(machine)?, timeout, records })
    }

    /// Records whether input is read, at time `now` if it is.
    fn note_stall(&mut self, now: Option<Instant>) {
        let is_read = self.wants_input();
        let Some(records) = &mut self.records else { return };
        match now {
            _ if !is_read => records.stall(),
            Some(now) => records.listen(now),
            None => {}
        }
    }

    /// Switches to TLS if the machine has just negotiated it.
    fn upgrade(&mut self, now: Instant) {
        let Some(Tls { config, .. }) = self.machine.take_tls() else { return };
        let plain = self.machine.output();
        match Records::begin(config, plain, now) {
            Ok(records) => {
                let bytes = plain.len();
                self.machine.sent(now, bytes);
                self.records = Some(Box::new(records));
            }
            Err(error) => self.machine.fail(Breach::Tls { error }),
        }
    }
}

impl Transport<Session> {
    /// The next request for the disk. Invalid requests are answered with an error.
    pub fn next_request(&mut self) -> Option<Request> {
        loop {
            if let Some(request) = self.machine.next_request() {
                return Some(request);
            }
            // The machine may have space again for bytes of the last record.
            let records = self.records.as_mut()?;
            if !records.hand_on(&mut self.machine) {
                self.note_stall(None);
                return None;
            }
        }
    }
}

impl<W: Machine> Wire for Transport<W> {
    fn wants_input(&self) -> bool {
        self.machine.wants_input() && self.records.as_ref().is_none_or(|records| records.has_room())
    }

    fn input_space(&mut self) -> &mut [u8] {
        match &mut self.records {
            Some(records) => records.space(),
            None => self.machine.input_space(),
        }
    }

    fn filled(&mut self, now: Instant, bytes: usize) {
        match &mut self.records {
            Some(records) => {
                records.filled(&mut self.machine, now, bytes);
                self.note_stall(Some(now));
            }
            None => {
                self.machine.filled(now, bytes);
                self.upgrade(now);
            }
        }
    }

    fn input_ended(&mut self) {
        match &mut self.records {
            Some(records) => records.input_ended(&mut self.machine),
            None => self.machine.input_ended(),
        }
    }

    fn output(&mut self) -> &[u8] {
        match &mut self.records {
            Some(records) => {
                records.seal(&mut self.machine);
                records.output()
            }
            None => self.machine.output(),
        }
    }

    fn has_output(&self) -> bool {
        match &self.records {
            Some(records) => {
                let unsealed = self.machine.has_output() || self.machine.is_over();
                !records.output().is_empty() || unsealed && !records.is_closed()
            }
            None => self.machine.has_output(),
        }
    }

    fn sent(&mut self, now: Instant, bytes: usize) {
        match &mut self.records {
            Some(records) => {
                records.sent(&mut self.machine, now, bytes);
                // Bytes may have waited until replies were sent.
                records.hand_on(&mut self.machine);
                self.note_stall(Some(now));
            }
            None => {
                self.machine.sent(now, bytes);
                self.upgrade(now);
            }
        }
    }

    fn ending(&self) -> Option<&Ending> {
        let failure = self.records.as_ref().and_then(|records| records.failure());
        failure.or_else(|| self.machine.ending())
    }

    fn is_over(&self) -> bool {
        match &self.records {
            Some(records) if records.failure().is_some() => true,
            Some(records) => self.machine.is_over() && records.is_closed(),
            None => self.machine.is_over(),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let record = self.records.as_ref().and_then(|records| records.deadline(self.timeout));
        record.into_iter().chain(self.machine.poll_timeout()).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        self.note_stall(Some(now));
        if let Some(records) = &mut self.records {
            records.release();
            if records.deadline(self.timeout).is_some_and(|deadline| deadline <= now) {
                records.give_up();
            }
        }
    }
}
