//! Periods in which a drive is late: a share of its accesses loses a fixed time.
//!
//! Modelled: accesses of reads that miss the cache, of writes and of destages; each is late with the same probability. The loss is
//! rounded up to whole revolutions, because the sector must come round again. Not modelled: read-ahead, emptying of the media cache,
//! late answers from the cache.
//!
//! The draws have a generator of their own, so that a run does not change before its first period. Its seed is another than that of
//! retries and lost turns (`chance.rs`): with the same seed both would draw the same numbers, and the late accesses would be those
//! that lose turns.

use super::{Fault, FaultError};
use headstack_model::spec::SlowPeriodSpec;
use headstack_model::{Instant, Nanos};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What tells the seed of these draws from that of the drive's other draws.
const SEED: u64 = 0x510_77ed;

/// A period, or a series of them.
#[derive(Clone, Copy, Debug)]
struct SlowPeriod {
    from: Instant,
    length: Nanos,
    /// From the start of one period to that of the next; none if there is one only.
    every: Option<Nanos>,
    share: f64,
    delay: Nanos,
}

impl SlowPeriod {
    fn new(spec: &SlowPeriodSpec) -> SlowPeriod {
        let seconds = |seconds: f64| Nanos::from_ms(seconds * 1e3);
        SlowPeriod {
            from: Instant::ZERO + seconds(spec.from_s),
            length: spec.length_s.map_or(Nanos(u64::MAX), seconds),
            every: spec.every_s.map(seconds),
            share: spec.share,
            delay: Nanos::from_ms(spec.delay_ms),
        }
    }

    fn includes(&self, at: Instant) -> bool {
        if at < self.from {
            return false;
        }
        let since = at - self.from;
        let within = self.every.map_or(since, |every| Nanos(since.0 % every.0));
        within < self.length
    }
}

/// The slow periods of a drive.
#[derive(Clone, Debug, Default)]
pub(super) struct SlowPeriods(Option<Box<Drawn>>);

#[derive(Clone, Debug)]
struct Drawn {
    periods: Vec<SlowPeriod>,
    random: Pcg64Mcg,
}

impl SlowPeriods {
    /// Those of a drive file.
    pub(super) fn new(specs: &[SlowPeriodSpec], seed: u64) -> SlowPeriods {
        let mut all = SlowPeriods(None);
        specs.iter().for_each(|spec| all.add(SlowPeriod::new(spec), seed));
        all
    }

    /// Adds that of a fault; other faults have none.
    ///
    /// *Errors:* a length of 0, a share or a delay outside its range.
    pub(super) fn inject(&mut self, fault: Fault, seed: u64) -> Result<(), FaultError> {
        let Fault::SlowDrive { from, length, share_ppm, delay } = fault else { return Ok(()) };
        if length == Nanos::ZERO {
            return Err(FaultError::Length);
        }
        if !(1..=1_000_000).contains(&share_ppm) {
            return Err(FaultError::Share(share_ppm));
        }
        if delay == Nanos::ZERO || delay > Fault::DELAY_MAX {
            return Err(FaultError::Delay(delay));
        }
        let share = f64::from(share_ppm) / 1e6;
        self.add(SlowPeriod { from, length, every: None, share, delay }, seed);
        Ok(())
    }

    fn add(&mut self, period: SlowPeriod, seed: u64) {
        let drawn = self.0.get_or_insert_with(|| {
            Box::new(Drawn { periods: Vec::new(), random: Pcg64Mcg::seed_from_u64(seed ^ SEED) })
        });
        drawn.periods.push(period);
    }

    /// Whether there are any.
    #[inline(always)]
    pub(super) fn are_none(&self) -> bool {
        self.0.is_none()
    }

    /// Time that an access loses that begins at `at`: the sum over the periods in which it is late, each in whole revolutions.
    #[cold]
    pub(super) fn lost_at(&mut self, at: Instant, turn: Nanos) -> Nanos {
        let Some(drawn) = &mut self.0 else { return Nanos::ZERO };
        let mut lost = Nanos::ZERO;
        for period in drawn.periods.iter().filter(|period| period.includes(at)) {
            if drawn.random.random_bool(period.share) {
                lost += Nanos(period.delay.0.div_ceil(turn.0) * turn.0);
            }
        }
        lost
    }
}
