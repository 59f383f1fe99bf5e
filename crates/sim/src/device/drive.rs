//! The fixed parts of a drive.

use headstack_model::spec::{GeometrySpec, MechanicsSpec};
use headstack_model::{DriveSpec, Extent, Geometry, Mechanics, SpecError, TrackPlace};
use std::sync::Arc;

/// The fixed parts of a drive, shared by all devices of its kind.
#[derive(Debug)]
pub struct Drive {
    /// Where blocks lie.
    pub geometry: Geometry,
    /// The times of the arm.
    pub mechanics: Mechanics,
}

/// The keys of a drive file from which its fixed parts follow: drives with equal ones can share them, whatever their queues and
/// caches are.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveShape {
    capacity_sectors: u64,
    sector_bytes: u32,
    physical_sector_bytes: u32,
    geometry: GeometrySpec,
    mechanics: MechanicsSpec,
}

impl From<&DriveSpec> for DriveShape {
    fn from(spec: &DriveSpec) -> DriveShape {
        DriveShape {
            capacity_sectors: spec.capacity_sectors,
            sector_bytes: spec.sector_bytes,
            physical_sector_bytes: spec.physical_sector_bytes,
            geometry: spec.geometry.clone(),
            mechanics: spec.mechanics.clone(),
        }
    }
}

/// Supplies the fixed parts of a rig's drives. A program with many runs shares them between the runs.
pub trait DriveSource {
    /// The fixed parts of the drive that `spec` describes.
    ///
    /// *Errors:* the blocks do not fit in the geometry.
    fn drive(&self, spec: &DriveSpec) -> Result<Arc<Drive>, SpecError>;
}

/// Builds the fixed parts of each drive, and shares none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewDrives;

impl DriveSource for NewDrives {
    fn drive(&self, spec: &DriveSpec) -> Result<Arc<Drive>, SpecError> {
        Ok(Arc::new(Drive { geometry: Geometry::new(spec)?, mechanics: Mechanics::new(spec) }))
    }
}

/// The track that a run of blocks lies on.
pub(super) fn track_of(extent: &Extent) -> TrackPlace {
    TrackPlace { cylinder: extent.cylinder, head: extent.head }
}
