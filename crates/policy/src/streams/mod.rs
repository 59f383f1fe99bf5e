//! The stream scheduler: sequential streams found among a disk's requests, and served in long turns.
//!
//! A disk that serves hundreds of sequential readers request by request spends its time on seeks. The scheduler stands
//! before one disk. It finds the streams, gives each a queue of its own, and lets only a few at a time (the dispatch set)
//! have the disk, each for a turn long enough to be worth the seek. Bytes that were read ahead stay in the stream memory until
//! a client has fetched them. A client that continues as its bytes arrive fetches them at once, so a turn may transfer many times
//! what the memory holds. Streams of writes have turns, too: a write is answered when it is in the memory, and waits for
//! memory until its stream has a turn. Other requests bypass the streams. While streams are few, and the disk serves them as well
//! by itself, their requests bypass the scheduler, too.
//!
//! It is a deterministic state machine. Its owner reports requests and ended commands with the time, takes [`Action`]s from it, and
//! asks it when to call again. The owner holds the bytes; the scheduler says where they go.
//!
//! Reads and writes of the same bytes agree because no byte of a frame is fetched after a write to it was submitted or has ended, and
//! because coalesced bytes that are not on the disk are found first.
//!
//! *Source:* I. Panagiotakis, M. Flouris, A. Bilas, "Reducing disk I/O performance sensitivity for large numbers of
//! sequential streams" (ICDCS 2009): classifier, dispatch set, staged set. The rest is ours.

mod bypass;
mod chains;
mod classifier;
mod clients;
mod config;
mod direct;
mod dispatch;
mod finding;
mod frames;
mod messages;
mod promises;
mod reading;
mod reorder;
mod stream;
mod strides;
mod tuning;
mod turns;
mod view;
mod writing;

pub use classifier::Direction;
pub use config::{Classifier, Config, ConfigError, Turns};
pub use messages::{
    Action, Answer, Command, DiskError, Guarantee, MOST_PIECES, Outcome, Piece, Pieces, Request, RequestKind,
    Transfer, TransferBuffer,
};
pub use view::{StreamView, View};

use crate::Guard;
use bypass::Bypass;
use classifier::Classifier as Watch;
use direct::DirectRequests;
use dispatch::Dispatch;
use frames::Frames;
use headstack_model::Nanos;
use promises::Promise;
use reorder::Reorder;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use stream::Stream;
use strides::Strides;
use tuning::Tuning;
use view::Books;
use writing::CoalescedWrites;

/// Boundaries on the disk at which requests of streams end, such as those of tracks.
pub trait Boundaries: std::fmt::Debug + Send {
    /// The first boundary beyond this byte.
    fn next_boundary(&self, after: u64) -> u64;
}

/// A request of a stream that waits for the disk. Its key is its offset and ticket.
#[derive(Clone, Copy, Debug)]
struct Wait {
    request: Request,
    bytes: u64,
    stream: u32,
    /// Whether staged bytes for it were discarded once, so that they are read again.
    is_reread: bool,
}

/// What a command of the disk is for.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Direct(Request),
    Frame(u32),
}

/// A command that the disk has.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    purpose: Purpose,
    issued: Nanos,
}

/// The scheduler of one disk.
#[derive(Debug)]
pub struct Streams {
    config: Config,
    disk_bytes: u64,
    boundaries: Option<Box<dyn Boundaries>>,
    now: Nanos,
    frames: Frames,
    readers: Watch,
    writers: Watch,
    strides: Strides,
    reorder: Reorder,
    streams: Slab<Stream>,
    /// Readers by direction, and writers, by where they are expected.
    expected: [BTreeSet<(u64, u32)>; 3],
    /// Requests of readers and of writers that wait, by place and ticket.
    reads: BTreeMap<(u64, u64), Wait>,
    writes: BTreeMap<(u64, u64), Wait>,
    dispatch: Dispatch,
    /// Guarantees by client.
    promises: BTreeMap<u64, Promise>,
    coalesced: CoalescedWrites,
    /// Frames whose bytes were all fetched.
    emptied: Vec<u32>,
    /// Requests that keep waiting although a frame that they need is discarded.
    spared: Vec<(u64, u64)>,
    direct: DirectRequests,
    tuning: Tuning,
    bypass: Bypass,
    guard: Option<Guard>,
    in_flight: Slab<InFlight>,
    copies: VecDeque<Action>,
    starts: VecDeque<Command>,
    answers: VecDeque<Answer>,
    /// Pieces that the last answer named.
    last_staged: Option<Pieces>,
    /// When to look for idle streams and frames.
    sweep_at: Nanos,
    books: Books,
}

/// How far from where a stream is expected a request may be and still belong to it.
const NEAR: u64 = 256 << 10;

