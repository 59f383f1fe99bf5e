//! The handshake: a client chooses an export, and how it is to be spoken with.

use headstack_model::Nanos;

use super::Wire;
use super::buffer::Buffer;
use super::export::Exports;
use super::limits::{Breach, Ending, Limits};
use super::option::{Choice, OptionHeader};
use super::proto;
use super::session::Session;

/// Replies that a client may leave lying before it is read from again.
const UNTAKEN: usize = 64 << 10;

/// A connection whose client has not yet chosen an export.
#[derive(Debug)]
pub struct Handshake {
    exports: Exports,
    limits: Limits,
    inbox: Buffer,
    outbox: Buffer,
    reading: Reading,
    /// Options so far.
    options: u32,
    /// Whether the client can be told of errors.
    fixed: bool,
    /// Whether the client wants zeros after an export's size.
    padding: bool,
    choice: Choice,
    chosen: Option<usize>,
    hung_up: bool,
    ending: Option<Ending>,
    deadline: Nanos,
}

/// What the next bytes from the client are.
#[derive(Debug)]
enum Reading {
    Flags,
    Options,
    /// The data of an option that is not served, and what is answered then.
    Refused {
        option: u32,
        left: u64,
        reply: u32,
    },
}

impl Handshake {
    /// Greets a client.
    pub fn new(exports: Exports, limits: Limits, now: Nanos) -> Handshake {
        let mut outbox = Buffer::with_room(1 << 10);
        for magic in proto::GREETING {
            outbox.push(&magic.to_be_bytes());
        }
        outbox.push(&(proto::FIXED_NEWSTYLE | proto::NO_ZEROES).to_be_bytes());
        Handshake {
            exports,
            inbox: Buffer::with_room(OptionHeader::BYTES + limits.option_bytes as usize),
            outbox,
            reading: Reading::Flags,
            options: 0,
            fixed: false,
            padding: true,
            choice: Choice::default(),
            chosen: None,
            hung_up: false,
            ending: None,
            deadline: now.saturating_add(limits.handshake),
            limits,
        }
    }

    /// The place among the exports of the one that the client chose.
    pub fn chosen(&self) -> Option<usize> {
        self.chosen
    }

    /// Goes on with the transmission, where an export was chosen. What was received beyond the handshake, and what was
    /// not yet sent of it, goes along.
    pub fn into_session(self, now: Nanos) -> Option<Session> {
        let export = self.chosen?;
        let terms = self.choice.terms(export);
        let mut session =
            Session::new((self.exports, export), terms, self.limits, (self.inbox.bytes(), self.outbox), now);
        if self.hung_up {
            session.input_ended();
        }
        Some(session)
    }

    /// Deals with all that can be dealt with.
    fn advance(&mut self) {
        while self.ending.is_none() && self.chosen.is_none() && self.outbox.len() <= UNTAKEN {
            match self.step() {
                Ok(true) => {}
                Ok(false) if self.hung_up => self.ending = Some(Ending::HungUp),
                Ok(false) => break,
                Err(breach) => self.ending = Some(Ending::Broken(breach)),
            }
        }
    }

    /// Takes one thing from the input; whether there may be more.
    fn step(&mut self) -> Result<bool, Breach> {
        match &mut self.reading {
            Reading::Flags => self.take_flags(),
            Reading::Options => self.take_option(),
            Reading::Refused { option, left, reply } => {
                let passed = self.inbox.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                self.inbox.consume(passed);
                *left -= passed as u64;
                if *left > 0 {
                    return Ok(false);
                }
                let message = if *reply == proto::REP_ERR_TOO_BIG { "the option is too long" } else { "" };
                proto::put_option_reply(&mut self.outbox, *option, *reply, &[message.as_bytes()]);
                self.reading = Reading::Options;
                Ok(true)
            }
        }
    }

    fn take_flags(&mut self) -> Result<bool, Breach> {
        let Some(flags) = proto::Fields(self.inbox.bytes()).u32() else { return Ok(false) };
        let (fixed, no_zeroes) = (u32::from(proto::FIXED_NEWSTYLE), u32::from(proto::NO_ZEROES));
        if flags & !(fixed | no_zeroes) != 0 {
            return Err(Breach::ClientFlags { met: flags });
        }
        (self.fixed, self.padding) = (flags & fixed != 0, flags & no_zeroes == 0);
        self.inbox.consume(4);
        self.reading = Reading::Options;
        Ok(true)
    }

    fn take_option(&mut self) -> Result<bool, Breach> {
        let Some(header) = OptionHeader::parse(self.inbox.bytes())? else { return Ok(false) };
        let OptionHeader { option, length } = header;
        if !self.fixed && option != proto::OPT_EXPORT_NAME {
            return Err(Breach::OptionBeforeFixed { met: option });
        }
        if self.options == self.limits.options {
            return Err(Breach::Options { allowed: self.limits.options });
        }
        if option == proto::OPT_ABORT {
            proto::put_option_reply(&mut self.outbox, option, proto::REP_ACK, &[]);
            self.ending = Some(Ending::Disconnected);
            return Ok(false);
        }
        let too_long = length > self.limits.option_bytes;
        if too_long && option == proto::OPT_EXPORT_NAME {
            return Err(Breach::LongName { bytes: length, allowed: self.limits.option_bytes });
        }
        if too_long || !header.is_known() {
            let reply = if header.is_known() { proto::REP_ERR_TOO_BIG } else { proto::REP_ERR_UNSUP };
            self.inbox.consume(OptionHeader::BYTES);
            self.options += 1;
            self.reading = Reading::Refused { option, left: length.into(), reply };
            return Ok(true);
        }
        let whole = OptionHeader::BYTES + length as usize;
        let Some(bytes) = self.inbox.bytes().get(..whole) else { return Ok(false) };
        let data = &bytes[OptionHeader::BYTES..];
        self.options += 1;
        if option == proto::OPT_EXPORT_NAME {
            self.chosen = Some(self.choice.by_name(&self.exports, data, self.padding, &mut self.outbox)?);
        } else {
            self.chosen = self.choice.answer(&self.exports, &self.limits, option, data, &mut self.outbox);
        }
        self.inbox.consume(whole);
        Ok(true)
    }
}

impl Wire for Handshake {
    fn wants_input(&self) -> bool {
        let open = self.ending.is_none() && self.chosen.is_none() && !self.hung_up;
        open && self.outbox.len() <= UNTAKEN && self.inbox.has_space()
    }

    fn input_space(&mut self) -> &mut [u8] {
        self.inbox.space()
    }

    fn filled(&mut self, _now: Nanos, bytes: usize) {
        self.inbox.commit(bytes);
        self.advance();
    }

    fn input_ended(&mut self) {
        self.hung_up = true;
        self.advance();
    }

    fn output(&self) -> &[u8] {
        self.outbox.bytes()
    }

    fn sent(&mut self, _now: Nanos, bytes: usize) {
        self.outbox.consume(bytes);
        self.advance();
    }

    fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    fn is_over(&self) -> bool {
        match self.ending {
            None => false,
            Some(Ending::Broken(_)) => true,
            Some(_) => self.outbox.is_empty(),
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        (!self.is_over() && self.chosen.is_none()).then_some(self.deadline)
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if self.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.ending = Some(Ending::Broken(Breach::SlowHandshake));
        }
    }
}
