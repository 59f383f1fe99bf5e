//! Where each block lies: LBN to cylinder, head, sector and angle, and back.

use crate::{Angle, DriveSpec, Lbn, SpecError};

/// A run of blocks that follow each other on one track without a gap.
///
/// Slipped and remapped sectors end a run; a remapped sector is a run of one on its spare's track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First block of the run.
    pub first: Lbn,
    /// Blocks in the run.
    pub sectors: u32,
    /// Cylinder of the run's track.
    pub cylinder: u32,
    /// Head of the run's track.
    pub head: u32,
    /// Physical sector of `first`, counted from the track's own first sector.
    pub sector: u32,
    /// Physical sectors on the track.
    pub sectors_per_track: u32,
    /// Angle at which `first` begins.
    pub angle: Angle,
}

/// The blocks on one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// First block on the track, remapped-in ones not counted.
    pub first: Lbn,
    /// Blocks from `first` to the next track boundary, remapped-out ones counted.
    pub sectors: u32,
    /// Cylinder of the track.
    pub cylinder: u32,
    /// Head of the track.
    pub head: u32,
    /// Physical sectors on the track.
    pub sectors_per_track: u32,
}

/// The layout of a drive, ready for look-ups.
#[derive(Clone, Debug)]
pub struct Geometry {
    sectors: u64,
}

impl Geometry {
    /// Builds the layout of a drive.
    ///
    /// *Errors:* zones, spares and defects that do not fit each other or the capacity, with the key at fault.
    pub fn new(spec: &DriveSpec) -> Result<Geometry, SpecError> {
        Ok(Geometry { sectors: spec.capacity_sectors })
    }

    /// Blocks the host can address.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The run that holds `lbn`. Panics where there is no such block.
    pub fn extent_at(&self, lbn: Lbn) -> Extent {
        unimplemented!("{lbn}")
    }

    /// The track that holds `lbn`. Panics where there is no such block.
    pub fn track_at(&self, lbn: Lbn) -> Track {
        unimplemented!("{lbn}")
    }

    /// The block at a physical place, if one is stored there.
    pub fn lbn_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<Lbn> {
        unimplemented!("{cylinder} {head} {sector}")
    }
}
