//! Arrangement by simulated annealing, for references that depend on the one before.
//!
//! The organ pipe is the best arrangement where references are independent. Where a reference says which item comes next, items that
//! follow each other should be neighbours. References are a Markov chain here: [`TransitionCounts`] counts how often one item follows
//! another, which gives the mean seek of each arrangement. [`TransitionCounts::anneal`] swaps items at random. It keeps a swap that
//! shortens seeks, and one that lengthens them with a probability that falls from swap to swap.
//!
//! Items are cylinders, or other units of equal size. *Not modelled:* the time of the moves.
//!
//! *Source:* R. Geist, D. Suggs, R. Reynolds and others, "Disk performance enhancement through Markov-based cylinder remapping" (ACM
//! Southeast Regional Conference 1992): the chain and the annealing. The cooling, and the organ pipe as the start, are ours.

use super::placement::organ_pipe;
use headstack_model::Nanos;
use rand::{Rng, RngExt};
use std::collections::BTreeMap;

/// Swaps tried for each item. *Source:* assumption.
const SWAPS_PER_ITEM: u64 = 2000;

/// The last temperature as a part of the first. *Source:* assumption.
const COOLED: f64 = 1e-4;

/// How often each item was referenced after each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransitionCounts {
    items: u32,
    /// References to the second item directly after the first.
    counts: BTreeMap<(u32, u32), u64>,
    last: Option<u32>,
}

impl TransitionCounts {
    /// Counts for this number of items, all of them zero.
    pub fn new(items: u32) -> TransitionCounts {
        TransitionCounts { items, counts: BTreeMap::new(), last: None }
    }

    /// Counts a reference to an item.
    ///
    /// Panics if there is no such item.
    pub fn observe(&mut self, item: u32) {
        if let Some(last) = self.last.replace(item) {
            self.add(last, item, 1);
        }
    }

    /// Counts `count` references to `item`, each directly after one to `before`.
    ///
    /// Panics if there is no such item.
    pub fn add(&mut self, before: u32, item: u32, count: u64) {
        assert!(before.max(item) < self.items, "{before} and {item} are items of {}", self.items);
        *self.counts.entry((before, item)).or_default() += count;
    }

    /// How often the second item of each pair was referenced after the first; pairs that never occurred are absent.
    pub fn pairs(&self) -> impl Iterator<Item = ((u32, u32), u64)> {
        self.counts.iter().map(|(pair, count)| (*pair, *count))
    }

    /// Sum of all seeks, with `places[item]` as the place of each item and `seeks` as the time of a seek by its distance.
    ///
    /// Panics if an item has no place or a distance no time.
    pub fn seek_sum(&self, places: &[u32], seeks: &[Nanos]) -> Nanos {
        let seek = |((from, to), count): ((u32, u32), u64)| {
            Nanos(count * seeks[places[from as usize].abs_diff(places[to as usize]) as usize].0)
        };
        self.pairs().map(seek).fold(Nanos::ZERO, |sum, seek| sum + seek)
    }

    /// The place of each item by the organ pipe: the most referenced item in the middle, of equal ones the first.
    pub fn organ_pipe(&self) -> Vec<u32> {
        let mut references = vec![0; self.items as usize];
        self.pairs().for_each(|((_, item), count)| references[item as usize] += count);
        let mut ranked: Vec<usize> = (0..references.len()).collect();
        ranked.sort_by_key(|item| u64::MAX - references[*item]);
        let mut places = vec![0; references.len()];
        ranked
            .iter()
            .zip(organ_pipe(references.len()))
            .for_each(|(item, place)| places[*item] = place as u32);
        places
    }

    /// The place of each item after annealing that starts at the organ pipe: the best arrangement met. `seeks` has the time of a seek by
    /// its distance, one for each item.
    ///
    /// Panics if `seeks` has fewer times than there are items.
    pub fn anneal(&self, seeks: &[Nanos], random: &mut impl Rng) -> Vec<u32> {
        assert!(seeks.len() >= self.items as usize, "each distance has a time");
        let mut state = AnnealedPlaces { places: self.organ_pipe(), partners: self.partners(), seeks };
        if self.items < 2 {
            return state.places;
        }
        let (mut best, mut added, mut least) = (state.places.clone(), 0, 0);
        // At first, a swap that adds the mean of an item's seeks is kept with 1 / e.
        let first = self.seek_sum(&state.places, seeks).0 as f64 / f64::from(self.items);
        let swaps = SWAPS_PER_ITEM * u64::from(self.items);
        let cooling = libm::pow(COOLED, 1.0 / swaps as f64);
        let mut temperature = first.max(1.0);
        for _ in 0..swaps {
            let one = random.random_range(0..self.items);
            let other = (one + random.random_range(1..self.items)) % self.items;
            let more = state.added_by_swap(one, other);
            if more <= 0 || random.random::<f64>() < libm::exp(-more as f64 / temperature) {
                state.places.swap(one as usize, other as usize);
                added += more;
            }
            if added < least {
                least = added;
                best.clone_from(&state.places);
            }
            temperature *= cooling;
        }
        best
    }

    /// The other items that each item follows or precedes, with how often.
    fn partners(&self) -> Vec<Vec<(u32, u64)>> {
        let mut pairs: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for ((one, other), count) in self.pairs().filter(|((one, other), _)| one != other) {
            *pairs.entry((one.min(other), one.max(other))).or_default() += count;
        }
        let mut partners = vec![Vec::new(); self.items as usize];
        for ((one, other), count) in pairs {
            partners[one as usize].push((other, count));
            partners[other as usize].push((one, count));
        }
        partners
    }
}

