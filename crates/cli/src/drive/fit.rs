//! `headstack drive fit`.

use super::fit_page;
use crate::catalog;
use crate::failure::Failure;
use crate::files;
use crate::interrupt::Interrupt;
use crate::progress;
use crate::report::{self, Table};
use crate::units::{grouped, significant};
use crate::versioned;
use headstack_fit::{FitChange, FitError, FitProgress, Fitted, ObservedTrace};
use headstack_model::DriveSpec;
use headstack_workload::trace::{self, ColumnNames, Format, Record, Trace};
use indicatif::ProgressBar;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Fit a drive file to traces of what the disk did, each with issue and completion times.
///
/// The requests are replayed on the simulated drive, whose numbers move until its response times have the distributions of the
/// measured ones. The last part of each trace is held back, and its error says how well the file predicts. Start from a shipped drive
/// of the same kind, or from a data sheet with `headstack drive new`. The first Ctrl-C ends with the best drive so far.
#[derive(clap::Args)]
pub(crate) struct DriveFit {
    /// The traces, of one disk: in any format that has completions (`headstack trace formats`).
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// The drive at the start: a shipped one (`headstack drive list`) or a drive file.
    #[arg(long, value_name = "NAME|FILE")]
    from: String,
    /// Where to write the fitted drive file.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Format of the traces. [default: recognised]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<&'static Format>,
    /// What the columns of a table are that have other names: time_us=NAME,lba=NAME,sectors=NAME,op=NAME.
    #[arg(long, value_name = "COLUMN=NAME,…", value_parser = ColumnNames::parse)]
    columns: Option<ColumnNames>,
    /// The disk's name in the traces, if they have several.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The last share of each trace, which the fit does not see.
    #[arg(long, value_name = "PERCENT", default_value_t = 30, value_parser = clap::value_parser!(u32).range(10..=90))]
    hold_back: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Also write a page: the measured and simulated distributions of the requests that were held back.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

#[derive(JsonSchema, Serialize)]
struct FitResults {
    /// The drive at the start.
    from: String,
    /// The signal that ended the fit early.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<&'static str>,
    /// Requests that the fit saw.
    fitted_requests: usize,
    /// Requests that were held back.
    held_requests: usize,
    /// Simulated replays.
    replays: usize,
    /// FitFigures on the requests that the fit saw.
    fitted: ComparedErrors,
    /// FitFigures on those that were held back.
    held: ComparedErrors,
    /// Why not to trust the file, if there is a reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// The keys that changed.
    changes: Vec<ChangedKey>,
}

#[derive(JsonSchema, Serialize)]
struct ComparedErrors {
    before: FitFigures,
    after: FitFigures,
}

#[derive(JsonSchema, Serialize)]
struct FitFigures {
    /// Mean measured response.
    mean_measured_ms: f64,
    /// The rms distance between the two distributions of responses.
    demerit_ms: f64,
    /// The mean absolute error of single requests.
    mae_ms: f64,
}

#[derive(JsonSchema, Serialize)]
struct ChangedKey {
    key: String,
    #[schemars(schema_with = "value_of_file")]
    before: Option<serde_json::Value>,
    #[schemars(schema_with = "value_of_file")]
    after: Option<serde_json::Value>,
    /// How much larger the error of the fit is with the value before.
    gain_ms: f64,
}

/// The schema of a value that the drive file describes.
fn value_of_file(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "description": "A value of the drive file; null for none.", "$defs": {} })
}

