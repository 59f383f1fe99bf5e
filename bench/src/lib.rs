//! Invented drives for the benches, so that a bench needs no files. `cargo bench -p headstack-bench` runs the benches.

use headstack_model::DriveSpec;
use headstack_model::spec::{BandZone, ExtentRun, Extents, GeometrySpec, Layout, Repeated, TrackKind, Zone};

/// A drive whose geometry the caller replaces.
fn base() -> DriveSpec {
    let text =
        headstack_model::drives::all().iter().find(|(name, _)| *name == "atlas-10k").expect("it ships").1;
    DriveSpec::parse(text, "atlas-10k").expect("shipped drives parse")
}

/// A 9 GB drive of ten zones in cylinder order, with one slip in about 250,000 sectors.
pub fn ten_zones() -> DriveSpec {
    let base = base();
    let zone = |number: u32| Zone {
        first_cylinder: number * 1000,
        last_cylinder: number * 1000 + 999,
        sectors_per_track: 340 - 12 * number,
        first_sector_offset_sectors: 0.0,
        track_skew_sectors: 63.0,
        cylinder_skew_sectors: 110.0,
        front_gap_sectors: 0,
        spares: 100,
        slips: (1..8).map(|slip| slip * 200_003 + u64::from(number)).collect(),
        remaps: Vec::new(),
    };
    let zones: Vec<Zone> = (0..10).map(zone).collect();
    let sectors: u64 = zones.iter().map(|zone| u64::from(zone.sectors_per_track) * 6000 - 100).sum();
    let geometry = GeometrySpec { heads: 6, cylinders: 10_000, zones, ..base.geometry.clone() };
    DriveSpec { capacity_sectors: sectors, geometry, ..base }
}

/// A 20 TB seek-first drive of 20 surfaces with different densities, 500,000 cylinders and 2,000 slips.
pub fn banded_20_tb() -> DriveSpec {
    let base = base();
    let zone = |number: u32| BandZone {
        first_cylinder: number * 12_500,
        last_cylinder: number * 12_500 + 12_499,
        band_tracks: 300,
        sectors_per_track: (0..20).map(|head| 5_440 - 60 * number - 37 * (head * 7 % 20)).collect(),
        track_skew_turns: 0.0625,
        head_skew_turns: 0.5625,
        first_sector_offset_turns: 0.0,
        spares: 10_000,
        slips: (1..=50).map(|slip| slip * 13_000_011 + u64::from(number)).collect(),
    };
    let geometry = GeometrySpec {
        heads: 20,
        cylinders: 500_000,
        layout: Layout::Aa,
        sparing: Default::default(),
        zones: Vec::new(),
        band_zones: (0..40).map(zone).collect(),
        ..base.geometry.clone()
    };
    DriveSpec { capacity_sectors: 39_063_650_304, geometry, ..base }
}

/// A 300 GB drive with a layout as an extraction from a real drive returns it: 100 runs of 79 groups with 22,000 entries, and 15,000 slips.
pub fn extents() -> DriveSpec {
    let base = base();
    let tracks: Vec<TrackKind> = (0..80)
        .map(|kind| {
            let sectors = 1170 - 7 * kind;
            TrackKind { first_sector: 0, sectors, sectors_per_track: sectors }
        })
        .collect();
    let track = |head: u32, kind: u32, times: u32, cylinder: i32, step: i32| ExtentRun {
        of: Repeated::Track { head, kind },
        times,
        cylinder,
        cylinder_step: step,
        angle_turns: f64::from(head) * 0.3,
        angle_step_turns: 0.2403,
    };
    let mut groups: Vec<Vec<ExtentRun>> = Vec::new();
    for group in 0..79u32 {
        // Every other group repeats whole serpentines. The others list each track, as an extracted layout does where a surface has many defects.
        let serpentine = |head| {
            let outward = head % 2 == 1;
            track(head, group, 64, if outward { 63 } else { 0 }, if outward { -1 } else { 1 })
        };
        let runs: Vec<ExtentRun> = match group % 2 {
            0 => (0..8).map(serpentine).collect(),
            _ => (0..512).map(|number| track(number % 8, group, 1, number as i32 / 8, 0)).collect(),
        };
        groups.push(runs);
    }
    let mut disk = Vec::new();
    let mut cylinder = 0;
    for run in 0..100u32 {
        let (group, times) = (run * 79 / 100, if (run * 79 / 100) % 2 == 0 { 23 } else { 2 });
        disk.push(ExtentRun {
            of: Repeated::Group(group),
            times,
            cylinder,
            cylinder_step: 64,
            angle_turns: 0.1,
            angle_step_turns: 0.077,
        });
        cylinder += 64 * times as i32;
    }
    groups.push(disk);
    let slips = (1..=15_000).map(|slip| (slip * 36_000 + slip % 7, 1 + slip % 4)).collect();
    let geometry = GeometrySpec {
        heads: 8,
        cylinders: cylinder as u32,
        layout: Layout::Extents,
        sparing: Default::default(),
        zones: Vec::new(),
        extents: Some(Extents { tracks, groups, slips, remaps: Vec::new() }),
        ..base.geometry.clone()
    };
    DriveSpec { capacity_sectors: 540_000_000, geometry, ..base }
}
