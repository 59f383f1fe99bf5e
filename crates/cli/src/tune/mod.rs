//! `headstack tune`: which of a Linux system's settings serve a load best on a disk.

mod json;
mod text;
mod verify;

use crate::failure::{Failure, print_line};
use crate::files::{self, NewFile};
use crate::interrupt::Interrupt;
use crate::rig;
use crate::signal::Signal;
use crate::sim::load::{self, LoadArgs};
use crate::sim::setup::RigArgs;
use headstack::WorkloadKind;
use headstack::tune::{
    self, FioVerification, SettingChoice, TuneBound, TuneDevices, TuneFigures, TuneGoal, TuneMetric,
    TuneOutcome, TuneTrial,
};
use headstack_sim::rig::Rig;
use indicatif::{ProgressBar, ProgressDrawTarget};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use verify::{Verified, VerifyArgs};

/// Find the settings of a Linux system (scheduler, queue depth, read-ahead and others) that serve a load best.
///
/// The rig gives the present settings: a workstation with its page cache and scheduler, or a drive alone. Each value of each setting is
/// simulated alone on short runs, then the best values together. The result is compared with the unchanged rig on seeds that the search did
/// not use. Changes that chance explains are not advised.
#[derive(clap::Args)]
pub(crate) struct Tune {
    /// The rig: a file, a shipped rig or a drive.
    rig: String,
    /// The load: a fio job file, a load file or a trace.
    load: String,
    /// What to improve: iops, throughput (MB/s), mean or p99 (response times).
    #[arg(long, value_name = "METRIC", default_value = "throughput", value_parser = TuneMetric::from_str)]
    goal: TuneMetric,
    /// A limit that the settings must keep: p99<200 (ms), iops>500, of a job NAME.iops>5, with --job others>5 (MB/s of the other jobs). May be
    /// repeated.
    #[arg(long, value_name = "[JOB.]METRIC<VALUE", value_parser = TuneBound::from_str)]
    bound: Vec<TuneBound>,
    /// Try only this setting. May be repeated. [default: all]
    #[arg(long, value_name = "NAME", value_parser = tune::knob_named)]
    knob: Vec<usize>,
    /// Count only this job of a fio job file. With it, ionice is tried for the other jobs, and io.max where --bound limits their loss.
    #[arg(long, value_name = "NAME", conflicts_with = "verify")]
    job: Option<String>,
    /// Requests of a whole run; the short ones have a quarter and half of them.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(100..))]
    requests: u64,
    #[command(flatten)]
    options: RigArgs,
    #[command(flatten)]
    load_options: LoadArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write the advised settings of the disk as a udev rule.
    #[arg(long, value_name = "FILE")]
    udev: Option<PathBuf>,
    /// Write the advised settings of a storage node as keys for its node file.
    #[arg(long, value_name = "FILE")]
    node: Option<PathBuf>,
    /// Write a fio job that runs the load on the disk, to check the advice before and after.
    #[arg(long, value_name = "FILE")]
    fio: Option<PathBuf>,
    /// The disks that the commands, the udev rule and the fio job name: as many as the rig has drives. [default: sda and those after it]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    disk: Vec<String>,
    /// The array that the commands name.
    #[arg(long, value_name = "NAME", default_value = ARRAY_PLACEHOLDER)]
    array: String,
    #[command(flatten)]
    verify: VerifyArgs,
}

/// The default name of the array in commands. No system has an array of this name, so that a command fails if it is run without a change.
const ARRAY_PLACEHOLDER: &str = "mdX";

/// Seconds of the fio job of `--fio`.
const FIO_SECONDS: u64 = 60;

/// The request and the outcome of a search.
struct Tuned<'a> {
    command: &'a Tune,
    rig: Rig,
    goal: TuneGoal,
    devices: TuneDevices,
    outcome: TuneOutcome,
    verified: Option<Verified>,
}

