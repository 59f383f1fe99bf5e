//! The blocks of a file that were accessed already: no block is accessed twice until all were.
//!
//! It keeps a bit per block, and shortens a request before a used block, as fio does. A very large number of blocks of one size is
//! visited in the order of a seeded permutation instead, in constant memory whatever the size of the file.

/// A pseudo-random order of the numbers from 0 up to a count.
///
/// *Source:* a Feistel network with unequal halves, walked until it lands in the range (Black and Rogaway 2002,
/// "Ciphers with arbitrary finite domains").
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    count: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; 6],
}

/// Odd, without a pattern in its bits.
const MIX: u64 = 0xd6e8_feb8_6659_fd93;

impl Permutation {
    pub(super) fn new(count: u64, mut key: u64) -> Permutation {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let low_bits = bits / 2;
        let mask = |bits: u32| if bits == 0 { 0 } else { u64::MAX >> (u64::BITS - bits) };
        let keys = std::array::from_fn(|_| {
            key = splitmix(key);
            key
        });
        Permutation { count, low_bits, low_mask: mask(low_bits), high_mask: mask(bits - low_bits), keys }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The permuted position of `index`, which is below the count.
    #[inline]
    pub(super) fn permuted(&self, index: u64) -> u64 {
        let mut place = index;
        loop {
            place = self.round(place);
            if place < self.count {
                return place;
            }
        }
    }

    #[inline]
    fn round(&self, place: u64) -> u64 {
        let (mut low, mut high) = (place & self.low_mask, place >> self.low_bits);
        for keys in self.keys.chunks_exact(2) {
            high ^= scramble(low ^ keys[0]) & self.high_mask;
            low ^= scramble(high ^ keys[1]) & self.low_mask;
        }
        high << self.low_bits | low
    }
}

#[inline]
fn scramble(value: u64) -> u64 {
    let value = (value ^ value >> 32).wrapping_mul(MIX);
    (value ^ value >> 32).wrapping_mul(MIX) >> 29
}

/// The next of a sequence of well-mixed numbers.
///
/// *Source:* Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators".
pub(super) fn splitmix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// One bit per block. Above each level of words is a level with one bit per word, which is set if the word is full.
#[derive(Clone, Debug)]
pub(super) struct Bitmap {
    count: u64,
    levels: Vec<Vec<u64>>,
}

impl Bitmap {
    /// A map of `count` unused blocks; there is at least one.
    pub(super) fn new(count: u64) -> Bitmap {
        let mut map = Bitmap { count, levels: Vec::new() };
        let mut bits = count;
        loop {
            let words = bits.div_ceil(64);
            map.levels.push(vec![0; words as usize]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        map.clear();
        map
    }

    pub(super) fn clear(&mut self) {
        let mut bits = self.count;
        for level in &mut self.levels {
            level.fill(0);
            // Blocks beyond the end count as used.
            if !bits.is_multiple_of(64) {
                *level.last_mut().expect("a level has a word") = u64::MAX << (bits % 64);
            }
            bits = bits.div_ceil(64);
        }
    }

    #[inline]
    fn is_met(&self, block: u64) -> bool {
        self.levels[0][(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    /// The first unused block from `from` on, or else the first of all; `None` if all were used.
    pub(super) fn next_free(&self, from: u64) -> Option<u64> {
        self.free_from(from.min(self.count - 1)).or_else(|| self.free_from(0))
    }

    fn free_from(&self, from: u64) -> Option<u64> {
        let mut at = from;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get((at / 64) as usize)?;
            let free = !word & u64::MAX << (at % 64);
            if free != 0 {
                let found = at / 64 * 64 + u64::from(free.trailing_zeros());
                return Some(self.descend(found, height));
            }
            at = at / 64 + 1;
        }
        None
    }

    /// The first free block below a bit of a level that is not set.
    fn descend(&self, mut at: u64, height: usize) -> u64 {
        for level in self.levels[..height].iter().rev() {
            at = at * 64 + u64::from((!level[at as usize]).trailing_zeros());
        }
        at
    }

    /// Marks up to `blocks` blocks from `first` on as accessed, up to one that was; returns how many it marked.
    pub(super) fn mark(&mut self, first: u64, blocks: u64) -> u64 {
        let end = first.saturating_add(blocks).min(self.count);
        let mut at = first;
        while at < end && !self.is_met(at) {
            self.set(at);
            at += 1;
        }
        at - first
    }

    fn set(&mut self, block: u64) {
        let mut at = block;
        for level in &mut self.levels {
            let word = &mut level[(at / 64) as usize];
            *word |= 1 << (at % 64);
            if *word != u64::MAX {
                return;
            }
            at /= 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutation_visits_every_number_once() {
        for count in [1, 2, 3, 7, 64, 1000, 4097] {
            let order = Permutation::new(count, 7);
            let mut met: Vec<u64> = (0..count).map(|index| order.permuted(index)).collect();
            met.sort_unstable();
            assert!(met.iter().copied().eq(0..count), "{count}");
        }
    }

    #[test]
    fn permutation_steps_average_one_third_of_range() {
        let order = Permutation::new(1_000_000, 1);
        let steps: Vec<u64> =
            (1..10_000).map(|i| order.permuted(i).abs_diff(order.permuted(i - 1))).collect();
        // Two places at random are a third of the range apart, with a standard deviation of 1/√18 of it.
        let mean = steps.iter().sum::<u64>() as f64 / steps.len() as f64 / 1e6;
        assert!((mean - 1.0 / 3.0).abs() < 4.0 * (1.0 / 18.0f64 / 1e4).sqrt(), "{mean}");
        assert_ne!(Permutation::new(1_000_000, 2).permuted(0), order.permuted(0));
    }

    #[test]
    fn next_free_block_is_found_across_full_words() {
        let count = 64 * 64 * 3 + 5;
        let mut map = Bitmap::new(count);
        assert_eq!(map.mark(0, count), count);
        assert_eq!(map.next_free(0), None);
        map.clear();
        map.mark(10, 9000);
        assert_eq!(map.next_free(10), Some(9010));
        assert_eq!(map.next_free(9), Some(9));
        map.mark(9010, count);
        assert_eq!(map.next_free(9010), Some(0));
        map.mark(0, 9);
        assert_eq!(map.next_free(500), Some(9));
        map.mark(9, 1);
        assert_eq!(map.next_free(500), None);
    }

    #[test]
    fn run_stops_before_visited_block() {
        let mut map = Bitmap::new(100);
        map.mark(20, 1);
        assert_eq!(map.mark(10, 16), 10);
        assert_eq!(map.mark(98, 16), 2);
        assert_eq!(map.mark(10, 1), 0);
    }
}
