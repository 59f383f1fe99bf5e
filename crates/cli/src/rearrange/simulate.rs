//! `headstack rearrange simulate`.

use crate::failure::Failure;
use crate::files::{self, NewFile};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report::{self, Table};
use crate::rig;
use crate::sim::load::LoadArgs;
use crate::sim::setup::RigArgs;
use crate::sim::text::figure;
use crate::sim::{Run, page, rearrange};
use crate::units::grouped;
use crate::versioned;
use headstack::{Results, Rig};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Run a load on a rig without and with block rearrangement, in virtual time, and compare the results.
///
/// The keys are those of `[rearrange]` in a rig: --set rearrange.blocks=1000. A rig without that table gets one with the
/// defaults.
#[derive(clap::Args)]
pub(crate) struct Simulate {
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
    /// Print the results of both runs as JSON, in the form of `sim --json`.
    #[arg(long)]
    json: bool,
    /// Write the results of the run with rearrangement as charts into one self-contained HTML file.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

impl Simulate {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut with = rig::load::load_before(&self.rig, &self.load)?;
        if with.resolved().rearrange.is_none() {
            with.set("rearrange", "{}").map_err(Failure::input)?;
        }
        self.options.apply(&mut with)?;
        let without = with.without_rearrangement();
        let outputs = [("--report", self.report.as_deref())];
        files::check_apart(&rig::load::read_files(&self.rig, &self.load), &outputs)?;
        let report = NewFile::if_named(self.report.as_deref())?;
        let interrupt = Interrupt::watch()?;
        let mut results = Vec::new();
        for rig in [&without, &with] {
            let (result, stopped) = self.simulate(rig, &interrupt)?;
            if let Some(signal) = stopped {
                return Err(Failure::StoppedWithoutResult(signal));
            }
            results.push(result);
        }
        let [plain, rearranged] = &results[..] else { unreachable!("two rigs are run") };
        if let Some(report) = report {
            report.fill(report::to_html(&page::report(rearranged, &with)?).as_bytes())?;
        }
        if self.json {
            let both = json!({"without": plain.to_object(), "with": rearranged.to_object()});
            versioned::print(&both, out)?;
            return Ok(());
        }
        writeln!(out, "{} on {}", self.load, plain.rig.title)?;
        let periods = rearrange::period_table(rearranged).map(|(table, _)| table);
        for table in [Some(comparison(plain, rearranged)), periods].into_iter().flatten() {
            writeln!(out, "\n{}\n{}", table.title, table.to_text().trim_end())?;
        }
        Ok(())
    }

    fn simulate(
        &self,
        rig: &Rig,
        interrupt: &Interrupt,
    ) -> Result<(Results, Option<crate::signal::Signal>), Failure> {
        let run = Run {
            rig,
            rig_name: &self.rig,
            load: &self.load,
            load_options: &self.load_options,
            seed: self.options.seed,
            outputs: &[("--report", self.report.as_deref())],
        };
        run.simulate(interrupt, &mut Progress::alone(), None)
    }
}

/// The figures of both runs, and the change from the first to the second.
fn comparison(plain: &Results, rearranged: &Results) -> Table {
    let mut table = Table::new("Comparison", &["", "without", "with", "change"]);
    let mut row = |name: &str, value: &dyn Fn(&Results) -> f64| {
        let (before, after) = (value(plain), value(rearranged));
        let change =
            if before > 0.0 { format!("{:+.1} %", 100.0 * (after / before - 1.0)) } else { String::new() };
        table.row([name.to_string(), figure(before), figure(after), change]);
    };
    row("response ms, mean", &|results| results.response().mean_ms());
    row("response ms, p99", &|results| results.response().p99().as_ms());
    row("seek of a request ms, mean", &|results| results.totals().parts_ms()[2]);
    row("rotational latency ms, mean", &|results| results.totals().parts_ms()[3]);
    row("requests a second", &|results| results.iops());
    let counts = |count: fn(&headstack_sim::RearrangeActivity) -> f64| -> f64 {
        rearranged.volumes.iter().filter_map(|volume| volume.rearrange.as_ref()).map(count).sum()
    };
    let mut once =
        |name: &str, value: String| table.row([name.to_string(), String::new(), value, String::new()]);
    let share =
        counts(|of| of.view.counters.hits as f64) / counts(|of| of.view.counters.requests as f64).max(1.0);
    once("served by copies", format!("{:.1} %", 100.0 * share));
    once("blocks copied in", grouped(counts(|of| of.view.counters.copied_in as f64) as u64));
    once("blocks written home", grouped(counts(|of| of.view.counters.written_home as f64) as u64));
    once("copying s", figure(counts(|of| of.times.copy_arm.as_secs())));
    table
}
