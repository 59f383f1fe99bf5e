//! Learns the wanted parts of a disk, one after the other.

use super::task::{Method, What};
use headstack_model::Lbn;
use headstack_probe::lattice::{self, Lattice};
use headstack_probe::learn::{LearnedElectronics, LearnedMechanics, electronics, mechanics};
use headstack_probe::repair::{notice, repair};
use headstack_probe::spin::{Spin, spin};
use headstack_probe::{Disk, query, scsi, timing};
use headstack_tracks::TrackMap;
use std::cell::RefCell;

#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) spin: Option<Spin>,
    pub(super) map: Option<TrackMap>,
    pub(super) lattice: Option<Lattice>,
    /// The blocks at which a known map was repaired.
    pub(super) mended: Option<Vec<Lbn>>,
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

    pub(super) fn is_empty(&self) -> bool {
        What::EACH.into_iter().all(|part| !self.has(part))
    }

    pub(super) fn missing(&self, wanted: &[What]) -> Vec<What> {
        wanted.iter().copied().filter(|part| !self.has(*part)).collect()
    }
}

/// Learns parts of a disk, and stores each in `found` once it is known. With a known map, verifies that instead of learning the tracks.
pub(super) async fn learn(
    disk: Disk,
    (method, parts): (Method, Vec<What>),
    mut known: Option<TrackMap>,
    found: &RefCell<Found>,
) -> Result<(), String> {
    for part in parts {
        match part {
            What::Speed => {
                let spin = spin(&disk).await.map_err(|error| error.to_string())?;
                found.borrow_mut().spin = Some(spin);
            }
            What::Tracks => tracks(disk.clone(), method, known.take(), found).await?,
            What::Seek => seek(disk.clone(), found).await?,
            What::Cache => cache(disk.clone(), found).await?,
            What::All => unreachable!("it was taken apart"),
        }
    }
    Ok(())
}

async fn tracks(
    disk: Disk,
    method: Method,
    known: Option<TrackMap>,
    found: &RefCell<Found>,
) -> Result<(), String> {
    if let Some(known) = known {
        let (map, mended) = mended(disk, known).await?;
        let mut found = found.borrow_mut();
        (found.map, found.mended) = (Some(map), Some(mended));
        return Ok(());
    }
    let map = match method {
        Method::Lattice => {
            let lattice = lattice::extract(disk).await.map_err(|error| error.to_string())?;
            let map = lattice.map.clone();
            let mut found = found.borrow_mut();
            // The walk over all tracks measures the revolution more accurately than the first reads do.
            if let Some(spin) = &mut found.spin {
                spin.turn_ns = lattice.period.0 as f64;
            }
            found.lattice = Some(lattice);
            map
        }
        Method::Timing => timing::extract(disk).await.map_err(|error| error.to_string())?.map,
        Method::Query => query::extract(disk).await.map_err(|error| error.to_string())?.map,
        Method::Scsi => scsi::extract(disk).await.map_err(|error| error.to_string())?.map,
    };
    found.borrow_mut().map = Some(map);
    Ok(())
}

/// Maximum number of repairs. A map that needs more counts as that of another disk.
const MOST_MENDED: usize = 64;

/// Repairs a known map where the disk has changed. Returns it with the repaired blocks.
async fn mended(disk: Disk, mut map: TrackMap) -> Result<(TrackMap, Vec<Lbn>), String> {
    let mut places = Vec::new();
    while let Some(at) = notice(disk.clone(), &map).await.map_err(|error| error.to_string())? {
        let better = repair(disk.clone(), &map, at).await.map_err(|error| error.to_string())?;
        if better == map || places.len() == MOST_MENDED {
            let count = places.len();
            return Err(format!("the map is wrong at block {at}, after {count} repairs: learn it again"));
        }
        places.push(at);
        map = better;
    }
    Ok((map, places))
}

async fn seek(disk: Disk, found: &RefCell<Found>) -> Result<(), String> {
    let lattice = found.borrow().lattice.clone();
    let lattice = lattice.ok_or("seeks are learned from angles, which --method lattice alone finds")?;
    let learned = mechanics(disk, &lattice).await;
    found.borrow_mut().mechanics = Some(learned);
    Ok(())
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
