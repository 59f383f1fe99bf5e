//! Disks with slipped sectors and tracks, in blobs.

use super::*;
use headstack_model::spec::Sparing;

fn check_blobs(mut plan: Plan, blobs: u32, seed: u64) -> Found {
    let hit = plan.add_blobs(blobs, seed);
    let spec = plan.spec();
    let found = run(&spec, Noise::USUAL, seed).unwrap_or_else(|error| panic!("{seed}: {error}"));
    let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
    let outside = wrong_outside_doubt(&found, &truth);
    let doubted: u64 = found.lattice.verification.doubtful.iter().map(|range| range.end - range.start).sum();
    let share = doubted as f64 / spec.capacity_sectors as f64;
    eprintln!(
        "seed {seed}: {hit} tracks hit, {outside} wrong outside of doubt, {share:.5} of the disk in doubt"
    );
    assert!(found.agreement.exact_share() >= 0.9999, "{:?}", found.agreement);
    assert!(found.agreement.false_ones <= found.agreement.boundaries / 10_000, "{:?}", found.agreement);
    assert_eq!(outside, 0, "seed {seed}: boundaries that are wrong are in doubt");
    assert!(share < 0.01, "doubt has to mean something: {share}");
    found
}

#[test]
fn defect_clusters_are_mapped() {
    for (seed, layout) in
        [(1, Layout::Ff), (2, Layout::Aa), (3, Layout::Fa), (4, Layout::Ff), (5, Layout::Af)]
    {
        check_blobs(plan(layout, 4, 20), 6, seed);
    }
}

#[test]
fn four_hundred_defect_clusters_are_mapped() {
    for seed in 1..=8 {
        let found = check_blobs(x300(), 400, seed);
        assert!(found.probes_a_track() <= 0.05, "seed {seed}: {}", found.probes_a_track());
    }
}

#[test]
fn slips_absorbed_by_later_spares_are_found() {
    // Spares lie behind every twelve cylinders; what is slipped before them moves nothing behind.
    let spec = headstack_model::drives::load("cheetah-4lp").expect("it is shipped");
    let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
    for seed in 1..=4 {
        let found = run(&spec, Noise::USUAL, seed).unwrap_or_else(|error| panic!("{seed}: {error}"));
        assert!(found.agreement.exact_share() >= 0.9999, "seed {seed}: {:?}", found.agreement);
        assert_eq!(wrong_outside_doubt(&found, &truth), 0, "seed {seed}");
    }
}

