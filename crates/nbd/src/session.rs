//! The transmission: requests in, replies out.

mod wire;

use headstack_model::Instant;

use super::budget::{Budget, Share};
use super::buffer::Buffer;
use super::export::{Export, Exports};
use super::limits::{Breach, Ending, Limits};
use super::outbox::{self, NoMemory, Outbox};
use super::reply;
use super::request::{HEADER_BYTES, Header, Refusal, Shape, Terms};
use super::wire::Permit;
#[cfg(doc)]
use super::wire::Wire;
use crate::{Answer, BlockError, Operation};

/// Bytes of input that are read together.
const INBOX: usize = 128 << 10;

/// Longest payload in bytes that is read with other requests and copied; a longer one is read in place.
const COPIED: usize = 64 << 10;

/// A client's request to the disk.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// What its answer needs.
    pub handle: ReplyHandle,
    /// The operation, within the export and in whole blocks.
    pub operation: Operation,
}

/// What the reply to a request needs. It cannot be copied, so that no request is answered twice:
///
/// ```compile_fail,E0382
/// # use headstack_nbd::{Answer, ReplyHandle, Session};
/// fn answer_twice(session: &mut Session, handle: ReplyHandle) {
///     session.answer(headstack_model::Instant(0), handle, Ok(Answer::Done));
///     session.answer(headstack_model::Instant(0), handle, Ok(Answer::Done));
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct ReplyHandle {
    cookie: u64,
    offset: u64,
    length: u32,
    /// Bytes of data and of memory that the request holds.
    held: HeldBytes,
    shape: Shape,
}

/// Bytes that requests hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HeldBytes {
    data: usize,
    memory: usize,
}

impl HeldBytes {
    fn from_header(header: &Header) -> HeldBytes {
        HeldBytes { data: header.data_bytes(), memory: header.weight() }
    }

    fn add(&mut self, more: HeldBytes) {
        self.data += more.data;
        self.memory += more.memory;
    }

    fn remove(&mut self, less: HeldBytes) {
        self.data -= less.data;
        self.memory -= less.memory;
    }
}

/// The transmission over one connection.
///
/// After [`filled`](Wire::filled), [`input_ended`](Wire::input_ended), an answer or [`sent`](Wire::sent) call
/// [`next_request`](Session::next_request) until it returns none.
#[derive(Debug)]
pub struct Session {
    exports: Exports,
    export: usize,
    terms: Terms,
    limits: Limits,
    inbox: Buffer,
    outbox: Outbox,
    /// Bytes of replies that were sent ([`Wire::sent`]).
    taken: u64,
    reading: Reading,
    in_flight: usize,
    /// What the requests hold that are at the disk or being received.
    held: HeldBytes,
    /// Memory that it has taken from a budget for these requests and for replies.
    share: Share,
    _permit: Option<Permit>,
    /// Whether the next request waits until others have completed.
    blocked: bool,
    /// Whether it waits for memory that other connections hold.
    lacks_memory: bool,
    hung_up: bool,
    ending: Option<Ending>,
    /// The latest time that the caller has given.
    now: Instant,
    /// Since when the session has waited for the rest of a request.
    incomplete: Option<Instant>,
    /// Since when there has been output of which nothing was sent.
    untaken: Option<Instant>,
}

#[derive(Debug)]
enum Reading {
    Requests,
    /// `data` has the received bytes and some space for the next.
    Payload {
        header: Header,
        data: Vec<u8>,
        received: usize,
    },
    Refused {
        header: Header,
        refusal: Refusal,
        left: usize,
    },
}

enum Step {
    Request(Request),
    /// Something was processed; there may be more.
    Again,
    Starved,
    /// Others must complete first.
    Blocked,
}

impl Session {
    /// Continues after a handshake, with its unprocessed input and unsent output.
    pub(super) fn new(
        (exports, export): (Exports, usize),
        terms: Terms,
        limits: Limits,
        (received, unsent): (&[u8], &[u8]),
        now: Instant,
    ) -> Session {
        let mut inbox = Buffer::with_room(INBOX.max(received.len()));
        inbox.push(received);
        let mut outbox = Outbox::default();
        let ending = outbox.push(unsent).err().map(|NoMemory| Ending::Broken(Breach::NoMemory));
        let untaken = (!outbox.is_empty()).then_some(now);
        Session {
            exports,
            export,
            terms,
            limits,
            inbox,
            outbox,
            taken: 0,
            reading: Reading::Requests,
            in_flight: 0,
            held: HeldBytes::default(),
            share: Share::new(None),
            _permit: None,
            blocked: false,
            lacks_memory: false,
            hung_up: false,
            ending,
            now,
            incomplete: None,
            untaken,
        }
    }

