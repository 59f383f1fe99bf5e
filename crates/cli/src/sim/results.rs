//! The object `headstack` of the results: what fio's shape has no place for.

use super::fio;
use super::jobs;
use super::outcome::{DeviceOutcome, Outcome, Partial, VolumeOutcome, parts_ms, ratio};
use headstack_sim::stats::{BATCHES, Bin, Confidence, Interval, TimeHistogram, Totals, VolumeStats};
use headstack_sim::{Activity, ArmTime, CacheUse, LinkUse, TimeSplit};
use serde_json::{Map, Value, json};

/// The whole document, as text that ends with a line's end.
pub(crate) fn to_json(outcome: &Outcome) -> String {
    let mut document = fio::document(outcome);
    document.insert("headstack".into(), object(outcome));
    let text = serde_json::to_string_pretty(&document).expect("numbers and words are expressible in JSON");
    text + "\n"
}

/// The object `headstack`.
pub(crate) fn object(outcome: &Outcome) -> Value {
    let totals = outcome.totals();
    let by_kind = outcome.books.total();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": outcome.seed,
        "rig_name": outcome.rig_name,
        "load": outcome.load.name,
        "load_kind": outcome.load.kind,
        "remarks": outcome.load.remarks,
        "partial": outcome.partial.as_ref().map(partial),
        "requests": totals.responses.count(),
        "requests_not_counted": outcome.books.completed() - totals.responses.count(),
        "simulated_s": outcome.end.as_secs(),
        "counted_s": outcome.counted_s(),
        "cpu_s": outcome.cpu_s,
        "requests_per_cpu_s": outcome.requests_per_cpu_s(),
        "iops": outcome.iops(),
        "bandwidth_mb_s": outcome.bandwidth_mb_s(),
        "outstanding_max": outcome.books.most_outstanding(),
        "response_ms": responses(&totals.responses),
        "parts_ms": parts(&totals),
        "retries": retries(&totals),
        "reads": kind(by_kind.reads.as_deref()),
        "writes": kind(by_kind.writes.as_deref()),
        "flushes": kind(by_kind.flushes.as_deref()),
        "jobs": jobs::object(outcome),
        "confidence": outcome.books.confidence().as_ref().map(confidence),
        "volumes": volumes(outcome),
        "devices": devices(outcome),
        "links": links(outcome),
        "timeline": timeline(outcome),
        "rig": outcome.rig,
    })
}

fn partial(partial: &Partial) -> Value {
    json!({"signal": partial.signal.name(), "share": partial.share, "outstanding": partial.outstanding})
}

pub(super) fn responses(responses: &TimeHistogram) -> Value {
    json!({
        "mean": responses.mean_ms(),
        "std_dev": responses.std_dev_ms(),
        "p50": responses.p50().as_ms(),
        "p90": responses.quantile(0.9).as_ms(),
        "p99": responses.p99().as_ms(),
        "p999": responses.quantile(0.999).as_ms(),
        "max": responses.max().as_ms(),
    })
}

fn parts(totals: &Totals) -> Map<String, Value> {
    let named = TimeSplit::NAMES.iter().zip(parts_ms(totals));
    named.map(|(name, mean)| (name.to_string(), mean.into())).collect()
}

/// What requests that lost turns to retries make of the tail; nothing where none did.
fn retries(totals: &Totals) -> Value {
    let Some(retried) = &totals.retried else { return Value::Null };
    json!({
        "requests": retried.count(),
        "response_ms": responses(retried),
        "share_of_slowest_1_percent": totals.retried_of_slowest(0.01),
        "share_of_slowest_0_1_percent": totals.retried_of_slowest(0.001),
    })
}

fn kind(totals: Option<&Totals>) -> Value {
    let Some(totals) = totals else { return Value::Null };
    json!({
        "requests": totals.responses.count(),
        "bytes": totals.bytes,
        "response_ms": responses(&totals.responses),
        "parts_ms": parts(totals),
    })
}

fn confidence(found: &Confidence) -> Value {
    let interval = |interval: &Interval| json!({"mean": interval.mean, "plus_minus": interval.half_width});
    json!({
        "level": 0.95,
        "batches": BATCHES,
        "batch_requests": found.batch_requests,
        "warm_up_requests": found.warm_up_requests,
        "warm_up_s": found.warm_up.as_secs(),
        "correlation": found.correlation,
        "response_ms": interval(&found.response_ms),
        "iops": interval(&found.iops),
        "bandwidth_mb_s": interval(&found.mb_s),
    })
}

