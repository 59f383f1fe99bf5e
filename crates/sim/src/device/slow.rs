//! Drives that fail slowly: periods in which a share of the accesses loses time, and stalls in which no access begins.
//!
//! Modelled: accesses of reads that miss the cache, of writes and of destages; each is late with the same probability. The loss is
//! in whole revolutions, because the sector must pass under the head again. Not modelled: read-ahead, emptying of the media cache,
//! late answers from the cache.
//!
//! The draws have a separate generator, so that a run does not change before its first period. Its seed differs from that of
//! retries and lost turns (`chance.rs`): with the same seed both would draw the same numbers, and the late accesses would be those
//! that lose turns.

use super::{Drive, Fault};
use headstack_model::spec::{MechanicsSpec, SlowPeriodSpec, StallSpec};
use headstack_model::{Instant, Lbn, Nanos};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::ops::Range;

/// Makes the seed of these draws differ from that of the drive's other draws.
const SEED: u64 = 0x510_77ed;

fn seconds(seconds: f64) -> Nanos {
    Nanos::from_ms(seconds * 1e3)
}

/// A time that is distributed exponentially.
fn exponential(mean: Nanos, random: &mut Pcg64Mcg) -> Nanos {
    let drawn: f64 = random.random();
    Nanos((mean.0 as f64 * -(1.0 - drawn).ln()) as u64)
}

/// An access to the media as it would be without slowness.
pub(super) struct PlannedAccess {
    pub(super) begins: Instant,
    pub(super) ends: Instant,
    pub(super) blocks: Range<Lbn>,
}

#[derive(Clone, Copy, Debug)]
enum AccessDelay {
    Constant(Nanos),
    /// A time that is distributed exponentially, with this mean.
    Exponential(Nanos),
    /// The access takes this many times as long.
    Factor(f64),
}

/// A period, or a series of them.
#[derive(Clone, Debug)]
struct SlowPeriod {
    from: Instant,
    length: Nanos,
    /// From the start of one period to that of the next; none if there is one only.
    every: Option<Nanos>,
    /// Time in which the share grows to its full value.
    grows_over: Nanos,
    share: f64,
    blocks: Range<Lbn>,
    head: Option<u32>,
    loss: AccessDelay,
}

impl SlowPeriod {
    fn new(spec: &SlowPeriodSpec) -> SlowPeriod {
        let loss = match (spec.delay_ms, spec.delay_mean_ms) {
            (Some(ms), _) => AccessDelay::Constant(Nanos::from_ms(ms)),
            (None, Some(ms)) => AccessDelay::Exponential(Nanos::from_ms(ms)),
            (None, None) => AccessDelay::Factor(spec.factor.unwrap_or(1.0)),
        };
        SlowPeriod {
            from: Instant::ZERO + seconds(spec.from_s),
            length: spec.length_s.map_or(Nanos(u64::MAX), seconds),
            every: spec.every_s.map(seconds),
            grows_over: spec.grows_over_s.map_or(Nanos::ZERO, seconds),
            share: spec.share,
            blocks: Lbn(spec.start_lbn.unwrap_or(0))..Lbn(spec.end_lbn.unwrap_or(u64::MAX)),
            head: spec.head,
            loss,
        }
    }

    /// The share of accesses that are late at this time.
    fn share_at(&self, at: Instant) -> f64 {
        if at < self.from {
            return 0.0;
        }
        let since = at - self.from;
        let within = self.every.map_or(since, |every| Nanos(since.0 % every.0));
        if within >= self.length {
            return 0.0;
        }
        if within < self.grows_over {
            self.share * within.0 as f64 / self.grows_over.0 as f64
        } else {
            self.share
        }
    }

    fn includes(&self, access: &PlannedAccess, drive: &Drive) -> bool {
        self.blocks.start < access.blocks.end
            && access.blocks.start < self.blocks.end
            && self.head.is_none_or(|head| drive.geometry.extent_at(access.blocks.start).head == head)
    }

    /// Revolutions that a late access loses. Those of a factor are drawn so that their mean is the factor's.
    fn lost(&self, access: &PlannedAccess, turn: Nanos, random: &mut Pcg64Mcg) -> u64 {
        match self.loss {
            AccessDelay::Constant(delay) => delay.0.div_ceil(turn.0),
            AccessDelay::Exponential(mean) => exponential(mean, random).0.div_ceil(turn.0),
            AccessDelay::Factor(factor) => {
                let turns = (factor - 1.0) * (access.ends - access.begins).0 as f64 / turn.0 as f64;
                turns as u64 + u64::from(random.random_bool(turns.fract()))
            }
        }
    }
}

