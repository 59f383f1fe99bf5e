//! One clone of a job: what it issues, and when.
//!
//! It follows fio's own loop: fill the queue; wait for completions once it is full; pause if a pause is due; repeat the files
//! until the requested bytes or requests are issued. Where fio sleeps or waits for all outstanding requests, this is in a
//! [`Hold`].

use headstack_model::{Lbn, Nanos, Op, Request};
use rand::RngExt;

use super::dice::Dice;
use super::file::{Extent, Pattern, Run};
use super::pace::{Arrivals, Mix, Pauses, Rate};
use super::service::Files;
use super::settings::{READ, Settings, WRITE};

/// The next step of a clone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    Issue(FioRequest),
    /// Nothing before this time.
    Later(Nanos),
    /// Nothing before a completion.
    Blocked,
    Ended,
}

/// A request of a clone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FioRequest {
    pub(super) volume: u32,
    pub(super) request: Request,
    pub(super) urgent: bool,
    /// Whether more may follow before a completion.
    pub(super) more: bool,
}

/// The reason why a clone does not issue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hold {
    Open,
    /// The queue is full, until at most this many are outstanding.
    Full,
    Sleep(Nanos),
    /// All outstanding requests have to complete first.
    Drain(Then),
    /// A flush is outstanding.
    Flush,
    Ended,
}

/// What follows when all have completed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Pause,
    WaitUntil(Nanos),
    NextPass,
    End,
}

/// The amount of a clone's work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes in all, over all loops.
    pub(super) bytes: u64,
    /// Bytes in one pass.
    pub(super) pass_bytes: u64,
    /// Requests in all; 0 for any number.
    pub(super) requests: u64,
    pub(super) loops: u64,
    /// Whether `io_size` was given.
    pub(super) beyond_files: bool,
}

/// One clone of a job.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pattern: Pattern,
    files: Files,
    sector_bytes: Vec<u32>,
    depth: u32,
    refill: u32,
    limits: Limits,
    seed: u64,
    repeats: bool,
    dice: Dice,
    mix: Mix,
    rates: [Rate; 2],
    is_rated: bool,
    waits_inline: bool,
    pauses: Pauses,
    arrivals: Option<Arrivals>,
    forgives_pauses: bool,
    pause_unchecked: bool,
    flush_every: [u64; 2],
    flushed_at: u64,
    flush_at_end: bool,
    end_flushes: usize,
    fua: bool,
    urgent_percent: [u64; 2],
    modifier_left: u64,
    modifier: u64,
    // Time.
    time_based: bool,
    runtime: Option<Nanos>,
    ramp: Nanos,
    started: Nanos,
    epoch: Nanos,
    deadline: Nanos,
    ramping: bool,
    // What was done.
    hold: Hold,
    decided: Option<usize>,
    out: u32,
    issued: [u64; 2],
    completed: u64,
    bytes: u64,
    pass_bytes: u64,
    pass_issued: u64,
    loops_left: u64,
}

impl Process {
    pub(super) fn new(
        settings: &Settings,
        pattern: Pattern,
        extents: &[Extent],
        sector_bytes: Vec<u32>,
        limits: Limits,
        seed: u64,
    ) -> Process {
        let mut dice = Dice::new(seed);
        let files = Files::new(settings, &pattern, extents, &mut dice.places);
        let depth = settings.depth();
        let low = if settings.iodepth_low == 0 { depth } else { settings.iodepth_low };
        let refill = low.min(depth - settings.complete_min.clamp(1, depth));
        let rates = [READ, WRITE].map(|at| Rate::new(settings, &pattern, at));
        let modifier = if pattern.direction.random { settings.modifier.max(1) } else { 1 };
        let urgent = |at: usize| match (settings.urgent_job, settings.urgent_class) {
            (true, _) => 100,
            (_, true) => settings.urgent_percent[at],
            _ => 0,
        };
        Process {
            files,
            sector_bytes,
            depth: depth as u32,
            refill: refill as u32,
            limits,
            seed,
            repeats: settings.randrepeat && settings.randseed.is_none(),
            dice,
            mix: Mix::new(settings),
            is_rated: rates.iter().any(|rate| !rate.is_free()),
            rates,
            waits_inline: !settings.offload,
            pauses: Pauses::new(settings),
            arrivals: Arrivals::new(settings),
            forgives_pauses: settings.rate_ignores_thinktime,
            pause_unchecked: false,
            flush_every: [settings.fsync, settings.fdatasync],
            flushed_at: 0,
            flush_at_end: settings.end_fsync && pattern.direction.writes,
            end_flushes: 0,
            fua: settings.sync,
            urgent_percent: [urgent(READ), urgent(WRITE)],
            modifier_left: modifier,
            modifier,
            time_based: settings.time_based && settings.runtime.is_some(),
            runtime: settings.runtime.filter(|runtime| *runtime > Nanos::ZERO),
            ramp: settings.ramp_time,
            started: Nanos::ZERO,
            epoch: Nanos::ZERO,
            deadline: Nanos::MAX,
            ramping: false,
            hold: Hold::Open,
            decided: None,
            out: 0,
            issued: [0; 2],
            completed: 0,
            bytes: 0,
            pass_bytes: 0,
            pass_issued: 0,
            loops_left: limits.loops - 1,
            pattern,
        }
    }

