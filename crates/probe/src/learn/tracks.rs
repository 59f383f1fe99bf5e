//! Tracks with their angles, and their places: surface and cylinder.

use crate::lattice::{Lattice, LatticeRun};
use headstack_model::Lbn;
use headstack_tracks::Run;

/// Consecutive tracks with the same number of blocks and the same skew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// The tracks.
    pub run: Run,
    /// Sectors of a whole track, including those without a block.
    pub sectors_per_track: u32,
    /// Angle at which the first block begins, relative to a common origin, in turns.
    pub angle: f64,
    /// Angle from the first block of a track to that of the next, in turns.
    pub skew: f64,
}

/// Tracks of a stretch on one surface, or on one cylinder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// The tracks.
    pub tracks: Stretch,
    /// Cylinder of the first.
    pub cylinder: u32,
    /// Cylinders from one track to the next: 1, -1, or 0 on one cylinder.
    pub cylinder_step: i32,
    /// Head of the first.
    pub head: u32,
    /// Heads from one track to the next.
    pub head_step: i32,
    /// Number of the band of these tracks. On a disk in cylinder or serpentine order, the number of their zone.
    pub band: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spot {
    pub(super) first: Lbn,
    pub(super) sectors: u32,
    pub(super) sectors_per_track: u32,
    pub(super) angle: f64,
}

impl Stretch {
    pub(super) fn spot(&self, track: u32) -> Spot {
        Spot {
            first: self.run.first + u64::from(track) * u64::from(self.run.sectors),
            sectors: self.run.sectors,
            sectors_per_track: self.sectors_per_track,
            angle: self.angle + f64::from(track) * self.skew,
        }
    }

    /// Turns for its tracks in sequence, each up to the start of the next.
    pub(super) fn turns(&self, noise: f64) -> f64 {
        let held = f64::from(self.run.sectors) / f64::from(self.sectors_per_track);
        // A track that begins no later than the previous one ends, within the error, has no gap.
        let gap = turn_between(held, self.skew);
        f64::from(self.run.tracks)
            * (held + if gap < -within(OVERLAP, noise) { gap + 1.0 } else { gap.max(0.0) })
    }

    pub(super) fn last(&self) -> Spot {
        self.spot(self.run.tracks - 1)
    }

    /// The common skew of this stretch and the next, if there is one and either is a single track.
    fn skew_to(&self, next: &Stretch, noise: f64) -> Option<f64> {
        let is_alone = [self, next].map(|stretch| stretch.run.tracks == 1);
        let shape = |stretch: &Stretch| (stretch.run.sectors, stretch.sectors_per_track);
        if !is_alone.contains(&true) || shape(self) != shape(next) || self.run.end() != next.run.first {
            return None;
        }
        let skew = turn_between(self.last().angle, next.angle);
        let is_one = |stretch: &Stretch| {
            stretch.run.tracks == 1 || turn_between(stretch.skew, skew).abs() < within(0.0, noise)
        };
        (is_one(self) && is_one(next)).then_some(skew)
    }

    pub(super) fn part(&self, from: u32, tracks: u32) -> Stretch {
        let spot = self.spot(from);
        Stretch { run: Run { first: spot.first, tracks, ..self.run }, angle: spot.angle, ..*self }
    }
}

impl Piece {
    /// The cylinder of a track.
    pub fn cylinder_of(&self, track: u32) -> u32 {
        self.cylinder.wrapping_add_signed(self.cylinder_step * track as i32)
    }

    /// The head of a track.
    pub fn head_of(&self, track: u32) -> u32 {
        self.head.wrapping_add_signed(self.head_step * track as i32)
    }

    /// Lowest and highest cylinder.
    pub fn cylinders(&self) -> (u32, u32) {
        let last = self.cylinder_of(self.tracks.run.tracks - 1);
        (self.cylinder.min(last), self.cylinder.max(last))
    }

    pub(super) fn track_at(&self, cylinder: u32, head: u32) -> Option<u32> {
        let track = match self.cylinder_step {
            0 if cylinder == self.cylinder => {
                (i64::from(head) - i64::from(self.head)) * i64::from(self.head_step)
            }
            0 => return None,
            step if head == self.head => (i64::from(cylinder) - i64::from(self.cylinder)) * i64::from(step),
            _ => return None,
        };
        u32::try_from(track).ok().filter(|track| *track < self.tracks.run.tracks)
    }
}

/// The runs of a lattice, on media with physical sectors of `unit` blocks.
pub(super) fn of_lattice(lattice: &Lattice, unit: u32, noise: f64) -> Vec<Stretch> {
    let unit = f64::from(unit.max(1));
    let stretch = |run: &LatticeRun| Stretch {
        run: run.run,
        sectors_per_track: (((run.turn / unit).round() * unit) as u32).max(run.run.sectors),
        angle: run.angle,
        skew: run.skew,
    };
    joined(lattice.runs.iter().map(stretch), noise)
}

