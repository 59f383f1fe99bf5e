//! A forecast of the references to blocks, and the copies that it makes worth their cost.
//!
//! Each block has a score: its references per period, averaged with weights that fall from period to period. Several weights are tried at
//! once; the one in force is that whose hottest blocks caught the most references lately, so it follows the drift. A score is not yet a
//! forecast, because the hottest blocks of a period are in part those that were hot by chance. Scores are therefore corrected by what
//! blocks of a similar score actually got in the periods after. The share of its references that the hottest blocks keep from one period to the
//! next says for how many periods a copy stays useful.
//!
//! A block is copied where its references while it stays hot exceed the cost of the copy, given in references, and a copy gives way
//! where the new block exceeds the old one by as much. Without skew nothing is copied, since no block stays hot.
//!
//! *Source:* ours.

use super::analyzer::{CarriedShare, HotBlock};
use std::collections::{BTreeMap, BTreeSet};

/// Scores and forecasts have this many parts of a reference.
const PARTS: u64 = 64;

/// Shares of a score that are carried to the next period, in the order in which ties are decided. *Source:* assumption, from no memory to
/// one of ten periods.
const CARRIED: [f64; 5] = [0.0, 0.3, 0.6, 0.8, 0.9];

/// Share of the evidence that is carried to the next period. *Source:* assumption.
const EVIDENCE_CARRIED: f64 = 0.75;

/// Longest time for which a copy counts, in periods. *Source:* assumption.
const LONGEST: u64 = 20;

/// Scores that are kept, for each block of the region. *Source:* assumption, as many as counters by default.
const SCORES_PER_SLOT: usize = 4;

/// Classes of scores, by powers of two, each of which is corrected separately.
const CLASSES: usize = 24;

/// A block with the references that it is expected to get in the next period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExpectedBlock {
    pub(super) block: u64,
    /// *Units:* parts of a reference.
    pub(super) expected: u64,
}

/// References that scores predicted and those that occurred, both in parts of a reference; older ones count less.
#[derive(Clone, Copy, Debug, Default)]
struct ForecastRecord {
    promised: u64,
    came: u64,
}

impl ForecastRecord {
    fn age(&mut self, carried: CarriedShare) {
        self.promised = carried.of_count(self.promised);
        self.came = carried.of_count(self.came);
    }

    /// Scales a number by the ratio of occurred to predicted references; 0 without evidence.
    fn corrected(self, number: u64) -> u64 {
        let product = u128::from(number) * u128::from(self.came);
        product.checked_div(u128::from(self.promised)).map_or(0, |corrected| corrected as u64)
    }
}

/// Scores with one weight.
#[derive(Clone, Debug)]
struct SmoothedScores {
    carried: CarriedShare,
    scores: BTreeMap<u64, u64>,
    /// References that its hottest blocks caught, aged.
    caught: u64,
    classes: [ForecastRecord; CLASSES],
    /// The hottest blocks of this period and of the one before.
    hottest: [Vec<u64>; 2],
    /// References to the hottest blocks one period later, as predicted, and two periods later, as occurred.
    persistence: ForecastRecord,
}

fn class_of(score: u64) -> usize {
    (score.max(1).ilog2() as usize).min(CLASSES - 1)
}

impl SmoothedScores {
    fn new(ratio: f64) -> SmoothedScores {
        SmoothedScores {
            carried: CarriedShare::from_ratio(ratio),
            scores: BTreeMap::new(),
            caught: 0,
            classes: [ForecastRecord::default(); CLASSES],
            hottest: [Vec::new(), Vec::new()],
            persistence: ForecastRecord::default(),
        }
    }

    /// Compares the scores with the references of the period that has ended.
    fn learn(&mut self, counts: &BTreeMap<u64, u64>) {
        let aged = CarriedShare::from_ratio(EVIDENCE_CARRIED);
        let came = |block: &u64| counts.get(block).map_or(0, |count| count * PARTS);
        let [last, before] = [0, 1].map(|age| self.hottest[age].iter().map(came).sum::<u64>());
        self.caught = aged.of_count(self.caught) + last;
        if !self.hottest[1].is_empty() {
            self.persistence.age(aged);
            self.persistence.promised += last;
            self.persistence.came += before;
        }
        self.classes.iter_mut().for_each(|class| class.age(aged));
        for (block, score) in &self.scores {
            let class = &mut self.classes[class_of(*score)];
            class.promised += score;
            class.came += came(block);
        }
    }

