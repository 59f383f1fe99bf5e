//! `headstack validate`: a trace with measured response times against the simulated drive.

use crate::catalog::DriveArg;
use crate::failure::Failure;
use crate::files;
use crate::interrupt::Interrupt;
use crate::progress;
use crate::report::{self, Chart, Report, Section, Table};
use crate::signal::Signal;
use crate::units::{grouped, significant};
use crate::versioned;
use headstack::validation::{self, PartialReplay};
use headstack_model::{DriveSpec, Nanos, Op};
use headstack_sim::stats::{Agreement, ClassAgreement, Pair};
use headstack_workload::trace::{self, Trace};
use indicatif::ProgressBar;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Replay a trace with measured response times and print how well the simulated drive agrees.
///
/// A line of the trace: R|W, action, LBN, sectors, measured microseconds, think time in microseconds. The replay is closed, with one
/// request outstanding: the next is issued its think time after the simulated completion.
#[derive(clap::Args)]
pub(crate) struct Validate {
    #[command(flatten)]
    drive: DriveArg,
    /// The trace.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Also write both distributions as charts into one self-contained HTML file.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

#[derive(JsonSchema, Serialize)]
struct Outcome<'a> {
    drive: &'a str,
    partial: Option<ReplayStop>,
    #[serde(flatten)]
    agreement: &'a Agreement,
}

/// A replay that a signal stopped.
#[derive(Clone, Copy, JsonSchema, Serialize)]
struct ReplayStop {
    signal: &'static str,
    /// Requests in the trace.
    of: usize,
}

/// Requests between two updates of the bar.
const EVERY: usize = 1024;

impl Validate {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        files::check_apart(&[&self.trace], &[("--report", self.report.as_deref())])?;
        let spec = self.drive.load()?;
        let (PartialReplay { pairs, requests }, stopped) = self.replay(&spec)?;
        // A signal after the last request has no effect.
        let stopped = stopped.filter(|_| pairs.len() < requests);
        let Some(agreement) = Agreement::new(&pairs) else {
            let is_empty = || Failure::Input(format!("{}: the trace is empty", self.trace.display()));
            return Err(stopped.map_or_else(is_empty, Failure::StoppedWithoutResult));
        };
        let partial = stopped.map(|signal| ReplayStop { signal: signal.name(), of: requests });
        let table = table(&agreement);
        if let Some(path) = &self.report {
            let report = self.report(&spec, &pairs, partial, table.clone());
            files::write_whole(path, report::to_html(&report).as_bytes())?;
        }
        if self.json {
            let outcome = Outcome { drive: &spec.name, partial, agreement: &agreement };
            versioned::print(&outcome, out)?;
        } else {
            if let Some(partial) = partial {
                writeln!(out, "{}", partial.line(pairs.len()))?;
            }
            write!(out, "{}", table.to_text())?;
        }
        if let Some(signal) = stopped { Err(Failure::Stopped(signal)) } else { Ok(()) }
    }

    /// Replays the trace until its end or a signal; returns the signal.
    fn replay(&self, spec: &DriveSpec) -> Result<(PartialReplay, Option<Signal>), Failure> {
        let interrupt = Interrupt::watch()?;
        let bar = ProgressBar::new(0);
        bar.set_style(progress::style("{bar:30} {percent:>3} %  {pos} of {len} requests, about {eta} left"));
        let mut stopped = None;
        let (measured, replayed) = (open(&self.trace)?, open(&self.trace)?);
        let replay = validation::replay_while(spec, measured, replayed, |issued, requests| {
            if issued.is_multiple_of(EVERY) {
                bar.set_length(requests as u64);
                bar.set_position(issued as u64);
            }
            stopped = interrupt.received();
            stopped.is_none()
        });
        bar.finish_and_clear();
        Ok((replay.map_err(Failure::input)?, stopped))
    }

    fn report(&self, spec: &DriveSpec, pairs: &[Pair], partial: Option<ReplayStop>, table: Table) -> Report {
        let trace = self.trace.file_name().unwrap_or_default().to_string_lossy();
        let classes = [("All requests", None), ("Reads", Some(Op::Read)), ("Writes", Some(Op::Write))];
        let charts = classes.into_iter().filter_map(|(title, op)| distribution(title, pairs, op));
        Report {
            title: format!("{}: simulated and measured", spec.title),
            text: vec![format!("Replay of {trace}, one request outstanding.")]
                .into_iter()
                .chain(partial.map(|partial| partial.line(pairs.len())))
                .collect(),
            sections: vec![Section::new("Response times")
                .with_text("The share of requests that took no longer than a time. Demerit is the rms horizontal distance between the two lines.")
                .with_charts(charts)
                .with_table(table)],
        }
    }
}

impl ReplayStop {
    fn line(self, done: usize) -> String {
        let (done, of) = (grouped(done as u64), grouped(self.of as u64));
        format!("partial: stopped by {} after {done} of {of} requests", self.signal)
    }
}

fn open(path: &Path) -> Result<Trace<'static>, Failure> {
    let name = path.display().to_string();
    #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
    let file = File::open(path).map_err(|error| Failure::Input(format!("{name}: {error}")))?;
    Trace::open(file, &name, trace::named("validate")).map_err(Failure::input)
}

fn table(agreement: &Agreement) -> Table {
    let columns = [
        "",
        "requests",
        "measured ms",
        "simulated ms",
        "demerit ms",
        "bucketed ms",
        "of mean",
        "MAE ms",
        "median AE ms",
        "within 10 %",
        "correlation",
    ];
    let mut table = Table::new("Agreement", &columns);
    let classes = [
        ("all", Some(&agreement.all)),
        ("reads", agreement.reads.as_ref()),
        ("writes", agreement.writes.as_ref()),
    ];
    for (name, class) in classes {
        if let Some(class) = class {
            table.row(row(name, class));
        }
    }
    table
}

fn row(name: &str, class: &ClassAgreement) -> Vec<String> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let maybe = |value: Option<String>| value.unwrap_or_else(|| "–".to_string());
    vec![
        name.to_string(),
        class.requests.to_string(),
        format!("{:.3}", class.mean_measured_ms),
        format!("{:.3}", class.mean_simulated_ms),
        format!("{:.4}", class.demerit_ms),
        format!("{:.4}", class.demerit_bucketed_ms),
        maybe(class.demerit_share_of_mean.map(percent)),
        format!("{:.3}", class.mae_ms),
        format!("{:.3}", class.median_ae_ms),
        percent(class.within_10_percent),
        maybe(class.correlation.map(|value| significant(value, 3))),
    ]
}

/// Both distributions of the requests of one kind, if there are any.
fn distribution(title: &str, pairs: &[Pair], op: Option<Op>) -> Option<Chart> {
    let chosen: Vec<&Pair> = pairs.iter().filter(|pair| op.is_none_or(|op| pair.op == op)).collect();
    let times = |of: fn(&Pair) -> Nanos| chosen.iter().map(|pair| of(pair)).collect();
    let samples = [("measured", times(|pair| pair.measured)), ("simulated", times(|pair| pair.simulated))];
    report::distributions(title, samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schema_is_that_of_the_type() {
        versioned::schema::check::<Outcome<'_>>("validate");
    }
}
