//! The handshake: a client chooses an export and negotiates options.

use std::sync::Arc;

use headstack_model::Instant;

use super::access::Peer;
use super::budget::Budget;
use super::buffer::Buffer;
use super::export::Exports;
use super::limits::{Breach, Ending, Limits};
use super::option::{Choice, OptionHeader};
use super::proto;
use super::session::Session;
use super::visible::VisibleExports;
use super::wire::{Gate, Machine, Permit, Tls, Wire};

/// Bytes of replies that a client may leave unread before the server stops reading its options.
const UNTAKEN: usize = 64 << 10;

/// A connection whose client has not yet chosen an export.
#[derive(Debug)]
pub struct Handshake {
    exports: Exports,
    peer: Peer,
    gate: Option<Arc<dyn Gate>>,
    permit: Option<Permit>,
    budget: Option<Budget>,
    limits: Limits,
    inbox: Buffer,
    outbox: Buffer,
    reading: Reading,
    options: u32,
    fixed: bool,
    /// Whether the client wants zeros after an export's size.
    padding: bool,
    choice: Choice,
    chosen: Option<usize>,
    tls: TlsOffer,
    hung_up: bool,
    /// Why the client's last option was refused.
    refusal: Option<String>,
    ending: Option<Ending>,
    deadline: Instant,
}

/// The TLS that the server offers, and its state.
#[derive(Debug, Default)]
struct TlsOffer {
    offered: Option<Tls>,
    /// Whether TLS begins now: nothing is read until the caller has called [`take_tls`](Machine::take_tls).
    begins: bool,
    secure: bool,
}

impl TlsOffer {
    fn must_precede(&self, option: u32) -> bool {
        let required = self.offered.as_ref().is_some_and(|tls| tls.required);
        required && !self.secure && option != proto::OPT_STARTTLS
    }

    /// Why a client with this length of option data may not begin TLS, if so.
    fn refusal(&self, length: u32) -> Option<&'static str> {
        match (length, self.secure) {
            (0, false) => None,
            (0, true) => Some("TLS has begun already"),
            _ => Some("TLS is asked for without data"),
        }
    }
}

#[derive(Debug)]
enum Reading {
    Flags,
    Options,
    /// The data of an option that is not supported, and the reply that follows.
    Refused {
        option: u32,
        left: u64,
        reply: u32,
    },
}

impl Handshake {
    /// A handshake that begins with the greeting.
    pub fn new(exports: Exports, limits: Limits, now: Instant) -> Handshake {
        let mut outbox = Buffer::with_room(1 << 10);
        for magic in proto::GREETING {
            outbox.push(&magic.to_be_bytes());
        }
        outbox.push(&(proto::FIXED_NEWSTYLE | proto::NO_ZEROES).to_be_bytes());
        Handshake {
            exports,
            peer: Peer::default(),
            gate: None,
            permit: None,
            budget: None,
            inbox: Buffer::with_room(OptionHeader::BYTES + limits.option_bytes as usize),
            outbox,
            reading: Reading::Flags,
            options: 0,
            fixed: false,
            padding: true,
            choice: Choice::default(),
            chosen: None,
            tls: TlsOffer::default(),
            hung_up: false,
            refusal: None,
            ending: None,
            deadline: now.saturating_add(limits.handshake),
            limits,
        }
    }

    /// Sets the client's identity.
    pub fn with_peer(self, peer: Peer) -> Handshake {
        Handshake { peer, ..self }
    }

    /// Sets the gate that limits clients.
    pub fn with_gate(self, gate: Option<Arc<dyn Gate>>) -> Handshake {
        Handshake { gate, ..self }
    }

    /// Sets the budget of the session.
    pub fn with_budget(self, budget: Option<Budget>) -> Handshake {
        Handshake { budget, ..self }
    }

    /// Offers TLS, or requires it.
    pub fn with_tls(self, tls: Option<Tls>) -> Handshake {
        Handshake { tls: TlsOffer { offered: tls, ..TlsOffer::default() }, ..self }
    }

    /// The client's identity.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Whether TLS is in use.
    pub fn is_secure(&self) -> bool {
        self.tls.secure
    }

    /// Why an option of the client was refused since the last call, if one was.
    pub fn take_refusal(&mut self) -> Option<String> {
        self.refusal.take()
    }

    /// The index of the chosen export.
    pub fn chosen(&self) -> Option<usize> {
        self.chosen
    }

    /// Begins the transmission, if an export was chosen. Bytes received beyond the handshake, and replies not yet sent, move to
    /// the session.
    pub fn into_session(self, now: Instant) -> Option<Session> {
        let export = self.chosen?;
        let terms = self.choice.terms(export);
        let mut session = Session::new(
            (self.exports, export),
            terms,
            self.limits,
            (self.inbox.bytes(), self.outbox.bytes()),
            now,
        )
        .sharing(self.budget)
        .holding(self.permit);
        if self.hung_up {
            session.input_ended();
        }
        Some(session)
    }