/// Stalls of one kind, with the next one.
#[derive(Clone, Debug)]
struct Stalls {
    mean_gap: Nanos,
    mean_stall: Nanos,
    ends: Instant,
    next: Range<Instant>,
}

impl Stalls {
    fn new(spec: &StallSpec, random: &mut Pcg64Mcg) -> Stalls {
        let from = Instant::ZERO + seconds(spec.from_s);
        let mut stalls = Stalls {
            mean_gap: seconds(spec.mean_gap_s),
            mean_stall: Nanos::from_ms(spec.mean_stall_ms),
            ends: spec.length_s.map_or(Instant::MAX, |length| from + seconds(length)),
            next: from..from,
        };
        stalls.draw_next(random);
        stalls
    }

    fn draw_next(&mut self, random: &mut Pcg64Mcg) {
        let start = Instant(self.next.end.0.saturating_add(exponential(self.mean_gap, random).0));
        self.next = if start < self.ends {
            start..start + exponential(self.mean_stall, random)
        } else {
            Instant::MAX..Instant::MAX
        };
    }

    /// By how much an access that would begin at `at` is delayed.
    fn delay(&mut self, at: Instant, random: &mut Pcg64Mcg) -> Nanos {
        let mut begins = at;
        while self.next.start <= begins && self.next.start < Instant::MAX {
            begins = begins.max(self.next.end);
            self.draw_next(random);
        }
        begins - at
    }
}

/// The slowness of a drive.
#[derive(Clone, Debug)]
pub(super) struct Slowness {
    /// Seed of the drive's draws.
    seed: u64,
    drawn: Option<Box<Drawn>>,
}

#[derive(Clone, Debug)]
struct Drawn {
    periods: Vec<SlowPeriod>,
    stalls: Vec<Stalls>,
    random: Pcg64Mcg,
}

impl Slowness {
    /// The slowness in a drive file.
    pub(super) fn new(spec: &MechanicsSpec, seed: u64) -> Slowness {
        let mut all = Slowness { seed, drawn: None };
        spec.slow_periods.iter().for_each(|period| all.inject(&Fault::SlowPeriod(*period)));
        spec.slow_patterns.iter().for_each(|pattern| all.inject(&Fault::SlowPattern(*pattern)));
        spec.stalls.iter().for_each(|stalls| all.inject(&Fault::Stalls(*stalls)));
        all
    }

    /// Adds the slowness of a fault, which has been checked; other faults have none.
    pub(super) fn inject(&mut self, fault: &Fault) {
        match fault {
            Fault::SlowPeriod(spec) => self.drawn().periods.push(SlowPeriod::new(spec)),
            Fault::SlowPattern(spec) => {
                self.drawn().periods.extend(spec.periods().iter().map(SlowPeriod::new));
            }
            Fault::Stalls(spec) => {
                let drawn = self.drawn();
                let stalls = Stalls::new(spec, &mut drawn.random);
                drawn.stalls.push(stalls);
            }
            Fault::Medium { .. } | Fault::Slow { .. } | Fault::Dead { .. } => {}
        }
    }

    fn drawn(&mut self) -> &mut Drawn {
        self.drawn.get_or_insert_with(|| {
            let random = Pcg64Mcg::seed_from_u64(self.seed ^ SEED);
            Box::new(Drawn { periods: Vec::new(), stalls: Vec::new(), random })
        })
    }

    /// Whether the drive has no slowness.
    #[inline(always)]
    pub(super) fn is_none(&self) -> bool {
        self.drawn.is_none()
    }

    /// Time that an access loses: to a stall, and to each period in which it is late; each in whole revolutions.
    #[cold]
    pub(super) fn lost(&mut self, access: &PlannedAccess, drive: &Drive) -> Nanos {
        let Some(drawn) = &mut self.drawn else { return Nanos::ZERO };
        let turn = drive.mechanics.spindle().period();
        let mut lost = Nanos::ZERO;
        for stalls in &mut drawn.stalls {
            let delay = stalls.delay(access.begins + lost, &mut drawn.random);
            lost += Nanos(delay.0.div_ceil(turn.0) * turn.0);
        }
        for period in &drawn.periods {
            let share = period.share_at(access.begins);
            if share > 0.0 && period.includes(access, drive) && drawn.random.random_bool(share) {
                lost += Nanos(period.lost(access, turn, &mut drawn.random) * turn.0);
            }
        }
        lost
    }
}
