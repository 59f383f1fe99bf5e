//! Runs a load on a drive with settings, as a user would by the library, and keeps the figures that relations compare.

use crate::job_text::JobText;
use headstack::model::{DriveSpec, SpecError, drives};
use headstack::sim::{Drive, DriveSource, NewDrives, TimeSplit};
use headstack::{NoFiles, Results, Rig, Simulation, Workload, load_rig};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// A shipped drive with the settings that a user would pass as `--set`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Machine {
    pub(crate) drive: String,
    /// Key and value, in the order in which they are set.
    pub(crate) settings: Vec<(String, String)>,
}

impl Machine {
    pub(crate) fn new(drive: &str) -> Machine {
        Machine { drive: drive.to_string(), settings: Vec::new() }
    }

    /// The machine with one more setting.
    pub(crate) fn with(&self, key: &str, value: &str) -> Machine {
        let mut machine = self.clone();
        machine.settings.retain(|(name, _)| name != key);
        machine.settings.push((key.to_string(), value.to_string()));
        machine
    }

    /// The same drive with its write cache off.
    pub(crate) fn without_write_cache(&self) -> Machine {
        self.with("drive.cache.write_cache", "none")
    }

    fn has(&self, key: &str, value: &str) -> bool {
        self.settings.iter().any(|(name, set)| name == key && set == value)
    }

    /// Whether its settings turn the write cache off.
    pub(crate) fn has_no_write_cache(&self) -> bool {
        self.has("drive.cache.write_cache", "none")
    }

    /// Whether its settings put an elevator that merges in front of the drive.
    pub(crate) fn merges(&self) -> bool {
        self.has("host.queue.elevator", "mq-deadline")
    }
}

impl Display for Machine {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(&self.drive)?;
        self.settings.iter().try_for_each(|(key, value)| write!(out, " --set {key}={value}"))
    }
}

/// Requests of one kind of a job.
#[derive(Clone, Debug)]
pub(crate) struct KindFigures {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Time over which they counted.
    pub(crate) seconds: f64,
    pub(crate) mean_ms: f64,
    /// Quantiles 0.5, 0.9 and 0.99, then the maximum.
    pub(crate) quantiles_ms: [f64; 4],
}

impl KindFigures {
    pub(crate) fn max_ms(&self) -> f64 {
        self.quantiles_ms[3]
    }

    fn per_second(&self, amount: u64) -> f64 {
        if self.seconds > 0.0 { amount as f64 / self.seconds } else { 0.0 }
    }
}

/// What a job did.
#[derive(Clone, Debug)]
pub(crate) struct JobFigures {
    pub(crate) name: String,
    pub(crate) kinds: Vec<KindFigures>,
}

impl JobFigures {
    fn data(&self) -> impl Iterator<Item = &KindFigures> {
        self.kinds.iter().filter(|kind| kind.name != "flush")
    }

    /// MB (10⁶ bytes) a second, reads and writes.
    pub(crate) fn mb_s(&self) -> f64 {
        self.data().map(|kind| kind.per_second(kind.bytes) / 1e6).sum()
    }

    /// Reads and writes a second.
    pub(crate) fn iops(&self) -> f64 {
        self.data().map(|kind| kind.per_second(kind.count)).sum()
    }
}

/// What a run gave.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) jobs: Vec<JobFigures>,
    /// Half the width of the 95 % interval of the requests a second, as a share of them.
    pub(crate) scatter: f64,
    /// Share of the run in which the arm worked, read-ahead and recalibration included.
    pub(crate) arm_share: f64,
    /// Sum over the requests of overhead and transfer, as a share of the run: more than 1 where they overlap.
    pub(crate) port_share: f64,
    /// Sum of the parts of all response times over that of the response times.
    pub(crate) parts_ratio: f64,
    /// The writes of the first job in fio's JSON; none where no job ends with a flush, because the document takes longer than most runs.
    pub(crate) fio_writes: Option<FioWrites>,
}

/// Of the first job, in fio's JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FioWrites {
    pub(crate) bytes: f64,
    pub(crate) bytes_per_s: f64,
    pub(crate) job_runtime_s: f64,
}

impl Figures {
    fn from_results(results: &Results, load: &JobText) -> Figures {
        let device = &results.devices[0];
        let totals = results.totals();
        let parts_s = |names: &[&str]| -> f64 {
            let parts = TimeSplit::NAMES.iter().zip(totals.parts_ns);
            parts.filter(|(name, _)| names.contains(name)).map(|(_, ns)| ns as f64 / 1e9).sum()
        };
        let responses_s = totals.responses.mean_ms() / 1e3 * totals.responses.count() as f64;
        let arm = device.activity.busy() + device.activity.read_ahead + device.activity.recalibration;
        Figures {
            jobs: results.jobs().map(|job| job_figures(&job)).collect(),
            scatter: results.confidence().map_or(0.0, |found| found.iops.half_width / found.iops.mean),
            arm_share: results.share(arm),
            port_share: parts_s(&["overhead", "bus"]) / results.counted_s().max(1e-9),
            parts_ratio: parts_s(&TimeSplit::NAMES) / responses_s.max(1e-9),
            fio_writes: load
                .jobs
                .iter()
                .any(|job| job.text("end_fsync").is_some())
                .then(|| fio_writes(results)),
        }
    }

