//! Space-saving: bounded counters, the smallest of which gives way to a block without one.
//!
//! With m counters and r references, no counter is more than r / m too large, and every block with more than r / m references has
//! a counter. A reference takes constant time: counters are kept by falling count, and those of equal counts form a bucket.
//!
//! *Source:* A. Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of frequent and top-k elements in data streams" (ICDT 2005).
//! The sorted array in place of their linked lists, and ageing, are ours.

use super::analyzer::{CarriedShare, HotBlock, ReferenceAnalyzer, ranked};
use super::index::BlockIndex;
use slab::Slab;

#[derive(Clone, Copy, Debug)]
struct BlockCounter {
    block: u64,
    error: u64,
    /// Its place among all counters by falling count.
    rank: u32,
    /// The bucket, which has the count.
    bucket: u32,
}

/// Counters of equal counts.
#[derive(Clone, Copy, Debug)]
struct CountBucket {
    count: u64,
    /// The rank of its first counter.
    first: u32,
}

/// Counters with the rule of space-saving.
#[derive(Clone, Debug)]
pub struct SpaceSaving {
    most: usize,
    counters: Vec<BlockCounter>,
    /// Counters by falling count.
    by_rank: Vec<u32>,
    buckets: Slab<CountBucket>,
    index: BlockIndex,
}

impl SpaceSaving {
    /// With at most this number of counters, at least 1.
    pub fn new(counters: usize) -> SpaceSaving {
        let most = counters.max(1);
        SpaceSaving {
            most,
            counters: Vec::with_capacity(most),
            by_rank: Vec::with_capacity(most),
            buckets: Slab::with_capacity(most),
            index: BlockIndex::new(most),
        }
    }

    /// The largest number of references that a block without a counter may have had.
    pub fn uncounted_at_most(&self) -> u64 {
        match self.by_rank.last() {
            Some(last) if self.counters.len() == self.most => self.count(*last),
            _ => 0,
        }
    }

    fn count(&self, counter: u32) -> u64 {
        self.buckets[self.counters[counter as usize].bucket as usize].count
    }

    /// Adds one to a counter: it becomes the first of its bucket, and then joins the bucket above or gets one of its own.
    fn increment(&mut self, counter: u32) {
        let BlockCounter { rank, bucket, .. } = self.counters[counter as usize];
        let CountBucket { count, first } = self.buckets[bucket as usize];
        self.swap_ranks(rank, first);
        let bucket_at = |saving: &SpaceSaving, rank: u32| {
            saving.by_rank.get(rank as usize).map(|counter| saving.counters[*counter as usize].bucket)
        };
        let is_alone = bucket_at(self, first + 1) != Some(bucket);
        let above = first.checked_sub(1).and_then(|rank| bucket_at(self, rank));
        let above = above.filter(|above| self.buckets[*above as usize].count == count + 1);
        let joined = match above {
            None if is_alone => {
                self.buckets[bucket as usize].count += 1;
                return;
            }
            None => self.buckets.insert(CountBucket { count: count + 1, first }) as u32,
            Some(above) => above,
        };
        self.counters[counter as usize].bucket = joined;
        if is_alone {
            self.buckets.remove(bucket as usize);
        } else {
            self.buckets[bucket as usize].first += 1;
        }
    }

    fn swap_ranks(&mut self, one: u32, other: u32) {
        if one == other {
            return;
        }
        self.by_rank.swap(one as usize, other as usize);
        for rank in [one, other] {
            self.counters[self.by_rank[rank as usize] as usize].rank = rank;
        }
    }

    /// Adds a counter that is no larger than any other.
    fn push(&mut self, hot: HotBlock) {
        let rank = self.by_rank.len() as u32;
        let last = self.by_rank.last().map(|last| self.counters[*last as usize].bucket);
        let bucket = match last.filter(|last| self.buckets[*last as usize].count == hot.count) {
            Some(bucket) => bucket,
            None => self.buckets.insert(CountBucket { count: hot.count, first: rank }) as u32,
        };
        let counter = self.counters.len() as u32;
        self.counters.push(BlockCounter { block: hot.block, error: hot.error, rank, bucket });
        self.by_rank.push(counter);
        self.index.insert(hot.block, counter);
    }

    fn list(&self) -> Vec<HotBlock> {
        let of = |&counter: &u32| {
            let BlockCounter { block, error, .. } = self.counters[counter as usize];
            HotBlock { block, count: self.count(counter), error }
        };
        self.by_rank.iter().map(of).collect()
    }