    /// Begins at `now`.
    pub(super) fn start(&mut self, now: Nanos) {
        (self.started, self.epoch, self.ramping) = (now, now, self.ramp > Nanos::ZERO);
        if let Some(runtime) = self.runtime {
            self.deadline = now + self.ramp + runtime;
        }
        self.pauses.begin(now);
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.follow(now, &mut self.dice.rate);
        }
    }

    /// When it began, and from when on it is measured.
    pub(super) fn measured_from(&self) -> Nanos {
        self.started + self.ramp
    }

    /// Share of its work that is done by `now`: the largest of those that may end it, of time, bytes and requests.
    pub(super) fn progress(&self, now: Nanos) -> f64 {
        let share = |done: u64, all: u64| if all > 0 { done as f64 / all as f64 } else { 0.0 };
        let time =
            self.runtime.map_or(0.0, |runtime| share(now.since(self.started).0, (self.ramp + runtime).0));
        if self.time_based {
            return time.min(1.0);
        }
        let requests = share(self.issued[READ] + self.issued[WRITE], self.limits.requests);
        time.max(requests).max(share(self.bytes, self.limits.bytes)).min(1.0)
    }

    /// Issues no more.
    pub(super) fn stop(&mut self) {
        self.deadline = Nanos::ZERO;
    }

    /// Handles a completion. Returns whether the clone may issue again.
    #[inline]
    pub(super) fn complete(&mut self) -> bool {
        self.out -= 1;
        match self.hold {
            Hold::Flush => {
                self.hold = Hold::Open;
                true
            }
            Hold::Full => {
                self.completed += 1;
                self.out <= self.refill
            }
            Hold::Drain(_) => {
                self.completed += 1;
                self.out == 0
            }
            _ => {
                self.completed += 1;
                false
            }
        }
    }

    /// The next step at `now`.
    #[inline]
    pub(super) fn poll(&mut self, now: Nanos) -> Step {
        loop {
            match self.hold {
                Hold::Open => {}
                Hold::Full if self.out > self.refill => return Step::Blocked,
                Hold::Sleep(until) if now < until.min(self.deadline) => {
                    return Step::Later(until.min(self.deadline));
                }
                Hold::Full | Hold::Sleep(_) => self.hold = Hold::Open,
                Hold::Flush => return Step::Blocked,
                Hold::Drain(_) if self.out > 0 => return Step::Blocked,
                Hold::Drain(then) => {
                    if let Some(step) = self.after_drain(now, then) {
                        return step;
                    }
                    continue;
                }
                Hold::Ended => return Step::Ended,
            }
            if let Some(step) = self.advance(now) {
                return step;
            }
        }
    }

    fn after_drain(&mut self, now: Nanos, then: Then) -> Option<Step> {
        match then {
            Then::Pause => {
                let pause = self.pauses.length(&mut self.dice.rate);
                self.pauses.end(now + pause);
                if self.forgives_pauses {
                    self.rates.iter_mut().for_each(|rate| rate.forgive(pause));
                }
                self.hold = Hold::Sleep(now + pause);
            }
            Then::WaitUntil(at) => self.hold = Hold::Sleep(at),
            Then::NextPass | Then::End if self.flush_at_end && self.end_flushes < self.files.len() => {
                self.end_flushes += 1;
                let step = self.flush(self.end_flushes - 1);
                return Some(step);
            }
            Then::NextPass => self.next_pass(),
            Then::End => self.hold = Hold::Ended,
        }
        None
    }

    /// Issues the next request, or sets a hold that says why not.
    fn advance(&mut self, now: Nanos) -> Option<Step> {
        if self.ramping && now >= self.started + self.ramp {
            self.ramping = false;
            self.epoch = self.started + self.ramp;
            self.rates.iter_mut().for_each(Rate::restart);
        }
        if now >= self.deadline {
            return self.drain(Then::End);
        }
        if self.end_flushes > 0 {
            return self.drain(Then::NextPass);
        }
        if self.pause_unchecked {
            self.pause_unchecked = false;
            let issued = self.issued[READ] + self.issued[WRITE];
            if self.pauses.is_due(now, issued, self.completed) {
                return self.drain(Then::Pause);
            }
        }
        if self.is_pass_over() {
            return self.drain(Then::NextPass);
        }
        if self.wants_flush() {
            self.flushed_at = self.issued[WRITE];
            return match self.files.choose(&mut self.dice.places.file) {
                Some(file) => Some(self.flush(file)),
                None => self.drain(Then::NextPass),
            };
        }
        if let Some(arrivals) = &mut self.arrivals
            && now < arrivals.next
        {
            self.hold = Hold::Sleep(arrivals.next);
            return None;
        }
        let at = self.direct(now)?;
        self.issue(at)
    }

    fn drain(&mut self, then: Then) -> Option<Step> {
        self.hold = Hold::Drain(then);
        None
    }

    fn is_pass_over(&self) -> bool {
        !self.time_based
            && (self.bytes >= self.limits.bytes
                || self.pass_bytes >= self.limits.pass_bytes
                || self.has_issued_all())
    }

    fn has_issued_all(&self) -> bool {
        self.limits.requests > 0 && self.issued[READ] + self.issued[WRITE] >= self.limits.requests
    }

    fn wants_flush(&self) -> bool {
        let writes = self.issued[WRITE];
        writes != self.flushed_at
            && self.flush_every.iter().any(|every| *every > 0 && writes.is_multiple_of(*every))
    }

    fn flush(&mut self, file: usize) -> Step {
        self.out += 1;
        self.hold = Hold::Flush;
        let volume = self.files.file_at(file).volume;
        Step::Issue(FioRequest { volume, request: Request::flush(), urgent: false, more: false })
    }

    /// The direction of the next request; `None` if it is not due yet.
    #[inline]
    fn direct(&mut self, now: Nanos) -> Option<usize> {
        if let Some(at) = self.decided.take() {
            return Some(at);
        }
        let mixed = self.pattern.direction.reads && self.pattern.direction.writes;
        let mut at = match mixed {
            true => self.mix.next(&self.issued, &mut self.dice.mix),
            false if self.pattern.direction.reads => READ,
            false => WRITE,
        };
        if !self.is_rated {
            return Some(at);
        }
        let due = |at: usize| self.epoch + self.rates[at].due();
        if due(at) <= now {
            return Some(at);
        }
        let other = 1 - at;
        if mixed && self.mix.wants(other) && due(other) < due(at) {
            at = other;
        }
        let until = due(at);
        self.mix.took(at);
        self.decided = Some(at);
        if until > now {
            self.hold =
                if self.waits_inline { Hold::Drain(Then::WaitUntil(until)) } else { Hold::Sleep(until) };
            return None;
        }
        self.decided.take()
    }

    /// The next request in this direction, from whichever file has one.
    #[inline]
    fn issue(&mut self, at: usize) -> Option<Step> {
        loop {
            let Some(index) = self.files.choose(&mut self.dice.places.file) else {
                return self.drain(Then::NextPass);
            };
            let turn = self.takes_turn();
            let file = self.files.at_mut(index);
            if let Some(run) = file.next(at, &self.pattern, turn, &mut self.dice.places) {
                return Some(Step::Issue(self.make_request(at, index, run)));
            }
            file.done = true;
        }
    }

    /// Whether a random place is to be drawn for this request.
    #[inline]
    fn takes_turn(&mut self) -> bool {
        if self.modifier == 1 {
            return true;
        }
        self.modifier_left -= 1;
        if self.modifier_left == 0 {
            self.modifier_left = self.modifier;
            return true;
        }
        false
    }

    fn make_request(&mut self, at: usize, index: usize, run: Run) -> FioRequest {
        let file = self.files.file_at(index);
        let sector = u64::from(self.sector_bytes[index]);
        let first = (file.base + run.offset) / sector;
        let end = (file.base + run.offset + run.bytes).div_ceil(sector);
        let op = if at == READ { Op::Read } else { Op::Write };
        let request =
            Request { op, lbn: Lbn(first), sectors: (end - first) as u32, fua: self.fua && at == WRITE };
        let percent = self.urgent_percent[at];
        let urgent = percent == 100 || percent > 0 && self.dice.urgent.random_range(1..=100) <= percent;
        self.issued[at] += 1;
        self.bytes += run.bytes;
        self.pass_bytes += run.bytes;
        self.pass_issued += 1;
        self.out += 1;
        self.rates[at].count(run.bytes, &mut self.dice.rate);
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.follow(arrivals.next, &mut self.dice.rate);
        }
        self.pause_unchecked = self.pauses.are_wanted();
        let more = self.out < self.depth;
        if !more {
            self.hold = Hold::Full;
        }
        FioRequest { volume: file.volume, request, urgent, more }
    }

    /// Starts another pass over the files, or ends.
    fn next_pass(&mut self) {
        let nothing = self.pass_issued == 0;
        self.hold = if nothing || !self.wants_another_pass() { Hold::Ended } else { Hold::Open };
        (self.pass_bytes, self.pass_issued, self.end_flushes) = (0, 0, 0);
        if self.repeats {
            self.dice.restart(self.seed);
        }
        self.files.rewind(&mut self.dice.places);
        self.mix.begin_pass();
    }

    fn wants_another_pass(&mut self) -> bool {
        if self.time_based {
            return true;
        }
        if self.loops_left > 0 {
            self.loops_left -= 1;
            return true;
        }
        let one_loop = self.limits.bytes / self.limits.loops;
        let left = one_loop.saturating_sub(self.bytes);
        let all_done = self.files.are_done();
        !self.has_issued_all() && left >= self.pattern.most() && (self.limits.beyond_files || !all_done)
    }
}
