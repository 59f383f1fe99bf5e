//! `headstack probe`: learns a disk's mechanics and electronics from its response times.

mod findings;
mod ground_truth;
mod journal;
mod learn;
mod page;
mod progress;
mod results;
mod source;
mod task;
mod text;

use crate::failure::{self, Failure};
use crate::files::{self, NewFile};
use crate::report;
use crate::service::events::Events;
use crate::service::machine::{Load, Watch};
use crate::sim::JsonOutput;
use ground_truth::Truth;
use headstack_host::shell::quoted;
use headstack_model::{Instant, Nanos};
use headstack_probe::drive::{self, ProbeTarget};
use headstack_probe::journal::{Head, Journaled};
use headstack_probe::{Extraction, Progress, spec};
use headstack_tracks::{TrackMap, map};
use learn::Found;
use source::{Source, SourceArgs};
use std::cell::RefCell;
use std::fmt::{self, Display};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use task::{Method, What};

/// Measure a disk from the outside: its spindle speed, where its tracks begin, how its arm moves, what its
/// cache does.
///
/// The disk is a block device or a file (read past the page cache, and not while anything else uses it), an NBD export, or a
/// simulated drive. By default the prober only reads. With --writes it also writes, but only the data that it read from the same
/// blocks before. It learns everything from response times.
#[derive(clap::Args)]
pub(crate) struct Probe {
    #[command(flatten)]
    source: SourceArgs,
    /// What to learn; several values are separated by commas.
    #[arg(long, value_name = "PART,...", default_value = "all", value_delimiter = ',')]
    what: Vec<What>,
    /// How to find tracks.
    #[arg(long, value_name = "METHOD", default_value = "lattice")]
    method: Method,
    /// Stop after this time by the disk's clock, and print what was not learned: `20m`, `90s`.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    budget: Option<Duration>,
    /// Record all answers in this file, so that --resume can continue after an interruption.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Resume from the answers in the journal.
    #[arg(long, requires = "journal")]
    resume: bool,
    /// Write a drive file, which the simulator runs.
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,
    /// Write where tracks begin, as a map for storage nodes and layouts.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Write what was learned as charts into one self-contained HTML file.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Verify an existing map, and repair it at grown defects, instead of finding all tracks again.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["what", "method", "output"])]
    known: Option<PathBuf>,
    /// Compare with a drive file, and end with exit code 1 if the findings differ. [default: the file of
    /// --drive]
    #[arg(long, value_name = "NAME|FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    check: Option<String>,
    /// Print what was learned as JSON, or write it to a file if one is named.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
}

pub(crate) struct Outcome {
    disk: source::SourceInfo,
    found: Found,
    /// The part that was not learned, and why.
    open: Option<Open>,
    /// Answered probes, including those of the journal.
    probes: u64,
    /// Time by the disk's clock.
    took: Nanos,
    /// Other load of the machine, if its clock times the disk.
    machine: Option<Load>,
    verdict: Option<ground_truth::Verdict>,
    not_written: Vec<String>,
}

impl Outcome {
    /// The result of the command.
    ///
    /// *Errors:* what failed, stopped, was not written, or does not agree.
    fn end(&self, journal: Option<&Path>) -> Result<(), Failure> {
        match self.open.as_ref().map(|open| &open.why) {
            Some(Why::Failed(why)) => return Err(Failure::Input(format!("{}: {why}", self.disk.name))),
            Some(Why::Stopped { signal, .. }) => {
                failure::print_line(&match journal {
                    Some(path) => format!("stopped: --journal {} --resume continues from here", quoted(path)),
                    None => "stopped: with --journal FILE, --resume would continue from here".to_string(),
                });
                return Err(Failure::Command(128 + signal));
            }
            _ => {}
        }
        if !self.not_written.is_empty() {
            return Err(Failure::Check(self.not_written.join("; ")));
        }
        if let Some(verdict) = &self.verdict { verdict.end() } else { Ok(()) }
    }
}

struct Files {
    drive: Option<NewFile>,
    map: Option<NewFile>,
}

