//! Space-saving: bounded counters, the smallest of which gives way to a block without one.
//!
//! With m counters and r references, no counter is more than r / m too large, and every block with more than r / m references has
//! a counter. Counters are sorted by falling count, and for each count the number of larger ones is stored. A counter that is incremented
//! first swaps places with the counter of that rank, and is then the last of the next count. A reference thus takes constant time.
//!
//! *Source:* A. Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of frequent and top-k elements in data streams" (ICDT 2005).
//! The sorted array in place of their linked list of counters, the ranks by count, and ageing, are ours.

use super::analyzer::{CarriedShare, HotBlock, ReferenceAnalyzer, ranked};

/// No counter.
const NONE: u32 = u32::MAX;

/// Counts below this have their number of larger ones stored, in at most 256 KiB; for others it is searched.
const STORED_RANKS: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct BlockCounter {
    block: u64,
    count: u64,
    error: u64,
    /// Its place among all counters by falling count.
    rank: u32,
    /// The next counter in the list of its hash, or `NONE`.
    next: u32,
}

/// Counters with the rule of space-saving.
#[derive(Clone, Debug)]
pub struct SpaceSaving {
    most: usize,
    counters: Vec<BlockCounter>,
    /// Counters by falling count.
    by_rank: Vec<u32>,
    /// For each count up to the largest, or below `stored_ranks`, the number of counters with larger ones.
    larger: Vec<u32>,
    stored_ranks: usize,
    /// The first counter of each hash, or `NONE`. Lists by hash take a quarter of the memory of a table of blocks.
    hashed: Vec<u32>,
    /// Bits of a hash that are not used.
    shift: u32,
}

impl SpaceSaving {
    /// With at most this number of counters, at least 1.
    pub fn new(counters: usize) -> SpaceSaving {
        SpaceSaving::with_stored_ranks(counters, STORED_RANKS)
    }

    fn with_stored_ranks(counters: usize, stored_ranks: usize) -> SpaceSaving {
        let most = counters.max(1);
        let hashes = (2 * most).next_power_of_two();
        SpaceSaving {
            most,
            counters: Vec::with_capacity(most),
            by_rank: Vec::with_capacity(most),
            larger: vec![0],
            stored_ranks,
            hashed: vec![NONE; hashes],
            shift: u64::BITS - hashes.trailing_zeros(),
        }
    }

    /// The largest number of references that a block without a counter may have had.
    pub fn uncounted_at_most(&self) -> u64 {
        match self.by_rank.last() {
            Some(last) if self.counters.len() == self.most => self.counters[*last as usize].count,
            _ => 0,
        }
    }

