//! The map of extents: where the persistent cache has the newest data of blocks.

use super::band_extents::{BandExtent, BandExtents, ExtentsIter};
use super::layout::ShingleLayout;
use slab::Slab;
use std::ops::Range;

/// Blocks that lie one after the other in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachedExtent {
    pub(super) lbn: u64,
    pub(super) sectors: u64,
    pub(super) place: u64,
    pub(super) sequence: u64,
}

impl BandExtent {
    /// The extent by the disk's block numbers.
    fn on_disk(&self, band_first: u64) -> CachedExtent {
        let BandExtent { place, sequence, first, sectors } = *self;
        CachedExtent { lbn: band_first + u64::from(first), sectors: u64::from(sectors), place, sequence }
    }
}

/// The map: extents that do not overlap. Each lies in one band.
#[derive(Clone, Debug)]
pub(super) struct ExtentMap {
    /// Bands that have extents.
    bands: Slab<BandExtents>,
    /// By band, one more than its key in `bands`; 0 for a band without extents.
    keys: Vec<u32>,
    len: usize,
    band_sectors: u64,
}

impl ExtentMap {
    pub(super) fn new(layout: &ShingleLayout) -> ExtentMap {
        ExtentMap {
            bands: Slab::new(),
            keys: vec![0; layout.bands() as usize],
            len: 0,
            band_sectors: layout.band_sectors,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of bands with extents in it.
    pub(super) fn bands(&self) -> u64 {
        self.bands.len() as u64
    }

    /// Adds an extent in place of all older data of its blocks; calls `sees` with the data that no longer count.
    pub(super) fn insert(&mut self, extent: CachedExtent, sees: &mut impl FnMut(&CachedExtent)) {
        let CachedExtent { lbn, sectors, place, sequence } = extent;
        let band = lbn / self.band_sectors;
        let band_first = band * self.band_sectors;
        let extent =
            BandExtent { place, sequence, first: (lbn - band_first) as u32, sectors: sectors as u32 };
        let key = &mut self.keys[band as usize];
        if *key == 0 {
            *key = self.bands.insert(BandExtents::new(extent)) as u32 + 1;
            self.len += 1;
            return;
        }
        let extents = &mut self.bands[*key as usize - 1];
        let before = extents.len();
        remove_blocks(extents, extent.first..extent.end(), &mut |removed| sees(&removed.on_disk(band_first)));
        extents.insert(extent);
        self.len = self.len + extents.len() - before;
    }

    /// Removes the extents of a band that are in records up to `up_to`; calls `sees` with each.
    pub(super) fn remove_older(&mut self, band: u64, up_to: u64, sees: &mut impl FnMut(&CachedExtent)) {
        let (band_first, key) = (band * self.band_sectors, &mut self.keys[band as usize]);
        if *key == 0 {
            return;
        }
        let extents = &mut self.bands[*key as usize - 1];
        let before = extents.len();
        extents.retain(|extent| {
            let counts = extent.sequence > up_to;
            if !counts {
                sees(&extent.on_disk(band_first));
            }
            counts
        });
        self.len -= before - extents.len();
        if extents.len() == 0 {
            self.bands.remove(std::mem::take(key) as usize - 1);
        }
    }

    /// Whether some of the blocks `first..end` of one band have their newest data in a record.
    pub(super) fn has_data_of(&self, first: u64, end: u64, sequence: u64) -> bool {
        self.in_band(first / self.band_sectors, first, end).any(|extent| extent.sequence == sequence)
    }

    /// The extents of the blocks `first..end`, in the order of the blocks, cut to them.
    pub(super) fn over(&self, first: u64, end: u64) -> impl Iterator<Item = CachedExtent> + '_ {
        let bands = first / self.band_sectors..end.div_ceil(self.band_sectors);
        bands.flat_map(move |band| self.in_band(band, first, end))
    }

    /// The same within one band.
    pub(super) fn in_band(&self, band: u64, first: u64, end: u64) -> impl Iterator<Item = CachedExtent> + '_ {
        let band_first = band * self.band_sectors;
        let blocks =
            first.saturating_sub(band_first) as u32..(end - band_first).min(self.band_sectors) as u32;
        let near = match self.keys[band as usize] {
            0 => ExtentsIter::none(),
            key => self.bands[key as usize - 1].near(&blocks),
        };
        near.filter_map(move |extent| extent.part(blocks.clone()).map(|part| part.on_disk(band_first)))
    }
}

