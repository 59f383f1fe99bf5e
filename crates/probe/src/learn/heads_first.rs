//! Assigns cylinders and heads to tracks if all heads of a cylinder precede the next cylinder.
//!
//! From track to track the angle advances by the track skew, from cylinder to cylinder by the cylinder skew; over a slipped
//! track, by that of several tracks. So the jump of the angle gives the number of tracks to the next one.

use super::bands::Slice;
use super::fit::{self, Angles};
use super::tracks::{Piece, Stretch, mean_off, middle_angle, most_off, turn_between, within};
use std::collections::BTreeMap;

/// Turns by which slipped sectors shift the angle of a track whose place is determined: two of 250.
const SLIPPED: f64 = 0.008;
/// Maximum sectors by which slips shift an angle.
const PUSHED: f64 = 8.5;
/// Number of slices that determine the skews of a zone.
const BEGINNING: usize = 21;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Skews {
    track: f64,
    cylinder: f64,
    /// Standard deviation of the angles that give the skews.
    noise: f64,
}

/// Number of tracks that most slices hold: the heads, if the skews distinguish tracks from cylinders.
pub(super) fn usual_tracks(slices: &[Slice]) -> u32 {
    let mut counts = BTreeMap::<u32, u32>::new();
    slices.iter().for_each(|slice| *counts.entry(slice.tracks).or_default() += 1);
    let most = counts.iter().max_by_key(|(_, count)| **count);
    most.map_or(1, |(tracks, _)| *tracks)
}

pub(super) fn place_slices(slices: &[Slice], heads: u32, noise: f64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut cylinder, mut band) = (0, 0);
    let sectors = |slice: &Slice| slice.stretches[0].sectors_per_track;
    for zone in slices.chunk_by(|a, b| sectors(a) == sectors(b)) {
        let zone = cut(zone, skews(zone, heads, noise));
        let mut left = &zone[..];
        while !left.is_empty() {
            let (placed, behind) = place_zone(left, heads, (cylinder, band), noise, &mut pieces);
            left = &left[placed..];
            (cylinder, band) = (behind, band + 1);
        }
    }
    part_zones(&mut pieces, heads, noise);
    pieces
}

/// Splits pairs of consecutive tracks whose skew is not that between tracks of a cylinder: they are single tracks next to slipped sectors.
fn cut(zone: &[Slice], skews: Skews) -> Vec<Slice> {
    let mut slices = Vec::with_capacity(zone.len());
    for slice in zone {
        let mut stretches = Vec::with_capacity(slice.stretches.len());
        for stretch in &slice.stretches {
            let is_cut = stretch.run.tracks == 2 && skews.differ(stretch);
            let parts = if is_cut { 2 } else { 1 };
            let tracks = stretch.run.tracks / parts;
            for part in 0..parts {
                if part > 0 {
                    slices.push(Slice::from_stretches(std::mem::take(&mut stretches)));
                }
                let skew = if is_cut { skews.track } else { stretch.skew };
                stretches.push(Stretch { skew, ..stretch.part(part * tracks, tracks) });
            }
        }
        slices.push(Slice::from_stretches(stretches));
    }
    slices
}

/// One piece of this number may lie elsewhere than the others of its zone.
const EXCEPTIONS: usize = 200;
/// Last pieces of which more than half lie elsewhere if another zone has begun.
const LAST: usize = 6;

/// Splits zones where angles stop continuing by the same skews: the jump to the next zone may by chance be one within a zone.
fn part_zones(pieces: &mut [Piece], heads: u32, noise: f64) {
    let mut band = 0;
    for zone in pieces.chunk_by_mut(|a, b| a.band == b.band) {
        let mut left = zone;
        while !left.is_empty() {
            let (one, others) = left.split_at_mut(one_zone(left, heads, noise));
            one.iter_mut().for_each(|piece| piece.band = band);
            (left, band) = (others, band + 1);
        }
    }
}

