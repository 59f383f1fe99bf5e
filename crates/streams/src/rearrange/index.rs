//! A hash table of fixed size from block numbers to small values. It cannot be iterated over, so its order has no effect.

/// The value of an empty place.
const EMPTY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct IndexEntry {
    block: u64,
    value: u32,
}

/// A value by block, with linear probing.
#[derive(Clone, Debug)]
pub(super) struct BlockIndex {
    places: Vec<IndexEntry>,
    /// Bits of a hash that are not used.
    shift: u32,
}

impl BlockIndex {
    /// A table for at most `most` blocks. At most half of its places are used, so that probes are short.
    pub(super) fn new(most: usize) -> BlockIndex {
        let places = (2 * most).next_power_of_two().max(2);
        let empty = IndexEntry { block: 0, value: EMPTY };
        BlockIndex { places: vec![empty; places], shift: u64::BITS - places.trailing_zeros() }
    }

    /// Blocks for which it has room.
    #[inline]
    pub(super) fn most(&self) -> usize {
        self.places.len() / 2
    }

    /// The place where the search for a block begins. Fibonacci hashing: neighbours lie far apart.
    #[inline]
    fn start(&self, block: u64) -> usize {
        (block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline]
    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    /// The place that holds a block, or the empty one where it belongs.
    #[inline]
    fn find(&self, block: u64) -> usize {
        let mut place = self.start(block);
        while self.places[place].value != EMPTY && self.places[place].block != block {
            place = self.next(place);
        }
        place
    }

    #[inline]
    pub(super) fn get(&self, block: u64) -> Option<u32> {
        let mut place = self.start(block);
        loop {
            let entry = self.places[place];
            if entry.value == EMPTY || entry.block == block {
                return (entry.value != EMPTY).then_some(entry.value);
            }
            place = self.next(place);
        }
    }

    /// Adds a block, or replaces its value.
    pub(super) fn insert(&mut self, block: u64, value: u32) {
        let place = self.find(block);
        self.places[place] = IndexEntry { block, value };
    }

    /// Removes a block, and closes the gap, so that every other block is still found.
    pub(super) fn remove(&mut self, block: u64) {
        let mut gap = self.find(block);
        let mut place = gap;
        self.places[gap].value = EMPTY;
        loop {
            place = self.next(place);
            let IndexEntry { block, value } = self.places[place];
            if value == EMPTY {
                return;
            }
            // A block may move into the gap if its search begins no later than there.
            let mask = self.places.len() - 1;
            let start = self.start(block);
            if place.wrapping_sub(start) & mask >= place.wrapping_sub(gap) & mask {
                self.places[gap] = IndexEntry { block, value };
                self.places[place].value = EMPTY;
                gap = place;
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.places.iter_mut().for_each(|place| place.value = EMPTY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn index_equals_an_ordered_map(steps in prop::collection::vec((0usize..40, 0u32..9, any::<bool>()), 0..400)) {
            let (mut index, mut map) = (BlockIndex::new(40), BTreeMap::new());
            // Blocks whose searches begin at few places, some of them at the last, so that they displace each other and wrap around.
            let is_crowded = |block: &u64| index.start(*block) < 4 || index.start(*block) > 123;
            let blocks: Vec<u64> = (0..).filter(is_crowded).take(40).collect();
            for (number, value, removes) in steps {
                let block = blocks[number];
                if removes {
                    if map.remove(&block).is_some() {
                        index.remove(block);
                    }
                } else {
                    map.insert(block, value);
                    index.insert(block, value);
                }
                for &block in &blocks {
                    prop_assert_eq!(index.get(block), map.get(&block).copied());
                }
            }
        }
    }
}