impl Files {
    /// Writes the files for which enough was learned; returns which were not written and why.
    fn write(self, outcome: &Outcome) -> Result<Vec<String>, Failure> {
        let found = &outcome.found;
        let mut not_written = Vec::new();
        let mut skip = |file: &NewFile, why: &dyn Display| {
            not_written.push(format!("{} was not written: {why}", file.path().display()));
        };
        if let Some(file) = self.map {
            match &found.map {
                Some(tracks) => {
                    let mut bytes = Vec::new();
                    map::write(&mut bytes, &outcome.disk.identity, tracks).map_err(Failure::input)?;
                    file.fill(&bytes)?;
                }
                None => skip(&file, &left_open(found, MAP_NEEDS)),
            }
        }
        if let Some(file) = self.drive {
            match drive_file(&file, outcome) {
                Ok(text) => file.fill(text.as_bytes())?,
                Err(why) => skip(&file, &why),
            }
        }
        Ok(not_written)
    }
}

/// Parts that must be learned before a file can be written.
const DRIVE_NEEDS: &[What] = &[What::Seek, What::Cache];
const MAP_NEEDS: &[What] = &[What::Tracks];

fn drive_file(file: &NewFile, outcome: &Outcome) -> Result<String, String> {
    let found = &outcome.found;
    let (Some(mechanics), Some(electronics)) = (&found.mechanics, &found.electronics) else {
        return Err(left_open(found, DRIVE_NEEDS));
    };
    let name = file.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let spec = spec::drive_file(&name, &outcome.disk.info, mechanics, electronics);
    spec.map(|spec| spec::text(&spec)).map_err(|error| error.to_string())
}

fn left_open(found: &Found, needed: &[What]) -> String {
    format!("{} left open", task::names(&found.missing(needed)))
}

struct Open {
    parts: Vec<What>,
    why: Why,
}

enum Why {
    Time(Progress),
    Stopped { signal: u8, at: Progress },
    Failed(String),
}

impl Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |f: &mut fmt::Formatter<'_>, what: &str, at: &Progress| {
            write!(f, "{what} at {} ({:.0} %)", at.phase, 100.0 * at.share)
        };
        match self {
            Why::Time(progress) => at(f, "the time budget ended", progress),
            Why::Stopped { at: progress, .. } => at(f, "stopped", progress),
            Why::Failed(why) => f.write_str(why),
        }
    }
}

