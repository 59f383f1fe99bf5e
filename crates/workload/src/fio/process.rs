//! One clone of a job: what it issues, and when.
//!
//! It follows fio's own loop: fill the queue; wait for completions once it is full; pause if a pause is due; repeat the files
//! until the requested bytes or requests are issued. Where fio sleeps or waits for all outstanding requests, this is in a
//! [`Hold`].

mod paced;
mod verify;
mod verifying;

use headstack_model::{Instant, Lbn, Op, Request};
use rand::RngExt;

use super::dice::Dice;
use super::extent::{Extent, Run};
use super::file::Pattern;
use super::pace::{Arrivals, JobRates, Mix, Pauses, Term};
use super::request::FioRequest;
use super::service::Files;
use super::settings::{IssuedPriorities, READ, RequestPriority, Settings, WRITE};
use super::strided::Stride;
use super::zoned::{ZonedFile, ZonedVolumes};
use paced::{Due, FlushState};
use verify::Verify;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    Issue(FioRequest),
    Later(Instant),
    Blocked,
    Ended,
}

/// The reason why a clone does not issue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hold {
    Open,
    /// The queue is full, until at most this many are outstanding.
    Full,
    Sleep(Instant),
    /// All outstanding requests have to complete first.
    Drain(Then),
    Flush,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Pause,
    WaitUntil(Instant),
    /// Issue the held request.
    Issue,
    NextPass,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes in all, over all loops.
    pub(super) bytes: u64,
    pub(super) pass_bytes: u64,
    /// Requests in all; 0 for any number.
    pub(super) requests: u64,
    pub(super) loops: u64,
    pub(super) beyond_files: bool,
}

/// The queue of a clone.
#[derive(Clone, Copy, Debug)]
struct CloneQueue {
    /// The most requests that it holds.
    depth: u32,
    /// Number outstanding at which a full queue is filled again.
    refill: u32,
    /// Requests that have not completed.
    out: u32,
}

impl CloneQueue {
    fn new(settings: &Settings) -> CloneQueue {
        CloneQueue { depth: settings.queue.depth() as u32, refill: settings.queue.refill() as u32, out: 0 }
    }
}

#[derive(Clone, Debug)]
struct WorkDone {
    limits: Limits,
    issued: [u64; 2],
    /// Requests and bytes that `verify` read.
    verified: [u64; 2],
    completed: u64,
    bytes: u64,
    pass_bytes: u64,
    pass_issued: u64,
    loops_left: u64,
}

impl WorkDone {
    fn new(limits: Limits) -> WorkDone {
        let loops_left = limits.loops - 1;
        WorkDone {
            limits,
            issued: [0; 2],
            verified: [0; 2],
            completed: 0,
            bytes: 0,
            pass_bytes: 0,
            pass_issued: 0,
            loops_left,
        }
    }

    #[inline]
    fn count(&mut self, at: usize, bytes: u64) {
        self.issued[at] += 1;
        self.bytes += bytes;
        self.pass_bytes += bytes;
        self.pass_issued += 1;
    }

    #[cold]
    fn count_verified(&mut self, bytes: u64, as_written: bool) {
        self.verified[0] += 1;
        let sum = if as_written { &mut self.bytes } else { &mut self.verified[1] };
        *sum += bytes;
        self.pass_bytes += bytes;
    }

    #[inline]
    fn requests(&self) -> u64 {
        self.issued[READ] + self.issued[WRITE] + self.verified[0]
    }

    #[inline]
    fn has_issued_all(&self) -> bool {
        self.limits.requests > 0 && self.requests() >= self.limits.requests
    }

    #[inline]
    fn is_pass_over(&self) -> bool {
        self.bytes >= self.limits.bytes || self.pass_bytes >= self.limits.pass_bytes || self.has_issued_all()
    }

