//! Rounds of sorted requests: the longest time of one, and how many streams fit into it.
//!
//! A server with a request of each stream sorts them, so that the arm sweeps over the disk once. Wherever the requests lie, `n` of
//! them then cost at most one seek to the first, at most as long as the disk is wide, and `n - 1` seeks whose distances add up to
//! at most the width of the disk. Where a seek curve is concave, these cost most when all are equally long. Where it is not, the
//! smallest concave, non-decreasing curve above it gives a bound.
//!
//! [`headstack_policy::admission`] counts the longest seek for each turn, because its turns are not sorted by place.
//!
//! Not modelled: requests that wait for others in the drive, retries, recalibrations.
//!
//! *Source:* Y.-J. Oyang, "A tight upper bound of the lumped disk seek time for the SCAN disk scheduling policy" (1995), for
//! equally long seeks as the worst; its seek to the first request is ours.

use headstack_model::Nanos;

/// The longest times of sweeps over a disk.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    /// Corners (distance, ns) of the smallest concave curve above the seek curve, by rising distance, up to its highest point. Beyond that
    /// the curve is constant, because a shorter seek may take longest.
    corners: Vec<(u32, u64)>,
    /// Cylinders that a seek passes at most.
    width: u32,
}

impl Sweep {
    /// For a disk, or a part of it, with `cylinders` cylinders, at least one. `time` returns the longest seek time over a distance.
    pub(super) fn new(cylinders: u32, time: impl Fn(u32) -> Nanos) -> Sweep {
        assert!(cylinders > 0, "a disk has a cylinder");
        let mut corners: Vec<(u32, u64)> = Vec::new();
        for distance in 0..cylinders {
            let here = (distance, time(distance).0);
            while let [.., before, last] = corners[..] {
                if is_above(before, last, here) {
                    break;
                }
                corners.pop();
            }
            corners.push(here);
        }
        while let [.., before, last] = corners[..]
            && before.1 >= last.1
        {
            corners.pop();
        }
        Sweep { corners, width: cylinders - 1 }
    }

    /// The longest time of all seeks of a sweep over `requests` requests.
    pub(super) fn longest(&self, requests: u32) -> Nanos {
        let (_, highest) = self.corners[self.corners.len() - 1];
        match requests {
            0 => Nanos::ZERO,
            _ => Nanos(highest + self.sum(u64::from(requests - 1))),
        }
    }

    /// `seeks` times the bound at `width / seeks` cylinders, rounded up.
    fn sum(&self, seeks: u64) -> u64 {
        let width = u64::from(self.width);
        let after = self.corners.partition_point(|(distance, _)| u64::from(*distance) * seeks < width);
        let Some((to, high)) = self.corners.get(after).copied() else {
            return seeks * self.corners[self.corners.len() - 1].1;
        };
        let Some((from, low)) = after.checked_sub(1).map(|before| self.corners[before]) else {
            return seeks * high;
        };
        // seeks (low + (high - low) (width / seeks - from) / (to - from))
        let (run, rise) = (i128::from(to - from), i128::from(high) - i128::from(low));
        let beyond = i128::from(width) - i128::from(seeks) * i128::from(from);
        let more = (rise * beyond).div_euclid(run) + 1;
        u64::try_from(i128::from(seeks) * i128::from(low) + more).expect("no seek takes less than no time")
    }
}

/// Whether `middle` lies above the line from `from` to `to`.
fn is_above(from: (u32, u64), middle: (u32, u64), to: (u32, u64)) -> bool {
    let rise = |end: (u32, u64)| i128::from(end.1) - i128::from(from.1);
    let run = |end: (u32, u64)| i128::from(end.0 - from.0);
    rise(middle) * run(to) > rise(to) * run(middle)
}