    /// Adds the period's references to the scores, and keeps the `most` highest ones.
    fn add(&mut self, counts: &BTreeMap<u64, u64>, most: usize, slots: usize) {
        self.scores.values_mut().for_each(|score| *score = self.carried.of_count(*score));
        for (block, count) in counts {
            let added = count * PARTS - self.carried.of_count(count * PARTS);
            *self.scores.entry(*block).or_default() += added;
        }
        self.scores.retain(|_, score| *score > 0);
        let ranked = self.ranked();
        for (block, _) in ranked.iter().skip(most) {
            self.scores.remove(block);
        }
        self.hottest.swap(0, 1);
        self.hottest[0] = ranked.iter().take(slots).map(|(block, _)| *block).collect();
    }

    /// Blocks and scores, by falling score and then by rising number.
    fn ranked(&self) -> Vec<(u64, u64)> {
        let mut ranked: Vec<(u64, u64)> = self.scores.iter().map(|(block, score)| (*block, *score)).collect();
        ranked.sort_unstable_by_key(|(block, score)| (u64::MAX - score, *block));
        ranked
    }

    /// Periods for which a copy counts: one for each in which the hottest blocks keep their references, less what they lose.
    fn periods(&self) -> u64 {
        let ForecastRecord { promised, came } = self.persistence;
        let lost = promised.saturating_sub(came);
        promised.checked_div(lost).unwrap_or(if promised > 0 { LONGEST } else { 1 }).clamp(1, LONGEST)
    }
}

/// The forecast, with its records of past periods.
#[derive(Clone, Debug)]
pub(super) struct ReferenceForecast {
    slots: usize,
    smoothed: Vec<SmoothedScores>,
}

impl ReferenceForecast {
    /// A forecast for a region with this number of slots.
    pub(super) fn new(slots: usize) -> ReferenceForecast {
        ReferenceForecast { slots, smoothed: CARRIED.into_iter().map(SmoothedScores::new).collect() }
    }

    /// Ends a period with its counts. Only the references that a counter is certain of are used.
    pub(super) fn end_period(&mut self, counts: &[HotBlock]) {
        let counts = counts.iter().map(|hot| (hot.block, hot.count - hot.error));
        let counts: BTreeMap<u64, u64> = counts.filter(|(_, count)| *count > 0).collect();
        for smoothed in &mut self.smoothed {
            smoothed.learn(&counts);
            smoothed.add(&counts, SCORES_PER_SLOT * self.slots, self.slots);
        }
    }

    /// The scores whose weight caught the most references.
    fn best(&self) -> &SmoothedScores {
        let (first, others) = self.smoothed.split_first().expect("there are weights");
        others.iter().fold(first, |best, other| if other.caught > best.caught { other } else { best })
    }

    /// Blocks with what each is expected to get while it stays hot, by falling score.
    pub(super) fn expected(&self) -> Vec<ExpectedBlock> {
        let best = self.best();
        let periods = best.periods();
        let expected = |(block, score): (u64, u64)| ExpectedBlock {
            block,
            expected: best.classes[class_of(score)].corrected(score) * periods,
        };
        best.ranked().into_iter().map(expected).collect()
    }
}

