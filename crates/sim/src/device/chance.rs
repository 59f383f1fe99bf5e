//! Random events of accesses, drawn from the seed: retries, revolutions lost to the drive's own work, and servo recalibrations.

use headstack_model::spec::{LostTurns, Recalibration, Retries};
use headstack_model::{DriveSpec, Instant, Nanos};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

#[derive(Debug)]
pub(super) struct Chance {
    pub(super) random: Pcg64Mcg,
    pub(super) retries: Option<Retries>,
    lost: Option<Box<Lost>>,
    recalibration: Option<Recalibrate>,
}

impl Chance {
    pub(super) fn new(spec: &DriveSpec, seed: u64) -> Chance {
        let mechanics = &spec.mechanics;
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let recalibration = mechanics.recalibration.map(|spec| Recalibrate::new(spec, &mut random));
        let lost = mechanics.lost_turns.as_ref().map(|lost| Box::new(Lost::new(lost)));
        Chance { random, retries: mechanics.retries, lost, recalibration }
    }

    /// Whether any access loses revolutions.
    pub(super) fn loses_turns(&self) -> bool {
        self.retries.is_some() || self.lost.is_some()
    }

    /// Revolutions that an access loses to retries and to the drive's own work. An access that `continues` where the last one ended
    /// is already on its track and loses nothing to the latter.
    pub(super) fn lost_turns(&mut self, found_idle: bool, continues: bool) -> u32 {
        let mut turns = 0;
        if let Some(retries) = self.retries {
            // Each retry follows with the same probability.
            while turns < retries.turns_max && self.random.random_bool(retries.probability) {
                turns += 1;
            }
        }
        match &self.lost {
            Some(lost) if !continues && (found_idle || !lost.from_idle_only) => {
                turns + lost.draw(&mut self.random)
            }
            _ => turns,
        }
    }

    /// When an access planned for `at` can start, and the time that recalibrations took: a recalibration that is due
    /// begins once the arm is `free`.
    pub(super) fn delay(&mut self, free: Instant, at: Instant) -> (Instant, Nanos) {
        match &mut self.recalibration {
            Some(recalibrate) => recalibrate.delay(free, at, &mut self.random),
            None => (at, Nanos::ZERO),
        }
    }
}

/// The distribution of revolutions that an access loses to the drive's own work.
#[derive(Clone, Debug)]
struct Lost {
    /// How many of 2⁶⁴ accesses lose at least one revolution, at least two, and so on: a falling list.
    counts: Vec<u64>,
    /// Whether only commands that found the drive idle lose revolutions.
    from_idle_only: bool,
}

impl Lost {
    fn new(spec: &LostTurns) -> Lost {
        let most = spec.turns_shares.last().map_or(0, |(turns, _)| *turns);
        let count = |turns| (spec.share_of(turns) * 2f64.powi(64)) as u64;
        Lost { counts: (1..=most).map(count).collect(), from_idle_only: spec.from_idle_only }
    }

    fn draw(&self, random: &mut Pcg64Mcg) -> u32 {
        let drawn: u64 = random.random();
        self.counts.partition_point(|count| drawn < *count) as u32
    }
}

/// The times of servo recalibrations.
#[derive(Clone, Copy, Debug)]
struct Recalibrate {
    next: Instant,
    interval: Nanos,
    duration: Nanos,
}

impl Recalibrate {
    fn new(spec: Recalibration, random: &mut Pcg64Mcg) -> Recalibrate {
        let interval = Nanos::from_ms(spec.interval_s * 1e3);
        let duration = Nanos::from_ms(spec.duration_ms);
        Recalibrate { next: Instant(random.random_range(0..=interval.0)), interval, duration }
    }

    fn delay(&mut self, mut free: Instant, mut at: Instant, random: &mut Pcg64Mcg) -> (Instant, Nanos) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_turns_follow_the_configured_shares() {
        let spec = LostTurns { turns_shares: vec![(1, 0.4), (2, 0.1), (4, 0.025)], from_idle_only: false };
        let lost = Lost::new(&spec);
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let mut counts = [0u32; 6];
        for _ in 0..100_000 {
            counts[lost.draw(&mut random) as usize] += 1;
        }
        // Between two and four revolutions the share falls geometrically: half as many lose three as lose two.
        for (count, share) in counts.iter().zip([0.6, 0.3, 0.05, 0.025, 0.025, 0.0]) {
            assert!((f64::from(*count) - share * 1e5).abs() < 700.0, "{counts:?}");
        }
    }
}
