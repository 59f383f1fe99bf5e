//! A queue of constant length: random 4 KiB reads, under each order.
//!
//! On a queue of length Q the order chooses among Q requests. Each chosen request is replaced at once: Q requests wait while one is served,
//! so Q + 1 are outstanding. This is the set-up of the studies, in which the host orders the requests and the drive takes one command at a
//! time.

use crate::runs;
use crate::study::{Setting, StudyError};
use headstack_model::{DriveSpec, Instant, Nanos};
use headstack_policy::order;
use headstack_sim::stats::Batches;
use headstack_sim::{DeviceOptions, Finished};
use headstack_workload::{Closed, Pattern, Region, Shape};

pub(super) const LENGTHS: [u32; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/// The queue lengths of the short form.
const QUICK_LENGTHS: [u32; 3] = [1, 10, 100];

/// The orders that the publications name, by our names and theirs.
pub(super) const PUBLISHED: [(&str, &str); 7] = [
    ("fcfs", "FCFS"),
    ("sstf", "SSF"),
    ("look", "SCAN"),
    ("c-look-cylinder", "C-SCAN"),
    ("sptf", "STF"),
    ("gstf", "GSTF"),
    ("wstf", "WSTF"),
];

const SECTORS: u32 = 8;

/// Measured requests of a run.
const COUNT: u64 = 100_000;

/// Block of requests from which the longest response is taken. The maximum grows with the length of a run, and the check's runs are about
/// this long.
///
/// On a queue of 1 all orders are the same. The check's seven mean times for it have a standard deviation of 0.08 ms, and the time of a
/// single I/O one of 7.4 ms. They are therefore means over (7.4 / 0.08)², 9 thousand, requests.
const BLOCK: u64 = 10_000;

/// A run: an order on a queue.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The order's name in the list.
    pub order: &'static str,
    /// Its form, with parameters.
    pub form: String,
    /// The number of requests among which it chooses.
    pub length: u32,
}

/// Times of a case.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderTimes {
    /// Time from one completion to the next.
    pub mean_io_ms: f64,
    /// Half-width of its 95 % confidence interval.
    pub half_width_ms: f64,
    /// Share of the time in which data pass under the head.
    pub utilisation: f64,
    /// Means per request.
    pub seek_ms: f64,
    pub rotation_ms: f64,
    pub response_ms: f64,
    /// Longest response in 10,000 requests, averaged over such blocks.
    pub longest_ms: f64,
}

pub(super) struct Grid(Vec<(Case, OrderTimes)>);

impl Grid {
    pub(super) fn run(setting: &Setting<'_>, spec: &DriveSpec, cases: Vec<Case>) -> Result<Grid, StudyError> {
        let count = setting.length.pick(COUNT, COUNT / 5);
        let outcomes = setting.map(&cases, |case| case.run(spec, count))?;
        Ok(Grid(cases.into_iter().zip(outcomes).collect()))
    }

    /// The times of an order on a queue of this length, if it was run.
    pub(super) fn get(&self, order: &str, length: u32) -> Option<&OrderTimes> {
        let found = self.0.iter().find(|(case, _)| case.order == order && case.length == length);
        found.map(|(_, outcome)| outcome)
    }

    /// How much faster an order is than another on a queue of this length.
    pub(super) fn gain(&self, order: &str, over: &str, length: u32) -> Option<f64> {
        Some(self.get(over, length)?.mean_io_ms / self.get(order, length)?.mean_io_ms)
    }

    pub(super) fn cases(&self) -> impl Iterator<Item = &(Case, OrderTimes)> {
        self.0.iter()
    }
}

pub(super) fn lengths(setting: &Setting<'_>) -> &'static [u32] {
    setting.length.pick(&LENGTHS[..], &QUICK_LENGTHS[..])
}

/// Every order at every queue length; in the short form, the orders that the publications name. `weight_ms` returns the longest response in
/// ms that WSTF allows on a queue of a given length.
pub(super) fn every(setting: &Setting<'_>, weight_ms: fn(u32) -> u32) -> Vec<Case> {
    let named = |order: &str| PUBLISHED.iter().any(|(known, _)| *known == order);
    let orders = order::all().iter().filter(|entry| setting.length.pick(true, named(entry.name)));
    let cases = orders.flat_map(|entry| {
        lengths(setting).iter().map(|length| {
            let form = match entry.name {
                "wstf" => format!("wstf({})", weight_ms(*length)),
                name => name.to_string(),
            };
            Case { order: entry.name, form, length: *length }
        })
    });
    cases.collect()
}

impl Case {
    /// Runs the case until `count` requests were measured, in addition to those of the warm-up.
    fn run(&self, spec: &DriveSpec, count: u64) -> Result<OrderTimes, StudyError> {
        let outstanding = self.length + 1;
        let options = DeviceOptions { seed: 1, depth: Some(outstanding), order: Some(self.form.clone()) };
        let region = Region::whole(spec.capacity_sectors);
        let shape =
            Shape { region, pattern: Pattern::Random, sectors: SECTORS, alignment: SECTORS, read_share: 1.0 };
        let warm_up = 1000 + 10 * u64::from(self.length);
        // The queue must not shrink before the last measured request has completed.
        let mut load = Closed::new(shape, outstanding, warm_up + count + u64::from(outstanding), 1)?;
        let mut sums = Sums::new(warm_up, count);
        runs::run_load(spec, &options, &mut load, |finished| sums.record(finished))?;
        Ok(sums.outcome())
    }
}

#[derive(Default)]
struct Sums {
    warm_up: u64,
    count: u64,
    met: u64,
    begin: Instant,
    end: Instant,
    seek: Nanos,
    rotation: Nanos,
    media: Nanos,
    response: Nanos,
    /// The longest response of the current block, and the sum of those of earlier blocks.
    longest: Nanos,
    longest_sum: Nanos,
    batches: Batches,
}

impl Sums {
    fn new(warm_up: u64, count: u64) -> Sums {
        Sums { warm_up, count, ..Sums::default() }
    }

    fn record(&mut self, finished: &Finished) {
        let completion = &finished.completion;
        self.met += 1;
        if self.met <= self.warm_up {
            self.begin = completion.completed;
            return;
        }
        if self.met > self.warm_up + self.count {
            return;
        }
        self.end = completion.completed;
        self.seek += completion.parts.seek;
        self.rotation += completion.parts.rotational_latency;
        self.media += completion.parts.media;
        let response = completion.response();
        self.response += response;
        self.longest = self.longest.max(response);
        if (self.met - self.warm_up).is_multiple_of(BLOCK) {
            self.longest_sum += std::mem::take(&mut self.longest);
        }
        self.batches.record(completion.completed, response, 0);
    }

    fn outcome(&self) -> OrderTimes {
        let time = self.end - self.begin;
        let mean = |sum: Nanos| sum.as_ms() / self.count as f64;
        let chance =
            self.batches.confidence(self.begin).map_or(0.0, |found| found.iops.half_width / found.iops.mean);
        OrderTimes {
            mean_io_ms: mean(time),
            half_width_ms: mean(time) * chance,
            utilisation: self.media.as_ms() / time.as_ms(),
            seek_ms: mean(self.seek),
            rotation_ms: mean(self.rotation),
            response_ms: mean(self.response),
            longest_ms: self.longest_sum.as_ms() / (self.count / BLOCK) as f64,
        }
    }
}
