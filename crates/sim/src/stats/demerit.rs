//! Demerit: the rms horizontal distance between two distributions of response times.
//!
//! Two forms: the exact one over sorted times, and the one that DiskSim prints, which first sorts times into buckets
//! and so is comparable with its published figures.
//!
//! *Source:* Ruemmler and Wilkes 1994 (the measure); DiskSim 4.0, response-time statistics (the buckets).

use headstack_model::Nanos;

/// The rms distance between the two sorted samples. If their counts differ the smaller one is interpolated by quantile. `None` if
/// either is empty.
///
/// *Units:* milliseconds.
pub fn exact_ms(measured: &[Nanos], simulated: &[Nanos]) -> Option<f64> {
    let (one, other) = (sorted(measured)?, sorted(simulated)?);
    let count = measured.len().max(simulated.len());
    let squares = (0..count).map(|step| {
        let distance = quantile(&one, step, count) - quantile(&other, step, count);
        distance * distance
    });
    Some((squares.sum::<f64>() / count as f64).sqrt() / 1e6)
}

fn sorted(sample: &[Nanos]) -> Option<Vec<Nanos>> {
    let mut times = sample.to_vec();
    times.sort_unstable();
    (!times.is_empty()).then_some(times)
}

/// The time at the share (step + ½) / steps of sorted times, in nanoseconds. The i-th of n times lies at the share (i + ½) / n;
/// in between it is interpolated linearly, and beyond the ends it is constant.
fn quantile(times: &[Nanos], step: usize, steps: usize) -> f64 {
    // The place among the times, in units of 1 / (2 · steps).
    let place = ((2 * step + 1) * times.len()).saturating_sub(steps);
    let (index, rest) = (place / (2 * steps), place % (2 * steps));
    let low = times[index.min(times.len() - 1)].0 as f64;
    let high = times[(index + 1).min(times.len() - 1)].0 as f64;
    low + (high - low) * rest as f64 / (2 * steps) as f64
}

const BUCKETS: usize = 1750;
/// Step of the share at which the distributions are compared.
const SHARE_STEP: f64 = 0.0001;

/// The rms distance as DiskSim computes it: from bucketed times, at steps of a ten thousandth of the share. `None` if either
/// sample is empty.
///
/// *Units:* milliseconds.
pub fn bucketed_ms(measured: &[Nanos], simulated: &[Nanos]) -> Option<f64> {
    let limits = limits_us();
    let (mut one, mut other) = (Steps::new(measured, &limits)?, Steps::new(simulated, &limits)?);
    let (mut squares, mut count, mut share) = (0.0, 0u32, SHARE_STEP);
    // Added up, as in DiskSim: the shares of 10,000 requests lie on these steps, so the last bit decides the bucket of a quantile.
    while share <= 1.0 {
        let distance = one.time_ms(share) - other.time_ms(share);
        squares += distance * distance;
        count += 1;
        share += SHARE_STEP;
    }
    Some((squares / f64::from(count)).sqrt())
}

/// The upper limits of the buckets, in microseconds: one apart up to 100, then about 1 % apart, up to 34 minutes.
fn limits_us() -> Vec<u32> {
    let mut limits = vec![0u32];
    for at in 1..BUCKETS {
        let last = limits[at - 1];
        limits.push(last + 1 + last / 100);
    }
    limits
}

/// A cumulative distribution in steps, read in order of rising share.
struct Steps<'a> {
    limits: &'a [u32],
    shares: Vec<f64>,
    at: usize,
}

