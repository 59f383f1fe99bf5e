//! Several probes in flight at a time, if the disk queues.

use super::*;
use headstack_model::Nanos;
use headstack_probe::drive::ProbeTarget;
use headstack_probe::{Answer, DiskInfo, Probe};

/// A disk of a queue depth, whose answers are later by an amount if others are in flight.
struct Queued {
    disk: SimulatedDisk,
    depth: usize,
    later: Nanos,
    in_flight: usize,
}

impl ProbeTarget for Queued {
    type Error = std::convert::Infallible;

    fn info(&self) -> DiskInfo {
        DiskInfo { depth: self.depth, ..self.disk.info() }
    }

    fn submit(&mut self, probe: Probe) -> Result<(), Self::Error> {
        self.in_flight += 1;
        self.disk.submit(probe)
    }

    fn wait(&mut self) -> Result<(Probe, Answer), Self::Error> {
        let (probe, mut answer) = self.disk.wait()?;
        if self.in_flight > 1 {
            answer.ended += self.later;
        }
        self.in_flight -= 1;
        Ok((probe, answer))
    }
}

/// The map of a disk, and the seconds that it took.
fn extracted(spec: &DriveSpec, depth: usize, later: Nanos) -> (Lattice, f64) {
    let disk = SimulatedDisk::new(spec, Noise::USUAL, 1).expect("the drive file holds");
    let mut disk = Queued { disk, depth, later, in_flight: 0 };
    let mut extraction = Extraction::new(disk.info(), extract);
    let found = drive::run(&mut extraction, &mut disk, |_, _, _| true);
    let lattice = found.expect("it answers").expect("it is not cancelled").expect("it has a lattice");
    let seconds = disk.disk.now().as_secs();
    eprintln!("{}, depth {depth}, {later} later: {} probes, {seconds:.1} s", spec.name, lattice.probes);
    (lattice, seconds)
}

fn specs() -> Vec<DriveSpec> {
    let dense =
        [Layout::Cylinder, Layout::Ff, Layout::Aa].map(|layout| Plan::dense(layout, 2, false, 1).spec());
    let shipped = ["toshiba-x300", "exos-x18"];
    let shipped = shipped.map(|name| headstack_model::drives::load(name).expect("it is shipped"));
    dense.into_iter().chain(shipped).collect()
}

#[test]
fn queued_probes_give_same_map_sooner() {
    for spec in specs() {
        let (alone, took) = extracted(&spec, 1, Nanos::ZERO);
        for depth in [2, 32] {
            let (queued, took_queued) = extracted(&spec, depth, Nanos::ZERO);
            assert_eq!(queued.map, alone.map, "{}", spec.name);
            assert!(took_queued < 0.9 * took, "{}, depth {depth}: {took_queued} and {took}", spec.name);
        }
    }
}

#[test]
fn queue_that_shifts_completions_leaves_map_unchanged() {
    let spec = Plan::dense(Layout::Ff, 2, false, 1).spec();
    let (alone, took) = extracted(&spec, 1, Nanos::ZERO);
    let (shifted, took_shifted) = extracted(&spec, 32, Nanos(100_000));
    assert_eq!(shifted.map, alone.map);
    assert!(took_shifted < 1.1 * took, "{took_shifted} and {took}");
}
