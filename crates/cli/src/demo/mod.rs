//! `headstack demo`: three experiments on the shipped drives, as tables and as one page of charts.

mod orders;
mod streams;
mod tracks;

use crate::failure::Failure;
use crate::files;
use crate::interrupt::Interrupt;
use crate::report::{self, Report, Section};
use headstack::{DriveSpec, PatternSpec, Results, Simulation, Workload};
use headstack_model::drives;
use headstack_sim::DeviceOptions;
use indicatif::ProgressBar;
use std::io::Write;
use std::path::PathBuf;

/// Run three experiments in under a minute that show what disks do. Print tables, and write charts to
/// DIR/demo.html.
#[derive(clap::Args)]
pub(crate) struct Demo {
    /// The folder for demo.html; it is created if absent.
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
}

/// An experiment: its number of runs, and the function that does them.
struct Experiment {
    runs: usize,
    section: fn(&Bench) -> Result<Section, Failure>,
}

const EXPERIMENTS: [Experiment; 3] = [orders::EXPERIMENT, streams::EXPERIMENT, tracks::EXPERIMENT];

impl Demo {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        files::create_folder(&self.out)?;
        let bench =
            Bench::new(EXPERIMENTS.iter().map(|experiment| experiment.runs).sum(), Interrupt::watch()?);
        let mut sections = Vec::new();
        let done = EXPERIMENTS.iter().try_for_each(|experiment| {
            sections.push((experiment.section)(&bench)?);
            Ok(())
        });
        bench.progress.finish_and_clear();
        // After a signal the command prints the completed experiments and writes no page.
        for section in &sections {
            print(section, out)?;
        }
        done.map_err(|failure: Failure| match failure {
            Failure::Stopped(signal) if sections.is_empty() => Failure::StoppedWithoutResult(signal),
            failure => failure,
        })?;
        let report = Report {
            title: "What a disk does with a load".to_string(),
            text: vec!["Three experiments on simulated drives. Each point of a chart is a run of some thousand requests.".to_string()],
            sections,
        };
        let path = self.out.join("demo.html");
        files::write_whole(&path, report::to_html(&report).as_bytes())?;
        writeln!(out, "Charts: {}", path.display())?;
        Ok(())
    }
}

fn print(section: &Section, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "{}\n", section.title.to_uppercase())?;
    for paragraph in &section.text {
        writeln!(out, "{}", textwrap::fill(paragraph, 100))?;
    }
    for table in &section.tables {
        writeln!(out, "\n{}\n{}", table.title, table.to_text())?;
    }
    Ok(())
}

const SEED: u64 = 1;

/// Runs the loads of the experiments, with a progress bar on a terminal, until a signal stops them.
struct Bench {
    progress: ProgressBar,
    interrupt: Interrupt,
}

impl Bench {
    fn new(runs: usize, interrupt: Interrupt) -> Bench {
        let progress = ProgressBar::new(runs as u64)
            .with_style(crate::progress::style("{bar:40} {pos}/{len} runs, about {eta} left  {msg}"));
        Bench { progress, interrupt }
    }

    fn announce(&self, experiment: &str) {
        self.progress.set_message(experiment.to_string());
    }

    fn run(&self, spec: &DriveSpec, options: &DeviceOptions, load: PatternSpec) -> Result<Results, Failure> {
        if let Some(signal) = self.interrupt.received() {
            return Err(Failure::Stopped(signal));
        }
        let simulation = Simulation::on_drive(spec, options, Workload::pattern(load), SEED);
        let results = simulation.and_then(Simulation::run).map_err(Failure::input)?;
        self.progress.inc(1);
        Ok(results)
    }
}

fn drive(name: &str) -> Result<DriveSpec, Failure> {
    drives::load(name).map_err(Failure::input)
}
