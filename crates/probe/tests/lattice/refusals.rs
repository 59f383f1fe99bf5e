//! Disks whose answers make no sense, and caches in the way.

use super::cached::Cached;
use super::*;
use headstack_model::{Instant, Nanos};
use headstack_probe::drive::ProbeTarget;
use headstack_probe::{Answer, DiskInfo, Outcome, Probe, ProbeCommand};
use std::collections::VecDeque;

/// A disk that answers after a time that depends on the probe's number alone.
struct Nonsense {
    took: fn(u64) -> u64,
    outcome: Outcome,
    now: Instant,
    requested: VecDeque<Probe>,
}

impl ProbeTarget for Nonsense {
    type Error = std::convert::Infallible;

    fn info(&self) -> DiskInfo {
        DiskInfo {
            sectors: 1 << 30,
            sector_bytes: 512,
            physical_sectors: 8,
            depth: 1,
            may_write: false,
            translates: false,
        }
    }

    fn submit(&mut self, probe: Probe) -> Result<(), Self::Error> {
        self.requested.push_back(probe);
        Ok(())
    }

    fn wait(&mut self) -> Result<(Probe, Answer), Self::Error> {
        let probe = self.requested.pop_front().expect("something was asked");
        let issued = self.now;
        self.now = issued + Nanos((self.took)(probe.number));
        Ok((probe, Answer { issued, ended: self.now, outcome: self.outcome.clone() }))
    }
}

fn refusal(took: fn(u64) -> u64, outcome: Outcome) -> LatticeError {
    let mut disk = Nonsense { took, outcome, now: Instant::ZERO, requested: VecDeque::new() };
    let mut extraction = Extraction::new(disk.info(), extract);
    let found = drive::run(&mut extraction, &mut disk, |_, _, _| true);
    found.expect("it answers").expect("it is not cancelled").expect_err("there is no lattice")
}

fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
}

#[test]
fn implausible_disk_is_rejected_with_its_cause() {
    let cached = refusal(|_| 80_000, Outcome::Done);
    assert!(matches!(cached, LatticeError::Cached { .. }), "{cached}");
    let random = refusal(|number| 3_000_000 + scatter(number), Outcome::Done);
    assert!(matches!(random, LatticeError::NoPeriod { .. }), "{random}");
    // Every answer a turn after the last, wherever it is: no angle ever differs.
    let even = refusal(|_| 8_333_333, Outcome::Done);
    assert!(matches!(even, LatticeError::NoSectors { .. }), "{even}");
    let failing = refusal(|_| 8_333_333, Outcome::Failed);
    assert!(matches!(failing, LatticeError::Unreadable { .. }), "{failing}");
}

#[test]
fn disk_with_inseparable_cache_is_mapped_exactly() {
    let spec = plan(Layout::Ff, 3, 4).spec();
    let mut disk = Cached(SimulatedDisk::new(&spec, Noise::USUAL, 1).expect("it holds"));
    let mut extraction = Extraction::new(disk.info(), extract);
    let found = drive::run(&mut extraction, &mut disk, |_, _, _| true);
    let lattice = found.expect("it answers").expect("it is not cancelled").expect("it has a lattice");
    let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
    let agreement = compare(&lattice.map, &truth);
    eprintln!("cached: {} probes, {:.1} min, {agreement:?}", lattice.probes, disk.0.now().as_secs() / 60.0);
    assert_eq!((agreement.missed, agreement.false_ones), (0, 0));
}

#[test]
fn disk_without_skew_is_rejected() {
    let mut plan = plan(Layout::Cylinder, 2, 4);
    (plan.track_skew, plan.head_skew) = (0.0, 0.0);
    for (sigma_us, seed) in
        [8, 30, 60].into_iter().flat_map(|sigma_us| [(sigma_us, 1), (sigma_us, 2), (sigma_us, 3)])
    {
        let noise = Noise { sigma: Nanos(sigma_us * 1000), ..Noise::USUAL };
        let refused = run(&plan.spec(), noise, seed).map(|found| found.agreement);
        assert!(matches!(refused, Err(LatticeError::NoSkew { .. })), "{sigma_us} µs, {seed}: {refused:?}");
    }
}

/// A disk of whose physical sectors one in a thousand cannot be read, or comes at another time whenever it is read.
struct Damaged(SimulatedDisk, Damage);

#[derive(Clone, Copy, PartialEq)]
enum Damage {
    Unreadable,
    Unsteady,
}

impl ProbeTarget for Damaged {
    type Error = std::convert::Infallible;

    fn info(&self) -> DiskInfo {
        self.0.info()
    }

    fn submit(&mut self, probe: Probe) -> Result<(), Self::Error> {
        self.0.submit(probe)
    }

    fn wait(&mut self) -> Result<(Probe, Answer), Self::Error> {
        let (probe, mut answer) = self.0.wait()?;
        if let ProbeCommand::Read { lbn, .. } = probe.command
            && lbn.0 > 0
            && scatter(lbn.0 / 8).is_multiple_of(1_000)
        {
            match self.1 {
                Damage::Unreadable => answer.outcome = Outcome::Failed,
                Damage::Unsteady => answer.ended += Nanos(scatter(probe.number) % 8_000_000),
            }
        }
        Ok((probe, answer))
    }
}

#[test]
fn unreadable_or_unsteady_sectors_are_skipped() {
    for (seed, damage) in
        (1..=4).flat_map(|seed| [Damage::Unreadable, Damage::Unsteady].map(|damage| (seed, damage)))
    {
        let spec = plan(Layout::Ff, 4, 20).spec();
        let simulated = SimulatedDisk::new(&spec, Noise::USUAL, seed).expect("it holds");
        let mut disk = Damaged(simulated, damage);
        let mut extraction = Extraction::new(disk.info(), extract);
        let found = drive::run(&mut extraction, &mut disk, |_, _, _| true);
        let lattice = found.expect("it answers").expect("it is not cancelled");
        let lattice = lattice.unwrap_or_else(|error| panic!("{seed}: {error}"));
        let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
        let agreement = compare(&lattice.map, &truth);
        tell_first_difference(&lattice, &truth);
        eprintln!("damaged: {} probes, {agreement:?}", lattice.probes);
        assert_eq!((agreement.missed, agreement.false_ones), (0, 0));
    }
}

#[test]
fn map_that_fails_verification_is_rejected() {
    // Tracks of odd numbers of sectors, of which the disk says that eight are one on its media.
    let zone = |sectors| PlanZone { cylinders: 800, band: 100, sectors: vec![sectors; 3], slips: Vec::new() };
    let zones = vec![zone(117), zone(109), zone(93)];
    let (track_skew, head_skew) = (0.1, 0.3);
    let plan = Plan { layout: Layout::Ff, heads: 3, physical_sectors: 1, track_skew, head_skew, zones };
    let mut spec = plan.spec();
    spec.physical_sector_bytes = 8 * spec.sector_bytes;
    let refused = run(&spec, Noise::USUAL, 1).map(|found| found.agreement);
    let refusal = refused.expect_err("no boundary lies where one is looked for");
    assert!(matches!(refusal, LatticeError::Unreliable { .. } | LatticeError::Lost { .. }), "{refusal}");
}
