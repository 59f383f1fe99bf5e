//! The inputs of an experiment as one text: a rig, a workload and the files that these need.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use headstack::sim::rig::Rig;
use headstack::{Error, FileSource, TraceOptions, Workload, WorkloadKind, read_rig, workload::trace};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Cursor, ErrorKind, Read};
use std::path::Path;

/// The path of the rig's text among the files of an experiment.
pub const RIG_PATH: &str = "rig.toml";

/// An experiment: everything that its results follow from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageExperiment {
    /// Name of the rig, for results.
    pub rig: String,
    /// The path of the workload's file.
    pub load: String,
    /// The kind of the workload's file: `fio`, `load` or `trace`.
    pub kind: String,
    /// The options of a trace.
    pub trace: PageTraceKeys,
    /// Files by path, in base64. [`RIG_PATH`] is the rig, which needs no presets.
    pub files: BTreeMap<String, String>,
    /// Values of the variables of a fio job.
    pub variables: BTreeMap<String, String>,
    /// Seed of all random numbers. It is text, because a number in JavaScript does not hold 64 bits exactly.
    pub seed: String,
    /// For each side of the page, the keys that override the rig's, with their values: `drive.order`, `sptf`.
    pub sides: Vec<Vec<(String, String)>>,
}

/// The options of a trace ([`TraceOptions`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageTraceKeys {
    /// The name of its format, where its first bytes do not determine it.
    pub format: Option<String>,
    /// Factor by which its times are multiplied.
    pub time_scale: f64,
    /// Whether blocks beyond the end of a volume wrap around.
    pub wrap: bool,
    /// The volume to which all requests go.
    pub all_to: Option<u32>,
    /// Maximum number of malformed records to skip.
    pub malformed_max: u64,
}

/// The files of an experiment in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    files: BTreeMap<String, Vec<u8>>,
    variables: BTreeMap<String, String>,
}

impl FileSource for MemoryFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        let bytes = self.files.get(&path.display().to_string());
        let missing = || io::Error::new(ErrorKind::NotFound, "the page does not have this file");
        Ok(Box::new(Cursor::new(bytes.ok_or_else(missing)?.clone())))
    }

    fn length(&self, path: &Path) -> Option<u64> {
        self.files.get(&path.display().to_string()).map(|bytes| bytes.len() as u64)
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
}

impl PageExperiment {
    /// Adds a file.
    pub fn add_file(&mut self, path: &str, bytes: &[u8]) {
        self.files.insert(path.to_string(), STANDARD.encode(bytes));
    }

    /// The files, decoded.
    ///
    /// *Errors:* a file that is not base64.
    pub fn memory_files(&self) -> Result<MemoryFiles, String> {
        let decoded = self.files.iter().map(|(path, text)| {
            let bytes = STANDARD.decode(text).map_err(|error| format!("{path}: not base64: {error}"))?;
            Ok((path.clone(), bytes))
        });
        Ok(MemoryFiles { files: decoded.collect::<Result<_, String>>()?, variables: self.variables.clone() })
    }

    /// The rig, with these keys overridden.
    ///
    /// *Errors:* an invalid rig or key.
    pub fn build_rig(&self, files: &MemoryFiles, settings: &[(String, String)]) -> Result<Rig, String> {
        let mut rig = read_rig(RIG_PATH, files).map_err(|error| error.to_string())?;
        let settings = settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        rig.set_all(settings).map_err(|error| error.to_string())?;
        Ok(rig)
    }

    /// The workload.
    ///
    /// *Errors:* its file is missing or invalid.
    pub fn open_load<'a>(&self, files: &'a MemoryFiles) -> Result<Workload<'a>, Error> {
        let kind = match self.kind.as_str() {
            "fio" => WorkloadKind::FioJob,
            "load" => WorkloadKind::LoadFile,
            _ => WorkloadKind::Trace,
        };
        let options = TraceOptions {
            format: self.trace.format.as_deref().and_then(trace::named),
            time_scale: self.trace.time_scale,
            wrap: self.trace.wrap,
            all_to: self.trace.all_to,
            malformed_max: self.trace.malformed_max,
        };
        Workload::open_as(kind, &self.load, &options, files)
    }
}
