//! `headstack reproduce`: recomputes published figures, row by row, with a verdict on each.

mod bench;
mod page;
mod results;
mod text;

use crate::failure::Failure;
use crate::files;
use crate::interrupt::Interrupt;
use crate::report::{self, Table};
use crate::signal::Signal;
use crate::value_parser::ListedName;
use bench::Cores;
use clap::builder::PossibleValue;
use headstack_studies::study::{self, Length, Reproduction, Study};
use std::io::Write;
use std::path::PathBuf;

/// The word for all studies.
const EVERY: &str = "all";

/// Compute the figures of published studies again, and print each next to the published one, with a verdict.
///
/// The verdict is `pass`, `held` (within its tolerance, but the figure is a goal of our own, or a parameter was taken from it), `off`, or
/// `not comparable` with the reason. The command writes a report with the study's charts to DIR/ID.html. The exit code is 1 if a row is
/// off.
#[derive(clap::Args)]
pub(crate) struct Reproduce {
    /// The studies.
    #[arg(value_name = "ID", required_unless_present = "list", value_parser = STUDY)]
    ids: Vec<String>,
    /// List the studies.
    #[arg(long, conflicts_with_all = ["ids", "quick", "json", "out", "traces"])]
    list: bool,
    /// Run the short form, with fewer requests and without some rows.
    #[arg(long)]
    quick: bool,
    /// Print the rows as JSON; a list if there are several studies.
    #[arg(long)]
    json: bool,
    /// The folder for the reports; it is created if absent.
    #[arg(short, long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// The folder with the traces that a study needs and that are not part of Headstack.
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
}

/// The name of a study, or of all; help lists them.
const STUDY: ListedName = ListedName {
    check: |id| match study::named(id) {
        Err(error) if id != EVERY => Err(error.to_string()),
        _ => Ok(()),
    },
    known: || {
        let known = study::all().iter().map(|study| PossibleValue::new(study.id).help(study.summary));
        known.chain([PossibleValue::new(EVERY).help("Every one of them.")]).collect()
    },
};

struct Ran {
    study: &'static Study,
    done: Reproduction,
    page: PathBuf,
}

enum Done {
    Whole(Ran),
    Stopped(Signal),
}

impl Reproduce {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.list {
            return list(out);
        }
        files::create_folder(&self.out)?;
        let length = if self.quick { Length::Quick } else { Length::Full };
        let interrupt = Interrupt::watch()?;
        let (mut all, mut stopped, mut not_run) = (Vec::new(), None, Vec::new());
        for study in self.studies() {
            if stopped.is_some() {
                not_run.push(study);
                continue;
            }
            match self.run_one(study, length, &interrupt)? {
                Done::Whole(ran) => {
                    if !self.json {
                        text::print(&ran, length, out)?;
                        // A later signal must not lose the rows of the finished studies.
                        out.flush()?;
                    }
                    all.push(ran);
                }
                Done::Stopped(signal) => {
                    stopped = Some(signal);
                    not_run.push(study);
                }
            }
        }
        if self.json {
            let text = serde_json::to_string_pretty(&results::of(&all, &not_run, length)?);
            writeln!(out, "{}", text.expect("numbers and words are expressible in JSON"))?;
        } else {
            if all.len() > 1 {
                text::print_sum(&all, out)?;
            }
            text::print_not_run(&not_run, out)?;
        }
        stopped.map_or_else(|| verdict(&all), |signal| Err(Failure::Stopped(signal)))
    }

    /// The named studies, each once.
    fn studies(&self) -> impl Iterator<Item = &'static Study> {
        let is_named = |study: &&Study| self.ids.iter().any(|id| id == study.id || id == EVERY);
        study::all().iter().filter(is_named)
    }

    /// Runs a study, and writes its page unless stopped.
    fn run_one(&self, study: &'static Study, length: Length, interrupt: &Interrupt) -> Result<Done, Failure> {
        let bench = Cores::new(study.id, self.traces.clone());
        let done = match bench::reproduce(study, length, bench, interrupt) {
            Ok(done) => done.map_err(|error| Failure::input(error).within(study.id))?,
            Err(signal) => return Ok(Done::Stopped(signal)),
        };
        let page = self.out.join(study.id).with_extension("html");
        files::write_whole(&page, report::to_html(&page::report(study, &done, length)).as_bytes())?;
        Ok(Done::Whole(Ran { study, done, page }))
    }
}

fn list(out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::new("Studies", &["id", "what it computes", "rows"]).with_words(2);
    for study in study::all() {
        let rows = study.expected().map_err(Failure::input)?.len();
        table.row([study.id.to_string(), study.summary.to_string(), rows.to_string()]);
    }
    write!(out, "{}", table.to_text())?;
    Ok(())
}

/// Fails if a row is off.
fn verdict(all: &[Ran]) -> Result<(), Failure> {
    let reported = all.iter().filter_map(|ran| {
        let misses: Vec<&str> = ran.done.misses().map(|row| row.expected.metric.as_str()).collect();
        let rows = ran.done.rows.len();
        let named = misses.iter().take(3).copied().collect::<Vec<_>>().join(", ");
        let more = if misses.len() > 3 { ", …" } else { "" };
        (!misses.is_empty())
            .then(|| format!("{}: {} of {rows} rows off ({named}{more})", ran.study.id, misses.len()))
    });
    let reported: Vec<String> = reported.collect();
    if reported.is_empty() { Ok(()) } else { Err(Failure::Check(reported.join("; "))) }
}

/// A warning about the short form.
fn caution(length: Length) -> Option<&'static str> {
    (length == Length::Quick).then_some("The short form: fewer requests than the tolerances were chosen for.")
}