/// Turns by which a track may begin before the previous one ends, without noise: a sector or two, because slips shift angles.
const OVERLAP: f64 = 0.01;
/// Maximum standard deviations of a difference of two angles.
const DEVIATIONS: f64 = 5.0;

/// Maximum difference in turns of two equal angles, or of an angle and its prediction: [`DEVIATIONS`] of their difference, with
/// `noise` as the deviation of each, and at least `no_noise`.
pub(crate) fn within(no_noise: f64, noise: f64) -> f64 {
    no_noise.max(DEVIATIONS * std::f64::consts::SQRT_2 * noise)
}

/// Merges single tracks that follow each other by one skew: on a disk of two heads no three tracks do.
fn joined(stretches: impl Iterator<Item = Stretch>, noise: f64) -> Vec<Stretch> {
    let mut joined: Vec<Stretch> = Vec::new();
    for next in stretches {
        match joined.last_mut().and_then(|last| last.skew_to(&next, noise).map(|skew| (last, skew))) {
            Some((last, skew)) => {
                last.skew = skew;
                last.run.tracks += next.run.tracks;
            }
            None => joined.push(next),
        }
    }
    joined
}

/// Maximum deviation of angles from the fit of their zone, in turns, without noise. It comes from slipped sectors, whose places within a
/// track are not learned.
const MOST_OFF: f64 = 0.015;
/// Root mean square of that deviation, in turns.
const MEAN_OFF: f64 = 0.004;
/// Maximum deviation with noise, in standard deviations: predicted angles of a run have larger errors than measured ones.
const MOST_DEVIATIONS: f64 = 8.0;
/// Root mean square of the deviation with noise, in standard deviations.
const MEAN_DEVIATIONS: f64 = 2.5;

/// Maximum deviation of an angle from the fit of its zone, in turns, with measurement noise of this standard deviation.
pub(crate) fn most_off(noise: f64) -> f64 {
    MOST_OFF.max(MOST_DEVIATIONS * noise)
}

/// The root mean square of such deviations.
pub(crate) fn mean_off(noise: f64) -> f64 {
    MEAN_OFF.max(MEAN_DEVIATIONS * noise)
}

/// The difference of two angles: from -½ to ½ turn.
pub(crate) fn turn_between(from: f64, to: f64) -> f64 {
    let ahead = (to - from).rem_euclid(1.0);
    if ahead > 0.5 { ahead - 1.0 } else { ahead }
}

/// Median of angles that are near each other on the circle.
pub(crate) fn middle_angle(mut angles: Vec<f64>) -> Option<f64> {
    angles.iter_mut().for_each(|angle| *angle = angle.rem_euclid(1.0));
    angles.sort_by(f64::total_cmp);
    // The circle is cut opposite to most angles.
    let middle = *angles.get(angles.len() / 2)?;
    angles.iter_mut().for_each(|angle| *angle = turn_between(middle, *angle));
    angles.sort_by(f64::total_cmp);
    Some((middle + angles[angles.len() / 2]).rem_euclid(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_tracks_are_joined_by_cylinder() {
        let one = |track: u32, sectors: u32, angle: f64| Stretch {
            run: Run { first: Lbn(u64::from(track) * 600), sectors, tracks: 1 },
            sectors_per_track: sectors,
            angle,
            skew: 0.2,
        };
        // Two heads: 0.15 to the other head, 0.25 to the next cylinder.
        let angles = [0.0, 0.15, 0.40, 0.55, 0.80, 0.95];
        let tracks = angles.iter().zip(0..).map(|(angle, track)| one(track, 600, *angle));
        let found = joined(tracks, 1e-3);
        let shapes: Vec<_> = found.iter().map(|found| (found.run.first.0, found.run.tracks)).collect();
        assert_eq!(shapes, [(0, 2), (1200, 2), (2400, 2)]);
        assert!(found.iter().all(|found| (found.skew - 0.15).abs() < 1e-9), "{found:?}");
        let apart = joined([one(0, 600, 0.0), one(1, 599, 0.15)].into_iter(), 1e-3);
        assert_eq!(apart.len(), 2, "one holds fewer");
    }

    #[test]
    fn tracks_whose_skews_differ_by_noise_are_joined() {
        let joined_by = |third: f64| {
            let angles = [0.0, 0.2, 0.4 + third];
            let track = |(angle, number): (&f64, u64)| Stretch {
                run: Run { first: Lbn(number * 600), sectors: 600, tracks: 1 },
                sectors_per_track: 600,
                angle: *angle,
                skew: 0.2,
            };
            joined(angles.iter().zip(0..).map(track), 1e-3).len()
        };
        // The limit is 5·√2 = 7.1 deviations.
        assert_eq!([0.0, 1e-3, 6e-3].map(joined_by), [1; 3]);
        assert_eq!([8e-3, 0.1].map(joined_by), [2; 2]);
    }
}
