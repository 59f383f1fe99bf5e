//! A walk over a drive's tracks in LBN order, for density and streaming rate.

use headstack_model::{Angle, DriveSpec, Geometry, Lbn, Mechanics};

/// Maximum number of parts of a survey. A drive with more zones is divided into parts of about equal size.
const PARTS_MAX: usize = 600;

#[derive(Clone, Debug)]
pub(crate) struct Survey {
    /// The zones if they are few, equal parts otherwise, from the first block to the last.
    pub parts: Vec<Part>,
    sector_bytes: f64,
    turn_s: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Part {
    pub first: u64,
    pub sectors: u64,
    pub tracks: u64,
    pub physical_sectors: u64,
    pub least: u32,
    pub most: u32,
    /// Turns for reading the part sequentially, skew included.
    pub turns: f64,
}

impl Survey {
    pub(crate) fn new(spec: &DriveSpec, geometry: &Geometry) -> Survey {
        let size = geometry.sectors().div_ceil(PARTS_MAX as u64);
        let parts = walk(geometry, &Parts::Zones)
            .or_else(|| walk(geometry, &Parts::Sectors(size)))
            .expect("there are no more equal parts than parts may be");
        let sector_bytes = f64::from(spec.sector_bytes);
        let turn_s = Mechanics::new(spec).spindle().period().as_secs();
        Survey { parts, sector_bytes, turn_s }
    }

    /// Rate of a long read of a part, head switches and seeks included.
    pub(crate) fn streaming_mb_s(&self, part: &Part) -> f64 {
        part.sectors as f64 * self.sector_bytes / (part.turns * self.turn_s) / 1e6
    }

