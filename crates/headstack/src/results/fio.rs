//! Results in the form of `fio --output-format=json`, for programs that read fio's results.
//!
//! Keys and units are those of fio 3.33, and `prios` those of later versions. There is no date, so that the same seed gives the
//! same bytes. Submission takes no virtual time: `slat_ns` is 0 and `lat_ns` is `clat_ns`. What only a real machine has
//! (`usr_cpu`, `ctx`, `minf` …) is 0. As in fio, the `runtime` of writes includes the flushes after them (`end_fsync`). `util` is the
//! share of time in which a volume was busy.

use super::{Results, VolumeResult};
use crate::numbers::ratio;
use headstack_model::{Instant, Nanos};
use headstack_sim::stats::{Direction, Priority, Running, SourceStats, TimeHistogram, VolumeStats};
use serde_json::{Map, Value, json};

const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// fio's names of the classes of response times.
const TIMES: [&str; 12] = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];

/// The document without the object `headstack`.
pub(super) fn document(results: &Results) -> Map<String, Value> {
    let entries = results.statistics.entries();
    let bandwidth: f64 = entries.iter().flatten().map(|entry| group_rate(entry)).sum();
    let jobs: Vec<Value> = results
        .workload
        .jobs
        .iter()
        .zip(entries)
        .map(|(job, entry)| {
            let idle = SourceStats::default();
            let stats = entry.as_deref().unwrap_or(&idle);
            let mut object = Map::new();
            object.insert("jobname".into(), job.name.clone().into());
            object.insert("groupid".into(), job.group.into());
            object.insert("error".into(), 0.into());
            object.insert("eta".into(), 0.into());
            object.insert("elapsed".into(), (stats.last().as_secs().ceil() as u64).into());
            object.insert("job options".into(), job.options.clone().into());
            object.append(&mut measured(stats, job.depth, bandwidth));
            object.into()
        })
        .collect();
    let mut document = Map::new();
    document.insert("fio version".into(), concat!("headstack-", env!("CARGO_PKG_VERSION")).into());
    document.insert("global options".into(), results.workload.global_options.clone().into());
    document.insert("jobs".into(), jobs.into());
    document.insert("disk_util".into(), disks(results).into());
    document
}

/// Mean KiB per second of an entry's reads and writes.
fn group_rate(stats: &SourceStats) -> f64 {
    [&stats.reads, &stats.writes].into_iter().flatten().map(|direction| direction.kib_s().mean()).sum()
}

/// The measurements of one job. `all_kib_s` is the rate of all jobs together.
fn measured(stats: &SourceStats, depth: Option<u32>, all_kib_s: f64) -> Map<String, Value> {
    let total = stats.count();
    let share = |count: u64| 100.0 * ratio(count as f64, total as f64);
    let classes = |names: &[&str], counts: &[u64]| -> Value {
        let pairs = names.iter().zip(counts).map(|(name, count)| (name.to_string(), share(*count).into()));
        Value::Object(pairs.collect())
    };
    let flushes = stats.flushes.as_ref().map(|flushes| &flushes.responses);
    let met = || stats.depths.iter().rposition(|count| *count > 0).map_or(0, |class| 1u32 << class);
    let depth = depth.unwrap_or_else(met);
    let runtime = stats.last().since(stats.begins);
    let batches = json!({"0": 0.0, "4": if total > 0 { 100.0 } else { 0.0 }, "8": 0.0, "16": 0.0, "32": 0.0,
        "64": 0.0, ">=64": 0.0});
    let issued: u64 = stats.depths.iter().sum();
    let levels = ["1", "2", "4", "8", "16", "32", ">=64"].iter().zip(stats.depths);
    let levels: Map<String, Value> = levels
        .map(|(name, count)| (name.to_string(), (100.0 * ratio(count as f64, issued as f64)).into()))
        .collect();
    let value = json!({
        "read": direction(stats.reads.as_deref(), None, stats.begins, all_kib_s),
        "write": direction(stats.writes.as_deref(), stats.writes_end(), stats.begins, all_kib_s),
        "trim": direction(None, None, stats.begins, all_kib_s),
        "sync": {"total_ios": flushes.map_or(0, TimeHistogram::count), "lat_ns": times(flushes, true)},
        "job_runtime": runtime.as_ms() as u64,
        "usr_cpu": 0.0,
        "sys_cpu": 0.0,
        "ctx": 0,
        "majf": 0,
        "minf": 0,
        "iodepth_level": levels,
        "iodepth_submit": batches,
        "iodepth_complete": batches,
        "latency_ns": classes(&TIMES[..10], &stats.times.ns),
        "latency_us": classes(&TIMES[..10], &stats.times.us),
        "latency_ms": classes(&TIMES, &stats.times.ms),
        "latency_depth": depth,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
    });
    match value {
        Value::Object(object) => object,
        _ => unreachable!("an object was written"),
    }
}