    /// The larger of the shares of bytes and of requests that are done.
    fn share(&self) -> f64 {
        let share = |done: u64, all: u64| if all > 0 { done as f64 / all as f64 } else { 0.0 };
        share(self.requests(), self.limits.requests).max(share(self.bytes, self.limits.bytes))
    }

    fn begin_pass(&mut self) {
        (self.pass_bytes, self.pass_issued) = (0, 0);
    }

    /// The bytes that are left of one loop.
    fn bytes_left(&self) -> u64 {
        (self.limits.bytes / self.limits.loops).saturating_sub(self.bytes + self.verified[1])
    }
}

/// The requests between two draws of a random place.
#[derive(Clone, Copy, Debug)]
struct Draws {
    every: u64,
    left: u64,
}

impl Draws {
    fn new(pattern: &Pattern) -> Draws {
        let every = if pattern.direction.random { pattern.modifier.max(1) } else { 1 };
        Draws { every, left: every }
    }

    /// Whether a random place is to be drawn for this request.
    #[inline]
    fn is_next(&mut self) -> bool {
        if self.every == 1 {
            return true;
        }
        self.left -= 1;
        if self.left == 0 {
            self.left = self.every;
            return true;
        }
        false
    }
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    pattern: Pattern,
    files: Files,
    stride: Option<Stride>,
    queue: CloneQueue,
    dice: Dice,
    mix: Mix,
    rates: JobRates,
    pauses: Pauses,
    arrivals: Option<Arrivals>,
    flushes: FlushState,
    fua: bool,
    priority: IssuedPriorities,
    draws: Draws,
    /// Whether only its work and its queue decide when it issues, and in one direction.
    is_plain: bool,
    pub(super) term: Term,
    hold: Hold,
    decided: Option<usize>,
    /// A write that resets its zone, held until all requests before it have completed: its direction, its file and its bytes.
    held: Option<(usize, usize, Run)>,
    work: WorkDone,
    verify: Option<Box<Verify>>,
}

impl Process {
    pub(super) fn new(
        settings: &Settings,
        pattern: Pattern,
        extents: Vec<(Extent, Option<ZonedFile>)>,
        limits: Limits,
        seed: u64,
    ) -> Process {
        let mut dice = Dice::new(seed, settings.random.repeats && settings.random.seed.is_none());
        let stride = Stride::new(settings);
        let (rates, pauses) = (JobRates::new(settings, &pattern), Pauses::new(settings));
        let (arrivals, flushes) = (Arrivals::new(settings), FlushState::new(settings));
        let verify = Verify::new(settings, &pattern);
        let waits = verify.is_some()
            || rates.are_limited
            || pauses.are_used()
            || arrivals.is_some()
            || flushes.are_used();
        Process {
            is_plain: !waits && stride.is_none() && !pattern.direction.is_mixed(),
            files: Files::new(settings.files.service, &pattern, extents, stride.as_ref(), &mut dice.places),
            stride,
            queue: CloneQueue::new(settings),
            dice,
            mix: Mix::new(settings),
            rates,
            pauses,
            arrivals,
            flushes,
            fua: settings.flushes.fua,
            priority: IssuedPriorities::new(&settings.priority),
            draws: Draws::new(&pattern),
            term: Term::new(&settings.life),
            hold: Hold::Open,
            decided: None,
            held: None,
            work: WorkDone::new(limits),
            verify,
            pattern,
        }
    }

