//! `headstack sim`: a load on a rig, in virtual time.

mod fio;
pub(crate) mod jobs;
pub(crate) mod load;
pub(crate) mod outcome;
pub(crate) mod page;
mod requests;
pub(crate) mod results;
pub(crate) mod setup;
pub(crate) mod text;

use crate::failure::Failure;
use crate::files::{self, NewFile};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report;
use crate::rig;
use cpu_time::ThreadTime;
use headstack_sim::rig::{NamedDrive, Rig};
use load::LoadArgs;
use outcome::{Control, DeviceOutcome, GuardUse, Onlooker, Outcome, VolumeOutcome};
use requests::Requests;
use setup::RigArgs;
use std::io::Write;
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
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write one line of CSV a request; `-` for standard output, in place of the summary.
    #[arg(long, value_name = "FILE.csv")]
    requests: Option<PathBuf>,
    /// Write the results as charts into one self-contained HTML file.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

impl Sim {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut rig = rig::load::load(&self.rig)?;
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
        let mut outcome = run.simulate(&interrupt, &mut progress, requests.as_mut())?;
        if let Some(requests) = requests {
            outcome.load.remarks.extend(outcome.partial.map(|_| PARTIAL_REQUESTS.to_string()));
            requests.finish()?;
        }
        if let Some(page) = page {
            page.fill(report::to_html(&page::report(&outcome, &rig)?).as_bytes())?;
        }
        let is_printed = self.requests.as_deref().is_some_and(files::is_standard);
        if !json.write(|| results::to_json(&outcome), out)? && !is_printed {
            text::print(&outcome, out)?;
        }
        outcome.partial.map_or(Ok(()), |partial| Err(Failure::Stopped(partial.signal)))
    }
}

/// What is said of the file of requests when a signal stopped the run.
const PARTIAL_REQUESTS: &str = "the file of requests holds those that had come back";

/// Where JSON goes.
pub(crate) enum JsonOutput {
    Nowhere,
    Printed,
    File(NewFile),
}

impl JsonOutput {
    /// Where `--json FILE` says; `-` is standard output.
    pub(crate) fn new(path: Option<&Path>) -> Result<JsonOutput, Failure> {
        Ok(match path {
            None => JsonOutput::Nowhere,
            Some(path) if path.as_os_str() == "-" => JsonOutput::Printed,
            Some(path) => JsonOutput::File(NewFile::beside(path)?),
        })
    }

    /// Writes it; says whether it was printed, and nothing else should be.
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

/// What is to be run.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub rig: &'a Rig,
    pub rig_name: &'a str,
    pub load: &'a str,
    pub load_options: &'a LoadArgs,
    pub seed: u64,
    /// Files that are written, each with its option: none may be one that the load reads.
    pub outputs: &'a [(&'a str, Option<&'a Path>)],
}

impl Run<'_> {
    /// One run of the load on a fresh engine of the rig, until it is done or `interrupt` stops it.
    pub(crate) fn simulate(
        &self,
        interrupt: &Interrupt,
        progress: &mut Progress,
        requests: Option<&mut Requests>,
    ) -> Result<Outcome, Failure> {
        let volumes = self.rig.volumes();
        let mut ready = load::ready(self.load, self.load_options, self.rig, self.seed)?;
        let inputs: Vec<&Path> = ready.notes.inputs.iter().map(PathBuf::as_path).collect();
        files::check_apart(&inputs, self.outputs)?;
        let mut engine = self.rig.build(self.seed).map_err(Failure::input)?;
        let onlooker = requests.map(|requests| requests as &mut dyn Onlooker);
        let started = ThreadTime::now();
        let control = Control::new(interrupt, progress);
        let (books, partial) = outcome::run(&mut engine, &volumes, &mut ready, control, onlooker);
        let cpu_s = started.elapsed().as_secs_f64();
        progress.finish();
        let mut notes = ready.notes;
        if partial.is_none() {
            notes.remarks.extend(ready.load.finish()?);
        }
        let device = |drive: NamedDrive<'_>| DeviceOutcome {
            activity: *engine.device(drive.number).activity(),
            guard: engine.guard(drive.number).map(GuardUse::of),
            name: drive.name,
        };
        let volume = |(index, devices): (usize, Vec<usize>)| {
            let (done, all) = engine.rebuilt(index);
            let rebuilt = (all > 0).then(|| done as f64 / all as f64);
            VolumeOutcome { name: volumes[index].name.clone(), devices, rebuilt }
        };
        Ok(Outcome {
            seed: self.seed,
            rig_name: self.rig_name.to_string(),
            rig_title: setup::title(self.rig),
            rig: serde_json::to_value(self.rig.resolved()).expect("a rig is expressible in JSON"),
            load: notes,
            volumes: self.rig.volume_drives().into_iter().enumerate().map(volume).collect(),
            devices: self.rig.resolved().drives().map(device).collect(),
            links: engine.link_usage(),
            books,
            end: engine.now(),
            cpu_s,
            partial,
        })
    }
}
