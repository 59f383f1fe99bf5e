//! Batch means: the confidence interval of the mean of a run whose requests depend on each other.
//!
//! The rule is the same for every run. Requests are collected in order of completion into at most 1,024 batches of equal number,
//! which doubles when they are full. The MSER rule sets the warm-up: it leaves out the first batches, at most half of them, such
//! that the squared standard error of the mean response of the rest is minimal. The rest is joined to 20 batches of equal number
//! (a remainder is left out at the start). The interval is Student's at 95 % with 19 degrees of freedom, of the ratio estimator.
//!
//! *Source:* K. P. White, "An effective truncation heuristic for bias reduction in simulation output" (1997); A. M. Law,
//! "Simulation Modeling and Analysis", batch means and ratio estimator.

use headstack_model::{Instant, Nanos};

const MOST: usize = 1024;

/// Batches of which an interval is computed.
pub const BATCHES: usize = 20;

/// Student's t at 97.5 % with 19 degrees of freedom.
const STUDENT: f64 = 2.093_024_054_408_263;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Batch {
    requests: u64,
    response_ns: u128,
    bytes: u64,
    end: Instant,
}

impl Batch {
    fn join(&mut self, next: &Batch) {
        self.requests += next.requests;
        self.response_ns += next.response_ns;
        self.bytes += next.bytes;
        self.end = next.end;
    }
}

/// Batches of a run, in constant memory.
#[derive(Clone, Debug)]
pub struct Batches {
    size: u64,
    full: Vec<Batch>,
    open: Batch,
}

/// A mean and its confidence interval at 95 %, as a half width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of its confidence interval.
    pub half_width: f64,
}

impl Interval {
    /// Whether the difference to another run's mean is larger than chance explains, with the two taken as independent.
    pub fn differs_from(&self, other: &Interval) -> bool {
        let both = (self.half_width * self.half_width + other.half_width * other.half_width).sqrt();
        (self.mean - other.mean).abs() > both
    }
}

/// The means of a run's batches after the warm-up, with their intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence {
    /// Requests of the warm-up, which the means leave out.
    pub warm_up_requests: u64,
    /// When the warm-up was over.
    pub warm_up: Instant,
    /// Requests in each of the [`BATCHES`].
    pub batch_requests: u64,
    /// Mean response, in milliseconds.
    pub response_ms: Interval,
    /// Requests a second.
    pub iops: Interval,
    /// Millions of bytes a second.
    pub mb_s: Interval,
    /// Correlation of neighbouring batches' mean response: far from 0, the batches are too short and the interval too narrow.
    pub correlation: f64,
}

impl Default for Batches {
    fn default() -> Batches {
        Batches::new()
    }
}

impl Batches {
    /// No batches yet.
    pub fn new() -> Batches {
        Batches { size: 1, full: Vec::with_capacity(MOST), open: Batch::default() }
    }

    /// Adds a request that completed at `completed`, which is no earlier than the one before.
    #[inline]
    pub fn record(&mut self, completed: Instant, response: Nanos, bytes: u64) {
        let open = &mut self.open;
        open.requests += 1;
        open.response_ns += u128::from(response.0);
        open.bytes += bytes;
        open.end = open.end.max(completed);
        if open.requests == self.size {
            self.full.push(self.open);
            self.open = Batch { end: self.open.end, ..Batch::default() };
            if self.full.len() == MOST {
                self.halve();
            }
        }
    }

    fn halve(&mut self) {
        for index in 0..MOST / 2 {
            let mut joined = self.full[2 * index];
            joined.join(&self.full[2 * index + 1]);
            self.full[index] = joined;
        }
        self.full.truncate(MOST / 2);
        self.size *= 2;
    }

    /// Number of batches in the warm-up, by the MSER rule.
    fn warm_up(&self) -> usize {
        let means: Vec<f64> =
            self.full.iter().map(|batch| batch.response_ns as f64 / batch.requests as f64).collect();
        let (mut sum, mut squares, mut best) = (0.0, 0.0, (f64::INFINITY, 0));
        // From the end on, so that one pass covers every length of the warm-up.
        let middle = means.last().copied().unwrap_or(0.0);
        for (index, mean) in means.iter().enumerate().rev() {
            let offset = mean - middle;
            sum += offset;
            squares += offset * offset;
            let left = (means.len() - index) as f64;
            let error = (squares - sum * sum / left).max(0.0) / (left * left);
            if index <= means.len() / 2 && error <= best.0 {
                best = (error, index);
            }
        }
        best.1
    }

