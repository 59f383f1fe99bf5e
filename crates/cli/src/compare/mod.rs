//! `headstack compare`: the same load on several rigs, or on one with varied keys.

mod baseline;
mod figures;
mod goal;
mod grid;
mod page;
mod picture;
mod remarks;
mod results;
mod runs;
mod table;

use crate::failure::Failure;
use crate::files::{self, NewFile};
use crate::interrupt::Interrupt;
use crate::report;
use crate::rig;
use crate::signal::Signal;
use crate::sim::JsonOutput;
use crate::sim::load::LoadArgs;
use crate::sim::setup::RigArgs;
use crate::units::significant;
use figures::{Metric, Ran};
use goal::Goal;
use grid::{Cell, FailedCell};
use headstack_sim::rig::Rig;
use picture::Panel;
use runs::{EndedCells, Load, UntilClear};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Run the same load with the same seed on several rigs, or on one whose keys are varied, and compare.
#[derive(clap::Args)]
pub(crate) struct Compare {
    /// The rigs (files, shipped rigs or drives), then the load: a fio job file, a load file or a trace.
    #[arg(value_name = "RIG... LOAD", required = true, num_args = 2..)]
    names: Vec<String>,
    /// Vary a key of the rigs over values: drive.order=fcfs,sptf. Several of these options make a grid.
    #[arg(long, value_name = "KEY=VALUE,...")]
    vary: Vec<String>,
    #[command(flatten)]
    options: RigArgs,
    #[command(flatten)]
    load_options: LoadArgs,
    /// Compare the others with this run: the number of its line, its label, or one of its KEY=VALUE.
    /// [default: the first]
    #[arg(long, value_name = "RUN")]
    baseline: Option<String>,
    /// Run each cell with N seeds, the first of them --seed: figures are means over the seeds, with their
    /// confidence.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeat: u64,
    /// Stop adding seeds to a cell once its difference from the baseline in this metric exceeds chance; --repeat is the upper
    /// bound.
    #[arg(long, value_name = "METRIC", value_parser = Metric::parse, requires = "repeat")]
    until_clear: Option<Metric>,
    /// Mark the runs that meet a bound, and name the first of them: p99_ms<100, iops>500. Exit code 1 if none
    /// does.
    #[arg(long, value_name = "METRIC<VALUE", value_parser = Goal::parse)]
    goal: Option<Goal>,
    /// Also print a table by job.
    #[arg(long)]
    jobs: bool,
    /// Write the results of all runs as JSON; `-` for standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Write the comparison as charts into one self-contained HTML file.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Draw a bar per run into an SVG file.
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,
    /// Draw this metric in the picture: p99_ms, or for one job and kind, `wal write p99_ms`. May be repeated. [default: iops,
    /// p99_ms]
    #[arg(long = "panel", value_name = "METRIC", value_parser = Panel::parse, requires = "picture")]
    panels: Vec<Panel>,
}

