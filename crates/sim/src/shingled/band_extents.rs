//! The extents of one band that the persistent cache has, in the order of their blocks.

use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeMap, btree_map};
use std::ops::Range;
use std::slice;

/// Blocks of a band that lie one after the other in a record. Small, because a full map is larger than a processor's caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct BandExtent {
    pub(super) place: u64,
    pub(super) sequence: u64,
    /// First block, counted from the first one of the band.
    pub(super) first: u32,
    pub(super) sectors: u32,
}

impl BandExtent {
    pub(super) fn end(&self) -> u32 {
        self.first + self.sectors
    }

    /// The part of it in `blocks`, if any.
    pub(super) fn part(&self, blocks: Range<u32>) -> Option<BandExtent> {
        let (first, end) = (self.first.max(blocks.start), self.end().min(blocks.end));
        (first < end).then(|| {
            let place = self.place + u64::from(first - self.first);
            BandExtent { place, first, sectors: end - first, ..*self }
        })
    }
}

/// Extents that do not overlap. Random writes to a whole disk leave one or two in most bands, which take one line of a processor's
/// cache; small writes to one region leave thousands.
#[derive(Clone, Debug)]
pub(super) enum BandExtents {
    Few(SmallVec<[BandExtent; 2]>),
    Many(BTreeMap<u32, BandExtent>),
}

/// Most extents of a list. A list of thousands takes three times as long as a tree; where a tree becomes faster was not measured.
const FEW: usize = 64;

impl BandExtents {
    pub(super) fn new(extent: BandExtent) -> BandExtents {
        BandExtents::Few(smallvec![extent])
    }

    pub(super) fn len(&self) -> usize {
        match self {
            BandExtents::Few(list) => list.len(),
            BandExtents::Many(tree) => tree.len(),
        }
    }

    /// The last extent that begins before a block.
    pub(super) fn last_before(&self, block: u32) -> Option<BandExtent> {
        match self {
            BandExtents::Few(list) => list[..begun_before(list, block)].last().copied(),
            BandExtents::Many(tree) => tree.range(..block).next_back().map(|(_, extent)| *extent),
        }
    }

    /// Adds an extent, whose blocks no other has.
    pub(super) fn insert(&mut self, extent: BandExtent) {
        match self {
            BandExtents::Few(list) if list.len() < FEW => {
                list.insert(begun_before(list, extent.first), extent);
            }
            BandExtents::Few(list) => {
                let all = list.iter().chain([&extent]).map(|extent| (extent.first, *extent));
                *self = BandExtents::Many(all.collect());
            }
            BandExtents::Many(tree) => {
                tree.insert(extent.first, extent);
            }
        }
    }

    /// Removes the extent that begins with a block.
    pub(super) fn remove(&mut self, first: u32) {
        match self {
            BandExtents::Few(list) => {
                list.remove(begun_before(list, first));
            }
            BandExtents::Many(tree) => {
                tree.remove(&first);
            }
        }
    }

    /// Keeps only the extents for which `stays` is true.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(&BandExtent) -> bool) {
        match self {
            BandExtents::Few(list) => list.retain(|extent| stays(extent)),
            BandExtents::Many(tree) => tree.retain(|_, extent| stays(extent)),
        }
    }

    /// All extents that have some of `blocks`, in their order, and perhaps the one before them and those behind.
    pub(super) fn near(&self, blocks: &Range<u32>) -> ExtentsIter<'_> {
        match self {
            BandExtents::Few(list) => {
                let first = begun_before(list, blocks.start).saturating_sub(1);
                ExtentsIter::Few(list[first..].iter())
            }
            BandExtents::Many(tree) => {
                let first = self.last_before(blocks.start).map_or(blocks.start, |extent| extent.first);
                ExtentsIter::Many(tree.range(first..blocks.end))
            }
        }
    }
}

/// Extents of a band in the order of their blocks.
pub(super) enum ExtentsIter<'a> {
    Few(slice::Iter<'a, BandExtent>),
    Many(btree_map::Range<'a, u32, BandExtent>),
}

impl ExtentsIter<'_> {
    pub(super) fn none() -> ExtentsIter<'static> {
        ExtentsIter::Few([].iter())
    }
}

impl<'a> Iterator for ExtentsIter<'a> {
    type Item = &'a BandExtent;

    fn next(&mut self) -> Option<&'a BandExtent> {
        match self {
            ExtentsIter::Few(list) => list.next(),
            ExtentsIter::Many(tree) => tree.next().map(|(_, extent)| extent),
        }
    }
}

/// Number of extents that begin before a block.
fn begun_before(list: &[BandExtent], block: u32) -> usize {
    list.partition_point(|extent| extent.first < block)
}
