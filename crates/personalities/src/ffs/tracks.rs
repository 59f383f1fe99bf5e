//! Where tracks begin, as the file system stores it when it is created.

use super::{BLOCK_SECTORS, sector_of};
use thiserror::Error;

/// Why a list of tracks was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TrackListError {
    #[error(
        "track {index} begins at sector {first}, which is not between the track before and the end at {end}"
    )]
    Order {
        /// Its place in the list, counted from 0.
        index: usize,
        first: u64,
        end: u64,
    },
    #[error(
        "the track from sector {first} on has {sectors} sectors, where a block of the file system has 16"
    )]
    Short { first: u64, sectors: u64 },
}

/// The tracks of a partition.
///
/// *Units:* sectors from the partition's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackList {
    /// First sectors of the tracks in ascending order, beginning with 0, and then the end of the partition.
    bounds: Vec<u64>,
    longest: u64,
}

impl TrackList {
    /// The tracks that begin at these sectors of a partition of `sectors`. The sectors before the first of them belong to a
    /// track that began before the partition.
    ///
    /// *Errors:* the list does not ascend or goes beyond the partition, or a track other than the first and the last is shorter
    /// than a block.
    pub fn new(starts: impl IntoIterator<Item = u64>, sectors: u64) -> Result<TrackList, TrackListError> {
        let mut bounds = vec![0];
        for (index, first) in starts.into_iter().enumerate() {
            let last = bounds[bounds.len() - 1];
            if (index > 0 && first <= last) || first >= sectors {
                return Err(TrackListError::Order { index, first, end: sectors });
            }
            if first > 0 {
                bounds.push(first);
            }
        }
        bounds.push(sectors);
        let inner = bounds.get(1..bounds.len() - 1).unwrap_or_default();
        match inner.windows(2).find(|pair| pair[1] - pair[0] < u64::from(BLOCK_SECTORS)) {
            Some(pair) => Err(TrackListError::Short { first: pair[0], sectors: pair[1] - pair[0] }),
            None => {
                let longest = bounds.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
                Ok(TrackList { bounds, longest })
            }
        }
    }

    /// Sectors of the partition.
    pub fn sectors(&self) -> u64 {
        self.bounds[self.bounds.len() - 1]
    }

    /// The end of the track of a sector.
    pub fn end_of(&self, sector: u64) -> u64 {
        let next = self.bounds.partition_point(|bound| *bound <= sector);
        self.bounds[next.min(self.bounds.len() - 1)]
    }

    /// The start of the track of a sector.
    pub fn start_of(&self, sector: u64) -> u64 {
        let next = self.bounds.partition_point(|bound| *bound <= sector);
        self.bounds[next.saturating_sub(1)]
    }

    /// Whether a block of the file system crosses a track boundary.
    pub fn split(&self, block: u32) -> bool {
        let first = sector_of(block);
        self.end_of(first) < first + u64::from(BLOCK_SECTORS)
    }

    /// Whole blocks from a block on to the end of its track.
    pub fn blocks_left(&self, block: u32) -> u32 {
        let first = sector_of(block);
        ((self.end_of(first) - first) / u64::from(BLOCK_SECTORS)) as u32
    }

    /// The most whole blocks that a track has room for.
    pub(super) fn longest_blocks(&self) -> u32 {
        (self.longest / u64::from(BLOCK_SECTORS)) as u32
    }

    /// Whether a block is the first block that lies entirely on its track.
    pub fn begins_traxtent(&self, block: u32) -> bool {
        !self.split(block)
            && (block == 0 || self.split(block - 1) || self.end_of(sector_of(block - 1)) == sector_of(block))
    }
}
