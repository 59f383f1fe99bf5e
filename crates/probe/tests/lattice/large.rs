//! Dense disks of up to 20 TB, of every layout, with skews, densities and bands drawn by chance.

use super::*;

/// Every layout, and whether each surface is read whole in a zone.
const LAYOUTS: [(Layout, bool); 10] = [
    (Layout::Cylinder, false),
    (Layout::Serpentine, false),
    (Layout::SerpentineAbsolute, false),
    (Layout::Ff, false),
    (Layout::Af, false),
    (Layout::Fa, false),
    (Layout::Aa, false),
    (Layout::Ff, true),
    (Layout::Aa, true),
    // Each surface whole over all zones, with a skew of its own.
    (Layout::Extents, true),
];

/// A disk, and how many of its tracks have slips. Of `zones` thirty are 20 TB.
fn dense((layout, whole): (Layout, bool), zones: u64, holes: u32, seed: u64) -> (DriveSpec, u64) {
    let is_extents = layout == Layout::Extents;
    let mut plan = Plan::dense(if is_extents { Layout::Af } else { layout }, zones, whole, seed);
    let hit = plan.add_holes(holes, seed);
    let mut spec = if is_extents { plan.spec_of_surfaces(0.003) } else { plan.spec() };
    let terabytes = spec.capacity_bytes() as f64 / 1e12;
    spec.name = format!("{layout:?}, whole {whole}, {terabytes:.1} TB, {hit} tracks with slips, seed {seed}");
    (spec, hit)
}

fn check_regular(zones: u64, seed: u64) {
    for layout in LAYOUTS {
        let (spec, _) = dense(layout, zones, 0, seed);
        let found = run(&spec, Noise::USUAL, seed).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
        assert_exact(&found);
        assert!(found.probes_a_track() <= 0.05, "{}: {}", spec.name, found.probes_a_track());
    }
}

fn check_slips(zones: u64, holes: u32, seed: u64) {
    for layout in LAYOUTS.into_iter().filter(|(layout, _)| *layout != Layout::Extents) {
        let (spec, hit) = dense(layout, zones, holes, seed);
        assert!(hit > 0);
        check_slipped(&spec, seed);
    }
}

fn check_slipped(spec: &DriveSpec, seed: u64) -> Found {
    let found = run(spec, Noise::USUAL, seed).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
    let truth = TrackMap::of_geometry(&Geometry::new(spec).expect("it holds"));
    assert!(found.agreement.exact_share() >= 0.9999, "{}: {:?}", spec.name, found.agreement);
    assert_eq!(wrong_outside_doubt(&found, &truth), 0, "{}", spec.name);
    found
}

#[test]
fn dense_disks_of_every_layout_are_mapped() {
    check_regular(2, 1);
}

#[test]
fn dense_disks_with_slips_are_mapped() {
    check_slips(2, 30, 2);
}

#[test]
#[ignore = "minutes: make probe-full"]
fn twenty_terabyte_disks_of_every_layout_are_mapped() {
    for seed in 1..=8 {
        check_regular(30, seed);
    }
}

#[test]
fn slips_are_found_with_head_skew_near_track_skew() {
    for (layout, off, seed) in [
        (Layout::Ff, 0.0, 3),
        (Layout::Fa, 0.0, 6),
        (Layout::Af, -0.005, 1),
        (Layout::Aa, 0.002, 5),
        (Layout::Ff, -0.0102, 11),
    ] {
        let mut plan = Plan::dense(layout, 3, false, seed);
        plan.head_skew = plan.track_skew + off;
        plan.add_holes(30, seed);
        let mut spec = plan.spec();
        spec.name = format!("{layout:?}, skew of surfaces {off} off that of tracks, seed {seed}");
        let found = check_slipped(&spec, seed);
        assert!(found.probes_a_track() <= 0.05, "{}: {}", spec.name, found.probes_a_track());
    }
}

/// A disk without defects of which the skew of surfaces is `off` turns off that of tracks.
fn check_near(layout: Layout, off: f64, seed: u64) {
    let mut plan = Plan::dense(layout, 3, false, seed);
    plan.head_skew = plan.track_skew + off;
    let mut spec = plan.spec();
    spec.name = format!("{layout:?}, skew of surfaces {off} off that of tracks, no slips, seed {seed}");
    let found = run(&spec, Noise::USUAL, seed).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
    assert_exact(&found);
    assert!(found.probes_a_track() <= 0.05, "{}: {}", spec.name, found.probes_a_track());
}

#[test]
fn disks_with_head_skew_near_track_skew_are_mapped() {
    // Where the first track of a surface holds few sectors more than those before, and begins nearly where one of them would.
    check_near(Layout::Aa, 0.0075, 25);
    check_near(Layout::Cylinder, 0.012, 28);
    check_near(Layout::Fa, -0.009, 14);
    check_near(Layout::Af, -0.0024, 36);
    check_near(Layout::Aa, -0.012, 20);
}

#[test]
#[ignore = "minutes: make probe-full"]
fn disks_are_mapped_at_every_head_skew_around_track_skew() {
    for layout in [Layout::Ff, Layout::Fa, Layout::Af, Layout::Aa, Layout::Cylinder] {
        for step in -10..=10 {
            check_near(layout, f64::from(step) * 0.0015, (step + 20) as u64);
        }
    }
}

#[test]
fn slips_of_adjacent_tracks_are_not_kept_as_cell() {
    for seed in [7, 15, 29] {
        let (spec, _) = dense((Layout::Cylinder, false), 3, 30, seed);
        let found = check_slipped(&spec, seed);
        assert!(found.probes_a_track() <= 0.02, "{seed}: {}", found.probes_a_track());
    }
}

#[test]
#[ignore = "minutes: make probe-full"]
fn twenty_terabyte_disks_with_slips_are_mapped() {
    for seed in 1..=4 {
        check_slips(30, 300, seed);
    }
}

#[test]
#[ignore = "minutes: make probe-full"]
fn slips_are_found_on_thirty_disks_of_every_layout() {
    for seed in 1..=30 {
        check_slips(3, 30, seed);
    }
}
