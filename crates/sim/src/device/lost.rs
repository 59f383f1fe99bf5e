//! Revolutions that accesses lose to retries and to the drive's own work.

use headstack_model::spec::LostTurns;
use headstack_model::{DriveSpec, Nanos};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// The distribution of revolutions that an access loses, drawn from the seed.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    /// Of 2⁶⁴ accesses, how many lose at least one revolution, two, …: falling.
    counts: Vec<u64>,
    turn: Nanos,
    /// Whether only commands that found the drive idle lose revolutions.
    pub(super) from_idle_only: bool,
}

impl Lost {
    /// The losses of a drive, if its file has them.
    pub(super) fn of(spec: &DriveSpec, turn: Nanos) -> Option<Box<Lost>> {
        spec.mechanics.lost_turns.as_ref().map(|lost| Box::new(Lost::new(lost, turn)))
    }

    fn new(spec: &LostTurns, turn: Nanos) -> Lost {
        let most = spec.turns_shares.last().map_or(0, |(turns, _)| *turns);
        let count = |turns| (spec.share_of(turns) * 2f64.powi(64)) as u64;
        Lost { counts: (1..=most).map(count).collect(), turn, from_idle_only: spec.from_idle_only }
    }

    /// The time that one access loses.
    pub(super) fn draw(&self, random: &mut Pcg64Mcg) -> Nanos {
        let drawn: u64 = random.random();
        let turns = self.counts.partition_point(|count| drawn < *count);
        Nanos(self.turn.0 * turns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn lost_turns_follow_the_configured_shares() {
        let spec = LostTurns { turns_shares: vec![(1, 0.4), (2, 0.1), (4, 0.025)], from_idle_only: false };
        let lost = Lost::new(&spec, Nanos(10));
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let mut counts = [0u32; 6];
        for _ in 0..100_000 {
            counts[(lost.draw(&mut random).0 / 10) as usize] += 1;
        }
        // Between two and four revolutions the share falls geometrically: half as many lose three as lose two.
        for (count, share) in counts.iter().zip([0.6, 0.3, 0.05, 0.025, 0.025, 0.0]) {
            assert!((f64::from(*count) - share * 1e5).abs() < 700.0, "{counts:?}");
        }
    }
}
