//! Seek times over distances, head switch, and the extra time of writes.

use super::layout::Placing;
use super::prober::Prober;
use super::tracks::Spot;
use headstack_model::Nanos;
use std::collections::BTreeMap;
use std::ops::Range;

/// The seek time over a distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekPoint {
    /// Cylinders.
    pub distance: u32,
    /// Seek time with settle for a read, or for a write in a curve of writes.
    pub time: Nanos,
    /// How much longer outward seeks took than inward ones, in nanoseconds.
    pub outward_ns: i64,
}

/// Times of the arm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seeks {
    /// For reads, by increasing distance.
    pub reads: Vec<SeekPoint>,
    /// For writes, by increasing distance; empty if writes were not allowed.
    pub writes: Vec<SeekPoint>,
    /// Head switch on a cylinder; none if only one head was found.
    pub head_switch: Option<Nanos>,
    /// Extra time of a write over a read after a seek, in nanoseconds; none if writes were not allowed.
    pub write_settle_ns: Option<i64>,
    /// The same after a head switch.
    pub switch_settle_ns: Option<i64>,
    /// The least time of a read on the head's track, without a seek: command, electronics, bus and one block.
    pub read_overhead: Option<Nanos>,
    /// The same for a write.
    pub write_overhead: Option<Nanos>,
}

/// Resolution of a sample, in turns.
pub(super) const SHARE: f64 = 0.0006;
/// Places from which each distance is measured, in each direction.
const PLACES: u32 = 3;
/// Number of places at which heads are switched.
const SWITCHES: u32 = 24;
/// Distances of the curve for writes.
const WRITE_DISTANCES: usize = 24;
/// Maximum pieces before a place in which a track is searched if slips have cut its run.
const CUT_PIECES: usize = 8;
/// Maximum sectors that a whole track lacks because of slips.
const SLIPPED: u32 = 4;
/// Number of cylinders, or pairs of them, in which whole tracks near a place are searched.
const NEAR_CYLINDERS: u32 = 64;
/// Largest distance up to which every distance is measured.
const SHORT: u32 = 10;
/// Factor between further distances.
const GROWTH: f64 = 1.25;
/// Number of distances that are spread evenly over the disk.
const EVEN: u32 = 40;
/// Number of distances after which places repeat, so that none of them has much weight.
const SHIFTS: usize = 7;

/// Tracks by head and cylinder.
pub(super) struct Finder<'a> {
    placing: &'a Placing,
    cylinders: u32,
    /// Pieces of each head by their lowest cylinder.
    by_head: BTreeMap<u32, Vec<(u32, usize)>>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(placing: &'a Placing) -> Finder<'a> {
        let mut by_head = BTreeMap::<u32, Vec<(u32, usize)>>::new();
        for (index, piece) in placing.pieces.iter().enumerate() {
            let heads = match piece.head_step {
                0 => piece.head..piece.head + 1,
                _ => {
                    let last = piece.head_of(piece.tracks.run.tracks - 1);
                    piece.head.min(last)..piece.head.max(last) + 1
                }
            };
            heads.for_each(|head| by_head.entry(head).or_default().push((piece.cylinders().0, index)));
        }
        by_head.values_mut().for_each(|pieces| pieces.sort_unstable());
        Finder { placing, cylinders: placing.cylinders(), by_head }
    }

    pub(super) fn heads(&self) -> u32 {
        self.placing.heads
    }

    /// A whole track at a cylinder under a head.
    pub(super) fn track(&self, cylinder: u32, head: u32) -> Option<Spot> {
        let pieces = self.by_head.get(&head)?;
        let behind = pieces.partition_point(|(low, _)| *low <= cylinder);
        // A track cut by slips lies in several pieces, which begin near each other.
        pieces[..behind].iter().rev().take(CUT_PIECES).find_map(|(_, index)| {
            let piece = &self.placing.pieces[*index];
            let track = piece.track_at(cylinder, head)?;
            (piece.tracks.run.sectors + SLIPPED >= piece.tracks.sectors_per_track)
                .then(|| piece.tracks.spot(track))
        })
    }

    /// Two tracks under one head, `distance` cylinders apart, the first near to a cylinder.
    fn pair(&self, near: u32, distance: u32) -> Option<(Spot, Spot)> {
        let heads = self.placing.heads;
        let most = self.cylinders - 1 - distance;
        (0..NEAR_CYLINDERS).find_map(|step| {
            let from = if near + step <= most { near + step } else { most.saturating_sub(step) };
            let head = step % heads;
            Some((self.track(from, head)?, self.track(from + distance, head)?))
        })
    }
}

/// Distances to measure: one by one, then by their logarithm, and evenly up to the longest.
pub(super) fn distances(cylinders: u32) -> Vec<u32> {
    let longest = cylinders.saturating_sub(1);
    if longest == 0 {
        return Vec::new();
    }
    let mut all: Vec<u32> = (1..=SHORT.min(longest)).collect();
    let mut next = f64::from(SHORT);
    while next < f64::from(longest) {
        all.push(next as u32);
        next *= GROWTH;
    }
    all.extend((1..=EVEN).map(|step| (f64::from(longest) * f64::from(step) / f64::from(EVEN)) as u32));
    all.sort_unstable();
    all.dedup();
    all.retain(|distance| (1..=longest).contains(distance));
    all
}