    /// Rate while a track of a part passes under the head.
    pub(crate) fn media_mb_s(&self, part: &Part) -> f64 {
        part.density() * self.sector_bytes / self.turn_s / 1e6
    }
}

impl Part {
    /// Mean physical sectors a track.
    pub(crate) fn density(&self) -> f64 {
        self.physical_sectors as f64 / self.tracks as f64
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

/// The rule for where a part ends and the next begins.
enum Parts {
    /// Where the number of sectors per track changes.
    Zones,
    /// At the first track that begins at or behind a multiple of this number of sectors.
    Sectors(u64),
}

impl Parts {
    fn divide(&self, part: &Part, next: &Part) -> bool {
        match self {
            Parts::Zones => part.least != next.least,
            Parts::Sectors(size) => part.first / size != next.first / size,
        }
    }

    /// The number of tracks behind `track` that belong to the same part, if each has as many sectors as `track`.
    fn tracks_after(&self, track: &Part) -> u64 {
        match self {
            Parts::Zones => u64::MAX,
            Parts::Sectors(size) => {
                let end = (track.first / size + 1) * size;
                end.saturating_sub(track.first + track.sectors).div_ceil(track.sectors)
            }
        }
    }
}

/// Merges tracks into parts. None if there would be more than [`PARTS_MAX`].
fn walk(geometry: &Geometry, division: &Parts) -> Option<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    let mut next = 0;
    let mut angle = angle(geometry, 0);
    while next < geometry.sectors() {
        let track = track(geometry, next, &mut angle);
        next += track.sectors;
        let equal = equal_tracks(geometry, &track, division, &mut angle);
        let full = parts.len() == PARTS_MAX;
        match parts.last_mut() {
            Some(part) if !division.divide(part, &track) => part.join(&track),
            _ if full => return None,
            _ => parts.push(track),
        }
        if let (Some(equal), Some(part)) = (equal, parts.last_mut()) {
            next += equal.sectors;
            part.join(&equal);
        }
    }
    Some(parts)
}

/// The tracks behind `track` that take equal times to read and belong to the same part, without the last of them. Sets `begins` to the angle
/// of the first block behind the returned tracks.
fn equal_tracks(geometry: &Geometry, track: &Part, division: &Parts, begins: &mut Angle) -> Option<Part> {
    let first = track.first + track.sectors;
    if track.sectors != track.physical_sectors || first == geometry.sectors() {
        return None;
    }
    let last = geometry.extent_at(Lbn(first - 1));
    let whole = geometry.whole_tracks_after(&last, division.tracks_after(track))?;
    let tracks = whole.count - 1;
    *begins = whole.last.angle;
    Some(Part {
        first,
        sectors: tracks * track.sectors,
        tracks,
        physical_sectors: tracks * track.physical_sectors,
        turns: tracks as f64 * (1.0 + whole.skew.as_turns()),
        ..*track
    })
}

fn angle(geometry: &Geometry, lbn: u64) -> Angle {
    geometry.extent_at(Lbn(lbn)).angle
}

/// The track from block `lbn` on, as a part. Its turns count from its first block to the first block of the next track. `begins` is the angle
/// of its first block, and is set to that of the next track's first block.
fn track(geometry: &Geometry, lbn: u64, begins: &mut Angle) -> Part {
    let track = geometry.track_at(Lbn(lbn));
    let sectors = (track.first.0 + u64::from(track.sectors)).min(geometry.sectors()) - lbn;
    let mut turns = sectors as f64 / f64::from(track.sectors_per_track);
    if lbn + sectors < geometry.sectors() {
        let next = angle(geometry, lbn + sectors);
        // An angle does not count whole turns, so the next track begins when its angle first recurs after the blocks were read. Rounding must not
        // add a turn to a track that is read in exactly one.
        let rounding = 1e-6;
        turns += ((next - *begins).as_turns() - turns + rounding).rem_euclid(1.0) - rounding;
        *begins = next;
    }
    let physical_sectors = u64::from(track.sectors_per_track);
    let (least, most) = (track.sectors_per_track, track.sectors_per_track);
    Part { first: lbn, sectors, tracks: 1, physical_sectors, least, most, turns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::drives;

    #[test]
    fn survey_covers_every_block_once() {
        for name in ["atlas-10k", "wd800jd"] {
            let spec = drives::load(name).expect("the drive is shipped");
            let geometry = Geometry::new(&spec).expect("shipped drives hold");
            let survey = Survey::new(&spec, &geometry);
            let mut next = 0;
            for part in &survey.parts {
                assert_eq!(part.first, next, "{name}");
                next += part.sectors;
            }
            assert_eq!(next, spec.capacity_sectors, "{name}");
            assert!(survey.parts.len() <= PARTS_MAX);
        }
    }

    #[test]
    fn equal_tracks_together_make_the_parts_of_each_track_alone() {
        for name in ["atlas-10k", "wd800jd", "samsung-hd400ld", "samsung-hd103sj"] {
            let spec = drives::load(name).expect("the drive is shipped");
            let geometry = Geometry::new(&spec).expect("shipped drives hold");
            let size = geometry.sectors().div_ceil(PARTS_MAX as u64);
            for division in [Parts::Zones, Parts::Sectors(size)] {
                let (together, alone) = (walk(&geometry, &division), each_track_alone(&geometry, &division));
                assert_eq!(together.as_ref().map(Vec::len), alone.as_ref().map(Vec::len), "{name}");
                for (together, alone) in together.iter().flatten().zip(alone.iter().flatten()) {
                    assert!(
                        (together.turns / alone.turns - 1.0).abs() < 1e-9,
                        "{name}: {together:?}, {alone:?}"
                    );
                    assert_eq!(*together, Part { turns: together.turns, ..*alone }, "{name}");
                }
            }
        }
    }

    fn each_track_alone(geometry: &Geometry, division: &Parts) -> Option<Vec<Part>> {
        let (mut parts, mut next, mut angle) = (Vec::<Part>::new(), 0, angle(geometry, 0));
        while next < geometry.sectors() && parts.len() <= PARTS_MAX {
            let track = track(geometry, next, &mut angle);
            next += track.sectors;
            match parts.last_mut() {
                Some(part) if !division.divide(part, &track) => part.join(&track),
                _ => parts.push(track),
            }
        }
        (parts.len() <= PARTS_MAX).then_some(parts)
    }

    #[test]
    fn streaming_is_slower_than_media_transfer_by_the_skew() {
        let spec = drives::load("atlas-10k").expect("the drive is shipped");
        let geometry = Geometry::new(&spec).expect("shipped drives hold");
        let survey = Survey::new(&spec, &geometry);
        let (zone, part) = (&spec.geometry.zones[0], &survey.parts[0]);
        let heads = f64::from(spec.geometry.heads);
        let skew = zone.track_skew_sectors * (heads - 1.0) + zone.cylinder_skew_sectors;
        let expected = 1.0 + skew / heads / f64::from(zone.sectors_per_track);
        let found = survey.media_mb_s(part) / survey.streaming_mb_s(part);
        assert!((found / expected - 1.0).abs() < 0.002, "{found}, expected {expected}");
    }
}
