//! Results as JSON: fio's form, and the object `headstack` for all other results.

use super::{DeviceResult, EarlyStop, JobResult, PhaseResult, Results, VolumeResult, fio};
use crate::load::JobSection;
use crate::numbers::ratio;
use crate::setup::{DriveSetup, RunSetup};
use headstack_model::Nanos;
use headstack_sim::stats::{BATCHES, Bin, Confidence, Interval, TimeHistogram, Totals, VolumeStats};
use headstack_sim::{
    Activity, ArmTime, CacheUse, LinkUse, ProcessorUse, RearrangeActivity, RearrangeCounters,
    RearrangePeriod, RearrangeTimes, ShingleActivity, TimeSplit,
};
use serde_json::{Map, Value, json};

impl Results {
    /// The results as JSON in the form of `fio --output-format=json`, with the object `headstack` for all other results. The text
    /// ends with a newline. `docs/formats/results.md` lists the keys.
    pub fn to_json(&self) -> String {
        let mut document = fio::document(self);
        document.insert("headstack".into(), object(self));
        let text =
            serde_json::to_string_pretty(&document).expect("numbers and words are expressible in JSON");
        text + "\n"
    }

    /// The object `headstack` of [`Results::to_json`] alone.
    pub fn to_object(&self) -> Value {
        object(self)
    }
}

fn object(results: &Results) -> Value {
    let totals = results.totals();
    let by_kind = results.statistics.total();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": results.seed,
        "rig_name": results.rig.name,
        "load": results.workload.name,
        "load_kind": results.workload.kind,
        "setup": setup(&results.setup),
        "remarks": results.workload.remarks,
        "notes": notes(results),
        "partial": results.early_stop.as_ref().map(early_stop),
        "requests": totals.responses.count(),
        "requests_not_counted": results.statistics.completed() - totals.responses.count(),
        "simulated_s": results.end.as_secs(),
        "counted_s": results.counted_s(),
        "cpu_s": results.cpu_s,
        "requests_per_cpu_s": results.requests_per_cpu_s(),
        "iops": results.iops(),
        "read_iops": results.read_iops(),
        "write_iops": results.write_iops(),
        "flushes_per_s": results.flushes_per_s(),
        "bandwidth_mb_s": results.bandwidth_mb_s(),
        "outstanding_max": results.statistics.most_outstanding(),
        "response_ms": responses(&totals.responses),
        "parts_ms": parts(&totals),
        "retries": retries(&totals),
        "reads": kind(by_kind.reads.as_deref()),
        "writes": kind(by_kind.writes.as_deref()),
        "flushes": kind(by_kind.flushes.as_deref()),
        "jobs": jobs(results),
        "confidence": results.confidence().as_ref().map(confidence),
        "volumes": volumes(results),
        "devices": devices(results),
        "links": links(results),
        "processor": results.processor.as_ref().map(|one| processor(results, one)),
        "phases": results.phases.iter().map(phase).collect::<Vec<_>>(),
        "timeline": timeline(results),
        "rig": results.rig.keys,
    })
}

fn setup(setup: &RunSetup) -> Value {
    let drive = |drive: &DriveSetup| {
        json!({
            "name": drive.name,
            "write_cache": drive.write_cache.word(),
            "fua": drive.fua,
            "order": drive.order,
            "queue_depth": drive.depth,
        })
    };
    json!({
        "drives": setup.drives.iter().map(drive).collect::<Vec<_>>(),
        "scheduler": setup.scheduler,
        "page_cache_mb": setup.page_cache_mb,
    })
}

fn notes(results: &Results) -> Vec<Value> {
    results.notes().iter().map(|note| json!({"name": note.name, "text": note.text})).collect()
}

fn early_stop(stop: &EarlyStop) -> Value {
    json!({"signal": stop.reason, "share": stop.share, "outstanding": stop.outstanding})
}

fn responses(responses: &TimeHistogram) -> Value {
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
    let named = TimeSplit::NAMES.iter().zip(totals.parts_ms());
    named.map(|(name, mean)| (name.to_string(), mean.into())).collect()
}

/// The share of retries in the tail of the response times; none without retries.
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

/// The list `jobs`: every section of the workload, even in a reporting group.
fn jobs(results: &Results) -> Vec<Value> {
    let object = |job: &JobResult<'_>, name: &str| {
        job.kinds().find(|kind| kind.name == name).map(|kind| {
            json!({
                "requests": kind.statistics.responses.count(),
                "bytes": kind.statistics.bytes,
                "iops": kind.iops(),
                "bandwidth_mb_s": kind.mb_s(),
                "response_ms": responses(&kind.statistics.responses),
            })
        })
    };
    let job = |(job, section): (JobResult<'_>, &JobSection)| {
        json!({
            "name": job.name,
            "clones": section.clones,
            "group": section.group,
            "reads": object(&job, "read"),
            "writes": object(&job, "write"),
            "flushes": object(&job, "flush"),
        })
    };
    results.jobs().zip(&results.workload.sections).map(job).collect()
}

fn volumes(results: &Results) -> Vec<Value> {
    let volume = |(volume, stats): (&VolumeResult, &VolumeStats)| {
        let totals = stats.all();
        let devices = volume.devices.iter().map(|device| results.devices[*device].name.as_str());
        json!({
            "name": volume.name,
            "devices": devices.collect::<Vec<_>>(),
            "requests": totals.responses.count(),
            "response_ms": responses(&totals.responses),
            "parts_ms": parts(&totals),
            "rebuilt_share": volume.rebuilt,
            "rebuild_h": volume.rebuild_hours(results.end),
            "rearrange": volume.rearrange.as_ref().map(rearrange),
        })
    };
    results.by_volume().map(volume).collect()
}