pub(super) async fn measure(prober: &mut Prober, placing: &Placing) -> Seeks {
    let finder = Finder::new(placing);
    let everywhere = 0..finder.cylinders;
    let may_write = prober.disk().info().may_write;
    let mut seeks = Seeks::default();
    let read = overhead(prober, &finder, false).await;
    seeks.read_overhead = read.map(|turns| nanos(prober, turns));
    let all = distances(finder.cylinders);
    seeks.reads = curve(prober, &finder, &everywhere, &all, read.unwrap_or(0.0), false).await;
    let switch = head_switch(prober, &finder, false).await.map(|turns| turns - read.unwrap_or(0.0));
    seeks.head_switch = switch.map(|turns| nanos(prober, turns));
    if may_write && let Some(write) = overhead(prober, &finder, true).await {
        seeks.write_overhead = Some(nanos(prober, write));
        let step = all.len().div_ceil(WRITE_DISTANCES).max(1);
        let some: Vec<u32> = all.iter().copied().step_by(step).collect();
        seeks.writes = curve(prober, &finder, &everywhere, &some, write, true).await;
        seeks.write_settle_ns = settle(&seeks);
        let writing = head_switch(prober, &finder, true).await.map(|turns| turns - write);
        let more = writing.zip(switch).map(|(write, read)| (write - read) * prober.period());
        seeks.switch_settle_ns = more.map(|more| more as i64);
    }
    seeks
}

pub(super) fn nanos(prober: &Prober, turns: f64) -> Nanos {
    Nanos((turns * prober.period()).max(0.0).round() as u64)
}

/// Time until the head, already on the track, has read a block there, in turns.
pub(super) async fn overhead(prober: &mut Prober, finder: &Finder<'_>, write: bool) -> Option<f64> {
    let mut all = Vec::new();
    for place in 0..PLACES * 2 {
        let cylinder = (finder.cylinders - 1) / (PLACES * 2) * place;
        let Some((spot, _)) = finder.pair(cylinder, 0) else { continue };
        if write {
            prober.compare_writes(&spot).await
        } else {
            prober.set_clock(&spot).await
        }
        all.extend(prober.least(&spot, &spot, write, SHARE).await.map(|least| least.turns()));
    }
    median(all)
}

pub(super) async fn curve(
    prober: &mut Prober,
    finder: &Finder<'_>,
    within: &Range<u32>,
    distances: &[u32],
    overhead: f64,
    write: bool,
) -> Vec<SeekPoint> {
    let mut points = Vec::new();
    for (index, distance) in distances.iter().copied().enumerate() {
        prober.disk().report_progress("seeks", index as f64 / distances.len() as f64);
        let (mut inward, mut outward) = (Vec::new(), Vec::new());
        for place in 0..PLACES {
            let share = (f64::from(place) + (index % SHIFTS) as f64 / SHIFTS as f64) / f64::from(PLACES);
            let room = (within.end - within.start).saturating_sub(1 + distance);
            let near = within.start + (f64::from(room) * share) as u32;
            let Some((outer, inner)) = finder.pair(near, distance) else { continue };
            inward.extend(prober.least(&outer, &inner, write, SHARE).await.map(|least| least.turns()));
            outward.extend(prober.least(&inner, &outer, write, SHARE).await.map(|least| least.turns()));
        }
        let (Some(inward), Some(outward)) = (median(inward), median(outward)) else { continue };
        let time = nanos(prober, (inward + outward) / 2.0 - overhead);
        let outward_ns = ((outward - inward) * prober.period()) as i64;
        points.push(SeekPoint { distance, time, outward_ns });
    }
    points
}

/// The least time to the next head on a cylinder, in turns.
async fn head_switch(prober: &mut Prober, finder: &Finder<'_>, write: bool) -> Option<f64> {
    let heads = finder.placing.heads;
    let mut all = Vec::new();
    for place in 0..SWITCHES {
        let cylinder = (finder.cylinders - 1) / SWITCHES * place;
        let head = place % heads.saturating_sub(1).max(1);
        let found = (cylinder..(cylinder + NEAR_CYLINDERS).min(finder.cylinders))
            .find_map(|cylinder| Some((finder.track(cylinder, head)?, finder.track(cylinder, head + 1)?)));
        let Some((from, to)) = found else { continue };
        all.extend(prober.least(&from, &to, write, SHARE).await.map(|least| least.turns()));
    }
    median(all)
}

/// The extra time of writes over reads of the same distances.
fn settle(seeks: &Seeks) -> Option<i64> {
    let of_read = |distance| seeks.reads.iter().find(|point| point.distance == distance);
    let differences = seeks.writes.iter().filter_map(|write| {
        let read = of_read(write.distance)?;
        Some(write.time.0 as f64 - read.time.0 as f64)
    });
    median(differences.collect()).map(|settle| settle as i64)
}

pub(super) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let upper = *numbers.get(middle)?;
    Some(if numbers.len() % 2 == 1 { upper } else { (numbers[middle - 1] + upper) / 2.0 })
}
