//! Workloads: the requests to a rig, from a file, a pattern or a load of the program.

mod info;
mod job;
mod pattern;
mod trace;

pub use info::{JobInfo, JobSection, WorkloadInfo};
pub use pattern::{AccessPattern, ArrivalProcess, PatternSpec};
pub use trace::TraceOptions;

use crate::error::{Error, PatternError};
use crate::files::{FileSource, read_text};
use headstack_model::{Instant, Nanos};
use headstack_personalities::LoadFile;
use headstack_sim::Engine;
use headstack_workload::fio::FioLoad;
use headstack_workload::trace::Record;
use headstack_workload::{Load, LoadPhase, Poll, VolumeInfo};
use job::JobSource;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use trace::{TraceReplay, TraceSource};

/// Bytes at the start of a file that determine its kind.
const HEAD_BYTES: u64 = 4096;

/// The kinds of workload files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// A fio job file.
    FioJob,
    /// A load file: generators described by keys.
    LoadFile,
    /// A trace of any format.
    Trace,
}

impl WorkloadKind {
    /// The kind of the file at `path`: by its ending (`.toml`, `.fio`); a trace if `options` set its format; else a job file if
    /// its first line that is neither empty nor a comment is a section header.
    ///
    /// *Errors:* it cannot be read.
    pub fn detect(path: &str, options: &TraceOptions, files: &dyn FileSource) -> Result<WorkloadKind, Error> {
        match Path::new(path).extension().and_then(|ending| ending.to_str()) {
            Some("toml") => Ok(WorkloadKind::LoadFile),
            Some("fio") => Ok(WorkloadKind::FioJob),
            _ if options.format.is_some() => Ok(WorkloadKind::Trace),
            _ if begins_with_section(open(path, files)?).map_err(|error| Error::read(path, &error))? => {
                Ok(WorkloadKind::FioJob)
            }
            _ => Ok(WorkloadKind::Trace),
        }
    }
}

fn open(path: &str, files: &dyn FileSource) -> Result<Box<dyn Read>, Error> {
    files.open(Path::new(path)).map_err(|error| Error::read(path, &error))
}

/// Whether the first line that is neither empty nor a comment is a section header.
fn begins_with_section(file: impl Read) -> io::Result<bool> {
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    let text = String::from_utf8_lossy(&head);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    Ok(first.is_some_and(|line| line.starts_with('[') && line.ends_with(']')))
}

/// The workload of a simulation. It is checked as far as possible without the rig.
pub struct Workload<'a> {
    source: WorkloadSource<'a>,
}

