//! Statistics of a source of requests (a job, process or stream) or of a group of them: counts, bytes, response times and rates
//! for each direction, and the depths at which it issued.
//!
//! The classes of times and depths and the half second over which rates are sampled are those that fio prints.
//! *Source:* fio 3.33, `HOWTO` ("Interpreting the output", `bwavgtime`, `iopsavgtime`).

use super::TimeHistogram;
use headstack_model::{Instant, Nanos, Op};

/// Decimal digits to which a source's quantiles are right: as many as fio's.
const DIGITS: u8 = 2;

/// Length of time over which a rate is sampled.
const RATE_WINDOW: Nanos = Nanos(500_000_000);

/// Upper ends of the classes of response times in each of the units ns, µs and ms; beyond the last, the next unit.
const TIME_CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// Counts of response times in classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeClasses {
    /// Below 1 µs: up to 2, 4, 10, 20, 50, 100, 250, 500, 750 and 1,000 ns.
    pub ns: [u64; 10],
    /// Below 1 ms: the same classes in µs.
    pub us: [u64; 10],
    /// The same classes in ms, then up to 2 s, then longer.
    pub ms: [u64; 12],
}

impl TimeClasses {
    #[inline]
    fn add(&mut self, time: Nanos) {
        let class = |value: u64| TIME_CLASSES.iter().position(|end| value <= *end);
        let (us, ms) = (time.0 / 1000, time.0 / 1_000_000);
        if time.0 < 1000 {
            self.ns[class(time.0).unwrap_or(9)] += 1;
        } else if us < 1000 {
            self.us[class(us).unwrap_or(9)] += 1;
        } else {
            self.ms[class(ms).unwrap_or(if ms < 2000 { 10 } else { 11 })] += 1;
        }
    }
}

/// Minimum, maximum, mean and standard deviation of a sequence of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Running {
    /// How many.
    pub count: u64,
    /// The minimum, 0 without values.
    pub min: f64,
    /// The maximum, 0 without values.
    pub max: f64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    spread: f64,
}

impl Running {
    /// Adds `times` equal values. *Source:* Chan, Golub and LeVeque (1979), joining two samples.
    fn add(&mut self, value: f64, times: u64) {
        if times == 0 {
            return;
        }
        (self.min, self.max) = match self.count {
            0 => (value, value),
            _ => (self.min.min(value), self.max.max(value)),
        };
        let (before, new) = (self.count as f64, times as f64);
        let distance = value - self.mean;
        self.count += times;
        let all = self.count as f64;
        self.mean += distance * new / all;
        self.spread += distance * distance * before * new / all;
    }

    /// The mean, 0 without values.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard deviation of the sample, 0 for fewer than two values.
    pub fn std_dev(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.spread / (self.count - 1) as f64).max(0.0).sqrt() }
    }
}

#[derive(Clone, Copy, Debug)]
struct Rates {
    ends: Instant,
    bytes: u64,
    requests: u64,
    kib_s: Running,
    iops: Running,
}

impl Rates {
    fn new(begins: Instant) -> Rates {
        let ends = begins + RATE_WINDOW;
        Rates { ends, bytes: 0, requests: 0, kib_s: Running::default(), iops: Running::default() }
    }

    #[inline]
    fn add(&mut self, now: Instant, bytes: u64) {
        if now >= self.ends {
            self.close(now);
        }
        self.bytes += bytes;
        self.requests += 1;
    }

    /// Closes the window that has passed, and the empty ones after it.
    fn close(&mut self, now: Instant) {
        let a_second = RATE_WINDOW.as_secs();
        self.kib_s.add(self.bytes as f64 / 1024.0 / a_second, 1);
        self.iops.add(self.requests as f64 / a_second, 1);
        let empty = (now - self.ends).0 / RATE_WINDOW.0;
        self.kib_s.add(0.0, empty);
        self.iops.add(0.0, empty);
        self.ends += Nanos((empty + 1) * RATE_WINDOW.0);
        (self.bytes, self.requests) = (0, 0);
    }
}

/// The priority that a request was sent with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority {
    /// Linux's I/O priority class: 1 is real time, which is ATA's high priority, 2 is best effort; 0 is none.
    pub class: u8,
    /// Linux's hint in the priority, as a duration limit's number; 0 is none.
    pub hint: u8,
}

