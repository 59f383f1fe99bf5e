//! What came of a run.

mod fio;
mod json;
mod kinds;

pub use kinds::{JobResult, KindResult};

use crate::load::WorkloadInfo;
use crate::numbers::ratio;
use headstack_model::Nanos;
use headstack_sim::stats::{Collector, SortedTimes, TimeHistogram, Totals, VolumeStats};
use headstack_sim::{Activity, LinkUse};
use serde_json::Value;

/// A volume of the rig.
#[derive(Clone, Debug)]
pub struct VolumeResult {
    /// Its name.
    pub name: String,
    /// The numbers of its devices.
    pub devices: Vec<usize>,
    /// Share of its spares that was filled, where it has any.
    pub rebuilt: Option<f64>,
}

/// A device of the rig after the run.
#[derive(Clone, Debug)]
pub struct DeviceResult {
    /// Its name in the rig.
    pub name: String,
    /// What it counted.
    pub activity: Activity,
    /// What the starvation guard before it did, if there is one.
    pub guard: Option<GuardUse>,
}

/// What a starvation guard did.
#[derive(Clone, Copy, Debug)]
pub struct GuardUse {
    /// How often it began to hold commands back.
    pub holds: u64,
    /// The most often that a command was overtaken.
    pub worst_overtaken: u32,
}

/// What is missing of a run that ended before its workload.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlyStop {
    /// What stopped it, in the words of the program.
    pub reason: String,
    /// Share of the workload that was done, where it is known.
    pub share: Option<f64>,
    /// Requests that had not come back. They count nowhere.
    pub outstanding: u64,
}

/// The rig of a run.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RigInfo {
    pub name: String,
    pub title: String,
    /// All its keys, with those of its presets.
    pub keys: Value,
}

/// A run and what came of it. It takes the same memory however many requests there were.
///
/// Requests of the warm-up (`ramp_time` of a fio job) count in no figure but the timeline and the sample.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Results {
    pub seed: u64,
    /// The rig; without a name and keys where the program built the engine.
    pub rig: RigInfo,
    pub workload: WorkloadInfo,
    /// Histograms, timeline, batches and sample of the requests.
    pub statistics: Collector,
    /// The exact distribution of the response times, where it [was kept](crate::Simulation::keep_response_times).
    pub response_times: Option<SortedTimes>,
    /// The volumes, by number.
    pub volumes: Vec<VolumeResult>,
    /// The devices, by number.
    pub devices: Vec<DeviceResult>,
    /// What the links that devices share have carried.
    pub links: Vec<LinkUse>,
    pub end: Nanos,
    /// CPU time of the run in seconds, where the program has measured it: the library reads no clock.
    pub cpu_s: Option<f64>,
    /// What is missing, where the run ended before its workload.
    pub early_stop: Option<EarlyStop>,
}

impl Results {
    /// Time over which requests counted, in seconds.
    pub fn counted_s(&self) -> f64 {
        self.statistics.last().since(self.statistics.first_counted()).as_secs()
    }

    /// Requests of all kinds that counted.
    pub fn totals(&self) -> Totals {
        self.statistics.total().all()
    }

    /// Their response times.
    pub fn response(&self) -> TimeHistogram {
        self.totals().responses
    }

    /// Requests a second.
    pub fn iops(&self) -> f64 {
        ratio(self.totals().responses.count() as f64, self.counted_s())
    }

    /// Millions of bytes a second.
    pub fn bandwidth_mb_s(&self) -> f64 {
        ratio(self.totals().bytes as f64 / 1e6, self.counted_s())
    }

    /// All requests, also those that did not count, a second of CPU time; none where that was not measured.
    pub fn requests_per_cpu_s(&self) -> Option<f64> {
        Some(ratio(self.statistics.completed() as f64, self.cpu_s?))
    }

    /// The reads that counted; none where there were none.
    pub fn reads(&self) -> Option<Totals> {
        self.statistics.total().reads.map(|totals| *totals)
    }

    /// The writes that counted; none where there were none.
    pub fn writes(&self) -> Option<Totals> {
        self.statistics.total().writes.map(|totals| *totals)
    }

    /// The flushes that counted; none where there were none.
    pub fn flushes(&self) -> Option<Totals> {
        self.statistics.total().flushes.map(|totals| *totals)
    }

    /// Each volume with what is kept of its requests.
    pub fn by_volume(&self) -> impl Iterator<Item = (&VolumeResult, &VolumeStats)> {
        self.volumes.iter().zip(self.statistics.volumes())
    }

    /// Each section of the workload with what is kept of its requests, whatever reports as a group.
    pub fn jobs(&self) -> impl Iterator<Item = JobResult<'_>> {
        let sections = self.workload.sections.iter().zip(self.statistics.jobs());
        sections
            .map(|(section, statistics)| JobResult { name: &section.name, statistics: statistics.as_deref() })
    }

    /// Each job as fio reports it: those that report as a group (`group_reporting`) are one, the clones of others are apart.
    pub fn reported_jobs(&self) -> impl Iterator<Item = JobResult<'_>> {
        let jobs = self.workload.jobs.iter().zip(self.statistics.entries());
        jobs.map(|(job, statistics)| JobResult { name: &job.name, statistics: statistics.as_deref() })
    }

    /// Share of the run in which a device's arm was at work for commands and destages.
    pub fn utilisation(&self, device: &DeviceResult) -> f64 {
        self.share(device.activity.busy())
    }

    /// Share of the run that a time is.
    pub fn share(&self, time: Nanos) -> f64 {
        ratio(time.as_secs(), self.end.as_secs())
    }
}
