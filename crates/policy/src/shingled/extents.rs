//! The map of extents: where the persistent cache has the newest data of blocks.

use super::layout::ShingleLayout;
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

/// An extent without its first block: small, because a full map is larger than a processor's caches.
#[derive(Clone, Copy, Debug)]
struct MapEntry {
    place: u64,
    sequence: u64,
    sectors: u32,
}

impl MapEntry {
    fn extent(&self, lbn: u64) -> CachedExtent {
        let MapEntry { place, sequence, sectors } = *self;
        CachedExtent { lbn, sectors: u64::from(sectors), place, sequence }
    }
}

impl From<CachedExtent> for MapEntry {
    fn from(extent: CachedExtent) -> MapEntry {
        let CachedExtent { place, sequence, sectors, .. } = extent;
        MapEntry { place, sequence, sectors: sectors as u32 }
    }
}

/// The map: extents that do not overlap, by their first block. Each lies in one band.
#[derive(Clone, Debug)]
pub(super) struct ExtentMap {
    extents: BTreeMap<u64, MapEntry>,
    /// By band, how many it has.
    in_band: Vec<u32>,
    /// Bands of which it has any.
    bands: u64,
    band_sectors: u64,
}

impl ExtentMap {
    pub(super) fn new(layout: &ShingleLayout) -> ExtentMap {
        ExtentMap {
            extents: BTreeMap::new(),
            in_band: vec![0; layout.bands() as usize],
            bands: 0,
            band_sectors: layout.band_sectors,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.extents.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    fn band_of(&self, lbn: u64) -> usize {
        (lbn / self.band_sectors) as usize
    }

    /// Number of bands with extents in it.
    pub(super) fn bands(&self) -> u64 {
        self.bands
    }

    /// Adds an extent in the place of all older data of its blocks; `sees` gets what no longer counts.
    pub(super) fn insert(&mut self, extent: CachedExtent, sees: &mut impl FnMut(&CachedExtent)) {
        let band = self.band_of(extent.lbn);
        let before = self.len();
        if self.in_band[band] > 0 {
            self.remove_blocks(extent.lbn, extent.end(), sees);
        } else {
            self.bands += 1;
        }
        self.extents.insert(extent.lbn, extent.into());
        self.in_band[band] = (self.in_band[band] as usize + self.len() - before) as u32;
    }

    /// Removes the blocks `first..end` of one band; `sees` gets what no longer counts.
    fn remove_blocks(&mut self, first: u64, end: u64, sees: &mut impl FnMut(&CachedExtent)) {
        let band_first = first - first % self.band_sectors;
        let mut before = end;
        while let Some((lbn, entry)) = self.extents.range(band_first..before).next_back() {
            let extent = entry.extent(*lbn);
            before = extent.lbn;
            let Some(removed) = extent.part(first, end) else { return };
            self.extents.remove(&extent.lbn);
            for rest in [extent.part(0, first), extent.part(end, u64::MAX)].into_iter().flatten() {
                self.extents.insert(rest.lbn, rest.into());
            }
            sees(&removed);
        }
    }

    /// Removes the extents of a band that records up to `up_to` have; `sees` gets them.
    pub(super) fn remove_older(&mut self, band: u64, up_to: u64, sees: &mut impl FnMut(&CachedExtent)) {
        let first = band * self.band_sectors;
        let all = self.extents.range(first..first + self.band_sectors).map(|(lbn, entry)| entry.extent(*lbn));
        let older: Vec<CachedExtent> = all.filter(|extent| extent.sequence <= up_to).collect();
        let left = &mut self.in_band[band as usize];
        self.bands -= u64::from(!older.is_empty() && *left as usize == older.len());
        *left -= older.len() as u32;
        for extent in older {
            self.extents.remove(&extent.lbn);
            sees(&extent);
        }
    }

    /// Whether some of the blocks `first..end` of one band have their newest data in a record.
    pub(super) fn has_data_of(&self, first: u64, end: u64, sequence: u64) -> bool {
        // An extent that counts is usually whole, so that the map has its first block.
        self.in_band[self.band_of(first)] > 0
            && (self.extents.get(&first).is_some_and(|entry| entry.sequence == sequence)
                || self.over(first, end).any(|extent| extent.sequence == sequence))
    }

    /// The extents of the blocks `first..end`, in the order of the blocks, cut to them.
    pub(super) fn over(&self, first: u64, end: u64) -> impl Iterator<Item = CachedExtent> + '_ {
        let into = first % self.band_sectors;
        let is_empty = into + (end - first) <= self.band_sectors && self.in_band[self.band_of(first)] == 0;
        let cut = move |(lbn, entry): (&u64, &MapEntry)| entry.extent(*lbn).part(first, end);
        let before = (into > 0 && !is_empty).then(|| self.extents.range(first - into..first).next_back());
        let inside = (!is_empty).then(|| self.extents.range(first..end));
        before.flatten().and_then(cut).into_iter().chain(inside.into_iter().flatten().filter_map(cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn younger_extent_splits_the_older_one() {
        let layout = ShingleLayout {
            sectors: 400,
            band_sectors: 200,
            cache_sectors: 5000,
            header_sectors: 1,
            record_extents_max: 4,
            map_entries_max: 100,
            step_sectors: 10,
        };
        let mut map = ExtentMap::new(&layout);
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
        assert_eq!((map.in_band.as_slice(), map.bands()), (&[1, 0][..], 1));
    }
}