/// How many of the first pieces, up to the end of a cylinder, continue by the same skews.
fn one_zone(pieces: &[Piece], heads: u32, noise: f64) -> usize {
    let (mut good, mut bad) = (1, pieces.len() + 1);
    while bad - good > 1 {
        // Doubles the number that continues, until it does not.
        let next = if bad > pieces.len() { (2 * good).min(pieces.len()) } else { good + (bad - good) / 2 };
        match continues(&pieces[..next], heads, noise) {
            Some(_) => good = next,
            None => bad = next,
        }
    }
    if good < pieces.len() {
        good = continues(&pieces[..good], heads, noise).unwrap_or(1);
    }
    let is_end =
        |count: &usize| *count == pieces.len() || pieces[*count].cylinder > pieces[count - 1].cylinder;
    (good..=pieces.len()).find(is_end).unwrap_or(pieces.len())
}

/// How many of some pieces continue by the same skews, with a few exceptions; `None` if more do not, or the last ones.
fn continues(pieces: &[Piece], heads: u32, noise: f64) -> Option<usize> {
    let most = most_off(noise);
    let seen = fit::seen_on_cylinders(pieces, heads);
    let angles = Angles::fit_most(&seen, fit::usual_steps(pieces, heads), most);
    let is_off = |both: &[fit::Seen]| both.iter().any(|one| angles.off(one).abs() >= most);
    let off: Vec<bool> = seen.chunks(2).map(is_off).collect();
    let near = seen.iter().map(|one| angles.off(one)).filter(|off| off.abs() < most);
    let squares: f64 = near.map(|off| off * off).sum();
    let mean = mean_off(noise);
    let exceptions = |off: &[bool]| off.iter().filter(|is_off| **is_off).count();
    let is_zone = squares <= mean * mean * seen.len() as f64
        && exceptions(&off) <= 1 + off.len() / EXCEPTIONS
        && 2 * exceptions(&off[off.len().saturating_sub(LAST)..]) <= LAST;
    off.iter().rposition(|is_off| !is_off).filter(|_| is_zone).map(|last| last + 1)
}

/// Reverses the heads of every other cylinder of a zone.
pub(super) fn turn_odd_cylinders(pieces: &mut [Piece], heads: u32) {
    for zone in pieces.chunk_by_mut(|a, b| a.band == b.band) {
        let first = zone[0].cylinder;
        for piece in zone.iter_mut().filter(|piece| (piece.cylinder - first) % 2 == 1) {
            (piece.head, piece.head_step) = (heads - 1 - piece.head, -1);
        }
    }
}

/// Places a zone's slices from a cylinder on, up to an angle that no tracks explain; returns their number, and the next cylinder.
fn place_zone(
    zone: &[Slice],
    heads: u32,
    (first, band): (u32, u32),
    noise: f64,
    pieces: &mut Vec<Piece>,
) -> (usize, u32) {
    let skews = skews(zone, heads, noise);
    // A zone that begins within a cylinder lacks the tracks before.
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

/// Places a stretch that begins with track `at` of a zone.
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

/// Number of tracks without a block between two slices, the second of which begins at track `at` or later; `None` if a zone begins.
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
    /// Whether a stretch has another track skew: by half a sector, or more if its angles are noisy.
    fn differ(&self, stretch: &Stretch) -> bool {
        let steps = stretch.run.tracks - 1;
        let half = 0.5 / f64::from(stretch.sectors_per_track);
        steps > 0
            && turn_between(self.track, stretch.skew).abs() > within(half, self.noise / f64::from(steps))
    }
}

/// The skews at the beginning of a zone.
fn skews(zone: &[Slice], heads: u32, noise: f64) -> Skews {
    let of_tracks = zone.iter().flat_map(|slice| &slice.stretches).filter(|stretch| stretch.run.tracks > 1);
    let track = of_tracks.take(BEGINNING).map(|stretch| stretch.skew).collect();
    let whole = |pair: &&[Slice]| pair.iter().all(|slice| slice.tracks == heads);
    let jumps = zone.windows(2).filter(whole).take(BEGINNING);
    let jumps = jumps.map(|pair| turn_between(pair[0].last().angle, pair[1].first().angle));
    let track = middle_angle(track).unwrap_or(0.0);
    Skews { track, cylinder: middle_angle(jumps.collect()).unwrap_or(track), noise }
}

