//! Cylinder and serpentine layouts, with every kind of sparing.

use crate::laws::{self, Block};
use headstack_model::spec::{GeometrySpec, Layout, Sparing, Zone};
use headstack_model::{DriveSpec, Geometry};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;

const SPARINGS: [Sparing; 8] = [
    Sparing::None,
    Sparing::TracksPerZone,
    Sparing::SectorsPerTrack,
    Sparing::SectorsPerCylinder,
    Sparing::SectorsPerCylinderFront,
    Sparing::SectorsPerRange,
    Sparing::SectorsPerZone,
    Sparing::EndOfDisk,
];

/// The places of a zone that hold its blocks, in LBN order. Checks every place, region by region.
fn data_places(spec: &GeometrySpec, zone: &Zone) -> Option<Vec<u64>> {
    let track = u64::from(zone.sectors_per_track);
    let cylinder = track * u64::from(spec.heads);
    let places = cylinder * u64::from(zone.last_cylinder - zone.first_cylinder + 1);
    let spares = u64::from(zone.spares);
    let (region, spares) = match spec.sparing {
        Sparing::None => (places, 0),
        Sparing::TracksPerZone => (places, spares * track),
        Sparing::SectorsPerTrack => (track, spares),
        Sparing::SectorsPerCylinder | Sparing::SectorsPerCylinderFront => (cylinder, spares),
        Sparing::SectorsPerRange => {
            (cylinder * u64::from(spec.range_cylinders.expect("ranges have a size")), spares)
        }
        Sparing::SectorsPerZone | Sparing::EndOfDisk => (places, spares),
    };
    if spares >= region || spec.sparing == Sparing::None && zone.spares > 0 {
        return None;
    }
    let unit = if spec.sparing == Sparing::TracksPerZone { track } else { 1 };
    let slipped: BTreeSet<u64> = zone.slips.iter().flat_map(|slip| slip * unit..(slip + 1) * unit).collect();
    let at_front = spec.sparing == Sparing::SectorsPerCylinderFront;
    let to_end = spec.slip_to_end || spec.sparing == Sparing::EndOfDisk;
    let mut data = Vec::new();
    let mut start = 0;
    while start < places {
        let all: Vec<u64> = (start..places.min(start + region)).collect();
        let spares = if all.len() as u64 == region { spares as usize } else { 0 };
        let keep = |from: Vec<u64>| {
            let count = all.len() - spares;
            if from.len() < count {
                return (all.len() as u64 != region).then_some(from);
            }
            Some(if at_front { from[from.len() - count..].to_vec() } else { from[..count].to_vec() })
        };
        let good =
            |of: Vec<u64>| of.into_iter().filter(|place| !slipped.contains(place)).collect::<Vec<u64>>();
        data.extend(if to_end { good(keep(all.clone())?) } else { keep(good(all.clone()))? });
        start += region;
    }
    let gap = zone.front_gap_sectors as usize;
    (gap < data.len()).then(|| data[gap..].to_vec())
}

/// The block at a place of a zone. Its angle is the sum, in turns, of what the parameters mean.
fn block(spec: &GeometrySpec, zone: &Zone, place: u64, home: u64) -> Block {
    let spt = u64::from(zone.sectors_per_track);
    let heads = u64::from(spec.heads);
    let (track, sector) = (place / spt, place % spt);
    let (row, order) = (track / heads, track % heads);
    let pushed_from = match spec.sparing {
        Sparing::SectorsPerTrack => track * spt,
        Sparing::SectorsPerCylinder | Sparing::SectorsPerCylinderFront => row * heads * spt,
        _ => 0,
    };
    let pushes = zone.slips.iter().filter(|slip| **slip < pushed_from).count() as f64;
    let at = |place: u64| {
        let (row, order) = (place / spt / heads, place / spt % heads);
        let cylinder = zone.first_cylinder + row as u32;
        let reversed = match spec.layout {
            Layout::Serpentine => row % 2 == 1,
            Layout::SerpentineAbsolute => cylinder % 2 == 1,
            _ => false,
        };
        (cylinder, if reversed { heads - 1 - order } else { order } as u32)
    };
    let (cylinder, head) = at(place);
    let track_switches = (row * (heads - 1) + order) as f64;
    let sectors = zone.first_sector_offset_sectors
        + track_switches * zone.track_skew_sectors
        + row as f64 * zone.cylinder_skew_sectors
        + pushes
        + sector as f64;
    Block {
        cylinder,
        head,
        sector: sector as u32,
        sectors_per_track: zone.sectors_per_track,
        angle: sectors / spt as f64,
        remapped: place != home,
        track: at(if spec.sparing == Sparing::TracksPerZone { place } else { home }),
        home_track: (u64::from(zone.first_cylinder) << 32) + home / spt,
    }
}

