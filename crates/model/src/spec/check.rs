//! Checks of a drive file beyond the types: ranges, order, and values that must agree. The range of a single key is an attribute of its
//! field.

mod queue;
mod slow;

use super::error::Fault;
use super::*;
use crate::SheetCurve;
use queue::queue;

type Checked = Result<(), Fault>;

/// Checks everything that needs no geometry.
pub(super) fn check(spec: &DriveSpec) -> Checked {
    if spec.name.is_empty()
        || !spec.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    {
        return Err(Fault::new("name", format!("`{}`: use lower case, digits and hyphens", spec.name)));
    }
    RULES.check(spec, "")?;
    sector_size("sector_bytes", spec.sector_bytes)?;
    sector_size("physical_sector_bytes", spec.physical_sector_bytes)?;
    if !spec.physical_sector_bytes.is_multiple_of(spec.sector_bytes) {
        return Err(Fault::new("physical_sector_bytes", "must be a multiple of sector_bytes"));
    }
    geometry(&spec.geometry)?;
    mechanics(&spec.mechanics, spec.geometry.cylinders)?;
    slow::slow(&spec.mechanics, spec.geometry.heads, spec.capacity_sectors)?;
    cache(&spec.cache)?;
    if let Some(log) = &spec.media_cache {
        media_cache(log, spec.cache.buffered)?;
    }
    if let Some(zones) = &spec.zones {
        host_zones(zones, spec)?;
    }
    if let Some(bands) = &spec.shingled {
        shingled(bands, spec)?;
    }
    tags(spec)?;
    queue(&spec.queue, spec.tagging())
}

/// The kind of tags must be that of the interface.
fn tags(spec: &DriveSpec) -> Checked {
    let (Some(tagging), Some(interface)) = (spec.queue.tagging, spec.bus.interface) else { return Ok(()) };
    let allowed = interface.tagging();
    if tagging == allowed {
        return Ok(());
    }
    let message = format!(
        "{}: bus.interface is {}, whose tags are {}; leave queue.tagging out, or correct bus.interface",
        quoted(&tagging),
        quoted(&interface),
        quoted(&allowed)
    );
    Err(Fault::new("queue.tagging", message))
}

/// A choice as the file writes it.
fn quoted(choice: &impl serde::Serialize) -> String {
    toml::Value::try_from(choice).expect("a choice is a word").to_string()
}

fn ms(key: &str, value: f64, most: f64) -> Checked {
    within(key, value, 0.0, most, "ms")
}

fn sector_size(key: &str, bytes: u32) -> Checked {
    if bytes.is_power_of_two() && (256..=65_536).contains(&bytes) || matches!(bytes, 520 | 524 | 528) {
        return Ok(());
    }
    Err(Fault::new(key, format!("{bytes} is no size of a sector (512, 520, 4096…)")))
}

fn geometry(spec: &GeometrySpec) -> Checked {
    let banded = matches!(spec.layout, Layout::Ff | Layout::Af | Layout::Fa | Layout::Aa);
    let extents = spec.layout == Layout::Extents;
    let wanted = [(!banded && !extents, "zones"), (banded, "band_zones"), (extents, "extents")];
    let present = [!spec.zones.is_empty(), !spec.band_zones.is_empty(), spec.extents.is_some()];
    for ((needed, name), present) in wanted.into_iter().zip(present) {
        if needed != present {
            let message = if needed { "this layout needs them" } else { "this layout has no use for them" };
            return Err(Fault::new(format!("geometry.{name}"), message));
        }
    }
    if spec.zones.is_empty() && spec.sparing != Sparing::None {
        return Err(Fault::new(
            "geometry.sparing",
            "this layout has no use for it: its zones name their spares",
        ));
    }
    if spec.sparing == Sparing::SectorsPerRange && spec.range_cylinders.is_none() {
        return Err(Fault::new("geometry.sparing", "`sectors-per-range` needs range_cylinders"));
    }
    cylinder_ranges("zones", spec, spec.zones.iter().map(|z| (z.first_cylinder, z.last_cylinder)))?;
    cylinder_ranges("band_zones", spec, spec.band_zones.iter().map(|z| (z.first_cylinder, z.last_cylinder)))?;
    for (index, zone) in spec.zones.iter().enumerate() {
        check_zone(&format!("geometry.zones[{index}]"), zone, spec)?;
    }
    for (index, zone) in spec.band_zones.iter().enumerate() {
        check_band_zone(&format!("geometry.band_zones[{index}]"), zone, spec)?;
    }
    Ok(())
}

