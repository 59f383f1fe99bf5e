//! The stream scheduler: sequential streams found among a disk's requests, and served in long turns.
//!
//! A disk that serves hundreds of sequential readers request by request spends its time on seeks. The scheduler stands
//! in front of one disk. It finds the streams, gives each a queue, and lets only a few at a time (the dispatch set) use the
//! disk, each for a turn long enough to be worth the seek. Bytes that were read ahead stay in the stream memory until a
//! client has fetched them. A client that continues as its bytes arrive fetches them at once, so a turn may transfer many times
//! what the memory holds. Streams of writes have turns, too: a write is answered when it is in the memory, and waits for
//! memory until its stream has a turn. Other requests bypass the streams. While streams are few, and the disk serves them as well
//! without turns, their requests bypass the scheduler, too.
//!
//! It is a deterministic state machine. Its owner reports requests and ended commands with the time, takes [`Action`]s from it, and
//! asks it when to call again. The owner holds the bytes; the scheduler says where they go.
//!
//! Reads and writes of the same bytes agree: no byte of a frame is fetched after a write to it was submitted or has ended, and a read
//! looks for coalesced bytes that are not on the disk first.
//!
//! *Source:* I. Panagiotakis, M. Flouris, A. Bilas, "Reducing disk I/O performance sensitivity for large numbers of
//! sequential streams" (ICDCS 2009): classifier, dispatch set, staged set. The rest is ours.

mod actions;
mod arms;
mod around;
mod bypass;
mod chains;
mod classifier;
mod clients;
mod config;
mod direct;
mod dispatch;
mod finding;
mod frames;
mod guarantees;
mod layer;
mod limits;
mod messages;
mod reading;
mod reorder;
mod schedule;
mod stream;
mod strides;
mod table;
mod tuning;
mod view;
mod waits;
mod writing;

pub use classifier::Direction;
pub use config::{Classifier, Config, RegionForm, Turns};
pub use layer::{DiskLayer, LayerEnd, LayerRequest, LayerSink};
pub use messages::{
    Action, Answer, Command, Guarantee, MOST_PIECES, Outcome, Piece, Pieces, Request, RequestKind,
    TransferBuffer,
};
pub use view::{Counters, MemoryView, StreamView, TuningView, View};

use actions::{Actions, InFlight, Purpose};
use arms::Arms;
use bypass::{Bypass, Load};
use direct::DirectRequests;
use finding::StreamFinder;
use frames::Frames;
use headstack_model::spec::Fault;
use headstack_model::{BlockError, Instant};
use limits::ReadLimits;
use schedule::Schedule;
use stream::Stream;
use waits::Waits;
use writing::CoalescedWrites;

/// Boundaries on the disk at which requests of streams end, such as those of tracks.
pub trait Boundaries: std::fmt::Debug + Send {
    /// The first boundary beyond this byte.
    fn next_boundary(&self, after: u64) -> u64;
}

/// Result of a stream's step in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It began a command, or coalesced writes.
    Began,
    /// It continues later.
    Waits,
    /// It has nothing more to do.
    Over,
}

/// The scheduler of one disk.
#[derive(Debug)]
pub struct Streams {
    config: Config,
    boundaries: Option<Box<dyn Boundaries>>,
    now: Instant,
    frames: Frames,
    finder: StreamFinder,
    schedule: Schedule,
    waits: Waits,
    coalesced: CoalescedWrites,
    direct: DirectRequests,
    limits: ReadLimits,
    bypass: Bypass,
    actions: Actions,
    counters: Counters,
    /// Bytes of a zone, of a disk that must be written in sequence.
    zone_bytes: Option<u64>,
}

