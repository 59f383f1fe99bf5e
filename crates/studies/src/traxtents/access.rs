//! Random requests in one region of a disk, one outstanding or two, aligned to tracks or not, and the parts of their time.

use crate::runs;
use crate::study::StudyError;
use headstack_model::{DriveSpec, Geometry, Lbn, Mechanics, Op, Request};
use headstack_sim::{Completion, DeviceOptions, Finished, Observer, TimeSplit};
use headstack_workload::{Closed, Load, Pattern, Region, Shape, TrackLoad, TrackShape};

/// A region of a disk, in which requests begin.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) spec: DriveSpec,
    geometry: Geometry,
    region: Region,
    pub(super) turn_ms: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Size {
    /// A number of eighths of the track in which the request begins.
    Eighths(u32),
    /// A number of blocks.
    Sectors(u32),
}

/// The whole track in which a request begins.
pub(super) const TRACK: Size = Size::Eighths(8);

#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) op: Op,
    pub(super) aligned: bool,
    /// Requests outstanding: 1 is the study's onereq, 2 its tworeq.
    pub(super) depth: u32,
    pub(super) size: Size,
}

impl Access {
    /// Reads of a whole track.
    pub(super) fn reads(aligned: bool, depth: u32) -> Access {
        Access { op: Op::Read, aligned, depth, size: TRACK }
    }
}

/// The results of a run, as means over its requests.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessTimes {
    /// The time of the whole run, divided by the number of requests.
    pub(super) head_ms: f64,
    pub(super) response_ms: f64,
    pub(super) deviation_ms: f64,
    /// Mean and standard deviation of seeks, including head switches within a request.
    pub(super) seek_ms: (f64, f64),
    pub(super) latency_ms: f64,
    /// The part of the bus transfer that does not overlap with the media transfer.
    pub(super) bus_ms: f64,
    /// Sectors per request, as revolutions of the disk.
    pub(super) turns: f64,
    pub(super) kib: f64,
    /// Share of the requests that lie on more than one track.
    pub(super) crossing: f64,
}

#[derive(Default)]
struct Watch {
    responses_ms: Vec<f64>,
    seeks_ms: Vec<f64>,
    requests: Vec<Request>,
    parts: TimeSplit,
}

impl Observer for Watch {
    fn finished(&mut self, finished: &Finished) {
        self.responses_ms.push(finished.completion.response().as_ms());
        self.requests.push(finished.completion.request);
    }

    fn served(&mut self, _device: u32, command: &Completion) {
        self.parts += command.parts;
        self.seeks_ms.push(command.parts.seek.as_ms());
    }
}

/// The outermost tracks of a disk. They are equally long, or nearly so where surfaces differ in density.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FirstZone {
    pub(super) cylinders: u32,
    /// The first block behind it.
    pub(super) end: Lbn,
}

impl FirstZone {
    pub(super) fn of(spec: &DriveSpec, geometry: &Geometry) -> FirstZone {
        // The zone ends behind the front gap of the next one.
        let zone = spec.geometry.zones.get(1).map(|zone| (zone.first_cylinder, zone.front_gap_sectors));
        let band_zone = spec.geometry.band_zones.get(1).map(|zone| (zone.first_cylinder, 0));
        let next = zone.or(band_zone);
        let end = next.and_then(|(cylinder, gap)| geometry.lbn_at(cylinder, 0, gap));
        FirstZone {
            cylinders: next.map_or(spec.geometry.cylinders, |(cylinder, _)| cylinder),
            end: end.unwrap_or(Lbn(geometry.sectors())),
        }
    }
}

/// The starts of tracks from a block on: that block first, then each boundary up to the first one at or behind `end`.
pub(super) fn boundaries(geometry: &Geometry, from: Lbn, end: Lbn) -> Vec<Lbn> {
    let mut boundaries = vec![from];
    let mut last = from;
    while last < end {
        let Some(next) = geometry.next_track_boundary(last) else { break };
        boundaries.push(next);
        last = next;
    }
    boundaries
}

impl AccessTimes {
    /// The time by which this head time is shorter than the other, in percent of the other.
    pub(super) fn reduction_of(&self, other: &AccessTimes) -> f64 {
        100.0 * (1.0 - self.head_ms / other.head_ms)
    }

    /// Share of the time in which wanted data pass under the head, in percent.
    pub(super) fn efficiency(&self, turn_ms: f64) -> f64 {
        100.0 * self.turns * turn_ms / self.head_ms
    }
}

impl Place {
    /// The first zone of a drive file.
    pub(super) fn first_zone(spec: DriveSpec) -> Result<Place, StudyError> {
        let place = Place::part(spec, 0.0, 1.0)?;
        let sectors = FirstZone::of(&place.spec, &place.geometry).end.0;
        Ok(Place { region: Region { sectors, ..place.region }, ..place })
    }