fn rearrange(activity: &RearrangeActivity) -> Value {
    let view = &activity.view;
    let mut object = rearranged(&view.counters, &activity.times);
    let state = [
        ("reserved_sectors", activity.reserved_sectors),
        ("first_sector", activity.first.0),
        ("slots", view.slots.into()),
        ("copies", view.copies.into()),
        ("dirty_copies", view.dirty.into()),
    ];
    object.extend(state.map(|(name, value)| (name.to_string(), value.into())));
    let period = |period: &RearrangePeriod| {
        let mut object = rearranged(&period.record.counters, &period.times);
        object.insert("end_s".to_string(), period.record.end.as_secs().into());
        object.insert("hot_blocks".to_string(), period.record.hot_blocks.into());
        object.insert("copies".to_string(), period.record.copies.into());
        Value::Object(object)
    };
    object.insert("periods".to_string(), activity.periods.iter().map(period).collect());
    Value::Object(object)
}

fn rearranged(counters: &RearrangeCounters, times: &RearrangeTimes) -> Map<String, Value> {
    let object = json!({
        "requests": counters.requests,
        "hits": counters.hits,
        "hit_share": counters.hit_share(),
        "copied_in": counters.copied_in,
        "written_home": counters.written_home,
        "left_clean": counters.left_clean,
        "spoiled": counters.spoiled,
        "abandoned": counters.abandoned,
        "failed": counters.failed,
        "copy_arm_s": times.copy_arm.as_secs(),
        "accesses": times.accesses,
        "seek_s": times.seek.as_secs(),
        "home_seek_s": times.home_seek.as_secs(),
        "seek_saved_share": times.saved_share(),
    });
    match object {
        Value::Object(object) => object,
        _ => unreachable!("braces make an object"),
    }
}

fn devices(results: &Results) -> Vec<Value> {
    let device = |device: &DeviceResult| {
        let activity = &device.activity;
        json!({
            "name": device.name,
            "commands": activity.ended(),
            "cache": cache(activity),
            "seeks": seeks(activity),
            "utilisation": results.utilisation(device),
            "head_time_ms": activity.head_time_ms(),
            "guard": device.guard.map(|guard| {
                json!({"holds": guard.holds, "worst_overtaken": guard.worst_overtaken})
            }),
            "arm_s": {
                "commands": arm_s(&activity.commands),
                "destages": arm_s(&activity.destages),
                "read_ahead": activity.read_ahead.as_secs(),
                "recalibration": activity.recalibration.as_secs(),
            },
            "longest_command_ms": device.longest_command.as_ms(),
            "slowed": slowed(activity),
            "shingled": shingled(activity),
        })
    };
    results.devices.iter().map(device).collect()
}

/// Accesses that slow periods delayed; none where none was.
fn slowed(activity: &Activity) -> Option<Value> {
    let slowed = activity.slowed;
    (slowed.count > 0).then(|| json!({"accesses": slowed.count, "lost_s": slowed.lost.as_secs()}))
}

/// The persistent cache and the bands of a shingled disk; none where nothing was written to either.
fn shingled(activity: &Activity) -> Option<Value> {
    let shingled = activity.shingled;
    (shingled != ShingleActivity::default()).then(|| {
        json!({
            "records": shingled.records,
            "bands_streamed": shingled.bands_streamed,
            "bands_cleaned": shingled.bands_cleaned,
            "bands_to_clean": shingled.bands_to_clean,
            "bytes_moved": shingled.bytes_moved,
            "full_stalls": shingled.full_stalls,
            "stalled_s": shingled.stalled.as_secs(),
            "cleaning_s": arm_s(&shingled.cleaning),
        })
    })
}

fn links(results: &Results) -> Vec<Value> {
    let link = |link: &LinkUse| {
        let (busy, share) = (link.busy.as_secs(), results.share(link.busy));
        json!({"name": link.name, "part": link.part, "busy_s": busy, "utilisation": share})
    };
    results.links.iter().map(link).collect()
}

fn processor(results: &Results, processor: &ProcessorUse) -> Value {
    let lanes = processor.lanes.len() as f64;
    let part = |busy: Nanos| json!({"busy_s": busy.as_secs(), "utilisation": results.share(busy) / lanes});
    let lane = |busy: &Nanos| json!({"busy_s": busy.as_secs(), "utilisation": results.share(*busy)});
    let kinds = processor.kinds.iter().map(|(kind, busy)| (kind.name().to_string(), part(*busy)));
    json!({
        "busy_s": processor.busy().as_secs(),
        "utilisation": results.share(processor.busy()) / lanes,
        "lanes": processor.lanes.iter().map(lane).collect::<Vec<_>>(),
        "kinds": kinds.collect::<Map<_, _>>(),
    })
}

fn phase(phase: &PhaseResult) -> Value {
    json!({
        "name": phase.name,
        "began_s": phase.began.as_secs(),
        "seconds": phase.seconds(),
        "bytes": phase.bytes,
        "operations": phase.operations,
        "kib_s": phase.kib_s(),
        "operations_per_s": phase.operations_per_s(),
        "processor_share": phase.processor_share(),
    })
}

fn cache(activity: &Activity) -> Value {
    let reads = |cache: CacheUse| activity.reads[cache.index()];
    json!({
        "read_hits": reads(CacheUse::Whole),
        "read_joined": reads(CacheUse::Joined),
        "read_part_hits": reads(CacheUse::Part),
        "read_misses": reads(CacheUse::Miss),
        "read_hit_share": activity.read_hit_share(),
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

fn timeline(results: &Results) -> Value {
    let line = results.statistics.timeline();
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