    pub(super) fn start(&mut self, now: Instant) {
        self.term.start(now);
        self.rates.start(now, self.term.measured_from());
        self.pauses.begin(now);
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.follow(now, &mut self.dice.rate);
        }
    }

    /// Share of its work that is done by `now`: the largest of the shares of time, bytes and requests that may end it.
    pub(super) fn progress(&self, now: Instant) -> f64 {
        let time = self.term.share(now);
        if self.term.is_endless { time.min(1.0) } else { time.max(self.work.share()).min(1.0) }
    }

    /// Handles a completion. Returns whether the clone may issue again.
    #[inline]
    pub(super) fn complete(&mut self, id: u64) -> bool {
        self.queue.out -= 1;
        if let Some(verify) = &mut self.verify {
            verify.complete(id);
        }
        if self.hold == Hold::Flush {
            self.hold = Hold::Open;
            return true;
        }
        self.work.completed += 1;
        match self.hold {
            Hold::Full => self.queue.out <= self.queue.refill,
            Hold::Drain(_) => self.queue.out == 0,
            _ => false,
        }
    }

    #[inline]
    pub(super) fn poll(&mut self, now: Instant, zoned: &mut ZonedVolumes) -> Step {
        loop {
            match self.hold {
                Hold::Open => {}
                Hold::Full if self.queue.out > self.queue.refill => return Step::Blocked,
                Hold::Sleep(until) if now < self.term.until(until) => {
                    return Step::Later(self.term.until(until));
                }
                Hold::Full | Hold::Sleep(_) => self.hold = Hold::Open,
                Hold::Flush => return Step::Blocked,
                Hold::Drain(_) if self.queue.out > 0 => return Step::Blocked,
                Hold::Drain(then) => {
                    if let Some(step) = self.after_drain(now, then) {
                        return step;
                    }
                    continue;
                }
                Hold::Ended => return Step::Ended,
            }
            if let Some(step) = self.advance(now, zoned) {
                return step;
            }
        }
    }

    #[inline(never)]
    fn after_drain(&mut self, now: Instant, then: Then) -> Option<Step> {
        match then {
            Then::Pause => {
                let pause = self.pauses.length(&mut self.dice.rate);
                self.pauses.end(now + pause);
                self.rates.pause(pause);
                self.hold = Hold::Sleep(now + pause);
            }
            Then::WaitUntil(at) => self.hold = Hold::Sleep(at),
            Then::Issue => return Some(self.issue_held()),
            Then::NextPass | Then::End if self.flushes.at_end && self.flushes.ended < self.files.len() => {
                self.flushes.ended += 1;
                return Some(self.flush(self.flushes.ended - 1));
            }
            Then::NextPass => self.next_pass(),
            Then::End => self.hold = Hold::Ended,
        }
        None
    }

    #[cold]
    fn issue_held(&mut self) -> Step {
        let (at, index, run) = self.held.take().expect("a write is held until all is complete");
        self.hold = Hold::Open;
        Step::Issue(self.make_request(at, index, run))
    }

    /// Issues the next request, or sets a hold that says why not.
    #[inline]
    fn advance(&mut self, now: Instant, zoned: &mut ZonedVolumes) -> Option<Step> {
        if self.term.is_over(now) {
            return self.drain(Then::End);
        }
        let at = if self.is_plain {
            if self.is_pass_over() {
                return self.drain(Then::NextPass);
            }
            self.only_direction()
        } else {
            match self.due(now) {
                Due::Request(at) => at,
                Due::Verify(index, run) => return Some(Step::Issue(self.make_verifying(index, run))),
                Due::Flush(step) => return Some(step),
                Due::Nothing => return None,
            }
        };
        self.issue(at, zoned)
    }

    #[inline]
    fn is_pass_over(&self) -> bool {
        if self.term.is_endless { self.ends_endless_pass() } else { self.work.is_pass_over() }
    }

    /// Number of outstanding requests.
    pub(super) fn outstanding(&self) -> u32 {
        self.queue.out
    }

    fn drain(&mut self, then: Then) -> Option<Step> {
        self.hold = Hold::Drain(then);
        None
    }

    fn flush(&mut self, file: usize) -> Step {
        self.queue.out += 1;
        self.hold = Hold::Flush;
        let volume = self.files.file_at(file).volume;
        Step::Issue(FioRequest::flush(volume))
    }

    /// The direction of a job that has only one.
    #[inline]
    fn only_direction(&self) -> usize {
        if self.pattern.direction.reads { READ } else { WRITE }
    }

    /// The next request in this direction, from whichever file has one.
    #[inline]
    fn issue(&mut self, at: usize, zoned: &mut ZonedVolumes) -> Option<Step> {
        loop {
            let Some(index) = self.files.choose(&mut self.dice.places.file) else {
                return self.drain(Then::NextPass);
            };
            let draws = self.draws.is_next();
            let file = self.files.at_mut(index);
            if let Some(stride) = &mut self.stride {
                file.follow_stride(at, stride, &mut self.dice.places);
            }
            let (pattern, dice) = (&self.pattern, &mut self.dice.places);
            let mut found = file.next(at, pattern, draws, dice, zoned).map(|run| (at, run));
            if found.is_none() && at == READ && pattern.direction.writes && file.has_zones() {
                // A read finds nothing that was written yet.
                found = file.next_write(pattern, draws, dice, zoned).map(|run| (WRITE, run));
            }
            if let Some((at, run)) = found {
                if self.is_only_verified(at, index, run) {
                    return None;
                }
                if run.resets_zone && self.queue.out > 0 {
                    return self.hold_reset(at, index, run);
                }
                return Some(Step::Issue(self.make_request(at, index, run)));
            }
            file.done = true;
        }
    }

    /// Holds a write that resets its zone until all requests before it have completed.
    #[cold]
    fn hold_reset(&mut self, at: usize, index: usize, run: Run) -> Option<Step> {
        self.held = Some((at, index, run));
        self.drain(Then::Issue)
    }

    #[inline(always)]
    fn make_request(&mut self, at: usize, index: usize, run: Run) -> FioRequest {
        self.work.count(at, run.bytes);
        if !self.is_plain {
            self.note_issue(at, index, run);
        }
        self.fill_request(at, index, run)
    }

    /// A request in this form, which goes into the queue.
    #[inline(always)]
    fn fill_request(&mut self, at: usize, index: usize, run: Run) -> FioRequest {
        let file = self.files.file_at(index);
        let first = (file.base + run.offset) / file.sector;
        let end = (file.base + run.offset + run.bytes).div_ceil(file.sector);
        let op = if at == READ { Op::Read } else { Op::Write };
        let request =
            Request { op, lbn: Lbn(first), sectors: (end - first) as u32, fua: self.fua && at == WRITE };
        let volume = file.volume;
        let dice = &mut self.dice.urgent;
        let RequestPriority { urgent, idle, limit } =
            self.priority.draw(at, run.bytes, || dice.random_range(1..=100));
        self.queue.out += 1;
        let more = self.queue.out < self.queue.depth;
        if !more {
            self.hold = Hold::Full;
        }
        let tracked = self.verify.is_some();
        FioRequest { volume, request, urgent, idle, limit, resets_zone: run.resets_zone, more, tracked }
    }

    #[cold]
    fn next_pass(&mut self) {
        if self.verify.as_mut().is_some_and(|verify| verify.switch_phase()) {
            self.hold = Hold::Open;
            return;
        }
        let nothing = self.work.pass_issued == 0;
        self.hold = if nothing || !self.wants_another_pass() { Hold::Ended } else { Hold::Open };
        self.work.begin_pass();
        self.flushes.ended = 0;
        if let Some(stride) = &mut self.stride {
            if !self.files.are_done() {
                return;
            }
            stride.restart();
            self.files.return_to_first_zone();
        }
        self.dice.begin_pass();
        self.files.rewind(&mut self.dice.places);
        self.mix.begin_pass();
    }

    fn wants_another_pass(&mut self) -> bool {
        if self.term.is_endless {
            return true;
        }
        if self.work.loops_left > 0 {
            self.work.loops_left -= 1;
            return true;
        }
        // Verifying begins all files again.
        let all_done = self.files.are_done() && self.verify.is_none();
        !self.work.has_issued_all()
            && self.work.bytes_left() >= self.pattern.most()
            && (self.work.limits.beyond_files || !all_done)
    }
}