/// Zones must rise, touch, and stay on the disk.
fn cylinder_ranges(name: &str, spec: &GeometrySpec, ranges: impl Iterator<Item = (u32, u32)>) -> Checked {
    let mut next = None;
    for (index, (first, last)) in ranges.enumerate() {
        let key = |field: &str| format!("geometry.{name}[{index}].{field}");
        if next.is_some_and(|next| first < next) {
            return Err(Fault::new(key("first_cylinder"), format!("{first} overlaps the zone before it")));
        }
        if last < first {
            return Err(Fault::new(
                key("last_cylinder"),
                format!("{last} lies before first_cylinder {first}"),
            ));
        }
        if last >= spec.cylinders {
            let message = format!("{last} is not on a disk of {} cylinders", spec.cylinders);
            return Err(Fault::new(key("last_cylinder"), message));
        }
        next = Some(last + 1);
    }
    Ok(())
}

fn check_zone(key: &str, zone: &Zone, spec: &GeometrySpec) -> Checked {
    let field = |name: &str| format!("{key}.{name}");
    let track = f64::from(zone.sectors_per_track);
    within(&field("first_sector_offset_sectors"), zone.first_sector_offset_sectors, 0.0, track, "sectors")?;
    within(&field("track_skew_sectors"), zone.track_skew_sectors, -track, track, "sectors")?;
    within(&field("cylinder_skew_sectors"), zone.cylinder_skew_sectors, -track, track, "sectors")?;
    let tracks = u64::from(zone.last_cylinder - zone.first_cylinder + 1) * u64::from(spec.heads);
    let places = match spec.sparing {
        Sparing::TracksPerZone => tracks,
        _ => tracks * u64::from(zone.sectors_per_track),
    };
    for (index, slip) in zone.slips.iter().enumerate() {
        if *slip >= places || index > 0 && zone.slips[index - 1] >= *slip {
            let message = format!("{slip}: slips must rise and lie below {places}");
            return Err(Fault::new(field("slips"), message));
        }
    }
    for (defect, spare) in &zone.remaps {
        if *defect >= places || *spare >= places {
            let message = format!("({defect}, {spare}): remaps must lie below {places}");
            return Err(Fault::new(field("remaps"), message));
        }
    }
    Ok(())
}

fn check_band_zone(key: &str, zone: &BandZone, spec: &GeometrySpec) -> Checked {
    let field = |name: &str| format!("{key}.{name}");
    let entries = zone.sectors_per_track.len();
    if entries != 1 && entries != spec.heads as usize {
        let message = format!("{entries} entries; give one, or one for each of {} heads", spec.heads);
        return Err(Fault::new(field("sectors_per_track"), message));
    }
    if zone.slips.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(Fault::new(field("slips"), "slips must rise"));
    }
    Ok(())
}

fn mechanics(spec: &MechanicsSpec, cylinders: u32) -> Checked {
    if spec.constant_access_ms.is_none() {
        seek(&spec.seek, cylinders)?;
    } else if spec.seek != SeekSpec::default() {
        let message = "a drive whose accesses all take `constant_access_ms` has no use for it";
        return Err(Fault::new("mechanics.seek", message));
    }
    if let Some(turns) = &spec.lost_turns { lost_turns(turns) } else { Ok(()) }
}

fn lost_turns(spec: &LostTurns) -> Checked {
    let key = "mechanics.lost_turns.turns_shares";
    let (mut turns_before, mut share_before) = (0, 0.5);
    for (turns, share) in &spec.turns_shares {
        within(key, f64::from(*turns), f64::from(turns_before) + 1.0, 10_000.0, "turns: they must rise")?;
        within(key, *share, 1e-12, share_before, ": shares must fall")?;
        (turns_before, share_before) = (*turns, *share);
    }
    Ok(())
}

