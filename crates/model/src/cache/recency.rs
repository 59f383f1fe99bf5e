//! The order of eviction: a doubly linked list, so that moving an entry to an end takes constant time.

/// No neighbour.
const NONE: u32 = u32::MAX;

/// Indices in order. The front is evicted first.
#[derive(Clone, Debug)]
pub(super) struct Recency {
    before: Vec<u32>,
    after: Vec<u32>,
    front: u32,
    back: u32,
}

impl Recency {
    /// The indices below `count` in rising order, with room for `most` of them.
    pub(super) fn new(count: usize, most: usize) -> Recency {
        let mut recency = Recency {
            before: Vec::with_capacity(most),
            after: Vec::with_capacity(most),
            front: NONE,
            back: NONE,
        };
        recency.resize(count);
        recency
    }

    /// Resets the list to the indices below `count` in rising order.
    pub(super) fn resize(&mut self, count: usize) {
        let count = count as u32;
        self.before.clear();
        self.before.extend((0..count).map(|index| index.wrapping_sub(1)));
        self.after.clear();
        self.after.extend((1..count).chain([NONE]));
        (self.front, self.back) = (0, count - 1);
    }

    /// The indices from the front on.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let at = |index: u32| (index != NONE).then_some(index);
        std::iter::successors(at(self.front), move |index| at(self.after[*index as usize]))
            .map(|i| i as usize)
    }

    /// Moves an index to the back: it is evicted last.
    pub(super) fn move_to_back(&mut self, index: usize) {
        if self.back == index as u32 {
            return;
        }
        self.unlink(index);
        self.before[index] = self.back;
        self.after[index] = NONE;
        self.after[self.back as usize] = index as u32;
        self.back = index as u32;
    }

    /// Moves an index to the front: it is evicted next.
    pub(super) fn move_to_front(&mut self, index: usize) {
        if self.front == index as u32 {
            return;
        }
        self.unlink(index);
        self.before[index] = NONE;
        self.after[index] = self.front;
        self.before[self.front as usize] = index as u32;
        self.front = index as u32;
    }

    /// Unlinks an index, which is not the only one.
    fn unlink(&mut self, index: usize) {
        let (before, after) = (self.before[index], self.after[index]);
        match before {
            NONE => self.front = after,
            before => self.after[before as usize] = after,
        }
        match after {
            NONE => self.back = before,
            after => self.before[after as usize] = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn recency_list_matches_a_vector(
            count in 1usize..9,
            moves in prop::collection::vec((any::<bool>(), 0usize..9), 0..40),
        ) {
            let mut recency = Recency::new(count, 16);
            let mut expected: Vec<usize> = (0..count).collect();
            for (back, index) in moves {
                let index = index % count;
                expected.retain(|other| *other != index);
                if back {
                    recency.move_to_back(index);
                    expected.push(index);
                } else {
                    recency.move_to_front(index);
                    expected.insert(0, index);
                }
                prop_assert_eq!(recency.iter().collect::<Vec<_>>(), expected.clone());
            }
        }
    }
}
