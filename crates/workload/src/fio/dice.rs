//! The random numbers of a clone.

use rand_pcg::Pcg64Mcg;

use super::file::PlaceDice;
use super::map::splitmix;
use crate::shape::generator;

/// Random numbers, each for one purpose.
#[derive(Clone, Debug)]
pub(super) struct Dice {
    pub(super) places: PlaceDice,
    pub(super) mix: Pcg64Mcg,
    pub(super) urgent: Pcg64Mcg,
    pub(super) rate: Pcg64Mcg,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        let mut seed = seed;
        let mut next = || {
            seed = splitmix(seed);
            generator(seed)
        };
        let places = PlaceDice { place: next(), size: next(), order: next(), file: next() };
        Dice { places, mix: next(), urgent: next(), rate: next() }
    }

    /// Resets everything that belongs to a pass.
    pub(super) fn restart(&mut self, seed: u64) {
        let fresh = Dice::new(seed);
        (self.places, self.mix) = (fresh.places, fresh.mix);
    }
}
