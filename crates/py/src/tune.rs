//! The search for settings of a Linux system, on all cores.

use crate::error::{CallError, input_error};
use crate::load::{LoadSource, NativeLoad};
use crate::rig::NativeRig;
use crate::watch::{own_threads, watched};
use headstack::Rig;
use headstack::tune::{
    TuneBound, TuneDevices, TuneFigures, TuneGoal, TuneMetric, TuneTrial, candidates_of, knob_named,
    run_trial, search,
};
use pyo3::prelude::*;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Minimum number of requests of a full-length run.
const REQUESTS_MIN: u64 = 100;

/// Searches for the settings of a rig that serve a load best. Returns what `headstack tune --json` prints of it, and a udev rule. `report` gets
/// the number of runs.
#[pyfunction]
#[pyo3(signature = (rig, load, goal, bounds, knobs, job, requests, seed, disks, array, title, report))]
#[allow(clippy::too_many_arguments, reason = "the options of the command, which Python passes by keyword")]
pub(crate) fn tune(
    py: Python<'_>,
    rig: &NativeRig,
    load: &NativeLoad,
    goal: &str,
    bounds: Vec<String>,
    knobs: Vec<String>,
    job: Option<String>,
    requests: u64,
    seed: u64,
    disks: Vec<String>,
    array: &str,
    title: &str,
    report: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    if requests < REQUESTS_MIN {
        return Err(input_error(format!("requests: {requests} is below {REQUESTS_MIN}")));
    }
    let place = |name: &String| knob_named(name).map_err(|message| format!("knob: {message}"));
    let knobs = knobs.iter().map(place).collect::<Result<Vec<_>, _>>().map_err(input_error)?;
    let goal = parse_goal(goal, &bounds, job)?;
    let workload = load.source.workload().map_err(PyErr::from)?;
    let others = goal.uncounted_jobs(&workload).map_err(|message| input_error(format!("load: {message}")))?;
    let candidates = candidates_of(&rig.rig, &knobs, others);
    let candidates = candidates.map_err(|message| input_error(format!("{}: {message}", rig.name)))?;
    let devices = TuneDevices::new(&rig.rig, &disks, array)
        .map_err(|message| input_error(format!("disk: {message}")))?;
    let threads = own_threads(0)?;
    let (is_stopped, runs) = (AtomicBool::new(false), AtomicU64::new(0));
    let trials = TuneTrials {
        rig: &rig.rig,
        load: &load.source,
        requests,
        job: goal.job.as_deref(),
        threads: &threads,
        is_stopped: &is_stopped,
        runs: &runs,
    };
    let work = || {
        let mut run = |wanted: &[TuneTrial]| trials.run(wanted);
        let outcome = search(&goal, &candidates, seed, &mut run).map_err(CallError::Input)?;
        let object = Value::Object(outcome.to_object(&rig.rig, &goal, &devices));
        Ok((object.to_string(), outcome.udev_rule(&devices, title).unwrap_or_default()))
    };
    let check = || {
        Python::attach(|py| {
            py.check_signals()?;
            let done = runs.load(Ordering::Relaxed);
            if let Some(report) = &report {
                report.call1(py, (done,))?;
            }
            Ok(())
        })
    };
    match py.detach(|| watched(&is_stopped, work, check)) {
        (_, Some(raised)) => Err(raised),
        (ended, None) => Ok(ended?),
    }
}

fn parse_goal(metric: &str, bounds: &[String], job: Option<String>) -> PyResult<TuneGoal> {
    let metric: TuneMetric = metric.parse().map_err(|message| input_error(format!("goal: {message}")))?;
    let parse = |text: &String| text.parse::<TuneBound>().map_err(|message| format!("bound: {message}"));
    let bounds = bounds.iter().map(parse).collect::<Result<_, _>>().map_err(input_error)?;
    Ok(TuneGoal { metric, bounds, job })
}

/// The inputs of the search's runs.
struct TuneTrials<'a> {
    rig: &'a Rig,
    load: &'a LoadSource,
    requests: u64,
    job: Option<&'a str>,
    threads: &'a rayon::ThreadPool,
    is_stopped: &'a AtomicBool,
    runs: &'a AtomicU64,
}

impl TuneTrials<'_> {
    /// Runs trials on all cores.
    fn run(&self, trials: &[TuneTrial]) -> Result<Vec<TuneFigures>, String> {
        self.threads.install(|| trials.par_iter().map(|trial| self.measure(trial)).collect())
    }

    fn measure(&self, trial: &TuneTrial) -> Result<TuneFigures, String> {
        let stops = || self.is_stopped.load(Ordering::Relaxed);
        let workload = self.load.workload().map_err(|error| error.to_string())?;
        let figures = run_trial(self.rig, workload, trial, self.requests, self.job, &stops)
            .map_err(|error| error.to_string())?;
        if stops() {
            return Err("stopped".to_string());
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        figures.ok_or_else(|| "load: no request is counted; its ramp_time is longer than it runs".to_string())
    }
}