fn seek(spec: &SeekSpec, cylinders: u32) -> Checked {
    let sources = [!spec.points_cylinders_ms.is_empty() || !spec.pieces.is_empty(), spec.physical.is_some()];
    if (sources == [false, false] && spec.sheet.is_none()) || sources == [true, true] {
        let message = "give points_cylinders_ms, pieces, both, physical, or sheet";
        return Err(Fault::new("mechanics.seek", message));
    }
    if let Some(sheet) = &spec.sheet {
        sheet_seek(sheet, cylinders)?;
    }
    for (name, points) in [
        ("points_cylinders_ms", &spec.points_cylinders_ms),
        ("write_points_cylinders_ms", &spec.write_points_cylinders_ms),
    ] {
        let key = format!("mechanics.seek.{name}");
        let mut before = 0;
        for (distance, time) in points {
            if *distance <= before {
                return Err(Fault::new(key, format!("{distance}: distances must rise from 1 on")));
            }
            within(&key, *time, 0.0, 1000.0, "ms")?;
            before = *distance;
        }
    }
    for (index, piece) in spec.pieces.iter().enumerate() {
        let key = format!("mechanics.seek.pieces[{index}]");
        let last = index + 1 == spec.pieces.len();
        if piece.up_to_cylinders.is_none() != last {
            return Err(Fault::new(key, "every piece but the last has up_to_cylinders"));
        }
        if index > 0
            && piece.up_to_cylinders.is_some_and(|to| Some(to) <= spec.pieces[index - 1].up_to_cylinders)
        {
            return Err(Fault::new(key, "up_to_cylinders must rise"));
        }
    }
    if let Some(physical) = spec.physical {
        let key = |name: &str| format!("mechanics.seek.physical.{name}");
        ms(&key("single_cylinder_ms"), physical.single_cylinder_ms, physical.full_stroke_ms)?;
        ms(&key("settle_ms"), physical.settle_ms, physical.single_cylinder_ms)?;
        let half = f64::from(cylinders) / 2.0;
        within(&key("acceleration_cylinders"), physical.acceleration_cylinders, 1e-3, half, "cylinders")?;
    }
    Ok(())
}

fn sheet_seek(sheet: &SheetSeek, cylinders: u32) -> Checked {
    let key = |name: &str| format!("mechanics.seek.sheet.{name}");
    ms(&key("single_track_ms"), sheet.single_track_ms, sheet.average_ms)?;
    if let Some(settle) = sheet.settle_ms {
        within(&key("settle_ms"), settle, sheet.single_track_ms, sheet.average_ms, "ms")?;
    }
    let [least, most] = SheetCurve::average_limits(sheet, cylinders);
    within(&key("average_ms"), sheet.average_ms, least, most, "ms")?;
    let write_average = sheet.write_average_ms.unwrap_or(sheet.average_ms);
    within(&key("write_average_ms"), write_average, sheet.average_ms, sheet.average_ms + 50.0, "ms")?;
    match (sheet.write_single_track_ms, sheet.write_average_ms) {
        (Some(_), None) => Err(Fault::new(key("write_single_track_ms"), "needs write_average_ms")),
        (Some(single), Some(average)) => {
            within(&key("write_single_track_ms"), single, sheet.single_track_ms, average, "ms")
        }
        (None, _) => Ok(()),
    }
}

fn cache(spec: &CacheSpec) -> Checked {
    match (spec.segmentation, spec.segments_max) {
        (Segmentation::Adaptive, Some(most)) => {
            within("cache.segments_max", f64::from(most), f64::from(spec.segments), 1e6, "segments")?;
        }
        (Segmentation::Adaptive, None) => {
            return Err(Fault::new("cache.segmentation", "`adaptive` needs segments_max"));
        }
        (Segmentation::Fixed, Some(_)) => {
            return Err(Fault::new("cache.segments_max", "is for segmentation = \"adaptive\""));
        }
        _ => {}
    }
    if spec.read_ahead == ReadAhead::Sequence && spec.read_on_arrival {
        let message = "`sequence` needs read_on_arrival = false: a segment must begin with the first block of the read that filled it";
        return Err(Fault::new("cache.read_ahead", message));
    }
    let segment = f64::from(spec.segment_sectors);
    within("cache.read_ahead_max_sectors", f64::from(spec.read_ahead_max_sectors), 0.0, segment, "sectors")?;
    let most = f64::from(spec.read_ahead_max_sectors);
    within("cache.read_ahead_min_sectors", f64::from(spec.read_ahead_min_sectors), 0.0, most, "sectors")?;
    within(
        "cache.write_segments",
        f64::from(spec.write_segments),
        1.0,
        f64::from(spec.segments),
        "segments",
    )?;
    if spec.write_cache == WriteCache::Full {
        if spec.dirty_max_sectors == 0 {
            let message = "`full` needs dirty_max_sectors, the most written sectors that wait in the cache for the \
                           media (1 to 1000000000); it is 0 or absent";
            return Err(Fault::new("cache.write_cache", message));
        }
        within("cache.dirty_max_sectors", spec.dirty_max_sectors as f64, 1.0, 1e9, "sectors")?;
        let most = spec.dirty_max_sectors as f64;
        within("cache.dirty_start_sectors", spec.dirty_start_sectors as f64, 0.0, most, "sectors")?;
    }
    Ok(())
}

