//! `headstack compare`: the same load on several rigs, or on one whose keys are varied, side by side.

mod grid;
mod page;
mod runs;
mod table;

use crate::failure::Failure;
use crate::files::NewFile;
use crate::interrupt::{Interrupt, Signal};
use crate::report;
use crate::rig;
use crate::sim::JsonOutput;
use crate::sim::load::LoadArgs;
use crate::sim::outcome::{Outcome, PARTS, parts_ms};
use crate::sim::setup::RigArgs;
use crate::sim::{page as one, results};
use grid::Cell;
use headstack_sim::rig::Rig;
use headstack_sim::stats::Confidence;
use runs::Load;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Run the same load with the same seed on several rigs, or on one whose keys are varied, and compare.
#[derive(clap::Args)]
pub(crate) struct Compare {
    /// The rigs (files, shipped rigs or drives), then the load: a fio job file, a load file or a trace.
    #[arg(value_name = "RIG... LOAD", required = true, num_args = 2..)]
    names: Vec<String>,
    /// Vary a key of the rigs over values: drive.order=fcfs,sptf. Several make a grid.
    #[arg(long, value_name = "KEY=VALUE,...")]
    vary: Vec<String>,
    #[command(flatten)]
    options: RigArgs,
    #[command(flatten)]
    load_options: LoadArgs,
    /// Write the results of all runs as JSON; `-` for standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the comparison as charts into one self-contained HTML file.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

/// What is kept of a run: it is small, as there may be thousands.
struct Figures {
    requests: u64,
    iops: f64,
    mb_s: f64,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// Mean over the devices.
    utilisation: f64,
    hit_share: f64,
    parts_ms: [f64; PARTS],
    confidence: Option<Confidence>,
    /// The line of the distribution.
    distribution: Vec<(f64, f64)>,
    object: Value,
}

impl Figures {
    fn new(outcome: &Outcome) -> Figures {
        let totals = outcome.totals();
        let times = &totals.responses;
        let devices = outcome.devices.len().max(1) as f64;
        let mean =
            |value: &dyn Fn(usize) -> f64| (0..outcome.devices.len()).map(value).sum::<f64>() / devices;
        let mut object = results::object(outcome);
        for key in ["rig", "timeline"] {
            object.as_object_mut().map(|object| object.remove(key));
        }
        Figures {
            requests: times.count(),
            iops: outcome.iops(),
            mb_s: outcome.bandwidth_mb_s(),
            mean_ms: times.mean_ms(),
            p50_ms: times.p50().as_ms(),
            p99_ms: times.p99().as_ms(),
            max_ms: times.max().as_ms(),
            utilisation: mean(&|index| outcome.utilisation(&outcome.devices[index])),
            hit_share: mean(&|index| results::read_hit_share(&outcome.devices[index].activity)),
            parts_ms: parts_ms(&totals),
            confidence: outcome.books.confidence(),
            distribution: one::distribution("", 0, times).points,
            object,
        }
    }
}

/// A cell and what came of its run.
struct Ran {
    cell: Cell,
    figures: Figures,
}

impl Compare {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let (load, names) = self.names.split_last().expect("two names are required");
        let mut rigs = Vec::new();
        for name in names {
            let mut rig = rig::load::load(name)?;
            self.options.apply(&mut rig)?;
            rigs.push((name.clone(), rig));
        }
        let varied = self.vary.iter().map(|text| grid::Varied::parse(text)).collect::<Result<Vec<_>, _>>()?;
        if rigs.len() == 1 && varied.is_empty() {
            return Err(Failure::Input(
                "one rig alone compares with nothing: name another, or --vary one of its keys".to_string(),
            ));
        }
        let cells = grid::cells(&rigs, &varied)?;
        let page = NewFile::if_named(self.report.as_deref())?;
        let json = JsonOutput::new(self.json.as_deref())?;
        let interrupt = Interrupt::watch()?;
        let wanted = cells.len();
        let one = Load { name: load, options: &self.load_options, seed: self.options.seed };
        let ran = runs::run_all(cells, one, &interrupt)?;
        // A signal that comes after the last run changes nothing.
        let partial = interrupt.received().filter(|_| ran.len() < wanted);
        let partial = partial.map(|signal| Partial { signal, wanted });
        let comparison =
            Comparison { load: load.clone(), seed: self.options.seed, rigs, varied, ran, partial };
        if let Some(page) = page.filter(|_| !comparison.ran.is_empty()) {
            page.fill(report::to_html(&page::report(&comparison)?).as_bytes())?;
        }
        if !json.write(|| comparison.to_json(), out)? {
            table::print(&comparison, out)?;
        }
        comparison.partial.map_or(Ok(()), |partial| Err(Failure::Stopped(partial.signal)))
    }
}

/// All runs of a comparison.
struct Comparison {
    load: String,
    seed: u64,
    rigs: Vec<(String, Rig)>,
    varied: Vec<grid::Varied>,
    /// Those that are done, in the order of the grid.
    ran: Vec<Ran>,
    partial: Option<Partial>,
}

/// A comparison that a signal stopped.
#[derive(Clone, Copy)]
struct Partial {
    signal: Signal,
    /// Runs that were asked for.
    wanted: usize,
}

impl Partial {
    /// In words, for people.
    fn line(&self, done: usize) -> String {
        format!("partial: stopped by {} with {done} of {} runs done", self.signal.name(), self.wanted)
    }
}

impl Comparison {
    fn to_json(&self) -> String {
        let rigs = self.rigs.iter().map(|(name, rig)| {
            json!({"name": name, "rig": serde_json::to_value(rig.resolved()).expect("a rig is expressible in JSON")})
        });
        let runs = self.ran.iter().map(|ran| {
            let settings: serde_json::Map<String, Value> =
                ran.cell.settings.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
            json!({"rig_name": ran.cell.rig_name, "settings": settings, "headstack": ran.figures.object})
        });
        let document = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "load": self.load,
            "seed": self.seed,
            "partial": self.partial.map(|partial| {
                json!({"signal": partial.signal.name(), "runs": self.ran.len(), "of": partial.wanted})
            }),
            "rigs": rigs.collect::<Vec<_>>(),
            "runs": runs.collect::<Vec<_>>(),
        });
        let text =
            serde_json::to_string_pretty(&document).expect("numbers and words are expressible in JSON");
        text + "\n"
    }
}
