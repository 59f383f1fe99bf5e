//! The reserved region of a volume: its check, and the rearranger that is built from it.
//!
//! On a single drive the region is whole cylinders, or begins at a given sector and ends with a cylinder. An array hides its tracks,
//! so its region is whole blocks around the middle or at an edge, and each block counts as a cylinder.

use super::checks::Checked;
use super::spec::{NamedDrive, RigSpec};
use super::{WholeVolume, whole_volumes};
use crate::device::Drive;
use crate::rearrange_layer::RearrangeLayer;
use headstack_model::spec::Fault;
use headstack_model::{Geometry, Lbn, SpecError};
use headstack_streams::rearrange::{
    RearrangeSpec, Rearranger, RegionPlace, RegionSlot, ReservedRegion, ReservedRun,
};
use headstack_workload::VolumeInfo;
use std::sync::Arc;

/// What determines the run of sectors of a region.
struct RegionShape<'a> {
    /// The drive's layout; `None` on an array.
    geometry: Option<&'a Geometry>,
    disk_sectors: u64,
    /// Sectors that it needs.
    needed: u64,
    block_sectors: u64,
}

impl RegionShape<'_> {
    fn cylinder_of(&self, lbn: u64) -> u64 {
        match self.geometry {
            Some(geometry) => geometry.track_at(Lbn(lbn)).cylinder.into(),
            None => lbn / self.block_sectors,
        }
    }

    /// The first sector of the cylinder of a sector.
    fn cylinder_start(&self, lbn: u64) -> u64 {
        let Some(geometry) = self.geometry else { return lbn / self.block_sectors * self.block_sectors };
        let mut track = geometry.track_at(Lbn(lbn));
        let cylinder = track.cylinder;
        while track.first.0 > 0 {
            let before = geometry.track_at(Lbn(track.first.0 - 1));
            if before.cylinder != cylinder {
                break;
            }
            track = before;
        }
        track.first.0
    }

    /// The first sector behind the cylinder of a sector.
    fn cylinder_end(&self, lbn: u64) -> u64 {
        let Some(geometry) = self.geometry else {
            return (lbn / self.block_sectors + 1).saturating_mul(self.block_sectors).min(self.disk_sectors);
        };
        let cylinder = geometry.track_at(Lbn(lbn)).cylinder;
        let mut end = lbn;
        while end < self.disk_sectors && geometry.track_at(Lbn(end)).cylinder == cylinder {
            end = geometry.next_track_boundary(Lbn(end)).map_or(self.disk_sectors, |boundary| boundary.0);
        }
        end
    }

    /// A sector of the cylinder halfway between those of the first and the last sector.
    fn middle(&self) -> u64 {
        let (first, last) = (self.cylinder_of(0), self.cylinder_of(self.disk_sectors - 1));
        let middle = first.midpoint(last);
        let (mut low, mut high) = (0, self.disk_sectors - 1);
        while low < high {
            let half = low.midpoint(high);
            if self.cylinder_of(half) < middle {
                low = half + 1;
            } else {
                high = half;
            }
        }
        low
    }

    /// Grows a run of sectors by whole cylinders, downward and upward in turn where both are permitted, until it is long enough or
    /// ends at the disk's edges.
    fn grown(&self, (mut low, mut high): (u64, u64), downward: bool, upward: bool) -> ReservedRun {
        let mut is_up = upward;
        while high - low < self.needed && (downward && low > 0 || upward && high < self.disk_sectors) {
            if is_up && high < self.disk_sectors {
                high = self.cylinder_end(high);
            } else if downward && low > 0 {
                low = self.cylinder_start(low - 1);
            }
            is_up = upward && (!is_up || !downward);
        }
        ReservedRun { first: Lbn(low), sectors: high - low }
    }

    fn run(&self, spec: &RearrangeSpec) -> ReservedRun {
        match (spec.first_lbn, spec.region) {
            (Some(first), _) => self.grown((first, first), false, true),
            (None, RegionPlace::OuterEdge) => self.grown((0, 0), false, true),
            (None, RegionPlace::InnerEdge) => self.grown((self.disk_sectors, self.disk_sectors), true, false),
            (None, RegionPlace::Middle) => {
                let start = self.cylinder_start(self.middle());
                self.grown((start, start), true, true)
            }
        }
    }
}

/// The region of a volume.
///
/// *Errors:* it does not fit on the volume.
pub(super) fn region(
    spec: &RearrangeSpec,
    geometry: Option<&Geometry>,
    disk_sectors: u64,
    sector_bytes: u32,
) -> Result<ReservedRegion, Fault> {
    spec.check()?;
    let block_sectors = spec.block_sectors(sector_bytes)?;
    if !spec.runs.is_empty() {
        let runs =
            spec.runs.iter().map(|[first, sectors]| ReservedRun { first: Lbn(*first), sectors: *sectors });
        return ReservedRegion::new(disk_sectors, runs.collect());
    }
    let needed = spec.needed_sectors(disk_sectors, sector_bytes)?;
    let run = RegionShape { geometry, disk_sectors, needed, block_sectors }.run(spec);
    spec.check_room(run.sectors, block_sectors)?;
    ReservedRegion::new(disk_sectors, vec![run])
}

/// The slots of a region: with their tracks on a drive, each its own cylinder on an array.
fn slots(region: &ReservedRegion, geometry: Option<&Geometry>, block_sectors: u64) -> Vec<RegionSlot> {
    region.slots(block_sectors, |lbn| match geometry {
        Some(geometry) => {
            let track = geometry.track_at(lbn);
            (track.cylinder, track.head)
        }
        None => ((lbn.0 / block_sectors) as u32, 0),
    })
}

/// The layer of a volume: `drive` is its drive, if it is one.
///
/// *Errors:* the region does not fit on the volume.
pub(super) fn layer(
    spec: &RearrangeSpec,
    drive: Option<&Arc<Drive>>,
    disk_sectors: u64,
    sector_bytes: u32,
) -> Result<RearrangeLayer, Fault> {
    let geometry = drive.map(|drive| &drive.geometry);
    let region = region(spec, geometry, disk_sectors, sector_bytes)?;
    let block_sectors = spec.block_sectors(sector_bytes)?;
    let slots = slots(&region, geometry, block_sectors);
    let rearranger = Rearranger::new(spec.clone(), block_sectors, region, slots)?;
    Ok(RearrangeLayer::new(rearranger, drive.cloned()))
}

/// Checks that every volume has room for its region.
pub(super) fn check(rig: &RigSpec) -> Checked {
    for WholeVolume { info, drive } in whole_volumes(rig) {
        visible_sectors(rig, drive.as_ref(), &info)?;
    }
    Ok(())
}

/// The visible sectors of a volume: a single drive, or an array.
///
/// *Errors:* the region does not fit on it.
pub(super) fn visible_sectors(
    rig: &RigSpec,
    drive: Option<&NamedDrive<'_>>,
    whole: &VolumeInfo,
) -> Result<u64, Fault> {
    let Some(spec) = &rig.rearrange else { return Ok(whole.sectors) };
    let layout = |drive: &NamedDrive<'_>| {
        let fault = |error: SpecError| Fault::new(format!("drive[{}]", drive.group), error.to_string());
        Geometry::new(drive.spec).map_err(fault)
    };
    let geometry = drive.map(layout).transpose()?;
    let region = region(spec, geometry.as_ref(), whole.sectors, whole.sector_bytes);
    Ok(region.map_err(|fault| fault.below("rearrange"))?.visible_sectors())
}
