//! The printed figures of a trace.

use headstack_model::Instant;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Spread, Stat};
use crate::trace::{Header, Kind};

const LISTED: usize = 10;
const INTERVALS: usize = 10;
const FINE_INTERVALS: usize = 200;

/// The statistics of a trace.
///
/// *Units:* at the end of each name.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Summary {
    pub requests: u64,
    /// From the first to the last request.
    pub duration_s: f64,
    pub requests_per_s: f64,
    /// Millions of bytes read and written a second.
    pub mb_per_s: f64,
    /// Requests issued before the previous one in the trace.
    pub out_of_order: u64,
    pub kinds: Vec<KindCount>,
    pub devices: usize,
    /// Those with most requests.
    pub busiest_devices: Vec<DeviceCount>,
    /// Sizes of reads and writes together.
    pub size_bytes: Option<Quantiles>,
    pub read_size_bytes: Option<Quantiles>,
    pub write_size_bytes: Option<Quantiles>,
    /// From one issue to the next.
    pub gap_us: Option<Quantiles>,
    /// Response times, where the trace knows them.
    pub response_ms: Option<Quantiles>,
    pub sequentiality: Sequentiality,
    #[serde(flatten)]
    pub locality: Locality,
    /// Requests outstanding, where response times are known.
    pub queue_depth: Option<QueueDepth>,
    /// The regions with most requests.
    pub hottest_regions: Vec<Region>,
    /// The trace's time in ten parts.
    pub over_time: Vec<Interval>,
    /// The trace's time in up to two hundred parts.
    #[serde(skip)]
    pub fine: Vec<Interval>,
}

/// How much of the devices is accessed, and how often.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Locality {
    /// Distinct blocks of 4 KiB, in bytes.
    pub footprint_bytes: f64,
    /// The end of the last byte read or written.
    pub reach_bytes: u64,
    /// The share of accesses to blocks of 4 KiB that had been accessed before.
    pub reused_share: Option<f64>,
    /// The exponent of Zipf's law, fitted.
    pub zipf_exponent: Option<f64>,
    /// The share of blocks from which footprint, reuse and exponent are computed; 1 where they are exact.
    pub sample_share: f64,
}

/// Number of requests of a kind.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct KindCount {
    pub kind: &'static str,
    pub requests: u64,
    pub share: f64,
    pub bytes: u64,
}

/// Number of requests to a device.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DeviceCount {
    /// The trace's name of it.
    pub device: String,
    pub requests: u64,
    pub bytes: u64,
}

/// A distribution in a few numbers.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Quantiles {
    pub mean: f64,
    pub min: f64,
    pub p10: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

/// The share of requests that continue others.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Sequentiality {
    /// The share that begin where the previous one on their device ended.
    pub share: f64,
    /// The share that begin where any of the previous 32 ended.
    pub stream_share: f64,
    /// Lengths of runs of the first kind.
    pub run_requests: Option<Quantiles>,
}

/// Requests outstanding.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct QueueDepth {
    pub mean: f64,
    /// Mean over the time in which any is outstanding.
    pub mean_while_busy: f64,
    /// The share of that time.
    pub busy_share: f64,
    pub max: usize,
}

/// A region of a device.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Region {
    /// The trace's name of the device.
    pub device: String,
    pub offset_bytes: u64,
    pub bytes: u64,
    /// Reads and writes that begin in it.
    pub requests: u64,
    pub share: f64,
}

/// A part of the trace's time.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Interval {
    /// Start, since the first request.
    pub from_s: f64,
    /// End, since the first request.
    pub to_s: f64,
    pub requests: u64,
    /// Millions of bytes read and written a second.
    pub mb_per_s: f64,
    /// Mean number outstanding, where response times are known.
    pub queue_depth: Option<f64>,
}

pub(super) fn summarise(stat: &Stat, header: &Header) -> Summary {
    let requests: u64 = stat.kinds.iter().map(|(requests, _)| requests).sum();
    let duration_s = stat.greatest.since(stat.first.unwrap_or_default()).as_secs();
    let data = stat.sizes[0].sum as f64;
    let (share, stream_share) = stat.runs.shares();
    let lengths = stat.runs.lengths();
    let run_requests = (!lengths.is_empty()).then(|| of_histogram(&lengths, 1.0, lengths.mean()));
    Summary {
        requests,
        duration_s,
        requests_per_s: ratio(requests as f64, duration_s),
        mb_per_s: ratio(data / 1e6, duration_s),
        out_of_order: stat.backwards,
        kinds: kinds(stat, requests),
        devices: stat.devices.len(),
        busiest_devices: devices(stat, header),
        size_bytes: quantiles(&stat.sizes[0], 1.0),
        read_size_bytes: quantiles(&stat.sizes[1], 1.0),
        write_size_bytes: quantiles(&stat.sizes[2], 1.0),
        gap_us: quantiles(&stat.gaps, 1e3),
        response_ms: quantiles(&stat.responses, 1e6),
        sequentiality: Sequentiality { share, stream_share, run_requests },
        locality: Locality::new(stat),
        queue_depth: queue_depth(stat),
        hottest_regions: regions(stat, header),
        over_time: intervals(stat, INTERVALS),
        fine: intervals(stat, FINE_INTERVALS),
    }
}