impl Compare {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let (load, names) = self.names.split_last().expect("two names are required");
        let rigs = self.rigs(names, load)?;
        let varied = self.vary.iter().map(|text| grid::Varied::parse(text)).collect::<Result<Vec<_>, _>>()?;
        if rigs.len() == 1 && varied.is_empty() && self.repeat == 1 {
            return Err(Failure::Input(
                "one rig alone compares with nothing: name another, --vary one of its keys, or --repeat it with more seeds"
                    .to_string(),
            ));
        }
        let grid::ComparisonGrid { cells, refused } = grid::grid(&rigs, &varied)?;
        let baseline = self.baseline.as_ref().map(|text| baseline::find(&cells, text)).transpose()?;
        let baseline_label = baseline.map(|index| cells[index].label());
        let outputs = [
            ("--json", self.json.as_deref()),
            ("--report", self.report.as_deref()),
            ("--picture", self.picture.as_deref()),
        ];
        for name in names {
            files::check_apart(&rig::load::read_files(name, load), &outputs)?;
        }
        let page = NewFile::if_named(self.report.as_deref())?;
        self.check_picture(load)?;
        let picture = NewFile::if_named(self.picture.as_deref())?;
        let json = JsonOutput::new(self.json.as_deref())?;
        let interrupt = Interrupt::watch()?;
        let wanted = cells.len() + refused.len();
        let seed = self.options.seed;
        let EndedCells { ran, failed } =
            self.run_cells(load, cells, refused, baseline.unwrap_or(0), &outputs, &interrupt)?;
        // A signal after the last run has no effect.
        let partial = interrupt.received().filter(|_| ran.len() + failed.len() < wanted);
        let partial = partial.map(|signal| Partial { signal, wanted });
        let comparison = Comparison {
            load: load.clone(),
            seed,
            seeds: self.repeat,
            baseline_label,
            goal: self.goal,
            rigs,
            varied,
            ran,
            failed,
            partial,
        };
        if let Some(page) = page.filter(|_| !comparison.ran.is_empty()) {
            page.fill(report::to_html(&page::report(&comparison)?).as_bytes())?;
        }
        if !json.write(|| results::to_json(&comparison), out)? {
            table::print(&comparison, self.jobs, terminal_width(), out)?;
        }
        self.draw(picture, &comparison)?;
        comparison
            .partial
            .map_or_else(|| comparison.verdict(), |partial| Err(Failure::Stopped(partial.signal)))
    }

    /// Runs the cells. Among the failed cells, those that a rig refused come first.
    ///
    /// *Errors:* the first failure, if no cell ran to its end.
    fn run_cells(
        &self,
        load: &str,
        cells: Vec<Cell>,
        refused: Vec<FailedCell>,
        baseline: usize,
        outputs: &[(&str, Option<&Path>)],
        interrupt: &Interrupt,
    ) -> Result<EndedCells, Failure> {
        let (options, seed) = (&self.load_options, self.options.seed);
        let load = Load { name: load, options, seed, seeds: self.repeat, outputs };
        let stop = self.until_clear.map(|metric| (UntilClear(metric), baseline));
        let mut ended = runs::run_all(cells, load, stop, interrupt);
        ended.failed.splice(0..0, refused);
        if ended.ran.is_empty() && !ended.failed.is_empty() {
            return Err(ended.failed.swap_remove(0).failure);
        }
        Ok(ended)
    }

    fn rigs(&self, names: &[String], load: &str) -> Result<Vec<(String, Rig)>, Failure> {
        let mut rigs = Vec::new();
        for name in names {
            let mut rig = rig::load::load_before(name, load)?;
            self.options.apply(&mut rig)?;
            rigs.push((name.clone(), rig));
        }
        Ok(rigs)
    }

    /// Checks before the runs what would fail after them: panels of jobs that the load does not have, a picture of another format.
    fn check_picture(&self, load: &str) -> Result<(), Failure> {
        if !self.panels.is_empty() {
            let workload = self.load_options.open(load)?;
            let jobs = workload.job_names();
            for panel in &self.panels {
                panel.check_job(&jobs).map_err(|fault| Failure::Input(format!("--panel: {fault}")))?;
            }
        }
        let extension = self.picture.as_deref().and_then(Path::extension).and_then(|name| name.to_str());
        match extension.filter(|name| ["png", "jpg", "jpeg", "pdf", "gif", "webp"].contains(name)) {
            Some(other) => Err(Failure::Input(format!(
                "--picture: draws SVG, not {other}; name a file that ends in .svg"
            ))),
            None => Ok(()),
        }
    }

    fn draw(&self, picture: Option<NewFile>, comparison: &Comparison) -> Result<(), Failure> {
        let Some(picture) = picture.filter(|_| !comparison.ran.is_empty()) else { return Ok(()) };
        let usual = Panel::usual();
        let panels = if self.panels.is_empty() { &usual } else { &self.panels };
        let fault = |fault| Failure::Input(format!("--panel: {fault}"));
        picture.fill(picture::to_svg(comparison, panels).map_err(fault)?.as_bytes())
    }
}

/// Columns of the terminal, if standard output is one.
fn terminal_width() -> Option<usize> {
    let is_terminal = io::stdout().is_terminal();
    is_terminal
        .then(|| ratatui::crossterm::terminal::size().ok())
        .flatten()
        .map(|(columns, _)| columns.into())
}

struct Comparison {
    load: String,
    /// The first seed, and their number.
    seed: u64,
    seeds: u64,
    /// The cell that `--baseline` names.
    baseline_label: Option<String>,
    goal: Option<Goal>,
    rigs: Vec<(String, Rig)>,
    varied: Vec<grid::Varied>,
    /// Completed cells, in the order of the grid.
    ran: Vec<Ran>,
    /// Cells that failed, in the order of the grid.
    failed: Vec<FailedCell>,
    partial: Option<Partial>,
}

#[derive(Clone, Copy)]
struct Partial {
    signal: Signal,
    /// Number of cells in the grid.
    wanted: usize,
}

impl Partial {
    fn line(&self, done: usize) -> String {
        format!("partial: stopped by {} with {done} of {} runs done", self.signal.name(), self.wanted)
    }
}

impl Comparison {
    /// The cell to which the others are compared, if completed.
    fn baseline(&self) -> Option<&Ran> {
        match &self.baseline_label {
            Some(label) => self.ran.iter().find(|ran| ran.cell.label() == *label),
            None => self.ran.first(),
        }
    }

    /// Fails if a cell failed, or if no run meets the goal.
    fn verdict(&self) -> Result<(), Failure> {
        if let Some(first) = self.failed.first() {
            let (failed, all) = (self.failed.len(), self.failed.len() + self.ran.len());
            return Err(Failure::Input(format!("{failed} of {all} cells failed: {}", first.failure)));
        }
        let Some(goal) = self.goal.filter(|goal| !self.ran.iter().any(|ran| goal.is_met(ran))) else {
            return Ok(());
        };
        let closest = goal.closest(&self.ran).map_or(String::new(), |ran| {
            let value = significant(ran.value(goal.metric), 4);
            format!("; the closest is {} with {value}", ran.cell.label())
        });
        Err(Failure::Check(format!("no run meets {}{closest}", goal.text())))
    }
}
