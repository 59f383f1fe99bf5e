//! The cache of a file server.

use super::hot_files::RelocatedFile;
use std::collections::BTreeMap;

/// Blocks in memory; the least recently used one is evicted.
#[derive(Clone, Debug)]
pub(super) struct ServerCache {
    most: usize,
    uses: u64,
    use_of: BTreeMap<u32, u64>,
    block_of: BTreeMap<u64, u32>,
}

impl ServerCache {
    /// An empty cache for at most this number of blocks.
    pub(super) fn new(most: usize) -> ServerCache {
        ServerCache { most, uses: 0, use_of: BTreeMap::new(), block_of: BTreeMap::new() }
    }

    /// Holds a block from now on; returns whether it was held before.
    pub(super) fn hold(&mut self, block: u32) -> bool {
        self.uses += 1;
        let before = self.use_of.insert(block, self.uses);
        before.map(|used| self.block_of.remove(&used));
        self.block_of.insert(self.uses, block);
        if self.use_of.len() > self.most
            && let Some((_, oldest)) = self.block_of.pop_first()
        {
            self.use_of.remove(&oldest);
        }
        before.is_some()
    }

    /// Renumbers moved blocks: the new number takes the place of the old one.
    pub(super) fn rename(&mut self, moved: &[RelocatedFile]) {
        let pairs = || moved.iter().flat_map(|file| file.from.iter().zip(&file.to));
        // A new number can be the old one of another file, so all are removed before any is added.
        let held: Vec<Option<u64>> = pairs().map(|(from, _)| self.use_of.remove(from)).collect();
        for ((_, to), used) in pairs().zip(held) {
            if let Some(used) = used {
                self.use_of.insert(*to, used);
                self.block_of.insert(used, *to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_that_was_used_longest_ago_gives_way() {
        let mut cache = ServerCache::new(2);
        let held: Vec<bool> = [1, 2, 1, 3, 2, 1].into_iter().map(|block| cache.hold(block)).collect();
        assert_eq!(held, [false, false, true, false, false, false]);
    }

    #[test]
    fn data_stay_in_memory_when_files_exchange_their_blocks() {
        let mut cache = ServerCache::new(9);
        cache.hold(1);
        let moved = |file, from, to| RelocatedFile { file, from: vec![from], to: vec![to] };
        cache.rename(&[moved(0, 1, 2), moved(1, 2, 1), moved(2, 5, 7)]);
        assert_eq!([2, 1, 7].map(|block| cache.hold(block)), [true, false, false]);
    }
}
