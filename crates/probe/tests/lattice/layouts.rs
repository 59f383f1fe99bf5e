//! Disks without defects, of every layout.

use super::*;
use headstack_model::drives;
use headstack_model::spec::Sparing;
use headstack_probe::lattice::LatticeRun;
use headstack_probe::synthetic::in_bands;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

#[test]
fn every_layout_is_mapped_exactly() {
    for layout in [Layout::Cylinder, Layout::Serpentine, Layout::Ff, Layout::Af, Layout::Fa, Layout::Aa] {
        let plan = plan(layout, 4, 20);
        let found = run(&plan.spec(), Noise::USUAL, 1).unwrap_or_else(|error| panic!("{layout:?}: {error}"));
        assert_exact(&found);
    }
}

#[test]
fn regular_disks_take_at_most_0_05_probes_per_track() {
    for layout in [Layout::Cylinder, Layout::Serpentine, Layout::Ff, Layout::Af, Layout::Fa, Layout::Aa] {
        let mut plan = plan(layout, 6, 25);
        for zone in &mut plan.zones {
            (zone.cylinders, zone.band) = (10_000, 400);
        }
        let found = run(&plan.spec(), Noise::USUAL, 2).unwrap_or_else(|error| panic!("{layout:?}: {error}"));
        assert_exact(&found);
        assert!(found.probes_a_track() <= 0.05, "{layout:?}: {}", found.probes_a_track());
    }
}

#[test]
fn angles_of_all_runs_share_one_clock() {
    let spec = plan(Layout::Ff, 4, 20).spec();
    let geometry = Geometry::new(&spec).expect("it holds");
    let found = run(&spec, Noise::USUAL, 3).expect("it has a lattice");
    let begins = |run: &LatticeRun| geometry.extent_at(run.run.first).angle.as_turns();
    let off = |run: &LatticeRun, common: f64| {
        let off = run.angle - begins(run) - common;
        off - off.round()
    };
    let runs = &found.lattice.runs;
    // From the first run, and by as much as they are off from there on average.
    let first = runs[0].angle - begins(&runs[0]);
    let common = first + runs.iter().map(|run| off(run, first)).sum::<f64>() / runs.len() as f64;
    let mut all: Vec<f64> = runs.iter().map(|run| off(run, common).abs()).collect();
    all.sort_by(f64::total_cmp);
    // A deviation of the noise is a thousandth of a turn.
    let (middle, most) = (all[all.len() / 2], all[all.len() - 1]);
    eprintln!("angles off by {middle:.5} (median), {most:.5} (most)");
    assert!(middle < 0.002 && most < 0.006, "{middle} {most}");
    let skew = runs.iter().filter(|run| run.run.tracks == 100).map(|run| (run.skew - 0.0625).abs());
    assert!(skew.fold(0.0, f64::max) < 1e-4);
    let period = 60e9 / 7199.6;
    assert!((found.lattice.period.0 as f64 / period - 1.0).abs() < 2e-6, "{}", found.lattice.period);
    assert!((5_000..12_000).contains(&found.lattice.noise.0), "{}", found.lattice.noise);
}

#[test]
fn spares_at_track_cylinder_and_zone_ends_are_mapped() {
    for sparing in [
        Sparing::SectorsPerTrack,
        Sparing::SectorsPerCylinder,
        Sparing::SectorsPerCylinderFront,
        Sparing::SectorsPerZone,
    ] {
        let mut spec = plan(Layout::Serpentine, 4, 10).spec();
        spec.geometry.sparing = sparing;
        spec.geometry.slip_to_end = false;
        let per = |tracks: u64| if sparing == Sparing::SectorsPerZone { 24 } else { 24 * tracks };
        let mut spares = 0;
        for zone in &mut spec.geometry.zones {
            zone.spares = 24;
            let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
            spares += per(cylinders * if sparing == Sparing::SectorsPerTrack { 4 } else { 1 });
        }
        spec.capacity_sectors -= spares;
        let found = run(&spec, Noise::USUAL, 4).unwrap_or_else(|error| panic!("{sparing:?}: {error}"));
        assert_exact(&found);
    }
}

#[test]
fn tracks_with_one_spare_sector_are_mapped_without_doubt() {
    let spec = drives::load("dec-rz26").expect("it is shipped");
    let room = f64::from(spec.geometry.zones[0].sectors_per_track);
    for sigma in [Noise::NONE.sigma, Noise::USUAL.sigma] {
        for (seed, is_known_to_turn) in (0..6).flat_map(|seed| [(seed, true), (seed, false)]) {
            let found = run_after(&spec, Noise { sigma, ..Noise::USUAL }, seed, is_known_to_turn);
            let found = found.unwrap_or_else(|error| panic!("{seed}: {error}"));
            assert_exact(&found);
            assert!(found.lattice.verification.doubtful.is_empty(), "{:?}", found.lattice.verification);
            assert!(found.lattice.runs.iter().all(|run| (run.turn - room).abs() < 0.4), "{seed}");
        }
    }
}

