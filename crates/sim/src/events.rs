//! When each of several items next has something to do, and which is first.

use headstack_model::Instant;

/// The times of a fixed number of items, as a tree of minima: a change costs the depth of the tree, reading the first costs nothing.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    /// The root at 1, the children of `n` at `2n` and `2n + 1`, the leaves in the second half.
    least: Vec<Instant>,
    /// The root's minimum: it is read far more often than it changes.
    first: Instant,
}

impl Events {
    /// `count` items that have nothing to do.
    pub(crate) fn new(count: usize) -> Events {
        Events { least: vec![Instant::MAX; 2 * count.next_power_of_two()], first: Instant::MAX }
    }

    fn leaves(&self) -> usize {
        self.least.len() / 2
    }

    /// Sets the time of an item; `Instant::MAX` is never.
    pub(crate) fn set(&mut self, index: usize, at: Instant) {
        let mut node = self.leaves() + index;
        self.least[node] = at;
        while node > 1 {
            node /= 2;
            let least = self.least[2 * node].min(self.least[2 * node + 1]);
            if self.least[node] == least {
                return;
            }
            self.least[node] = least;
        }
        self.first = self.least[1];
    }

    #[inline]
    pub(crate) fn first(&self) -> Instant {
        self.first
    }

    /// The smallest time of all items but one.
    #[inline]
    pub(crate) fn first_of_others(&self, index: usize) -> Instant {
        let mut node = self.leaves() + index;
        let mut least = Instant::MAX;
        while node > 1 {
            least = least.min(self.least[node ^ 1]);
            node /= 2;
        }
        least
    }

    /// The item with the smallest time; on a tie the one with the lowest number.
    pub(crate) fn first_index(&self) -> usize {
        let mut node = 1;
        while node < self.leaves() {
            node = if self.least[2 * node] == self.first { 2 * node } else { 2 * node + 1 };
        }
        node - self.leaves()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn earliest_event_matches_a_linear_search(
            count in 1usize..20,
            changes in prop::collection::vec((0usize..20, 0u64..9), 1..60),
        ) {
            let mut events = Events::new(count);
            let mut times = vec![Instant::MAX; count];
            for (index, at) in changes {
                let at = if at == 8 { Instant::MAX } else { Instant(at) };
                events.set(index % count, at);
                times[index % count] = at;
                let least = times.iter().min().expect("there is one");
                prop_assert_eq!(events.first(), *least);
                let first = times.iter().position(|time| time == least).expect("it is there");
                prop_assert_eq!(events.first_index(), first);
                let others = (0..count).filter(|other| *other != index % count).map(|other| times[other]);
                prop_assert_eq!(events.first_of_others(index % count), others.min().unwrap_or(Instant::MAX));
            }
        }
    }
}
