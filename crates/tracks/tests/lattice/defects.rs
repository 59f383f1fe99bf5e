//! Disks with slipped sectors and tracks, in blobs.

use super::*;
use headstack_model::Lbn;

/// Boundaries that the map has wrong, and those of them outside of what the verification doubts.
fn wrong_outside_doubt(found: &Found, truth: &TrackMap) -> u64 {
    let real: std::collections::BTreeSet<Lbn> = truth.iter().map(|track| track.first).collect();
    let mine: std::collections::BTreeSet<Lbn> = found.lattice.map.iter().map(|track| track.first).collect();
    let doubt = &found.lattice.verification.doubtful;
    let is_doubted = |at: &Lbn| doubt.iter().any(|range| range.start <= *at && *at <= range.end);
    real.symmetric_difference(&mine).filter(|at| !is_doubted(at)).count() as u64
}

fn check_blobs(mut plan: Plan, blobs: u32, seed: u64) -> Found {
    let hit = plan.add_blobs(blobs, seed);
    let spec = plan.spec();
    let found = run(&spec, Noise::USUAL, seed).unwrap_or_else(|error| panic!("{seed}: {error}"));
    let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
    let outside = wrong_outside_doubt(&found, &truth);
    eprintln!("seed {seed}: {hit} tracks hit, {outside} wrong outside of doubt");
    found
}

#[test]
fn are_blobs_of_defects_found() {
    for (seed, layout) in [(1, Layout::Ff), (2, Layout::Aa), (3, Layout::Fa), (4, Layout::Ff)] {
        check_blobs(plan(layout, 4, 20), 6, seed);
    }
}

#[test]
#[ignore = "millions of tracks: make probe-full"]
fn are_four_hundred_blobs_found() {
    for seed in [1, 2, 3] {
        check_blobs(x300(), 400, seed);
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
