//! Results of a run.

mod fio;
mod json;
mod kinds;
mod notes;
mod phases;
mod reported;

pub use kinds::{JobResult, KindResult};
pub use phases::PhaseResult;
pub(crate) use phases::PhaseWatch;

use crate::load::WorkloadInfo;
use crate::numbers::ratio;
use crate::requests::KeptRequests;
use crate::setup::{RunSetup, WriteCacheState};
use crate::stream_watch::StreamResult;
use headstack_model::{Instant, Nanos, QuantityReport};
use headstack_sim::stats::{Collector, Confidence, SortedTimes, TimeHistogram, Totals, VolumeStats};
use headstack_sim::{Activity, LinkUse, ProcessorUse, RearrangeActivity};
pub use notes::Note;
use notes::notes;
use serde_json::Value;

/// A volume of the rig.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VolumeResult {
    /// Its name.
    pub name: String,
    /// The numbers of its devices.
    pub devices: Vec<usize>,
    /// Share of its spares that was rebuilt, if it has any.
    pub rebuilt: Option<f64>,
    /// The stream that its requests form, if they do.
    pub stream: Option<StreamResult>,
    /// What its rearranger has done, if it has one.
    pub rearrange: Option<RearrangeActivity>,
    /// What its layers have counted.
    pub report: QuantityReport,
}

impl VolumeResult {
    /// Hours in which all of its spares would be rebuilt at the mean rate of a run that ended then; none where nothing was rebuilt, or all.
    fn rebuild_hours(&self, end: Instant) -> Option<f64> {
        let share = self.rebuilt.filter(|share| *share > 0.0 && *share < 1.0)?;
        Some(end.since(Instant::ZERO).as_secs() / 3600.0 / share)
    }
}

/// A device of the rig after the run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceResult {
    /// Its name in the rig.
    pub name: String,
    /// Its counters.
    pub activity: Activity,
    /// The longest time that a command spent there.
    pub longest_command: Nanos,
    /// Activity of its starvation guard, if there is one.
    pub guard: Option<GuardUse>,
    /// All that it has counted.
    pub report: QuantityReport,
}

/// Activity of a starvation guard.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GuardUse {
    /// How often it began to hold commands back.
    pub holds: u64,
    /// Maximum number of times that a command was overtaken.
    pub worst_overtaken: u32,
}

/// What is missing of a run that ended before its workload.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EarlyStop {
    /// What stopped it, as the program's message.
    pub reason: String,
    /// Share of the workload that was done, if known.
    pub share: Option<f64>,
    /// Requests that had not completed. They do not count.
    pub outstanding: u64,
}

/// The rig of a run.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
#[non_exhaustive]
pub struct RigInfo {
    pub name: String,
    pub title: String,
    /// All its keys, with those of its presets.
    pub keys: Value,
}

/// Results of a run. They take the same memory for any number of requests.
///
/// Requests of the warm-up (`ramp_time` of a fio job) count only in the timeline and the sample.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Results {
    pub seed: u64,
    /// The rig; without a name and keys if the program built the engine.
    pub rig: RigInfo,
    /// What decides about the figures: write caches, FUA, orders, scheduler, page cache.
    pub setup: RunSetup,
    pub workload: WorkloadInfo,
    /// Histograms, timeline, batches and sample of the requests.
    pub statistics: Collector,
    /// The exact distribution of the response times, if [kept](crate::Simulation::keep_response_times).
    pub response_times: Option<SortedTimes>,
    /// A row for every completed request, if [kept](crate::Simulation::keep_requests).
    pub requests: Option<Box<KeptRequests>>,
    /// The volumes, by number.
    pub volumes: Vec<VolumeResult>,
    /// The devices, by number.
    pub devices: Vec<DeviceResult>,
    /// Use of the links that devices share.
    pub links: Vec<LinkUse>,
    /// The work of the host's processor; `None` where none costs any time.
    pub processor: Option<ProcessorUse>,
    /// The phases of the load that ended, in their order; none where it does only one thing.
    pub phases: Vec<PhaseResult>,
    pub end: Instant,
    /// CPU time of the run in seconds, if the program has measured it: the library reads no clock.
    pub cpu_s: Option<f64>,
    /// What is missing, if the run ended before its workload.
    pub early_stop: Option<EarlyStop>,
}

impl Results {
    /// Time over which requests counted, in seconds.
    pub fn counted_s(&self) -> f64 {
        self.statistics.last().since(self.statistics.first_counted()).as_secs()
    }

