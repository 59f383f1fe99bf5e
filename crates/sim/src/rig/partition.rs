//! The partition that a load addresses on each volume: its check, and where it begins.

use super::checks::Checked;
use super::spec::RigSpec;
use super::{WholeVolume, rearrange, whole_volumes};
use crate::partition_layer;
use headstack_model::spec::Fault;
use headstack_workload::VolumeInfo;

const KEY: &str = "host.partition_start";

/// Checks that every volume has the sector at which its partition begins.
pub(super) fn check(rig: &RigSpec) -> Checked {
    if rig.host.partition_start == 0 {
        return Ok(());
    }
    if rig.node.is_some() {
        return Err(Fault::new(KEY, "is for a rig without `[node]`, whose volumes are whole disks"));
    }
    for WholeVolume { info, drive } in whole_volumes(rig) {
        if info.zones.is_some() {
            let message =
                format!("the zones of volume `{}` begin with the disk; only 0 is allowed", info.name);
            return Err(Fault::new(KEY, message));
        }
        let sectors = rearrange::visible_sectors(rig, drive.as_ref(), &info)?;
        first_sector(rig, &VolumeInfo { sectors, ..info })?;
    }
    Ok(())
}

/// The first sector of the partition on a volume with its visible sectors.
///
/// *Errors:* the volume has no such sector.
pub(super) fn first_sector(rig: &RigSpec, volume: &VolumeInfo) -> Result<u64, Fault> {
    let VolumeInfo { name, sectors, sector_bytes, .. } = volume;
    let first = partition_layer::first_sector(rig.host.partition_start, *sectors, *sector_bytes);
    first.map_err(|message| Fault::new(KEY, format!("{message} of volume `{name}`")))
}