/// All blocks of a disk, or none if the spec is inconsistent.
fn lay_out(spec: &GeometrySpec) -> Option<Vec<Block>> {
    let mut blocks = Vec::new();
    for zone in &spec.zones {
        let unit = if spec.sparing == Sparing::TracksPerZone { u64::from(zone.sectors_per_track) } else { 1 };
        let data = data_places(spec, zone)?;
        let homes: BTreeSet<u64> = data.iter().map(|place| place / unit).collect();
        let mut taken = BTreeSet::new();
        let mut defects = BTreeSet::new();
        for (defect, spare) in zone.remaps.iter().filter(|(defect, spare)| defect != spare) {
            if !defects.insert(*defect)
                || homes.contains(spare)
                || !taken.insert(*spare)
                || zone.slips.contains(spare)
            {
                return None;
            }
        }
        for home in data {
            let remap = zone.remaps.iter().find(|(defect, _)| *defect == home / unit);
            let place = remap.map_or(home, |(_, spare)| spare * unit + home % unit);
            blocks.push(block(spec, zone, place, home));
        }
    }
    Some(blocks)
}

/// A zone before its position is known: the number of cylinders skipped before it, its number of cylinders, and random slips and remaps.
#[derive(Clone, Debug)]
struct Draft {
    skipped: u32,
    cylinders: u32,
    zone: Zone,
    slips: Vec<Index>,
    remaps: Vec<(Index, Index)>,
}

prop_compose! {
    fn any_draft()(
        skipped in prop_oneof![4 => Just(0u32), 1 => 1u32..3],
        cylinders in 1u32..7,
        sectors_per_track in prop_oneof![1 => Just(1u32), 9 => 3u32..12],
        offset in 0.0..1.0f64,
        skews in (-1.0..1.0f64, -1.0..1.0f64),
        whole in any::<bool>(),
        front_gap_sectors in prop_oneof![3 => Just(0u32), 1 => 0u32..20],
        // If there are more spares than a cylinder has sectors, an incomplete region can hold more blocks than a full one.
        spares in prop_oneof![4 => 0u32..4, 1 => 4u32..24],
        slips in prop::collection::vec(any::<Index>(), 0..6),
        remaps in prop::collection::vec((any::<Index>(), any::<Index>()), 0..4),
    ) -> Draft {
        let skew = |turns: f64| {
            let sectors = turns * f64::from(sectors_per_track);
            if whole { sectors.trunc() } else { sectors }
        };
        let zone = Zone {
            first_cylinder: 0,
            last_cylinder: 0,
            sectors_per_track,
            first_sector_offset_sectors: skew(offset),
            track_skew_sectors: skew(skews.0),
            cylinder_skew_sectors: skew(skews.1),
            front_gap_sectors,
            spares,
            slips: Vec::new(),
            remaps: Vec::new(),
        };
        Draft { skipped, cylinders, zone, slips, remaps }
    }
}