/// The most streams, from 1 to `limit`, whose round takes no longer than `period`; 0 if even that of one takes longer.
///
/// `round` returns the time of a round of a number of streams, and must not fall as the number grows.
///
/// *Errors:* the first of `round`.
pub(super) fn most_streams<E>(
    limit: u32,
    period: Nanos,
    mut round: impl FnMut(u32) -> Result<Nanos, E>,
) -> Result<u32, E> {
    // All up to `fits` do, and none from `beyond` on.
    let (mut fits, mut beyond) = (0, limit.saturating_add(1));
    while beyond - fits > 1 {
        let middle = fits + (beyond - fits) / 2;
        if round(middle)? <= period {
            fits = middle;
        } else {
            beyond = middle;
        }
    }
    Ok(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::{Mechanics, TrackPlace, drives};
    use proptest::prelude::*;
    use std::convert::Infallible;

    /// A curve with a dent, as measured ones have.
    fn dented(distance: u32) -> Nanos {
        let ms = 1.0 + 0.05 * f64::from(distance).sqrt() - if distance % 17 == 3 { 0.4 } else { 0.0 };
        Nanos::from_ms(if distance == 0 { 0.6 } else { ms })
    }

    proptest! {
        /// No sweep, wherever the arm was and whatever the requests, takes longer than the bound.
        #[test]
        fn no_sweep_exceeds_the_longest(
            mut places in prop::collection::vec(0..3000u32, 1..40),
            arm in 0..3000u32,
        ) {
            places.sort_unstable();
            let sweep = Sweep::new(3000, dented);
            let mut took = dented(arm.abs_diff(places[0]));
            for pair in places.windows(2) {
                took += dented(pair[1] - pair[0]);
            }
            prop_assert!(took <= sweep.longest(places.len() as u32), "{took}");
        }
    }

    #[test]
    fn sweep_bound_holds_when_widest_seek_is_not_longest() {
        // A way over 1999 cylinders takes longest. The first way is to the first request, the others are 2999 long at most.
        let peaked = |distance: u32| Nanos(u64::from(distance.min(3998 - distance)));
        let sweep = Sweep::new(3000, peaked);
        let took = |ways: &[u32]| ways.iter().map(|way| peaked(*way).0).sum::<u64>();
        for ways in [&[1999, 1999][..], &[1999, 1999, 1000], &[1999, 1000, 1000, 999]] {
            let longest = sweep.longest(ways.len() as u32).0;
            assert!(took(ways) <= longest, "{ways:?}: {longest}");
        }
        assert_eq!(sweep.longest(2), Nanos(2 * 1999));
    }

    #[test]
    fn longest_sweep_stops_at_equal_steps() {
        // 3000 cylinders are 2999 steps: a way over all of them, then one of 2999 and three of 2999 / 3.
        let root = |distance: u32| Nanos((1000.0 * f64::from(distance).sqrt()) as u64);
        let sweep = Sweep::new(3000, root);
        assert_eq!(sweep.longest(0), Nanos::ZERO);
        assert_eq!(sweep.longest(1), root(2999));
        assert!(sweep.longest(2).0.abs_diff(2 * root(2999).0) <= 1);
        let equal = root(2999).0 as f64 + 3.0 * 1000.0 * (2999.0f64 / 3.0).sqrt();
        assert!((sweep.longest(4).0 as f64 - equal).abs() < 5.0);
    }

    #[test]
    fn sweep_over_more_streams_never_takes_less_time() {
        for (name, _) in drives::all() {
            let spec = drives::load(name).expect("it is shipped");
            let mechanics = Mechanics::new(&spec);
            let to = |cylinder| TrackPlace { cylinder, head: 1 };
            let sweep = Sweep::new(spec.geometry.cylinders, |distance| {
                mechanics.reposition(TrackPlace::default(), to(distance), false)
            });
            let mut before = Nanos::ZERO;
            for streams in 1..200 {
                let now = sweep.longest(streams);
                assert!(now >= before, "{}: {streams}", spec.name);
                before = now;
            }
        }
    }

    #[test]
    fn longer_rounds_admit_exactly_the_streams_that_fit() {
        let round = |streams: u32| Ok::<_, Infallible>(Nanos(u64::from(streams) * 7 + 3));
        let most =
            |limit, period| most_streams(limit, Nanos(period), round).unwrap_or_else(|never| match never {});
        assert_eq!([9, 10, 16, 17, 73].map(|period| most(100, period)), [0, 1, 1, 2, 10]);
        assert_eq!(most(9, 73), 9);
        assert_eq!(most(u32::MAX, u64::MAX), u32::MAX - 1);
        let failing = |_| Err("no disk");
        assert_eq!(most_streams(5, Nanos(1), failing), Err("no disk"));
    }
}