impl Streams {
    /// A scheduler for a disk of this size.
    ///
    /// *Errors:* a key of the configuration is out of its range.
    pub fn new(config: Config, disk_bytes: u64) -> Result<Streams, Fault> {
        config.check()?;
        let frames = Frames::new(config.memory_bytes, config.frame_bytes());
        let longest = if frames.count() < 8 { 1 } else { 2 } * frames.frame_bytes();
        Ok(Streams {
            boundaries: None,
            now: Instant::ZERO,
            finder: StreamFinder::new(&config, &frames),
            schedule: Schedule::new(&config, disk_bytes, config.read_bytes(frames.frame_bytes())),
            waits: Waits::new(longest),
            coalesced: CoalescedWrites::default(),
            direct: DirectRequests::new(&config),
            limits: ReadLimits::new(&config),
            bypass: Bypass::new(&config),
            actions: Actions::new(&config),
            counters: Counters::default(),
            zone_bytes: None,
            frames,
            config,
        })
    }

    /// Makes requests of streams end at these boundaries, where at least a quarter of the request remains.
    pub fn set_boundaries(&mut self, boundaries: Box<dyn Boundaries>) {
        self.boundaries = Some(boundaries);
    }

    /// Sets the ranges of a disk with several arms, by their first bytes; the first is 0. To be called before the first request. The key
    /// `arms`, if set, overrides them.
    pub fn set_arms(&mut self, firsts: &[u64]) {
        assert!(self.counters.requests == 0, "no request came before the ranges of arms were set");
        if self.config.arms.is_none() {
            self.schedule.arms = Arms::new(&self.config, firsts);
        }
    }

    /// Makes writes obey the zones of a disk, each of this many bytes. To be called before the first request.
    pub fn set_write_zones(&mut self, zone_bytes: u64) {
        assert!(zone_bytes > 0 && self.counters.requests == 0, "no request came before the zones were set");
        self.zone_bytes = Some(zone_bytes);
    }

    /// Gives a client a guarantee for all its streams together. The caller has checked that the disk can keep it.
    pub fn set_guarantee(&mut self, client: u64, guarantee: Guarantee) {
        self.schedule.guarantees.set(client, guarantee);
    }

    /// Bytes of the stream memory, which the owner holds.
    pub fn memory_bytes(&self) -> u64 {
        self.frames.memory_bytes()
    }

    /// Bytes of the disk.
    pub fn disk_bytes(&self) -> u64 {
        self.schedule.table.disk_bytes()
    }

    /// What it is doing.
    pub fn view(&self) -> View {
        View::new(self)
    }

