//! The order of blocks over surfaces and cylinders, from the pattern of the tracks and from seeks.
//!
//! Two heads may count as one if no seek shows the switch between them. *Source:* the names of layouts are those of H. Wong.

use super::bands::{self, Slice, Ways};
use super::heads_first;
use super::prober::Prober;
use super::tracks::{Piece, Spot, Stretch};
use headstack_model::spec::Layout;
use std::ops::Range;

/// The places of all tracks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placing {
    pub(super) layout: Layout,
    pub(super) heads: u32,
    pub(super) pieces: Vec<Piece>,
}

/// Resolution of the seeks that decide, in turns.
const SHARE: f64 = 0.002;
/// Maximum difference of equal times, in turns: 40 µs at 7,200 rpm, less than any head switch or seek.
const SAME: f64 = 0.005;
/// Standard deviation, in turns, that a median of noisy times has to reach.
const EXACT: f64 = 0.001;
/// Maximum number of these times.
const MOST_TIMES: f64 = 15.0;
/// Number of places from which the ends of short bands are compared.
const AFAR: usize = 6;
/// Maximum number of heads.
const MOST_HEADS: u32 = 32;

/// Equal tracks of a heads-first disk.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Zone {
    pub(super) pieces: Range<usize>,
    pub(super) cylinders: Range<u32>,
}

impl Placing {
    pub(super) fn zones(&self) -> Vec<Zone> {
        let mut zones = Vec::new();
        let mut from = 0;
        for group in self.pieces.chunk_by(|a, b| a.band == b.band) {
            let low = group.iter().map(|piece| piece.cylinders().0).min().unwrap_or(0);
            let high = group.iter().map(|piece| piece.cylinders().1).max().unwrap_or(0);
            zones.push(Zone { pieces: from..from + group.len(), cylinders: low..high + 1 });
            from += group.len();
        }
        zones
    }

    pub(super) fn is_heads_first(&self) -> bool {
        matches!(self.layout, Layout::Cylinder | Layout::Serpentine)
    }

    /// Cylinders from the first that holds a block to the last.
    pub(super) fn cylinders(&self) -> u32 {
        self.pieces.iter().map(|piece| piece.cylinders().1 + 1).max().unwrap_or(1)
    }
}

/// Determines the order of the blocks.
pub(super) async fn find(prober: &mut Prober, stretches: &[Stretch], noise: f64) -> Placing {
    let slices = bands::slices(stretches, noise);
    let usual = heads_first::usual_tracks(&slices);
    if is_heads_first(prober, &slices, usual).await {
        return heads_first(prober, &slices, usual, noise).await;
    }
    let (heads, reverses) = match bands::heads_of_pattern(&slices) {
        Some(found) => found,
        None => (heads_by_seeks(prober, &slices).await, false),
    };
    let alternates = heads > 1 && alternates(prober, &slices).await;
    let ways = Ways { alternates, reverses };
    let layout = match (alternates, reverses) {
        (false, false) => Layout::Ff,
        (true, false) => Layout::Af,
        (false, true) => Layout::Fa,
        (true, true) => Layout::Aa,
    };
    Placing { layout, heads, pieces: bands::place_slices(&slices, heads, ways) }
}

/// Whether a stretch is a cylinder: its last track is as near to its first as the second is.
async fn is_heads_first(prober: &mut Prober, slices: &[Slice], usual: u32) -> bool {
    let is_usual = |slice: &Slice| slice.tracks == usual && slice.stretches[0].run.tracks > 1;
    let Some(slice) = middle(slices, is_usual) else { return false };
    if usual > MOST_HEADS {
        return false;
    }
    // With two tracks, the second is the last; bands of two tracks do not exist.
    if usual == 2 {
        return true;
    }
    let near = least(prober, slice.first(), slice.stretches[0].spot(1)).await;
    let far = least(prober, slice.first(), slice.last()).await;
    near.zip(far).is_some_and(|(near, far)| far - near < SAME)
}

/// The wanted slice nearest to the middle.
fn middle(slices: &[Slice], is_wanted: impl Fn(&Slice) -> bool) -> Option<&Slice> {
    let middle = slices.len() / 2;
    let wanted = slices.iter().enumerate().filter(|(_, slice)| is_wanted(slice));
    wanted.min_by_key(|(index, _)| index.abs_diff(middle)).map(|(_, slice)| slice)
}