impl Priority {
    /// Linux's class of requests that are not urgent.
    const BEST_EFFORT: u8 = 2;

    /// The priority of a request that is urgent or not, with the number of its duration limit.
    pub fn of(urgent: bool, limit: u8) -> Priority {
        match (urgent, limit) {
            (true, hint) => Priority { class: 1, hint },
            (false, 0) => Priority::default(),
            (false, hint) => Priority { class: Priority::BEST_EFFORT, hint },
        }
    }
}

/// Requests of one source and direction.
#[derive(Clone, Debug)]
pub struct Direction {
    /// Bytes that were transferred.
    pub bytes: u64,
    /// Response times, right to a hundredth.
    pub responses: TimeHistogram,
    /// The same by priority, lowest class first; empty as long as no request has one.
    priorities: Vec<(Priority, TimeHistogram)>,
    /// When the last one completed.
    pub last: Instant,
    rates: Rates,
}

impl Direction {
    fn new(begins: Instant) -> Direction {
        let responses = TimeHistogram::with_digits(DIGITS);
        Direction { bytes: 0, responses, priorities: Vec::new(), last: begins, rates: Rates::new(begins) }
    }

    /// Response times by priority, if there is more than one; like fio, which separates them only then.
    pub fn priorities(&self) -> &[(Priority, TimeHistogram)] {
        if self.priorities.len() > 1 { &self.priorities } else { &[] }
    }

    #[inline]
    fn record(&mut self, response: Nanos, priority: Priority) {
        if priority != Priority::default() || !self.priorities.is_empty() {
            self.record_by_priority(response, priority);
        }
        self.responses.record(response);
    }

    /// Records a response by its priority. Those recorded before the first request with a priority count as without one.
    fn record_by_priority(&mut self, response: Nanos, priority: Priority) {
        if self.priorities.is_empty() && self.responses.count() > 0 {
            self.priorities.push((Priority::default(), self.responses.clone()));
        }
        let at = self.priorities.partition_point(|(other, _)| *other < priority);
        if self.priorities.get(at).is_none_or(|(other, _)| *other != priority) {
            self.priorities.insert(at, (priority, TimeHistogram::with_digits(DIGITS)));
        }
        self.priorities[at].1.record(response);
    }

    /// KiB a second over each half second.
    pub fn kib_s(&self) -> &Running {
        &self.rates.kib_s
    }

    /// Requests a second over each half second.
    pub fn iops(&self) -> &Running {
        &self.rates.iops
    }
}

/// The statistics of one source or a group of them, in constant memory.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SourceStats {
    /// When it issued its first request that counts.
    pub begins: Instant,
    /// Its reads; `None` if there were none.
    pub reads: Option<Box<Direction>>,
    pub writes: Option<Box<Direction>>,
    pub flushes: Option<Box<Direction>>,
    /// Response times of its reads and writes in classes.
    pub times: TimeClasses,
    /// Counts of requests by the source's outstanding requests, this one included: up to 1, 2, 4, 8, 16, 32, and more.
    pub depths: [u64; 7],
}

impl SourceStats {
    pub(super) fn new(begins: Instant) -> SourceStats {
        SourceStats { begins, ..SourceStats::default() }
    }

    /// Counts a request issued by one of its sources, which then has `depth` requests outstanding.
    #[inline]
    pub(super) fn issued(&mut self, depth: u32) {
        let class = u32::BITS - depth.saturating_sub(1).leading_zeros();
        self.depths[(class as usize).min(6)] += 1;
    }