    /// Replaces all counters by these, which fall by count.
    fn set(&mut self, list: impl Iterator<Item = HotBlock>) {
        self.counters.clear();
        self.by_rank.clear();
        self.buckets.clear();
        self.index.clear();
        list.take(self.most).for_each(|hot| self.push(hot));
    }
}

impl ReferenceAnalyzer for SpaceSaving {
    #[inline]
    fn observe(&mut self, block: u64) {
        if let Some(counter) = self.index.get(block) {
            return self.increment(counter);
        }
        if self.counters.len() < self.most {
            return self.push(HotBlock { block, count: 1, error: 0 });
        }
        let smallest = self.by_rank[self.most - 1];
        let count = self.count(smallest);
        self.index.remove(self.counters[smallest as usize].block);
        self.index.insert(block, smallest);
        let counter = &mut self.counters[smallest as usize];
        (counter.block, counter.error) = (block, count);
        self.increment(smallest);
    }

    fn hot_list(&self, most: usize) -> Vec<HotBlock> {
        ranked(self.list(), most)
    }

    fn age(&mut self, carried: CarriedShare) {
        let aged = self.list().into_iter().map(|HotBlock { block, count, error }| {
            let (least, count) = (carried.of_count(count - error), carried.of_count(count));
            HotBlock { block, count, error: count - least }
        });
        let aged: Vec<HotBlock> = aged.filter(|hot| hot.count > 0).collect();
        self.set(aged.into_iter());
    }

    fn restore(&mut self, list: &[HotBlock]) {
        self.set(ranked(list.to_vec(), self.most).into_iter());
    }

    fn counters(&self) -> usize {
        self.counters.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::analyzer::ExactCounts;
    use super::*;
    use proptest::prelude::*;

    /// Blocks of which a few are referenced often.
    fn blocks() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(prop_oneof![0u64..4, 0u64..12, 0u64..60], 0..500)
    }

    /// The bounds of every counter, and of every block without one, against exact counts.
    fn check_bounds(saving: &SpaceSaving, exact: &ExactCounts, exact_list: &[HotBlock]) {
        let list = saving.hot_list(usize::MAX);
        for hot in &list {
            let count = exact.count(hot.block);
            assert!(count <= hot.count && hot.count - hot.error <= count, "{hot:?} of {count}");
        }
        for hot in exact_list.iter().filter(|hot| list.iter().all(|counted| counted.block != hot.block)) {
            assert!(hot.count <= saving.uncounted_at_most(), "{hot:?} has no counter");
        }
        let falling = saving.list();
        assert!(falling.windows(2).all(|pair| pair[0].count >= pair[1].count), "{falling:?}");
    }

    proptest! {
        #[test]
        fn no_counter_errs_by_more_than_its_bound(blocks in blocks(), counters in 1usize..20) {
            let (mut saving, mut exact) = (SpaceSaving::new(counters), ExactCounts::default());
            for (number, block) in blocks.iter().enumerate() {
                saving.observe(*block);
                exact.observe(*block);
                let bound = (number as u64 + 1) / counters as u64;
                prop_assert!(saving.uncounted_at_most() <= bound);
                prop_assert!(saving.list().iter().all(|hot| hot.error <= bound));
            }
            check_bounds(&saving, &exact, &exact.hot_list(usize::MAX));
        }

        #[test]
        fn bounds_hold_for_aged_counts(
            periods in prop::collection::vec(blocks(), 1..5),
            counters in 1usize..20,
            ratio in 0.0f64..1.0,
        ) {
            let (mut saving, mut exact) = (SpaceSaving::new(counters), ExactCounts::default());
            for blocks in periods {
                for block in blocks {
                    saving.observe(block);
                    exact.observe(block);
                }
                check_bounds(&saving, &exact, &exact.hot_list(usize::MAX));
                saving.age(CarriedShare::from_ratio(ratio));
                exact.age(CarriedShare::from_ratio(ratio));
                check_bounds(&saving, &exact, &exact.hot_list(usize::MAX));
            }
        }

        #[test]
        fn as_many_counters_as_blocks_count_exactly(blocks in blocks()) {
            let (mut saving, mut exact) = (SpaceSaving::new(60), ExactCounts::default());
            for block in blocks {
                saving.observe(block);
                exact.observe(block);
            }
            prop_assert_eq!(saving.hot_list(60), exact.hot_list(60));
        }
    }
}