impl Probe {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let signals = Events::watch(1, false, false)?;
        let truth = self.truth()?;
        let known = self.known.iter().map(PathBuf::as_path);
        let inputs: Vec<&Path> = known.chain(self.source.drive().map(Path::new)).collect();
        let outputs = [
            ("--json", self.json.as_deref()),
            ("--report", self.report.as_deref()),
            ("--output", self.output.as_deref()),
            ("--map", self.map.as_deref()),
            ("--journal", self.journal.as_deref()),
        ];
        files::check_apart(&inputs, &outputs)?;
        let json = JsonOutput::new(self.json.as_deref())?;
        let page = NewFile::if_named(self.report.as_deref())?;
        let wanted = if self.known.is_some() { &[What::Tracks] } else { &self.what[..] };
        let parts = task::with_needs(wanted, self.method).map_err(Failure::Input)?;
        let files = self.files(&parts)?;
        let source = self.source.open(self.method)?;
        let mut outcome = self.learn(source, &parts, &signals)?;
        outcome.verdict = truth.map(|truth| truth.judge(&outcome.found, outcome.open.is_some()));
        outcome.not_written = files.write(&outcome)?;
        if let Some(page) = page {
            page.fill(report::to_html(&page::report(&outcome)).as_bytes())?;
        }
        if !json.write(|| results::to_json(&outcome), out)? {
            text::print(&outcome, out)?;
        }
        out.flush()?;
        outcome.end(self.journal.as_deref())
    }

    /// Opens the output files before the work is done, so that one that cannot be written is reported early.
    fn files(&self, parts: &[What]) -> Result<Files, Failure> {
        let needs = |option: &str, path: &Option<PathBuf>, needed: &[What]| {
            let missing = needed.iter().find(|part| !parts.contains(part));
            match missing.filter(|_| path.is_some()) {
                Some(part) => Err(Failure::Input(format!("{option} needs {} among --what", part.name()))),
                None => Ok(()),
            }
        };
        needs("--output", &self.output, DRIVE_NEEDS)?;
        needs("--map", &self.map, MAP_NEEDS)?;
        Ok(Files {
            drive: NewFile::if_named(self.output.as_deref())?,
            map: NewFile::if_named(self.map.as_deref())?,
        })
    }

    fn truth(&self) -> Result<Option<Truth>, Failure> {
        let Some(named) = &self.check else { return Ok(None) };
        let name = match (named.as_str(), self.source.drive()) {
            ("", Some(drive)) => drive,
            ("", None) => {
                let hint = "--check=NAME names the drive file that a device or an export is compared with";
                return Err(Failure::Input(hint.to_string()));
            }
            (named, _) => named,
        };
        Truth::from_spec(&crate::catalog::load(name)?).map(Some)
    }

    fn task(&self, parts: &[What]) -> String {
        let known = self.known.as_ref().map(|path| format!(" {}", path.display()));
        task::name(self.method, parts) + &known.unwrap_or_default()
    }

    fn learn(&self, source: Source, parts: &[What], signals: &Events) -> Result<Outcome, Failure> {
        let source_info = source.source_info();
        let machine = (!source_info.is_simulated).then(Watch::begin);
        let known = self.known.as_deref().map(|path| known_map(path, &source_info)).transpose()?;
        let head = Head::new(&source.info(), &source_info.own_name(), &self.task(parts));
        let kept = journal::open(self.journal.as_deref(), self.resume, &head)?;
        let begun = kept.known.last().map_or(Instant::ZERO, |record| record.answer.ended);
        let end = self.budget.map_or(Instant::MAX, |budget| begun + Nanos(budget.as_nanos() as u64));
        let mut disk = Journaled::new(source, kept.known, kept.to);
        let found = Rc::new(RefCell::new(Found::default()));
        let mut extraction = {
            let (task, found) = ((self.method, parts.to_vec()), Rc::clone(&found));
            Extraction::new(disk.info(), async move |disk| learn::learn(disk, task, known, &found).await)
        };
        let mut bar = progress::Bar::new();
        let (mut probes, mut last, mut how_far) = (0, Instant::ZERO, Progress::default());
        let ended = drive::run(&mut extraction, &mut disk, |_, answer, progress| {
            (probes, last) = (probes + 1, last.max(answer.ended));
            bar.show(progress, probes, last);
            how_far.clone_from(progress);
            last < end && signals.asked().is_none()
        });
        bar.finish();
        drop(extraction);
        let machine = machine.map(|machine| machine.load());
        let why = match ended {
            Ok(Some(Ok(()))) => None,
            Ok(Some(Err(why))) => Some(Why::Failed(why + &busy_note(machine))),
            Ok(None) => Some(match signals.asked() {
                Some(signal) => Why::Stopped { signal, at: how_far },
                None => Why::Time(how_far),
            }),
            Err(error) => Some(Why::Failed(error.to_string())),
        };
        let found = found.take();
        if let (Some(Why::Failed(why)), true) = (&why, found.is_empty()) {
            return Err(Failure::Input(format!("{}: {why}", source_info.name)));
        }
        let open = why.map(|why| Open { parts: found.missing(parts), why });
        let (verdict, not_written) = (None, Vec::new());
        Ok(Outcome {
            disk: source_info,
            found,
            open,
            probes,
            took: last.since_start(),
            machine,
            verdict,
            not_written,
        })
    }
}

/// A note that the machine was busy, which may be the cause of a failure.
fn busy_note(machine: Option<Load>) -> String {
    match machine.filter(Load::is_high) {
        Some(load) => {
            format!("; this machine was busy meanwhile ({load}): probe the disk when less runs here")
        }
        None => String::new(),
    }
}

/// A known map, if it is of this disk.
fn known_map(path: &Path, disk: &source::SourceInfo) -> Result<TrackMap, Failure> {
    let wrong = |error: String| Failure::Input(format!("{}: {error}", path.display()));
    let (identity, map) = map::read(&mut files::open(path)?).map_err(|error| wrong(error.to_string()))?;
    identity.admits(&disk.identity).map_err(|error| wrong(error.to_string()))?;
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_busy_machine_is_noted_in_a_failure() {
        let load = |waited| Some(Load { waited: Some(waited), stolen: Some(0.0) });
        assert_eq!(busy_note(None), "");
        assert_eq!(busy_note(load(0.02)), "");
        let note = busy_note(load(0.9));
        assert!(
            note.starts_with("; this machine was busy meanwhile (programs waited for a processor in 90 %"),
            "{note}"
        );
    }
}
