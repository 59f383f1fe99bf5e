//! Seek-first layouts, in which every surface has a separate density.

use crate::laws::{self, Block};
use headstack_model::spec::{BandZone, GeometrySpec, Layout, Sparing};
use headstack_model::{DriveSpec, Geometry, Lbn};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;

const LAYOUTS: [Layout; 4] = [Layout::Ff, Layout::Af, Layout::Fa, Layout::Aa];

/// Tracks of a zone in LBN order, walked one by one: (cylinder, head, angle of the first sector).
fn walk(spec: &GeometrySpec, zone: &BandZone) -> Vec<(u32, u32, f64)> {
    let (alternates, reverses) = match spec.layout {
        Layout::Ff => (false, false),
        Layout::Af => (true, false),
        Layout::Fa => (false, true),
        _ => (true, true),
    };
    let mut tracks: Vec<(u32, u32, f64)> = Vec::new();
    let cylinders: Vec<u32> = (zone.first_cylinder..=zone.last_cylinder).collect();
    for (band, cylinders) in cylinders.chunks(zone.band_tracks as usize).enumerate() {
        let mut heads: Vec<u32> = (0..spec.heads).collect();
        if reverses && band % 2 == 1 {
            heads.reverse();
        }
        for (order, head) in heads.into_iter().enumerate() {
            let mut cylinders = cylinders.to_vec();
            if alternates && order % 2 == 1 {
                cylinders.reverse();
            }
            for cylinder in cylinders {
                let angle = match tracks.last() {
                    None => zone.first_sector_offset_turns,
                    Some((_, before, angle)) if *before == head => angle + zone.track_skew_turns,
                    Some((_, _, angle)) => angle + zone.head_skew_turns,
                };
                tracks.push((cylinder, head, angle));
            }
        }
    }
    tracks
}

/// All blocks of a disk, or none if the spec is inconsistent.
fn lay_out(spec: &GeometrySpec) -> Option<Vec<Block>> {
    let mut blocks = Vec::new();
    for (number, zone) in spec.band_zones.iter().enumerate() {
        let mut all = Vec::new();
        for (track, (cylinder, head, angle)) in walk(spec, zone).into_iter().enumerate() {
            let density = &zone.sectors_per_track;
            let sectors_per_track = density[if density.len() == 1 { 0 } else { head as usize }];
            all.extend((0..sectors_per_track).map(|sector| Block {
                cylinder,
                head,
                sector,
                sectors_per_track,
                angle: angle + f64::from(sector) / f64::from(sectors_per_track),
                remapped: false,
                track: (cylinder, head),
                home_track: ((number as u64) << 32) + track as u64,
            }));
        }
        let slots = all.len().checked_sub(zone.spares as usize).filter(|slots| *slots > 0)?;
        let is_good = |index: usize| !zone.slips.contains(&(index as u64));
        if zone.slips.last().is_some_and(|slip| *slip >= all.len() as u64) {
            return None;
        }
        let good: Vec<Block> = if spec.slip_to_end {
            (0..slots).filter(|index| is_good(*index)).map(|index| all[index]).collect()
        } else {
            (0..all.len()).filter(|index| is_good(*index)).map(|index| all[index]).take(slots).collect()
        };
        if good.is_empty() || !spec.slip_to_end && good.len() < slots {
            return None;
        }
        blocks.extend(good);
    }
    Some(blocks)
}

prop_compose! {
    fn any_zone(heads: u32)(
        skipped in prop_oneof![4 => Just(0u32), 1 => 1u32..3],
        cylinders in 1u32..12,
        band_tracks in 1u32..7,
        densities in prop::collection::vec(1u32..9, heads as usize),
        equal in any::<bool>(),
        skews in (-1.0..1.0f64, -1.0..1.0f64, 0.0..1.0f64),
        spares in 0u32..8,
        slips in prop::collection::vec(any::<Index>(), 0..6),
    ) -> (u32, u32, BandZone, Vec<Index>) {
        let zone = BandZone {
            first_cylinder: 0,
            last_cylinder: 0,
            band_tracks,
            sectors_per_track: if equal { vec![densities[0]] } else { densities },
            track_skew_turns: skews.0,
            head_skew_turns: skews.1,
            first_sector_offset_turns: skews.2,
            spares,
            slips: Vec::new(),
        };
        (skipped, cylinders, zone, slips)
    }
}