    /// The list of a block. Fibonacci hashing: neighbours lie far apart.
    #[inline]
    fn hash(&self, block: u64) -> usize {
        (block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// The counter of a block with this hash, or `NONE`.
    #[inline]
    fn counter_of(&self, block: u64, hash: usize) -> u32 {
        let mut number = self.hashed[hash];
        while number != NONE {
            let counter = &self.counters[number as usize];
            if counter.block == block {
                return number;
            }
            number = counter.next;
        }
        NONE
    }

    /// Removes a counter from the list of its block.
    #[inline]
    fn unlink(&mut self, counter: u32) {
        let BlockCounter { block, next, .. } = self.counters[counter as usize];
        let hash = self.hash(block);
        let mut before = self.hashed[hash];
        if before == counter {
            self.hashed[hash] = next;
            return;
        }
        while self.counters[before as usize].next != counter {
            before = self.counters[before as usize].next;
        }
        self.counters[before as usize].next = next;
    }

    /// Assigns a counter to a block, and adds it to the list of the block's hash.
    #[inline]
    fn link(&mut self, counter: u32, block: u64, hash: usize, error: u64) {
        let next = std::mem::replace(&mut self.hashed[hash], counter);
        let counter = &mut self.counters[counter as usize];
        *counter = BlockCounter { block, error, next, ..*counter };
    }

    /// Moves a counter to the first rank of its count, and adds one to it.
    #[inline(always)]
    fn increment(&mut self, number: u32) {
        let BlockCounter { count, rank, .. } = self.counters[number as usize];
        let first = match self.larger.get_mut(count as usize) {
            Some(larger) => {
                *larger += 1;
                *larger - 1
            }
            None => self.search_larger(count),
        };
        if first != rank {
            let other = std::mem::replace(&mut self.by_rank[first as usize], number);
            self.by_rank[rank as usize] = other;
            self.counters[other as usize].rank = rank;
        }
        let counter = &mut self.counters[number as usize];
        (counter.rank, counter.count) = (first, count + 1);
        if first == 0 {
            self.store_largest(count + 1);
        }
    }

    /// The number of counters with counts above `count`.
    #[cold]
    fn search_larger(&self, count: u64) -> u32 {
        self.by_rank.partition_point(|counter| self.counters[*counter as usize].count > count) as u32
    }

    /// Records that `count`, which a counter has, is the largest count.
    fn store_largest(&mut self, count: u64) {
        let stored = (count as usize).saturating_add(1).min(self.stored_ranks);
        if self.larger.len() < stored {
            self.larger.resize(stored, 0);
        }
    }

    /// Counts the first reference to a block that has no counter.
    #[inline(never)]
    fn observe_uncounted(&mut self, block: u64, hash: usize) {
        if self.counters.len() < self.most {
            // No counter has the count 0 before.
            self.push(HotBlock { block, count: 0, error: 0 });
            return self.increment(self.counters.len() as u32 - 1);
        }
        let smallest = self.by_rank[self.most - 1];
        let count = self.counters[smallest as usize].count;
        self.unlink(smallest);
        self.link(smallest, block, hash, count);
        self.increment(smallest);
    }

    /// Adds a counter that is no larger than any other.
    fn push(&mut self, HotBlock { block, count, error }: HotBlock) {
        let number = self.counters.len() as u32;
        self.counters.push(BlockCounter { block, count, error, rank: number, next: NONE });
        self.by_rank.push(number);
        self.link(number, block, self.hash(block), error);
    }

    fn list(&self) -> Vec<HotBlock> {
        let of = |&counter: &u32| {
            let BlockCounter { block, count, error, .. } = self.counters[counter as usize];
            HotBlock { block, count, error }
        };
        self.by_rank.iter().map(of).collect()
    }

    /// Replaces all counters by these, which fall by count.
    fn set(&mut self, list: impl Iterator<Item = HotBlock>) {
        self.counters.clear();
        self.by_rank.clear();
        self.hashed.fill(NONE);
        list.take(self.most).for_each(|hot| self.push(hot));
        self.larger.clear();
        self.store_largest(self.counters.first().map_or(0, |largest| largest.count));
        let mut larger = self.counters.len();
        for (count, stored) in self.larger.iter_mut().enumerate() {
            while larger > 0 && self.counters[larger - 1].count <= count as u64 {
                larger -= 1;
            }
            *stored = larger as u32;
        }
    }
}

impl ReferenceAnalyzer for SpaceSaving {
    #[inline]
    fn observe(&mut self, block: u64) {
        let hash = self.hash(block);
        let counter = self.counter_of(block, hash);
        if counter == NONE {
            return self.observe_uncounted(block, hash);
        }
        self.increment(counter);
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

    /// The rule on a plain list that falls by count: a counter goes before all others of its count, and then counts.
    fn observe_sorted(list: &mut Vec<HotBlock>, most: usize, block: u64) {
        let known = list.iter().position(|hot| hot.block == block);
        if known.is_none() && list.len() < most {
            return list.push(HotBlock { block, count: 1, error: 0 });
        }
        let place = known.unwrap_or(most - 1);
        let count = list[place].count;
        if known.is_none() {
            list[place] = HotBlock { block, count, error: count };
        }
        let first = list.iter().position(|hot| hot.count == count).expect("the counter itself has the count");
        list.swap(place, first);
        list[first].count += 1;
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
            stored_ranks in 0usize..60,
        ) {
            let mut saving = SpaceSaving::with_stored_ranks(counters, stored_ranks);
            let mut exact = ExactCounts::default();
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
        fn ranks_and_counts_equal_those_of_a_sorted_list(
            blocks in blocks(),
            counters in 1usize..20,
            stored_ranks in 0usize..60,
        ) {
            let mut saving = SpaceSaving::with_stored_ranks(counters, stored_ranks);
            let mut sorted = Vec::new();
            for block in blocks {
                saving.observe(block);
                observe_sorted(&mut sorted, counters, block);
                prop_assert_eq!(saving.list(), &sorted[..]);
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