impl Locality {
    fn new(stat: &Stat) -> Locality {
        Locality {
            footprint_bytes: stat.reuse.footprint(),
            reach_bytes: stat.reach,
            reused_share: stat.reuse.reused(),
            zipf_exponent: stat.reuse.zipf(),
            sample_share: stat.reuse.share(),
        }
    }
}

fn kinds(stat: &Stat, requests: u64) -> Vec<KindCount> {
    let met = Kind::ALL.into_iter().zip(stat.kinds).filter(|(_, (count, _))| *count > 0);
    met.map(|(kind, (count, bytes))| KindCount {
        kind: kind.name(),
        requests: count,
        share: ratio(count as f64, requests as f64),
        bytes,
    })
    .collect()
}

fn devices(stat: &Stat, header: &Header) -> Vec<DeviceCount> {
    let count = |(device, (requests, bytes)): (&u32, &(u64, u64))| DeviceCount {
        device: header.label(*device),
        requests: *requests,
        bytes: *bytes,
    };
    let mut devices: Vec<DeviceCount> = stat.devices.iter().map(count).collect();
    devices.sort_by_key(|device| std::cmp::Reverse(device.requests));
    devices.truncate(LISTED);
    devices
}

fn queue_depth(stat: &Stat) -> Option<QueueDepth> {
    let (mean, mean_while_busy, busy_share) = stat.depth.means();
    let max = stat.depth.most();
    (max > 0).then_some(QueueDepth { mean, mean_while_busy, busy_share, max })
}

fn regions(stat: &Stat, header: &Header) -> Vec<Region> {
    let all = stat.sizes[0].counts.len() as f64;
    let mut regions = Vec::new();
    for (device, bins) in stat.regions() {
        for (bin, count) in bins.sums().iter().enumerate().filter(|(_, count)| **count > 0.0) {
            regions.push(Region {
                device: header.label(device),
                offset_bytes: bin as u64 * bins.width(),
                bytes: bins.width(),
                requests: *count as u64,
                share: ratio(*count, all),
            });
        }
    }
    regions.sort_by_key(|region| std::cmp::Reverse(region.requests));
    regions.truncate(LISTED);
    regions
}

/// The bins of time, merged into at most `most` intervals.
fn intervals(stat: &Stat, most: usize) -> Vec<Interval> {
    let width = stat.requests_over_time.width();
    let counts = stat.requests_over_time.sums();
    let depths = stat.depth.over_time();
    let bytes = &stat.bytes_over_time;
    let bins = counts.len().div_ceil(most).max(1);
    let seconds = |bin: usize| Instant(bin as u64 * width).as_secs();
    let interval = |from: usize| {
        let to = (from + bins).min(counts.len());
        let (start, end) = (from as u64 * width, to as u64 * width);
        let within = |at: u64| at >= start && at < end;
        let of_bytes = bytes.sums().iter().enumerate();
        let moved: f64 =
            of_bytes.filter(|(bin, _)| within(*bin as u64 * bytes.width())).map(|(_, sum)| sum).sum();
        let inside: Vec<f64> =
            depths.iter().filter(|(time, _)| within(time.0)).map(|(_, depth)| *depth).collect();
        Interval {
            from_s: seconds(from),
            to_s: seconds(to),
            requests: counts[from..to].iter().sum::<f64>() as u64,
            mb_per_s: ratio(moved / 1e6, seconds(to) - seconds(from)),
            queue_depth: (stat.depth.most() > 0)
                .then(|| ratio(inside.iter().sum::<f64>(), inside.len() as f64)),
        }
    };
    (0..counts.len()).step_by(bins).map(interval).collect()
}

/// A distribution in units of `unit`.
fn quantiles(spread: &Spread, unit: f64) -> Option<Quantiles> {
    let count = spread.counts.len();
    if count == 0 {
        return None;
    }
    let found = of_histogram(&spread.counts, unit, spread.sum as f64 / count as f64);
    let (least, most) = (spread.least as f64 / unit, spread.most as f64 / unit);
    // A quantile represents the values near it: it does not exceed the maximum.
    let within = |value: f64| value.clamp(least, most);
    Some(Quantiles {
        min: least,
        p10: within(found.p10),
        p50: within(found.p50),
        p90: within(found.p90),
        p99: within(found.p99),
        max: most,
        mean: found.mean,
    })
}

fn of_histogram(counts: &hdrhistogram::Histogram<u64>, unit: f64, mean: f64) -> Quantiles {
    let at = |share: f64| super::quantile(counts, share) as f64 / unit;
    Quantiles {
        mean: mean / unit,
        min: counts.min() as f64 / unit,
        p10: at(0.1),
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        max: counts.max() as f64 / unit,
    }
}

/// A quotient; 0 if the divisor is 0.
fn ratio(value: f64, by: f64) -> f64 {
    if by > 0.0 { value / by } else { 0.0 }
}