    /// Reads and writes that counted.
    pub fn totals(&self) -> Totals {
        self.statistics.total().transfers()
    }

    /// Number of requests of all kinds that counted.
    pub fn counted(&self) -> u64 {
        self.statistics.total().count()
    }

    /// Their response times.
    pub fn response(&self) -> TimeHistogram {
        self.totals().responses
    }

    /// Hours in which all of a volume's spares would be rebuilt at the mean rate of the run; of several volumes the longest. None where
    /// nothing was rebuilt, or all.
    pub fn rebuild_hours(&self) -> Option<f64> {
        let each = self.volumes.iter().filter_map(|volume| volume.rebuild_hours(self.end));
        each.max_by(f64::total_cmp)
    }

    /// Reads and writes per second; flushes do not count.
    pub fn iops(&self) -> f64 {
        self.read_iops() + self.write_iops()
    }

    /// Reads per second.
    pub fn read_iops(&self) -> f64 {
        self.per_s(self.reads().as_ref())
    }

    /// Writes per second.
    pub fn write_iops(&self) -> f64 {
        self.per_s(self.writes().as_ref())
    }

    /// Flushes per second.
    pub fn flushes_per_s(&self) -> f64 {
        self.per_s(self.flushes().as_ref())
    }

    fn per_s(&self, totals: Option<&Totals>) -> f64 {
        ratio(totals.map_or(0.0, |totals| totals.responses.count() as f64), self.counted_s())
    }

    /// The confidence from the batches of the counted reads and writes; `None` if there are too few.
    pub fn confidence(&self) -> Option<Confidence> {
        self.statistics.confidence()
    }

    /// Notes on what is suspicious, each with the key to look at.
    pub fn notes(&self) -> Vec<Note> {
        notes(self)
    }

    /// Whether all drives report writes done before they are on the media.
    pub(crate) fn caches_writes(&self) -> bool {
        self.setup.drives.iter().all(|drive| drive.write_cache == WriteCacheState::On)
    }

    /// MB (10⁶ bytes) per second.
    pub fn bandwidth_mb_s(&self) -> f64 {
        ratio(self.totals().bytes as f64 / 1e6, self.counted_s())
    }

    /// Completed requests per second of CPU time, including requests that the statistics leave out (warm-up). `None` if the CPU time
    /// was not measured.
    pub fn requests_per_cpu_s(&self) -> Option<f64> {
        Some(ratio(self.statistics.completed() as f64, self.cpu_s?))
    }

    /// The reads that counted; none if there were none.
    pub fn reads(&self) -> Option<Totals> {
        self.statistics.total().reads.map(|totals| *totals)
    }

    /// The writes that counted; none if there were none.
    pub fn writes(&self) -> Option<Totals> {
        self.statistics.total().writes.map(|totals| *totals)
    }

    /// The flushes that counted; none if there were none.
    pub fn flushes(&self) -> Option<Totals> {
        self.statistics.total().flushes.map(|totals| *totals)
    }

    /// Each volume with the statistics of its requests.
    pub fn by_volume(&self) -> impl Iterator<Item = (&VolumeResult, &VolumeStats)> {
        self.volumes.iter().zip(self.statistics.volumes())
    }

    /// Each section of the workload with the statistics of its requests, even in a reporting group.
    pub fn jobs(&self) -> impl Iterator<Item = JobResult<'_>> {
        let sections = self.workload.sections.iter().zip(self.statistics.jobs());
        sections
            .map(|(section, statistics)| JobResult { name: &section.name, statistics: statistics.as_deref() })
    }

    /// Each job as fio reports it: those of a group (`group_reporting`) are one, other clones are separate.
    pub fn reported_jobs(&self) -> impl Iterator<Item = JobResult<'_>> {
        let jobs = self.workload.jobs.iter().zip(self.statistics.entries());
        jobs.map(|(job, statistics)| JobResult { name: &job.name, statistics: statistics.as_deref() })
    }

    /// Share of the run in which a device's arm worked for commands and destages.
    pub fn utilisation(&self, device: &DeviceResult) -> f64 {
        self.share(device.activity.busy())
    }

    /// The mean of a figure of each device; 0 without devices.
    pub fn mean_over_devices(&self, figure: impl Fn(&DeviceResult) -> f64) -> f64 {
        self.devices.iter().map(figure).sum::<f64>() / self.devices.len().max(1) as f64
    }

    /// A time as a share of the run.
    pub fn share(&self, time: Nanos) -> f64 {
        ratio(time.as_secs(), self.end.as_secs())
    }
}
