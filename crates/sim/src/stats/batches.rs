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

/// Number of batches from which an interval is computed.
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

/// Differences between two runs of the same requests, batch by batch: this run less the other one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedDifferences {
    /// Mean response, in milliseconds.
    pub response_ms: Interval,
    /// Time per request, in seconds: the reciprocal of the rate.
    pub s_per_request: Interval,
    /// Time per million bytes, in seconds; none where a batch has no bytes.
    pub s_per_mb: Option<Interval>,
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
    /// Correlation of the mean responses of neighbouring batches: far from 0, the batches are too short and the interval too narrow.
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

    /// The same run in at most this many batches, for programs that keep many runs.
    pub fn joined(mut self, most: usize) -> Batches {
        while self.full.len() > most.max(1) {
            self = self.with_size(2 * self.size);
        }
        self.full.shrink_to_fit();
        self
    }

    /// The same run in batches of `size` requests, a multiple of the size that they have.
    fn with_size(&self, size: u64) -> Batches {
        let join = |batches: &[Batch]| {
            let mut joined = batches[0];
            batches[1..].iter().for_each(|batch| joined.join(batch));
            joined
        };
        let full = self.full.chunks_exact((size / self.size) as usize).map(join).collect();
        Batches { size, full, open: self.open }
    }

    /// Compares with a run of the same requests (common random numbers), batch by batch: chance has the same effect on both, so that the
    /// differences vary less than the runs. The longer run counts up to the length of the shorter one, and both from the later end of their
    /// warm-ups on. `None` for too few requests.
    pub fn paired_differences(&self, other: &Batches) -> Option<PairedDifferences> {
        let size = self.size.max(other.size);
        let warm_up = [self, other].map(|run| run.warm_up() as u64 * run.size).into_iter().max()?;
        let runs = [self.with_size(size), other.with_size(size)].map(|run| run.full);
        let length = runs[0].len().min(runs[1].len());
        let left_out = (warm_up.div_ceil(size) as usize).min(length / 2);
        let each = (length - left_out) / BATCHES;
        if each == 0 {
            return None;
        }
        let first = length - each * BATCHES;
        let figures = runs.map(|batches| {
            let end_before = |index: usize| match first + index * each {
                0 => Instant::ZERO,
                index => batches[index - 1].end,
            };
            std::array::from_fn::<_, BATCHES, _>(|index| {
                let mut group = Batch::default();
                let from = first + index * each;
                batches[from..from + each].iter().for_each(|batch| group.join(batch));
                (group, group.end.since(end_before(index)).as_secs())
            })
        });
        let difference = |figure: &dyn Fn(&(Batch, f64)) -> f64| {
            let pairs = figures[0].iter().zip(&figures[1]);
            Interval::of_values(&pairs.map(|(own, other)| figure(own) - figure(other)).collect::<Vec<_>>())
        };
        let has_bytes = figures.iter().flatten().all(|(group, _)| group.bytes > 0);
        Some(PairedDifferences {
            response_ms: difference(&|(group, _)| group.response_ns as f64 / 1e6 / group.requests as f64)?,
            s_per_request: difference(&|(group, span)| span / group.requests as f64)?,
            s_per_mb: difference(&|(group, span)| 1e6 * span / group.bytes as f64).filter(|_| has_bytes),
        })
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

/// Correlation of each value with the one before; 0 where all are equal.
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
    fn runs_of_the_same_requests_differ_by_less_than_either_varies() {
        let slower = of(uniform(4).take(4000).map(|response| response + 0.1));
        let base = of(uniform(4).take(4000));
        let found = slower.paired_differences(&base).expect("there are enough");
        assert!((found.response_ms.mean - 0.1).abs() < 1e-6, "{found:?}");
        assert!(found.response_ms.half_width < 1e-6 && found.response_ms.excludes_zero());
        let alone = base.confidence(Instant::ZERO).expect("there are enough").response_ms;
        assert!(alone.half_width > 0.05, "judged alone, a difference of 0.1 ms is chance: {alone:?}");
        assert!(!found.s_per_request.excludes_zero(), "both complete a request a millisecond: {found:?}");
    }

    #[test]
    fn paired_differences_of_equal_systems_leave_out_zero_as_rarely_as_the_confidence_says() {
        let runs = 400u64;
        let wrong = (0..runs)
            .filter(|seed| {
                let (own, other) = (of(uniform(2 * seed).take(2000)), of(uniform(2 * seed + 1).take(2000)));
                own.paired_differences(&other).expect("there are enough").response_ms.excludes_zero()
            })
            .count();
        // 20 are expected, with a standard deviation of 4.4; three of these above.
        assert!(wrong <= 33, "{wrong} of {runs}");
    }

    #[test]
    fn longer_run_is_compared_up_to_the_length_of_the_shorter_one() {
        // After 2,000 requests the long run gets slow, which the short one did not reach.
        let short = of(uniform(5).take(2000));
        let long = of(uniform(5).take(2000).chain(std::iter::repeat_n(90.0, 3000)));
        let found = long.paired_differences(&short).expect("there are enough");
        assert!(found.response_ms.mean.abs() < 1e-9, "{found:?}");
        assert_eq!(of(uniform(6).take(19)).paired_differences(&short), None);
        let few = long.clone().joined(200);
        assert!(few.full.len() <= 200 && few.size > long.size);
        let again = few.paired_differences(&short).expect("there are enough");
        assert!(again.response_ms.mean.abs() < 1e-9, "{again:?}");
    }
}
