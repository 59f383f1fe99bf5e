//! Tracks to cylinders and heads where all heads of a cylinder come before the next cylinder.
//!
//! From track to track the angle goes on by the track skew, from cylinder to cylinder by the cylinder skew; where a track
//! was slipped, by that of several tracks. So the jump of the angle tells how many tracks further the next one lies.

use super::bands::Slice;
use super::tracks::{Piece, Stretch, middle_angle, turn_between};
use std::collections::BTreeMap;

/// How far angles may be off, in turns.
const OFF: f64 = 0.004;
/// Sectors by which slips may push an angle, at most.
const PUSHED: f64 = 8.5;
/// Stretches that tell the skews of a zone.
const BEGINNING: usize = 21;

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
    let (mut cylinder, mut band) = (0, 0);
    for zone in zones(stretches) {
        let mut left = &stretches[zone];
        while !left.is_empty() {
            let (placed, behind) = place_zone(left, heads, (cylinder, band), &mut pieces);
            left = &left[placed..];
            (cylinder, band) = (behind, band + 1);
        }
    }
    pieces
}

/// Has every other cylinder of a zone run from the last head to the first.
pub(super) fn turn_odd_cylinders(pieces: &mut [Piece], heads: u32) {
    for zone in pieces.chunk_by_mut(|a, b| a.band == b.band) {
        let first = zone[0].cylinder;
        for piece in zone.iter_mut().filter(|piece| (piece.cylinder - first) % 2 == 1) {
            (piece.head, piece.head_step) = (heads - 1 - piece.head, -1);
        }
    }
}

/// Puts a zone's stretches from a cylinder on, up to a jump of the angle that no tracks between explain; how many those are,
/// and the cylinder behind them.
fn place_zone(
    zone: &[Stretch],
    heads: u32,
    (first, band): (u32, u32),
    pieces: &mut Vec<Piece>,
) -> (usize, u32) {
    let skews = skews(zone, heads);
    // A zone that begins within a cylinder has what is missing before it.
    let begins_late = zone.len() > 1 && zone[0].run.tracks < heads && is_cylinder_jump(zone, skews);
    let mut at = if begins_late { heads - zone[0].run.tracks } else { 0 };
    for (index, stretch) in zone.iter().enumerate() {
        if index > 0 {
            let jump = turn_between(zone[index - 1].last().angle, stretch.angle);
            let is_other = skews.differ(stretch);
            match ahead(at, jump, skews, heads, stretch.sectors_per_track).filter(|_| !is_other) {
                Some(tracks) => at += tracks - 1,
                None => return (index, first + at.div_ceil(heads)),
            }
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
                band,
            });
            done += tracks;
            at += tracks;
        }
    }
    (zone.len(), first + at.div_ceil(heads))
}

impl Skews {
    /// Whether a stretch has another track skew, by more than half a sector.
    fn differ(&self, stretch: &Stretch) -> bool {
        let sectors = turn_between(self.track, stretch.skew) * f64::from(stretch.sectors_per_track);
        stretch.run.tracks > 1 && sectors.abs() > 0.5
    }
}

/// The skews with which a zone begins.
fn skews(zone: &[Stretch], heads: u32) -> Skews {
    let of_tracks = || zone.iter().filter(|stretch| stretch.run.tracks > 1);
    let track =
        middle_angle(of_tracks().take(BEGINNING).map(|stretch| stretch.skew).collect()).unwrap_or(0.0);
    let whole = |pair: &&[Stretch]| pair.iter().all(|stretch| stretch.run.tracks == heads);
    let jumps = zone.windows(2).filter(whole).take(BEGINNING);
    let jumps = jumps.map(|pair| turn_between(pair[0].last().angle, pair[1].angle));
    Skews { track, cylinder: middle_angle(jumps.collect()).unwrap_or(track) }
}

fn is_cylinder_jump(zone: &[Stretch], skews: Skews) -> bool {
    let jump = turn_between(zone[0].last().angle, zone[1].angle);
    turn_between(skews.cylinder, jump).abs() < OFF
}

/// How many tracks further the next one lies: the least number that the jump of the angle agrees with; none where nothing
/// does. Slipped sectors may push angles by some sectors.
fn ahead(at: u32, jump: f64, skews: Skews, heads: u32, sectors_per_track: u32) -> Option<u32> {
    // `at` is the track behind the last one.
    let mut turns = 0.0;
    let mut is_pushed = false;
    for step in 0..2 * heads {
        turns += if (at + step).is_multiple_of(heads) { skews.cylinder } else { skews.track };
        let off = turn_between(turns, jump);
        if off.abs() < OFF {
            return Some(step + 1);
        }
        is_pushed |= step == 0 && off.abs() * f64::from(sectors_per_track) < PUSHED;
    }
    is_pushed.then_some(1)
}