/// Removes blocks of a band; calls `sees` with the data that no longer count.
fn remove_blocks(extents: &mut BandExtents, blocks: Range<u32>, sees: &mut impl FnMut(&BandExtent)) {
    let mut before = blocks.end;
    while let Some(extent) = extents.last_before(before) {
        let Some(removed) = extent.part(blocks.clone()) else { return };
        before = extent.first;
        extents.remove(extent.first);
        let rests = [extent.part(0..blocks.start), extent.part(blocks.end..u32::MAX)];
        rests.into_iter().flatten().for_each(|rest| extents.insert(rest));
        sees(&removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    fn map_of_two_bands() -> ExtentMap {
        ExtentMap::new(&ShingleLayout {
            sectors: 400,
            band_sectors: 200,
            cache_sectors: 5000,
            header_sectors: 1,
            record_extents_max: 4,
            record_copies: 1,
            records_max: 1000,
            map_entries_max: 100,
            step_sectors: 10,
        })
    }

    #[test]
    fn younger_extent_splits_the_older_one() {
        let mut map = map_of_two_bands();
        let extent = |lbn, sectors, place, sequence| CachedExtent { lbn, sectors, place, sequence };
        map.insert(extent(100, 50, 1000, 1), &mut |_| {});
        let mut gone = Vec::new();
        map.insert(extent(110, 10, 2000, 2), &mut |removed| gone.push(*removed));
        assert_eq!(gone, [extent(110, 10, 1010, 1)]);
        let found: Vec<_> = map.over(105, 125).collect();
        assert_eq!(found, [extent(105, 5, 1005, 1), extent(110, 10, 2000, 2), extent(120, 5, 1020, 1)]);
        gone.clear();
        map.remove_older(0, 1, &mut |removed| gone.push(*removed));
        assert_eq!(gone, [extent(100, 10, 1000, 1), extent(120, 30, 1020, 1)]);
        assert_eq!(map.over(0, 400).collect::<Vec<_>>(), [extent(110, 10, 2000, 2)]);
        assert_eq!((map.len(), map.bands()), (1, 1));
    }

    /// A map, and by block the place and the record that it must have.
    struct MapAndTable {
        map: ExtentMap,
        table: Vec<Option<(u64, u64)>>,
    }

    /// The blocks of an extent, each with its place and its record.
    fn blocks(extent: CachedExtent) -> impl Iterator<Item = (usize, (u64, u64))> {
        (0..extent.sectors)
            .map(move |into| ((extent.lbn + into) as usize, (extent.place + into, extent.sequence)))
    }

    impl MapAndTable {
        /// An extent left the map: the table must have had all its blocks.
        fn expect_gone(table: &mut [Option<(u64, u64)>], gone: Vec<CachedExtent>) {
            for (block, data) in gone.into_iter().flat_map(blocks) {
                assert_eq!(table[block].take(), Some(data));
            }
        }

        fn insert(&mut self, extent: CachedExtent) {
            let mut gone = Vec::new();
            self.map.insert(extent, &mut |older| gone.push(*older));
            Self::expect_gone(&mut self.table, gone);
            for (block, data) in blocks(extent) {
                assert_eq!(self.table[block].replace(data), None);
            }
        }

        fn remove_older(&mut self, band: u64, up_to: u64) {
            let mut gone = Vec::new();
            self.map.remove_older(band, up_to, &mut |older| gone.push(*older));
            Self::expect_gone(&mut self.table, gone);
            let rest = &self.table[band as usize * 200..][..200];
            assert!(rest.iter().flatten().all(|(_, sequence)| *sequence > up_to));
        }

        fn check(&self) {
            let mut found = vec![None; 400];
            for (block, data) in self.map.over(0, 400).flat_map(blocks) {
                assert_eq!(found[block].replace(data), None);
            }
            assert_eq!(found, self.table);
            assert_eq!(self.map.over(0, 400).count(), self.map.len());
        }
    }

    #[test]
    fn map_matches_a_table_of_blocks_with_few_and_many_extents_in_a_band() {
        let mut random = Pcg64Mcg::seed_from_u64(3);
        let mut both = MapAndTable { map: map_of_two_bands(), table: vec![None; 400] };
        let mut most = 0;
        for sequence in 1..5000 {
            let band = random.random_range(0..2);
            if random.random_ratio(1, 300) {
                both.remove_older(band, sequence - random.random_range(1..=sequence.min(100)));
            } else {
                let sectors = random.random_range(1..=3);
                let lbn = band * 200 + random.random_range(0..=200 - sectors);
                both.insert(CachedExtent { lbn, sectors, place: sequence * 1000, sequence });
            }
            both.check();
            most = most.max(both.map.len());
        }
        assert!(most > 150, "the two bands had {most} extents at most");
    }
}
