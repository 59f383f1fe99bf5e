//! The TLS of a connection: it encrypts and decrypts records.
//!
//! Memory is bounded: [`INBOX`] of received records, as much of decrypted bytes, and for sending the records of [`BATCH`] bytes
//! and as much again of TLS itself.
//!
//! *Source:* RFC 8446.

use std::fmt;
use std::sync::Arc;

use headstack_model::{Instant, Nanos};
use rustls::ServerConfig;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
};

use super::buffer::Buffer;
use super::certificate;
use super::limits::{Breach, Ending};
use super::wire::Machine;

/// Bytes of received records: the largest TLS handshake message fits.
const INBOX: usize = 72 << 10;

/// Bytes of the machine's output that are encrypted together.
const BATCH: usize = 64 << 10;

/// Margin in bytes for the overhead of records.
const HEADS: usize = 1 << 10;

/// The server's side of TLS on a connection.
pub(super) struct Records {
    connection: UnbufferedServerConnection,
    inbox: Buffer,
    /// Decrypted bytes that the machine has no space for yet.
    said: Buffer,
    outbox: Buffer,
    /// The machine's bytes at the start of the outbox.
    batch: Option<Batch>,
    /// Whether the machine has been given the client's identity.
    open: bool,
    /// Whether the close alert was sent.
    closed: bool,
    /// Whether the client has closed its side; `is_end_reported` says whether the machine was informed of it, after all its bytes.
    ended: bool,
    is_end_reported: bool,
    failure: Option<Ending>,
    /// Since when the rest of a record is awaited.
    incomplete: Option<Instant>,
    /// Whether reading was stopped for lack of space at the last check: the client cannot send the rest meanwhile.
    stalled: bool,
    now: Instant,
}

impl fmt::Debug for Records {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Records")
            .field("open", &self.open)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

/// Bytes of the machine that were encrypted, and how many were sent.
#[derive(Clone, Copy, Debug)]
struct Batch {
    bytes: usize,
    /// How many of them were reported to the machine as sent.
    acknowledged: usize,
    sealed: usize,
    sent: usize,
}

/// What follows a step of the TLS state machine.
enum Next {
    Again,
    /// The handshake is over, and all received records are decrypted.
    Open,
    /// More records must arrive first.
    Wait,
    Fail(String),
}

impl Records {
    /// Begins TLS; `plain` is the last unencrypted output.
    ///
    /// *Errors:* the configuration is invalid.
    pub(super) fn begin(config: Arc<ServerConfig>, plain: &[u8], now: Instant) -> Result<Records, String> {
        let connection = UnbufferedServerConnection::new(config).map_err(|error| error.to_string())?;
        let mut outbox = Buffer::with_room(BATCH + HEADS);
        outbox.push(plain);
        Ok(Records {
            connection,
            inbox: Buffer::with_room(INBOX),
            said: Buffer::with_room(0),
            outbox,
            batch: None,
            open: false,
            closed: false,
            ended: false,
            is_end_reported: false,
            failure: None,
            incomplete: None,
            stalled: false,
            now,
        })
    }

    pub(super) fn failure(&self) -> Option<&Ending> {
        self.failure.as_ref()
    }

    /// Whether there is space for records and their decrypted bytes.
    pub(super) fn has_room(&self) -> bool {
        let is_done = self.failure.is_some() || self.ended;
        !is_done && self.said.is_empty() && self.outbox.len() <= 2 * BATCH && self.inbox.has_space()
    }

    pub(super) fn space(&mut self) -> &mut [u8] {
        self.inbox.space()
    }

    pub(super) fn filled(&mut self, machine: &mut impl Machine, now: Instant, bytes: usize) {
        self.now = now;
        self.inbox.commit(bytes);
        self.open_all(machine);
        self.hand_on(machine);
    }

    pub(super) fn input_ended(&mut self, machine: &mut impl Machine) {
        self.ended = true;
        self.hand_on(machine);
    }

