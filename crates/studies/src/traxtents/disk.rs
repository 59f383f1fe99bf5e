//! Random requests of a track's length in the first zone: what of a disk's time each takes.

use super::Part;
use crate::judge::Measured;
use crate::runs::engine;
use crate::study::{Setting, StudyError};
use headstack_model::spec::DriveSpec;
use headstack_model::{Geometry, Lbn, drives};
use headstack_workload::{Region, TrackLoad, TrackShape};

/// Requests of a run: as many as the study's.
const REQUESTS: u64 = 5000;

pub(super) fn run(setting: &Setting<'_>) -> Result<Part, StudyError> {
    let spec = drives::load("atlas-10k-ii")?;
    let region = first_zone(&spec)?;
    let requests = setting.length.pick(REQUESTS, REQUESTS / 10);
    let head = head_time_ms(&spec, TrackShape::tworeq(region, true), requests)?;
    Ok((vec![Measured::new("atlas-10k-ii.read.tworeq.aligned", head)], Vec::new()))
}

/// The blocks of the first zone.
fn first_zone(spec: &DriveSpec) -> Result<Region, StudyError> {
    let geometry = Geometry::new(spec)?;
    let end = match spec.geometry.zones.get(1) {
        Some(zone) => geometry.lbn_at(zone.first_cylinder, 0, 0).map_or(geometry.sectors(), |lbn| lbn.0),
        None => geometry.sectors(),
    };
    Ok(Region { first: Lbn(0), sectors: end })
}

/// What a request takes of the disk's time: the time of all over their number.
fn head_time_ms(spec: &DriveSpec, shape: TrackShape, requests: u64) -> Result<f64, StudyError> {
    let geometry = Geometry::new(spec)?;
    let mut load = TrackLoad::new(shape, requests, 1, |lbn| geometry.track_at(lbn))?;
    let mut engine = engine(spec)?;
    engine.run(&mut load, &mut |_| ());
    Ok(engine.now().as_ms() / requests as f64)
}
