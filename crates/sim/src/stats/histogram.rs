//! A distribution of times in constant memory.
//!
//! Counts are kept in steps of at most a thousandth of the time; mean, standard deviation, least and greatest are exact.

use hdrhistogram::Histogram;
use headstack_model::Nanos;
use headstack_model::report::{QuantityValue, TimeCounts};

/// Decimal digits to which a quantile is exact.
const DIGITS: u8 = 3;

/// A distribution of times. It allocates when it is made and never again.
#[derive(Clone, Debug)]
pub struct TimeHistogram {
    counts: Histogram<u64>,
    sum: u128,
    squares: u128,
    least: Nanos,
    greatest: Nanos,
}

/// Upper bounds of the counts of a report in seconds. They extend from a cache hit to a disk that does not answer.
const REPORT_BOUNDS_S: [f64; 15] =
    [0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// Buckets in each doubling of the time, as a power of two.
const BUCKET_BITS: u32 = 5;

/// The largest time that falls into the same bucket.
fn last_of_bucket(time: u64) -> u64 {
    let bits = time.checked_ilog2().unwrap_or(0).saturating_sub(BUCKET_BITS);
    time | ((1 << bits) - 1)
}

impl From<&TimeHistogram> for QuantityValue {
    fn from(times: &TimeHistogram) -> QuantityValue {
        let up_to = |bound: f64| (bound, times.count_up_to(Nanos::from_ms(bound * 1e3)));
        QuantityValue::Times(TimeCounts {
            count: times.count(),
            sum_s: times.mean_ms() / 1e3 * times.count() as f64,
            up_to_s: REPORT_BOUNDS_S.map(up_to).to_vec(),
        })
    }
}

impl Default for TimeHistogram {
    fn default() -> TimeHistogram {
        TimeHistogram::new()
    }
}

impl TimeHistogram {
    /// An empty distribution.
    pub fn new() -> TimeHistogram {
        TimeHistogram::with_digits(DIGITS)
    }

    /// An empty distribution with quantiles right to `digits` decimal digits, 1 to 5; each digit takes eight times the memory.
    pub fn with_digits(digits: u8) -> TimeHistogram {
        let counts =
            Histogram::new_with_bounds(1, u64::MAX / 2, digits).expect("the bounds and digits are allowed");
        TimeHistogram { counts, sum: 0, squares: 0, least: Nanos::MAX, greatest: Nanos::ZERO }
    }

    /// Counts one time.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        self.counts.saturating_record(time.0);
        self.sum += u128::from(time.0);
        // Wrapping here and in `std_dev_ms` cancels out, as its result is far below 2¹²⁸.
        self.squares = self.squares.wrapping_add(u128::from(time.0) * u128::from(time.0));
        self.least = self.least.min(time);
        self.greatest = self.greatest.max(time);
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &TimeHistogram) {
        self.counts.add(&other.counts).expect("all have the same bounds");
        self.sum += other.sum;
        self.squares = self.squares.wrapping_add(other.squares);
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The mean, 0 without times.
    pub fn mean_ms(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum as f64 / self.count() as f64 / 1e6 }
    }

    /// The population standard deviation, 0 without times.
    pub fn std_dev_ms(&self) -> f64 {
        let count = u128::from(self.count());
        if count == 0 {
            return 0.0;
        }
        // Integers avoid cancellation: with m the mean rounded down to whole ns, Σ(t - m)² = Σt² - 2mΣt + m²n is exact. The variance
        // is this sum over n, minus the square of the rest of the mean, which is below 1 ns.
        let middle = self.sum / count;
        let about_middle = self
            .squares
            .wrapping_sub(middle.wrapping_mul(2).wrapping_mul(self.sum))
            .wrapping_add(middle.wrapping_mul(middle).wrapping_mul(count));
        let rest = (self.sum % count) as f64 / count as f64;
        (about_middle as f64 / count as f64 - rest * rest).max(0.0).sqrt() / 1e6
    }

    /// The least time, zero where nothing was counted.
    pub fn min(&self) -> Nanos {
        if self.count() == 0 { Nanos::ZERO } else { self.least }
    }

    /// The greatest time, zero where nothing was counted.
    pub fn max(&self) -> Nanos {
        self.greatest
    }

    /// The time that a share `quantile` of all times does not exceed: exact to a thousandth, and never outside minimum and maximum.
    pub fn quantile(&self, quantile: f64) -> Nanos {
        let time = Nanos(self.counts.value_at_quantile(quantile));
        time.max(self.min()).min(self.max())
    }

    /// Number of times that are `least` or more, to the resolution of the counts.
    pub fn count_from(&self, least: Nanos) -> u64 {
        self.counts.count_between(least.0, u64::MAX / 2)
    }

    /// Number of times that are `most` or less, to the resolution of the counts.
    pub fn count_up_to(&self, most: Nanos) -> u64 {
        self.counts.count_between(0, most.0)
    }

    /// The counts in log-linear buckets, 32 to each doubling of the time, so that distributions of several runs can be added bucket by bucket.
    /// Each has its largest time; empty ones are left out.
    pub fn buckets(&self) -> Vec<(Nanos, u64)> {
        let mut found: Vec<(Nanos, u64)> = Vec::new();
        for step in self.counts.iter_recorded() {
            let last = Nanos(last_of_bucket(step.value_iterated_to()));
            match found.last_mut().filter(|(end, _)| *end == last) {
                Some((_, count)) => *count += step.count_since_last_iteration(),
                None => found.push((last, step.count_since_last_iteration())),
            }
        }
        found
    }

    /// The counts as they are kept, with the largest time of each: all that [`TimeHistogram::quantile`] depends on. Empty ones are left out.
    pub fn steps(&self) -> impl Iterator<Item = (Nanos, u64)> {
        let steps = self.counts.iter_recorded();
        steps.map(|step| (Nanos(step.value_iterated_to()), step.count_since_last_iteration()))
    }

    /// The 50th percentile.
    pub fn p50(&self) -> Nanos {
        self.quantile(0.5)
    }

    /// The 99th percentile.
    pub fn p99(&self) -> Nanos {
        self.quantile(0.99)
    }

    /// The distribution as a line of `steps` points: shares evenly spaced up to 1, and the time at each.
    pub fn points(&self, steps: u32) -> impl Iterator<Item = (f64, Nanos)> + '_ {
        (1..=steps).map(move |step| {
            let share = f64::from(step) / f64::from(steps);
            (share, self.quantile(share))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(times: impl IntoIterator<Item = u64>) -> TimeHistogram {
        let mut histogram = TimeHistogram::new();
        times.into_iter().for_each(|time| histogram.record(Nanos(time)));
        histogram
    }

    #[test]
    fn buckets_hold_every_time_within_a_32nd() {
        let mut times = TimeHistogram::new();
        for time in [3, 3, 40, 41, 1_000_000, 1_001_000, 2_000_000] {
            times.record(Nanos(time));
        }
        let found = times.buckets();
        let counts: Vec<u64> = found.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 1, 2, 1], "{found:?}");
        for (time, (last, _)) in [3, 40, 41, 1_001_000, 2_000_000].into_iter().zip(&found) {
            assert!((time..=time + time / 32).contains(&last.0), "{time} in the bucket up to {last:?}");
        }
        let mut other = TimeHistogram::new();
        other.record(Nanos(1_000_500));
        assert_eq!(other.buckets()[0].0, found[3].0, "buckets of two runs have the same ends");
        assert_eq!(TimeHistogram::new().buckets(), []);
    }

    #[test]
    fn mean_and_deviation_are_exact() {
        let histogram =
            of([2_000_000, 4_000_000, 4_000_000, 4_000_000, 5_000_000, 5_000_000, 7_000_000, 9_000_000]);
        assert_eq!((histogram.mean_ms(), histogram.std_dev_ms()), (5.0, 2.0));
        assert_eq!((histogram.min(), histogram.max()), (Nanos(2_000_000), Nanos(9_000_000)));
        assert_eq!(of([123_456_789; 1000]).std_dev_ms(), 0.0);
        let far = of([u64::MAX / 4, u64::MAX / 4 + 2_000_000]);
        assert_eq!(far.std_dev_ms(), 1.0);
    }

    #[test]
    fn quantiles_are_accurate_to_a_thousandth() {
        let histogram = of((1..=100_000u64).map(|step| step * 1000));
        for (quantile, expected) in [(0.01, 1_000_000.0), (0.5, 50_000_000.0), (0.99, 99_000_000.0)] {
            let met = histogram.quantile(quantile).0 as f64;
            assert!((met / expected - 1.0).abs() < 0.001, "{quantile}: {met}");
        }
        assert_eq!(histogram.quantile(1.0), Nanos(100_000_000));
        assert_eq!(histogram.p50(), histogram.quantile(0.5));
        assert_eq!(histogram.p99(), histogram.quantile(0.99));
    }

    #[test]
    fn empty_histogram_reports_zeros() {
        let histogram = TimeHistogram::new();
        assert_eq!((histogram.mean_ms(), histogram.std_dev_ms(), histogram.count()), (0.0, 0.0, 0));
        assert_eq!((histogram.min(), histogram.p50(), histogram.max()), (Nanos(0), Nanos(0), Nanos(0)));
    }

    #[test]
    fn histogram_holds_any_time() {
        let histogram = of([0, u64::MAX]);
        assert_eq!((histogram.min(), histogram.max(), histogram.count()), (Nanos(0), Nanos::MAX, 2));
        assert_eq!(histogram.quantile(0.0), Nanos(0));
    }

    #[test]
    fn points_rise_to_the_maximum() {
        let histogram = of([5, 1, 9]);
        let points: Vec<(f64, Nanos)> = histogram.points(3).collect();
        assert_eq!(points, [(1.0 / 3.0, Nanos(1)), (2.0 / 3.0, Nanos(5)), (1.0, Nanos(9))]);
    }

    proptest! {
        #[test]
        fn merged_histogram_equals_that_of_all_times(
            one in prop::collection::vec(0..1u64 << 40, 0..50),
            other in prop::collection::vec(0..1u64 << 40, 0..50),
        ) {
            let (mut merged, whole) = (of(one.clone()), of(one.into_iter().chain(other.clone())));
            merged.merge(&of(other));
            prop_assert_eq!(merged.mean_ms(), whole.mean_ms());
            prop_assert_eq!(merged.std_dev_ms(), whole.std_dev_ms());
            prop_assert_eq!((merged.min(), merged.max()), (whole.min(), whole.max()));
            prop_assert_eq!(merged.p50(), whole.p50());
        }
    }
}
