//! Is a disk found where times are noisy, many answers late, and the spindle faster and slower?

use super::cached::Cached;
use super::*;
use headstack_model::{Instant, Nanos, drives};
use headstack_probe::drive::ProbeTarget;
use headstack_probe::{Answer, DiskInfo, Probe};
use std::convert::Infallible;
use std::f64::consts::TAU;

pub(super) fn small() -> DriveSpec {
    DriveSpec::parse(include_str!("../../../cli/tests/small.toml"), "small.toml").expect("it holds")
}

/// What a disk's map comes to and the probes it took, or why there is none. As the command does, it looks first whether the disk turns.
pub(super) fn found(
    spec: &DriveSpec,
    mut disk: impl ProbeTarget<Error = Infallible>,
) -> Result<(Agreement, u64), String> {
    let after_spin = async |disk: Disk| {
        spin(&disk).await.map_err(|error| error.to_string())?;
        extract(disk).await.map_err(|error| error.to_string())
    };
    let mut extraction = Extraction::new(disk.info(), after_spin);
    let found = drive::run(&mut extraction, &mut disk, |_, _, _| true);
    let lattice = found.expect("it answers").expect("it is not cancelled")?;
    let truth = TrackMap::of_geometry(&Geometry::new(spec).expect("it holds"));
    tell_first_difference(&lattice, &truth);
    Ok((compare(&lattice.map, &truth), lattice.probes))
}

/// Noise with this deviation, and this percentage of answers up to 3 ms late.
fn noise(sigma_us: u64, late_percent: f64) -> Noise {
    Noise { sigma: Nanos(sigma_us * 1000), late_share: late_percent / 100.0, ..Noise::USUAL }
}

/// Runs in which a disk is not found as it is, and the probes of all others.
fn lost(spec: &DriveSpec, noise: Noise, seeds: u64, is_cached: bool) -> (Vec<String>, u64) {
    let (mut lost, mut probes) = (Vec::new(), 0);
    for seed in 1..=seeds {
        let disk = SimulatedDisk::new(spec, noise, seed).expect("the drive file holds");
        let found = if is_cached { found(spec, Cached(disk)) } else { found(spec, disk) };
        match found {
            Ok((Agreement { missed: 0, false_ones: 0, .. }, requested)) => probes += requested,
            other => lost.push(format!("seed {seed}: {other:?}")),
        }
    }
    (lost, probes)
}

#[test]
fn noisy_disk_is_mapped_with_and_without_cache() {
    for is_cached in [false, true] {
        for (sigma, late) in [(8, 5.0), (30, 0.5), (30, 2.0)] {
            let (lost, _) = lost(&small(), noise(sigma, late), 30, is_cached);
            assert!(lost.is_empty(), "cached {is_cached}, {sigma} µs, {late} %: {lost:?}");
        }
    }
}