    pub(super) fn sharing(self, budget: Option<Budget>) -> Session {
        Session { share: Share::new(budget), ..self }
    }

    /// Keeps a permit until it ends.
    pub(super) fn holding(self, _permit: Option<Permit>) -> Session {
        Session { _permit, ..self }
    }

    /// The index of the client's export.
    pub fn export(&self) -> usize {
        self.export
    }

    /// Total bytes of replies.
    pub fn said(&self) -> u64 {
        self.taken + self.outbox.len() as u64
    }

    /// Bytes of replies that were sent ([`Wire::sent`]).
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The name of the client's export.
    pub fn export_name(&self) -> &str {
        &self.chosen().name
    }

    /// Whether the next request waits for memory that other connections hold; if so, the owner has to retry soon.
    pub fn lacks_memory(&self) -> bool {
        self.blocked && self.lacks_memory
    }

    /// The memory that it shares with other connections, if that is limited.
    pub fn budget(&self) -> Option<&Budget> {
        self.share.budget()
    }

    /// Number of requests at the disk.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The next request for the disk. Invalid requests are answered with an error.
    pub fn next_request(&mut self) -> Option<Request> {
        while self.ending.is_none() {
            match self.step() {
                Ok(Step::Request(request)) => {
                    self.incomplete = None;
                    return Some(request);
                }
                Ok(Step::Again) => self.incomplete = None,
                Ok(Step::Starved) if self.hung_up => self.end(Ending::HungUp),
                Ok(Step::Starved) => {
                    let begun = !self.inbox.is_empty() || !matches!(self.reading, Reading::Requests);
                    self.incomplete = begun.then(|| self.incomplete.unwrap_or(self.now));
                    self.blocked = false;
                    return None;
                }
                Ok(Step::Blocked) => {
                    self.incomplete = None;
                    self.blocked = true;
                    return None;
                }
                Err(breach) => self.end(Ending::Broken(breach)),
            }
        }
        None
    }

    /// Answers a request.
    pub fn answer(&mut self, now: Instant, handle: ReplyHandle, result: Result<Answer, BlockError>) {
        self.reply(now, handle, |out, terms, most, handle| match (result, handle.shape) {
            (Err(error), _) => {
                reply::error(out, terms.structured, handle.cookie, error.into(), &error.to_string())
            }
            (Ok(Answer::Done), Shape::Plain) => reply::done(out, handle.cookie),
            (Ok(Answer::Data(data)), Shape::Data) => read_reply(out, terms, handle, |room| {
                room.copy_from_slice(&data);
                Ok(())
            }),
            (Ok(Answer::Allocation(reported)), Shape::Extents { one }) => {
                reply::extents(out, handle.cookie, &reported, handle.length, if one { 1 } else { most })
            }
            (Ok(answer), shape) => panic!("a request of shape {shape:?} is not answered by {answer:?}"),
        });
    }

    /// Answers a read whose bytes `read` writes directly into the output buffer; it must fill all of the space.
    pub fn answer_read(
        &mut self,
        now: Instant,
        handle: ReplyHandle,
        fill: impl FnOnce(&mut [u8]) -> Result<(), BlockError>,
    ) {
        self.reply(now, handle, |out, terms, _, handle| {
            assert_eq!(handle.shape, Shape::Data, "only a read is answered by its bytes");
            read_reply(out, terms, handle, fill)
        });
    }

    fn reply(
        &mut self,
        now: Instant,
        handle: ReplyHandle,
        write: impl FnOnce(&mut Outbox, Terms, usize, ReplyHandle) -> Result<(), NoMemory>,
    ) {
        self.now = now;
        self.in_flight -= 1;
        self.held.remove(handle.held);
        if matches!(self.ending, Some(Ending::Broken(_))) {
            return self.settle();
        }
        let written = write(&mut self.outbox, self.terms, self.limits.extents, handle);
        self.untaken.get_or_insert(now);
        self.end_without_memory(written);
        self.settle();
    }

    fn chosen(&self) -> &Export {
        &self.exports.all()[self.export]
    }

    /// Bytes of memory of requests and replies.
    fn memory(&self) -> usize {
        self.held.memory + self.outbox.room()
    }

    /// Whether a request that needs this much may proceed now.
    fn has_room_for(&mut self, more: HeldBytes) -> bool {
        let bytes = self.held.data + self.outbox.len();
        let fits = bytes + more.data <= self.limits.held_bytes || bytes == 0;
        let is_within = fits && self.in_flight < self.limits.requests;
        self.lacks_memory = is_within && !self.reserves(more.memory);
        is_within && !self.lacks_memory
    }

    /// Takes memory from the budget, if there is enough without what is free here.
    fn reserves(&mut self, weight: usize) -> bool {
        self.share.allows(self.memory(), weight) || {
            self.outbox.release();
            self.share.allows(self.memory(), weight)
        }
    }