enum WorkloadSource<'a> {
    Job(Box<JobSource<'a>>),
    Generators { name: String, file: Box<LoadFile> },
    Trace(Box<TraceSource>),
    Pattern(PatternSpec),
    Load { name: String, load: Box<dyn Load + 'a>, sources: Vec<String> },
}

impl<'a> Workload<'a> {
    /// The workload in a file, whose kind is [detected](WorkloadKind::detect).
    ///
    /// *Errors:* the file cannot be read or is invalid, with line and key.
    pub fn open(
        path: &str,
        options: &TraceOptions,
        files: &'a dyn FileSource,
    ) -> Result<Workload<'a>, Error> {
        Workload::open_as(WorkloadKind::detect(path, options, files)?, path, options, files)
    }

    /// The workload in a file of this kind.
    ///
    /// *Errors:* the file cannot be read or is invalid, with line and key.
    pub fn open_as(
        kind: WorkloadKind,
        path: &str,
        options: &TraceOptions,
        files: &'a dyn FileSource,
    ) -> Result<Workload<'a>, Error> {
        let file = Path::new(path);
        match kind {
            WorkloadKind::FioJob => Workload::fio_job(&read_text(files, file)?, path, files),
            WorkloadKind::LoadFile => Workload::load_file(&read_text(files, file)?, path),
            WorkloadKind::Trace => {
                let trace = TraceSource::open(open(path, files)?, files.length(file), path, options)?;
                Ok(Workload { source: WorkloadSource::Trace(Box::new(trace)) })
            }
        }
    }

    /// The jobs of a fio job file. `origin` (the file's name) goes into errors and results; `files` opens the files that the jobs
    /// include and the logs that they replay.
    ///
    /// *Errors:* the first fault, with its line and key.
    pub fn fio_job(text: &str, origin: &str, files: &'a dyn FileSource) -> Result<Workload<'a>, Error> {
        let job = JobSource::parse(text, origin, files)?;
        Ok(Workload { source: WorkloadSource::Job(Box::new(job)) })
    }

    /// The generators of a load file. `origin` (the file's name) goes into errors and results.
    ///
    /// *Errors:* the first fault, with its line and key.
    pub fn load_file(text: &str, origin: &str) -> Result<Workload<'a>, Error> {
        let file = Box::new(LoadFile::parse(text, origin)?);
        Ok(Workload { source: WorkloadSource::Generators { name: info::file_name(origin), file } })
    }

    /// A trace, compressed or not. `origin` (the file's name) goes into errors and results.
    ///
    /// *Errors:* it cannot be read, or its format is not recognised.
    pub fn trace(
        input: impl Read + 'static,
        origin: &str,
        options: &TraceOptions,
    ) -> Result<Workload<'a>, Error> {
        let trace = TraceSource::open(input, None, origin, options)?;
        Ok(Workload { source: WorkloadSource::Trace(Box::new(trace)) })
    }

    /// A trace of requests that the program has, for example from columns. `name` goes into errors and results; `options` about files have
    /// no effect.
    pub fn records(
        records: impl Iterator<Item = Record> + 'static,
        name: &str,
        options: &TraceOptions,
    ) -> Workload<'a> {
        let trace = TraceSource::from_records(records, name, options);
        Workload { source: WorkloadSource::Trace(Box::new(trace)) }
    }

    /// A pattern on the first volume.
    pub fn pattern(spec: PatternSpec) -> Workload<'a> {
        Workload { source: WorkloadSource::Pattern(spec) }
    }

    /// A load of the program, or a `&mut` of one whose state the program needs later. All its sources report as one job of that
    /// name; [`Workload::with_sources`] separates them.
    pub fn from_load(name: &str, load: impl Load + 'a) -> Workload<'a> {
        let (name, load) = (name.to_string(), Box::new(load));
        Workload { source: WorkloadSource::Load { name, load, sources: Vec::new() } }
    }

    /// Makes each source of the program's load report as a job: source number n has the n-th of these names.
    ///
    /// # Panics
    ///
    /// If the workload is not [from a load](Workload::from_load), because its jobs have names of their own.
    pub fn with_sources<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Workload<'a> {
        let WorkloadSource::Load { sources, .. } = &mut self.source else {
            panic!("the jobs of a file have their names there");
        };
        *sources = names.into_iter().map(Into::into).collect();
        self
    }

    /// The names of the jobs of a fio job file, in their order; none of another workload.
    pub fn job_names(&self) -> Vec<&str> {
        match &self.source {
            WorkloadSource::Job(job) => job.names(),
            _ => Vec::new(),
        }
    }

    /// Gives every job of a fio job file except `job` the idle I/O class, which is served last (`ionice -c 3`). Other workloads do not
    /// change.
    pub fn with_idle_others(mut self, job: &str) -> Workload<'a> {
        if let WorkloadSource::Job(source) = &mut self.source {
            source.set_idle_others(job);
        }
        self
    }

    /// Lets each of several jobs of a fio job file that have no `startdelay` begin at random within the first `most`. Other workloads do not change.
    pub(crate) fn with_drawn_starts(mut self, most: Nanos) -> Workload<'a> {
        if let WorkloadSource::Job(source) = &mut self.source {
            source.draw_starts(most);
        }
        self
    }

    /// Puts every job of a fio job file except `job` into the control group `group`, whose limits are those of `host.cgroup` of the rig. Other
    /// workloads do not change.
    pub fn with_cgroup_of_others(mut self, job: &str, group: &str) -> Workload<'a> {
        if let WorkloadSource::Job(source) = &mut self.source {
            source.set_cgroup_of_others(job, group);
        }
        self
    }

    /// The load on the volumes of a rig. `devices` maps devices of a trace to volumes, if the rig defines that.
    pub(crate) fn build(
        self,
        engine: &Engine,
        volumes: &[VolumeInfo],
        devices: Option<BTreeMap<String, u32>>,
        seed: u64,
    ) -> Result<(BuiltLoad<'a>, WorkloadInfo), Error> {
        Ok(match self.source {
            WorkloadSource::Job(job) => {
                let (load, info) = job.build(volumes, seed)?;
                (BuiltLoad::Fio(Box::new(load)), info)
            }
            WorkloadSource::Generators { name, file } => {
                let load = file.build(volumes, seed)?;
                (BuiltLoad::Generated(load), WorkloadInfo::of_one_job(&name, "load file"))
            }
            WorkloadSource::Trace(trace) => {
                let (replay, info) = trace.build(volumes, devices);
                (BuiltLoad::Trace(Box::new(replay)), info)
            }
            WorkloadSource::Pattern(spec) => {
                let volume = volumes.first().ok_or(PatternError::NoVolume)?;
                let load = spec.build(volume, engine.device(0), seed)?;
                (BuiltLoad::Generated(load), WorkloadInfo::of_one_job("pattern", "pattern"))
            }
            WorkloadSource::Load { name, load, sources } => {
                (BuiltLoad::Generated(load), WorkloadInfo::of_sources(&name, sources))
            }
        })
    }
}