#[test]
fn small_skew_is_found_in_noise() {
    // Tracks are turned against each other by two sectors of 85, which is eight deviations of the noise.
    let spec = drives::load("st41601n").expect("it is shipped");
    let (lost, probes) = lost(&spec, noise(30, 0.5), 16, false);
    eprintln!("{} probes on average", probes / 16);
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn sectors_of_a_track_are_counted_in_noise() {
    // With no more readings for an angle than tell tracks apart, one run in 60 finds tracks that do not exist.
    let (lost, _) = lost(&small(), noise(30, 2.0), 400, false);
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn coinciding_late_answers_do_not_hide_sectors() {
    for seed in [33, 125] {
        let disk = SimulatedDisk::new(&small(), noise(8, 5.0), seed).expect("the drive file holds");
        let found = found(&small(), disk).unwrap_or_else(|error| panic!("{seed}: {error}"));
        assert_eq!((found.0.missed, found.0.false_ones), (0, 0), "{seed}");
    }
}

/// Before doubtful tracks were probed again, two readings that were late by the same time made the maps of these runs wrong.
#[test]
fn tracks_that_late_answers_hid_are_relearned() {
    let truth = TrackMap::of_geometry(&Geometry::new(&small()).expect("it holds"));
    for (late, seed, is_cached) in [(20.0, 253, false), (20.0, 392, false), (10.0, 112, true)] {
        let mut disk = SimulatedDisk::new(&small(), noise(5, late), seed).expect("the drive file holds");
        let mut extraction = Extraction::new(disk.info(), extract);
        let found = if is_cached {
            drive::run(&mut extraction, &mut Cached(disk), |_, _, _| true)
        } else {
            drive::run(&mut extraction, &mut disk, |_, _, _| true)
        };
        let lattice = found.expect("it answers").expect("it is not cancelled").expect("there are tracks");
        let agreement = compare(&lattice.map, &truth);
        assert_eq!((agreement.missed, agreement.false_ones), (0, 0), "seed {seed}");
        assert_eq!(lattice.verification.doubtful, [], "seed {seed}");
    }
}

/// Source of the figures on noise in `studies/validation/probing.md`.
#[test]
#[ignore = "minutes: make probe-full"]
fn lost_disks_are_printed_by_noise_and_cache() {
    let drives = ["cheetah-x15", "wd800jd"].map(|name| drives::load(name).expect("it is shipped"));
    for (spec, seeds) in [(&small(), 200), (&drives[0], 20), (&drives[1], 20)] {
        for is_cached in [false, true] {
            for sigma in [8, 30, 60] {
                for late in [0.5, 2.0, 5.0] {
                    let (lost, probes) = lost(spec, noise(sigma, late), seeds, is_cached);
                    let (name, count) = (&spec.name, lost.len() as u64);
                    let mean = probes / (seeds - count).max(1);
                    println!(
                        "{name}, cached {is_cached}, {sigma} µs, {late} %: {count} of {seeds} lost, {mean} probes"
                    );
                    lost.iter().for_each(|why| println!("  {why}"));
                }
            }
        }
    }
}

/// A disk measured by a drifting clock: it gains 50 millionths in an hour, and the spindle is up to 20 millionths faster and slower.
struct Wandering(SimulatedDisk, f64);

impl Wandering {
    fn seen(&self, at: Instant) -> Instant {
        let seconds = at.as_secs();
        let gained = 0.5 * 50e-6 / 3600.0 * seconds * seconds;
        let wandered = 20e-6 * self.1 / TAU * libm::sin(TAU * seconds / self.1);
        at + Nanos(1_000_000_000 + ((gained + wandered) * 1e9) as u64)
    }
}

impl ProbeTarget for Wandering {
    type Error = Infallible;

    fn info(&self) -> DiskInfo {
        self.0.info()
    }

    fn submit(&mut self, probe: Probe) -> Result<(), Infallible> {
        self.0.submit(Probe { at: Instant::ZERO, ..probe })
    }

    fn wait(&mut self) -> Result<(Probe, Answer), Infallible> {
        let (probe, answer) = self.0.wait()?;
        let (issued, ended) = (self.seen(answer.issued), self.seen(answer.ended));
        Ok((probe, Answer { issued, ended, ..answer }))
    }
}

#[test]
fn drifting_spindle_and_clock_cost_at_most_two_boundaries() {
    let spec = drives::load("atlas-10k").expect("it is shipped");
    for period in [30.0, 120.0, 600.0] {
        let disk = SimulatedDisk::new(&spec, Noise::USUAL, 1).expect("the drive file holds");
        let mut extraction = Extraction::new(disk.info(), extract);
        let mut disk = Wandering(disk, period);
        let found = drive::run(&mut extraction, &mut disk, |_, _, _| true);
        let lattice = found.expect("it answers").expect("it is not cancelled").expect("there are tracks");
        let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
        let agreement = compare(&lattice.map, &truth);
        eprintln!(
            "{period} s: {} probes, {:.0} min, {agreement:?}",
            lattice.probes,
            disk.0.now().as_secs() / 60.0
        );
        assert!(agreement.missed + agreement.false_ones <= 2, "{period} s: {agreement:?}");
    }
}