#[test]
fn noisier_hosts_yield_exact_maps() {
    for (sigma, late_share) in [(20_000, 0.02), (50_000, 0.01)] {
        let noise = Noise { sigma: headstack_model::Nanos(sigma), late_share, ..Noise::USUAL };
        let found =
            run(&plan(Layout::Ff, 3, 4).spec(), noise, 5).unwrap_or_else(|error| panic!("{sigma}: {error}"));
        assert_exact(&found);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_small_disk_map_is_exact(
        kind in 0usize..6,
        heads in 1u32..9,
        band in 30u32..200,
        skews in (0.04f64..0.35, 0.04f64..0.9),
        sizes in prop::collection::vec(250u32..600, 1..4),
        unequal in 0u32..12,
        cylinders in 100u32..1_500,
        blocks in prop::sample::select(vec![1u32, 8]),
        seed in 0u64..1_000,
    ) {
        let layouts =
            [Layout::Cylinder, Layout::Serpentine, Layout::Ff, Layout::Af, Layout::Fa, Layout::Aa];
        let zone = |sectors: &u32| PlanZone {
            cylinders,
            band,
            sectors: (0..heads).map(|head| sectors - unequal * (head * 5 % 11)).collect(),
            slips: Vec::new(),
        };
        let plan = Plan {
            layout: layouts[kind],
            heads,
            physical_sectors: blocks,
            track_skew: skews.0,
            head_skew: skews.1,
            zones: sizes.iter().map(zone).collect(),
        };
        let found = run(&plan.spec(), Noise::USUAL, seed);
        let found = found.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let Agreement { missed, false_ones, .. } = found.agreement;
        prop_assert_eq!((missed, false_ones), (0, 0));
    }
}

/// A disk of 20 TB: the Exos X18 with tracks that hold more.
fn twenty_terabytes() -> DriveSpec {
    let mut spec = drives::load("exos-x18").expect("it is shipped");
    let mut sectors = 0;
    for zone in &mut spec.geometry.band_zones {
        for of_head in &mut zone.sectors_per_track {
            *of_head = (*of_head * 10 / 9) / 8 * 8 + 8;
        }
        let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
        let slice: u64 = zone.sectors_per_track.iter().map(|sectors| u64::from(*sectors)).sum();
        sectors += cylinders * slice;
        zone.spares = 0;
    }
    (spec.name, spec.capacity_sectors) = ("20-tb".to_string(), sectors);
    spec
}

#[test]
fn shipped_drives_are_mapped_exactly() {
    for name in [
        "samsung-hd400ld",
        "toshiba-x300",
        "exos-x18",
        "st2000dm006",
        "ultrastar-7k8",
        "exos-x16",
        "hp-c3323a",
        "st3146707lw",
        "st3300007lw",
    ] {
        check_whole(&drives::load(name).expect("it is shipped"), 0.05);
    }
    // As the Atlas 10K V is laid out.
    for name in ["st3146707lw", "st3300007lw"] {
        check_whole(&in_bands(drives::load(name).expect("it is shipped"), Layout::Aa, 32), 0.05);
    }
    let spec = twenty_terabytes();
    assert!(spec.capacity_bytes() > 19_900_000_000_000, "{}", spec.capacity_bytes());
    check_whole(&spec, 0.05);
}

#[test]
fn atlas_10k_with_slips_and_spares_is_mapped() {
    let spec = drives::load("atlas-10k").expect("it is shipped");
    let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
    for seed in [1, 2, 3] {
        let found = run(&spec, Noise::USUAL, seed).expect("it has a lattice");
        assert!(found.agreement.exact_share() >= 0.9999, "{:?}", found.agreement);
        assert_eq!(wrong_outside_doubt(&found, &truth), 0);
        assert!(found.probes_a_track() < 0.15, "{}", found.probes_a_track());
    }
}

fn check_whole(spec: &DriveSpec, most: f64) {
    let truth = TrackMap::of_geometry(&Geometry::new(spec).expect("it holds"));
    for (seed, is_known_to_turn) in [(1, true), (2, true), (3, true), (0, false), (1, false), (2, false)] {
        let found = run_against(&truth, spec, Noise::USUAL, seed, is_known_to_turn);
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", spec.name));
        assert_exact(&found);
        assert!(found.probes_a_track() <= most, "{}: {}", spec.name, found.probes_a_track());
    }
}

#[test]
fn disks_of_few_tracks_are_mapped_exactly() {
    for (heads, cylinders) in [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 2), (1, 5), (5, 20)] {
        for seed in 1..=3 {
            let found = run(&few_tracks(heads, cylinders).spec(), Noise::USUAL, seed);
            let found = found.unwrap_or_else(|error| panic!("{heads}, {cylinders}, {seed}: {error}"));
            assert_exact(&found);
            // Every boundary was looked at again.
            let seen = &found.lattice.verification;
            assert_eq!((seen.drawn, seen.error_rate), ((found.agreement.boundaries, 0), 0.0));
            assert!(seen.doubtful.is_empty(), "{seen:?}");
        }
    }
}

/// A disk of a few heads and cylinders with tracks of 1,200 sectors.
fn few_tracks(heads: u32, cylinders: u32) -> Plan {
    let zone =
        PlanZone { cylinders, band: cylinders, sectors: vec![1200; heads as usize], slips: Vec::new() };
    let (track_skew, head_skew) = (0.0625, 0.27);
    Plan { layout: Layout::Cylinder, heads, physical_sectors: 1, track_skew, head_skew, zones: vec![zone] }
}