fn volumes(outcome: &Outcome) -> Vec<Value> {
    let volume = |(volume, stats): (&VolumeOutcome, &VolumeStats)| {
        let totals = stats.all();
        let devices = volume.devices.iter().map(|device| outcome.devices[*device].name.as_str());
        json!({
            "name": volume.name,
            "devices": devices.collect::<Vec<_>>(),
            "requests": totals.responses.count(),
            "response_ms": responses(&totals.responses),
            "parts_ms": parts(&totals),
            "rebuilt_share": volume.rebuilt,
        })
    };
    outcome.volumes().map(volume).collect()
}

/// Commands that a device ended.
pub(crate) fn commands(activity: &Activity) -> u64 {
    activity.reads.iter().sum::<u64>() + activity.writes.iter().sum::<u64>() + activity.flushes
}

fn devices(outcome: &Outcome) -> Vec<Value> {
    let device = |device: &DeviceOutcome| {
        let activity = &device.activity;
        json!({
            "name": device.name,
            "commands": commands(activity),
            "cache": cache(activity),
            "seeks": seeks(activity),
            "utilisation": outcome.utilisation(device),
            "head_time_ms": head_time_ms(activity),
            "guard": device.guard.map(|guard| {
                json!({"holds": guard.holds, "worst_overtaken": guard.worst_overtaken})
            }),
            "arm_s": {
                "commands": arm_s(&activity.commands),
                "destages": arm_s(&activity.destages),
                "read_ahead": activity.read_ahead.as_secs(),
                "recalibration": activity.recalibration.as_secs(),
            },
        })
    };
    outcome.devices.iter().map(device).collect()
}

fn links(outcome: &Outcome) -> Vec<Value> {
    let link = |link: &LinkUse| {
        let (busy, share) = (link.busy.as_secs(), outcome.share(link.busy));
        json!({"name": link.name, "part": link.part, "busy_s": busy, "utilisation": share})
    };
    outcome.links.iter().map(link).collect()
}

/// Time that an access of a command or a destage takes of the arm.
pub(crate) fn head_time_ms(activity: &Activity) -> f64 {
    ratio(activity.busy().as_ms(), (activity.commands.accesses + activity.destages.accesses) as f64)
}

/// Share of the reads that needed no access of their own.
pub(crate) fn read_hit_share(activity: &Activity) -> f64 {
    let hits = [CacheUse::Whole, CacheUse::Joined].map(|cache| activity.reads[cache.index()]);
    ratio(hits.iter().sum::<u64>() as f64, activity.reads.iter().sum::<u64>() as f64)
}

fn cache(activity: &Activity) -> Value {
    let reads = |cache: CacheUse| activity.reads[cache.index()];
    json!({
        "read_hits": reads(CacheUse::Whole),
        "read_joined": reads(CacheUse::Joined),
        "read_part_hits": reads(CacheUse::Part),
        "read_misses": reads(CacheUse::Miss),
        "read_hit_share": read_hit_share(activity),
        "writes_buffered": activity.writes[CacheUse::Buffered.index()],
        "writes_through": activity.writes[CacheUse::Miss.index()],
    })
}

fn seeks(activity: &Activity) -> Value {
    let seeks = &activity.seeks;
    let classes = seeks.classes().map(|(from, count)| json!({"from_cylinders": from, "accesses": count}));
    json!({
        "accesses": seeks.count(),
        "same_cylinder": seeks.none(),
        "mean_cylinders": seeks.mean(),
        "longest_cylinders": seeks.longest(),
        "classes": classes.collect::<Vec<_>>(),
    })
}

fn arm_s(time: &ArmTime) -> Value {
    json!({
        "accesses": time.accesses,
        "seek": time.seek.as_secs(),
        "rotational_latency": time.rotational_latency.as_secs(),
        "media": time.media.as_secs(),
    })
}

fn timeline(outcome: &Outcome) -> Value {
    let line = outcome.books.timeline();
    let width = line.width().as_secs();
    let each = |value: &dyn Fn(&Bin) -> f64| line.bins().iter().map(value).collect::<Vec<f64>>();
    let count = |bin: &Bin| (bin.reads + bin.writes) as f64;
    json!({
        "bin_s": width,
        "read_iops": each(&|bin| bin.reads as f64 / width),
        "write_iops": each(&|bin| bin.writes as f64 / width),
        "read_mb_s": each(&|bin| bin.read_bytes as f64 / 1e6 / width),
        "write_mb_s": each(&|bin| bin.written_bytes as f64 / 1e6 / width),
        "response_ms": each(&|bin| ratio(bin.response_ns as f64 / 1e6, count(bin))),
        "outstanding": each(&|bin| bin.depth_ns as f64 / 1e9 / width),
    })
}