impl Tune {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut rig = rig::load::load_before(&self.rig, &self.load)?;
        self.options.apply(&mut rig)?;
        let goal = TuneGoal { metric: self.goal, bounds: self.bound.clone(), job: self.job.clone() };
        let refused = |message| Failure::Input(format!("{}: {message}", self.rig));
        let others = goal.uncounted_jobs(&self.load_options.open(&self.load)?);
        let others = others.map_err(|message| Failure::Input(format!("{}: {message}", self.load)))?;
        let candidates = tune::candidates_of(&rig, &self.knob, others).map_err(refused)?;
        let devices = TuneDevices::new(&rig, &self.disk, &self.array);
        let devices = devices.map_err(|message| Failure::Input(format!("--disk: {message}")))?;
        let udev = NewFile::if_named(self.udev.as_deref())?;
        let node = NewFile::if_named(self.node.as_deref())?;
        let fio = NewFile::if_named(self.fio.as_deref())?;
        let job = self.fio.as_ref().map(|_| self.fio_job(&devices)).transpose()?;
        let verification = self.verify.prepare(&self.load, &self.load_options)?;
        let interrupt = Interrupt::watch()?;
        let outcome = self.search(&rig, &goal, &candidates, &interrupt)?;
        let mut tuned = Tuned { command: self, rig, goal, devices, outcome, verified: None };
        let title = format!("headstack tune {} {}", self.rig, self.load);
        let (rule, keys) = (tuned.outcome.udev_rule(&tuned.devices, &title), tuned.outcome.node_keys(&title));
        for (file, path, text) in [(udev, &self.udev, rule), (node, &self.node, keys), (fio, &self.fio, job)]
        {
            match (file, text) {
                (Some(file), Some(text)) => file.fill(text.as_bytes())?,
                (Some(_), None) => {
                    let path = path.as_deref().unwrap_or(Path::new("")).display();
                    print_line(&format!("nothing of it is advised: {path} is not written"));
                }
                (None, _) => {}
            }
        }
        if let Some(verification) = verification {
            tuned.verified = Some(verification.run(&tuned, &interrupt)?);
        }
        let text = if self.json { json::to_json(&tuned) } else { text::to_text(&tuned) };
        out.write_all(text.as_bytes()).map_err(Failure::Output)
    }

    /// The load as a fio job for the disk.
    fn fio_job(&self, devices: &TuneDevices) -> Result<String, Failure> {
        let fault = |error: &str| Failure::Input(format!("--fio: {}: {error}", self.load));
        if !matches!(self.load_options.kind(&self.load)?.0, WorkloadKind::FioJob) {
            return Err(fault("no fio job, which fio could run"));
        }
        let text = files::read_text(Path::new(&self.load))?;
        let job = FioVerification::new(&text, &format!("/dev/{}", devices.volume()), FIO_SECONDS);
        job.map(|job| job.text).map_err(|error| fault(&error))
    }

    fn search(
        &self,
        rig: &Rig,
        goal: &TuneGoal,
        candidates: &[SettingChoice],
        interrupt: &Interrupt,
    ) -> Result<TuneOutcome, Failure> {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(crate::progress::style("{spinner} {pos} runs, {elapsed}"));
        let stopped = || interrupt.received();
        let stops = || stopped().is_some();
        let one = |trial: &TuneTrial| {
            let done = if stops() { None } else { Some(self.measure(rig, trial, &stops)) };
            bar.inc(1);
            done.filter(|_| !stops())
        };
        let mut failure = None;
        let mut run = |trials: &[TuneTrial]| {
            let mut figures = Vec::with_capacity(trials.len());
            for done in trials.par_iter().map(one).collect::<Vec<_>>() {
                match done {
                    Some(Ok(found)) => figures.push(found),
                    Some(Err(error)) => {
                        failure = Some(error);
                        return Err(String::new());
                    }
                    None => return Err(String::new()),
                }
            }
            Ok(figures)
        };
        let found = tune::search(goal, candidates, self.options.seed, &mut run);
        bar.finish_and_clear();
        found.map_err(|_| failure.unwrap_or_else(|| stop(stopped())))
    }

    /// A run of the load with the trial's settings.
    fn measure(
        &self,
        rig: &Rig,
        trial: &TuneTrial,
        stops: &dyn Fn() -> bool,
    ) -> Result<TuneFigures, Failure> {
        let workload = self.load_options.open(&self.load)?;
        let figures = tune::run_trial(rig, workload, trial, self.requests, self.job.as_deref(), stops);
        let figures = figures.map_err(load::failure)?;
        figures.ok_or_else(|| {
            let why = "no request is counted; its ramp_time is longer than it runs";
            Failure::Input(format!("{}: {why}", self.load))
        })
    }
}

/// The failure of a search that a signal stopped. It has no partial result, because the search has not yet judged the runs so far.
fn stop(signal: Option<Signal>) -> Failure {
    match signal {
        Some(signal) => Failure::StoppedWithoutResult(signal),
        None => Failure::Input("the search ended without a result".to_string()),
    }
}