    /// Passes the machine the decrypted bytes that it had no space for, and then the end of input. Returns whether it passed any of these.
    pub(super) fn hand_on(&mut self, machine: &mut impl Machine) -> bool {
        let taken = give(machine, self.now, self.said.bytes());
        self.said.consume(taken);
        let is_over = self.ended && self.said.is_empty();
        let is_news = is_over && !std::mem::replace(&mut self.is_end_reported, is_over);
        if is_news {
            machine.input_ended();
        }
        taken > 0 || is_news
    }

    /// Decrypts all received records, and passes their contents to the machine.
    fn open_all(&mut self, machine: &mut impl Machine) {
        let before = self.inbox.len();
        self.settle(machine);
        let progress = self.inbox.len() < before;
        self.incomplete = match self.incomplete {
            _ if self.inbox.is_empty() => None,
            Some(since) if !progress => Some(since),
            _ => Some(self.now),
        };
    }

    /// Processes all that has arrived; returns whether output to the client is possible.
    fn settle(&mut self, machine: &mut impl Machine) -> bool {
        while self.failure.is_none() {
            match self.step(machine) {
                Next::Again => {}
                Next::Open if self.open => return true,
                Next::Open => {
                    self.open = true;
                    let chain = self.connection.peer_certificates();
                    let names = chain.and_then(|chain| chain.first()).map(|first| certificate::names(first));
                    machine.secured(names);
                }
                Next::Wait => return false,
                Next::Fail(error) => {
                    self.failure = Some(Ending::Broken(Breach::Tls { error }));
                    // Sends an alert with the reason, as far as the client still receives.
                    while self.connection.wants_write() {
                        self.step(machine);
                    }
                }
            }
        }
        false
    }

    fn step(&mut self, machine: &mut impl Machine) -> Next {
        let Records { connection, inbox, said, outbox, open, ended, now, .. } = self;
        let UnbufferedStatus { discard, state } = connection.process_tls_records(inbox.bytes_mut());
        let next = match state {
            // The machine gets the client's identity before its first byte.
            Ok(ConnectionState::ReadTraffic(_)) if !*open => Next::Open,
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(Ok(record)) = traffic.next_record() {
                    let passed = if said.is_empty() { give(machine, *now, record.payload) } else { 0 };
                    said.push(&record.payload[passed..]);
                }
                Next::Again
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                put(outbox, HEADS, |room| data.encode(room).map_err(Shortage::from))
                    .map_or_else(Next::Fail, |_| Next::Again)
            }
            Ok(ConnectionState::TransmitTlsData(transmit)) => {
                transmit.done();
                Next::Again
            }
            Ok(ConnectionState::PeerClosed) => {
                *ended = true;
                Next::Again
            }
            Ok(ConnectionState::WriteTraffic(_)) => Next::Open,
            Ok(_) => Next::Wait,
            Err(error) => Next::Fail(error.to_string()),
        };
        inbox.consume(discard);
        // A server could send before it knows the client.
        if matches!(next, Next::Open) && connection.is_handshaking() { Next::Wait } else { next }
    }