impl Streams {
    /// A scheduler for a disk of this size.
    ///
    /// *Errors:* a key of the configuration is out of its range.
    pub fn new(config: Config, disk_bytes: u64) -> Result<Streams, ConfigError> {
        config.check()?;
        Ok(Streams {
            disk_bytes,
            boundaries: None,
            now: Nanos::ZERO,
            frames: Frames::new(config.memory_bytes, config.frame_bytes()),
            readers: Watch::new(&config.classifier, config.is_as_published()),
            writers: Watch::new(&config.classifier, config.is_as_published()),
            strides: Strides::new(),
            reorder: Reorder::new(),
            streams: Slab::new(),
            expected: Default::default(),
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            dispatch: Dispatch::default(),
            promises: BTreeMap::new(),
            coalesced: CoalescedWrites::default(),
            emptied: Vec::new(),
            spared: Vec::new(),
            direct: DirectRequests::default(),
            tuning: Tuning::new(),
            bypass: Bypass::new(&config),
            guard: (config.guard_cost > 0.0).then(|| Guard::adaptive(config.guard_cost)),
            in_flight: Slab::new(),
            copies: VecDeque::new(),
            starts: VecDeque::new(),
            answers: VecDeque::new(),
            last_staged: None,
            sweep_at: Nanos::MAX,
            books: Books::default(),
            config,
        })
    }

    /// Makes requests of streams end at these boundaries, where at least a quarter of the request remains.
    pub fn set_boundaries(&mut self, boundaries: Box<dyn Boundaries>) {
        self.boundaries = Some(boundaries);
    }

    /// Bytes of the stream memory, which the owner holds.
    pub fn memory_bytes(&self) -> u64 {
        self.frames.count() as u64 * self.frames.frame_bytes()
    }

    /// Bytes of the disk.
    pub fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    /// Takes a request of a client. It must lie within the disk and not be empty.
    pub fn submit(&mut self, now: Nanos, request: Request) {
        self.now = now;
        self.measure_wait();
        self.books.requests += 1;
        self.coalesced.add_client(request.client);
        self.route(request);
        self.decide_bypass();
        self.pump();
    }

    /// Takes the end of a command of the disk.
    pub fn handle_end(&mut self, now: Nanos, id: u32, result: Result<(), DiskError>) {
        self.now = now;
        self.measure_wait();
        let InFlight { purpose, issued } = self.in_flight.remove(id as usize);
        if let Some(guard) = &mut self.guard {
            guard.completed(now, id);
        }
        match purpose {
            Purpose::Direct(request) => self.direct_ended(request, result),
            Purpose::Frame(frame) => self.frame_ended(frame, issued, result),
        }
        self.decide_bypass();
        self.pump();
    }