    /// MB (10⁶ bytes) a second of all jobs.
    pub(crate) fn mb_s(&self) -> f64 {
        self.jobs.iter().map(JobFigures::mb_s).sum()
    }

    /// Reads and writes a second of all jobs.
    pub(crate) fn iops(&self) -> f64 {
        self.jobs.iter().map(JobFigures::iops).sum()
    }
}

fn job_figures(job: &headstack::JobResult<'_>) -> JobFigures {
    let kinds = job.kinds().map(|kind| {
        let responses = &kind.statistics.responses;
        let quantile = |share: f64| responses.quantile(share).as_ms();
        KindFigures {
            name: kind.name,
            count: responses.count(),
            bytes: kind.statistics.bytes,
            seconds: kind.seconds,
            mean_ms: responses.mean_ms(),
            quantiles_ms: [quantile(0.5), quantile(0.9), quantile(0.99), responses.max().as_ms()],
        }
    });
    JobFigures { name: job.name.to_string(), kinds: kinds.collect() }
}

fn fio_writes(results: &Results) -> FioWrites {
    let document: serde_json::Value = serde_json::from_str(&results.to_json()).expect("it is JSON");
    let job = &document["jobs"][0];
    let number = |value: &serde_json::Value| value.as_f64().expect("fio's JSON has it");
    FioWrites {
        bytes: number(&job["write"]["io_bytes"]),
        bytes_per_s: number(&job["write"]["bw_bytes"]),
        job_runtime_s: number(&job["job_runtime"]) / 1e3,
    }
}

/// The fixed parts of each drive, built once: for a large drive they take longer than a short run.
#[derive(Default)]
struct BuiltDrives(RefCell<BTreeMap<String, Arc<Drive>>>);

impl DriveSource for BuiltDrives {
    fn drive(&self, spec: &DriveSpec) -> Result<Arc<Drive>, SpecError> {
        // No setting of the search changes geometry or mechanics.
        if let Some(built) = self.0.borrow().get(&spec.name) {
            return Ok(Arc::clone(built));
        }
        let built = NewDrives.drive(spec)?;
        self.0.borrow_mut().insert(spec.name.clone(), Arc::clone(&built));
        Ok(built)
    }
}

/// A machine, a load and a seed.
type RunKey = (Machine, String, u64);

/// Runs loads on machines. Each run is made once.
#[derive(Default)]
pub(crate) struct Bench {
    drives: BuiltDrives,
    specs: BTreeMap<String, DriveSpec>,
    rigs: BTreeMap<Machine, Rig>,
    runs: BTreeMap<RunKey, Figures>,
    /// Runs that were made, and their requests.
    pub(crate) made: u64,
    pub(crate) requests: u64,
}

/// Runs that are kept in memory.
const KEPT_RUNS: usize = 4096;

impl Bench {
    /// The drive's file as shipped.
    pub(crate) fn spec(&mut self, drive: &str) -> &DriveSpec {
        self.specs
            .entry(drive.to_string())
            .or_insert_with(|| drives::load(drive).unwrap_or_else(|error| panic!("{error}")))
    }

    fn rig(&mut self, machine: &Machine) -> Result<&Rig, String> {
        if !self.rigs.contains_key(machine) {
            let mut rig = load_rig(&machine.drive, &NoFiles).map_err(|error| error.to_string())?;
            for (key, value) in &machine.settings {
                rig.set(key, value).map_err(|error| error.to_string())?;
            }
            self.rigs.insert(machine.clone(), rig);
        }
        Ok(&self.rigs[machine])
    }

    /// The figures of a load on a machine.
    ///
    /// *Errors:* a setting or a key of the load is refused.
    pub(crate) fn run(&mut self, machine: &Machine, load: &JobText, seed: u64) -> Result<Figures, String> {
        let text = load.to_string();
        let key = (machine.clone(), text.clone(), seed);
        if let Some(figures) = self.runs.get(&key) {
            return Ok(figures.clone());
        }
        let rig = self.rig(machine)?.clone();
        let refused = |error: headstack::Error| format!("{error}");
        let workload = Workload::fio_job(&text, "search.fio", &NoFiles).map_err(refused)?;
        let simulation = Simulation::with_drives(&rig, workload, seed, &self.drives).map_err(refused)?;
        let results = simulation.run().map_err(refused)?;
        self.made += 1;
        self.requests += results.statistics.completed();
        let figures = Figures::from_results(&results, load);
        if self.runs.len() >= KEPT_RUNS {
            self.runs.clear();
        }
        self.runs.insert(key, figures.clone());
        Ok(figures)
    }
}