    /// The means after the warm-up with their intervals, of a run that began at `begins`; `None` for too few requests.
    pub fn confidence(&self, begins: Instant) -> Option<Confidence> {
        let mut dropped = self.warm_up();
        let each = (self.full.len() - dropped) / BATCHES;
        if each == 0 {
            return None;
        }
        dropped = self.full.len() - each * BATCHES;
        let warm_up = if dropped == 0 { begins } else { self.full[dropped - 1].end };
        let mut groups = [Batch::default(); BATCHES];
        for (group, batches) in groups.iter_mut().zip(self.full[dropped..].chunks_exact(each)) {
            batches.iter().for_each(|batch| group.join(batch));
        }
        let mut from = warm_up;
        let spans = groups.map(|group| group.end.since(std::mem::replace(&mut from, group.end)).as_secs());
        let requests = groups.map(|group| group.requests as f64);
        let responses = groups.map(|group| group.response_ns as f64 / 1e6);
        Some(Confidence {
            warm_up_requests: dropped as u64 * self.size,
            warm_up,
            batch_requests: each as u64 * self.size,
            response_ms: ratio(&responses, &requests),
            iops: ratio(&requests, &spans),
            mb_s: ratio(&groups.map(|group| group.bytes as f64 / 1e6), &spans),
            correlation: correlation(&responses),
        })
    }
}

/// The ratio of two sums over the batches and its interval.
fn ratio(above: &[f64; BATCHES], below: &[f64; BATCHES]) -> Interval {
    let (sum, by) = (above.iter().sum::<f64>(), below.iter().sum::<f64>());
    if by <= 0.0 {
        return Interval { mean: 0.0, half_width: 0.0 };
    }
    let mean = sum / by;
    let squares: f64 = above.iter().zip(below).map(|(a, b)| (a - mean * b).powi(2)).sum();
    let count = BATCHES as f64;
    let half_width = STUDENT * (squares / (count * (count - 1.0))).sqrt() / (by / count);
    Interval { mean, half_width }
}

/// Correlation of each value with the one before; 0 where all are alike.
fn correlation(values: &[f64; BATCHES]) -> f64 {
    let mean = values.iter().sum::<f64>() / BATCHES as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// Requests a millisecond apart with these response times.
    fn of(responses: impl IntoIterator<Item = f64>) -> Batches {
        let mut batches = Batches::new();
        for (index, response) in responses.into_iter().enumerate() {
            batches.record(Instant::from_ms(index as f64 + 1.0), Nanos::from_ms(response), 4096);
        }
        batches
    }

    /// Independent times, uniform from 5 to 15 ms.
    fn uniform(seed: u64) -> impl Iterator<Item = f64> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        std::iter::from_fn(move || Some(random.random_range(5.0..15.0)))
    }

    #[test]
    fn confidence_interval_covers_the_mean_in_95_percent_of_runs() {
        let runs = 400;
        let held = (0..runs)
            .filter(|seed| {
                let found =
                    of(uniform(*seed).take(4000)).confidence(Instant::ZERO).expect("there are enough");
                (found.response_ms.mean - 10.0).abs() <= found.response_ms.half_width
            })
            .count();
        // 380 are expected; the standard deviation is 4.4, and the warm-up rule costs a little.
        assert!((360..=395).contains(&held), "{held} of {runs}");
    }

    #[test]
    fn interval_width_follows_the_standard_deviation() {
        let found = of(uniform(1).take(100_000)).confidence(Instant::ZERO).expect("there are enough");
        let expected = 1.96 * 10.0 / 12f64.sqrt() / (found.batch_requests as f64 * BATCHES as f64).sqrt();
        assert!((0.5..2.0).contains(&(found.response_ms.half_width / expected)), "{found:?}");
        assert!((found.iops.mean - 1000.0).abs() < 1e-6 && found.iops.half_width < 1e-6, "{found:?}");
        assert!((found.mb_s.mean - 4.096).abs() < 1e-9, "{found:?}");
        assert!(found.correlation.abs() < 0.6, "{found:?}");
    }

    #[test]
    fn warm_up_is_excluded_from_the_mean() {
        let slow = std::iter::repeat_n(500.0, 3000);
        let found =
            of(slow.chain(uniform(2).take(27_000))).confidence(Instant::ZERO).expect("there are enough");
        assert!(found.warm_up_requests >= 3000, "{found:?}");
        assert!((found.response_ms.mean - 10.0).abs() < 0.3, "{found:?}");
        assert!(found.warm_up >= Instant::from_ms(3000.0));
    }

    #[test]
    fn too_few_requests_give_no_interval() {
        assert_eq!(of(uniform(3).take(19)).confidence(Instant::ZERO), None);
        assert_eq!(Batches::new().confidence(Instant::ZERO), None);
        assert!(of(uniform(3).take(60)).confidence(Instant::ZERO).is_some());
    }

    #[test]
    fn batch_count_stays_bounded_without_losing_requests() {
        let batches = of((0..1_000_000).map(|_| 1.0));
        assert!(batches.full.len() < MOST && batches.full.capacity() == MOST);
        let held: u64 = batches.full.iter().map(|batch| batch.requests).sum();
        assert_eq!(held + batches.open.requests, 1_000_000);
        assert!(batches.full.iter().all(|batch| batch.requests == batches.size));
    }

    #[test]
    fn means_differ_only_beyond_their_intervals() {
        let of = |mean: f64, half_width: f64| Interval { mean, half_width };
        assert!(of(10.0, 1.0).differs_from(&of(12.0, 1.0)));
        assert!(!of(10.0, 1.0).differs_from(&of(11.0, 1.0)));
    }
}
