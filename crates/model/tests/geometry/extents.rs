//! The layout `extents`, which can be extracted from real drives, compared with an expansion of its grammar track by track.

use crate::laws::{self, Block};
use headstack_model::spec::{
    ExtentRemap, ExtentRun, Extents, GeometrySpec, Layout, Repeated, Sparing, TrackKind,
};
use headstack_model::{DriveSpec, Geometry};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;

/// A track, or a part of a track, with its blocks.
#[derive(Clone, Copy, Debug)]
struct Part {
    cylinder: i64,
    head: u32,
    kind: TrackKind,
    /// Angle of the first sector with data.
    angle: f64,
}

/// All tracks of a group, in LBN order.
fn expand(extents: &Extents, group: usize, cylinder: i64, angle: f64, into: &mut Vec<Part>) {
    for run in &extents.groups[group] {
        for time in 0..run.times {
            let cylinder =
                cylinder + i64::from(run.cylinder) + i64::from(time) * i64::from(run.cylinder_step);
            let angle = angle + run.angle_turns + f64::from(time) * run.angle_step_turns;
            match run.of {
                Repeated::Group(group) => expand(extents, group as usize, cylinder, angle, into),
                Repeated::Track { head, kind } => {
                    into.push(Part { cylinder, head, kind: extents.tracks[kind as usize], angle });
                }
            }
        }
    }
}

/// Every sector of the disk that can hold data, including slipped ones.
fn places(extents: &Extents) -> Vec<Block> {
    let mut parts = Vec::new();
    expand(extents, extents.groups.len() - 1, 0, 0.0, &mut parts);
    let of_part = |(number, part): (usize, &Part)| {
        let Part { cylinder, head, kind, angle } = *part;
        (0..kind.sectors).map(move |sector| Block {
            cylinder: cylinder as u32,
            head,
            sector: kind.first_sector + sector,
            sectors_per_track: kind.sectors_per_track,
            angle: angle + f64::from(sector) / f64::from(kind.sectors_per_track),
            remapped: false,
            track: (cylinder as u32, head),
            home_track: number as u64,
        })
    };
    parts.iter().enumerate().flat_map(of_part).collect()
}

/// The blocks of the disk: all sectors without the slipped ones, with remaps applied.
fn lay_out(extents: &Extents) -> Vec<Block> {
    let places = places(extents);
    let slipped = |place: usize| {
        extents.slips.iter().any(|(first, count)| (*first..first + count).contains(&(place as u64)))
    };
    let mut blocks: Vec<Block> =
        (0..places.len()).filter(|place| !slipped(*place)).map(|place| places[place]).collect();
    for remap in &extents.remaps {
        let on = |block: &&Block| (block.cylinder, block.head) == (remap.cylinder, remap.head);
        let track = *places.iter().find(on).expect("remaps lead to tracks");
        for offset in 0..remap.sectors {
            let sector = remap.sector + offset;
            let turn = (f64::from(sector) - f64::from(track.sector)) / f64::from(track.sectors_per_track);
            let block = &mut blocks[remap.lbn as usize + offset as usize];
            let (home_track, named) = (block.home_track, block.track);
            let angle = track.angle + turn;
            *block = Block { sector, angle, remapped: true, home_track, track: named, ..track };
        }
    }
    blocks
}

/// The tracks of a random band: each surface has one part or two, in any order and direction.
#[derive(Clone, Debug)]
struct Band {
    tracks: u32,
    surfaces: Vec<Surface>,
    shuffle: Vec<Index>,
}

#[derive(Clone, Debug)]
struct Surface {
    head: u32,
    sectors_per_track: u32,
    /// Sectors before the first with data, where the second part begins, and after the last.
    cuts: (Index, Index, Index),
    outward: [bool; 2],
    angle: f64,
    angle_step: f64,
}

prop_compose! {
    fn any_band(heads: u32)(
        tracks in 1u32..5,
        surfaces in prop::collection::vec(
            (2u32..9, any::<(Index, Index, Index)>(), any::<[bool; 2]>(), -1.0..1.0f64, -1.0..1.0f64),
            heads as usize,
        ),
        shuffle in prop::collection::vec(any::<Index>(), 2 * heads as usize),
    ) -> Band {
        let surfaces = (0..).zip(surfaces).map(|(head, (sectors_per_track, cuts, outward, angle, angle_step))| {
            Surface { head, sectors_per_track, cuts, outward, angle, angle_step }
        });
        Band { tracks, surfaces: surfaces.collect(), shuffle }
    }
}

