//! When a job may issue: its time, rates and pauses.

use headstack_model::{Instant, Nanos};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::dist::Sampler;

use super::file::{Pattern, ready};
use super::settings::{Lifetime, READ, RateProcess, Settings, ThinkTime, WRITE};

const SECOND: u128 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) started: Instant,
    deadline: Instant,
    ramp: Nanos,
    runtime: Option<Nanos>,
    /// Whether nothing but the time ends the clone.
    pub(super) is_endless: bool,
}

impl Term {
    pub(super) fn new(life: &Lifetime) -> Term {
        Term {
            started: Instant::ZERO,
            deadline: Instant::MAX,
            ramp: life.ramp,
            runtime: life.runtime.filter(|runtime| *runtime > Nanos::ZERO),
            is_endless: life.is_endless(),
        }
    }

    pub(super) fn start(&mut self, now: Instant) {
        self.started = now;
        if let Some(runtime) = self.runtime {
            self.deadline = now + self.ramp + runtime;
        }
    }

    pub(super) fn stop(&mut self) {
        self.deadline = Instant::ZERO;
    }

    pub(super) fn measured_from(&self) -> Instant {
        self.started + self.ramp
    }

    #[inline]
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    /// A time, or the deadline if that is earlier.
    #[inline]
    pub(super) fn until(&self, time: Instant) -> Instant {
        time.min(self.deadline)
    }

    /// The share of the runtime that has passed; 0 without a runtime.
    pub(super) fn share(&self, now: Instant) -> f64 {
        let Some(runtime) = self.runtime else { return 0.0 };
        now.since(self.started).0 as f64 / (self.ramp + runtime).0 as f64
    }
}

#[derive(Clone, Debug)]
pub(super) struct JobRates {
    rates: [Rate; 2],
    /// Whether there are any rates.
    pub(super) are_limited: bool,
    /// The time from which on they count.
    epoch: Instant,
    /// The end of the ramp time, at which they begin to count again.
    ramp_end: Option<Instant>,
    /// Whether a job ahead of its rate waits for outstanding requests.
    pub(super) wait_inline: bool,
    forgive_pauses: bool,
}

impl JobRates {
    pub(super) fn new(settings: &Settings, pattern: &Pattern) -> JobRates {
        let rates = [READ, WRITE].map(|at| Rate::new(settings, pattern, at));
        JobRates {
            are_limited: rates.iter().any(|rate| !matches!(rate.kind, RateKind::Free)),
            rates,
            epoch: Instant::ZERO,
            ramp_end: None,
            wait_inline: !settings.queue.offload,
            forgive_pauses: settings.rate.forgives_pauses,
        }
    }

    pub(super) fn start(&mut self, now: Instant, measured_from: Instant) {
        (self.epoch, self.ramp_end) = (now, (measured_from > now).then_some(measured_from));
    }

    /// Starts the count again once the ramp time is over.
    pub(super) fn end_ramp(&mut self, now: Instant) {
        if let Some(end) = self.ramp_end
            && now >= end
        {
            (self.epoch, self.ramp_end) = (end, None);
            self.rates.iter_mut().for_each(|rate| (rate.bytes, rate.due) = (0, Nanos::ZERO));
        }
    }

    pub(super) fn due(&self, at: usize) -> Instant {
        self.epoch + self.rates[at].due
    }

    pub(super) fn count(&mut self, at: usize, bytes: u64, random: &mut Pcg64Mcg) {
        self.rates[at].count(bytes, random);
    }

    /// Excludes a pause from the count, if the job wants that.
    pub(super) fn pause(&mut self, pause: Nanos) {
        if self.forgive_pauses {
            self.rates.iter_mut().for_each(|rate| rate.forgive(pause));
        }
    }
}

/// The rate of one direction.
///
/// As in fio, a rate in requests counts as one in bytes, with the smallest request, unless sizes are split.
#[derive(Clone, Debug)]
struct Rate {
    kind: RateKind,
    bytes: u64,
    /// When the next request is due, counted from the time at which the rates begin to count.
    due: Nanos,
}

#[derive(Clone, Copy, Debug)]
enum RateKind {
    Free,
    BytesASecond(u64),
    Even(Nanos),
    Poisson(Nanos),
}

impl Rate {
    fn new(settings: &Settings, pattern: &Pattern, at: usize) -> Rate {
        let (bytes, requests) = (settings.rate.bytes[at], settings.rate.requests[at]);
        let least = pattern.sizes[at].least();
        let bytes_a_second = if bytes > 0 { bytes } else { requests.saturating_mul(least) };
        let gap = || Nanos((SECOND * u128::from(least) / u128::from(bytes_a_second)) as u64);
        let kind = match settings.rate.process {
            _ if bytes_a_second == 0 => RateKind::Free,
            RateProcess::Poisson => RateKind::Poisson(gap()),
            RateProcess::Linear if bytes == 0 && !settings.blocks.split[at].is_empty() => {
                RateKind::Even(gap())
            }
            RateProcess::Linear => RateKind::BytesASecond(bytes_a_second),
        };
        Rate { kind, bytes: 0, due: Nanos::ZERO }
    }

