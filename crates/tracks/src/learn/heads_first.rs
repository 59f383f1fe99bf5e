//! Tracks to cylinders and heads where all heads of a cylinder come before the next cylinder.
//!
//! From track to track the angle goes on by the track skew, from cylinder to cylinder by the cylinder skew; where a track
//! was slipped, by that of several tracks. So the jump of the angle tells how many tracks further the next one lies.

use super::bands::Slice;
use super::tracks::{Piece, Stretch, turn_between};
use std::collections::BTreeMap;

/// How far angles may be off, in turns.
const OFF: f64 = 0.004;

/// Skews of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Skews {
    track: f64,
    cylinder: f64,
}

/// Tracks that slices mostly hold: the heads, where skews tell tracks from cylinders.
pub(super) fn usual_tracks(slices: &[Slice]) -> u32 {
    let mut counts = BTreeMap::<u32, u32>::new();
    slices.iter().for_each(|slice| *counts.entry(slice.tracks).or_default() += 1);
    let most = counts.iter().max_by_key(|(_, count)| **count);
    most.map_or(1, |(tracks, _)| *tracks)
}

/// Stretches of the same number of sectors a track, as ranges.
pub(super) fn zones(stretches: &[Stretch]) -> Vec<std::ops::Range<usize>> {
    let mut zones = Vec::new();
    let mut from = 0;
    for group in stretches.chunk_by(|a, b| a.sectors_per_track == b.sectors_per_track) {
        zones.push(from..from + group.len());
        from += group.len();
    }
    zones
}

/// Puts all stretches where they lie.
pub(super) fn place(stretches: &[Stretch], heads: u32) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut cylinder = 0;
    for zone in zones(stretches) {
        cylinder = place_zone(&stretches[zone], heads, cylinder, &mut pieces);
    }
    pieces
}

/// Has every other cylinder of a zone run from the last head to the first.
pub(super) fn turn_odd_cylinders(pieces: &mut [Piece], heads: u32) {
    for zone in pieces.chunk_by_mut(|a, b| a.tracks.sectors_per_track == b.tracks.sectors_per_track) {
        let first = zone[0].cylinder;
        for piece in zone.iter_mut().filter(|piece| (piece.cylinder - first) % 2 == 1) {
            (piece.head, piece.head_step) = (heads - 1 - piece.head, -1);
        }
    }
}

/// Puts a zone's stretches from a cylinder on; the cylinder behind them.
fn place_zone(zone: &[Stretch], heads: u32, first: u32, pieces: &mut Vec<Piece>) -> u32 {
    let skews = skews(zone, heads);
    // A zone that begins within a cylinder has what is missing before it.
    let begins_late = zone.len() > 1 && zone[0].run.tracks < heads && is_cylinder_jump(zone, 0, skews);
    let mut at = if begins_late { heads - zone[0].run.tracks } else { 0 };
    let mut before: Option<&Stretch> = None;
    for stretch in zone {
        if let Some(before) = before {
            at += ahead(at, turn_between(before.last().angle, stretch.angle), skews, heads) - 1;
        }
        let mut done = 0;
        while done < stretch.run.tracks {
            let (cylinder, head) = (at / heads, at % heads);
            let tracks = (stretch.run.tracks - done).min(heads - head);
            pieces.push(Piece {
                tracks: stretch.part(done, tracks),
                cylinder: first + cylinder,
                cylinder_step: 0,
                head,
                head_step: 1,
            });
            done += tracks;
            at += tracks;
        }
        before = Some(stretch);
    }
    first + at.div_ceil(heads)
}

fn skews(zone: &[Stretch], heads: u32) -> Skews {
    let of_tracks = zone.iter().filter(|stretch| stretch.run.tracks > 1).map(|stretch| stretch.skew);
    let track = median_angle(of_tracks.collect()).unwrap_or(0.0);
    let whole = |pair: &&[Stretch]| pair.iter().all(|stretch| stretch.run.tracks == heads);
    let jumps = zone.windows(2).filter(whole).map(|pair| turn_between(pair[0].last().angle, pair[1].angle));
    Skews { track, cylinder: median_angle(jumps.collect()).unwrap_or(track) }
}

fn is_cylinder_jump(zone: &[Stretch], index: usize, skews: Skews) -> bool {
    let jump = turn_between(zone[index].last().angle, zone[index + 1].angle);
    turn_between(skews.cylinder, jump).abs() < OFF
}

/// How many tracks further the next one lies: the least number that the jump of the angle agrees with.
fn ahead(at: u32, jump: f64, skews: Skews, heads: u32) -> u32 {
    // `at` is the track behind the last one.
    let mut turns = 0.0;
    for step in 0..2 * heads {
        turns += if (at + step).is_multiple_of(heads) { skews.cylinder } else { skews.track };
        if turn_between(turns, jump).abs() < OFF {
            return step + 1;
        }
    }
    1
}

/// Median of angles that lie near each other on the circle, or of any where they do not.
pub(super) fn median_angle(mut angles: Vec<f64>) -> Option<f64> {
    angles.iter_mut().for_each(|angle| *angle = angle.rem_euclid(1.0));
    angles.sort_by(f64::total_cmp);
    // The circle is cut where most angles lie far from the cut.
    let middle = *angles.get(angles.len() / 2)?;
    angles.iter_mut().for_each(|angle| *angle = turn_between(middle, *angle));
    angles.sort_by(f64::total_cmp);
    Some((middle + angles[angles.len() / 2]).rem_euclid(1.0))
}