fn is_cylinder_jump(zone: &[Slice], skews: Skews) -> bool {
    let jump = turn_between(zone[0].last().angle, zone[1].first().angle);
    turn_between(skews.cylinder, jump).abs() < within(SLIPPED, skews.noise)
}

/// Tracks to the next one: the least number that explains the jump of the angle about as well as any; `None` if none does.
fn ahead(at: u32, jump: f64, skews: Skews, heads: u32, sectors_per_track: u32) -> Option<u32> {
    let within = within(SLIPPED, skews.noise);
    // `at` is the track behind the last one.
    let mut turns = 0.0;
    let mut offs = Vec::new();
    for step in 0..2 * heads {
        turns += if (at + step).is_multiple_of(heads) { skews.cylinder } else { skews.track };
        offs.push(turn_between(turns, jump).abs());
    }
    let closest = offs.iter().copied().fold(f64::MAX, f64::min);
    let is_near = |off: &f64| *off < within && *off < closest + 0.5 * within;
    // The next track is the likeliest.
    if offs[0] < within {
        return Some(1);
    }
    if let Some(step) = offs.iter().position(is_near) {
        return Some(step as u32 + 1);
    }
    (offs[0] * f64::from(sectors_per_track) < PUSHED).then_some(1)
}

#[cfg(test)]
mod tests {
    use super::super::bands;
    use super::*;
    use headstack_model::Lbn;
    use headstack_tracks::Run;

    /// Two zones of 40 cylinders, four heads and 500 sectors per track, with the same skews; the second is rotated by `between`.
    fn two_zones(between: f64) -> Vec<Stretch> {
        let angle = |cylinder: u32| f64::from(cylinder) * 0.6 + if cylinder < 40 { 0.0 } else { between };
        let stretch = |cylinder: u32| Stretch {
            run: Run { first: Lbn(u64::from(cylinder) * 2000), sectors: 500, tracks: 4 },
            sectors_per_track: 500,
            angle: angle(cylinder).rem_euclid(1.0),
            skew: 0.1,
        };
        (0..80).map(stretch).collect()
    }

    #[test]
    fn zone_change_is_found_despite_jump_like_slipped_track() {
        // No jump, the jump of another track, and one that nothing within a zone makes.
        for (between, zones, noise) in
            [(0.0, 1, 1e-3), (0.1, 2, 1e-3), (0.1, 2, 8e-3), (0.05, 2, 1e-3), (0.01, 1, 8e-3)]
        {
            let slices = bands::slices(&two_zones(between), noise);
            let pieces = place_slices(&slices, usual_tracks(&slices), noise);
            let found: Vec<u32> = pieces.iter().map(|piece| piece.band).collect();
            assert_eq!(found.iter().max(), Some(&(zones - 1)), "{between}, {noise}: {found:?}");
            assert!(found.iter().enumerate().all(|(index, band)| (index >= 40 && zones > 1) == (*band > 0)));
            assert!(pieces.iter().all(|piece| (piece.head, piece.tracks.run.tracks) == (0, 4)));
        }
    }

    #[test]
    fn single_displaced_track_ends_no_zone() {
        let mut stretches = two_zones(0.0);
        stretches[55].angle += 0.2;
        stretches[30].angle += 0.2;
        let mut pieces: Vec<Piece> = Vec::new();
        for (index, stretch) in stretches.iter().enumerate() {
            put(stretch, 4, (0, 0), 4 * index as u32, &mut pieces);
        }
        // One of these few pieces may.
        part_zones(&mut pieces[..50], 4, 1e-3);
        assert!(pieces[..50].iter().all(|piece| piece.band == 0));
    }
}
