//! Entries in rising order of a key. A vector, because queues are short and moving its tail costs less than a tree.

/// Entries sorted by a key (a block number, or a serial number); of equal keys the lower entry comes first.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorted {
    items: Vec<(u64, u32)>,
}

impl Sorted {
    pub(super) fn insert(&mut self, key: u64, id: u32) {
        let at = self.items.partition_point(|item| *item < (key, id));
        self.items.insert(at, (key, id));
    }

    /// Removes an entry. Panics if it is missing.
    pub(super) fn remove(&mut self, key: u64, id: u32) {
        let at = self.items.binary_search(&(key, id)).expect("what is taken out was put in under that key");
        self.items.remove(at);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn first(&self) -> Option<u32> {
        self.items.first().map(|item| item.1)
    }

    pub(super) fn at_or_after(&self, key: u64) -> Option<u32> {
        let at = self.items.partition_point(|item| item.0 < key);
        self.items.get(at).map(|item| item.1)
    }

    pub(super) fn before(&self, key: u64) -> Option<u32> {
        let at = self.items.partition_point(|item| item.0 < key);
        at.checked_sub(1).map(|at| self.items[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_list_finds_neighbours_on_both_sides() {
        let mut sorted = Sorted::default();
        for (key, id) in [(30, 3), (10, 1), (20, 2), (20, 5)] {
            sorted.insert(key, id);
        }
        assert_eq!(sorted.first(), Some(1));
        assert_eq!(
            (sorted.at_or_after(20), sorted.at_or_after(21), sorted.at_or_after(31)),
            (Some(2), Some(3), None)
        );
        assert_eq!((sorted.before(10), sorted.before(11), sorted.before(99)), (None, Some(1), Some(3)));
        sorted.remove(20, 2);
        assert_eq!(sorted.at_or_after(20), Some(5));
    }
}