    /// A part of a disk, in shares of its sectors.
    pub(super) fn part(spec: DriveSpec, from: f64, share: f64) -> Result<Place, StudyError> {
        let geometry = Geometry::new(&spec)?;
        let of = |share: f64| (geometry.sectors() as f64 * share) as u64;
        let region = Region { first: Lbn(of(from)), sectors: of(share) };
        let turn_ms = Mechanics::new(&spec).spindle().period().as_ms();
        Ok(Place { spec, geometry, region, turn_ms })
    }

    /// The same region on a changed drive.
    pub(super) fn with(&self, change: impl FnOnce(&mut DriveSpec)) -> Place {
        let mut place = self.clone();
        change(&mut place.spec);
        place
    }

    /// Runs this number of requests.
    pub(super) fn run(&self, access: Access, requests: u64) -> Result<AccessTimes, StudyError> {
        let Access { op, aligned, depth, size } = access;
        let shape = TrackShape { region: self.region, aligned, op, depth };
        let track_of = |lbn| {
            let mut track = self.geometry.track_at(lbn);
            track.sectors = match size {
                Size::Eighths(eighths) => (track.sectors * eighths / 8).max(1),
                Size::Sectors(sectors) => sectors,
            };
            // A long request may not extend beyond the end of the disk.
            let left = self.geometry.sectors() - track.first.0;
            track.sectors = track.sectors.min(u32::try_from(left).unwrap_or(u32::MAX));
            track
        };
        let mut load = TrackLoad::new(shape, requests, 1, track_of)?;
        let (watch, took_ms) = self.play(depth, &mut load)?;
        Ok(self.outcome(&watch, took_ms))
    }

    /// Share of the time in which wanted data pass under the head while about the first thousand tracks of the region are read in order.
    pub(super) fn streaming(&self) -> Result<f64, StudyError> {
        let track = u64::from(self.geometry.track_at(self.region.first).sectors);
        let region = Region { sectors: (1000 * track).min(self.region.sectors) / 128 * 128, ..self.region };
        let shape =
            Shape { region, pattern: Pattern::Sequential, sectors: 128, alignment: 1, read_share: 1.0 };
        let mut load = Closed::new(shape, 1, region.sectors / 128, 1)?;
        let (watch, took_ms) = self.play(1, &mut load)?;
        let outcome = self.outcome(&watch, took_ms);
        Ok(outcome.efficiency(self.turn_ms) / 100.0)
    }

    fn play(&self, depth: u32, load: &mut dyn Load) -> Result<(Watch, f64), StudyError> {
        let options = DeviceOptions { depth: Some(depth), ..DeviceOptions::default() };
        let mut watch = Watch::default();
        let results = runs::run_observed(&self.spec, &options, load, &mut watch)?;
        Ok((watch, results.end.as_ms()))
    }

    fn outcome(&self, watch: &Watch, took_ms: f64) -> AccessTimes {
        let count = watch.responses_ms.len() as f64;
        let (response_ms, deviation_ms) = mean_and_deviation(&watch.responses_ms);
        let tracks = watch.requests.iter().map(|request| (request, self.geometry.track_at(request.lbn)));
        let tracks: Vec<_> = tracks.collect();
        let turns = tracks.iter().map(|(r, track)| f64::from(r.sectors) / f64::from(track.sectors_per_track));
        let beyond = |(request, track): &&(&Request, headstack_model::Track)| {
            request.end() > track.first + u64::from(track.sectors)
        };
        AccessTimes {
            head_ms: took_ms / count,
            response_ms,
            deviation_ms,
            seek_ms: mean_and_deviation(&watch.seeks_ms),
            latency_ms: watch.parts.rotational_latency.as_ms() / count,
            bus_ms: watch.parts.bus.as_ms() / count,
            turns: turns.sum::<f64>() / count,
            kib: tracks.iter().map(|(r, _)| f64::from(r.sectors)).sum::<f64>() / 2.0 / count,
            crossing: tracks.iter().filter(beyond).count() as f64 / count,
        }
    }
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::drives;

    fn place() -> Place {
        let spec = drives::load("atlas-10k-ii").expect("it is shipped");
        Place::first_zone(spec).expect("it holds")
    }

    #[test]
    fn first_zone_has_the_sectors_of_the_drive_file() {
        // 2,023 cylinders of five tracks of 528 sectors.
        assert_eq!(place().region, Region { first: Lbn(0), sectors: 2023 * 5 * 528 });
    }

    #[test]
    fn aligned_track_requests_cross_no_track_boundary() {
        let crossing = |aligned, size| {
            let access = Access { size, ..Access::reads(aligned, 1) };
            place().run(access, 400).expect("it runs").crossing
        };
        assert_eq!(crossing(true, TRACK), 0.0);
        assert!(crossing(false, TRACK) > 0.98);
        assert!((crossing(false, Size::Sectors(264)) - 0.5).abs() < 0.1);
        assert_eq!(crossing(true, Size::Eighths(9)), 1.0);
    }
}