prop_compose! {
    fn any_geometry()(heads in 1u32..6)(
        layout in prop::sample::select(LAYOUTS.to_vec()),
        slip_to_end in any::<bool>(),
        drafts in prop::collection::vec(any_zone(heads), 1..4),
        heads in Just(heads),
    ) -> GeometrySpec {
        let mut band_zones: Vec<BandZone> = Vec::new();
        let mut next = 0;
        for (skipped, cylinders, mut zone, slips) in drafts {
            zone.first_cylinder = next + skipped;
            zone.last_cylinder = zone.first_cylinder + cylinders - 1;
            next = zone.last_cylinder + 1;
            // The range is slightly too large, so that some slips are beyond the zone.
            let most = (cylinders * heads) as usize * 5;
            let slips: BTreeSet<u64> = slips.iter().map(|slip| slip.index(most) as u64).collect();
            zone.slips = slips.into_iter().collect();
            band_zones.push(zone);
        }
        GeometrySpec {
            heads,
            cylinders: next,
            layout,
            sparing: Sparing::None,
            slip_to_end,
            range_cylinders: None,
            zones: Vec::new(),
            band_zones,
            extents: None,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_banded_block_matches_a_walk_over_the_tracks(spec in any_geometry(), keep in 0.0..2.0f64) {
        let Some(mut blocks) = lay_out(&spec) else {
            let drive = DriveSpec { capacity_sectors: 1, geometry: spec, ..laws::any_drive() };
            prop_assert!(Geometry::new(&drive).is_err(), "{:?} does not fit", drive.geometry);
            return Ok(());
        };
        blocks.truncate((blocks.len() as f64 * keep) as usize + 1);
        let capacity_sectors = blocks.len() as u64;
        let drive = DriveSpec { capacity_sectors, geometry: spec.clone(), ..laws::any_drive() };
        let geometry = Geometry::new(&drive).map_err(|error| TestCaseError::fail(error.to_string()))?;
        laws::check(&geometry, &blocks, spec.cylinders, spec.heads)?;
    }
}

#[test]
fn every_seek_first_layout_visits_tracks_in_its_order() {
    let orders = LAYOUTS.map(|layout| {
        let zone = BandZone {
            first_cylinder: 0,
            last_cylinder: 3,
            band_tracks: 2,
            sectors_per_track: vec![1],
            track_skew_turns: 0.1,
            head_skew_turns: 0.3,
            first_sector_offset_turns: 0.0,
            spares: 0,
            slips: Vec::new(),
        };
        let any = laws::any_drive();
        let geometry = GeometrySpec {
            heads: 2,
            cylinders: 4,
            layout,
            zones: Vec::new(),
            band_zones: vec![zone],
            ..any.geometry
        };
        let drive = DriveSpec { capacity_sectors: 8, geometry, ..laws::any_drive() };
        let geometry = Geometry::new(&drive).expect("it fits");
        (0..8).map(|lbn| geometry.locate(Lbn(lbn))).map(|at| (at.head, at.cylinder)).collect::<Vec<_>>()
    });
    assert_eq!(orders[0], [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]);
    assert_eq!(orders[1], [(0, 0), (0, 1), (1, 1), (1, 0), (0, 2), (0, 3), (1, 3), (1, 2)]);
    assert_eq!(orders[2], [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3), (0, 2), (0, 3)]);
    assert_eq!(orders[3], [(0, 0), (0, 1), (1, 1), (1, 0), (1, 2), (1, 3), (0, 3), (0, 2)]);
}
