//! The fixed parts of a drive.

use headstack_model::{Extent, Geometry, Mechanics, TrackPlace};

/// The fixed parts of a drive, shared by all devices of its kind.
#[derive(Debug)]
pub struct Drive {
    /// Where blocks lie.
    pub geometry: Geometry,
    /// The times of the arm.
    pub mechanics: Mechanics,
}

/// The track that a run of blocks lies on.
pub(super) fn track_of(extent: &Extent) -> TrackPlace {
    TrackPlace { cylinder: extent.cylinder, head: extent.head }
}
