//! The order of eviction: a doubly linked list, so that moving an entry to an end takes constant time.

const NONE: u32 = u32::MAX;

/// Indices in order. The front is evicted first.
#[derive(Clone, Debug)]
pub struct Recency {
    /// The neighbours of each index, before and after it.
    links: Vec<(u32, u32)>,
    front: u32,
    back: u32,
}

impl Default for Recency {
    fn default() -> Recency {
        Recency::with_capacity(0)
    }
}

impl Recency {
    /// An empty order with room for the indices below `most`, and for further ones when they come.
    pub fn with_capacity(most: usize) -> Recency {
        Recency { links: Vec::with_capacity(most), front: NONE, back: NONE }
    }

    /// Resets the order to the indices below `count` in rising order.
    pub fn reset(&mut self, count: usize) {
        self.links.clear();
        (self.front, self.back) = (NONE, NONE);
        (0..count as u32).for_each(|index| self.push_back(index));
    }

    /// The first index.
    #[inline]
    pub fn front(&self) -> Option<u32> {
        (self.front != NONE).then_some(self.front)
    }

    /// The index after one of the order.
    #[inline]
    pub fn after(&self, index: u32) -> Option<u32> {
        let next = self.links[index as usize].1;
        (next != NONE).then_some(next)
    }

    /// The indices from the front on.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        std::iter::successors(self.front(), |index| self.after(*index))
    }

    /// Appends an index that is not in the order.
    #[inline]
    pub fn push_back(&mut self, index: u32) {
        if index as usize >= self.links.len() {
            self.links.resize(index as usize + 1, (NONE, NONE));
        }
        self.links[index as usize] = (self.back, NONE);
        match self.back {
            NONE => self.front = index,
            back => self.links[back as usize].1 = index,
        }
        self.back = index;
    }

    /// Removes an index of the order.
    #[inline]
    pub fn remove(&mut self, index: u32) {
        let (before, after) = self.links[index as usize];
        match before {
            NONE => self.front = after,
            before => self.links[before as usize].1 = after,
        }
        match after {
            NONE => self.back = before,
            after => self.links[after as usize].0 = before,
        }
    }

    /// Moves an index to the back: it is evicted last.
    #[inline]
    pub fn move_to_back(&mut self, index: u32) {
        if self.back != index {
            self.remove(index);
            self.push_back(index);
        }
    }

    /// Moves an index to the front: it is evicted next.
    #[inline]
    pub fn move_to_front(&mut self, index: u32) {
        if self.front != index {
            self.remove(index);
            self.links[index as usize] = (NONE, self.front);
            self.links[self.front as usize].0 = index;
            self.front = index;
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
            count in 1u32..9,
            moves in prop::collection::vec((any::<bool>(), 0u32..9), 0..40),
        ) {
            let mut recency = Recency::with_capacity(16);
            recency.reset(count as usize);
            let mut expected: Vec<u32> = (0..count).collect();
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