#[test]
fn slips_absorbed_by_their_cylinder_are_found() {
    let mut spec = plan(Layout::Serpentine, 4, 10).spec();
    (spec.geometry.sparing, spec.geometry.slip_to_end) = (Sparing::SectorsPerCylinder, false);
    for zone in &mut spec.geometry.zones {
        let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
        let places = 4 * u64::from(zone.sectors_per_track);
        zone.spares = 24;
        spec.capacity_sectors -= 24 * cylinders;
        // In the first tracks of some cylinders, one physical sector each.
        let slipped = [40, 333, 334, 700].map(|cylinder| cylinder * places + 800);
        zone.slips = slipped.into_iter().flat_map(|at| at..at + 8).collect();
    }
    let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
    for seed in [1, 2, 3] {
        let found = run(&spec, Noise::USUAL, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(found.agreement.exact_share() >= 0.9999, "seed {seed}: {:?}", found.agreement);
        assert_eq!(wrong_outside_doubt(&found, &truth), 0, "seed {seed}");
    }
}

#[test]
fn slips_without_skew_are_found_by_lost_turns() {
    let mut spec = plan(Layout::Af, 3, 2).spec_of_surfaces(0.0);
    let extents = spec.geometry.extents.as_mut().expect("its surfaces are runs");
    // The second surface.
    let mut place = 0;
    for (number, run) in extents.groups[0].iter_mut().enumerate() {
        let track = u64::from(extents.tracks[number].sectors);
        if (3..6).contains(&number) {
            run.angle_step_turns = 0.0;
            for (slipped, lost) in [(50, 1), (51, 1), (52, 2), (120, 3)] {
                extents.slips.push((place + slipped * track + 800, 8 * lost));
                spec.capacity_sectors -= 8 * lost;
            }
        }
        place += u64::from(run.times) * track;
    }
    for seed in 1..=4 {
        let found = run(&spec, Noise::USUAL, seed).unwrap_or_else(|error| panic!("{seed}: {error}"));
        assert_exact(&found);
        assert!(found.lattice.verification.doubtful.is_empty(), "{:?}", found.lattice.verification);
    }
}

#[test]
fn atlas_10k_v_with_irregular_tracks_is_mapped() {
    // Bands of 32 cylinders, of which many surfaces have no skew, and defects on one track of forty-five.
    let spec = headstack_model::drives::load("atlas-10k-v-300").expect("it is shipped");
    let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
    for seed in [1, 2] {
        let found = run(&spec, Noise::USUAL, seed).unwrap_or_else(|error| panic!("{seed}: {error}"));
        assert!(found.agreement.exact_share() >= 0.9999, "{seed}: {:?}", found.agreement);
        assert_eq!(wrong_outside_doubt(&found, &truth), 0, "{seed}");
        let doubted: u64 =
            found.lattice.verification.doubtful.iter().map(|range| range.end - range.start).sum();
        assert!(doubted < spec.capacity_sectors / 1000, "{seed}: {doubted}");
        assert!(found.probes_a_track() < 1.5, "{seed}: {}", found.probes_a_track());
    }
}

fn doubts(found: &Found, lbn: Lbn) -> bool {
    found.lattice.verification.doubtful.iter().any(|range| range.contains(&lbn))
}

#[test]
fn zone_without_angle_break_is_found() {
    let mut spec = plan(Layout::Cylinder, 4, 10).spec();
    let seam = |spec: &DriveSpec| {
        let geometry = Geometry::new(spec).expect("it holds");
        let truth = TrackMap::of_geometry(&geometry);
        let sectors = truth.iter().next().expect("there is a track").sectors;
        let first = truth.iter().find(|track| track.sectors != sectors).expect("there are zones").first;
        let angle = |lbn: Lbn| geometry.extent_at(lbn).angle.as_turns();
        // Where the last track of the zone before ends, another would begin had it no skew.
        (first, angle(first) - angle(Lbn(first.0 - u64::from(sectors))))
    };
    let (first, gap) = seam(&spec);
    let second = &mut spec.geometry.zones[1];
    let of_turn = f64::from(second.sectors_per_track);
    second.first_sector_offset_sectors = ((-gap).rem_euclid(1.0) * of_turn).round();
    let (_, gap) = seam(&spec);
    assert!((gap - gap.round()).abs() < 0.003, "{gap}");
    for seed in 1..=4 {
        let found = run(&spec, Noise::USUAL, seed).expect("it has a lattice");
        assert_exact(&found);
        assert!(!doubts(&found, first), "{:?}", found.lattice.verification);
    }
}

/// A disk like the Toshiba X300, with what its defects take away.
fn x300() -> Plan {
    let spec = headstack_model::drives::load("toshiba-x300").expect("it is shipped");
    let zone = |zone: &headstack_model::spec::BandZone| PlanZone {
        cylinders: zone.last_cylinder - zone.first_cylinder + 1,
        band: zone.band_tracks,
        sectors: zone.sectors_per_track.iter().map(|sectors| sectors / 8).collect(),
        slips: Vec::new(),
    };
    let zones = spec.geometry.band_zones.iter().map(zone).collect();
    Plan { layout: Layout::Ff, heads: 10, physical_sectors: 8, track_skew: 0.0625, head_skew: 0.5625, zones }
}

#[test]
fn remapped_sectors_add_no_boundaries() {
    let mut spec = plan(Layout::Serpentine, 4, 10).spec();
    spec.geometry.sparing = Sparing::SectorsPerZone;
    let mut spares = 0;
    for zone in &mut spec.geometry.zones {
        let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
        let (track, places) =
            (u64::from(zone.sectors_per_track), u64::from(zone.sectors_per_track) * cylinders * 4);
        zone.spares = 800;
        spares += 800;
        // First and last sectors of tracks, and some between; each of eight blocks.
        let at =
            [40 * track, 77 * track - 8, 3_000 * track, 3_001 * track - 8, 1_234 * track + 800, 8 * track];
        let pairs = at.iter().enumerate().flat_map(|(number, at)| {
            (0..8).map(move |block| (at + block, places - 800 + 8 * number as u64 + block))
        });
        zone.remaps = pairs.collect();
        zone.remaps.sort_unstable();
    }
    spec.capacity_sectors -= spares;
    for seed in [1, 2, 3] {
        let found = run(&spec, Noise::USUAL, seed).expect("it has a lattice");
        assert_exact(&found);
    }
}