/// The places of items while they are annealed.
struct AnnealedPlaces<'a> {
    places: Vec<u32>,
    partners: Vec<Vec<(u32, u64)>>,
    seeks: &'a [Nanos],
}

impl AnnealedPlaces<'_> {
    /// What a swap of two items adds to the sum of all seeks, in nanoseconds.
    fn added_by_swap(&self, one: u32, other: u32) -> i64 {
        let places = (self.places[one as usize], self.places[other as usize]);
        self.added_by_move(one, other, places) + self.added_by_move(other, one, (places.1, places.0))
    }

    /// What the move of an item from one place to the other adds to its seeks from and to all items but `excluded`, which takes its place.
    fn added_by_move(&self, item: u32, excluded: u32, (from, to): (u32, u32)) -> i64 {
        let seek = |place: u32, partner: u32| self.seeks[place.abs_diff(partner) as usize].0 as i64;
        let added = |(partner, count): &(u32, u64)| {
            let place = self.places[*partner as usize];
            *count as i64 * (seek(to, place) - seek(from, place))
        };
        self.partners[item as usize].iter().filter(|(partner, _)| *partner != excluded).map(added).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    /// Seeks that grow with the root of the distance, as those of an arm that accelerates.
    fn seeks(items: u32) -> Vec<Nanos> {
        (0..items).map(|distance| Nanos(libm::sqrt(f64::from(distance) * 1e12) as u64)).collect()
    }

    fn annealed(counts: &TransitionCounts, seed: u64) -> Vec<u32> {
        counts.anneal(&seeks(counts.items), &mut Pcg64Mcg::seed_from_u64(seed))
    }

    /// Seven references of ten are to a partner of the item before, drawn from a seed.
    fn paired(items: u32, seed: u64) -> TransitionCounts {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let partners: Vec<u32> = (0..items).map(|_| random.random_range(0..items)).collect();
        let (mut counts, mut last) = (TransitionCounts::new(items), 0);
        for _ in 0..4000 {
            let follows = random.random_range(0..10) < 7;
            last = if follows { partners[last as usize] } else { random.random_range(0..items) };
            counts.observe(last);
        }
        counts
    }

    /// The least sum of all arrangements of the items from `fixed` on.
    fn brute_force(counts: &TransitionCounts, places: &mut Vec<u32>, fixed: usize) -> Nanos {
        if fixed == places.len() {
            return counts.seek_sum(places, &seeks(counts.items));
        }
        let mut least = Nanos::MAX;
        for chosen in fixed..places.len() {
            places.swap(fixed, chosen);
            least = least.min(brute_force(counts, places, fixed + 1));
            places.swap(fixed, chosen);
        }
        least
    }

    #[test]
    fn annealing_equals_brute_force_on_up_to_seven_items() {
        for (items, seed) in (2..=7).chain([7; 4]).zip(0..) {
            let counts = paired(items, seed);
            let best = brute_force(&counts, &mut (0..items).collect(), 0);
            let places = annealed(&counts, 1);
            assert_eq!(
                counts.seek_sum(&places, &seeks(items)),
                best,
                "{items} items, seed {seed}: {places:?}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn organ_pipe_is_not_improved_where_references_are_independent(
            references in prop::collection::vec(0u64..40, 2..14),
        ) {
            let mut counts = TransitionCounts::new(references.len() as u32);
            for (one, before) in (0..).zip(&references) {
                (0..).zip(&references).for_each(|(item, count)| counts.add(one, item, before * count));
            }
            let seeks = seeks(counts.items);
            let by_annealing = counts.seek_sum(&annealed(&counts, 1), &seeks);
            prop_assert_eq!(by_annealing, counts.seek_sum(&counts.organ_pipe(), &seeks));
        }
    }

    #[test]
    fn annealed_places_are_a_permutation_with_shorter_seeks_than_the_organ_pipe() {
        for seed in 0..3 {
            let (counts, seeks) = (paired(40, seed), seeks(40));
            let mut places = annealed(&counts, seed);
            let pipe = counts.seek_sum(&counts.organ_pipe(), &seeks);
            assert!(counts.seek_sum(&places, &seeks) < pipe, "seed {seed}");
            places.sort_unstable();
            assert_eq!(places, (0..40).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn items_that_follow_each_other_become_neighbours() {
        let mut counts = TransitionCounts::new(8);
        // Items 0 and 7 alternate; the others are referenced in turn now and then.
        for round in 0..500 {
            [0, 7, 0, 7, 1 + round % 6].into_iter().for_each(|item| counts.observe(item));
        }
        let places = annealed(&counts, 3);
        assert_eq!(places[0].abs_diff(places[7]), 1, "{places:?}");
    }

    #[test]
    fn same_seed_gives_the_same_arrangement() {
        let counts = paired(20, 5);
        assert_eq!(annealed(&counts, 9), annealed(&counts, 9));
    }

    #[test]
    fn one_item_and_none_have_one_arrangement() {
        assert_eq!(annealed(&TransitionCounts::new(1), 1), [0]);
        assert_eq!(annealed(&TransitionCounts::new(0), 1), [0u32; 0]);
    }
}
