//! Statistics of a trace: counts, sizes, gaps, sequentiality, footprint, reuse, queue depth, hottest regions.
//!
//! Every figure takes constant memory. Counts, sums, means, minima and maxima, the queue depth and the counts of
//! regions are exact; quantiles are exact to a thousandth; footprint, reuse and Zipf exponent are exact up to 65,536
//! blocks of 4 KiB and from a sample beyond ([`Locality::sample_share`]).

mod bins;
mod depth;
mod reuse;
mod runs;
mod sample;
mod summary;

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use headstack_model::{Instant, Nanos};

use super::{Header, Kind, Record};
use depth::Depth;
use reuse::Reuse;
use runs::Runs;

pub use bins::Bins;
pub use sample::{Point, Sample};
pub use summary::{
    DeviceCount, Interval, KindCount, Locality, Quantiles, QueueDepth, Region, Sequentiality, Summary,
};

/// Devices whose regions are counted; requests to further ones have none.
const REGION_DEVICES: usize = 64;
/// Devices counted separately; all further ones count as one.
const DEVICES: usize = 65_536;
const REGION: u64 = 1 << 20;

/// Collects statistics of a trace, record by record.
#[derive(Debug)]
pub struct Stat {
    first: Option<Instant>,
    last: Instant,
    greatest: Instant,
    backwards: u64,
    kinds: [(u64, u64); Kind::ALL.len()],
    devices: BTreeMap<u32, (u64, u64)>,
    sizes: [Spread; 3],
    gaps: Spread,
    responses: Spread,
    runs: Runs,
    reuse: Reuse,
    depth: Depth,
    regions: BTreeMap<u32, Bins>,
    requests_over_time: Bins,
    bytes_over_time: Bins,
    reach: u64,
}

impl Default for Stat {
    fn default() -> Stat {
        Stat::new()
    }
}

impl Stat {
    /// Statistics without records.
    pub fn new() -> Stat {
        Stat {
            first: None,
            last: Instant::ZERO,
            greatest: Instant::ZERO,
            backwards: 0,
            kinds: [(0, 0); Kind::ALL.len()],
            devices: BTreeMap::new(),
            sizes: std::array::from_fn(|_| Spread::new()),
            gaps: Spread::new(),
            responses: Spread::new(),
            runs: Runs::new(),
            reuse: Reuse::new(),
            depth: Depth::new(),
            regions: BTreeMap::new(),
            requests_over_time: Bins::new(depth::TIME_BIN),
            bytes_over_time: Bins::new(depth::TIME_BIN),
            reach: 0,
        }
    }

    /// Adds a record.
    pub fn observe(&mut self, record: &Record) {
        let time = self.observe_time(record.time);
        let (requests, bytes) = &mut self.kinds[record.kind as usize];
        *requests += 1;
        *bytes += record.bytes;
        let full = self.devices.len() >= DEVICES && !self.devices.contains_key(&record.device);
        let device = self.devices.entry(if full { u32::MAX } else { record.device }).or_default();
        device.0 += 1;
        device.1 += record.bytes;
        self.requests_over_time.add(time.0, 1.0);
        if let Some(response) = record.response {
            self.responses.count(response.0);
            self.depth.observe(time, response);
        }
        if matches!(record.kind, Kind::Read | Kind::Write) {
            self.observe_data(record, time);
        }
    }

    /// The time on a clock that starts at the first record; counts the gap since the one before.
    fn observe_time(&mut self, time: Instant) -> Instant {
        match self.first {
            None => self.first = Some(time),
            Some(_) => self.gaps.count(time.since(self.last).0),
        }
        self.backwards += u64::from(time < self.last);
        self.last = time;
        self.greatest = self.greatest.max(time);
        Instant::ZERO + time.since(self.first.unwrap_or(time))
    }

    fn observe_data(&mut self, record: &Record, time: Instant) {
        self.sizes[0].count(record.bytes);
        self.sizes[1 + usize::from(record.kind == Kind::Write)].count(record.bytes);
        self.bytes_over_time.add(time.0, record.bytes as f64);
        self.runs.observe(record);
        self.reuse.observe(record.device, record.offset, record.bytes);
        self.reach = self.reach.max(record.end());
        let known = self.regions.len() < REGION_DEVICES || self.regions.contains_key(&record.device);
        if known {
            let regions = self.regions.entry(record.device).or_insert_with(|| Bins::new(REGION));
            regions.add(record.offset, 1.0);
        }
    }

    /// The statistics of a trace with this header.
    pub fn summary(mut self, header: &Header) -> Summary {
        self.depth.finish();
        summary::summarise(&self, header)
    }

    /// Sizes of reads and writes, as quantiles from 0 to 1.
    pub fn size_at(&self, kind: Kind, share: f64) -> u64 {
        quantile(&self.sizes[1 + usize::from(kind == Kind::Write)].counts, share)
    }

    /// Gaps between issues, as quantiles from 0 to 1.
    pub fn gap_at(&self, share: f64) -> Nanos {
        Nanos(quantile(&self.gaps.counts, share))
    }

    /// Lengths of sequential runs, as quantiles from 0 to 1.
    pub fn runs(&self) -> impl Fn(f64) -> u64 {
        let lengths = self.runs.lengths();
        move |share| quantile(&lengths, share)
    }

    /// Requests to each region of a device, in the order of devices' numbers.
    pub fn regions(&self) -> impl Iterator<Item = (u32, &Bins)> {
        self.regions.iter().map(|(device, bins)| (*device, bins))
    }
}

#[derive(Clone, Debug)]
struct Spread {
    counts: Histogram<u64>,
    sum: u128,
    most: u64,
    least: u64,
}

impl Spread {
    fn new() -> Spread {
        Spread { counts: histogram(), sum: 0, most: 0, least: u64::MAX }
    }

    fn count(&mut self, value: u64) {
        count(&mut self.counts, value);
        self.sum += u128::from(value);
        self.most = self.most.max(value);
        self.least = self.least.min(value);
    }
}

/// A histogram accurate to three digits, which grows as needed.
fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are allowed")
}

/// The smallest value that a share of all values does not exceed, within the histogram's accuracy.
fn quantile(histogram: &Histogram<u64>, share: f64) -> u64 {
    histogram.lowest_equivalent(histogram.value_at_quantile(share))
}

fn count(histogram: &mut Histogram<u64>, value: u64) {
    histogram.record(value).expect("it grows as it must");
}

#[cfg(test)]
mod tests;
