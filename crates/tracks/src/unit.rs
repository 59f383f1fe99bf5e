//! How well one constant unit fits tracks of many lengths, as for the stripe hints of a file system.

use crate::map::View;
use headstack_model::Lbn;

/// The fit of requests of one size that begin at multiples of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Fit {
    /// Blocks of a request.
    pub unit: u64,
    /// Requests that fit in the partition.
    pub requests: u64,
    pub tracks: u64,
    /// Tracks whose ends are both multiples of the unit, so that no request crosses them.
    pub tracks_fit: u64,
    pub boundaries: u64,
    /// Boundaries at a multiple of the unit, which no request crosses.
    pub avoided: u64,
}

impl Fit {
    /// The fit of a unit to the tracks of a partition.
    pub fn measure(view: &View<'_>, unit: u64) -> Fit {
        assert!(unit > 0, "a request has blocks");
        let mut fit = Fit {
            unit,
            requests: view.sectors() / unit,
            tracks: 0,
            tracks_fit: 0,
            boundaries: 0,
            avoided: 0,
        };
        for run in view.runs() {
            let tracks = u64::from(run.tracks);
            let length = u64::from(run.sectors);
            fit.tracks += tracks;
            fit.avoided += multiples(run.first.0, length, tracks, unit);
            if run.first.0.is_multiple_of(unit) && length.is_multiple_of(unit) {
                fit.tracks_fit += tracks;
            }
        }
        fit.boundaries = fit.tracks.saturating_sub(1);
        // The partition's start is a multiple of any unit, but no boundary between two of its tracks.
        fit.avoided = fit.avoided.saturating_sub(1);
        fit
    }

    /// Share of the boundaries that no request crosses.
    pub fn share_avoided(&self) -> f64 {
        self.avoided as f64 / self.boundaries.max(1) as f64
    }

    /// Share of the tracks that no request crosses the ends of.
    pub fn share_fit(&self) -> f64 {
        self.tracks_fit as f64 / self.tracks.max(1) as f64
    }

    /// Boundaries crossed per request.
    pub fn crossed(&self) -> f64 {
        (self.boundaries - self.avoided) as f64 / self.requests.max(1) as f64
    }

    /// Boundaries that a request of this size crosses if it begins anywhere.
    pub fn crossed_anywhere(&self) -> f64 {
        self.boundaries as f64 * self.unit as f64 / (self.requests * self.unit).max(1) as f64
    }

    /// Crossings saved per request: small units avoid more boundaries, but small requests seldom meet one.
    pub fn spared(&self) -> f64 {
        self.avoided as f64 / self.requests.max(1) as f64
    }
}

/// The unit that saves the most crossings per request, among the multiples of `step` up to `most`; the longest of equals.
pub fn best(view: &View<'_>, step: u64, most: u64) -> Option<Fit> {
    let fits = (1..=most / step).map(|steps| Fit::measure(view, steps * step));
    fits.max_by(|one, other| one.spared().total_cmp(&other.spared()))
}

/// How many of the `count` numbers `first`, `first + step`, … are multiples of `unit`.
fn multiples(first: u64, step: u64, count: u64, unit: u64) -> u64 {
    let common = gcd(step, unit);
    if !first.is_multiple_of(common) {
        return 0;
    }
    // first + k step = 0 (mod unit), divided by the common divisor: then step has an inverse.
    let unit = unit / common;
    let missing = (unit - first / common % unit) % unit;
    let k = (u128::from(missing) * u128::from(inverse(step / common % unit, unit)) % u128::from(unit)) as u64;
    if k < count { (count - 1 - k) / unit + 1 } else { 0 }
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// The inverse of `value` modulo `modulus`, which are coprime (extended Euclid).
fn inverse(value: u64, modulus: u64) -> u64 {
    let (mut rest, mut next) = (i128::from(modulus), i128::from(value));
    let (mut of_rest, mut of_next) = (0i128, 1i128);
    while next != 0 {
        let quotient = rest / next;
        (rest, next) = (next, rest - quotient * next);
        (of_rest, of_next) = (of_next, of_rest - quotient * of_next);
    }
    of_rest.rem_euclid(i128::from(modulus)) as u64
}

/// The longest track of a partition, cut at its ends; 0 if there is none.
pub fn longest_track(view: &View<'_>) -> u64 {
    view.runs().map(|run| u64::from(run.sectors)).max().unwrap_or(0)
}

/// Whether the partition begins with a track; multiples count from there.
pub fn begins_a_track(view: &View<'_>) -> bool {
    view.first_boundary() == Some(Lbn(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrackMap;

    #[test]
    fn multiple_count_matches_enumeration() {
        for (first, step, unit) in (0..40)
            .flat_map(|first| (1..20).flat_map(move |step| (1..30).map(move |unit| (first, step, unit))))
        {
            for count in [0, 1, 2, 7, 31] {
                let counted = (0..count).filter(|k| (first + k * step) % unit == 0).count() as u64;
                assert_eq!(
                    multiples(first, step, count, unit),
                    counted,
                    "{first} + {count} x {step}, {unit}"
                );
            }
        }
    }

    #[test]
    fn fit_matches_check_of_each_track() {
        let mut map = TrackMap::new();
        for (sectors, tracks) in [(24, 9), (20, 7), (1, 1), (24, 5), (18, 30)] {
            map.push(sectors, tracks);
        }
        for (start, unit) in
            [0, 3, 24, 216].into_iter().flat_map(|start| (1..40).map(move |unit| (start, unit)))
        {
            let view = map.view(Lbn(start), map.end().0 - start - 2);
            let fit = Fit::measure(&view, unit);
            let is = |lbn: Lbn| lbn.0.is_multiple_of(unit);
            let firsts = || view.iter().skip(1).map(|track| track.first);
            assert_eq!(fit.boundaries, firsts().count() as u64);
            assert_eq!(fit.avoided, firsts().filter(|lbn| is(*lbn)).count() as u64, "{start}, {unit}");
            let fitting = view.iter().filter(|track| is(track.first) && is(track.end()));
            assert_eq!(fit.tracks_fit, fitting.count() as u64, "{start}, {unit}");
        }
    }

    #[test]
    fn best_unit_of_equal_tracks_is_one_track() {
        let mut map = TrackMap::new();
        map.push(528, 1000);
        let view = map.view(Lbn(528), 528 * 900);
        let fit = best(&view, 8, longest_track(&view)).expect("there are units");
        assert_eq!((fit.unit, fit.tracks_fit, fit.avoided, fit.crossed()), (528, 900, 899, 0.0));
        assert!(begins_a_track(&view));
        // With an offset of one sector, no multiple of a block is a boundary.
        let view = map.view(Lbn(527), 528 * 900);
        assert_eq!(best(&view, 8, 528).map(|fit| fit.avoided), Some(0));
        assert!(!begins_a_track(&view));
    }
}
