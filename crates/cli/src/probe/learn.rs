//! Learning one part after the other.

use super::task::{Method, What};
use headstack_tracks::lattice::{self, Lattice, LatticeRun};
use headstack_tracks::learn::{LearnedElectronics, LearnedMechanics, Stretch, electronics, mechanics_of};
use headstack_tracks::spin::{Spin, spin};
use headstack_tracks::{Disk, TrackMap};
use std::cell::RefCell;

/// What was learned so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) spin: Option<Spin>,
    pub(super) map: Option<TrackMap>,
    pub(super) lattice: Option<Lattice>,
    pub(super) mechanics: Option<LearnedMechanics>,
    pub(super) electronics: Option<LearnedElectronics>,
}

impl Found {
    fn has(&self, part: What) -> bool {
        match part {
            What::Speed => self.spin.is_some(),
            What::Tracks => self.map.is_some(),
            What::Seek => self.mechanics.is_some(),
            What::Cache => self.electronics.is_some(),
            What::All => What::EACH.into_iter().all(|part| self.has(part)),
        }
    }

    /// Parts that are not among it.
    pub(super) fn missing(&self, wanted: &[What]) -> Vec<What> {
        wanted.iter().copied().filter(|part| !self.has(*part)).collect()
    }
}

/// Learns parts of a disk, each into `found` once it is known.
///
/// *Errors:* why one cannot be learned, in words.
pub(super) async fn learn(
    disk: Disk,
    method: Method,
    parts: Vec<What>,
    found: &RefCell<Found>,
) -> Result<(), String> {
    for part in parts {
        match part {
            What::Speed => {
                let spin = spin(&disk).await.map_err(|error| error.to_string())?;
                found.borrow_mut().spin = Some(spin);
            }
            What::Tracks => tracks(disk.clone(), method, found).await?,
            What::Seek => seek(disk.clone(), found).await?,
            What::Cache => cache(disk.clone(), found).await?,
            What::All => unreachable!("it was taken apart"),
        }
    }
    Ok(())
}

async fn tracks(disk: Disk, method: Method, found: &RefCell<Found>) -> Result<(), String> {
    match method {
        Method::Lattice => {
            let lattice = lattice::extract(disk).await.map_err(|error| error.to_string())?;
            let mut found = found.borrow_mut();
            found.map = Some(lattice.map.clone());
            found.lattice = Some(lattice);
        }
    }
    Ok(())
}

async fn seek(disk: Disk, found: &RefCell<Found>) -> Result<(), String> {
    let known = found.borrow().lattice.as_ref().map(|lattice| {
        let stretches: Vec<Stretch> = lattice.runs.iter().map(stretch).collect();
        (stretches, lattice.period.0 as f64)
    });
    let (stretches, period) =
        known.ok_or("seeks are learned from angles, which --method lattice alone finds")?;
    let mechanics = mechanics_of(disk, &stretches, period).await;
    found.borrow_mut().mechanics = Some(mechanics);
    Ok(())
}

fn stretch(found: &LatticeRun) -> Stretch {
    let LatticeRun { run, angle, skew, turn } = *found;
    Stretch { run, sectors_per_track: turn.round() as u32, angle, skew }
}

async fn cache(disk: Disk, found: &RefCell<Found>) -> Result<(), String> {
    let (map, turn_ns) = {
        let found = found.borrow();
        let exact = found.lattice.as_ref().map(|lattice| lattice.period.0 as f64);
        let turn_ns = exact.or(found.spin.map(|spin| spin.turn_ns));
        (found.map.clone().expect("it is learned before"), turn_ns.expect("it is learned before"))
    };
    let learned = electronics(disk, map, turn_ns).await.map_err(|error| error.to_string())?;
    found.borrow_mut().electronics = Some(learned);
    Ok(())
}
