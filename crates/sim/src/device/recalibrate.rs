//! Servo recalibration: the arm is away for a while at times drawn from the seed.

use headstack_model::Nanos;
use headstack_model::spec::Recalibration;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// The times of servo recalibrations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recalibrate {
    next: Nanos,
    interval: Nanos,
    duration: Nanos,
}

impl Recalibrate {
    pub(super) fn new(spec: Recalibration, random: &mut Pcg64Mcg) -> Recalibrate {
        let interval = Nanos::from_ms(spec.interval_s * 1e3);
        let duration = Nanos::from_ms(spec.duration_ms);
        Recalibrate { next: Nanos(random.random_range(0..=interval.0)), interval, duration }
    }

    /// When an access can start that would start at `at`: later when a recalibration is due, which begins once the arm is `free`.
    /// Also returns the time that recalibrations took.
    pub(super) fn delay(&mut self, mut free: Nanos, mut at: Nanos, random: &mut Pcg64Mcg) -> (Nanos, Nanos) {
        let mut away = Nanos::ZERO;
        while self.next <= at {
            free = free.max(self.next) + self.duration;
            away += self.duration;
            at = at.max(free);
            let tenth = (self.interval.0 / 10).max(1);
            self.next += Nanos(self.interval.0 - tenth + random.random_range(0..=2 * tenth));
        }
        (at, away)
    }
}