    fn advance(&mut self) {
        while self.is_open() && self.outbox.len() <= UNTAKEN {
            match self.step() {
                Ok(true) => {}
                Ok(false) if self.hung_up => self.ending = Some(Ending::HungUp),
                Ok(false) => break,
                Err(breach) => self.ending = Some(Ending::Broken(breach)),
            }
        }
    }

    /// Whether options are still negotiated.
    fn is_open(&self) -> bool {
        self.ending.is_none() && self.chosen.is_none() && !self.tls.begins
    }

    /// Handles one item of the input; returns whether there may be more.
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
                let message = match *reply {
                    proto::REP_ERR_TOO_BIG => "the option is too long",
                    proto::REP_ERR_TLS_REQD => "TLS must come first",
                    _ => "",
                };
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
        if self.tls.must_precede(option) {
            if option == proto::OPT_EXPORT_NAME {
                return Err(Breach::TlsRequired);
            }
            if self.options == 0 {
                self.refusal = Some("it speaks no TLS, which must come first".to_string());
            }
            return Ok(self.pass_over(header, proto::REP_ERR_TLS_REQD));
        }
        let too_long = length > self.limits.option_bytes;
        if too_long && option == proto::OPT_EXPORT_NAME {
            return Err(Breach::LongName { bytes: length, allowed: self.limits.option_bytes });
        }
        let known = header.is_known() && (option != proto::OPT_STARTTLS || self.tls.offered.is_some());
        if too_long || !known {
            let reply = if known { proto::REP_ERR_TOO_BIG } else { proto::REP_ERR_UNSUP };
            return Ok(self.pass_over(header, reply));
        }
        let whole = OptionHeader::BYTES + length as usize;
        let Some(bytes) = self.inbox.bytes().get(..whole) else { return Ok(false) };
        let data = &bytes[OptionHeader::BYTES..];
        self.options += 1;
        if option == proto::OPT_STARTTLS {
            return self.start_tls(length);
        }
        let shown = VisibleExports { exports: &self.exports, peer: &self.peer };
        let (gate, permit) = (&self.gate, &mut self.permit);
        let enter = |export| {
            *permit = gate.as_ref().map_or(Ok(None), |gate| gate.enter(export))?;
            Ok(())
        };
        if option == proto::OPT_EXPORT_NAME {
            self.chosen = Some(self.choice.by_name(shown, data, self.padding, &mut self.outbox, enter)?);
        } else {
            let (limits, outbox) = (&self.limits, &mut self.outbox);
            match self.choice.answer(shown, limits, (option, data), outbox, enter) {
                Ok(chosen) => self.chosen = chosen,
                Err(message) if option == proto::OPT_GO => self.refusal = Some(message),
                // It was only a query.
                Err(_) => {}
            }
        }
        self.inbox.consume(whole);
        Ok(true)
    }

    /// Skips the data of an option, and then refuses it.
    fn pass_over(&mut self, OptionHeader { option, length }: OptionHeader, reply: u32) -> bool {
        self.inbox.consume(OptionHeader::BYTES);
        self.options += 1;
        self.reading = Reading::Refused { option, left: length.into(), reply };
        true
    }

    fn start_tls(&mut self, length: u32) -> Result<bool, Breach> {
        self.inbox.consume(OptionHeader::BYTES + length as usize);
        let refusal = self.tls.refusal(length);
        let (reply, message) = refusal.map_or((proto::REP_ACK, ""), |text| (proto::REP_ERR_INVALID, text));
        if refusal.is_none() {
            // The sender of these bytes was not asked for a certificate.
            if !self.inbox.is_empty() {
                return Err(Breach::BeforeTls { bytes: self.inbox.len() });
            }
            self.tls.begins = true;
        }
        proto::put_option_reply(&mut self.outbox, proto::OPT_STARTTLS, reply, &[message.as_bytes()]);
        Ok(true)
    }
}

impl Wire for Handshake {
    fn wants_input(&self) -> bool {
        self.is_open() && !self.hung_up && self.outbox.len() <= UNTAKEN && self.inbox.has_space()
    }

    fn input_space(&mut self) -> &mut [u8] {
        self.inbox.space()
    }

    fn filled(&mut self, _now: Instant, bytes: usize) {
        self.inbox.commit(bytes);
        self.advance();
    }

    fn input_ended(&mut self) {
        self.hung_up = true;
        self.advance();
    }

    fn output(&mut self) -> &[u8] {
        self.outbox.bytes()
    }

    fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    fn sent(&mut self, _now: Instant, bytes: usize) {
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

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.is_over() && self.chosen.is_none()).then_some(self.deadline)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.ending = Some(Ending::Broken(Breach::SlowHandshake));
        }
    }
}

impl Machine for Handshake {
    fn take_tls(&mut self) -> Option<Tls> {
        std::mem::take(&mut self.tls.begins).then(|| self.tls.offered.clone()).flatten()
    }

    fn secured(&mut self, names: Option<Vec<String>>) {
        self.tls.secure = true;
        self.peer.names = names.unwrap_or_default();
        // Options from before TLS may be anyone's.
        self.choice = Choice::default();
    }

    fn fail(&mut self, breach: Breach) {
        self.ending = Some(Ending::Broken(breach));
    }
}
