//! The transmission: requests in, replies out.

use headstack_model::Instant;

use super::budget::{Budget, Share};
use super::buffer::Buffer;
use super::export::{Export, Exports};
use super::limits::{Breach, Ending, Limits};
use super::reply;
use super::request::{HEADER_BYTES, Header, Refusal, Shape, Terms};
use super::wire::{Machine, Permit, Tls, Wire};
use crate::{Answer, BlockError, Operation};

/// Bytes of input that are read together.
const INBOX: usize = 256 << 10;

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
    /// Bytes of memory that the request holds.
    weight: usize,
    shape: Shape,
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
    outbox: Buffer,
    /// Bytes of replies that were sent ([`Wire::sent`]).
    taken: u64,
    reading: Reading,
    in_flight: usize,
    /// Bytes of the requests that are at the disk or being received.
    held: usize,
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
    Payload { header: Header, data: Vec<u8>, received: usize },
    Refused { header: Header, refusal: Refusal, left: usize },
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
        (received, outbox): (&[u8], Buffer),
        now: Instant,
    ) -> Session {
        let mut inbox = Buffer::with_room(INBOX.max(received.len()));
        inbox.push(received);
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
            held: 0,
            share: Share::new(None),
            _permit: None,
            blocked: false,
            lacks_memory: false,
            hung_up: false,
            ending: None,
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
                reply::error(out, terms.structured, handle.cookie, error.into(), &error.to_string());
            }
            (Ok(Answer::Done), Shape::Plain) => reply::done(out, handle.cookie),
            (Ok(Answer::Data(data)), Shape::Data) => read(out, terms, handle, |room| {
                room.copy_from_slice(&data);
                Ok(())
            }),
            (Ok(Answer::Allocation(reported)), Shape::Extents { one }) => {
                reply::extents(out, handle.cookie, &reported, handle.length, if one { 1 } else { most });
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
            read(out, terms, handle, fill);
        });
    }

    fn reply(
        &mut self,
        now: Instant,
        handle: ReplyHandle,
        write: impl FnOnce(&mut Buffer, Terms, usize, ReplyHandle),
    ) {
        self.now = now;
        self.in_flight -= 1;
        self.held -= handle.weight;
        if matches!(self.ending, Some(Ending::Broken(_))) {
            return self.settle();
        }
        write(&mut self.outbox, self.terms, self.limits.extents, handle);
        self.untaken.get_or_insert(now);
        self.settle();
    }

    fn chosen(&self) -> &Export {
        &self.exports.all()[self.export]
    }

    /// Whether a request that needs `weight` bytes of memory may proceed now.
    fn has_room_for(&mut self, weight: usize) -> bool {
        let held = self.held + self.outbox.len();
        let fits = held + weight <= self.limits.held_bytes || held == 0;
        let is_within = fits && self.in_flight < self.limits.requests;
        self.lacks_memory = is_within && !self.share.allows(held, weight);
        is_within && !self.lacks_memory
    }

    /// Returns unused memory to the budget.
    fn settle(&mut self) {
        self.share.settle(self.held + self.outbox.len());
    }

    fn step(&mut self) -> Result<Step, Breach> {
        match &mut self.reading {
            Reading::Requests => self.begin(),
            Reading::Payload { data, received, .. } if *received < data.len() => Ok(Step::Starved),
            Reading::Payload { header, data, .. } => {
                let (header, data) = (*header, std::mem::take(data));
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
        if !self.has_room_for(if verdict.is_ok() { header.weight() } else { 0 }) {
            return Ok(Step::Blocked);
        }
        if let Err(refusal) = verdict {
            self.inbox.consume(HEADER_BYTES);
            self.reading = Reading::Refused { header, refusal, left: payload };
            return Ok(Step::Again);
        }
        if payload <= there {
            let data = self.inbox.bytes()[HEADER_BYTES..][..payload].to_vec();
            self.inbox.consume(HEADER_BYTES + payload);
            self.held += header.weight();
            return Ok(Step::Request(self.pass_on(header, data)));
        }
        if payload <= COPIED {
            return Ok(Step::Starved);
        }
        let mut data = vec![0; payload];
        data[..there].copy_from_slice(&self.inbox.bytes()[HEADER_BYTES..]);
        self.inbox.consume(HEADER_BYTES + there);
        self.held += header.weight();
        self.reading = Reading::Payload { header, data, received: there };
        Ok(Step::Starved)
    }

    fn pass_on(&mut self, header: Header, data: Vec<u8>) -> Request {
        let Header { cookie, offset, length, .. } = header;
        let handle = ReplyHandle { cookie, offset, length, weight: header.weight(), shape: header.shape() };
        self.in_flight += 1;
        Request { handle, operation: header.operation(data) }
    }

    fn refuse(&mut self, header: Header, refusal: &Refusal) {
        let structured = self.terms.structured;
        reply::error(&mut self.outbox, structured, header.cookie, refusal.errno(), &refusal.to_string());
        self.untaken.get_or_insert(self.now);
    }

    /// Stops reading; an incomplete request is dropped.
    fn end(&mut self, ending: Ending) {
        if let Reading::Payload { header, .. } = &self.reading {
            self.held -= header.weight();
        }
        self.reading = Reading::Requests;
        self.inbox = Buffer::with_room(0);
        self.incomplete = None;
        if matches!(ending, Ending::Broken(_)) {
            self.outbox = Buffer::with_room(0);
            self.untaken = None;
        }
        self.ending = Some(ending);
        self.settle();
    }
}

fn read(
    out: &mut Buffer,
    terms: Terms,
    handle: ReplyHandle,
    fill: impl FnOnce(&mut [u8]) -> Result<(), BlockError>,
) {
    reply::data(out, terms.structured, (handle.cookie, handle.offset, handle.length), fill);
}

impl Wire for Session {
    fn wants_input(&self) -> bool {
        let room = match &self.reading {
            Reading::Payload { data, received, .. } => *received < data.len(),
            _ => self.inbox.has_space(),
        };
        room && !self.blocked && !self.hung_up && self.ending.is_none()
    }

    fn input_space(&mut self) -> &mut [u8] {
        match &mut self.reading {
            Reading::Payload { data, received, .. } => &mut data[*received..],
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
