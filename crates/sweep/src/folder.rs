//! The folder of a sweep: the plan (`sweep.json`), the chunks (`chunks-I-of-N.json`) and the rows (`parts/*.parquet`). A file is
//! written under a temporary name and then renamed, so that a reader never sees an incomplete file.

#![allow(clippy::disallowed_methods, reason = "a sweep's results are files")]

use crate::error::SweepError;
use crate::parquet_file;
use crate::plan::{SweepPart, SweepPlan, hash_of_keys};
use crate::row::{FinishedCell, SweepRow};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Mode of the files: all may read, the owner may write. A temporary file is readable by its owner alone.
const MODE: u32 = 0o644;

pub(crate) struct SweepFolder<'a> {
    path: &'a Path,
    parts: PathBuf,
}

/// The cells that have rows, by key.
pub(crate) type FinishedCells = BTreeMap<String, FinishedCell>;

impl<'a> SweepFolder<'a> {
    /// Creates the folder, unless it exists.
    pub(crate) fn create(path: &'a Path) -> Result<SweepFolder<'a>, SweepError> {
        let parts = path.join("parts");
        fs::create_dir_all(&parts).map_err(|error| SweepError::folder(&parts, &error))?;
        Ok(SweepFolder { path, parts })
    }

    /// The cells of all rows.
    ///
    /// *Errors:* a part cannot be read or is damaged; rows that are not of the plan.
    pub(crate) fn finished(&self, plan: &SweepPlan) -> Result<FinishedCells, SweepError> {
        let mut found = FinishedCells::new();
        for path in part_files(&self.parts)? {
            found.extend(read(&path, |file| parquet_file::read_keys(file, plan.until_clear()))?);
        }
        let planned = plan.cells().iter().filter(|cell| found.contains_key(&cell.key)).count();
        if planned < found.len() {
            let message = format!(
                "{} of its {} rows are not of this sweep with models of version {}: the definition, a load, a rig or the version \
                 has changed; use a new folder",
                found.len() - planned,
                found.len(),
                plan.model_version()
            );
            return Err(SweepError::message(self.path, &message));
        }
        Ok(found)
    }

    /// Writes the plan, unless it is there.
    pub(crate) fn write_plan(&self, plan: &SweepPlan) -> Result<(), SweepError> {
        let (path, text) = (self.path.join("sweep.json"), plan.to_json());
        if fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
            return Ok(());
        }
        write_renamed(&path, |file| file.write_all(text.as_bytes()))
    }

    /// The chunks that an earlier run of this part of the plan chose, as lists of keys.
    pub(crate) fn chunks(&self, plan: &SweepPlan, part: SweepPart) -> Option<Vec<Vec<String>>> {
        let text = fs::read(self.chunk_file(part)).ok()?;
        let found: Value = serde_json::from_slice(&text).ok()?;
        // Chunks of another plan lack some cells of this one.
        if found["plan"] != plan.hash() {
            return None;
        }
        serde_json::from_value(found["chunks"].clone()).ok()
    }

    /// Stores the chunks of a part of the plan, and returns the chunks that are stored. If another run has stored its chunks first, these are
    /// returned, so that both runs write the same files.
    pub(crate) fn store_chunks(
        &self,
        plan: &SweepPlan,
        part: SweepPart,
        chunks: Vec<Vec<String>>,
    ) -> Result<Vec<Vec<String>>, SweepError> {
        let path = self.chunk_file(part);
        let text = json!({"plan": plan.hash(), "chunks": chunks}).to_string() + "\n";
        let fault = |error: io::Error| SweepError::folder(&path, &error);
        let file = temporary(&path, |file| file.write_all(text.as_bytes())).map_err(fault)?;
        match file.persist_noclobber(&path) {
            Ok(_) => Ok(chunks),
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => match self.chunks(plan, part) {
                Some(stored) => Ok(stored),
                // Those of an older plan.
                None => {
                    error.file.persist(&path).map_err(|error| fault(error.error))?;
                    Ok(chunks)
                }
            },
            Err(error) => Err(fault(error.error)),
        }
    }

    fn chunk_file(&self, part: SweepPart) -> PathBuf {
        self.path.join(format!("chunks-{}-of-{}.json", part.number, part.of))
    }

    /// The file of the rows with these keys.
    pub(crate) fn part_file<'k>(&self, keys: impl Iterator<Item = &'k str>) -> PathBuf {
        self.parts.join(format!("{}.parquet", hash_of_keys(keys)))
    }

    /// Writes rows as a part, named by their keys: two runs that write the same rows write the same file.
    pub(crate) fn write_rows(&self, plan: &SweepPlan, rows: &[SweepRow]) -> Result<(), SweepError> {
        let path = self.part_file(rows.iter().map(|row| row.key.as_str()));
        write_renamed(&path, |file| {
            parquet_file::write(rows, plan.setting_keys(), plan.has_histograms(), file)
                .map_err(io::Error::other)
        })
    }
}

/// All rows of a sweep's folder, each as its columns by name (absent values are null), in the order of their keys and each once.
///
/// *Errors:* a part cannot be read or is damaged.
pub fn read_rows(folder: &Path) -> Result<Vec<Map<String, Value>>, SweepError> {
    let mut rows = BTreeMap::new();
    for path in part_files(&folder.join("parts"))? {
        for row in read(&path, parquet_file::read_columns)? {
            rows.insert(row["key"].as_str().unwrap_or_default().to_string(), row);
        }
    }
    Ok(rows.into_values().collect())
}

fn part_files(folder: &Path) -> Result<Vec<PathBuf>, SweepError> {
    let fault = |error: io::Error| SweepError::folder(folder, &error);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        let is_temporary = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_temporary && path.extension().is_some_and(|ending| ending == "parquet") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read<T>(
    path: &Path,
    parse: impl FnOnce(File) -> Result<T, parquet::errors::ParquetError>,
) -> Result<T, SweepError> {
    let file = File::open(path).map_err(|error| SweepError::folder(path, &error))?;
    parse(file).map_err(|error| {
        SweepError::message(
            path,
            &format!("not a part of a sweep ({error}); remove it, and its cells are run again"),
        )
    })
}

fn write_renamed(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), SweepError> {
    let written = temporary(path, write).and_then(|file| file.persist(path).map_err(|error| error.error));
    written.map(drop).map_err(|error| SweepError::folder(path, &error))
}

/// A complete file in the folder of `path`, under a temporary name with a dot, which readers of data sets ignore.
fn temporary(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mode = Permissions::from_mode(MODE);
    let mut file = tempfile::Builder::new().prefix(".writing-").permissions(mode).tempfile_in(folder)?;
    write(file.as_file_mut())?;
    Ok(file)
}
