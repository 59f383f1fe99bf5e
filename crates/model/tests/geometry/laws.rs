//! Properties of every layout, checked block by block against a list of all blocks.

use headstack_model::{Angle, DriveSpec, Geometry, Lbn};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The place of a block according to a reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) cylinder: u32,
    pub(crate) head: u32,
    pub(crate) sector: u32,
    pub(crate) sectors_per_track: u32,
    /// Angle in turns.
    pub(crate) angle: f64,
    /// Cylinder and head of its track; if the block was remapped without the rest of the track, those of its original track.
    pub(crate) track: (u32, u32),
    /// Number of the track on which the block is or, if it was remapped, of its original track.
    pub(crate) home_track: u64,
    pub(crate) remapped: bool,
}

/// An arbitrary drive whose geometry the tests replace.
pub(crate) fn any_drive() -> DriveSpec {
    let text = r#"
        name = "any"
        title = "Any drive"
        evidence = "derived"
        capacity_sectors = 10
        [geometry]
        heads = 1
        cylinders = 10
        layout = "cylinder"
        zones = [{ first_cylinder = 0, last_cylinder = 9, sectors_per_track = 10, track_skew_sectors = 0.0, cylinder_skew_sectors = 0.0 }]
        [mechanics]
        rpm = 7200.0
        head_switch_ms = 0.5
        seek.points_cylinders_ms = [[1, 1.0], [10, 5.0]]
        [bus]
        read_us_per_sector = 1.0
        write_us_per_sector = 1.0
    "#;
    DriveSpec::parse(text, "any").expect("the drive is complete")
}

/// Distance between two angles in units of 2⁻³² turn.
pub(crate) fn apart(a: Angle, b: Angle) -> u32 {
    let ahead = a - b;
    ahead.0.min((b - a).0)
}

/// Checks every look-up of a geometry against the list of all its blocks.
pub(crate) fn check(
    geometry: &Geometry,
    blocks: &[Block],
    cylinders: u32,
    heads: u32,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(geometry.sectors(), blocks.len() as u64);
    places(geometry, blocks)?;
    extents(geometry, blocks)?;
    tracks(geometry, blocks)?;
    inverse(geometry, blocks, cylinders, heads)
}

fn places(geometry: &Geometry, blocks: &[Block]) -> Result<(), TestCaseError> {
    for (lbn, block) in blocks.iter().enumerate() {
        let place = geometry.locate(Lbn(lbn as u64));
        prop_assert_eq!(
            (place.cylinder, place.head, place.sector),
            (block.cylinder, block.head, block.sector),
            "block {}",
            lbn
        );
        let off = apart(place.angle, Angle::from_turns(block.angle));
        prop_assert!(off <= 2, "block {} lies {} units of 2^-32 turn off", lbn, off);
    }
    Ok(())
}

/// Extents tile the disk in order. Each is as long as possible, and the same for all of its blocks.
fn extents(geometry: &Geometry, blocks: &[Block]) -> Result<(), TestCaseError> {
    let mut next = 0;
    while next < blocks.len() {
        let extent = geometry.extent_at(Lbn(next as u64));
        prop_assert_eq!(extent.first, Lbn(next as u64), "extents tile");
        let follows = |a: &Block, b: &Block| {
            (a.cylinder, a.head, a.sector + 1) == (b.cylinder, b.head, b.sector)
                && a.home_track == b.home_track
        };
        let end = next + extent.sectors as usize;
        prop_assert!(extent.sectors > 0 && end <= blocks.len());
        if end < blocks.len() {
            prop_assert_eq!(geometry.extent_after(&extent), geometry.extent_at(Lbn(end as u64)));
        }
        for (lbn, block) in blocks.iter().enumerate().take(end).skip(next) {
            prop_assert_eq!(geometry.extent_at(Lbn(lbn as u64)), extent, "one extent for all its blocks");
            prop_assert_eq!((extent.cylinder, extent.head), (block.cylinder, block.head));
            prop_assert_eq!(extent.sector + (lbn - next) as u32, block.sector);
            prop_assert_eq!(extent.sectors_per_track, block.sectors_per_track);
            let step = geometry.locate(Lbn(lbn as u64)).angle - extent.angle;
            let width = Angle::of_sector((lbn - next) as u32, block.sectors_per_track);
            prop_assert!(apart(step, width) <= 1, "sector {} of {:?}", lbn - next, extent);
            prop_assert!(step == width || step == width + Angle(1), "no sector starts early");
        }
        // A remapped sector is an extent of one block, even if its spare is adjacent to another extent.
        if end < blocks.len() && follows(&blocks[end - 1], &blocks[end]) {
            prop_assert!(
                blocks[end - 1].remapped || blocks[end].remapped,
                "the run to {} could continue",
                end
            );
        }
        next = end;
    }
    Ok(())
}

fn tracks(geometry: &Geometry, blocks: &[Block]) -> Result<(), TestCaseError> {
    let mut ranges: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (lbn, block) in blocks.iter().enumerate() {
        let range = ranges.entry(block.home_track).or_insert((lbn as u64, lbn as u64));
        range.1 = lbn as u64;
    }
    for (lbn, block) in blocks.iter().enumerate() {
        let lbn = Lbn(lbn as u64);
        let (first, last) = ranges[&block.home_track];
        let track = geometry.track_at(lbn);
        prop_assert_eq!(
            (track.first, u64::from(track.sectors)),
            (Lbn(first), last + 1 - first),
            "track of {}",
            lbn
        );
        prop_assert_eq!(geometry.previous_track_boundary(lbn), Lbn(first));
        let next = (last + 1 < blocks.len() as u64).then_some(Lbn(last + 1));
        prop_assert_eq!(geometry.next_track_boundary(lbn), next);
        let extent = geometry.extent_at(lbn);
        prop_assert_eq!((track.cylinder, track.head), block.track);
        if !block.remapped {
            prop_assert!(extent.first >= track.first);
            prop_assert!(
                extent.first.0 + u64::from(extent.sectors) <= track.first.0 + u64::from(track.sectors)
            );
        }
    }
    Ok(())
}

/// Each block is found at its place, and no block is found at any other place.
fn inverse(geometry: &Geometry, blocks: &[Block], cylinders: u32, heads: u32) -> Result<(), TestCaseError> {
    let mut stored = BTreeMap::new();
    let mut longest = 0;
    for (lbn, block) in blocks.iter().enumerate() {
        let before = stored.insert((block.cylinder, block.head, block.sector), Lbn(lbn as u64));
        prop_assert_eq!(before, None, "two blocks in one place");
        longest = longest.max(block.sectors_per_track);
    }
    let sectors: BTreeSet<u32> = (0..longest + 2).chain([u32::MAX]).collect();
    for cylinder in (0..cylinders + 2).chain([u32::MAX]) {
        for head in (0..heads + 1).chain([u32::MAX]) {
            for sector in &sectors {
                let found = geometry.lbn_at(cylinder, head, *sector);
                let expected = stored.get(&(cylinder, head, *sector)).copied();
                prop_assert_eq!(found, expected, "at ({}, {}, {})", cylinder, head, sector);
            }
        }
    }
    Ok(())
}
