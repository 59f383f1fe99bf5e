//! `dm_layout_g1` (zones) into `[geometry]`.

use crate::fields::{Fields, Notes};
use crate::parse::{Block, Value};
use headstack_model::SpecError;
use headstack_model::spec::{GeometrySpec, Layout, Sparing, Zone};

/// The layout of a disk: its geometry and its capacity.
pub(crate) struct Laid {
    pub(crate) geometry: GeometrySpec,
    pub(crate) capacity: u64,
}

pub(crate) fn convert(block: &Block, heads: u32, cylinders: u32, notes: &Notes) -> Result<Laid, SpecError> {
    match block.kind.as_str() {
        "dm_layout_g1" => zoned(block, heads, cylinders, notes),
        "dm_layout_g4" => crate::grammar::convert(block, heads, cylinders, notes),
        kind => {
            let message = format!("`{kind}` is not read; dm_layout_g1 and dm_layout_g4 are");
            Err(block.place.error("Layout Model", message))
        }
    }
}

fn zoned(block: &Block, heads: u32, cylinders: u32, notes: &Notes) -> Result<Laid, SpecError> {
    let mut fields = Fields::new(block, notes);
    let scheme = "LBN-to-PBN mapping scheme";
    let layout = match fields.count(scheme)? {
        0 => Layout::Cylinder,
        1 => Layout::Serpentine,
        2 => Layout::SerpentineAbsolute,
        other => return Err(fields.error(scheme, format!("{other} is none of 0, 1, 2"))),
    };
    let (sparing, slip_to_end) = sparing(&mut fields)?;
    let range = "Rangesize for sparing";
    let range_cylinders = match sparing {
        Sparing::SectorsPerRange => Some(fields.count(range)?.max(1)),
        _ => {
            fields.skip(range, "counts only with spares for each range of cylinders (scheme 8)");
            None
        }
    };
    let in_turns = skew_unit(&mut fields)?.unwrap_or(false);
    let list = fields.list("Zones")?.ok_or_else(|| fields.error("Zones", "is missing"))?;
    let mut zones = Vec::new();
    for item in list {
        match item {
            Value::Block(zone) if zone.kind == "dm_layout_g1_zone" => {
                zones.push(one_zone(zone, in_turns, notes)?)
            }
            _ => return Err(fields.error("Zones", "needs a list of dm_layout_g1_zone blocks")),
        }
    }
    fields.finish();
    let last = zones.iter().map(|zone| zone.last_cylinder).max().unwrap_or(0);
    let geometry = GeometrySpec {
        heads,
        cylinders: cylinders.max(last.saturating_add(1)),
        layout,
        sparing,
        slip_to_end,
        range_cylinders,
        zones,
        band_zones: Vec::new(),
        extents: None,
    };
    let capacity = geometry.zones.iter().map(|zone| zone_capacity(&geometry, zone)).sum::<i128>();
    match u64::try_from(capacity) {
        Ok(capacity) if capacity > 0 => Ok(Laid { geometry, capacity }),
        _ => Err(block.place.error("Zones", "hold no block")),
    }
}

fn sparing(fields: &mut Fields) -> Result<(Sparing, bool), SpecError> {
    let key = "Sparing scheme used";
    Ok(match fields.count(key)? {
        0 => (Sparing::None, false),
        1 => (Sparing::TracksPerZone, false),
        2 => (Sparing::SectorsPerCylinder, false),
        3 => (Sparing::SectorsPerTrack, false),
        4 => (Sparing::SectorsPerCylinder, true),
        5 => (Sparing::SectorsPerCylinderFront, false),
        6 => (Sparing::SectorsPerCylinderFront, true),
        7 => (Sparing::EndOfDisk, false),
        8 => (Sparing::SectorsPerRange, false),
        9 => (Sparing::SectorsPerZone, false),
        10 => (Sparing::SectorsPerZone, true),
        other => return Err(fields.error(key, format!("{other} is none of 0 to 10"))),
    })
}

/// Whether skews are in revolutions, if the block says so.
fn skew_unit(fields: &mut Fields) -> Result<Option<bool>, SpecError> {
    match fields.word("Skew units")? {
        None => Ok(None),
        Some(("sectors", _)) => Ok(Some(false)),
        Some(("revolutions", _)) => Ok(Some(true)),
        Some((other, param)) => {
            Err(param.place.error("Skew units", format!("`{other}` is neither sectors nor revolutions")))
        }
    }
}

fn one_zone(block: &Block, disk_in_turns: bool, notes: &Notes) -> Result<Zone, SpecError> {
    let mut fields = Fields::new(block, notes);
    let in_turns = skew_unit(&mut fields)?.unwrap_or(disk_in_turns);
    let sectors_per_track = fields.count("Blocks per track")?;
    if sectors_per_track == 0 {
        return Err(fields.error("Blocks per track", "a track has at least one"));
    }
    let unit = if in_turns { f64::from(sectors_per_track) } else { 1.0 };
    let mut slips = fields.indices("slips")?;
    if !slips.is_sorted_by(|a, b| a < b) {
        slips.sort_unstable();
        slips.dedup();
        fields.note("slips", "carried over in rising order, each once");
    }
    let defects = fields.indices("defects")?;
    if defects.len() % 2 != 0 {
        return Err(fields.error("defects", "needs pairs of a defect and its spare"));
    }
    let zone = Zone {
        first_cylinder: fields.count("First cylinder number")?,
        last_cylinder: fields.count("Last cylinder number")?,
        sectors_per_track,
        first_sector_offset_sectors: fields.number_or_zero("Offset of first block")? * unit,
        track_skew_sectors: fields.number_or_zero("Skew for track switch")? * unit,
        cylinder_skew_sectors: fields.number_or_zero("Skew for cylinder switch")? * unit,
        front_gap_sectors: fields.count_or("Empty space at zone front", 0)?,
        spares: fields.count_or("Number of spares", 0)?,
        slips,
        remaps: defects.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
    };
    if zone.last_cylinder < zone.first_cylinder {
        return Err(fields.error("Last cylinder number", "lies before the first"));
    }
    fields.finish();
    Ok(zone)
}

/// Blocks of a zone: its sectors without the front gap and the spares.
fn zone_capacity(geometry: &GeometrySpec, zone: &Zone) -> i128 {
    let cylinders = i128::from(zone.last_cylinder - zone.first_cylinder) + 1;
    let tracks = cylinders * i128::from(geometry.heads);
    let track = i128::from(zone.sectors_per_track);
    let spares = i128::from(zone.spares);
    let slips = zone.slips.len() as i128;
    let kept = match geometry.sparing {
        Sparing::None => 0,
        Sparing::TracksPerZone => spares * track,
        Sparing::SectorsPerTrack => spares * tracks,
        Sparing::SectorsPerCylinder | Sparing::SectorsPerCylinderFront => spares * cylinders,
        Sparing::SectorsPerRange => spares * (cylinders / i128::from(geometry.range_cylinders.unwrap_or(1))),
        Sparing::SectorsPerZone => spares,
        Sparing::EndOfDisk => slips,
    };
    let borrowed = if geometry.slip_to_end { slips } else { 0 };
    tracks * track - i128::from(zone.front_gap_sectors) - kept - borrowed
}
