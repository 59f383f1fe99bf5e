//! Tracks to cylinders and heads where all heads of a cylinder come before the next cylinder.
//!
//! From track to track the angle goes on by the track skew, from cylinder to cylinder by the cylinder skew; where a track
//! was slipped, by that of several tracks. So the jump of the angle tells how many tracks further the next one lies.

use super::bands::Slice;
use super::tracks::{Piece, Stretch, middle_angle, turn_between};
use std::collections::BTreeMap;

/// How far angles may be off, in turns.
const OFF: f64 = 0.008;
/// Sectors by which slips may push an angle, at most.
const PUSHED: f64 = 8.5;
/// Slices that tell the skews of a zone.
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

/// Puts all slices where they lie.
pub(super) fn place(slices: &[Slice], heads: u32) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut cylinder, mut band) = (0, 0);
    let sectors = |slice: &Slice| slice.stretches[0].sectors_per_track;
    for mut left in slices.chunk_by(|a, b| sectors(a) == sectors(b)) {
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

/// Puts a zone's slices from a cylinder on, up to a jump of the angle that no tracks between explain; how many those are, and
/// the cylinder behind them.
fn place_zone(
    zone: &[Slice],
    heads: u32,
    (first, band): (u32, u32),
    pieces: &mut Vec<Piece>,
) -> (usize, u32) {
    let skews = skews(zone, heads);
    // A zone that begins within a cylinder has what is missing before it.
    let begins_late = zone.len() > 1 && zone[0].tracks < heads && is_cylinder_jump(zone, skews);
    let mut at = if begins_late { heads - zone[0].tracks } else { 0 };
    for (index, slice) in zone.iter().enumerate() {
        if index > 0 {
            let Some(tracks) = between(&zone[index - 1], slice, at, skews, heads) else {
                return (index, first + at.div_ceil(heads));
            };
            at += tracks;
        }
        for stretch in &slice.stretches {
            put(stretch, heads, (first, band), at, pieces);
            at += stretch.run.tracks;
        }
    }
    (zone.len(), first + at.div_ceil(heads))
}

/// Puts a stretch that begins with the track `at` of a zone.
fn put(stretch: &Stretch, heads: u32, (first, band): (u32, u32), at: u32, pieces: &mut Vec<Piece>) {
    let mut done = 0;
    while done < stretch.run.tracks {
        let (cylinder, head) = ((at + done) / heads, (at + done) % heads);
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
    }
}

/// Tracks without a block between two slices, of which the second may begin with the track `at` of the zone; none where
/// another zone begins.
fn between(before: &Slice, slice: &Slice, at: u32, skews: Skews, heads: u32) -> Option<u32> {
    let jump = turn_between(before.last().angle, slice.first().angle);
    let is_other = slice.stretches.iter().any(|stretch| skews.differ(stretch));
    let tracks =
        ahead(at, jump, skews, heads, slice.stretches[0].sectors_per_track).filter(|_| !is_other)? - 1;
    // As many tracks as there are heads are a cylinder.
    let into = (at + tracks) % heads;
    Some(if slice.tracks == heads && into > 0 { at.next_multiple_of(heads) - at } else { tracks })
}

impl Skews {
    /// Whether a stretch has another track skew, by more than half a sector.
    fn differ(&self, stretch: &Stretch) -> bool {
        let sectors = turn_between(self.track, stretch.skew) * f64::from(stretch.sectors_per_track);
        stretch.run.tracks > 1 && sectors.abs() > 0.5
    }
}

/// The skews with which a zone begins.
fn skews(zone: &[Slice], heads: u32) -> Skews {
    let of_tracks = zone.iter().flat_map(|slice| &slice.stretches).filter(|stretch| stretch.run.tracks > 1);
    let track = of_tracks.take(BEGINNING).map(|stretch| stretch.skew).collect();
    let whole = |pair: &&[Slice]| pair.iter().all(|slice| slice.tracks == heads);
    let jumps = zone.windows(2).filter(whole).take(BEGINNING);
    let jumps = jumps.map(|pair| turn_between(pair[0].last().angle, pair[1].first().angle));
    let track = middle_angle(track).unwrap_or(0.0);
    Skews { track, cylinder: middle_angle(jumps.collect()).unwrap_or(track) }
}

fn is_cylinder_jump(zone: &[Slice], skews: Skews) -> bool {
    let jump = turn_between(zone[0].last().angle, zone[1].first().angle);
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
