//! `headstack sim`: a load on a rig, in virtual time.

pub(crate) mod load;
pub(crate) mod page;
pub(crate) mod rearrange;
mod requests;
pub(crate) mod setup;
pub(crate) mod text;

use crate::failure::Failure;
use crate::files::{self, NewFile};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report;
use crate::rig;
use crate::signal::Signal;
use cpu_time::ThreadTime;
use headstack::{Results, Rig, Simulation};
use load::LoadArgs;
use requests::Requests;
use setup::RigArgs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Run a fio job or a trace on a rig, in virtual time, and print what the disks did with it.
#[derive(clap::Args)]
pub(crate) struct Sim {
    /// A rig file, a shipped rig or a shipped drive.
    #[arg(value_name = "RIG")]
    rig: String,
    /// A fio job file (.fio), a load file (.toml) or a trace in any format.
    #[arg(value_name = "LOAD")]
    load: String,
    #[command(flatten)]
    options: RigArgs,
    #[command(flatten)]
    load_options: LoadArgs,
    /// Write the results as JSON in fio's shape; `-` for standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Write one line of CSV per request; `-` for standard output instead of the summary.
    #[arg(long, value_name = "FILE.csv")]
    requests: Option<PathBuf>,
    /// Write the results as charts into one self-contained HTML file.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

impl Sim {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut rig = rig::load::load_before(&self.rig, &self.load)?;
        self.options.apply(&mut rig)?;
        let outputs = [
            ("--json", self.json.as_deref()),
            ("--requests", self.requests.as_deref()),
            ("--report", self.report.as_deref()),
        ];
        files::check_apart(&rig::load::read_files(&self.rig, &self.load), &outputs)?;
        let interrupt = Interrupt::watch()?;
        let mut requests = self.requests.as_deref().map(|path| Requests::create(path, &rig)).transpose()?;
        let page = NewFile::if_named(self.report.as_deref())?;
        let json = JsonOutput::new(self.json.as_deref())?;
        let run = Run {
            rig: &rig,
            rig_name: &self.rig,
            load: &self.load,
            load_options: &self.load_options,
            seed: self.options.seed,
            outputs: &outputs,
        };
        let mut progress = Progress::alone();
        let (mut results, stopped) = run.simulate(&interrupt, &mut progress, requests.as_mut())?;
        if let Some(requests) = requests {
            results.workload.remarks.extend(stopped.map(|_| PARTIAL_REQUESTS.to_string()));
            requests.finish()?;
        }
        if let Some(page) = page {
            page.fill(report::to_html(&page::report(&results, &rig)?).as_bytes())?;
        }
        let is_printed = self.requests.as_deref().is_some_and(files::is_standard);
        if !json.write(|| results.to_json(), out)? && !is_printed {
            text::print(&results, out)?;
        }
        if let Some(signal) = stopped { Err(Failure::Stopped(signal)) } else { Ok(()) }
    }
}

const PARTIAL_REQUESTS: &str = "the file of requests holds those that had come back";

pub(crate) enum JsonOutput {
    Nowhere,
    Printed,
    File(NewFile),
}

impl JsonOutput {
    /// The output of `--json`; `-` is standard output.
    pub(crate) fn new(path: Option<&Path>) -> Result<JsonOutput, Failure> {
        Ok(match path {
            None => JsonOutput::Nowhere,
            Some(path) if path.as_os_str() == "-" => JsonOutput::Printed,
            Some(path) => JsonOutput::File(NewFile::beside(path)?),
        })
    }

    /// Writes the text. Returns whether it went to standard output, where nothing else may be printed then.
    pub(crate) fn write(self, text: impl FnOnce() -> String, out: &mut dyn Write) -> Result<bool, Failure> {
        match self {
            JsonOutput::Nowhere => {}
            JsonOutput::Printed => {
                out.write_all(text().as_bytes())?;
                return Ok(true);
            }
            JsonOutput::File(file) => file.fill(text().as_bytes())?,
        }
        Ok(false)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub rig: &'a Rig,
    pub rig_name: &'a str,
    pub load: &'a str,
    pub load_options: &'a LoadArgs,
    pub seed: u64,
    /// Output files, each with its option: none may be an input of the load.
    pub outputs: &'a [(&'a str, Option<&'a Path>)],
}

impl Run<'_> {
    /// Runs the load on the rig, which is idle at first, until the load is done or a signal stops it. Returns the signal.
    pub(crate) fn simulate(
        &self,
        interrupt: &Interrupt,
        progress: &mut Progress,
        requests: Option<&mut Requests>,
    ) -> Result<(Results, Option<Signal>), Failure> {
        let workload = self.load_options.open(self.load)?;
        let mut simulation = Simulation::new(self.rig, workload, self.seed).map_err(load::failure)?;
        let inputs: Vec<&Path> = simulation.inputs().iter().map(PathBuf::as_path).collect();
        files::check_apart(&inputs, self.outputs)?;
        if let Some(requests) = requests {
            simulation = simulation.observe(requests);
        }
        let started = ThreadTime::now();
        let stopped = run_watched(&mut simulation, interrupt, progress);
        let cpu_s = started.elapsed().as_secs_f64();
        progress.finish();
        let mut results = simulation.finish().map_err(load::failure)?;
        results.cpu_s = Some(cpu_s);
        results.rig.name = self.rig_name.to_string();
        Ok((results, stopped))
    }
}

/// Runs a simulation until it is done or a signal stops it. Returns the signal.
pub(crate) fn run_watched(
    simulation: &mut Simulation<'_>,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Option<Signal> {
    let mut stopped = None;
    simulation.run_while(&mut |run| {
        progress.show(run.now, run.completed, run.share);
        stopped = interrupt.received();
        stopped.map_or(ControlFlow::Continue(()), |signal| ControlFlow::Break(signal.name().to_string()))
    });
    stopped
}
