//! Is every boundary found from the angles alone?

use headstack_model::spec::Layout;
use headstack_model::{DriveSpec, Geometry, Lbn};
use headstack_probe::lattice::{Lattice, LatticeError, extract};
use headstack_probe::simulated::{Noise, SimulatedDisk};
use headstack_probe::spin::spin;
use headstack_probe::synthetic::{Plan, PlanZone};
use headstack_probe::{Disk, Extraction, drive};
use headstack_tracks::TrackMap;
use headstack_tracks::check::{Agreement, compare};
use std::collections::BTreeSet;

mod cached;
mod defects;
mod large;
mod layouts;
mod noise;
mod queue;
mod refusals;

struct Found {
    lattice: Lattice,
    agreement: Agreement,
    minutes: f64,
}

impl Found {
    fn probes_a_track(&self) -> f64 {
        self.lattice.probes as f64 / (self.agreement.boundaries + 1) as f64
    }
}

fn run(spec: &DriveSpec, noise: Noise, seed: u64) -> Result<Found, LatticeError> {
    run_after(spec, noise, seed, true)
}

fn run_after(
    spec: &DriveSpec,
    noise: Noise,
    seed: u64,
    is_known_to_turn: bool,
) -> Result<Found, LatticeError> {
    let truth = TrackMap::of_geometry(&Geometry::new(spec).expect("it holds"));
    run_against(&truth, spec, noise, seed, is_known_to_turn)
}

/// As [`run_after`], with `truth`, the map of the drive's geometry, which takes long to build for a large drive.
fn run_against(
    truth: &TrackMap,
    spec: &DriveSpec,
    noise: Noise,
    seed: u64,
    is_known_to_turn: bool,
) -> Result<Found, LatticeError> {
    let mut disk = SimulatedDisk::new(spec, noise, seed).expect("the drive file holds");
    // As the command does, which looks first whether the disk turns.
    let after_spin = async |disk: Disk| {
        spin(&disk).await.expect("it turns");
        extract(disk).await
    };
    let mut extraction = if is_known_to_turn {
        Extraction::new(drive::ProbeTarget::info(&disk), extract)
    } else {
        Extraction::new(drive::ProbeTarget::info(&disk), after_spin)
    };
    let found = drive::run(&mut extraction, &mut disk, |_, _, _| true);
    let lattice = found.expect("a simulated disk answers").expect("it is not cancelled")?;
    let agreement = compare(&lattice.map, truth);
    tell_first_difference(&lattice, truth);
    let found = Found { lattice, agreement, minutes: disk.now().as_secs() / 60.0 };
    eprintln!(
        "{}: {} tracks, {} missed, {} false, {} probes ({:.4} a track), {:.1} min",
        spec.name,
        truth.tracks(),
        agreement.missed,
        agreement.false_ones,
        found.lattice.probes,
        found.probes_a_track(),
        found.minutes
    );
    eprintln!("  {} runs, {:?}", found.lattice.runs.len(), found.lattice.verification);
    Ok(found)
}

/// Where a map first differs from the truth, for who has to find out why.
fn tell_first_difference(lattice: &Lattice, truth: &TrackMap) {
    if lattice.map == *truth {
        return;
    }
    let pairs = lattice.map.iter().zip(truth.iter());
    let Some((number, (found, real))) = pairs.enumerate().find(|(_, (found, real))| found != real) else {
        return;
    };
    let near = lattice.runs.partition_point(|run| run.run.first <= found.first);
    eprintln!("track {number}: found {found:?}, is {real:?}");
    for real in truth.iter().skip(number.saturating_sub(3)).take(4) {
        eprintln!("  {real:?}");
    }
    for run in &lattice.runs[near.saturating_sub(5)..(near + 3).min(lattice.runs.len())] {
        eprintln!("  {run:?}");
    }
}

/// Boundaries that the map has wrong, and those of them outside of what the verification doubts.
fn wrong_outside_doubt(found: &Found, truth: &TrackMap) -> u64 {
    let real: BTreeSet<Lbn> = truth.iter().map(|track| track.first).collect();
    let mine: BTreeSet<Lbn> = found.lattice.map.iter().map(|track| track.first).collect();
    let doubt = &found.lattice.verification.doubtful;
    let is_doubted = |at: &Lbn| doubt.iter().any(|range| range.start <= *at && *at <= range.end);
    let wrong: Vec<&Lbn> = real.symmetric_difference(&mine).filter(|at| !is_doubted(at)).collect();
    for at in &wrong {
        let near = found.lattice.runs.partition_point(|run| run.run.first <= **at);
        eprintln!("wrong at {at}, is real: {}, within {:?}", real.contains(at), truth.track_of(**at));
        for run in &found.lattice.runs[near.saturating_sub(4)..(near + 3).min(found.lattice.runs.len())] {
            eprintln!("  {run:?}");
        }
    }
    wrong.len() as u64
}

fn assert_exact(found: &Found) {
    let Agreement { missed, false_ones, .. } = found.agreement;
    assert_eq!((missed, false_ones), (0, 0), "{:?}", found.agreement);
}

/// A disk of three zones, of which the last band is shorter.
fn plan(layout: Layout, heads: u32, bands: u32) -> Plan {
    let zone = |sectors: u32| PlanZone {
        cylinders: bands * 100 + 37,
        band: 100,
        sectors: (0..heads).map(|head| sectors - 7 * (head * 5 % 11)).collect(),
        slips: Vec::new(),
    };
    let zones = [500, 431, 300].map(zone).to_vec();
    Plan { layout, heads, physical_sectors: 8, track_skew: 0.0625, head_skew: 0.27, zones }
}