/// The requests of a direction, which were over at `end`, or else with the last one.
fn direction(stats: Option<&Direction>, end: Option<Instant>, begins: Instant, all_kib_s: f64) -> Value {
    let idle = Running::default();
    let (rate, iops) = stats.map_or((&idle, &idle), |stats| (stats.kib_s(), stats.iops()));
    let runtime = stats.map_or(Nanos::ZERO, |stats| end.unwrap_or(stats.last).since(begins));
    let bytes = stats.map_or(0, |stats| stats.bytes);
    let responses = stats.map(|stats| &stats.responses);
    let count = responses.map_or(0, TimeHistogram::count);
    let bytes_s = ratio(bytes as f64, runtime.as_secs());
    let mut object = json!({
        "io_bytes": bytes,
        "io_kbytes": bytes / 1024,
        "bw_bytes": bytes_s as u64,
        "bw": (bytes_s / 1024.0) as u64,
        "iops": ratio(count as f64, runtime.as_secs()),
        "runtime": runtime.as_ms() as u64,
        "total_ios": count,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": times(None, false),
        "clat_ns": times(responses, true),
        "lat_ns": times(responses, false),
        "bw_min": rate.min as u64,
        "bw_max": rate.max as u64,
        "bw_agg": 100.0 * ratio(rate.mean(), all_kib_s),
        "bw_mean": rate.mean(),
        "bw_dev": rate.std_dev(),
        "bw_samples": rate.count,
        "iops_min": iops.min as u64,
        "iops_max": iops.max as u64,
        "iops_mean": iops.mean(),
        "iops_stddev": iops.std_dev(),
        "iops_samples": iops.count,
    });
    let priorities = stats.map_or(&[][..], Direction::priorities);
    if !priorities.is_empty() {
        object["prios"] = priorities.iter().map(of_priority).collect();
    }
    object
}

fn of_priority((priority, responses): &(Priority, TimeHistogram)) -> Value {
    json!({
        "prioclass": priority.class,
        "prio": 0,
        "priohint": priority.hint,
        "clat_ns": times(Some(responses), true),
    })
}

/// A distribution of times; like fio, without percentiles if it is empty.
fn times(responses: Option<&TimeHistogram>, percentiles: bool) -> Value {
    let Some(responses) = responses.filter(|responses| responses.count() > 0) else {
        return json!({"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0});
    };
    let mut object = json!({
        "min": responses.min().0,
        "max": responses.max().0,
        "mean": responses.mean_ms() * 1e6,
        "stddev": responses.std_dev_ms() * 1e6,
        "N": responses.count(),
    });
    if percentiles {
        let at = |percent: &f64| (format!("{percent:.6}"), responses.quantile(percent / 100.0).0.into());
        object["percentile"] = Value::Object(PERCENTILES.iter().map(at).collect());
    }
    object
}

/// The activity of each volume's devices. Requests that became one command count as merges.
fn disks(results: &Results) -> Vec<Value> {
    let disk = |(volume, stats): (&VolumeResult, &VolumeStats)| {
        let requests = [&stats.reads, &stats.writes].map(|part| {
            part.as_ref().map_or((0, 0), |part| {
                let sum: u128 = part.parts_ns.iter().sum();
                (part.responses.count(), (sum / 1_000_000) as u64)
            })
        });
        let activities = || volume.devices.iter().map(|device| &results.devices[*device].activity);
        let done = [
            activities().flat_map(|activity| activity.reads).sum::<u64>(),
            activities().flat_map(|activity| activity.writes).sum::<u64>(),
        ];
        let [(reads, read_ms), (writes, write_ms)] = requests;
        json!({
            "name": volume.name,
            "read_ios": done[0],
            "write_ios": done[1],
            "read_merges": reads.saturating_sub(done[0]),
            "write_merges": writes.saturating_sub(done[1]),
            "read_ticks": read_ms,
            "write_ticks": write_ms,
            "in_queue": read_ms + write_ms,
            "util": 100.0 * ratio(stats.occupied.as_secs(), results.end.as_secs()),
        })
    };
    results.by_volume().map(disk).collect()
}
