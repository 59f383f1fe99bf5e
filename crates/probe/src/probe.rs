//! Probes, their answers, and the known properties of a disk.

use headstack_model::{Instant, Lbn, Nanos, Place};
use headstack_tracks::map::Identity;

/// Known properties of a disk before the first probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskInfo {
    /// Blocks of the disk.
    pub sectors: u64,
    /// Bytes in a block.
    pub sector_bytes: u32,
    /// Blocks in a physical sector, the unit of media accesses.
    pub physical_sectors: u32,
    /// Maximum number of probes in flight.
    pub depth: usize,
    /// Whether blocks may be written.
    pub may_write: bool,
    /// Whether it translates addresses.
    pub translates: bool,
}

impl DiskInfo {
    /// The identity of the disk, for the file of its map.
    pub fn identity(&self) -> Identity {
        Identity { physical_sectors: self.physical_sectors, ..Identity::new(self.sectors, self.sector_bytes) }
    }
}

/// A command of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ProbeCommand {
    Read {
        lbn: Lbn,
        sectors: u32,
        /// Whether they must come from the media, if the disk has such a command.
        from_media: bool,
    },
    /// Write blocks. The target preserves their contents if they matter.
    Write {
        lbn: Lbn,
        sectors: u32,
        /// Whether it completes only when they are on the media.
        to_media: bool,
    },
    Flush,
    /// Translate a block to cylinder, head and sector.
    Locate(Lbn),
    /// Translate a cylinder, head and sector to a block.
    BlockAt(u32, u32, u32),
    /// List the defective sectors.
    Defects,
}

/// A command and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its number in the order of the extraction.
    pub number: u64,
    /// The command.
    pub command: ProbeCommand,
    /// When to send it, on the clock of the answers; a time in the past means at once.
    pub at: Instant,
}

/// The answer to a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Answer {
    pub issued: Instant,
    pub ended: Instant,
    pub outcome: Outcome,
}

impl Answer {
    /// The time from start to end.
    pub fn took(&self) -> Nanos {
        self.ended.since(self.issued)
    }

    /// Whether it succeeded.
    pub fn is_done(&self) -> bool {
        !matches!(self.outcome, Outcome::Failed | Outcome::Refused)
    }
}

/// How a probe ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// The disk failed, as with an unreadable block.
    Failed,
    /// The disk does not support the command.
    Refused,
    /// Cylinder, head and sector of a block, in the disk's numbering.
    Place { cylinder: u32, head: u32, sector: u32 },
    /// The block at a place, if any.
    Block(Option<Lbn>),
    /// Cylinder, head and sector of each defective sector.
    Defects(Vec<(u32, u32, u32)>),
}

impl From<Place> for Outcome {
    fn from(place: Place) -> Outcome {
        Outcome::Place { cylinder: place.cylinder, head: place.head, sector: place.sector }
    }
}
