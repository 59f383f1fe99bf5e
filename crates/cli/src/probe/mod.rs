//! `headstack probe`: learn a disk from the outside.

mod findings;
mod journal;
mod learn;
mod page;
mod progress;
mod results;
mod source;
mod task;
mod text;
mod truth;

use crate::failure::Failure;
use crate::files::{self, NewFile};
use crate::report;
use crate::sim::JsonOutput;
use headstack_model::Nanos;
use headstack_tracks::drive::{self, Answers};
use headstack_tracks::journal::{Head, Journaled};
use headstack_tracks::{Extraction, Progress, TrackMap, map, spec};
use learn::Found;
use source::{Source, SourceArgs};
use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use task::{Method, What};
use truth::Truth;

/// Learn a disk from the outside: how it turns, where its tracks begin, how its arm moves, what its cache does.
///
/// The disk is a block device or a file (read past the page cache, and not while anything else uses it), an NBD export, or a
/// simulated drive. It is only read, unless --writes allows writes; those put there what was there. The times of its answers are
/// all that is looked at.
#[derive(clap::Args)]
pub(crate) struct Probe {
    #[command(flatten)]
    source: SourceArgs,
    /// What to learn, several with commas between them.
    #[arg(long, value_name = "PART,…", default_value = "all", value_delimiter = ',')]
    what: Vec<What>,
    /// How to find tracks.
    #[arg(long, value_name = "METHOD", default_value = "lattice")]
    method: Method,
    /// Stop after this time of the disk, and say what is left open: `20m`, `90s`.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    budget: Option<Duration>,
    /// Keep all answers in this file, so that --resume can go on after an interruption.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Go on from the answers in the journal.
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
    /// Look whether a map that was written before still holds, and mend it where defects have grown, instead of finding tracks
    /// anew.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["what", "method", "output"])]
    known: Option<PathBuf>,
    /// Compare with a drive file, and end with 1 where it disagrees: that of --drive where none is named.
    #[arg(long, value_name = "NAME|FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    check: Option<String>,
    /// Print what was learned as JSON; into a file if one is named.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// What came of it.
pub(crate) struct Outcome {
    /// The disk.
    disk: source::Told,
    /// What was learned.
    found: Found,
    /// What was not, and how far it had come.
    open: Option<Open>,
    /// Questions that were answered, those in the journal included.
    probes: u64,
    /// Time of the disk's clock.
    took: Nanos,
    /// How it agrees with the truth.
    verdict: Option<truth::Verdict>,
}

/// Files that are written of what was learned.
struct Files {
    drive: Option<NewFile>,
    map: Option<NewFile>,
}

impl Files {
    /// Writes those for which enough was learned.
    fn write(self, outcome: &Outcome) -> Result<(), Failure> {
        let (facts, found) = (&outcome.disk.facts, &outcome.found);
        if let (Some(file), Some(mechanics), Some(electronics)) =
            (self.drive, &found.mechanics, &found.electronics)
        {
            let name = file.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let spec = spec::drive_file(&name, facts, mechanics, electronics);
            file.fill(spec::text(&spec).as_bytes())?;
        }
        if let (Some(file), Some(tracks)) = (self.map, &found.map) {
            let mut bytes = Vec::new();
            map::write(&mut bytes, &outcome.disk.identity, tracks).map_err(Failure::input)?;
            file.fill(&bytes)?;
        }
        Ok(())
    }
}

/// What was left when the time was over.
struct Open {
    parts: Vec<What>,
    progress: Progress,
}

impl Probe {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let truth = self.truth()?;
        let json = JsonOutput::new(self.json.as_deref())?;
        let page = NewFile::if_named(self.report.as_deref())?;
        let wanted = if self.known.is_some() { &[What::Tracks] } else { &self.what[..] };
        let parts = task::with_needs(wanted, self.method).map_err(Failure::Input)?;
        let files = self.files(&parts)?;
        let source = self.source.open(self.method)?;
        let mut outcome = self.learn(source, &parts)?;
        outcome.verdict = truth.map(|truth| truth.judge(&outcome.found));
        files.write(&outcome)?;
        if let Some(page) = page {
            page.fill(report::to_html(&page::report(&outcome)).as_bytes())?;
        }
        if !json.write(|| results::to_json(&outcome), out)? {
            text::print(&outcome, out)?;
        }
        outcome.verdict.as_ref().map_or(Ok(()), |verdict| verdict.end(outcome.open.is_some()))
    }

    /// Files of what is to be learned, so that a place that cannot be written is told before the work is done.
    fn files(&self, parts: &[What]) -> Result<Files, Failure> {
        let needs = |option: &str, path: &Option<PathBuf>, needed: &[What]| {
            let missing = needed.iter().find(|part| !parts.contains(part));
            match missing.filter(|_| path.is_some()) {
                Some(part) => Err(Failure::Input(format!("{option} needs {} among --what", part.name()))),
                None => Ok(()),
            }
        };
        needs("--output", &self.output, &[What::Seek, What::Cache])?;
        needs("--map", &self.map, &[What::Tracks])?;
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
        Truth::of(&crate::catalog::load(name)?).map(Some)
    }

    /// What a journal calls what is done.
    fn task(&self, parts: &[What]) -> String {
        let known = self.known.as_ref().map(|path| format!(" {}", path.display()));
        task::name(self.method, parts) + &known.unwrap_or_default()
    }

    fn learn(&self, source: Source, parts: &[What]) -> Result<Outcome, Failure> {
        let told = source.told();
        let known = self.known.as_deref().map(|path| known(path, &told)).transpose()?;
        let head = Head::new(&source.facts(), &told.own_name(), &self.task(parts));
        let kept = journal::open(self.journal.as_deref(), self.resume, &head)?;
        let begun = kept.known.last().map_or(Nanos::ZERO, |record| record.answer.ended);
        let end = self.budget.map_or(Nanos::MAX, |budget| begun + Nanos(budget.as_nanos() as u64));
        let mut disk = Journaled::new(source, kept.known, kept.to);
        let found = Rc::new(RefCell::new(Found::default()));
        let mut extraction = {
            let (task, found) = ((self.method, parts.to_vec()), Rc::clone(&found));
            Extraction::new(disk.facts(), async move |disk| learn::learn(disk, task, known, &found).await)
        };
        let mut bar = progress::Bar::new();
        let (mut probes, mut last, mut how_far) = (0, Nanos::ZERO, Progress::default());
        let ended = drive::run(&mut extraction, &mut disk, |_, answer, progress| {
            (probes, last) = (probes + 1, last.max(answer.ended));
            bar.show(progress, probes, last);
            how_far.clone_from(progress);
            last < end
        });
        bar.finish();
        let at = |message: String| Failure::Input(format!("{}: {message}", told.name));
        let result = ended.map_err(|error| at(error.to_string()))?;
        let is_open = result.is_none();
        result.unwrap_or(Ok(())).map_err(at)?;
        drop(extraction);
        let found = found.take();
        let open = is_open.then(|| Open { parts: found.missing(parts), progress: how_far });
        Ok(Outcome { disk: told, found, open, probes, took: last, verdict: None })
    }
}

/// A map that was written before, of this disk.
fn known(path: &Path, disk: &source::Told) -> Result<TrackMap, Failure> {
    let wrong = |error: String| Failure::Input(format!("{}: {error}", path.display()));
    let (identity, map) = map::read(&mut files::open(path)?).map_err(|error| wrong(error.to_string()))?;
    identity.admits(&disk.identity).map_err(|error| wrong(error.to_string()))?;
    Ok(map)
}