/// The blocks to copy and the slots for them. Each block must exceed the cost of its copy; they go first into `free` slots, and then in
/// place of the copies that are expected to get the least. `copies` are slots with their blocks and whether they were written; replacing a
/// written one costs twice, because it is written home. *Units:* `cost` in references.
pub(super) fn worthwhile_copies(
    expected: &[ExpectedBlock],
    copies: &[(u32, u64, bool)],
    free: &[u32],
    cost: u64,
) -> Vec<(u64, u32)> {
    let cost = cost.saturating_mul(PARTS);
    let by_block: BTreeMap<u64, u64> = expected.iter().map(|block| (block.block, block.expected)).collect();
    let copied: BTreeSet<u64> = copies.iter().map(|(_, block, _)| *block).collect();
    let mut entering: Vec<&ExpectedBlock> =
        expected.iter().filter(|block| block.expected >= cost && !copied.contains(&block.block)).collect();
    entering.sort_by_key(|block| u64::MAX - block.expected);
    let mut leaving: Vec<(u64, u32, u64)> = copies
        .iter()
        .map(|(slot, block, is_dirty)| {
            let price = if *is_dirty { cost.saturating_mul(2) } else { cost };
            (by_block.get(block).copied().unwrap_or(0).saturating_add(price), *slot, *block)
        })
        .collect();
    leaving.sort_unstable();
    let mut slots =
        free.iter().map(|slot| (0, *slot)).chain(leaving.iter().map(|(least, slot, _)| (*least, *slot)));
    let mut chosen = Vec::new();
    for block in entering {
        match slots.next() {
            Some((least, slot)) if block.expected >= least => chosen.push((block.block, slot)),
            _ => break,
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(u64, u64)]) -> Vec<HotBlock> {
        pairs.iter().map(|&(block, count)| HotBlock { block, count, error: 0 }).collect()
    }

    fn expected_of(forecast: &ReferenceForecast, block: u64) -> u64 {
        forecast
            .expected()
            .iter()
            .find(|found| found.block == block)
            .map_or(0, |found| found.expected / PARTS)
    }

    #[test]
    fn steady_block_is_expected_for_many_periods() {
        let mut forecast = ReferenceForecast::new(2);
        for _ in 0..6 {
            forecast.end_period(&counts(&[(1, 40), (2, 20), (3, 1)]));
        }
        assert_eq!([1, 2].map(|block| expected_of(&forecast, block)), [40 * LONGEST, 20 * LONGEST]);
    }

    #[test]
    fn first_period_expects_nothing() {
        let mut forecast = ReferenceForecast::new(2);
        forecast.end_period(&counts(&[(1, 40)]));
        assert_eq!(expected_of(&forecast, 1), 0);
    }

    #[test]
    fn blocks_that_are_hot_once_are_expected_to_get_nothing() {
        let mut forecast = ReferenceForecast::new(4);
        for period in 0..20 {
            forecast.end_period(&counts(&[(period * 2, 30), (period * 2 + 1, 30)]));
        }
        assert!(forecast.expected().iter().all(|found| found.expected < PARTS), "{:?}", forecast.expected());
    }

    #[test]
    fn block_hot_every_second_period_is_expected_before_it_comes() {
        let mut forecast = ReferenceForecast::new(2);
        for period in 0..40 {
            forecast.end_period(&counts(&[(7 + period % 2, 30)]));
        }
        assert!(expected_of(&forecast, 7) >= 30, "{:?}", forecast.expected());
    }

    #[test]
    fn counts_that_may_be_an_excess_are_not_used() {
        let mut forecast = ReferenceForecast::new(1);
        for _ in 0..4 {
            forecast.end_period(&[HotBlock { block: 3, count: 50, error: 50 }]);
        }
        assert_eq!(forecast.expected(), []);
    }

    #[test]
    fn only_copies_that_pay_are_made() {
        let of = |block, references| ExpectedBlock { block, expected: references * PARTS };
        let expected = [of(1, 100), of(2, 50), of(3, 30), of(4, 9), of(5, 25)];
        let chosen = worthwhile_copies(&expected, &[], &[8, 6, 7, 5], 10);
        assert_eq!(chosen, [(1, 8), (2, 6), (3, 7), (5, 5)], "4 gets less than a copy costs");
        let chosen = worthwhile_copies(&expected[..3], &[(0, 3, true), (1, 1, false)], &[], 15);
        assert_eq!(chosen, [], "2 exceeds 3 by less than a copy and writing home");
        let chosen = worthwhile_copies(&expected[..3], &[(0, 3, false), (1, 1, false)], &[], 15);
        assert_eq!(chosen, [(2, 0)], "it exceeds it by more than a copy");
        let chosen = worthwhile_copies(&expected, &[(0, 3, true), (1, 2, false)], &[], 5);
        assert_eq!(chosen, [(1, 0)], "the one that gets the least, with its price, leaves first");
    }
}
