//! A drive file as a host uses it: where blocks lie, and the times of a request from its command to its answer.

use super::spindle_phase::SpindlePhase;
use headstack_model::{
    Angle, DriveSpec, Extent, Geometry, Instant, Lbn, Mechanics, Nanos, Op, Request, SpecError, TrackPlace,
};
use std::sync::Arc;

/// Layout, arm and electronics of a drive, from its drive file. A clone shares the tables.
#[derive(Clone, Debug)]
pub struct DriveModel {
    pub(super) geometry: Arc<Geometry>,
    pub(super) mechanics: Arc<Mechanics>,
    cylinders: u32,
    sector_bytes: u32,
    read_overhead: Nanos,
    write_overhead: Nanos,
    read_completion: Nanos,
    /// Time of a sector on the bus, in nanoseconds.
    bus_sector_ns: f64,
    buffer_full_ratio: f64,
}

/// The predicted times of a request that is alone at the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// When the head is on the track.
    pub on_track: Instant,
    /// When the first sector begins to pass under it.
    pub begins: Instant,
    /// When the host has the answer.
    pub ends: Instant,
}

impl DriveModel {
    /// The model of a drive file.
    ///
    /// *Errors:* the file is not consistent.
    pub fn new(spec: &DriveSpec) -> Result<DriveModel, SpecError> {
        let (overhead, bus) = (&spec.overhead, &spec.bus);
        Ok(DriveModel {
            geometry: Arc::new(Geometry::new(spec)?),
            mechanics: Arc::new(Mechanics::new(spec)),
            cylinders: spec.geometry.cylinders,
            sector_bytes: spec.sector_bytes,
            read_overhead: Nanos::from_ms(overhead.after_read.read_miss_ms + overhead.first_ms),
            write_overhead: Nanos::from_ms(overhead.after_read.write_ms + overhead.first_ms),
            read_completion: Nanos::from_ms(overhead.read_completion_ms),
            bus_sector_ns: bus.read_us_per_sector * 1e3,
            buffer_full_ratio: bus.buffer_full_ratio,
        })
    }

    /// Size of the disk in bytes.
    pub fn bytes(&self) -> u64 {
        self.geometry.sectors() * u64::from(self.sector_bytes)
    }

    /// Bytes of a block.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Cylinders of the disk.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    pub(super) fn period(&self) -> Nanos {
        self.mechanics.spindle().period()
    }

    /// Time from a command's start until the arm starts to move for it.
    pub(super) fn overhead(&self, op: Op) -> Nanos {
        if op == Op::Write { self.write_overhead } else { self.read_overhead }
    }

    /// The track and the angle of a block.
    pub(super) fn target(&self, lbn: Lbn) -> (TrackPlace, Angle) {
        let extent = self.geometry.extent_at(lbn);
        (track_of(&extent), angle_after(&extent, lbn - extent.first))
    }

    /// The angle at which a read's last sector has passed, if the read lies within a quarter of a track; else the drive may begin
    /// with another sector than the first.
    pub(super) fn end_angle(&self, request: &Request) -> Option<Angle> {
        let extent = self.geometry.extent_at(request.lbn);
        let before = request.lbn - extent.first;
        let is_inside = before + u64::from(request.sectors) <= u64::from(extent.sectors);
        let is_short = request.sectors <= extent.sectors_per_track / 4;
        (is_inside && is_short).then(|| angle_after(&extent, before + u64::from(request.sectors)))
    }

    /// Time in which a run of sectors on the track of `lbn` passes.
    fn media_time(&self, lbn: Lbn, sectors: u64) -> Nanos {
        let width = self.geometry.extent_at(lbn).sector_width;
        let units = (u128::from(sectors) * u128::from(width)) >> 32;
        self.mechanics.spindle().time_of_units(u64::try_from(units).unwrap_or(u64::MAX))
    }

    /// Time from the end of a read's last sector to the answer: the part of the bus transfer that does not overlap the media transfer.
    pub(super) fn tail(&self, request: &Request) -> Nanos {
        let bus = |sectors: u64| Nanos((sectors as f64 * self.bus_sector_ns) as u64);
        let sectors = u64::from(request.sectors);
        let first = ((sectors as f64 * self.buffer_full_ratio) as u64).clamp(1, sectors.max(1));
        let rest = self.media_time(request.lbn, sectors - first.min(sectors));
        bus(1).max(bus(sectors).saturating_sub(rest)) + self.read_completion
    }

    /// The least time from a read's start to its answer from the media; a faster read came from a cache. `arm` is the arm's track, if known.
    ///
    /// It is a lower bound that allows for a wrong seek curve: half of the overhead and three quarters of the seek.
    pub(super) fn least_service(&self, arm: Option<TrackPlace>, request: &Request) -> Nanos {
        let to = self.target(request.lbn).0;
        let seek = arm.map_or(Nanos::ZERO, |arm| self.mechanics.reposition(arm, to, false));
        let media = self.media_time(request.lbn, request.sectors.into());
        Nanos(self.read_overhead.0 / 2 + seek.0 / 4 * 3) + media
    }

    /// Predicts a request whose command starts at `start`, with the arm on the track of `last`.
    pub(super) fn predict(
        &self,
        phase: &SpindlePhase,
        start: Instant,
        last: TrackPlace,
        request: &Request,
    ) -> Prediction {
        let is_write = request.op == Op::Write;
        let (mut place, mut free) = (last, start + self.overhead(request.op));
        let (mut from, mut first) = (request.lbn, None);
        while from < request.end() {
            let extent = self.geometry.extent_at(from);
            let to = track_of(&extent);
            let on_track = free + self.mechanics.reposition(place, to, is_write);
            let begins = on_track + phase.wait(on_track, angle_after(&extent, from - extent.first));
            first = first.or(Some((on_track, begins)));
            let sectors = (request.end() - from).min(u64::from(extent.sectors) - (from - extent.first));
            free = begins + self.media_time(from, sectors);
            (place, from) = (to, from + sectors);
        }
        let (on_track, begins) = first.unwrap_or((free, free));
        Prediction { on_track, begins, ends: free + self.tail(request) }
    }
}

fn track_of(extent: &Extent) -> TrackPlace {
    TrackPlace { cylinder: extent.cylinder, head: extent.head }
}

/// The angle after this many blocks of a run.
fn angle_after(extent: &Extent, blocks: u64) -> Angle {
    let units = (u128::from(blocks) * u128::from(extent.sector_width)) >> 32;
    extent.angle + Angle(units as u32)
}