    /// Does what is due at this time.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.now = now;
        self.drain_late();
        if self.dispatch.grace_at <= now {
            // A stream that still waits sets it again.
            self.dispatch.grace_at = Nanos::MAX;
        }
        if self.sweep_at <= now {
            self.sweep();
        }
        self.pump();
    }

    /// When to call [`handle_timeout`](Streams::handle_timeout) if no other call comes before.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let at = self.sweep_at.min(self.coalesced.drain_at).min(self.dispatch.grace_at);
        (at < Nanos::MAX).then_some(at)
    }

    /// Forgets a client that has disconnected. Its reads that wait for the disk are answered at once, as refused; its other requests
    /// are done.
    pub fn forget(&mut self, now: Nanos, client: u64) {
        self.now = now;
        self.revoke_guarantee(client);
        self.coalesced.remove_client(client);
        let is_its = |wait: &Wait| wait.request.client == client;
        let waits: Vec<_> = self.reads.iter().filter(|(_, wait)| is_its(wait)).map(|(key, _)| *key).collect();
        for key in waits {
            let wait = self.remove_wait(false, key);
            self.answer(wait.request.ticket, Err(DiskError::Refused));
        }
        for request in self.direct.forget(client) {
            self.answer(request.ticket, Err(DiskError::Refused));
        }
        self.pump();
    }

    /// The next action for the owner. To be called until there is none, after each other call.
    pub fn poll_action(&mut self) -> Option<Action> {
        if let Some(pieces) = self.last_staged.take() {
            self.release_answer(&pieces);
        }
        if let Some(copy) = self.copies.pop_front() {
            return Some(copy);
        }
        if let Some(start) = self.starts.pop_front() {
            return Some(Action::Start(start));
        }
        let answer = self.answers.pop_front()?;
        if let Ok(Outcome::Staged(pieces)) = answer.result {
            self.last_staged = Some(pieces);
        }
        Some(Action::Answer(answer))
    }

    /// Panics if the state is inconsistent.
    pub fn check(&self) {
        self.frames.check();
        let mut frames = vec![0; self.streams.capacity()];
        for (_, frame) in self.frames.iter() {
            if let Some(count) = frames.get_mut(frame.stream as usize) {
                *count += 1;
            }
        }
        for (id, stream) in &self.streams {
            assert_eq!(stream.frames, frames[id], "stream {id} knows how many frames it has");
            let waits = if stream.is_writer() { &self.writes } else { &self.reads };
            let waiting = waits.values().filter(|wait| wait.stream == id as u32).count();
            assert_eq!(stream.waiting as usize, waiting, "stream {id} knows how many requests wait");
            assert_eq!(stream.turn.is_some(), self.dispatch.has(id as u32), "stream {id} knows of its turn");
            // A writer in its turn may be waited for, for a moment.
            let idle = self.in_flight.is_empty() && self.dispatch.grace_at == Nanos::MAX;
            let is_stuck = idle && stream.is_blocked();
            assert!(!is_stuck, "a client waits for stream {id} while the disk is idle: {stream:?}");
        }
        let is_idle = self.in_flight.is_empty();
        assert!(!is_idle || self.direct.is_idle(), "a direct request waits while the disk is idle");
        assert!(!is_idle || self.coalesced.is_settled(), "a flush waits while the disk is idle");
    }

    fn route(&mut self, request: Request) {
        match request.kind {
            _ if !self.config.scheduling => self.send_direct(request),
            RequestKind::Read { offset, bytes, fua } => self.route_read(request, offset, bytes, fua),
            RequestKind::Write { offset, bytes, fua } => self.route_write(request, offset, bytes, fua),
            RequestKind::Change { offset, bytes } => self.route_change(request, offset, bytes),
            RequestKind::Query { offset, bytes } => self.send_direct_after_writes(request, offset, bytes),
            RequestKind::Flush => self.route_flush(request),
        }
    }

    fn answer(&mut self, ticket: u64, result: Result<Outcome, DiskError>) {
        if let Ok(Outcome::Staged(pieces)) = &result {
            self.frames.pin(pieces);
        }
        self.answers.push_back(Answer { ticket, result });
    }

    /// Unpins the frames of an answer whose bytes the owner has taken.
    fn release_answer(&mut self, pieces: &Pieces) {
        let (mut freed, mut any) = ([stream::NO_STREAM; 2 * MOST_PIECES + 2], 0);
        self.frames.unpin(pieces, |stream| {
            freed[any] = stream;
            any += 1;
        });
        freed[..any].iter().for_each(|stream| self.frame_freed(*stream));
        if any > 0 {
            self.pump();
        }
    }

    /// Begins a command. [`has_room`](Streams::has_room) must hold.
    fn start(
        &mut self,
        purpose: Purpose,
        transfer: Transfer,
        (offset, bytes): (u64, u64),
        place: TransferBuffer,
    ) {
        let id = self.in_flight.insert(InFlight { purpose, issued: self.now }) as u32;
        if let Some(guard) = &mut self.guard {
            guard.issued(self.now, id);
        }
        self.starts.push_back(Command { id, transfer, offset, bytes, place });
    }

    /// Whether the disk takes one more command.
    fn has_room(&mut self) -> bool {
        let now = self.now;
        self.in_flight.len() < self.config.queue_depth as usize
            && self.guard.as_mut().is_none_or(|guard| guard.may_issue(now))
    }

    /// Begins commands as long as the disk takes them.
    fn pump(&mut self) {
        while self.has_room() {
            let begun = self.start_ready()
                || self.is_direct_turn() && self.start_direct()
                || self.start_stream()
                // Nothing else has precedence then.
                || self.in_flight.is_empty() && self.start_direct();
            // A stream that found no free frame may have closed frames of writes.
            let is_left = self.coalesced.has_ready() || self.in_flight.is_empty() && !self.direct.is_idle();
            if !begun && !is_left {
                break;
            }
        }
    }

    /// Ends idle streams, and discards idle frames.
    fn sweep(&mut self) {
        let idle = self.config.idle();
        let is_over = |since: Nanos, now: Nanos| since.saturating_add(idle) <= now;
        let now = self.now;
        let over = |stream: &Stream| {
            stream.waiting == 0 && stream.in_flight == 0 && is_over(stream.last_request, now)
        };
        let gone: Vec<u32> =
            self.streams.iter().filter(|(_, stream)| over(stream)).map(|(id, _)| id as u32).collect();
        gone.into_iter().for_each(|id| self.drop_stream(id));
        let is_left = |frame: &frames::Frame| {
            frame.state == frames::State::Staged && !frame.is_hidden && is_over(frame.touched, now)
        };
        let left: Vec<u32> =
            self.frames.iter().filter(|(_, frame)| is_left(frame)).map(|(id, _)| id).collect();
        left.into_iter().for_each(|id| self.discard_frame(id));
        let is_empty = self.streams.is_empty() && self.frames.used() == 0;
        self.sweep_at = if is_empty { Nanos::MAX } else { now + Nanos(idle.0 / 2) };
    }
}
