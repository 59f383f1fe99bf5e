//! Cylinders without a block between zones, by the time of seeks over the border.
//!
//! The seeks are under one head in both directions, as those of the curve with which they are compared: a change of heads can take
//! longer than a seek to the next cylinder.

use super::layout::{Placing, Zone};
use super::prober::Prober;
use super::seek::{Finder, SHARE, SeekPoint, curve, distances, median, nanos, overhead};
use headstack_model::Nanos;

/// Longest distance of the curve with which seeks over borders are compared, in cylinders.
const LONGEST: u32 = 200;
/// Maximum heads under which the seek over a border is measured.
const HEADS: usize = 7;
/// Cylinders next to a border of which one has a block under the same head as one beyond: the nearest may lack tracks.
const NEAR: u32 = 3;
/// Maximum difference of equal times without noise, as a share.
const SAME: f64 = 0.005;
/// Maximum difference of equal times with noise, in standard deviations of an answer. Both times are medians of several answers.
const DEVIATIONS: f64 = 2.0;

/// The seek curve of the longest zone, and the precision of a time.
struct Ruler {
    curve: Vec<SeekPoint>,
    overhead: f64,
    noise_ns: f64,
}

/// Widens the gaps between zones to what seeks over them take: cylinders without a block lie there.
pub(super) async fn widen(prober: &mut Prober, placing: &mut Placing) {
    let zones = placing.zones();
    let length = |zone: &Zone| zone.cylinders.end - zone.cylinders.start;
    let Some(longest) = zones.iter().max_by_key(|zone| length(zone)).filter(|_| zones.len() > 1) else {
        return;
    };
    let most = LONGEST.min(length(longest) / 2);
    let short: Vec<u32> = distances(length(longest)).into_iter().filter(|one| *one <= most).collect();
    let finder = Finder::new(placing);
    let Some(overhead) = overhead(prober, &finder, false).await else { return };
    let curve = curve(prober, &finder, &longest.cylinders, &short, overhead, false).await;
    let ruler = Ruler { curve, overhead, noise_ns: prober.noise() * prober.period() };
    let mut gaps = Vec::new();
    for pair in zones.windows(2) {
        gaps.push((pair[1].pieces.start, gap(prober, &finder, pair, &ruler).await));
    }
    let mut gaps = gaps.into_iter().peekable();
    let mut wider = 0;
    for (index, piece) in placing.pieces.iter_mut().enumerate() {
        if let Some((_, gap)) = gaps.next_if(|(start, _)| *start == index) {
            wider += gap;
        }
        piece.cylinder += wider;
    }
}

/// Cylinders without a block between two zones.
async fn gap(prober: &mut Prober, finder: &Finder<'_>, zones: &[Zone], ruler: &Ruler) -> u32 {
    let [outer, inner] = [zones[0].cylinders.end - 1, zones[1].cylinders.start];
    let mut distances = Vec::new();
    for steps in 0..NEAR * NEAR {
        let (before, behind) = (steps / NEAR, steps % NEAR);
        let Some(from) = outer.checked_sub(before) else { continue };
        let expected = inner + behind - from;
        for head in 0..finder.heads() {
            let tracks = finder.track(from, head).zip(finder.track(inner + behind, head));
            let Some((from, to)) = tracks else { continue };
            let Some(inward) = prober.least(&from, &to, false, SHARE).await else { continue };
            let Some(outward) = prober.least(&to, &from, false, SHARE).await else { continue };
            let turns = (inward.turns() + outward.turns()) / 2.0 - ruler.overhead;
            let distance = ruler.distance(nanos(prober, turns), expected);
            distances.push(f64::from(distance - expected));
            // Most borders have no gap: one time that shows none is enough.
            if distance == expected || distances.len() == HEADS {
                return if distance == expected { 0 } else { median(distances).unwrap_or(0.0) as u32 };
            }
        }
    }
    median(distances).unwrap_or(0.0) as u32
}

impl Ruler {
    /// The shortest distance from `least` on over which a seek takes this time.
    fn distance(&self, time: Nanos, least: u32) -> u32 {
        let time = time.0 as f64;
        let tolerance = SAME * time + DEVIATIONS * self.noise_ns;
        let most = self.curve.last().map_or(least, |last| last.distance);
        let is_long_enough = |distance: &u32| self.time(*distance) + tolerance >= time;
        (least..=most).find(is_long_enough).unwrap_or(least)
    }

    /// The time of a seek, linear between measured distances, in nanoseconds.
    fn time(&self, distance: u32) -> f64 {
        let next = self.curve.partition_point(|point| point.distance < distance);
        let of = |point: &SeekPoint| (f64::from(point.distance), point.time.0 as f64);
        match (next.checked_sub(1).map(|last| of(&self.curve[last])), self.curve.get(next).map(of)) {
            (Some((low, before)), Some((high, after))) => {
                before + (after - before) * (f64::from(distance) - low) / (high - low)
            }
            (Some((_, time)), None) | (None, Some((_, time))) => time,
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ruler(times_us: &[u64], noise_us: f64) -> Ruler {
        let point =
            |(time, distance): (&u64, u32)| SeekPoint { distance, time: Nanos(time * 1000), outward_ns: 0 };
        let curve = times_us.iter().zip(1..).map(point).collect();
        Ruler { curve, overhead: 0.0, noise_ns: noise_us * 1e3 }
    }

    #[test]
    fn shortest_distance_that_takes_the_time_is_taken() {
        // As measured on the Atlas 10K: one cylinder takes longer than two.
        let atlas = ruler(&[1245, 1157, 1163, 1378, 1355], 8.0);
        assert_eq!(atlas.distance(Nanos(1_265_000), 1), 1);
        assert_eq!(atlas.distance(Nanos(1_160_000), 1), 1);
        assert_eq!(atlas.distance(Nanos(1_380_000), 1), 4);
        assert_eq!(atlas.distance(Nanos(1_380_000), 5), 5);
        let exact = ruler(&[600, 700, 760, 805], 0.0);
        assert_eq!([601, 699, 730, 804].map(|us| exact.distance(Nanos(us * 1000), 1)), [1, 2, 3, 4]);
        // A time that no distance has is no gap.
        assert_eq!(exact.distance(Nanos(9_000_000), 1), 1);
    }
}
