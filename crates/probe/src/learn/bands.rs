//! Assigns cylinders and heads to tracks of seek-first layouts: a surface of a band, the next surface, then the next band.

use super::tracks::{Piece, Spot, Stretch, turn_between, within};

/// Turns by which slipped sectors shift the angle of a track that continues the previous one: two of 250.
const PUSHED: f64 = 0.008;

/// Maximum number of heads.
const MOST_HEADS: usize = 32;
/// Share of the slices that repeat if there is a pattern: zones interrupt it.
const REPEATING: f64 = 0.7;

/// Stretches that continue each other on one surface, except for slipped sectors.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slice {
    pub(super) stretches: Vec<Stretch>,
    pub(super) tracks: u32,
}

impl Slice {
    pub(super) fn from_stretches(stretches: Vec<Stretch>) -> Slice {
        let tracks = stretches.iter().map(|stretch| stretch.run.tracks).sum();
        Slice { stretches, tracks }
    }

    pub(super) fn first(&self) -> Spot {
        self.stretches[0].spot(0)
    }

    pub(super) fn last(&self) -> Spot {
        self.stretches[self.stretches.len() - 1].last()
    }
}

/// The order of surfaces and directions within bands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ways {
    /// Whether every other surface is read outward.
    pub(super) alternates: bool,
    /// Whether every other band takes the surfaces in reverse order.
    pub(super) reverses: bool,
}

/// Merges stretches that only slipped sectors separate.
pub(super) fn slices(stretches: &[Stretch], noise: f64) -> Vec<Slice> {
    let mut slices: Vec<Slice> = Vec::new();
    // For consecutive single tracks, the skew is that of the tracks before.
    let mut usual = 0.0;
    let mut before: Option<&Stretch> = None;
    for stretch in stretches {
        let continues = before.is_some_and(|before| {
            let skews = [before, stretch].into_iter().find(|one| one.run.tracks > 1);
            let skew = skews.map_or(usual, |one| one.skew);
            before.sectors_per_track == stretch.sectors_per_track
                && turn_between(before.last().angle + skew, stretch.angle).abs() < within(PUSHED, noise)
        });
        match slices.last_mut().filter(|_| continues) {
            Some(slice) => {
                slice.stretches.push(*stretch);
                slice.tracks += stretch.run.tracks;
            }
            None => slices.push(Slice { stretches: vec![*stretch], tracks: stretch.run.tracks }),
        }
        if stretch.run.tracks > 1 {
            usual = stretch.skew;
        }
        before = Some(stretch);
    }
    slices
}

/// The number of heads that the pattern of track sizes and lengths shows; none without a pattern.
pub(super) fn heads_of_pattern(slices: &[Slice]) -> Option<(u32, bool)> {
    let size = |slice: &Slice| slice.stretches[0].sectors_per_track;
    let share = |period: usize| {
        let pairs = slices.len().saturating_sub(period);
        let same = (0..pairs).filter(|index| size(&slices[*index]) == size(&slices[index + period])).count();
        same as f64 / pairs.max(1) as f64
    };
    let usual = slices.len() / 2;
    if let Some(length) = distance_of_doubles(slices) {
        return Some((length + 1, true));
    }
    if usual < 2 || share(1) > REPEATING {
        return None;
    }
    (2..=MOST_HEADS.min(usual)).find(|period| share(*period) > REPEATING).map(|period| (period as u32, false))
}

/// If bands end and begin on one surface, that slice is twice as long as the others: the number of slices from one to the next.
fn distance_of_doubles(slices: &[Slice]) -> Option<u32> {
    let mut lengths: Vec<u32> = slices.iter().map(|slice| slice.tracks).collect();
    lengths.sort_unstable();
    let usual = lengths[lengths.len() / 2];
    let is_double = |slice: &Slice| slice.tracks.abs_diff(2 * usual) <= usual / 4;
    let places: Vec<usize> = (0..slices.len()).filter(|index| is_double(&slices[*index])).collect();
    let mut gaps: Vec<usize> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let usual_gap = *gaps.get(gaps.len() / 2)?;
    let enough = places.len() * usual_gap * 2 > slices.len();
    enough.then_some(usual_gap as u32)
}

pub(super) fn place_slices(slices: &[Slice], heads: u32, ways: Ways) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut cylinder, mut band, mut is_reversed) = (0, 0, false);
    let mut carried: Option<Slice> = None;
    let mut left = slices.iter();
    loop {
        let mut parts: Vec<Slice> = carried.take().into_iter().collect();
        let missing = heads as usize - parts.len();
        parts.extend(left.by_ref().take(missing).cloned());
        let Some(tracks) = parts.first().map(|slice| slice.tracks) else { return pieces };
        let last = parts.len() - 1;
        if ways.reverses && last > 0 && parts[last].tracks > tracks {
            carried = Some(split(&mut parts[last], tracks));
        }
        let longest = parts.iter().map(|slice| slice.tracks).max().unwrap_or(tracks);
        for (order, slice) in parts.iter().enumerate() {
            let order = order as u32;
            let head = if is_reversed { heads - 1 - order } else { order };
            let is_outward = ways.alternates && order % 2 == 1;
            let mut at = if is_outward { cylinder + longest - 1 } else { cylinder };
            let step = if is_outward { -1 } else { 1 };
            for stretch in &slice.stretches {
                pieces.push(Piece {
                    tracks: *stretch,
                    cylinder: at,
                    cylinder_step: step,
                    head,
                    head_step: 0,
                    band,
                });
                at = at.saturating_add_signed(step * stretch.run.tracks as i32);
            }
        }
        is_reversed = carried.is_some() && !is_reversed;
        cylinder += longest;
        band += 1;
    }
}

fn split(slice: &mut Slice, tracks: u32) -> Slice {
    let mut rest = Slice { stretches: Vec::new(), tracks: slice.tracks - tracks };
    let mut kept = Vec::new();
    let mut before = 0;
    for stretch in &slice.stretches {
        let here = tracks.saturating_sub(before).min(stretch.run.tracks);
        if here > 0 {
            kept.push(stretch.part(0, here));
        }
        if here < stretch.run.tracks {
            rest.stretches.push(stretch.part(here, stretch.run.tracks - here));
        }
        before += stretch.run.tracks;
    }
    (slice.stretches, slice.tracks) = (kept, tracks);
    rest
}
