//! A fio job file as a workload.

use super::info::{JobInfo, JobSection, WorkloadInfo, file_name};
use crate::error::Error;
use crate::files::{FileSource, read_text};
use headstack_model::Nanos;
use headstack_workload::VolumeInfo;
use headstack_workload::fio::{FioJob, FioLoad, JobFile};
use serde_json::{Map, Value};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A parsed job file, and the source of its logs.
pub(super) struct JobSource<'a> {
    name: String,
    file: JobFile,
    files: &'a dyn FileSource,
    /// Files that it includes.
    inputs: Vec<PathBuf>,
}

impl<'a> JobSource<'a> {
    /// Parses a job file. `origin` (the file's name) goes into errors.
    pub(super) fn parse(text: &str, origin: &str, files: &'a dyn FileSource) -> Result<JobSource<'a>, Error> {
        let mut inputs = Vec::new();
        let mut include = |name: &str| {
            let text = read_text(files, Path::new(name)).map_err(without_name)?;
            inputs.push(PathBuf::from(name));
            Ok(text)
        };
        let file = JobFile::parse(text, origin, &mut include, &|name| files.variable(name))?;
        Ok(JobSource { name: file_name(origin), file, files, inputs })
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.file.job_names().collect()
    }

    pub(super) fn set_idle_others(&mut self, job: &str) {
        self.file.set_idle_others(job);
    }

    pub(super) fn draw_starts(&mut self, most: Nanos) {
        self.file.draw_starts(most);
    }

    pub(super) fn set_cgroup_of_others(&mut self, job: &str, group: &str) {
        self.file.set_cgroup_of_others(job, group);
    }

    pub(super) fn build(self, volumes: &[VolumeInfo], seed: u64) -> Result<(FioLoad, WorkloadInfo), Error> {
        let JobSource { name, file, files, mut inputs } = self;
        let mut open = |name: &str| -> io::Result<Box<dyn Read>> {
            let log = files.open(Path::new(name))?;
            inputs.push(PathBuf::from(name));
            Ok(log)
        };
        let load = file.build_reading(volumes, seed, &mut open)?;
        let (jobs, job_of) = reported_jobs(load.jobs(), file.global_options());
        let (sections, section_of) = sections(load.jobs());
        let kind = match jobs.len() {
            1 => "fio job".to_string(),
            count => format!("{count} fio jobs"),
        };
        let remarks = remarks(&file, &load);
        let global_options = as_object(file.global_options());
        let cgroup_of = load.jobs().iter().map(|clone| clone.cgroup.clone()).collect();
        let info = WorkloadInfo {
            name,
            kind,
            global_options,
            jobs,
            job_of,
            sections,
            section_of,
            cgroup_of,
            is_buffered: load.jobs().iter().any(|clone| !clone.direct),
            inputs,
            remarks,
        };
        Ok((load, info))
    }
}

/// Remarks on keys without effect, on values of variables, and of the load itself.
fn remarks(file: &JobFile, load: &FioLoad) -> Vec<String> {
    let mut ignored: Vec<&str> = file.ignored().iter().map(|key| key.key).collect();
    ignored.sort_unstable();
    ignored.dedup();
    let mut remarks = Vec::new();
    if !ignored.is_empty() {
        remarks.push(format!("keys without effect here: {}", ignored.join(", ")));
    }
    if !file.variables().is_empty() {
        let values = file.variables().iter().map(|(name, value)| format!("{name} = {value}"));
        remarks.push(format!("variables: {}", values.collect::<Vec<_>>().join(", ")));
    }
    remarks.extend(load.notes().iter().cloned());
    remarks
}

/// The error without the file's name, which the error of the job file adds.
fn without_name(error: Error) -> io::Error {
    match error {
        Error::Read { message, .. } => io::Error::other(message),
        other => io::Error::other(other.to_string()),
    }
}

fn as_object(options: &[(String, String)]) -> Map<String, Value> {
    options.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect()
}

/// The options of a job as results show them: its own, and those by which fio-plot finds a result.
fn shown_options(own: &[(String, String)], global: &[(String, String)]) -> Map<String, Value> {
    let mut shown = as_object(own);
    for (key, alias, default) in
        [("rw", "readwrite", "read"), ("iodepth", "iodepth", "1"), ("numjobs", "numjobs", "1")]
    {
        let value = [own, global].into_iter().find_map(|options| {
            let mut from_last = options.iter().rev();
            from_last.find(|(name, _)| name == key || name == alias).map(|(_, value)| value.as_str())
        });
        shown.insert(key.to_string(), value.unwrap_or(default).into());
    }
    shown
}

/// The jobs for results, and the job of each clone: those that report as a group are one.
fn reported_jobs(clones: &[FioJob], global: &[(String, String)]) -> (Vec<JobInfo>, Vec<u32>) {
    let (mut jobs, mut job_of): (Vec<JobInfo>, Vec<u32>) = (Vec::new(), Vec::new());
    for clone in clones {
        let same = |(index, other): (usize, &FioJob)| {
            (other.group_reporting && other.group == clone.group).then_some(job_of[index])
        };
        let before = clones[..job_of.len()].iter().enumerate();
        let found = clone.group_reporting.then(|| before.map(same).next_back().flatten()).flatten();
        job_of.push(found.unwrap_or(jobs.len() as u32));
        if found.is_none() {
            jobs.push(JobInfo {
                name: clone.name.clone(),
                group: clone.group,
                options: shown_options(&clone.options, global),
                depth: Some(clone.depth),
            });
        }
    }
    (jobs, job_of)
}

/// The sections of a file, and that of each clone.
fn sections(clones: &[FioJob]) -> (Vec<JobSection>, Vec<u32>) {
    let mut sections: Vec<JobSection> = Vec::new();
    for clone in clones {
        let index = clone.section as usize;
        if index >= sections.len() {
            sections.resize_with(index + 1, JobSection::default);
        }
        let section = &mut sections[index];
        (section.name, section.group) = (clone.name.clone(), clone.group);
        section.clones += 1;
    }
    (sections, clones.iter().map(|clone| clone.section).collect())
}