    /// Its streams.
    pub fn stream_views(&self) -> impl Iterator<Item = StreamView> + '_ {
        let (disk_bytes, frame_bytes) = (self.disk_bytes(), self.frames.frame_bytes());
        let view = move |(id, stream)| StreamView::new(id, stream, disk_bytes, frame_bytes);
        self.schedule.table.iter().map(view)
    }

    /// Submits a request of a client. It must lie within the disk and not be empty.
    pub fn submit(&mut self, now: Instant, request: Request) {
        self.now = now;
        self.bypass.advance(now, self.outstanding());
        self.counters.requests += 1;
        self.coalesced.add_client(request.client);
        self.count_for_limits(&request);
        self.route(request);
        self.decide_bypass();
        self.pump();
    }

    /// Reports the end of a command of the disk.
    pub fn handle_end(&mut self, now: Instant, id: u32, result: Result<(), BlockError>) {
        self.now = now;
        self.bypass.advance(now, self.outstanding());
        let InFlight { purpose, issued } = self.actions.complete(now, id);
        match purpose {
            Purpose::Direct(request) => self.direct_ended(request, result),
            Purpose::Frame(frame) => self.frame_ended(frame, issued, result),
        }
        self.decide_bypass();
        self.pump();
    }

    /// Carries out what is due at this time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.drain_late();
        self.schedule.arms.expire_grace(now);
        if self.schedule.table.sweep_at() <= now {
            self.sweep();
        }
        self.pump();
    }

    /// When to call [`handle_timeout`](Streams::handle_timeout) if no other call comes before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let Schedule { table, arms, .. } = &self.schedule;
        let at = table.sweep_at().min(self.coalesced.drain_at).min(arms.grace_at());
        (at < Instant::MAX).then_some(at)
    }

    /// Forgets a client that has disconnected. Its reads that wait for the disk are refused at once; its other requests
    /// are carried out.
    pub fn forget(&mut self, now: Instant, client: u64) {
        self.now = now;
        self.schedule.revoke_guarantee(client);
        self.coalesced.remove_client(client);
        for key in self.waits.reads_of(client) {
            let wait = self.waits.remove(&mut self.schedule, false, key);
            self.answer(wait.request.ticket, Err(BlockError::Invalid));
        }
        for request in self.direct.forget(client) {
            self.answer(request.ticket, Err(BlockError::Invalid));
        }
        self.pump();
    }

    /// The next action for the owner. To be called until there is none, after each other call.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.poll()
    }

    /// Panics if the state is inconsistent.
    pub fn check(&self) {
        self.frames.check();
        let Schedule { table, arms, .. } = &self.schedule;
        let mut frames = vec![0; table.capacity()];
        for (_, frame) in self.frames.iter() {
            if let Some(count) = frames.get_mut(frame.stream as usize) {
                *count += 1;
            }
        }
        for (id, stream) in table.iter() {
            assert_eq!(stream.frames, frames[id as usize], "stream {id} knows how many frames it has");
            let waiting = self.waits.count_of(id);
            assert_eq!(stream.waiting as usize, waiting, "stream {id} knows how many requests wait");
            assert_eq!(stream.has_turn(), arms[stream.arm].dispatch.has(id), "stream {id} knows of its turn");
            // A writer in its turn may be waited for, for a moment.
            let idle = self.actions.is_disk_idle() && arms.grace_at() == Instant::MAX;
            let is_stuck = idle && stream.is_blocked();
            assert!(!is_stuck, "a client waits for stream {id} while the disk is idle: {stream:?}");
        }
        let is_idle = self.actions.is_disk_idle();
        assert!(!is_idle || self.direct.is_idle(), "a direct request waits while the disk is idle");
        assert!(!is_idle || self.coalesced.is_settled(), "a flush waits while the disk is idle");
    }

    fn route(&mut self, request: Request) {
        match request.kind {
            _ if !self.config.scheduling => self.send_direct(request),
            RequestKind::Read { offset, bytes, fua } => self.route_read(request, offset, bytes, fua),
            RequestKind::Write { offset, bytes, fua } => self.route_write(request, offset, bytes, fua),
            RequestKind::Zero { offset, bytes, .. } | RequestKind::Trim { offset, bytes } => {
                self.route_change(request, offset, bytes)
            }
            RequestKind::BlockStatus { offset, bytes } => {
                self.send_direct_after_writes(request, offset, bytes)
            }
            RequestKind::Flush => self.route_flush(request),
        }
    }

    fn answer(&mut self, ticket: u64, result: Result<Outcome, BlockError>) {
        if let Ok(Outcome::Staged(pieces)) = &result {
            self.frames.pin(pieces);
        }
        self.actions.answer(Answer { ticket, result });
    }

    /// Releases the memory of an answer ([`Outcome::Staged`]), whose bytes the owner has copied.
    pub fn release(&mut self, pieces: &Pieces) {
        let (mut freed, mut any) = ([stream::NO_STREAM; 2 * MOST_PIECES + 2], 0);
        self.frames.unpin(pieces, |stream| {
            freed[any] = stream;
            any += 1;
        });
        freed[..any].iter().for_each(|stream| self.schedule.frame_freed(*stream));
        if any > 0 {
            self.pump();
        }
    }

    fn pump(&mut self) {
        while self.direct.has_preceding() && self.actions.has_slot() && self.start_direct() {}
        while self.actions.has_room(self.now) {
            let is_direct_turn =
                |streams: &Streams| streams.direct.is_turn() || !streams.schedule.wants_disk();
            let begun = self.start_ready()
                || is_direct_turn(self) && self.start_direct()
                || self.start_stream()
                // Nothing else has precedence then.
                || self.actions.is_disk_idle() && self.start_direct();
            // A stream that found no free frame may have closed frames of writes.
            let is_left = self.coalesced.has_ready() || self.actions.is_disk_idle() && !self.direct.is_idle();
            if !begun && !is_left {
                break;
            }
        }
    }

    fn start_stream(&mut self) -> bool {
        // At most, each stream that wants a turn begins one, does nothing and ends it.
        for _ in 0..4 * (self.schedule.table.len() + 1) {
            match self.step_active() {
                Some(Step::Began) => return true,
                Some(_) => {}
                None if self.schedule.begin_turn(self.now) => {}
                None => return false,
            }
        }
        unreachable!("a stream that has nothing to do wants no turn")
    }

    /// Lets the active streams take a step; `None` if all of them wait.
    fn step_active(&mut self) -> Option<Step> {
        let arms = self.schedule.arms.len();
        let first = self.schedule.arms.next;
        (0..arms).find_map(|turn| self.step_arm((first + turn) % arms))
    }

    /// Lets the active streams of an arm take a step; `None` if all of them wait.
    fn step_arm(&mut self, arm: usize) -> Option<Step> {
        let count = self.schedule.arms[arm].dispatch.len();
        for turn in 0..count {
            let place = (self.schedule.arms[arm].dispatch.next + turn) % count;
            let active = |streams: &Streams| streams.schedule.arms[arm].dispatch.active.get(place).copied();
            // Eviction for one stream may have ended the turn of another.
            let Some(id) = active(self) else { return Some(Step::Waits) };
            if self.schedule.is_overdue(self.now, id) {
                self.schedule.end_turn(self.now, id, false);
                return Some(Step::Over);
            }
            let is_writer = self.schedule[id].is_writer();
            let step = if is_writer { self.advance_writer(id) } else { self.advance_reader(id) };
            match step {
                Step::Began => {
                    self.schedule.arms[arm].dispatch.next = place + 1;
                    self.schedule.arms.next = (arm + 1) % self.schedule.arms.len();
                }
                Step::Waits if active(self) == Some(id) => continue,
                // Its turn ended in this step.
                Step::Waits => {}
                // Its turn may have ended with the frame that the step closed.
                Step::Over if !self.schedule[id].has_turn() => {}
                Step::Over => self.schedule.end_turn(self.now, id, false),
            }
            return Some(step);
        }
        None
    }

    fn send_direct(&mut self, request: Request) {
        self.direct.push(self.now, request, self.has_limit(&request));
    }

    fn start_direct(&mut self) -> bool {
        let Some((since, request)) = self.direct.begin() else { return false };
        if request.kind.transferred_bytes() > 0 {
            let (offset, bytes) = request.kind.run();
            self.schedule.suspend_turns(self.now, offset);
            self.schedule.arms.arm_at(offset).dispatch.send_arm(offset + bytes, false);
        }
        let place = match request.kind {
            RequestKind::Flush => TransferBuffer::None,
            _ => TransferBuffer::Request(request.ticket),
        };
        let limit = self.direct_limit(&request, since);
        let command = Command { id: 0, kind: request.kind, place, limit };
        self.actions.start(self.now, Purpose::Direct(request), command);
        true
    }

    fn direct_ended(&mut self, request: Request, result: Result<(), BlockError>) {
        self.direct.complete(&request);
        // It may have moved any arm: a flush moves all of them.
        self.schedule.arms.iter_mut().for_each(|arm| arm.tuning.disturb());
        match request.kind {
            RequestKind::Write { offset, bytes, .. } => {
                self.counters.written_bytes += bytes;
                self.bypass.answered(bytes);
                self.invalidate(offset, bytes);
            }
            RequestKind::Zero { offset, bytes, .. } | RequestKind::Trim { offset, bytes } => {
                self.invalidate(offset, bytes)
            }
            RequestKind::Read { bytes, .. } => {
                self.counters.read_bytes += bytes;
                self.bypass.answered(bytes);
            }
            RequestKind::BlockStatus { .. } | RequestKind::Flush => {}
        }
        let result = match request.kind {
            RequestKind::Flush => result.and(self.coalesced.report_loss(request.client)),
            _ => result,
        };
        self.answer(request.ticket, result.map(|()| Outcome::Done));
    }

    fn outstanding(&self) -> u64 {
        (self.waits.len() + self.direct.outstanding()) as u64
    }

    /// Decides between turns and the bypass, where enough was measured.
    fn decide_bypass(&mut self) {
        let turns = self.schedule.turns;
        if !self.bypass.is_due(self.now, turns) {
            return;
        }
        let recent = |stream: &Stream| self.now.since(stream.client.last_request) < bypass::RECENT;
        let streams = self.schedule.table.iter().filter(|(_, stream)| recent(stream)).count();
        let (outstanding, has_guarantees) = (self.outstanding(), !self.schedule.guarantees.is_empty());
        let was_on = self.bypass.is_on();
        self.bypass.decide(self.now, Load { streams, turns, outstanding, has_guarantees });
        if was_on != self.bypass.is_on() {
            self.schedule.set_bypassed(!was_on);
            if !was_on {
                self.release_waits();
            }
            self.schedule.enqueue_all();
        }
    }

    /// Sends requests that wait for turns to the disk, in the order of their places, so that those of each stream are together. Reads of bytes
    /// that are in the memory, or are being read into it, continue to wait.
    fn release_waits(&mut self) {
        let mut from = (0, 0);
        while let Some((key, wait)) = self.waits.read_from(from) {
            from = (key.0, key.1 + 1);
            if !self.frames.covers(key.0, wait.bytes) {
                self.waits.remove(&mut self.schedule, false, key);
                self.skip(wait.stream, key.0, wait.bytes);
                self.send_direct_after_writes(wait.request, key.0, wait.bytes);
            }
        }
        while let Some((key, wait)) = self.waits.first_write() {
            self.waits.remove(&mut self.schedule, true, key);
            self.skip(wait.stream, key.0, wait.bytes);
            self.route_change(wait.request, key.0, wait.bytes);
        }
    }

    /// Sends a request of a stream to the disk at once.
    fn bypass_stream(&mut self, id: u32, request: Request, offset: u64, bytes: u64) {
        let stream = &mut self.schedule[id];
        stream.client.request(self.now, request.client, bytes);
        stream.totals.add(bytes, false);
        self.skip(id, offset, bytes);
        self.send_direct(request);
    }

    /// Advances a stream past bytes that it does not read ahead.
    fn skip(&mut self, id: u32, offset: u64, bytes: u64) {
        if let Some(open) = self.schedule[id].open {
            // No further write continues the open frame.
            self.close(open);
        }
        self.schedule.skip(id, offset, bytes);
    }

    fn wait(&mut self, id: u32, request: Request, offset: u64, bytes: u64) {
        self.waits.insert(self.now, &mut self.schedule, id, request, (offset, bytes));
    }

    fn sweep(&mut self) {
        let (now, idle) = (self.now, self.config.idle());
        let is_over = |since: Instant| since.saturating_add(idle) <= now;
        let over = |stream: &Stream| {
            stream.waiting == 0 && stream.in_flight == 0 && is_over(stream.client.last_request)
        };
        let streams = self.schedule.table.iter().filter(|(_, stream)| over(stream));
        let gone: Vec<u32> = streams.map(|(id, _)| id).collect();
        gone.into_iter().for_each(|id| self.drop_stream(id));
        let left = |frame: &frames::Frame| frame.is_evictable() && is_over(frame.touched);
        let left: Vec<u32> = self.frames.iter().filter(|(_, frame)| left(frame)).map(|(id, _)| id).collect();
        left.into_iter().for_each(|id| self.discard_frame(id));
        self.schedule.table.schedule_sweep(now, self.frames.used() > 0);
    }
}
