//! A table of a load file over the volumes of a rig: its region, and sizes in sectors.

use headstack_model::Lbn;
use headstack_model::spec::Fault;

use super::area::Area;
use headstack_workload::{Load, Member, Region, ShapeError};
use headstack_workload::{VolumeInfo, find_volume};

/// A table of the file, with what is needed to build its load.
pub(super) struct Table<'a> {
    pub(super) key: &'a str,
    pub(super) volumes: &'a [VolumeInfo],
    pub(super) seed: u64,
}

pub(super) struct Place {
    pub(super) device: u32,
    pub(super) sector_bytes: u64,
    pub(super) region: Region,
}

impl Table<'_> {
    pub(super) fn fault(&self, name: &str, message: impl Into<String>) -> Fault {
        Fault::new(format!("{}.{name}", self.key), message)
    }

    pub(super) fn shape_fault(&self, error: &ShapeError) -> Fault {
        let name = match error {
            ShapeError::Drift { .. } => "drift_per_hour",
            ShapeError::Groups { .. } => "group_bytes",
            _ => "area",
        };
        self.fault(name, error.to_string())
    }

    pub(super) fn region_of(&self, area: &Area) -> Result<Place, Fault> {
        let device = match &area.volume {
            Some(name) => {
                find_volume(self.volumes, name).map_err(|error| self.fault("area.volume", error))?
            }
            None => 0,
        };
        let Some(volume) = self.volumes.get(device) else {
            return Err(self.fault("area", "the rig has no volume"));
        };
        let sector_bytes = u64::from(volume.sector_bytes.max(1));
        let first = whole(area.offset_bytes, sector_bytes).map_err(|e| self.fault("area.offset_bytes", e))?;
        let left = volume.sectors.checked_sub(first).filter(|left| *left > 0);
        let Some(left) = left else {
            let message = format!("{} is not before the end of `{}`", area.offset_bytes, volume.name);
            return Err(self.fault("area.offset_bytes", message));
        };
        let sectors = match area.size_bytes {
            Some(bytes) => {
                whole(bytes, sector_bytes).map_err(|error| self.fault("area.size_bytes", error))?
            }
            None => left,
        };
        if sectors > left {
            let message = format!("more than the {} bytes left of `{}`", left * sector_bytes, volume.name);
            return Err(self.fault("area.size_bytes", message));
        }
        Ok(Place { device: device as u32, sector_bytes, region: Region { first: Lbn(first), sectors } })
    }

    pub(super) fn sectors(&self, place: &Place, name: &str, bytes: u64) -> Result<u64, Fault> {
        match whole(bytes, place.sector_bytes) {
            Ok(0) => Err(self.fault(name, "0, where at least a sector is needed")),
            Ok(sectors) => Ok(sectors),
            Err(error) => Err(self.fault(name, error)),
        }
    }

    /// A size in sectors that a request may have.
    pub(super) fn request(&self, place: &Place, name: &str, bytes: u64) -> Result<u32, Fault> {
        let sectors = self.sectors(place, name, bytes)?;
        u32::try_from(sectors).map_err(|_| self.fault(name, format!("{bytes} bytes are too many")))
    }

    pub(super) fn request_and_alignment(
        &self,
        place: &Place,
        bytes: u64,
        alignment: Option<u64>,
    ) -> Result<(u32, u32), Fault> {
        let sectors = self.request(place, "request_bytes", bytes)?;
        let alignment = alignment.map(|bytes| self.request(place, "alignment_bytes", bytes)).transpose()?;
        Ok((sectors, alignment.unwrap_or(sectors)))
    }

    pub(super) fn member<L: Load + 'static>(
        &self,
        place: &Place,
        sources: u32,
        load: Result<L, ShapeError>,
    ) -> Result<Member, Fault> {
        let load = load.map_err(|error| self.shape_fault(&error))?;
        Ok(Member { load: Box::new(load), device: place.device, sources })
    }
}

fn whole(bytes: u64, sector_bytes: u64) -> Result<u64, String> {
    if bytes.is_multiple_of(sector_bytes) {
        return Ok(bytes / sector_bytes);
    }
    Err(format!("{bytes} bytes are no whole number of sectors of {sector_bytes} bytes"))
}