impl Steps<'_> {
    fn new<'a>(sample: &[Nanos], limits: &'a [u32]) -> Option<Steps<'a>> {
        if sample.is_empty() {
            return None;
        }
        let mut counts = vec![0u64; limits.len()];
        for time in sample {
            let us = (time.as_ms() * 1000.0).floor();
            let bucket = limits.partition_point(|limit| f64::from(*limit) <= us);
            counts[bucket.min(limits.len() - 1)] += 1;
        }
        let mut below = 0;
        let shares = counts.iter().map(|count| {
            below += count;
            // Six decimals, as printed.
            (below as f64 / sample.len() as f64 * 1e6).round() / 1e6
        });
        Some(Steps { limits, shares: shares.collect(), at: 1 })
    }

    /// The time below which `share` of the sample lies, linear between two limits. Shares must not fall from call to call.
    fn time_ms(&mut self, share: f64) -> f64 {
        while self.shares[self.at] < share && self.at + 1 < self.shares.len() {
            self.at += 1;
        }
        let (low, high) = (self.shares[self.at - 1], self.shares[self.at]);
        let (low_ms, high_ms) = (self.limit_ms(self.at - 1), self.limit_ms(self.at));
        low_ms + (share - low) / (high - low) * (high_ms - low_ms)
    }

    fn limit_ms(&self, at: usize) -> f64 {
        f64::from(self.limits[at]) / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(us: &[u64]) -> Vec<Nanos> {
        us.iter().map(|us| Nanos(us * 1000)).collect()
    }

    /// Ten thousand times between 1 and 21 ms, in no order.
    fn spread() -> Vec<Nanos> {
        (0..10_000u64).map(|step| Nanos(1_000_000 + step * 7919 % 10_000 * 2000)).collect()
    }

    fn shifted(sample: &[Nanos], by: u64) -> Vec<Nanos> {
        sample.iter().map(|time| Nanos(time.0 + by)).collect()
    }

    fn is_near(value: Option<f64>, expected: f64) -> bool {
        value.is_some_and(|value| (value - expected).abs() < 1e-12)
    }

    #[test]
    fn identical_samples_have_zero_demerit() {
        for sample in [times(&[5]), times(&[3, 900, 20_000]), spread()] {
            assert_eq!(exact_ms(&sample, &sample), Some(0.0));
            assert_eq!(bucketed_ms(&sample, &sample), Some(0.0));
        }
    }

    #[test]
    fn exact_demerit_is_the_rms_distance_of_sorted_times() {
        // Sorted: 1, 2, 6 against 2, 4, 5 ms: distances 1, 2, 1, rms √2.
        let (one, other) = (times(&[6000, 1000, 2000]), times(&[4000, 5000, 2000]));
        assert!(is_near(exact_ms(&one, &other), 2f64.sqrt()));
    }

    #[test]
    fn constant_shift_equals_its_demerit() {
        let sample = spread();
        assert!(is_near(exact_ms(&sample, &shifted(&sample, 370_000)), 0.37));
        // Buckets are up to 0.2 ms wide here, but a quantile is interpolated within its bucket.
        let bucketed = bucketed_ms(&sample, &shifted(&sample, 370_000)).expect("there are times");
        assert!((bucketed - 0.37).abs() < 0.02, "{bucketed}");
    }

    #[test]
    fn unequal_sample_sizes_are_interpolated() {
        // Two times represent shares ¼ and ¾; at the four's ⅛, ⅜, ⅝, ⅞ they interpolate to 10, 12.5, 17.5, 20.
        let (two, four) = (times(&[20_000, 10_000]), times(&[10_000, 12_500, 17_500, 20_000]));
        assert!(is_near(exact_ms(&two, &four), 0.0));
        assert!(is_near(exact_ms(&four, &two), 0.0));
        let doubled: Vec<Nanos> = four.iter().chain(&four).copied().collect();
        assert!(exact_ms(&two, &doubled).is_some_and(|value| value > 0.1));
        // One time against three: 1, 2, 3 from 2: √(2/3).
        assert!(is_near(exact_ms(&times(&[2000]), &times(&[1000, 2000, 3000])), (2f64 / 3.0).sqrt()));
    }

    #[test]
    fn bucket_limits_follow_the_disksim_recipe() {
        let limits = limits_us();
        assert_eq!(limits.len(), 1750);
        assert_eq!(limits[..4], [0, 1, 2, 3]);
        assert_eq!(limits[99..104], [99, 100, 102, 104, 106]);
        assert_eq!(limits[1749], 2_049_165_458);
    }

    #[test]
    fn bucketed_demerit_matches_manual_calculation() {
        // 5 µs falls in the bucket from 5 to 6 µs and 10 µs in that from 10 to 11: each share is 5 µs apart.
        assert!(is_near(bucketed_ms(&times(&[5]), &times(&[10])), 0.005));
        // 100.9 and 101 µs share the bucket from 100 to 102.
        assert_eq!(bucketed_ms(&[Nanos(100_900)], &[Nanos(101_000)]), Some(0.0));
        // Half at 5 and half at 10 µs against all at 5: in the lower half of the shares the first reads 5 + 2 p and the
        // second 5 + p, in the upper 10 + 2 p - 1 and 5 + p. ∫ over [0, ½) of p² is 1/24; over [½, 1) of (4 + p)² it is
        // (125 - 91.125) / 3.
        let bucketed = bucketed_ms(&times(&[5, 10]), &times(&[5])).expect("there are times");
        let expected = (1.0 / 24.0 + (125.0 - 91.125) / 3.0f64).sqrt() / 1000.0;
        assert!((bucketed - expected).abs() < 1e-6, "{bucketed} {expected}");
    }

    #[test]
    fn times_beyond_the_last_bucket_fall_into_it() {
        assert_eq!(bucketed_ms(&[Nanos::from_secs(4000)], &[Nanos::from_secs(9000)]), Some(0.0));
    }

    #[test]
    fn empty_sample_has_no_demerit() {
        assert_eq!(exact_ms(&[], &times(&[1])), None);
        assert_eq!(bucketed_ms(&times(&[1]), &[]), None);
    }
}
