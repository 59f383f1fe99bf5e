//! What a load needs to know about a rig: its volumes.

use headstack_model::DriveSpec;
use headstack_model::spec::did_you_mean;
use headstack_model::zones::{ZoneLayout, ZoneModel};

/// A run of blocks that a load can address: a bare drive, or several behind a controller that look like one.
///
/// A load counts the volumes of its rig from 0 ([`Issue::device`](crate::Issue::device)).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct VolumeInfo {
    pub name: String,
    pub sectors: u64,
    pub sector_bytes: u32,
    /// Its zones, if it is a disk with zones that are written in sequence.
    pub zones: Option<VolumeZones>,
}

/// The zones of a volume, and their state before the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct VolumeZones {
    pub layout: ZoneLayout,
    pub full_at_first: bool,
}

impl VolumeZones {
    /// The zones of a drive, if it has any.
    pub fn from_spec(drive: &DriveSpec) -> Option<VolumeZones> {
        let keys = drive.zones.as_ref()?;
        Some(VolumeZones { layout: keys.layout(drive.capacity_sectors), full_at_first: keys.full_at_first })
    }

    /// Whether the disk refuses writes that are not at a write pointer.
    pub fn is_host_managed(&self) -> bool {
        self.layout.model == ZoneModel::HostManaged
    }
}

impl VolumeInfo {
    /// Bytes on it.
    pub fn bytes(&self) -> u64 {
        self.sectors.saturating_mul(u64::from(self.sector_bytes))
    }
}

/// The number of the volume of this name.
///
/// *Errors:* there is none; the message names the nearest.
pub fn find_volume(volumes: &[VolumeInfo], name: &str) -> Result<usize, String> {
    let found = volumes.iter().position(|volume| volume.name == name);
    let known = volumes.iter().map(|volume| volume.name.as_str());
    found.ok_or_else(|| format!("the rig has no volume `{name}`{}", did_you_mean(name, known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_bytes_are_sectors_times_sector_size() {
        let volume = VolumeInfo { name: "sda".to_string(), sectors: 1000, sector_bytes: 4096, zones: None };
        assert_eq!(volume.bytes(), 4_096_000);
    }
}
