//! Collects what an experiment needs into one text: the resolved rig, the load, and every file that the load reads.

use crate::failure::Failure;
use crate::files::{self, SystemFiles};
use crate::sim::load::{self, LoadArgs};
use crate::sim::setup;
use headstack::{FileSource, Simulation, Workload, WorkloadKind};
use headstack_explorer_wasm::{PageExperiment, RIG_PATH};
use headstack_sim::rig::Rig;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum bytes of a page's inputs, all files together. *Source:* assumption, so that a page opens at once; most jobs have a few hundred bytes.
const INPUT_BYTES_MAX: u64 = 16 << 20;
/// The first bytes of a file in zstd format, which the simulator in a page cannot read.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The machine's files, with a record of the opened files and the requested variables.
#[derive(Default)]
struct RecordingFiles {
    opened: RefCell<BTreeSet<PathBuf>>,
    variables: RefCell<BTreeMap<String, String>>,
}

impl FileSource for RecordingFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        self.opened.borrow_mut().insert(path.to_path_buf());
        SystemFiles.open(path)
    }

    fn length(&self, path: &Path) -> Option<u64> {
        SystemFiles.length(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = SystemFiles.variable(name);
        if let Some(value) = &value {
            self.variables.borrow_mut().insert(name.to_string(), value.clone());
        }
        value
    }
}

/// The experiment of a rig and a load.
///
/// *Errors:* the load is invalid or does not fit on the rig; its files are too long for a page.
pub(super) fn collect(
    rig: &Rig,
    load: &str,
    options: &LoadArgs,
    seed: u64,
) -> Result<PageExperiment, Failure> {
    let recording = RecordingFiles::default();
    let (kind, trace) = options.kind(load)?;
    let workload = Workload::open_as(kind, load, &trace, &recording).map_err(load::failure)?;
    // Building the simulation opens the remaining files, and reports errors before a page is written.
    Simulation::new(rig, workload, seed).map_err(load::failure)?;
    let mut experiment = PageExperiment {
        load: load.to_string(),
        kind: kind_name(kind).to_string(),
        seed: seed.to_string(),
        variables: recording.variables.into_inner(),
        trace: options.keys(),
        ..PageExperiment::default()
    };
    experiment.add_file(RIG_PATH, rig.to_toml().as_bytes());
    let mut left = INPUT_BYTES_MAX;
    for path in recording.opened.into_inner() {
        let bytes = read(&path, left)?;
        left -= bytes.len() as u64;
        experiment.add_file(&path.display().to_string(), &bytes);
    }
    Ok(experiment)
}

fn kind_name(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::FioJob => "fio",
        WorkloadKind::LoadFile => "load",
        WorkloadKind::Trace => "trace",
    }
}

/// The bytes of an input, at most `left`.
fn read(path: &Path, left: u64) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let mut bytes = Vec::new();
    files::open(path)?
        .take(left + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Input(format!("{name}: {error}")))?;
    if bytes.len() as u64 > left {
        let most = INPUT_BYTES_MAX >> 20;
        return Err(Failure::Input(format!(
            "{name}: more than {most} MiB of inputs (0 to {most} MiB for a page); cut a trace with `headstack trace cut`"
        )));
    }
    if bytes.starts_with(&ZSTD_MAGIC) {
        return Err(Failure::Input(format!(
            "{name}: packed by zstd, which the simulator in a page does not read; unpack it with `zstd -d`, or pack it with gzip"
        )));
    }
    Ok(bytes)
}

/// For each side of the page, the keys that override the rig's: none for the first, those of `--against` for the second, if any.
pub(super) fn sides(rig: &Rig, against: &[String]) -> Result<Vec<Vec<(String, String)>>, Failure> {
    let mut sides = vec![Vec::new()];
    if !against.is_empty() {
        let pairs = against.iter().map(|setting| {
            let (key, value) = setup::split(setting).ok_or_else(|| {
                Failure::Input(format!("--against {setting}: must be KEY=VALUE, such as drive.order=sptf"))
            })?;
            Ok((key.to_string(), value.to_string()))
        });
        let pairs: Vec<(String, String)> = pairs.collect::<Result<_, Failure>>()?;
        let keys = pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        rig.clone().set_all(keys).map_err(Failure::input)?;
        sides.push(pairs);
    }
    Ok(sides)
}

/// The last part of a path.
pub(super) fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}
