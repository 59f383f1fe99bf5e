//! The map of extents: where the persistent cache has the newest data of blocks.

use std::collections::BTreeMap;

/// Blocks that lie one after the other in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachedExtent {
    pub(super) lbn: u64,
    pub(super) sectors: u64,
    pub(super) place: u64,
    pub(super) sequence: u64,
}

impl CachedExtent {
    fn end(&self) -> u64 {
        self.lbn + self.sectors
    }

    /// The part of it in `first..end`, if any.
    pub(super) fn part(&self, first: u64, end: u64) -> Option<CachedExtent> {
        let (from, to) = (self.lbn.max(first), self.end().min(end));
        (from < to).then(|| CachedExtent {
            lbn: from,
            sectors: to - from,
            place: self.place + (from - self.lbn),
            ..*self
        })
    }
}

/// The map: extents that do not overlap, by their first block.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtentMap(BTreeMap<u64, CachedExtent>);

impl ExtentMap {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an extent in the place of all older data of its blocks; `sees` gets what no longer counts.
    pub(super) fn insert(&mut self, extent: CachedExtent, sees: &mut impl FnMut(&CachedExtent)) {
        self.remove(extent.lbn, extent.end(), u64::MAX, sees);
        self.0.insert(extent.lbn, extent);
    }

    /// Removes the blocks `first..end` of records up to `up_to`; `sees` gets what no longer counts.
    pub(super) fn remove(&mut self, first: u64, end: u64, up_to: u64, sees: &mut impl FnMut(&CachedExtent)) {
        let mut before = end;
        while let Some((_, extent)) = self.0.range(..before).next_back() {
            let extent = *extent;
            before = extent.lbn;
            let Some(removed) = extent.part(first, end) else { return };
            if extent.sequence > up_to {
                continue;
            }
            self.0.remove(&extent.lbn);
            for rest in [extent.part(0, first), extent.part(end, u64::MAX)].into_iter().flatten() {
                self.0.insert(rest.lbn, rest);
            }
            sees(&removed);
        }
    }

    /// The extents of the blocks `first..end`, in the order of the blocks, cut to them.
    pub(super) fn over(&self, first: u64, end: u64) -> impl Iterator<Item = CachedExtent> + '_ {
        let before = self.0.range(..first).next_back().map(|(_, extent)| *extent);
        let inside = self.0.range(first..end).map(|(_, extent)| *extent);
        before.into_iter().chain(inside).filter_map(move |extent| extent.part(first, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn younger_extent_splits_the_older_one() {
        let mut map = ExtentMap::default();
        let extent = |lbn, sectors, place, sequence| CachedExtent { lbn, sectors, place, sequence };
        map.insert(extent(100, 50, 1000, 1), &mut |_| {});
        let mut gone = Vec::new();
        map.insert(extent(110, 10, 2000, 2), &mut |removed| gone.push(*removed));
        assert_eq!(gone, [extent(110, 10, 1010, 1)]);
        let found: Vec<_> = map.over(105, 125).collect();
        assert_eq!(found, [extent(105, 5, 1005, 1), extent(110, 10, 2000, 2), extent(120, 5, 1020, 1)]);
        map.remove(0, 200, 1, &mut |_| {});
        assert_eq!(map.over(0, 200).collect::<Vec<_>>(), [extent(110, 10, 2000, 2)]);
    }
}
