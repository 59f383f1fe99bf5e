//! The reference stream analyzer: counts references by block, and lists the hot blocks at the end of a period.
//!
//! *Source:* S. Akyürek, K. Salem, "Adaptive block rearrangement" (ACM TOCS 13(2), 1995): a counter is updated, or created, with each
//! reference; counters are bounded, and at least as many as blocks are reserved. Which counter is replaced when none is free is not
//! stated in our source; [`FirstCome`] replaces none, and [`SpaceSaving`](super::SpaceSaving) is ours. [`ExactCounts`] is the yardstick.
//!
//! Not modelled: the memory area through which the driver passes block numbers to a process. Every reference is counted at once, and
//! none is lost.

use super::index::BlockIndex;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// A block with the number of references to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotBlock {
    /// Its number: its first visible sector divided by the sectors of a block.
    pub block: u64,
    /// References, at most [`HotBlock::error`] too many and never too few.
    pub count: u64,
    /// Largest possible excess of the count.
    pub error: u64,
}

/// The part of every count that is carried from one period to the next.
///
/// *Units:* 2⁻¹⁶. Counts are rounded down, so that a bound on a count still holds for the carried one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedShare(u32);

impl CarriedShare {
    /// The share nearest to `ratio`, 0 to 1.
    pub fn from_ratio(ratio: f64) -> CarriedShare {
        CarriedShare((ratio.clamp(0.0, 1.0) * 65_536.0).round() as u32)
    }

    /// The carried part of a count.
    pub fn of_count(self, count: u64) -> u64 {
        ((u128::from(count) * u128::from(self.0)) >> 16) as u64
    }
}

/// Counts the references to blocks.
pub trait ReferenceAnalyzer: Debug + Send {
    /// Counts a reference.
    fn observe(&mut self, block: u64);

    /// The most referenced blocks, at most `most`, by falling count and then by rising number.
    fn hot_list(&self, most: usize) -> Vec<HotBlock>;

    /// Ends a period: only a share of every count remains.
    fn age(&mut self, carried: CarriedShare);

    /// Replaces all counts by those of an earlier [`ReferenceAnalyzer::hot_list`], such as before a restart.
    fn restore(&mut self, list: &[HotBlock]);

    /// Counters in use.
    fn counters(&self) -> usize;
}

/// Sorts a hot list and cuts it to its length.
pub(super) fn ranked(mut list: Vec<HotBlock>, most: usize) -> Vec<HotBlock> {
    list.sort_unstable_by_key(|hot| (u64::MAX - hot.count, hot.block));
    list.truncate(most);
    list
}

/// A counter for every block that was referenced.
#[derive(Clone, Debug, Default)]
pub struct ExactCounts {
    counts: BTreeMap<u64, u64>,
}

impl ExactCounts {
    /// References to a block.
    pub fn count(&self, block: u64) -> u64 {
        self.counts.get(&block).copied().unwrap_or(0)
    }

    /// References to all blocks.
    pub fn references(&self) -> u64 {
        self.counts.values().sum()
    }
}

impl ReferenceAnalyzer for ExactCounts {
    fn observe(&mut self, block: u64) {
        *self.counts.entry(block).or_default() += 1;
    }

    fn hot_list(&self, most: usize) -> Vec<HotBlock> {
        let all = self.counts.iter().map(|(&block, &count)| HotBlock { block, count, error: 0 });
        ranked(all.collect(), most)
    }

    fn age(&mut self, carried: CarriedShare) {
        self.counts.values_mut().for_each(|count| *count = carried.of_count(*count));
        self.counts.retain(|_, count| *count > 0);
    }

    fn restore(&mut self, list: &[HotBlock]) {
        self.counts = list.iter().map(|hot| (hot.block, hot.count)).collect();
    }

    fn counters(&self) -> usize {
        self.counts.len()
    }
}

/// A bounded number of counters, which belong to the blocks that were referenced first.
#[derive(Clone, Debug)]
pub struct FirstCome {
    most: usize,
    counts: Vec<(u64, u64)>,
    index: BlockIndex,
}

impl FirstCome {
    /// With at most this number of counters.
    pub fn new(counters: usize) -> FirstCome {
        FirstCome { most: counters, counts: Vec::with_capacity(counters), index: BlockIndex::new(counters) }
    }

    fn set(&mut self, counts: impl Iterator<Item = (u64, u64)>) {
        self.counts = counts.take(self.most).collect();
        self.index.clear();
        for (place, (block, _)) in self.counts.iter().enumerate() {
            self.index.insert(*block, place as u32);
        }
    }
}

impl ReferenceAnalyzer for FirstCome {
    fn observe(&mut self, block: u64) {
        match self.index.get(block) {
            Some(place) => self.counts[place as usize].1 += 1,
            None if self.counts.len() < self.most => {
                self.index.insert(block, self.counts.len() as u32);
                self.counts.push((block, 1));
            }
            None => {}
        }
    }

    fn hot_list(&self, most: usize) -> Vec<HotBlock> {
        let all = self.counts.iter().map(|&(block, count)| HotBlock { block, count, error: 0 });
        ranked(all.collect(), most)
    }

    fn age(&mut self, carried: CarriedShare) {
        let aged: Vec<(u64, u64)> =
            self.counts.iter().map(|&(block, count)| (block, carried.of_count(count))).collect();
        self.set(aged.into_iter().filter(|(_, count)| *count > 0));
    }

    fn restore(&mut self, list: &[HotBlock]) {
        self.set(list.iter().map(|hot| (hot.block, hot.count)));
    }

    fn counters(&self) -> usize {
        self.counts.len()
    }
}