prop_compose! {
    fn any_geometry()(
        heads in 1u32..5,
        layout in prop::sample::select(vec![Layout::Cylinder, Layout::Serpentine, Layout::SerpentineAbsolute]),
        sparing in prop::sample::select(SPARINGS.to_vec()),
        slip_to_end in any::<bool>(),
        range in 1u32..4,
        drafts in prop::collection::vec(any_draft(), 1..4),
    ) -> GeometrySpec {
        let mut spec = GeometrySpec {
            heads,
            cylinders: 0,
            layout,
            sparing,
            slip_to_end,
            range_cylinders: (sparing == Sparing::SectorsPerRange).then_some(range),
            zones: Vec::new(),
            band_zones: Vec::new(),
            extents: None,
        };
        for draft in drafts {
            let zone = finish(&spec, draft);
            spec.cylinders = zone.last_cylinder + 1;
            spec.zones.push(zone);
        }
        spec
    }
}

/// Places a drafted zone behind those of `spec`, and its defects on existing places.
fn finish(spec: &GeometrySpec, draft: Draft) -> Zone {
    let mut zone = draft.zone;
    zone.first_cylinder = spec.cylinders + draft.skipped;
    zone.last_cylinder = zone.first_cylinder + draft.cylinders - 1;
    let tracks = (draft.cylinders * spec.heads) as usize;
    let by_track = spec.sparing == Sparing::TracksPerZone;
    let places = if by_track { tracks } else { tracks * zone.sectors_per_track as usize };
    if spec.sparing == Sparing::None {
        zone.spares = 0;
    }
    let slips: BTreeSet<u64> = draft.slips.iter().map(|slip| slip.index(places) as u64).collect();
    zone.slips = slips.into_iter().collect();
    // Remap only to free places: most random places hold data, which would be an error.
    let unit = if by_track { u64::from(zone.sectors_per_track) } else { 1 };
    let homes: BTreeSet<u64> =
        data_places(spec, &zone).unwrap_or_default().iter().map(|place| place / unit).collect();
    let free: Vec<u64> =
        (0..places as u64).filter(|place| !homes.contains(place) && !zone.slips.contains(place)).collect();
    for (defect, spare) in draft.remaps {
        if !free.is_empty() {
            zone.remaps.push((defect.index(places) as u64, *spare.get(&free)));
        }
    }
    zone
}

/// A drive with this geometry and its full capacity, and all of its blocks.
fn drive(spec: &GeometrySpec) -> Option<(DriveSpec, Vec<Block>)> {
    let blocks = lay_out(spec)?;
    let capacity_sectors = blocks.len() as u64;
    Some((DriveSpec { capacity_sectors, geometry: spec.clone(), ..laws::any_drive() }, blocks))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_zoned_block_matches_a_count_of_sectors(spec in any_geometry()) {
        let Some((drive, blocks)) = drive(&spec) else {
            let drive = DriveSpec { capacity_sectors: 1, geometry: spec, ..laws::any_drive() };
            prop_assert!(Geometry::new(&drive).is_err(), "{:?} does not fit", drive.geometry);
            return Ok(());
        };
        let geometry = Geometry::new(&drive).map_err(|error| TestCaseError::fail(error.to_string()))?;
        laws::check(&geometry, &blocks, spec.cylinders, spec.heads)?;
    }

    #[test]
    fn smaller_capacity_changes_only_the_end(spec in any_geometry(), keep in 0.0..1.0f64) {
        let Some((mut drive, mut blocks)) = drive(&spec) else { return Ok(()) };
        blocks.truncate((blocks.len() as f64 * keep) as usize + 1);
        drive.capacity_sectors = blocks.len() as u64;
        let geometry = Geometry::new(&drive).map_err(|error| TestCaseError::fail(error.to_string()))?;
        laws::check(&geometry, &blocks, spec.cylinders, spec.heads)?;
    }

    #[test]
    fn capacity_beyond_the_zones_is_rejected(spec in any_geometry(), more in 1u64..1000) {
        let Some((mut drive, blocks)) = drive(&spec) else { return Ok(()) };
        drive.capacity_sectors += more;
        let error = Geometry::new(&drive).expect_err("there is no room");
        prop_assert_eq!(&error.key, "capacity_sectors");
        for number in [drive.capacity_sectors, blocks.len() as u64] {
            prop_assert!(error.message.contains(&number.to_string()), "{}", error);
        }
    }
}
