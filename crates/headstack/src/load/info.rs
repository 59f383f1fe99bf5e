//! Description of a workload in results.

use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// A job in fio's form of the results: the sources that report together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobInfo {
    /// Its name.
    pub name: String,
    /// Number of the group of jobs that ran together.
    pub group: u32,
    /// Its options as written.
    pub options: Map<String, Value>,
    /// Its maximum number of outstanding requests, if it has one.
    pub depth: Option<u32>,
}

/// A section of a job file or load file, with all its clones.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct JobSection {
    pub name: String,
    pub clones: u32,
    /// Number of the group of jobs that ran together.
    pub group: u32,
}

/// Description of a workload.
#[derive(Clone, Debug, Default)]
pub struct WorkloadInfo {
    /// The name of its file without the folder, or the name that the program gave it.
    pub name: String,
    /// Its kind: a fio job, a trace and in which format, a load file.
    pub kind: String,
    /// Options of all jobs.
    pub global_options: Map<String, Value>,
    /// The jobs as fio reports them.
    pub jobs: Vec<JobInfo>,
    /// The job of each source, by the source's number.
    pub job_of: Vec<u32>,
    /// The sections; their figures are separate even for jobs that report as a group.
    pub sections: Vec<JobSection>,
    /// The section of each source, by the source's number.
    pub section_of: Vec<u32>,
    /// The control group of each source that is in one, by the source's number; empty where none is.
    pub cgroup_of: Vec<Option<String>>,
    /// Whether any job uses buffered I/O, which a page cache serves (a fio job without `direct=1`).
    pub is_buffered: bool,
    /// Files that it includes.
    pub inputs: Vec<PathBuf>,
    /// What was ignored, as messages.
    pub remarks: Vec<String>,
}

impl WorkloadInfo {
    /// A workload that is one job of the same name.
    pub(super) fn of_one_job(name: &str, kind: &str) -> WorkloadInfo {
        let jobs = vec![JobInfo { name: name.to_string(), ..JobInfo::default() }];
        let sections = vec![JobSection { name: name.to_string(), clones: 1, group: 0 }];
        WorkloadInfo {
            name: name.to_string(),
            kind: kind.to_string(),
            jobs,
            sections,
            ..WorkloadInfo::default()
        }
    }

    /// A load of the program, in which each source is a job; without names it is one job.
    pub(super) fn of_sources(name: &str, sources: Vec<String>) -> WorkloadInfo {
        let info = WorkloadInfo::of_one_job(name, "load");
        if sources.is_empty() {
            return info;
        }
        let numbers: Vec<u32> = (0..sources.len() as u32).collect();
        let job = |name: &String| JobInfo { name: name.clone(), ..JobInfo::default() };
        let section = |name: &String| JobSection { name: name.clone(), clones: 1, group: 0 };
        let (jobs, sections) = (sources.iter().map(job).collect(), sources.iter().map(section).collect());
        WorkloadInfo { jobs, sections, job_of: numbers.clone(), section_of: numbers, ..info }
    }
}

/// A file's name without its folder, for results.
pub(super) fn file_name(path: &str) -> String {
    let path = Path::new(path);
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