pub(crate) enum BuiltLoad<'a> {
    Fio(Box<FioLoad>),
    Trace(Box<TraceReplay>),
    Generated(Box<dyn Load + 'a>),
}

impl BuiltLoad<'_> {
    /// The remarks after the end of the load.
    ///
    /// *Errors:* what ended it early.
    pub(crate) fn finish(&mut self) -> Result<Vec<String>, Error> {
        match self {
            // A log that a job replays is read during the simulation.
            BuiltLoad::Fio(load) => load.take_error().map_or(Ok(Vec::new()), |error| Err(Error::Log(error))),
            BuiltLoad::Trace(replay) => replay.finish(),
            BuiltLoad::Generated(_) => Ok(Vec::new()),
        }
    }

    fn inner(&self) -> &dyn Load {
        match self {
            BuiltLoad::Fio(load) => &**load,
            BuiltLoad::Trace(replay) => &**replay,
            BuiltLoad::Generated(load) => &**load,
        }
    }
}

impl Load for BuiltLoad<'_> {
    #[inline]
    fn poll(&mut self, now: Instant) -> Poll {
        match self {
            BuiltLoad::Fio(load) => load.poll(now),
            BuiltLoad::Trace(replay) => replay.poll(now),
            BuiltLoad::Generated(load) => load.poll(now),
        }
    }

    #[inline]
    fn handle_completion(&mut self, now: Instant, id: u64) {
        match self {
            BuiltLoad::Fio(load) => load.handle_completion(now, id),
            BuiltLoad::Trace(replay) => replay.handle_completion(now, id),
            BuiltLoad::Generated(load) => load.handle_completion(now, id),
        }
    }

    fn handle_computed(&mut self, now: Instant, id: u64, until: Instant) {
        match self {
            BuiltLoad::Fio(load) => load.handle_computed(now, id, until),
            BuiltLoad::Trace(replay) => replay.handle_computed(now, id, until),
            BuiltLoad::Generated(load) => load.handle_computed(now, id, until),
        }
    }

    fn progress(&self, now: Instant) -> Option<f64> {
        self.inner().progress(now)
    }

    fn phases(&self) -> &[LoadPhase] {
        self.inner().phases()
    }

    fn measured_from(&self, source: u32) -> Instant {
        self.inner().measured_from(source)
    }
}