/// The group of a band. Adds its kinds of tracks to `kinds`.
fn band_group(band: &Band, kinds: &mut Vec<TrackKind>) -> Vec<ExtentRun> {
    let mut runs = Vec::new();
    for surface in &band.surfaces {
        let spt = surface.sectors_per_track;
        let mut cuts =
            [surface.cuts.0, surface.cuts.1, surface.cuts.2].map(|cut| cut.index(spt as usize + 1) as u32);
        cuts.sort_unstable();
        for (part, outward) in surface.outward.into_iter().enumerate() {
            let (first_sector, sectors) = (cuts[part], cuts[part + 1] - cuts[part]);
            if sectors == 0 {
                continue;
            }
            kinds.push(TrackKind { first_sector, sectors, sectors_per_track: spt });
            let step = if outward { -1 } else { 1 };
            // Both parts of a track are at the track's angle, which depends on its cylinder.
            let start = if outward { f64::from(band.tracks - 1) * surface.angle_step } else { 0.0 };
            runs.push(ExtentRun {
                of: Repeated::Track { head: surface.head, kind: kinds.len() as u32 - 1 },
                times: band.tracks,
                cylinder: if outward { band.tracks as i32 - 1 } else { 0 },
                cylinder_step: step,
                angle_turns: surface.angle + start + f64::from(first_sector) / f64::from(spt),
                angle_step_turns: f64::from(step) * surface.angle_step,
            });
        }
    }
    let order: Vec<Index> = band.shuffle.clone();
    let mut shuffled = Vec::new();
    for pick in order {
        if !runs.is_empty() {
            shuffled.push(runs.remove(pick.index(runs.len())));
        }
    }
    shuffled
}

/// How the disk uses a band's group: directly or through nested groups, how many times, and in which direction.
#[derive(Clone, Copy, Debug)]
struct Use {
    nested: u32,
    times: u32,
    outward: bool,
    angle: f64,
    angle_step: f64,
    skipped: u32,
}

prop_compose! {
    fn any_use()(
        nested in 1u32..4,
        times in 1u32..4,
        outward in any::<bool>(),
        angle in -1.0..1.0f64,
        angle_step in -1.0..1.0f64,
        skipped in 0u32..2,
    ) -> Use {
        Use { nested, times, outward, angle, angle_step, skipped }
    }
}

type Defects = (Vec<(Index, u64)>, Vec<(Index, u32, Index)>);

prop_compose! {
    fn any_extents()(heads in 1u32..4)(
        bands in prop::collection::vec((any_band(heads), any_use()), 1..4),
        defects in (
            prop::collection::vec((any::<Index>(), 1u64..4), 0..5),
            prop::collection::vec((any::<Index>(), 1u32..4, any::<Index>()), 0..4),
        ),
        heads in Just(heads),
    ) -> GeometrySpec {
        let (extents, cylinders) = assemble(&bands, &defects);
        GeometrySpec {
            heads,
            cylinders,
            layout: Layout::Extents,
            sparing: Sparing::None,
            slip_to_end: false,
            range_cylinders: None,
            zones: Vec::new(),
            band_zones: Vec::new(),
            extents: Some(extents),
        }
    }
}

fn assemble(bands: &[(Band, Use)], defects: &Defects) -> (Extents, u32) {
    let mut extents = Extents::default();
    let (mut disk, mut cylinder) = (Vec::new(), 0);
    for (band, place) in bands {
        let group = band_group(band, &mut extents.tracks);
        if group.is_empty() {
            continue;
        }
        extents.groups.push(group);
        let (mut child, mut width) = (extents.groups.len() as u32 - 1, band.tracks as i32);
        let repeat = |child, times: u32, width: i32, base: i32| ExtentRun {
            of: Repeated::Group(child),
            times,
            cylinder: base + if place.outward { width * (times as i32 - 1) } else { 0 },
            cylinder_step: if place.outward { -width } else { width },
            angle_turns: place.angle,
            angle_step_turns: place.angle_step,
        };
        if place.nested > 1 {
            extents.groups.push(vec![repeat(child, place.nested, width, 0)]);
            child += 1;
            width *= place.nested as i32;
        }
        cylinder += place.skipped as i32;
        disk.push(repeat(child, place.times, width, cylinder));
        cylinder += width * place.times as i32;
    }
    // If no surface has a track, the disk gets an arbitrary one.
    if disk.is_empty() {
        extents.tracks.push(TrackKind { first_sector: 0, sectors: 3, sectors_per_track: 4 });
        disk.push(ExtentRun {
            of: Repeated::Track { head: 0, kind: extents.tracks.len() as u32 - 1 },
            times: 1,
            cylinder: 0,
            cylinder_step: 0,
            angle_turns: 0.25,
            angle_step_turns: 0.0,
        });
        cylinder = 1;
    }
    extents.groups.push(disk);
    add_defects(&mut extents, defects);
    (extents, cylinder as u32)
}