fn media_cache(spec: &MediaCacheSpec, is_buffered: bool) -> Checked {
    if !is_buffered {
        return Err(Fault::new(
            "media_cache",
            "a drive whose cache.buffered is false collects no writes; remove the section",
        ));
    }
    let key = |name: &str| format!("media_cache.{name}");
    let most = f64::from(spec.records_max);
    within(&key("empty_from_records"), f64::from(spec.empty_from_records), 1.0, most, "writes")?;
    within(&key("empty_run_records"), f64::from(spec.empty_run_records), 1.0, most, "writes")
}

fn host_zones(zones: &ZoneSpec, spec: &DriveSpec) -> Checked {
    let capacity = spec.capacity_sectors;
    let physical = u64::from(spec.physical_sector_bytes / spec.sector_bytes);
    within("zones.zone_sectors", zones.zone_sectors as f64, physical as f64, capacity as f64, "sectors")?;
    if !zones.zone_sectors.is_multiple_of(physical) {
        let message =
            format!("{} is no multiple of the {physical} sectors of a physical one", zones.zone_sectors);
        return Err(Fault::new("zones.zone_sectors", message));
    }
    let count = capacity.div_ceil(zones.zone_sectors);
    within("zones", count as f64, 1.0, 1e7, "zones")?;
    within("zones.conventional", f64::from(zones.conventional), 0.0, (count - 1) as f64, "zones")?;
    within("zones.open_max", f64::from(zones.open_max), 1.0, count as f64, "zones")?;
    let least = f64::from(zones.open_max);
    if let Some(most) = zones.active_max {
        within("zones.active_max", f64::from(most), least, count as f64, "zones")?;
    }
    Ok(())
}

fn shingled(bands: &ShingledSpec, spec: &DriveSpec) -> Checked {
    if !spec.cache.buffered {
        let message =
            "false: a shingled drive merges bands in its cache; set it to true, or remove `shingled`";
        return Err(Fault::new("cache.buffered", message));
    }
    if spec.media_cache.is_some() {
        let message = "it has a log of its own; remove the section `media_cache`";
        return Err(Fault::new("shingled", message));
    }
    if !matches!(spec.cache.write_cache, WriteCache::Full | WriteCache::None) {
        let message = "a shingled drive needs `full` or `none`; correct it, or remove `shingled`";
        return Err(Fault::new("cache.write_cache", message));
    }
    let key = |name: &str| format!("shingled.{name}");
    let capacity = spec.capacity_sectors as f64;
    within(&key("band_sectors"), f64::from(bands.band_sectors), 8.0, capacity.min(4e6), "sectors")?;
    if bands.pieces > 1 && bands.cache_placement == CachePlacement::Outer {
        return Err(Fault::new(key("pieces"), "a cache at the outer diameter has one; leave it out"));
    }
    // Eight of the largest writes, and the records of bands that cleaning needs room for.
    let records = u64::from(bands.header_sectors) * (u64::from(bands.record_extents_max) + 8);
    let least = u64::from(bands.band_sectors) + 16 * (65_536 + records);
    within(
        &key("cache_sectors"),
        bands.cache_sectors as f64,
        (least * u64::from(bands.record_copies)) as f64,
        capacity / 2.0,
        "sectors",
    )?;
    let least = 16.0 * f64::from(bands.record_extents_max);
    within(&key("map_entries_max"), f64::from(bands.map_entries_max), least, 1e7, "extents")
}
