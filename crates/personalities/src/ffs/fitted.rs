//! Blocks that vary in size so that they fit to tracks: each track holds a whole number of them, and none is excluded.
//!
//! A track of `t` sectors has the fewest blocks of at most 16 sectors that fill it, whose sizes differ by a sector at most. The rest of the
//! file system counts sectors as if each block had 16; a request is translated to the disk's sectors when it is issued. A file gets as
//! many blocks as its bytes need. Two approximations are wrong by the sectors that a block lacks, at most one in 16: a program's appends count
//! in blocks of 16 sectors, and blocks of inodes and indirect blocks hold as much as others.
//!
//! *Source:* Schindler, Griffin, Lumb and Ganger 2002, section 1, which says that variable-sized extents suffice; the sizes are ours.

use super::{BLOCK_SECTORS, TrackList, sector_of};
use std::ops::Range;

/// The blocks of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FittedTrack {
    /// Its first sector, and its number of sectors.
    first: u64,
    sectors: u64,
    /// Its first block, and its number of blocks.
    first_block: u64,
    blocks: u64,
}

/// The places of blocks that fit to tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedBlocks {
    tracks: Vec<FittedTrack>,
}

impl FittedBlocks {
    /// Blocks for these tracks.
    pub fn new(tracks: &TrackList) -> FittedBlocks {
        let mut fitted: Vec<FittedTrack> = Vec::new();
        let (mut first, mut first_block) = (0, 0);
        while first < tracks.sectors() {
            let sectors = tracks.end_of(first) - first;
            let blocks = sectors.div_ceil(u64::from(BLOCK_SECTORS));
            fitted.push(FittedTrack { first, sectors, first_block, blocks });
            (first, first_block) = (first + sectors, first_block + blocks);
        }
        FittedBlocks { tracks: fitted }
    }

    /// The tracks as the file system counts sectors, 16 in each block.
    pub fn counted_tracks(&self) -> TrackList {
        let counted = |block: u64| block * u64::from(BLOCK_SECTORS);
        let end = self.tracks.last().map_or(0, |track| track.first_block + track.blocks);
        let starts = self.tracks.iter().map(|track| counted(track.first_block));
        TrackList::new(starts, counted(end)).expect("tracks of whole blocks ascend")
    }

    /// Sectors of a block.
    pub fn sectors(&self, block: u32) -> u32 {
        let Range { start, end } = self.disk_sectors(sector_of(block)..sector_of(block + 1));
        (end - start) as u32
    }

    /// The disk's sectors of counted ones.
    pub fn disk_sectors(&self, counted: Range<u64>) -> Range<u64> {
        self.disk_sector(counted.start)..self.disk_sector(counted.end)
    }

    fn disk_sector(&self, counted: u64) -> u64 {
        let (block, within) = (counted / u64::from(BLOCK_SECTORS), counted % u64::from(BLOCK_SECTORS));
        let after = self.tracks.partition_point(|track| track.first_block <= block);
        let Some(track) = self.tracks.get(after.saturating_sub(1)) else { return 0 };
        // Also the start of the block after the last one.
        let start = |index: u64| track.first + index * track.sectors / track.blocks;
        let index = block - track.first_block;
        if within == 0 { start(index) } else { (start(index) + within).min(start(index + 1)) }
    }
}
