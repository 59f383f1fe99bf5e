//! Metadata in memory: blocks that were read or created stay, and changed ones are written at the first interval after a certain age.

use headstack_model::{Instant, Nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Interval of the search for changed blocks, and the age at which one is written. *Source:* Linux 2.2, bdflush (`interval`, `age_super`);
/// the study has 5 s as the lower bound.
const INTERVAL: Nanos = Nanos::from_secs(5);
const AGE: Nanos = Nanos::from_secs(5);

#[derive(Clone, Debug, Default)]
pub(super) struct MetadataBuffers {
    held: BTreeSet<u32>,
    changed: BTreeMap<u32, Instant>,
    last: Instant,
}

impl MetadataBuffers {
    /// Holds a block; returns whether it was not in memory before.
    pub(super) fn hold(&mut self, block: u32) -> bool {
        self.held.insert(block)
    }

    pub(super) fn change(&mut self, now: Instant, block: u32) {
        self.changed.entry(block).or_insert(now);
    }

    /// Drops a block that holds no metadata any more.
    pub(super) fn forget(&mut self, block: u32) {
        self.held.remove(&block);
        self.changed.remove(&block);
    }

    /// When changed blocks are next searched for; never if none is changed.
    pub(super) fn next_search(&self) -> Instant {
        if self.changed.is_empty() {
            Instant::MAX
        } else {
            Instant((self.last.0 / INTERVAL.0 + 1) * INTERVAL.0)
        }
    }

    /// The changed blocks that are old enough, as runs of adjacent ones.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Range<u32>> {
        self.last = now;
        let is_due = |changed: Instant| changed + AGE <= now;
        let mut runs: Vec<Range<u32>> = Vec::new();
        for (block, _) in self.changed.iter().filter(|(_, changed)| is_due(**changed)) {
            match runs.last_mut() {
                Some(run) if run.end == *block => run.end += 1,
                _ => runs.push(*block..block + 1),
            }
        }
        self.changed.retain(|_, changed| !is_due(*changed));
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_blocks_are_written_five_to_ten_seconds_later_with_their_neighbours() {
        let mut buffers = MetadataBuffers::default();
        assert_eq!(buffers.next_search(), Instant::MAX);
        [7, 9, 8].into_iter().for_each(|block| buffers.change(Instant::from_secs(1), block));
        buffers.change(Instant::from_secs(4), 7);
        assert_eq!(buffers.next_search(), Instant::from_secs(5));
        assert_eq!(buffers.due(Instant::from_secs(5)), []);
        buffers.change(Instant::from_secs(6), 20);
        assert_eq!(buffers.next_search(), Instant::from_secs(10));
        let due = |buffers: &mut MetadataBuffers, second| -> Vec<(u32, u32)> {
            let runs = buffers.due(Instant::from_secs(second)).into_iter();
            runs.map(|run| (run.start, run.end)).collect()
        };
        assert_eq!(due(&mut buffers, 10), [(7, 10)]);
        assert_eq!(due(&mut buffers, 15), [(20, 21)]);
        assert_eq!(buffers.next_search(), Instant::MAX);
    }
}
