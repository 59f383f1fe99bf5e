//! The reference stream analyzer: counts references by block, and lists the hot blocks at the end of a period.
//!
//! *Source:* S. Akyürek, K. Salem, "Adaptive block rearrangement" (ACM TOCS 13(2), 1995): a counter is updated, or created, with each
//! reference; counters are bounded, and at least as many as blocks are reserved. Which counter is replaced when none is free is not
//! stated in our source; [`FirstCome`] replaces none, and [`SpaceSaving`](super::SpaceSaving) is ours. [`ExactCounts`] is for comparison.
//!
//! Not modelled: the memory area through which the driver passes block numbers to a process. Every reference is counted at once, and
//! none is lost.

use super::index::BlockIndex;
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
    let key = |hot: &HotBlock| (u64::MAX - hot.count, hot.block);
    if most < list.len() {
        // A list has far more blocks than get a copy.
        list.select_nth_unstable_by_key(most, key);
        list.truncate(most);
    }
    list.sort_unstable_by_key(key);
    list
}

/// Counters in the order in which their blocks came.
#[derive(Clone, Debug)]
struct CounterList {
    counts: Vec<(u64, u64)>,
    index: BlockIndex,
}

impl CounterList {
    /// A list with room for this number of counters; it grows if there are more.
    fn new(counters: usize) -> CounterList {
        CounterList { counts: Vec::with_capacity(counters), index: BlockIndex::new(counters) }
    }

    fn count(&self, block: u64) -> u64 {
        self.index.get(block).map_or(0, |place| self.counts[place as usize].1)
    }

    /// Counts a reference, with a counter of its own for each of the first `most` blocks.
    #[inline]
    fn observe(&mut self, block: u64, most: usize) {
        match self.index.get(block) {
            Some(place) => self.counts[place as usize].1 += 1,
            None if self.counts.len() < most => self.push(block, 1),
            None => {}
        }
    }

    fn push(&mut self, block: u64, count: u64) {
        let place = self.counts.len();
        self.counts.push((block, count));
        if place < self.index.most() {
            return self.index.insert(block, place as u32);
        }
        self.index = BlockIndex::new(2 * self.counts.len());
        for (place, (block, _)) in self.counts.iter().enumerate() {
            self.index.insert(*block, place as u32);
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

    fn set(&mut self, counts: impl Iterator<Item = (u64, u64)>) {
        self.counts.clear();
        self.index.clear();
        counts.for_each(|(block, count)| self.push(block, count));
    }
}

/// A counter for every block that was referenced.
#[derive(Clone, Debug)]
pub struct ExactCounts {
    list: CounterList,
}

impl Default for ExactCounts {
    fn default() -> ExactCounts {
        ExactCounts { list: CounterList::new(0) }
    }
}

impl ExactCounts {
    /// References to a block.
    pub fn count(&self, block: u64) -> u64 {
        self.list.count(block)
    }

    /// References to all blocks.
    pub fn references(&self) -> u64 {
        self.list.counts.iter().map(|(_, count)| count).sum()
    }
}

impl ReferenceAnalyzer for ExactCounts {
    fn observe(&mut self, block: u64) {
        self.list.observe(block, usize::MAX);
    }

    fn hot_list(&self, most: usize) -> Vec<HotBlock> {
        self.list.hot_list(most)
    }

    fn age(&mut self, carried: CarriedShare) {
        self.list.age(carried);
    }

    fn restore(&mut self, list: &[HotBlock]) {
        self.list.set(list.iter().map(|hot| (hot.block, hot.count)));
    }

    fn counters(&self) -> usize {
        self.list.counts.len()
    }
}

/// A bounded number of counters, which belong to the blocks that were referenced first.
#[derive(Clone, Debug)]
pub struct FirstCome {
    most: usize,
    list: CounterList,
}

impl FirstCome {
    /// An analyzer with at most this number of counters.
    pub fn new(counters: usize) -> FirstCome {
        FirstCome { most: counters, list: CounterList::new(counters) }
    }
}

impl ReferenceAnalyzer for FirstCome {
    fn observe(&mut self, block: u64) {
        self.list.observe(block, self.most);
    }

    fn hot_list(&self, most: usize) -> Vec<HotBlock> {
        self.list.hot_list(most)
    }

    fn age(&mut self, carried: CarriedShare) {
        self.list.age(carried);
    }

    fn restore(&mut self, list: &[HotBlock]) {
        self.list.set(list.iter().take(self.most).map(|hot| (hot.block, hot.count)));
    }

    fn counters(&self) -> usize {
        self.list.counts.len()
    }
}
