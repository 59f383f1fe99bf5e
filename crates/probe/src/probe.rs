//! The words between an extraction and the disk that it asks.

use headstack_model::{Lbn, Nanos, Place};
use headstack_tracks::map::Identity;

/// What is known of a disk before it is asked anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskInfo {
    /// Blocks of the disk.
    pub sectors: u64,
    /// Bytes in a block.
    pub sector_bytes: u32,
    /// Blocks in a physical sector: what the media hold is read and written in such units.
    pub physical_sectors: u32,
    /// Probes that may be under way at a time.
    pub depth: usize,
    /// Whether blocks may be written.
    pub may_write: bool,
    /// Whether it answers where a block lies.
    pub translates: bool,
}

impl DiskInfo {
    /// The disk that an extraction asks, for the file of its map.
    pub fn identity(&self) -> Identity {
        Identity { physical_sectors: self.physical_sectors, ..Identity::new(self.sectors, self.sector_bytes) }
    }
}

/// Something to ask of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeCommand {
    /// To read so many blocks.
    Read {
        /// First block.
        lbn: Lbn,
        /// How many.
        sectors: u32,
        /// Whether they have to come from the media, where the disk can be told so.
        from_media: bool,
    },
    /// To write so many blocks; what they hold is kept, where somebody needs it, by who carries it out.
    Write {
        /// First block.
        lbn: Lbn,
        /// How many.
        sectors: u32,
        /// Whether it is done only once it is on the media.
        to_media: bool,
    },
    /// To bring everything written to the media.
    Flush,
    /// Where a block lies: cylinder, head and sector, without the angle.
    Locate(Lbn),
    /// Which block lies at a cylinder, head and sector.
    BlockAt(u32, u32, u32),
    /// The sectors that are out of use.
    Defects,
}

/// One question, at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its number in the order in which the extraction asked.
    pub number: u64,
    /// What is asked.
    pub command: ProbeCommand,
    /// When to ask it, on the clock of the answers; a time that has passed means at once.
    pub at: Nanos,
}

/// What came of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When it was asked.
    pub issued: Nanos,
    /// When the answer was there.
    pub ended: Nanos,
    /// What it was.
    pub outcome: Outcome,
}

impl Answer {
    /// How long it took.
    pub fn took(&self) -> Nanos {
        self.ended.since(self.issued)
    }

    /// Whether it was carried out.
    pub fn is_done(&self) -> bool {
        !matches!(self.outcome, Outcome::Failed | Outcome::Refused)
    }
}

/// How a probe ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Done,
    /// The disk could not, as where a block cannot be read.
    Failed,
    /// The disk does not know how to.
    Refused,
    /// Cylinder, head and sector of a block, counted as the disk counts them.
    Place {
        /// The cylinder.
        cylinder: u32,
        /// The head.
        head: u32,
        /// The physical sector.
        sector: u32,
    },
    /// The block at a place, if any.
    Block(Option<Lbn>),
    /// Cylinder, head and sector of each sector out of use.
    Defects(Vec<(u32, u32, u32)>),
}

impl From<Place> for Outcome {
    fn from(place: Place) -> Outcome {
        Outcome::Place { cylinder: place.cylinder, head: place.head, sector: place.sector }
    }
}