    #[inline]
    pub(super) fn completed(
        &mut self,
        now: Instant,
        op: Op,
        bytes: u64,
        response: Nanos,
        priority: Priority,
    ) {
        let begins = self.begins;
        let direction = match op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Flush => &mut self.flushes,
        };
        let direction = direction.get_or_insert_with(|| Box::new(Direction::new(begins)));
        direction.bytes += bytes;
        direction.record(response, priority);
        direction.last = direction.last.max(now);
        direction.rates.add(now, bytes);
        if op != Op::Flush {
            self.times.add(response);
        }
    }

    /// When the writes were over: the last write, or the last flush after it, as fio counts `end_fsync` and `fsync` as part of the job.
    pub fn writes_end(&self) -> Option<Instant> {
        let last = |direction: &Option<Box<Direction>>| direction.as_ref().map(|direction| direction.last);
        Some(last(&self.writes)?.max(last(&self.flushes).unwrap_or(self.begins)))
    }

    /// Reads and writes that completed.
    pub fn count(&self) -> u64 {
        [&self.reads, &self.writes].into_iter().flatten().map(|direction| direction.responses.count()).sum()
    }

    /// When the last request completed, flushes included; without a completion, `begins`.
    pub fn last(&self) -> Instant {
        let all = [&self.reads, &self.writes, &self.flushes];
        all.into_iter().flatten().map(|direction| direction.last).fold(self.begins, Instant::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_fall_into_fio_latency_classes() {
        let mut classes = TimeClasses::default();
        for time in [1, 2, 3, 999, 1000, 2_999, 999_999, 1_000_000, 5_000_000, 1_500_000_000, 3_000_000_000] {
            classes.add(Nanos(time));
        }
        assert_eq!(classes.ns, [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(classes.us, [2, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(classes.ms, [1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn rate_samples_include_idle_half_seconds() {
        let mut stats = SourceStats::new(Instant::ZERO);
        let response = Nanos::from_ms(1.0);
        // Windows: 2 requests, 1, none, none, then one that is still open.
        for ms in [100.0, 200.0, 700.0, 2100.0] {
            stats.completed(Instant::from_ms(ms), Op::Read, 1024, response, Priority::default());
        }
        let reads = stats.reads.as_ref().expect("there were reads");
        let (iops, rate) = (reads.iops(), reads.kib_s());
        assert_eq!((iops.count, iops.min, iops.max, iops.mean()), (4, 0.0, 4.0, 1.5));
        assert_eq!((rate.min, rate.max, rate.mean()), (0.0, 4.0, 1.5));
        assert!((iops.std_dev() - (11.0f64 / 3.0).sqrt()).abs() < 1e-12, "{}", iops.std_dev());
    }

    #[test]
    fn responses_are_split_by_priority_once_one_is_set() {
        let mut stats = SourceStats::new(Instant::ZERO);
        let high = Priority::of(true, 0);
        for (ms, priority) in
            [(9.0, Priority::of(false, 0)), (1.0, high), (8.0, Priority::of(false, 0)), (2.0, high)]
        {
            stats.completed(Instant::from_ms(ms), Op::Read, 512, Nanos::from_ms(ms), priority);
        }
        stats.completed(Instant::from_ms(9.0), Op::Write, 512, Nanos::from_ms(9.0), Priority::of(false, 0));
        let reads = stats.reads.as_ref().expect("there were reads").priorities();
        let found: Vec<(Priority, u64, f64)> =
            reads.iter().map(|(priority, times)| (*priority, times.count(), times.mean_ms())).collect();
        assert_eq!(found, [(Priority::default(), 2, 8.5), (high, 2, 1.5)]);
        assert!(stats.writes.expect("there was a write").priorities().is_empty(), "all writes are alike");
    }

    #[test]
    fn queue_depth_classes_double_in_width() {
        let mut stats = SourceStats::new(Instant::ZERO);
        (1..=40).for_each(|depth| stats.issued(depth));
        assert_eq!(stats.depths, [1, 1, 2, 4, 8, 16, 8]);
    }

    proptest! {
        #[test]
        fn running_mean_and_deviation_match_direct_calculation(values in prop::collection::vec((0.0..1e6f64, 1..5u64), 1..50)) {
            let mut running = Running::default();
            values.iter().for_each(|(value, times)| running.add(*value, *times));
            let all: Vec<f64> =
                values.iter().flat_map(|(value, times)| vec![*value; *times as usize]).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let spread = all.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            let deviation = if all.len() > 1 { (spread / (all.len() - 1) as f64).sqrt() } else { 0.0 };
            prop_assert!((running.mean() - mean).abs() < 1e-6);
            prop_assert!((running.std_dev() - deviation).abs() < 1e-5);
        }
    }
}
