//! How fast a job may issue: rates and pauses.

use headstack_model::Nanos;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::dist::Sampler;

use super::file::{Pattern, ready};
use super::settings::{READ, RateProcess, Settings, WRITE};

const SECOND: u128 = 1_000_000_000;

/// The rate of one direction.
///
/// As fio counts: a rate in requests is one in bytes at the smallest request, unless sizes are split.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    kind: RateKind,
    bytes: u64,
    /// When the next request is due, from the start of the job.
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
    pub(super) fn new(settings: &Settings, pattern: &Pattern, at: usize) -> Rate {
        let (bytes, requests) = (settings.rate[at], settings.rate_iops[at]);
        let least = pattern.sizes[at].least();
        let bytes_a_second = if bytes > 0 { bytes } else { requests.saturating_mul(least) };
        let gap = || Nanos((SECOND * u128::from(least) / u128::from(bytes_a_second)) as u64);
        let kind = match settings.rate_process {
            _ if bytes_a_second == 0 => RateKind::Free,
            RateProcess::Poisson => RateKind::Poisson(gap()),
            RateProcess::Linear if bytes == 0 && !settings.bs_split[at].is_empty() => RateKind::Even(gap()),
            RateProcess::Linear => RateKind::BytesASecond(bytes_a_second),
        };
        Rate { kind, bytes: 0, due: Nanos::ZERO }
    }

    pub(super) fn is_free(&self) -> bool {
        matches!(self.kind, RateKind::Free)
    }

    /// When the next request is due, from the start of the job.
    pub(super) fn due(&self) -> Nanos {
        self.due
    }

    /// A request was issued.
    pub(super) fn count(&mut self, bytes: u64, random: &mut Pcg64Mcg) {
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

    /// Leaves a pause out of the reckoning.
    pub(super) fn forgive(&mut self, pause: Nanos) {
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

    /// Begins to count again.
    pub(super) fn restart(&mut self) {
        (self.bytes, self.due) = (0, Nanos::ZERO);
    }
}

/// Pauses between requests.
#[derive(Clone, Debug)]
pub(super) struct Pauses {
    time: Nanos,
    drawn: Option<Sampler<Nanos>>,
    blocks: u64,
    blocks_given: bool,
    at_issue: bool,
    every: Nanos,
    last_blocks: u64,
    last_time: Nanos,
}

impl Pauses {
    pub(super) fn new(settings: &Settings) -> Pauses {
        Pauses {
            time: settings.thinktime,
            drawn: settings.own.think_time.as_ref().map(ready),
            blocks: settings.thinktime_blocks.unwrap_or(1),
            blocks_given: settings.thinktime_blocks.is_some(),
            at_issue: settings.thinktime_at_issue,
            every: settings.thinktime_iotime,
            last_blocks: 0,
            last_time: Nanos::ZERO,
        }
    }

    /// Whether there are any.
    pub(super) fn are_wanted(&self) -> bool {
        self.time > Nanos::ZERO || self.drawn.is_some()
    }

    /// How long the next one is.
    pub(super) fn length(&self, random: &mut Pcg64Mcg) -> Nanos {
        self.drawn.as_ref().map_or(self.time, |drawn| drawn.draw(random))
    }

    pub(super) fn begin(&mut self, now: Nanos) {
        self.last_time = now;
    }

    /// Whether a pause is due, after these numbers of requests issued and completed.
    pub(super) fn is_due(&mut self, now: Nanos, issued: u64, completed: u64) -> bool {
        let late = self.every > Nanos::ZERO && now.since(self.last_time) >= self.every;
        if self.every > Nanos::ZERO && !late && !self.blocks_given {
            return false;
        }
        let blocks = if self.at_issue { issued } else { completed };
        let due = late || blocks >= self.last_blocks + self.blocks;
        if due {
            self.last_blocks = blocks;
        }
        due
    }

    /// A pause ends at this time.
    pub(super) fn end(&mut self, at: Nanos) {
        self.last_time = at;
    }
}

/// Arrivals that wait for nothing.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    gap: Sampler<Nanos>,
    pub(super) next: Nanos,
}

impl Arrivals {
    pub(super) fn new(settings: &Settings) -> Option<Arrivals> {
        let gap = ready(settings.own.gap.as_ref()?);
        Some(Arrivals { gap, next: Nanos::ZERO })
    }

    /// Schedules the next one a gap after this time.
    pub(super) fn follow(&mut self, at: Nanos, random: &mut Pcg64Mcg) {
        self.next = Nanos(at.0.saturating_add(self.gap.draw(random).0));
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
        Mix { percent: [settings.rwmix_read, 100 - settings.rwmix_read], current: READ, threshold: 0 }
    }

    pub(super) fn begin_pass(&mut self) {
        self.threshold = 0;
    }

    /// The direction of the next request, with these numbers issued in each.
    #[inline]
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
