//! The zones of a job's file, from its keys and those of its volume.

use std::collections::btree_map::Entry;

use super::error::show;
use super::extent::Extent;
use super::file::Pattern;
use super::layout::Fault;
use super::settings::{Settings, ZoneMode};
use super::zoned::{ZonePointers, ZonedFile, ZonedVolumes};
use crate::{VolumeInfo, VolumeZones};

/// The most zones of a volume.
const ZONES_MAX: u64 = 1 << 24;

/// The zones of a job's file, and its extent cut to whole zones; `None` without `zonemode=zbd`.
pub(super) fn zones_of_file(
    zoned: &mut ZonedVolumes,
    settings: &Settings,
    pattern: &Pattern,
    extent: &mut Extent,
    volumes: &[VolumeInfo],
) -> Result<Option<ZonedFile>, Fault> {
    let volume = &volumes[extent.volume as usize];
    if settings.zones.mode != ZoneMode::ByWritePointers {
        return check_sequence(pattern, extent, volume).map(|()| None);
    }
    if volume.zones.is_some() && pattern.direction.writes && !settings.is_direct() {
        return Err(("zonemode", "needs direct=1: a page cache changes the order of writes".into()));
    }
    if let Entry::Vacant(new) = zoned.volumes.entry(extent.volume) {
        new.insert(pointers(settings, volume)?);
    }
    let zones = &zoned.volumes[&extent.volume];
    let (wanted, size) = (settings.zones.size, zones.zone_bytes);
    if wanted != 0 && wanted != size {
        let message = format!("{wanted} bytes, where the zones of `{}` have {size}", show(&volume.name));
        return Err(("zonesize", message));
    }
    let most = pattern.most();
    if most > size {
        return Err(("bs", format!("{most} bytes, where a zone has {size}")));
    }
    let bytes = extent.base + extent.start..end_on_volume(extent);
    let Some((whole, bounds)) = zones.whole_zones(bytes.clone()) else {
        let message = format!(
            "no whole zone of {size} bytes lies from byte {} to byte {} of the volume",
            bytes.start, bytes.end
        );
        return Err(("size", message));
    };
    extent.start = whole.start - extent.base;
    extent.reach = whole.end - whole.start;
    extent.end = whole.end - extent.base;
    let (volume, base) = (extent.volume, extent.base);
    let (reads_beyond, resets) = (settings.zones.read_beyond, settings.zones.resets);
    Ok(Some(ZonedFile { volume, bounds, base, reads_beyond, resets }))
}

/// Where the job ends on its volume, in bytes.
fn end_on_volume(extent: &Extent) -> u64 {
    extent.base + extent.end.min(extent.start.saturating_add(extent.reach))
}

/// Bytes at the start of the volume that may be written anywhere.
fn conventional_bytes(zones: &VolumeZones, volume: &VolumeInfo) -> u64 {
    let sectors = u64::from(zones.layout.conventional) * zones.layout.zone_sectors;
    (sectors * u64::from(volume.sector_bytes)).min(volume.bytes())
}

/// Checks that a job without `zonemode` does not write at random where the host has to write in sequence.
fn check_sequence(pattern: &Pattern, extent: &Extent, volume: &VolumeInfo) -> Result<(), Fault> {
    let Some(zones) = volume.zones.filter(|zones| zones.is_host_managed()) else { return Ok(()) };
    let anywhere = conventional_bytes(&zones, volume);
    if !(pattern.direction.writes && pattern.direction.random) || end_on_volume(extent) <= anywhere {
        return Ok(());
    }
    let name = show(&volume.name);
    Err((
        "rw",
        format!(
            "writes at random, which `{name}` refuses beyond its first {anywhere} bytes; say zonemode=zbd"
        ),
    ))
}

/// The write pointers of a volume before the first request.
fn pointers(settings: &Settings, volume: &VolumeInfo) -> Result<ZonePointers, Fault> {
    let sector = u64::from(volume.sector_bytes);
    let keys = volume.zones.as_ref();
    let zone_bytes = keys.map_or(settings.zones.size, |zones| zones.layout.zone_sectors * sector);
    if zone_bytes == 0 {
        let message = format!(
            "is missing: `{}` has no zones, so say the size that they are to have",
            show(&volume.name)
        );
        return Err(("zonesize", message));
    }
    if !zone_bytes.is_multiple_of(sector) {
        return Err(("zonesize", format!("{zone_bytes} bytes are no whole sectors ({sector} bytes)")));
    }
    let count = volume.bytes().div_ceil(zone_bytes);
    if count > ZONES_MAX {
        return Err(("zonesize", format!("makes {count} zones, where at most {ZONES_MAX} are allowed")));
    }
    let conventional = keys.map_or(0, |zones| conventional_bytes(zones, volume));
    let of_disk = keys.map_or(usize::MAX, |zones| zones.layout.open_max as usize);
    let open_max = match settings.zones.open_max {
        0 => of_disk,
        most => most as usize,
    };
    let full = keys.is_some_and(|zones| zones.full_at_first);
    Ok(ZonePointers::new(zone_bytes, volume.bytes(), conventional, open_max, full))
}
