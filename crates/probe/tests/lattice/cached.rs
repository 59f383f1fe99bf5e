//! Disks whose cache answers repeated reads: is the map still found?

use super::*;
use headstack_model::{Instant, Nanos, drives};
use headstack_probe::drive::ProbeTarget;
use headstack_probe::{Answer, DiskInfo, Probe, ProbeCommand};
use std::convert::Infallible;

/// A disk behind a path that cannot request reads from the media, as most paths cannot.
pub(super) struct Cached(pub(super) SimulatedDisk);

impl ProbeTarget for Cached {
    type Error = Infallible;

    fn info(&self) -> DiskInfo {
        DiskInfo { depth: 1, ..self.0.info() }
    }

    fn submit(&mut self, probe: Probe) -> Result<(), Infallible> {
        let command = match probe.command {
            ProbeCommand::Read { lbn, sectors, .. } => ProbeCommand::Read { lbn, sectors, from_media: false },
            other => other,
        };
        self.0.submit(Probe { command, ..probe })
    }

    fn wait(&mut self) -> Result<(Probe, Answer), Infallible> {
        self.0.wait()
    }
}

/// A host so busy that answers from the cache arrive as late as those from the media.
struct Busy(Cached, Instant);

impl ProbeTarget for Busy {
    type Error = Infallible;

    fn info(&self) -> DiskInfo {
        self.0.info()
    }

    fn submit(&mut self, probe: Probe) -> Result<(), Infallible> {
        self.0.submit(Probe { at: probe.at.max(self.1), ..probe })
    }

    fn wait(&mut self) -> Result<(Probe, Answer), Infallible> {
        let (probe, mut answer) = self.0.wait()?;
        if answer.took() < Nanos(300_000) && !probe.number.is_multiple_of(9) {
            answer.ended += Nanos(1_600_000 + probe.number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 800_000);
        }
        self.1 = answer.ended;
        Ok((probe, answer))
    }
}

fn found(name: &str) -> Agreement {
    let spec = drives::load(name).expect("it is shipped");
    let mut disk = Cached(SimulatedDisk::new(&spec, Noise::USUAL, 1).expect("the drive file holds"));
    let mut extraction = Extraction::new(disk.info(), extract);
    let found = drive::run(&mut extraction, &mut disk, |_, _, _| true);
    let lattice = found.expect("it answers").expect("it is not cancelled").expect("there are tracks");
    let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
    eprintln!("{name}: {} probes, {:.0} min", lattice.probes, disk.0.now().as_secs() / 60.0);
    compare(&lattice.map, &truth)
}

/// Other blocks are read between two reads of a block. On some drives there are enough of them that the reads of the block are about
/// equally far apart; then wrong speeds nearly fit.
#[test]
fn tracks_are_mapped_behind_cache() {
    for name in ["cheetah-x15", "samsung-hd400ld", "toshiba-x300", "wd800jd"] {
        let agreement = found(name);
        assert_eq!((agreement.missed, agreement.false_ones), (0, 0), "{name}");
    }
}

#[test]
fn tracks_are_mapped_behind_cache_as_slow_as_media() {
    let spec = noise::small();
    for seed in 1..=8 {
        let disk = SimulatedDisk::new(&spec, Noise::USUAL, seed).expect("the drive file holds");
        let found = noise::found(&spec, Busy(Cached(disk), Instant::ZERO));
        assert!(
            matches!(found, Ok((Agreement { missed: 0, false_ones: 0, .. }, _))),
            "seed {seed}: {found:?}"
        );
    }
}