    fn count(&mut self, bytes: u64, random: &mut Pcg64Mcg) {
        match self.kind {
            RateKind::Free => {}
            RateKind::BytesASecond(rate) => {
                self.bytes += bytes;
                self.due = Nanos((u128::from(self.bytes) * SECOND / u128::from(rate)) as u64);
            }
            RateKind::Even(gap) => self.due += gap,
            RateKind::Poisson(mean) => {
                let share: f64 = random.random();
                self.due += Nanos((mean.0 as f64 * -libm::log(1.0 - share)).round() as u64);
            }
        }
    }

    fn forgive(&mut self, pause: Nanos) {
        match self.kind {
            RateKind::Free => {}
            RateKind::BytesASecond(rate) => {
                let missed = (u128::from(rate) * u128::from(pause.0) / SECOND) as u64;
                self.bytes += missed;
                self.due += pause;
            }
            RateKind::Even(_) | RateKind::Poisson(_) => self.due += pause,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Pauses {
    think: ThinkTime,
    drawn: Option<Sampler<Nanos>>,
    /// Whether a request was issued since the last check.
    is_unchecked: bool,
    last_blocks: u64,
    last_time: Instant,
}

impl Pauses {
    pub(super) fn new(settings: &Settings) -> Pauses {
        Pauses {
            think: settings.think_time,
            drawn: settings.own.think_time.as_ref().map(ready),
            is_unchecked: false,
            last_blocks: 0,
            last_time: Instant::ZERO,
        }
    }

    /// Whether the job pauses at all.
    pub(super) fn are_used(&self) -> bool {
        self.think.length > Nanos::ZERO || self.drawn.is_some()
    }

    /// Records that a request was issued, after which a pause may be due.
    pub(super) fn observe_issue(&mut self) {
        self.is_unchecked = self.are_used();
    }

    pub(super) fn length(&self, random: &mut Pcg64Mcg) -> Nanos {
        self.drawn.as_ref().map_or(self.think.length, |drawn| drawn.draw(random))
    }

    pub(super) fn begin(&mut self, now: Instant) {
        self.last_time = now;
    }

    /// Whether a pause is due since the last request, after these numbers of requests issued and completed.
    pub(super) fn is_due(&mut self, now: Instant, issued: u64, completed: u64) -> bool {
        if !std::mem::take(&mut self.is_unchecked) {
            return false;
        }
        let (every, at_issue) = (self.think.every, self.think.at_issue);
        let late = every > Nanos::ZERO && now.since(self.last_time) >= every;
        if every > Nanos::ZERO && !late && self.think.blocks.is_none() {
            return false;
        }
        let blocks = if at_issue { issued } else { completed };
        let due = late || blocks >= self.last_blocks + self.think.blocks.unwrap_or(1);
        if due {
            self.last_blocks = blocks;
        }
        due
    }

    pub(super) fn end(&mut self, at: Instant) {
        self.last_time = at;
    }
}

/// Arrivals that do not wait for completions.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    gap: Sampler<Nanos>,
    pub(super) next: Instant,
}

impl Arrivals {
    pub(super) fn new(settings: &Settings) -> Option<Arrivals> {
        let gap = ready(settings.own.gap.as_ref()?);
        Some(Arrivals { gap, next: Instant::ZERO })
    }

    /// Schedules the next arrival one gap after this time.
    pub(super) fn follow(&mut self, at: Instant, random: &mut Pcg64Mcg) {
        self.next = at.saturating_add(self.gap.draw(random));
    }
}

/// The mix of reads and writes: as in fio, a direction continues until it has its share of the other's requests.
#[derive(Clone, Debug)]
pub(super) struct Mix {
    percent: [u64; 2],
    current: usize,
    threshold: u64,
}

impl Mix {
    pub(super) fn new(settings: &Settings) -> Mix {
        let reads = settings.access.read_percent;
        Mix { percent: [reads, 100 - reads], current: READ, threshold: 0 }
    }

    pub(super) fn begin_pass(&mut self) {
        self.threshold = 0;
    }

    /// The direction of the next request, with these numbers issued in each.
    pub(super) fn next(&mut self, issued: &[u64; 2], random: &mut Pcg64Mcg) -> usize {
        if issued[self.current] >= self.threshold {
            let is_read = random.random_range(1..=100u64) <= self.percent[READ];
            let drawn = if is_read { READ } else { WRITE };
            if drawn != self.current {
                self.threshold = issued[self.current] * self.percent[drawn] / 100;
            }
            self.current = drawn;
        }
        self.current
    }

    /// Records that the other direction was used because this one is ahead of its rate.
    pub(super) fn took(&mut self, at: usize) {
        self.current = at;
    }

    /// Whether a direction is used at all.
    pub(super) fn wants(&self, at: usize) -> bool {
        self.percent[at] > 0
    }
}
