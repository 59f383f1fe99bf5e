//! A session as the other end of a socket: where input goes, what output there is, when it takes too long.

use super::{INBOX, Reading, Session};
use crate::limits::{Breach, Ending};
use crate::wire::{Machine, Tls, Wire};
use headstack_model::Instant;

impl Wire for Session {
    fn wants_input(&self) -> bool {
        let room = match &self.reading {
            Reading::Payload { header, received, .. } => *received < header.payload(),
            _ => self.inbox.has_space(),
        };
        room && !self.blocked && !self.hung_up && self.ending.is_none()
    }

    fn input_space(&mut self) -> &mut [u8] {
        match &mut self.reading {
            Reading::Payload { header, data, received } => {
                // Memory is in use as the bytes arrive, and not before.
                let end = header.payload().min(*received + INBOX);
                data.resize(end.max(data.len()), 0);
                &mut data[*received..]
            }
            _ => self.inbox.space(),
        }
    }

    fn filled(&mut self, now: Instant, bytes: usize) {
        self.now = now;
        match &mut self.reading {
            Reading::Payload { data, received, .. } => {
                assert!(bytes <= data.len() - *received, "no more can be put in than there is room");
                *received += bytes;
            }
            _ => self.inbox.commit(bytes),
        }
    }

    fn input_ended(&mut self) {
        self.hung_up = true;
    }

    fn output(&mut self) -> &[u8] {
        self.outbox.bytes()
    }

    fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    fn sent(&mut self, now: Instant, bytes: usize) {
        self.now = now;
        self.outbox.consume(bytes);
        self.taken += bytes as u64;
        self.settle();
        if bytes > 0 {
            self.untaken = (!self.outbox.is_empty()).then_some(now);
        }
    }

    fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    fn is_over(&self) -> bool {
        match self.ending {
            None => false,
            Some(Ending::Broken(_)) => true,
            Some(_) => self.in_flight == 0 && self.outbox.is_empty(),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let request = self.incomplete.map(|since| since.saturating_add(self.limits.request));
        let reply = self.untaken.map(|since| since.saturating_add(self.limits.reply));
        request.into_iter().chain(reply).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.outbox.release();
        self.settle();
        let over =
            |since: Option<Instant>, limit| since.is_some_and(|since| since.saturating_add(limit) <= now);
        if over(self.incomplete, self.limits.request) {
            self.end(Ending::Broken(Breach::SlowRequest));
        } else if over(self.untaken, self.limits.reply) {
            self.end(Ending::Broken(Breach::SlowReader));
        }
    }
}

impl Machine for Session {
    fn take_tls(&mut self) -> Option<Tls> {
        None
    }

    fn secured(&mut self, _names: Option<Vec<String>>) {
        unreachable!("TLS begins before an export is chosen")
    }

    fn fail(&mut self, breach: Breach) {
        self.end(Ending::Broken(breach));
    }
}
