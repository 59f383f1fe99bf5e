//! The random numbers of a clone.

use rand_pcg::Pcg64Mcg;

use super::file::PlaceDice;
use super::map::splitmix;
use crate::shape::generator;

#[derive(Clone, Debug)]
pub(super) struct Dice {
    pub(super) places: PlaceDice,
    pub(super) mix: Pcg64Mcg,
    pub(super) urgent: Pcg64Mcg,
    pub(super) rate: Pcg64Mcg,
    /// The seed with which each pass begins, if all draw as the first one does.
    repeated: Option<u64>,
}

impl Dice {
    pub(super) fn new(seed: u64, repeats: bool) -> Dice {
        let mut next_seed = seed;
        let mut next = || {
            next_seed = splitmix(next_seed);
            generator(next_seed)
        };
        let places = PlaceDice { place: next(), size: next(), order: next(), file: next() };
        let repeated = repeats.then_some(seed);
        Dice { places, mix: next(), urgent: next(), rate: next(), repeated }
    }

    /// Resets everything that belongs to a pass, if passes repeat.
    pub(super) fn begin_pass(&mut self) {
        if let Some(seed) = self.repeated {
            let fresh = Dice::new(seed, true);
            (self.places, self.mix) = (fresh.places, fresh.mix);
        }
    }
}
