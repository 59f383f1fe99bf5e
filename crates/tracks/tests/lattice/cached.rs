//! Is a drive found whose cache answers what was read before?

use super::*;
use headstack_model::drives;
use headstack_tracks::drive::Answers;
use headstack_tracks::{Answer, Ask, Facts, Probe};
use std::convert::Infallible;

/// A disk on the way to which nothing says that reads are to come from the media, as most ways are.
struct Cached(SimulatedDisk);

impl Answers for Cached {
    type Error = Infallible;

    fn facts(&self) -> Facts {
        Facts { depth: 1, ..self.0.facts() }
    }

    fn ask(&mut self, probe: Probe) -> Result<(), Infallible> {
        let ask = match probe.ask {
            Ask::Read { lbn, sectors, .. } => Ask::Read { lbn, sectors, from_media: false },
            other => other,
        };
        self.0.ask(Probe { ask, ..probe })
    }

    fn wait(&mut self) -> Result<(Probe, Answer), Infallible> {
        self.0.wait()
    }
}

fn found(name: &str) -> Agreement {
    let spec = drives::load(name).expect("it is shipped");
    let mut disk = Cached(SimulatedDisk::new(&spec, Noise::USUAL, 1).expect("the drive file holds"));
    let mut extraction = Extraction::new(disk.facts(), extract);
    let found = drive::run(&mut extraction, &mut disk, |_, _, _| true);
    let lattice = found.expect("it answers").expect("nobody ended it").expect("there are tracks");
    let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
    eprintln!("{name}: {} probes, {:.0} min", lattice.probes, disk.0.now().as_secs() / 60.0);
    compare(&lattice.map, &truth)
}

/// Between two reads of a block others are read, so many at a time on some drives that reads of the block come about equally far
/// apart: then other speeds than the true one nearly fit.
#[test]
fn are_tracks_found_behind_a_cache() {
    for name in ["cheetah-x15", "samsung-hd400ld", "toshiba-x300", "wd800jd"] {
        let agreement = found(name);
        assert_eq!((agreement.missed, agreement.false_ones), (0, 0), "{name}");
    }
}