/// Adds slips, which leave at least one block, and remaps of blocks to free sectors.
fn add_defects(extents: &mut Extents, (slips, remaps): &Defects) {
    let places = places(extents);
    let slipped: BTreeSet<u64> = slips
        .iter()
        .flat_map(|(first, count)| (0..*count).map(|n| first.index(places.len()) as u64 + n))
        .filter(|place| *place + 1 < places.len() as u64)
        .collect();
    for place in slipped {
        match extents.slips.last_mut() {
            Some((first, count)) if *first + *count == place => *count += 1,
            _ => extents.slips.push((place, 1)),
        }
    }
    let blocks = lay_out(extents);
    let mut taken: BTreeSet<(u32, u32, u32)> =
        blocks.iter().map(|block| (block.cylinder, block.head, block.sector)).collect();
    let mut moved = BTreeSet::new();
    for (lbn, sectors, track) in remaps {
        let lbn = lbn.index(blocks.len()) as u64;
        let track = places[track.index(places.len())];
        let room = |sector: &u32| {
            (*sector..sector + sectors).all(|sector| !taken.contains(&(track.cylinder, track.head, sector)))
        };
        let Some(sector) = (0..(track.sectors_per_track + 1).saturating_sub(*sectors)).find(room) else {
            continue;
        };
        let blocks_moved: Vec<u64> = (lbn..lbn + u64::from(*sectors)).collect();
        let on_disk = lbn + u64::from(*sectors) <= blocks.len() as u64;
        if !on_disk || blocks_moved.iter().any(|lbn| moved.contains(lbn)) {
            continue;
        }
        moved.extend(blocks_moved);
        taken.extend((sector..sector + sectors).map(|sector| (track.cylinder, track.head, sector)));
        let (cylinder, head) = (track.cylinder, track.head);
        extents.remaps.push(ExtentRemap { lbn, sectors: *sectors, cylinder, head, sector });
    }
}

fn drive(spec: &GeometrySpec, capacity_sectors: u64) -> DriveSpec {
    DriveSpec { capacity_sectors, geometry: spec.clone(), ..laws::any_drive() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_extents_block_matches_the_expanded_grammar(spec in any_extents()) {
        let blocks = lay_out(spec.extents.as_ref().expect("made with them"));
        let geometry = Geometry::new(&drive(&spec, blocks.len() as u64));
        let geometry = geometry.map_err(|error| TestCaseError::fail(error.to_string()))?;
        laws::check(&geometry, &blocks, spec.cylinders, spec.heads)?;
        let error = Geometry::new(&drive(&spec, blocks.len() as u64 + 1)).expect_err("there is no room");
        prop_assert_eq!(error.key, "capacity_sectors");
    }
}

#[test]
fn track_is_found_among_runs_of_unequal_reach() {
    let track = |head: u32, times: u32, cylinder: i32| ExtentRun {
        of: Repeated::Track { head, kind: 0 },
        times,
        cylinder,
        cylinder_step: 1,
        angle_turns: 0.1,
        angle_step_turns: 0.2,
    };
    let mut runs = vec![track(1, 1, 3), track(0, 10, 0), track(1, 2, 1)];
    runs.extend((4..10).rev().map(|cylinder| track(1, 1, cylinder)));
    let extents = Extents {
        tracks: vec![TrackKind { first_sector: 1, sectors: 3, sectors_per_track: 5 }],
        groups: vec![runs],
        ..Extents::default()
    };
    let blocks = lay_out(&extents);
    let any = laws::any_drive();
    let spec = GeometrySpec {
        heads: 2,
        cylinders: 10,
        layout: Layout::Extents,
        zones: Vec::new(),
        extents: Some(extents),
        ..any.geometry
    };
    let geometry = Geometry::new(&drive(&spec, blocks.len() as u64)).expect("it fits");
    laws::check(&geometry, &blocks, 10, 2).unwrap_or_else(|error| panic!("{error}"));
}