impl DriveFit {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let inputs: Vec<&Path> = self.traces.iter().map(PathBuf::as_path).collect();
        files::check_apart(
            &inputs,
            &[("--output", Some(&self.output)), ("--report", self.report.as_deref())],
        )?;
        let (spec, text) = catalog::load_with_text(&self.from)?;
        let traces: Vec<ObservedTrace> =
            self.traces.iter().map(|path| self.read(path, &spec)).collect::<Result<_, _>>()?;
        let interrupt = Interrupt::watch()?;
        let bar = ProgressBar::new_spinner().with_style(progress::style("{spinner} {msg}, {elapsed}"));
        let continues = |FitProgress { replays, error_ms }: FitProgress| {
            bar.set_message(format!("{} replays, error {error_ms:.3} ms", grouped(replays as u64)));
            bar.tick();
            interrupt.received().is_none()
        };
        let fitted = headstack_fit::fit(&spec, &traces, self.share(), &continues);
        bar.finish_and_clear();
        let fitted =
            fitted.ok_or_else(|| Failure::Input(format!("{}: the drive cannot be built", self.from)))?;
        if !fitted.is_better() {
            let (before, after) = (fitted.held.before.demerit_ms, fitted.held.after.demerit_ms);
            return Err(Failure::Input(format!(
                "{}: no drive was found that predicts the requests held back better ({after:.3} ms instead of {before:.3}); \
                 nothing was written",
                self.from
            )));
        }
        let stopped = interrupt.received();
        self.write(&text, &spec, &fitted, &traces)?;
        let results = self.results(&fitted, &traces, stopped.map(|signal| signal.name()));
        if self.json {
            versioned::print(&results, out)?;
        } else {
            self.print(&results, &fitted, out)?;
        }
        stopped.map_or(Ok(()), |signal| Err(Failure::Stopped(signal)))
    }

    /// The requests of a trace.
    fn read(&self, path: &Path, spec: &DriveSpec) -> Result<ObservedTrace, Failure> {
        let name = path.display().to_string();
        let columns = self.columns.clone().unwrap_or_default();
        let opened = Trace::open_with_columns(files::open(path)?, &name, self.format, &columns);
        let mut trace = opened.map_err(Failure::input)?;
        let mut records: Vec<Record> = Vec::new();
        while let Some(record) = trace.next_record().map_err(Failure::input)? {
            let is_meant = |device: &String| trace.header().label(record.device) == *device;
            if self.device.as_ref().is_none_or(is_meant) {
                records.push(record);
            }
        }
        let observed = ObservedTrace::collect(records.into_iter(), spec.sector_bytes, spec.capacity_sectors);
        observed.map_err(|fault| Failure::Input(format!("{name}: {fault}")))
    }

    /// Writes the drive file and the page.
    fn write(
        &self,
        text: &str,
        spec: &DriveSpec,
        fitted: &Fitted,
        traces: &[ObservedTrace],
    ) -> Result<(), Failure> {
        let names = self.traces.iter().map(|path| files_name(path)).collect::<Vec<_>>().join(", ");
        let seen = self.count(traces, false);
        let source = format!(
            "headstack drive fit from {}: {} requests of {names}; demerit {:.3} ms on {} more that were held back",
            files_name(Path::new(&self.from)),
            grouped(seen as u64),
            fitted.held.after.demerit_ms,
            grouped(self.count(traces, true) as u64),
        );
        let name =
            self.output.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().to_lowercase());
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let file = headstack_fit::write_changes(text, &fitted.changes, &name, &source);
        let file = file.map_err(|error| Failure::Input(format!("{}: {error}", self.from)))?;
        DriveSpec::parse(&file, &self.output.display().to_string()).map_err(Failure::input)?;
        if let Some(path) = &self.report {
            let held: Vec<_> =
                traces.iter().map(|trace| (&trace.requests[..], trace.split(self.share()))).collect();
            let page = fit_page::page(
                &held,
                [spec, &fitted.spec],
                [key_table(&fitted.changes), error_table(fitted)],
            );
            files::write_whole(path, report::to_html(&page).as_bytes())?;
        }
        files::write_whole(&self.output, file.as_bytes())
    }

    /// The share of each trace that is held back.
    fn share(&self) -> f64 {
        f64::from(self.hold_back) / 100.0
    }

    /// Requests that were held back, or those that the fit saw.
    fn count(&self, traces: &[ObservedTrace], held: bool) -> usize {
        let seen: usize = traces.iter().map(|trace| trace.split(self.share())).sum();
        if held { traces.iter().map(|trace| trace.requests.len()).sum::<usize>() - seen } else { seen }
    }

    fn results(
        &self,
        fitted: &Fitted,
        traces: &[ObservedTrace],
        stopped: Option<&'static str>,
    ) -> FitResults {
        let json =
            |value: &Option<toml::Value>| value.as_ref().and_then(|value| serde_json::to_value(value).ok());
        let changed = |change: &FitChange| ChangedKey {
            key: change.key.clone(),
            before: json(&change.before),
            after: json(&change.after),
            gain_ms: change.gain_ms,
        };
        let compared = |compared: &headstack_fit::FitComparison| ComparedErrors {
            before: errors(&compared.before),
            after: errors(&compared.after),
        };
        FitResults {
            from: self.from.clone(),
            stopped,
            fitted_requests: self.count(traces, false),
            held_requests: self.count(traces, true),
            replays: fitted.replays,
            fitted: compared(&fitted.seen),
            held: compared(&fitted.held),
            note: far_off(&fitted.held.after),
            changes: fitted.changes.iter().map(changed).collect(),
        }
    }

    fn print(&self, results: &FitResults, fitted: &Fitted, out: &mut dyn Write) -> Result<(), Failure> {
        if let Some(signal) = results.stopped {
            writeln!(out, "partial: stopped by {signal}, the best drive so far")?;
        }
        let count = |count: usize| grouped(count as u64);
        writeln!(
            out,
            "{} requests fitted, {} held back; {} replays\n",
            count(results.fitted_requests),
            count(results.held_requests),
            count(results.replays)
        )?;
        write!(out, "{}\n{}", error_table(fitted).to_text(), key_table(&fitted.changes).to_text())?;
        if let Some(note) = &results.note {
            writeln!(out, "\nnote: {note}")?;
        }
        Ok(())
    }
}

