//! Messages between the translation layer and the owner of the media.

/// A place on the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaPlace {
    /// The block's own place in its band.
    Band,
    /// This sector of the persistent cache.
    Cache(u64),
}

/// Blocks in a record of the log. They lie in one band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedExtent {
    /// First block.
    pub lbn: u64,
    /// Number of blocks.
    pub sectors: u32,
}

/// The band's extents in records up to `up_to` no longer count: the band has newer data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandCleaned {
    /// Number of the band.
    pub band: u64,
    /// The last of the records.
    pub up_to: u64,
}

/// A record of the log: a header with all of this, then the data of the extents in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShingleRecord {
    /// Sector of the cache at which the header begins.
    pub place: u64,
    /// Number of the record: one more than that of the record before it.
    pub sequence: u64,
    /// Blocks whose data the record has.
    pub extents: Vec<LoggedExtent>,
    /// The band whose older extents no longer count.
    pub cleaned: Option<BandCleaned>,
}

impl ShingleRecord {
    /// Sectors of data.
    pub fn data_sectors(&self) -> u64 {
        self.extents.iter().map(|extent| u64::from(extent.sectors)).sum()
    }
}

/// The oldest record that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShingleAnchor {
    /// Number of the anchor; the greatest on the media is in force.
    pub generation: u64,
    /// Sector of the cache at which the record begins, or at which the next one will.
    pub place: u64,
    /// Number of that record.
    pub sequence: u64,
}

/// The scratch area has the contents of a band from a block on, with all extents up to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScratchHeader {
    /// Number of the band.
    pub band: u64,
    /// The first block whose contents it has. The blocks before it keep their places.
    pub from: u64,
    /// The last record whose extents are merged.
    pub up_to: u64,
}

/// A step of cleaning: one access to the media. The owner has a buffer of a band, in which it merges what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CleaningStep {
    /// Read these blocks from their band into the buffer.
    ReadBand {
        /// First block.
        lbn: u64,
        /// Number of blocks.
        sectors: u64,
    },
    /// Read these blocks from the log into the buffer, over what is there.
    ReadLog {
        /// Sector of the cache.
        place: u64,
        /// First block.
        lbn: u64,
        /// Number of blocks.
        sectors: u64,
    },
    /// Read these blocks from the scratch area into the buffer, after a power cut.
    ReadScratch {
        /// Sector of the cache.
        place: u64,
        /// First block.
        lbn: u64,
        /// Number of blocks.
        sectors: u64,
    },
    /// Write these blocks from the buffer to the scratch area. Its header has a checksum of them, so that it is invalid meanwhile.
    WriteScratch {
        /// Sector of the cache.
        place: u64,
        /// First block.
        lbn: u64,
        /// Number of blocks.
        sectors: u64,
    },
    /// Write the header of the scratch area.
    CommitScratch(ScratchHeader),
    /// Write these blocks from the buffer to their band.
    WriteBand {
        /// First block.
        lbn: u64,
        /// Number of blocks.
        sectors: u64,
    },
    /// Append a record without data: a band is clean.
    WriteRecord(ShingleRecord),
    /// Write an anchor at its place.
    WriteAnchor(ShingleAnchor),
}