    /// Encrypts the machine's output, or the close alert after its end; nothing while records wait to be sent.
    pub(super) fn seal(&mut self, machine: &mut impl Machine) {
        if !self.open || self.closed || self.failure.is_some() || !self.outbox.is_empty() {
            return;
        }
        // Keys may have to be changed first.
        if !self.settle(machine) || !self.outbox.is_empty() {
            return;
        }
        let is_over = machine.is_over();
        let bytes = machine.output();
        let bytes = &bytes[..bytes.len().min(BATCH)];
        if bytes.is_empty() && !is_over {
            return;
        }
        let UnbufferedStatus { discard, state } = self.connection.process_tls_records(self.inbox.bytes_mut());
        let result = match state {
            Ok(ConnectionState::WriteTraffic(mut traffic)) if bytes.is_empty() => {
                self.closed = true;
                put(&mut self.outbox, HEADS, |room| traffic.queue_close_notify(room).map_err(Shortage::from))
            }
            Ok(ConnectionState::WriteTraffic(mut traffic)) => put(&mut self.outbox, BATCH + HEADS, |room| {
                traffic.encrypt(bytes, room).map_err(Shortage::from)
            }),
            // The client receives no more.
            Ok(_) => Err("TLS is closed".to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.inbox.consume(discard);
        match result {
            Ok(sealed) if !bytes.is_empty() => {
                self.batch = Some(Batch { bytes: bytes.len(), acknowledged: 0, sealed, sent: 0 });
            }
            Ok(_) => {}
            Err(error) => self.failure = Some(Ending::Broken(Breach::Tls { error })),
        }
    }

    pub(super) fn output(&self) -> &[u8] {
        self.outbox.bytes()
    }

    /// Whether there is nothing more to send, once the machine is over.
    pub(super) fn is_closed(&self) -> bool {
        self.closed || !self.open || self.failure.is_some()
    }

    /// Reports that `bytes` of records were sent; the machine gets its share of them.
    pub(super) fn sent(&mut self, machine: &mut impl Machine, now: Instant, bytes: usize) {
        self.now = now;
        self.outbox.consume(bytes);
        let Some(batch) = &mut self.batch else { return };
        batch.sent = batch.sealed.min(batch.sent + bytes);
        // Both are at most about BATCH.
        let due = batch.bytes * batch.sent / batch.sealed;
        // A machine that is broken has no more output.
        let acknowledged = (due - batch.acknowledged).min(machine.output().len());
        batch.acknowledged = due;
        if batch.sent == batch.sealed {
            self.batch = None;
        }
        if acknowledged > 0 {
            machine.sent(now, acknowledged);
        }
    }

    /// The deadline for the rest of a record, if one has begun and input is read.
    pub(super) fn deadline(&self, timeout: Nanos) -> Option<Instant> {
        let since = self.incomplete.filter(|_| self.open && !self.stalled);
        since.map(|since| since.saturating_add(timeout))
    }

    pub(super) fn stall(&mut self) {
        self.stalled = true;
    }

    /// Input is read, or read again: a client whose record is incomplete then gets the full time for the rest.
    pub(super) fn listen(&mut self, now: Instant) {
        if std::mem::replace(&mut self.stalled, false) {
            self.incomplete = self.incomplete.map(|_| now);
        }
    }

    /// Continues with another clock and another machine.
    pub(super) fn rebase(&mut self, now: Instant) {
        (self.now, self.incomplete, self.is_end_reported) = (now, self.incomplete.map(|_| now), false);
    }

    pub(super) fn give_up(&mut self) {
        self.failure = Some(Ending::Broken(Breach::SlowRequest));
    }

    pub(super) fn release(&mut self) {
        if self.said.is_empty() {
            self.said = Buffer::with_room(0);
        }
    }
}

/// Passes a machine as many bytes as it has space for; returns their number.
fn give(machine: &mut impl Machine, now: Instant, bytes: &[u8]) -> usize {
    let mut given = 0;
    while given < bytes.len() && machine.wants_input() {
        let space = machine.input_space();
        let count = space.len().min(bytes.len() - given);
        space[..count].copy_from_slice(&bytes[given..given + count]);
        machine.filled(now, count);
        given += count;
    }
    given
}

/// Why bytes did not fit into the space.
enum Shortage {
    Room(InsufficientSizeError),
    Other(String),
}

impl From<EncodeError> for Shortage {
    fn from(error: EncodeError) -> Shortage {
        match error {
            EncodeError::InsufficientSize(size) => Shortage::Room(size),
            other => Shortage::Other(other.to_string()),
        }
    }
}

impl From<EncryptError> for Shortage {
    fn from(error: EncryptError) -> Shortage {
        match error {
            EncryptError::InsufficientSize(size) => Shortage::Room(size),
            other => Shortage::Other(other.to_string()),
        }
    }
}

/// Appends what `write` writes into space of `room` bytes at first, then of the required size; returns the number of bytes.
fn put(
    out: &mut Buffer,
    room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Shortage>,
) -> Result<usize, String> {
    let mut room = room;
    loop {
        match write(out.reserve(room)) {
            Ok(bytes) => {
                out.commit(bytes);
                return Ok(bytes);
            }
            Err(Shortage::Room(size)) if size.required_size > room => room = size.required_size,
            Err(Shortage::Room(size)) => return Err(size.required_size.to_string()),
            Err(Shortage::Other(error)) => return Err(error),
        }
    }
}
