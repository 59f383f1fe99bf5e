//! A fio job file as a load.

use super::SimLoad;
use crate::failure::Failure;
use crate::files;
use crate::sim::outcome::{Job, LoadNotes, ReadyLoad, Section};
use headstack_model::Nanos;
use headstack_workload::VolumeInfo;
use headstack_workload::fio::{FioJob, FioLoad, JobFile};
use nix::unistd::SysconfVar;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

impl SimLoad for FioLoad {
    fn progress(&self, now: Nanos) -> Option<f64> {
        FioLoad::progress(self, now)
    }

    fn counted_from(&self, source: u32) -> Nanos {
        self.window(source).map_or(Nanos::ZERO, |window| window.measured_from)
    }

    fn finish(&self) -> Result<Vec<String>, Failure> {
        // A log that a job replays is read as the run goes on.
        self.error().map_or(Ok(Vec::new()), |error| Err(Failure::input(error)))
    }
}

/// The jobs of the file at `path`.
pub(super) fn ready(path: &Path, volumes: &[VolumeInfo], seed: u64) -> Result<ReadyLoad, Failure> {
    let text = files::read_text(path)?;
    let shown = path.display().to_string();
    let inputs = RefCell::new(Vec::new());
    let mut include = |name: &str| {
        let text = files::read_text(Path::new(name)).map_err(|failure| without_name(&failure, name))?;
        inputs.borrow_mut().push(PathBuf::from(name));
        Ok(text)
    };
    let file = JobFile::parse(&text, &shown, &mut include, &variable).map_err(Failure::input)?;
    let mut open = |name: &str| -> io::Result<Box<dyn io::Read>> {
        let log = files::open(Path::new(name)).map_err(|failure| without_name(&failure, name))?;
        inputs.borrow_mut().push(PathBuf::from(name));
        Ok(Box::new(log))
    };
    let load = file.build_reading(volumes, seed, &mut open).map_err(Failure::input)?;
    let (jobs, entry_of) = entries(load.jobs());
    let (sections, section_of) = sections(load.jobs());
    let mut ignored: Vec<&str> = file.ignored().iter().map(|key| key.key).collect();
    ignored.sort_unstable();
    ignored.dedup();
    let mut remarks = Vec::new();
    if !ignored.is_empty() {
        remarks.push(format!("keys without effect here: {}", ignored.join(", ")));
    }
    if !file.variables().is_empty() {
        let said: Vec<String> =
            file.variables().iter().map(|(name, value)| format!("{name} = {value}")).collect();
        remarks.push(format!("variables: {}", said.join(", ")));
    }
    remarks.extend(load.notes().iter().cloned());
    let notes = LoadNotes {
        global_options: as_object(file.global_options()),
        name: super::file_name(path),
        kind: match jobs.len() {
            1 => "fio job".to_string(),
            count => format!("{count} fio jobs"),
        },
        jobs,
        entry_of,
        sections,
        section_of,
        inputs: inputs.into_inner(),
        remarks,
    };
    Ok(ReadyLoad { load: Box::new(load), notes })
}

/// What `${NAME}` and fio's keywords stand for: the environment and the machine, as under fio.
fn variable(name: &str) -> Option<String> {
    let system = |what| nix::unistd::sysconf(what).ok().flatten();
    let page_size = || system(SysconfVar::PAGE_SIZE);
    match name {
        "$pagesize" => Some(page_size()?.to_string()),
        "$ncpus" => Some(system(SysconfVar::_NPROCESSORS_ONLN)?.to_string()),
        "$mb_memory" => Some(((page_size()? * system(SysconfVar::_PHYS_PAGES)?) >> 20).to_string()),
        #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
        name => std::env::var(name).ok(),
    }
}

/// A failure to open a file, without the name, which the error of the job file says as well.
fn without_name(failure: &Failure, name: &str) -> io::Error {
    let said = failure.to_string();
    io::Error::other(said.strip_prefix(&format!("{name}: ")).unwrap_or(&said).to_string())
}

/// Options as results show them.
fn as_object(options: &[(String, String)]) -> Map<String, Value> {
    options.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect()
}

/// The jobs as results list them, and which of them each clone is in: those that report as a group are one.
fn entries(clones: &[FioJob]) -> (Vec<Job>, Vec<u32>) {
    let (mut jobs, mut entry_of): (Vec<Job>, Vec<u32>) = (Vec::new(), Vec::new());
    for clone in clones {
        let same = |(index, other): (usize, &FioJob)| {
            (other.group_reporting && other.group == clone.group).then_some(entry_of[index])
        };
        let before = clones[..entry_of.len()].iter().enumerate();
        let known = clone.group_reporting.then(|| before.map(same).next_back().flatten()).flatten();
        entry_of.push(known.unwrap_or(jobs.len() as u32));
        if known.is_none() {
            jobs.push(Job {
                name: clone.name.clone(),
                group: clone.group,
                options: clone
                    .options
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone().into()))
                    .collect(),
                depth: Some(clone.depth),
            });
        }
    }
    (jobs, entry_of)
}

/// The sections of a file, and that of each clone.
fn sections(clones: &[FioJob]) -> (Vec<Section>, Vec<u32>) {
    let mut sections: Vec<Section> = Vec::new();
    for clone in clones {
        let index = clone.section as usize;
        if index >= sections.len() {
            sections.resize_with(index + 1, Section::default);
        }
        let section = &mut sections[index];
        (section.name, section.group) = (clone.name.clone(), clone.group);
        section.clones += 1;
    }
    (sections, clones.iter().map(|clone| clone.section).collect())
}
