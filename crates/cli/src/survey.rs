//! A walk over a drive's tracks in LBN order: how dense they are, and how fast they stream.

use headstack_model::{DriveSpec, Geometry, Lbn, Mechanics};

/// Most parts that a survey has; a drive of more zones is told in parts of about equal size.
const PARTS_MAX: usize = 600;

/// A run of consecutive tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Part {
    /// First block.
    pub first: u64,
    /// Blocks.
    pub sectors: u64,
    /// Tracks.
    pub tracks: u64,
    /// Physical sectors on all of the tracks together.
    pub physical_sectors: u64,
    /// Fewest physical sectors on a track.
    pub least: u32,
    /// Most physical sectors on a track.
    pub most: u32,
    /// Turns of the platter to read the part from end to end, skew included.
    pub turns: f64,
}

impl Part {
    /// Mean physical sectors a track.
    pub(crate) fn density(&self) -> f64 {
        self.physical_sectors as f64 / self.tracks as f64
    }

    /// Rate of a long read, head and track changes included.
    pub(crate) fn streaming_mb_s(&self, spec: &DriveSpec) -> f64 {
        let seconds = self.turns * turn_s(spec);
        self.sectors as f64 * f64::from(spec.sector_bytes) / seconds / 1e6
    }

    /// Rate while a track passes under the head.
    pub(crate) fn media_mb_s(&self, spec: &DriveSpec) -> f64 {
        self.density() * f64::from(spec.sector_bytes) / turn_s(spec) / 1e6
    }

    fn join(&mut self, next: &Part) {
        self.sectors += next.sectors;
        self.tracks += next.tracks;
        self.physical_sectors += next.physical_sectors;
        self.least = self.least.min(next.least);
        self.most = self.most.max(next.most);
        self.turns += next.turns;
    }
}

fn turn_s(spec: &DriveSpec) -> f64 {
    Mechanics::new(spec).spindle().period().as_secs()
}

/// The drive from its first block to its last, in zones where those are few, in equal parts otherwise.
pub(crate) fn survey(geometry: &Geometry) -> Vec<Part> {
    let zones = walk(geometry, |part, track| part.least != track.least);
    if zones.len() <= PARTS_MAX {
        return zones;
    }
    let size = geometry.sectors().div_ceil(PARTS_MAX as u64);
    walk(geometry, |part, track| part.first / size != track.first / size)
}

/// Joins tracks to parts; a new part begins where `ends` says so of the part so far and the next track.
fn walk(geometry: &Geometry, ends: impl Fn(&Part, &Part) -> bool) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut next = 0;
    while next < geometry.sectors() {
        let track = track(geometry, next);
        next = track.first + track.sectors;
        match parts.last_mut() {
            Some(part) if !ends(part, &track) => part.join(&track),
            _ => parts.push(track),
        }
    }
    parts
}

/// The track that holds block `lbn`, as a part: its turns run from its first block to that of the next track.
fn track(geometry: &Geometry, lbn: u64) -> Part {
    let track = geometry.track_at(Lbn(lbn));
    let sectors = (track.first.0 + u64::from(track.sectors)).min(geometry.sectors()) - lbn;
    let written = sectors as f64 / f64::from(track.sectors_per_track);
    let next = lbn + sectors;
    let turns = if next < geometry.sectors() {
        let turned = geometry.extent_at(Lbn(next)).angle - geometry.extent_at(Lbn(lbn)).angle;
        // The angle lost whole turns: take the first time it comes round after the blocks were read. A track that is
        // read in exactly one turn must not gain one by rounding.
        written + (turned.as_turns() - written + 1e-6).rem_euclid(1.0) - 1e-6
    } else {
        written
    };
    let physical_sectors = u64::from(track.sectors_per_track);
    let (least, most) = (track.sectors_per_track, track.sectors_per_track);
    Part { first: lbn, sectors, tracks: 1, physical_sectors, least, most, turns }
}