    /// Returns unused memory to the budget.
    fn settle(&mut self) {
        self.share.settle(self.memory());
    }

    fn end_without_memory(&mut self, written: Result<(), NoMemory>) {
        if written.is_err() {
            self.end(Ending::Broken(Breach::NoMemory));
        }
    }

    fn step(&mut self) -> Result<Step, Breach> {
        match &mut self.reading {
            Reading::Requests => self.begin(),
            Reading::Payload { header, received, .. } if *received < header.payload() => Ok(Step::Starved),
            Reading::Payload { header, data, .. } => {
                let (header, mut data) = (*header, std::mem::take(data));
                data.truncate(header.payload());
                self.reading = Reading::Requests;
                Ok(Step::Request(self.pass_on(header, data)))
            }
            Reading::Refused { header, refusal, left } => {
                let passed = (*left).min(self.inbox.len());
                self.inbox.consume(passed);
                *left -= passed;
                if *left > 0 {
                    return Ok(Step::Starved);
                }
                let (header, refusal) = (*header, refusal.clone());
                self.reading = Reading::Requests;
                self.refuse(header, &refusal);
                Ok(Step::Again)
            }
        }
    }

    /// Takes the first request of the inbox, or as much of it as possible.
    fn begin(&mut self) -> Result<Step, Breach> {
        let Some((bytes, rest)) = self.inbox.bytes().split_first_chunk::<HEADER_BYTES>() else {
            return Ok(Step::Starved);
        };
        let header = Header::parse(bytes)?;
        if header.is_disconnect() {
            self.end(Ending::Disconnected);
            return Ok(Step::Again);
        }
        let (payload, there) = (header.payload(), rest.len());
        if payload > self.limits.payload_bytes as usize {
            return Err(Breach::Payload { bytes: header.length, allowed: self.limits.payload_bytes });
        }
        let verdict = header.check(self.chosen(), self.terms);
        let refused = HeldBytes { data: 0, memory: outbox::weight(0) };
        if !self.has_room_for(if verdict.is_ok() { HeldBytes::from_header(&header) } else { refused }) {
            return Ok(Step::Blocked);
        }
        if let Err(refusal) = verdict {
            self.inbox.consume(HEADER_BYTES);
            self.reading = Reading::Refused { header, refusal, left: payload };
            return Ok(Step::Again);
        }
        if there < payload && payload <= COPIED {
            return Ok(Step::Starved);
        }
        let there = there.min(payload);
        let mut data = Vec::new();
        if data.try_reserve_exact(payload).is_err() {
            self.inbox.consume(HEADER_BYTES);
            self.reading = Reading::Refused { header, refusal: Refusal::NoMemory, left: payload };
            return Ok(Step::Again);
        }
        data.extend_from_slice(&self.inbox.bytes()[HEADER_BYTES..][..there]);
        self.inbox.consume(HEADER_BYTES + there);
        if there == payload {
            self.held.add(HeldBytes::from_header(&header));
            return Ok(Step::Request(self.pass_on(header, data)));
        }
        self.held.add(HeldBytes::from_header(&header));
        self.reading = Reading::Payload { header, data, received: there };
        Ok(Step::Starved)
    }

    fn pass_on(&mut self, header: Header, data: Vec<u8>) -> Request {
        let Header { cookie, offset, length, .. } = header;
        let handle = ReplyHandle {
            cookie,
            offset,
            length,
            held: HeldBytes::from_header(&header),
            shape: header.shape(),
        };
        self.in_flight += 1;
        Request { handle, operation: header.operation(data) }
    }

    fn refuse(&mut self, header: Header, refusal: &Refusal) {
        let structured = self.terms.structured;
        let (errno, message) = (refusal.errno(), refusal.to_string());
        let written = reply::error(&mut self.outbox, structured, header.cookie, errno, &message);
        self.untaken.get_or_insert(self.now);
        self.end_without_memory(written);
    }

    /// Stops reading; an incomplete request is dropped.
    fn end(&mut self, ending: Ending) {
        if let Reading::Payload { header, .. } = &self.reading {
            self.held.remove(HeldBytes::from_header(header));
        }
        self.reading = Reading::Requests;
        self.inbox = Buffer::with_room(0);
        self.incomplete = None;
        if matches!(ending, Ending::Broken(_)) {
            self.outbox.clear();
            self.untaken = None;
        }
        self.ending = Some(ending);
        self.settle();
    }
}

fn read_reply(
    out: &mut Outbox,
    terms: Terms,
    handle: ReplyHandle,
    fill: impl FnOnce(&mut [u8]) -> Result<(), BlockError>,
) -> Result<(), NoMemory> {
    reply::data(out, terms.structured, (handle.cookie, handle.offset, handle.length), fill)
}
