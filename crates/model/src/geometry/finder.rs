//! Finds the last of many rising keys that is at or below a number.

/// Rising keys with a direct index over them, so that most look-ups touch one or two keys.
#[derive(Clone, Debug)]
pub(super) struct Finder {
    keys: Vec<u64>,
    shift: u32,
    /// For each 2^shift numbers: how many keys lie at or below the first of them.
    index: Vec<u32>,
}

/// Buckets of the index for each key.
const BUCKETS_A_KEY: u64 = 4;

impl Finder {
    /// `keys` rise and are not empty.
    pub(super) fn new(keys: Vec<u64>) -> Finder {
        let last = *keys.last().expect("a finder has keys");
        let wanted = (keys.len() as u64 * BUCKETS_A_KEY).next_power_of_two();
        let mut shift = 0;
        while last >> shift >= wanted {
            shift += 1;
        }
        let buckets = (last >> shift) + 2;
        let index = (0..buckets).map(|b| keys.partition_point(|key| *key <= b << shift) as u32).collect();
        Finder { keys, shift, index }
    }

    /// Position of the last key at or below `number`; `None` if all are above.
    #[inline(always)]
    pub(super) fn find(&self, number: u64) -> Option<usize> {
        let bucket = ((number >> self.shift) as usize).min(self.index.len() - 2);
        let (from, to) = (self.index[bucket] as usize, self.index[bucket + 1] as usize);
        let within = match &self.keys[from..to] {
            [] => 0,
            // The usual case of the rest, without a branch that is as likely as not.
            [key] => usize::from(*key <= number),
            keys => keys.partition_point(|key| *key <= number),
        };
        (from + within).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finder_matches_a_linear_search(
            keys in prop::collection::btree_set(0u64..5000, 1..60),
            scale in 1u64..1_000_000,
            number in 0u64..6000,
        ) {
            let keys: Vec<u64> = keys.into_iter().map(|key| key * scale).collect();
            let finder = Finder::new(keys.clone());
            for number in [number * scale, number, keys[0], keys[keys.len() - 1]] {
                let expected = keys.iter().rposition(|key| *key <= number);
                prop_assert_eq!(finder.find(number), expected);
            }
        }
    }
}