async fn heads_first(prober: &mut Prober, slices: &[Slice], heads: u32, noise: f64) -> Placing {
    let mut pieces = heads_first::place_slices(slices, heads, noise);
    let is_serpentine = is_serpentine(prober, &pieces, heads).await;
    if is_serpentine {
        heads_first::turn_odd_cylinders(&mut pieces, heads);
    }
    let layout = if is_serpentine { Layout::Serpentine } else { Layout::Cylinder };
    Placing { layout, heads, pieces }
}

/// Whether the last track of the next cylinder lies under the head of this one's first: the switch to it is then shorter.
async fn is_serpentine(prober: &mut Prober, pieces: &[Piece], heads: u32) -> bool {
    let is_whole = |pair: &&[Piece]| {
        pair.iter().all(|piece| piece.tracks.run.tracks == heads) && pair[1].cylinder == pair[0].cylinder + 1
    };
    let from = pieces.len() / 2;
    let Some([here, next]) = pieces[from..].windows(2).find(is_whole) else { return false };
    let (from, first, last) = (here.tracks.spot(0), next.tracks.spot(0), next.tracks.last());
    let to_first = least(prober, from, first).await;
    let to_last = least(prober, from, last).await;
    to_first.zip(to_last).is_some_and(|(to_first, to_last)| to_first - to_last > SAME)
}

/// The number of heads, from the number of slices at the same cylinders.
async fn heads_by_seeks(prober: &mut Prober, slices: &[Slice]) -> u32 {
    let Some((first, others)) = slices.split_first() else { return 1 };
    let Some(second) = others.first() else { return 1 };
    let from = first.first();
    let (Some(switch), Some(far)) =
        (nearer_end(prober, from, second).await, least(prober, from, first.last()).await)
    else {
        return 1;
    };
    if far - switch < SAME {
        return 1;
    }
    for (index, other) in others.iter().enumerate().take(MOST_HEADS as usize) {
        if nearer_end(prober, from, other).await.is_some_and(|time| time > (switch + far) / 2.0) {
            return index as u32 + 1;
        }
    }
    1
}

async fn nearer_end(prober: &mut Prober, from: Spot, slice: &Slice) -> Option<f64> {
    let to_first = least(prober, from, slice.first()).await?;
    let to_last = least(prober, from, slice.last()).await?;
    Some(to_first.min(to_last))
}

/// Whether the second surface is read from where the first one ended.
async fn alternates(prober: &mut Prober, slices: &[Slice]) -> bool {
    let [first, second, ..] = slices else { return false };
    let from_end = least(prober, first.last(), second.first()).await;
    let from_start = least(prober, first.first(), second.first()).await;
    match from_end.zip(from_start) {
        Some((end, start)) if (start - end).abs() > SAME => start > end,
        _ => alternates_from_afar(prober, slices).await,
    }
}

/// The same for short bands, whose ends are equally near after a head switch: compares the ends from farther away.
async fn alternates_from_afar(prober: &mut Prober, slices: &[Slice]) -> bool {
    let [first, second, ..] = slices else { return false };
    let (mut clearest, mut opposite) = (0.0, false);
    let mut away = 8;
    while away + AFAR < slices.len() {
        let (mut of_first, mut of_second) = (0.0, 0.0);
        for slice in &slices[away..away + AFAR] {
            of_first += end_less_start(prober, slice.first(), first).await.unwrap_or(0.0);
            of_second += end_less_start(prober, slice.first(), second).await.unwrap_or(0.0);
        }
        if f64::min(of_first.abs(), of_second.abs()) > clearest {
            clearest = f64::min(of_first.abs(), of_second.abs());
            opposite = of_first * of_second < 0.0;
        }
        away *= 2;
    }
    // A smaller difference may be chance.
    opposite && clearest > SAME
}

async fn end_less_start(prober: &mut Prober, from: Spot, slice: &Slice) -> Option<f64> {
    let to_first = least(prober, from, slice.first()).await?;
    let to_last = least(prober, from, slice.last()).await?;
    Some(to_last - to_first)
}

/// The least time from a track to another: the median of as many as distinguish differences of [`SAME`].
async fn least(prober: &mut Prober, from: Spot, to: Spot) -> Option<f64> {
    // One result is as accurate as half an answer, because it combines many answers.
    let needed = 0.5 * prober.noise() / EXACT;
    let times = (needed * needed).ceil().clamp(1.0, MOST_TIMES) as usize;
    let mut found = Vec::with_capacity(times);
    for _ in 0..times {
        found.extend(prober.least(&from, &to, false, SHARE).await.map(|least| least.turns()));
    }
    found.sort_by(f64::total_cmp);
    found.get(found.len() / 2).copied()
}
