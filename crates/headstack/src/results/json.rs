//! Results as JSON: fio's form, and the object `headstack` for all other results.

use super::{EarlyStop, JobResult, PhaseResult, Results, VolumeResult, fio};
use crate::load::JobSection;
use crate::numbers::ratio;
use crate::setup::{DriveSetup, RunSetup};
use headstack_model::Nanos;
use headstack_sim::stats::{BATCHES, Bin, Confidence, Interval, TimeHistogram, Totals, VolumeStats};
use headstack_sim::{LinkUse, ProcessorUse, TimeSplit};
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
        "requests": results.counted(),
        "requests_not_counted": results.statistics.completed() - results.counted(),
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
        "devices": results.devices.iter().map(|device| device.report.to_json()).collect::<Vec<_>>(),
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
        let totals = stats.transfers();
        let devices = volume.devices.iter().map(|device| results.devices[*device].name.as_str());
        let mut object = json!({
            "name": volume.name,
            "devices": devices.collect::<Vec<_>>(),
            "requests": stats.count(),
            "response_ms": responses(&totals.responses),
            "parts_ms": parts(&totals),
            "rebuilt_share": volume.rebuilt,
            "rebuild_h": volume.rebuild_hours(results.end),
            "rearrange": null,
        });
        object.as_object_mut().expect("braces make an object").extend(volume.report.to_json());
        object
    };
    results.by_volume().map(volume).collect()
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
