//! Sizes of a shingled disk's bands and of its persistent cache, and where in the cache each thing lies.

use thiserror::Error;

/// Sizes, in sectors. The cache has, in this order: two anchors, the scratch area with its header, the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShingleLayout {
    /// Blocks that the host can address.
    pub sectors: u64,
    /// Blocks of a band; the last band may be shorter.
    pub band_sectors: u64,
    /// Size of the persistent cache.
    pub cache_sectors: u64,
    /// Size of a header: of a record, an anchor, the scratch area.
    pub header_sectors: u64,
    /// Copies of a record's data in the log, one behind the other.
    pub record_copies: u64,
    /// Most extents that a record has.
    pub record_extents_max: usize,
    /// Most extents that the map has.
    pub map_entries_max: usize,
    /// Most records of which the map names data.
    pub records_max: usize,
    /// Most sectors that a step of cleaning moves.
    pub step_sectors: u64,
}

/// Sizes that do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ShingleLayoutError {
    /// A size of 0.
    #[error("a band, a header, a record and a step of cleaning need at least one sector or extent each")]
    Nothing,
    /// A band has more blocks than can be counted.
    #[error("a band has {sectors} sectors (at most {most}); make the bands smaller")]
    LargeBand {
        /// Its sectors.
        sectors: u64,
        /// The most allowed.
        most: u32,
    },
    /// The cache is too small for the bands and records.
    #[error(
        "the persistent cache has {cache} sectors (at least {least} for its scratch area and its log); enlarge it"
    )]
    SmallCache {
        /// Its sectors.
        cache: u64,
        /// The fewest allowed.
        least: u64,
    },
    /// The map is too small for the records.
    #[error("the map has {entries} extents (at least {least}, four times those of a record); enlarge it")]
    SmallMap {
        /// Its extents.
        entries: usize,
        /// The fewest allowed.
        least: usize,
    },
}

impl ShingleLayout {
    /// Checks that the persistent cache and the map of extents are large enough for every state of the log.
    ///
    /// *Errors:* a size of 0; a band of more than 2³² − 1 sectors; a log with less room for records than 8 × (reserve + step of
    /// cleaning) sectors; a map of fewer than 4 × `record_extents_max` extents.
    pub fn check(&self) -> Result<(), ShingleLayoutError> {
        let least_sizes =
            [self.sectors, self.band_sectors, self.header_sectors, self.step_sectors, self.record_copies];
        if least_sizes.contains(&0) || self.record_extents_max == 0 || self.records_max == 0 {
            return Err(ShingleLayoutError::Nothing);
        }
        if self.band_sectors > u64::from(u32::MAX) {
            return Err(ShingleLayoutError::LargeBand { sectors: self.band_sectors, most: u32::MAX });
        }
        let least = self.log_first() + 8 * (self.reserve() + self.step_sectors);
        if self.cache_sectors < least {
            return Err(ShingleLayoutError::SmallCache { cache: self.cache_sectors, least });
        }
        let least = 4 * self.record_extents_max;
        if self.map_entries_max < least {
            return Err(ShingleLayoutError::SmallMap { entries: self.map_entries_max, least });
        }
        Ok(())
    }

    /// Band of a block.
    pub fn band_of(&self, lbn: u64) -> u64 {
        lbn / self.band_sectors
    }

    /// First block of a band and the block after its last.
    pub fn band(&self, band: u64) -> (u64, u64) {
        let first = band * self.band_sectors;
        (first, (first + self.band_sectors).min(self.sectors))
    }

    /// Number of bands.
    pub fn bands(&self) -> u64 {
        self.sectors.div_ceil(self.band_sectors)
    }

    /// Place of the anchor of a generation: the two places alternate.
    pub fn anchor_place(&self, generation: u64) -> u64 {
        generation % 2 * self.header_sectors
    }

    /// Place of the scratch area's header.
    pub fn scratch_header(&self) -> u64 {
        2 * self.header_sectors
    }

    /// Place of the scratch area's first sector, which has the band's first block.
    pub fn scratch_first(&self) -> u64 {
        3 * self.header_sectors
    }

    /// Place of the log's first sector.
    pub fn log_first(&self) -> u64 {
        self.scratch_first() + self.band_sectors
    }

    /// Sectors of the log.
    pub fn log_sectors(&self) -> u64 {
        self.cache_sectors - self.log_first()
    }

    /// Most sectors of data that a record has.
    pub fn record_sectors_max(&self) -> u64 {
        (self.log_sectors() / 8 - self.header_sectors) / self.record_copies
    }

    /// Room of the log that only the records of cleaned bands may use. The oldest record has extents of that many bands at most, and
    /// its space is free once they are clean.
    pub(super) fn reserve(&self) -> u64 {
        (self.record_extents_max as u64 + 4) * self.header_sectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn band_with_more_sectors_than_an_extent_can_count_is_refused() {
        let layout = |band_sectors| ShingleLayout {
            sectors: 1 << 40,
            band_sectors,
            cache_sectors: 1 << 34,
            header_sectors: 8,
            record_copies: 1,
            record_extents_max: 16,
            map_entries_max: 1000,
            records_max: 1000,
            step_sectors: 8192,
        };
        assert_eq!(layout((1 << 32) - 1).check(), Ok(()));
        let error = layout(1 << 32).check().expect_err("it is too large");
        let said = "a band has 4294967296 sectors (at most 4294967295); make the bands smaller";
        assert_eq!(error.to_string(), said);
    }
}
