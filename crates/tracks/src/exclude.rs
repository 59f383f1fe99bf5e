//! Blocks that a file system must not use, so that none of its extents crosses a track boundary.
//!
//! An allocator without track maps stays within tracks if the blocks between them are used: an extent ends where the next block
//! is not free. A block that spans a boundary is always excluded. If a boundary falls on the end of a block, no block spans it,
//! as on disks whose tracks hold whole blocks; then the last block before it can be excluded instead.
//!
//! *Source:* J. Schindler, J. L. Griffin, C. R. Lumb, G. R. Ganger, "Track-aligned Extents: Matching Access Patterns to Disk
//! Drive Characteristics", FAST 2002, section 4.2 (excluded blocks). Excluding a whole block where none spans is an addition.

use crate::map::View;

/// At which boundaries a block is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundaries {
    /// Boundaries that a block spans: that block.
    Spanned,
    /// All: if no block spans the boundary, the block that ends there.
    Every,
}

/// A block size that is no whole number of sectors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("blocks of {block_bytes} bytes are no whole sectors of {sector_bytes} bytes")]
#[allow(missing_docs, reason = "the names say it")]
pub struct OddBlock {
    pub block_bytes: u64,
    pub sector_bytes: u32,
}

/// The excluded blocks of a file system on a partition.
///
/// *Shapes:* the first block begins with the partition, and only whole blocks belong to the file system. The list takes no
/// memory: it is computed from the map each time.
#[derive(Clone, Copy, Debug)]
pub struct Exclusion<'a> {
    view: View<'a>,
    block_sectors: u64,
    boundaries: Boundaries,
}

impl<'a> Exclusion<'a> {
    /// The excluded blocks of a file system with this block size in bytes.
    ///
    /// *Errors:* the block size is 0 or not a whole number of sectors.
    pub fn new(
        view: View<'a>,
        block_bytes: u64,
        sector_bytes: u32,
        boundaries: Boundaries,
    ) -> Result<Exclusion<'a>, OddBlock> {
        let sector = u64::from(sector_bytes);
        if block_bytes > 0 && block_bytes.is_multiple_of(sector) {
            Ok(Exclusion { view, block_sectors: block_bytes / sector, boundaries })
        } else {
            Err(OddBlock { block_bytes, sector_bytes })
        }
    }

    /// Blocks of the file system.
    pub fn blocks(&self) -> u64 {
        self.view.sectors() / self.block_sectors
    }

    /// The excluded blocks in ascending order, each once.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (size, every, blocks) = (self.block_sectors, self.boundaries == Boundaries::Every, self.blocks());
        let boundaries = self.view.iter().map(|track| track.first.0).filter(|first| *first > 0);
        let mut last = None;
        boundaries
            .take_while(move |boundary| boundary / size < blocks)
            .filter_map(move |boundary| {
                if boundary.is_multiple_of(size) {
                    every.then(|| boundary / size - 1)
                } else {
                    Some(boundary / size)
                }
            })
            .filter(move |block| last.replace(*block) != Some(*block))
    }

    /// Number of excluded blocks.
    pub fn count(&self) -> u64 {
        self.iter().count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrackMap;
    use headstack_model::Lbn;
    use proptest::prelude::*;

    /// First sectors of a partition's tracks, relative to it, without its own first.
    fn boundaries(map: &TrackMap, start: u64, sectors: u64) -> Vec<u64> {
        let firsts = map.iter().map(|track| track.first.0);
        firsts
            .filter(|first| (start + 1..start + sectors).contains(first))
            .map(|first| first - start)
            .collect()
    }

    fn spans(boundaries: &[u64], block: u64, size: u64) -> bool {
        boundaries.iter().any(|boundary| (block * size + 1..(block + 1) * size).contains(boundary))
    }

    proptest! {
        #[test]
        fn exclusion_lists_exactly_blocks_at_boundaries(
            tracks in prop::collection::vec((1u32..70, 1u32..6), 1..40),
            start in 0u64..300, sectors in 1u64..2000, size in 1u64..17,
        ) {
            let mut map = TrackMap::new();
            tracks.iter().for_each(|(sectors, count)| map.push(*sectors, *count));
            let start = start.min(map.end().0 - 1);
            let sectors = sectors.min(map.end().0 - start);
            let of = |which| Exclusion::new(map.view(Lbn(start), sectors), size * 512, 512, which).expect("whole");
            let boundaries = boundaries(&map, start, sectors);

            let spanned = of(Boundaries::Spanned);
            let expected: Vec<u64> =
                (0..sectors / size).filter(|block| spans(&boundaries, *block, size)).collect();
            prop_assert_eq!(spanned.iter().collect::<Vec<_>>(), &expected[..]);
            prop_assert_eq!((spanned.count(), spanned.blocks()), (expected.len() as u64, sectors / size));

            // The remaining runs of blocks cross no boundary, and only blocks at boundaries are excluded.
            let every: Vec<u64> = of(Boundaries::Every).iter().collect();
            prop_assert!(every.is_sorted_by(|one, next| one < next));
            for block in 0..sectors / size {
                let (first, end) = (block * size, (block + 1) * size);
                let touches = boundaries.iter().any(|boundary| (first + 1..=end).contains(boundary));
                let runs_on = block + 1 < sectors / size;
                let must = spans(&boundaries, block, size) || (touches && runs_on);
                prop_assert_eq!(every.contains(&block), must, "block {}", block);
            }
        }
    }

    #[test]
    fn blocks_ending_at_boundary_are_excluded_only_on_request() {
        let mut map = TrackMap::new();
        map.push(16, 4);
        let list = |start, which| {
            let view = map.view(Lbn(start), 64);
            Exclusion::new(view, 4096, 512, which).expect("they are whole").iter().collect::<Vec<_>>()
        };
        assert!(list(0, Boundaries::Spanned).is_empty());
        assert_eq!(list(0, Boundaries::Every), [1, 3, 5]);
        assert_eq!(
            list(3, Boundaries::Spanned),
            [1, 3, 5],
            "the partition begins within a block of the disk"
        );
        assert_eq!(list(3, Boundaries::Every), [1, 3, 5]);
    }

    #[test]
    fn block_of_partial_sectors_is_rejected() {
        let map = TrackMap::new();
        let reported =
            Exclusion::new(map.view(Lbn(0), 1), 1024, 4096, Boundaries::Every).expect_err("it is odd");
        assert_eq!(reported.to_string(), "blocks of 1024 bytes are no whole sectors of 4096 bytes");
    }
}