/// The share of the mean response from which a demerit is more than the model's own.
const FAR_OFF: f64 = 0.1;

/// The note for a drive that is still far from the disk.
fn far_off(error: &FitError) -> Option<String> {
    let share = error.demerit_ms / error.mean_ms;
    (share > FAR_OFF).then(|| {
        format!(
            "the fitted drive is still off by {:.0} % of the mean response; the trace may have what a drive file cannot say: a queue of \
             the host, other users of the disk, errors",
            100.0 * share
        )
    })
}

fn files_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn format(name: &str) -> Result<&'static Format, String> {
    trace::named(name).ok_or_else(|| "no format is called so (headstack trace formats)".to_string())
}

fn errors(error: &FitError) -> FitFigures {
    FitFigures { mean_measured_ms: error.mean_ms, demerit_ms: error.demerit_ms, mae_ms: error.mae_ms }
}

/// The errors before and after, on the requests that were held back and those that were not.
fn error_table(fitted: &Fitted) -> Table {
    let columns = ["requests", "drive", "measured ms", "demerit ms", "of mean", "MAE ms"];
    let mut table = Table::new("Errors", columns).with_words(2);
    let parts = [("held back", &fitted.held), ("fitted", &fitted.seen)];
    for (part, compared) in parts {
        for (drive, error) in [("start", &compared.before), ("fitted", &compared.after)] {
            table.row([
                part.to_string(),
                drive.to_string(),
                format!("{:.3}", error.mean_ms),
                format!("{:.4}", error.demerit_ms),
                format!("{:.1} %", 100.0 * error.demerit_ms / error.mean_ms),
                format!("{:.3}", error.mae_ms),
            ]);
        }
    }
    table
}

/// The keys that changed, those first that matter most.
fn key_table(changes: &[FitChange]) -> Table {
    let mut table = Table::new("Changed keys", ["key", "before", "now", "error without ms"]).with_words(3);
    let mut sorted: Vec<&FitChange> = changes.iter().collect();
    sorted.sort_by(|one, other| other.gain_ms.total_cmp(&one.gain_ms));
    for change in sorted {
        let gain = if change.gain_ms == 0.0 { "–".to_string() } else { format!("{:+.3}", change.gain_ms) };
        table.row([change.key.clone(), shown(&change.before), shown(&change.after), gain]);
    }
    table
}

fn shown(value: &Option<toml::Value>) -> String {
    match value {
        None => "–".to_string(),
        Some(toml::Value::Float(number)) => significant(*number, 4),
        Some(toml::Value::String(word)) => word.clone(),
        Some(toml::Value::Array(values)) => format!("{} values", values.len()),
        Some(toml::Value::Table(table)) => table.keys().next().cloned().unwrap_or_default(),
        Some(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schema_is_that_of_the_type() {
        versioned::schema::check::<FitResults>("drive-fit");
    }
}
