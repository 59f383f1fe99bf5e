//! The folder of a sweep: the plan (`sweep.json`) and the rows (`parts/*.parquet`).
//!
//! A file of rows is named by its part and by the hash of its bytes, `I-of-N-HASH.parquet`, so that any damage is found. Its footer has the
//! plan and the numbers of its cells. A file is written under a temporary name and then renamed, so that a reader never sees an incomplete
//! file. A part reads and writes its own files only, unless the folder has files of another number of parts.

#![allow(clippy::disallowed_methods, reason = "a sweep's results are files")]

use crate::error::SweepError;
use crate::finished::FinishedCells;
use crate::parquet_file::{self, RowFile};
use crate::plan::{SweepPart, SweepPlan};
use crate::row::SweepRow;
use crate::runs::{runs, runs_of_text, text_of_runs};
use crate::table::SweepTable;
use blake3::Hasher;
use parquet::errors::ParquetError;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Mode of the files: all may read, the owner may write. A temporary file is readable by its owner alone.
const MODE: u32 = 0o644;

/// Maximum number of cells of a part whose rows end up in one file.
pub(crate) const SEGMENT: usize = 50_000;

/// Maximum length of a plan's text, which names its rigs, loads and keys.
const PLAN_BYTES: u64 = 16 << 20;

/// Hexadecimal digits of the hash in a file's name: 128 bits.
const HASH_DIGITS: usize = 32;

/// Texts in the footer of a file: the plan, the numbers of its cells in the order of the rows, and how many of them failed.
const PLAN: &str = "headstack.plan";
const CELLS: &str = "headstack.cells";
const FAILED: &str = "headstack.failed";

pub(crate) struct SweepFolder<'a> {
    path: &'a Path,
    parts: PathBuf,
}

/// A file of rows, by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartFile {
    pub(crate) path: PathBuf,
    pub(crate) number: usize,
    pub(crate) of: usize,
    hash: String,
}

/// The rows of a file, or a part of their columns.
pub(crate) struct FileRows {
    /// The plan to which the numbers belong.
    pub(crate) plan: String,
    /// The numbers of the cells, a row each.
    pub(crate) cells: Vec<usize>,
    pub(crate) table: SweepTable,
}

/// The columns of a file that are read.
#[derive(Clone, Copy)]
pub(crate) enum ReadColumns<'a> {
    /// None, unless a cell failed: then the errors.
    Errors,
    /// These.
    Named(&'a [&'a str]),
    All,
}

/// What reading a file has shown.
pub(crate) enum FileState {
    Good(Box<FileRows>),
    /// Its bytes are not those that were written.
    Damaged,
    /// Another run has merged it into a larger one meanwhile.
    Gone,
}

impl PartFile {
    /// The file of a path; none if rows have no such name.
    fn of_path(path: PathBuf) -> Option<PartFile> {
        let stem = path.file_name()?.to_str()?.strip_suffix(".parquet")?;
        let (part, hash) = stem.rsplit_once('-')?;
        let (number, of) = part.split_once("-of-")?;
        let (number, of): (usize, usize) = (number.parse().ok()?, of.parse().ok()?);
        let is_hash = hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let hash = hash.to_string();
        (is_hash && (1..=of).contains(&number)).then_some(PartFile { path, number, of, hash })
    }

    pub(crate) fn is_of(&self, part: SweepPart) -> bool {
        (self.number, self.of) == (part.number, part.of)
    }

    /// Reads the file and checks its bytes.
    ///
    /// *Errors:* it cannot be read, or was written by another version or build.
    pub(crate) fn read(&self, wanted: ReadColumns<'_>) -> Result<FileState, SweepError> {
        let fault = |error: io::Error| SweepError::folder(&self.path, &error);
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FileState::Gone),
            opened => opened.map_err(fault)?,
        };
        if hash_of(&mut file).map_err(fault)? != self.hash {
            return Ok(FileState::Damaged);
        }
        file.rewind().map_err(fault)?;
        // These are the bytes that were written. Yet the reader of Parquet panics at some that another program may have written.
        let parsed = catch_unwind(AssertUnwindSafe(|| parsed(file, wanted)));
        let refused = |message: &str| {
            let cure = "it was written by another version or build; use a new folder, or move it away";
            SweepError::message(&self.path, &format!("cannot be read ({message}); {cure}"))
        };
        match parsed {
            Ok(Ok(rows)) => Ok(FileState::Good(Box::new(rows))),
            Ok(Err(error)) => Err(refused(&error.to_string())),
            Err(_) => Err(refused("its rows are not as its footer says")),
        }
    }
}

fn parsed(file: File, wanted: ReadColumns<'_>) -> Result<FileRows, ParquetError> {
    let file = RowFile::open(file)?;
    let absent = |name: &str| ParquetError::General(format!("no `{name}` in its footer"));
    let text = |name: &str| file.text(name).ok_or_else(|| absent(name));
    let cells = runs_of_text(text(CELLS)?).ok_or_else(|| absent(CELLS))?;
    let failed: usize = text(FAILED)?.parse().map_err(|_| absent(FAILED))?;
    let table = match wanted {
        ReadColumns::Errors if failed == 0 => SweepTable::of_columns(cells.len(), Vec::new()),
        ReadColumns::Errors => file.table(Some(&["error"]))?,
        ReadColumns::Named(names) => file.table(Some(names))?,
        ReadColumns::All => file.table(None)?,
    };
    if table.rows() != cells.len() {
        return Err(ParquetError::General("the number of rows is not that of its cells".to_string()));
    }
    Ok(FileRows { plan: text(PLAN)?.to_string(), cells, table })
}

/// The hash of a file's bytes, as in its name.
fn hash_of(file: &mut File) -> io::Result<String> {
    let mut hasher = Hasher::new();
    let mut bytes = vec![0; 1 << 16];
    loop {
        let count = file.read(&mut bytes)?;
        if count == 0 {
            return Ok(hasher.finalize().to_hex()[..HASH_DIGITS].to_string());
        }
        hasher.update(&bytes[..count]);
    }
}

impl<'a> SweepFolder<'a> {
    /// Creates the folder, unless it exists.
    ///
    /// *Errors:* it cannot be created; its name is a URL.
    pub(crate) fn create(path: &'a Path) -> Result<SweepFolder<'a>, SweepError> {
        check_local(path)?;
        let parts = path.join("parts");
        fs::create_dir_all(&parts).map_err(|error| SweepError::folder(&parts, &error))?;
        Ok(SweepFolder { path, parts })
    }

    /// A folder that has to exist.
    ///
    /// *Errors:* it is not the folder of a sweep; its name is a URL.
    pub(crate) fn open(path: &'a Path) -> Result<SweepFolder<'a>, SweepError> {
        check_local(path)?;
        let parts = path.join("parts");
        match fs::metadata(&parts) {
            Ok(found) if found.is_dir() => Ok(SweepFolder { path, parts }),
            _ => Err(SweepError::message(path, "has no folder `parts`, so it is not the folder of a sweep")),
        }
    }

    /// The text of the plan.
    pub(crate) fn plan_text(&self) -> Result<String, SweepError> {
        let path = self.path.join("sweep.json");
        let mut text = String::new();
        let read = File::open(&path).and_then(|file| file.take(PLAN_BYTES).read_to_string(&mut text));
        read.map(|_| text).map_err(|error| SweepError::folder(&path, &error))
    }

    /// Writes the plan, unless it is there.
    pub(crate) fn write_plan(&self, plan: &SweepPlan) -> Result<(), SweepError> {
        let (path, text) = (self.path.join("sweep.json"), plan.to_json());
        if fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
            return Ok(());
        }
        write_renamed(&path, |file| file.write_all(text.as_bytes()))
    }

    /// The files of rows, in the order of their names.
    ///
    /// *Errors:* the folder cannot be read; it has Parquet files of another kind.
    pub(crate) fn files(&self) -> Result<Vec<PartFile>, SweepError> {
        let fault = |error: io::Error| SweepError::folder(&self.parts, &error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.parts).map_err(fault)? {
            let path = entry.map_err(fault)?.path();
            let is_temporary = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if is_temporary || path.extension().is_none_or(|ending| ending != "parquet") {
                continue;
            }
            let refused = "is not named as the rows of this version are (I-of-N-HASH.parquet); use a new folder, or move it away";
            let file = PartFile::of_path(path.clone()).ok_or_else(|| SweepError::message(&path, refused))?;
            found.push(file);
        }
        found.sort();
        Ok(found)
    }

    /// The cells that have rows, as far as a part needs to know: those of its own files, and of the files of another number of parts. Also the
    /// damaged files, which are renamed, so that their cells are run again.
    ///
    /// *Errors:* a file cannot be read; rows that are not of the plan.
    pub(crate) fn finished(
        &self,
        plan: &SweepPlan,
        part: SweepPart,
    ) -> Result<(FinishedCells, Vec<PathBuf>), SweepError> {
        let mut found = FinishedCells::new(plan.len());
        let mut damaged = Vec::new();
        let (mut index_of, mut foreign, mut all) = (None, 0, 0);
        for file in self.files()? {
            if file.of == part.of && file.number != part.number {
                continue;
            }
            let columns: Vec<&str> = ["key", "error"].into_iter().chain(plan.until_clear()).collect();
            let (errors, figures) = (ReadColumns::Errors, ReadColumns::Named(&columns[1..]));
            let first = file.read(if plan.until_clear().is_none() { errors } else { figures })?;
            let rows = match first {
                FileState::Good(rows) => rows,
                FileState::Gone => continue,
                FileState::Damaged => {
                    damaged.push(set_aside(&file.path)?);
                    continue;
                }
            };
            if rows.plan == plan.identity() {
                found.add(&rows.cells, &rows.table, plan.until_clear());
                continue;
            }
            // Rows of a smaller or larger definition, whose cells have other numbers: their keys decide.
            let FileState::Good(rows) = file.read(ReadColumns::Named(&columns))? else { continue };
            let index_of = index_of.get_or_insert_with(|| plan.index_by_key());
            let keys = rows.table.texts("key").iter().map(|key| index_of.get(key.as_deref()?));
            let (kept, cells): (Vec<usize>, Vec<usize>) =
                keys.enumerate().filter_map(|(row, cell)| Some((row, cell?))).unzip();
            all += rows.cells.len();
            foreign += rows.cells.len() - cells.len();
            found.add(&cells, &rows.table.select(&kept), plan.until_clear());
        }
        if foreign > 0 {
            let message = format!(
                "{foreign} of its {all} rows are not of this sweep with models of version {}: the definition, a load, a rig or the version \
                 has changed; use a new folder",
                plan.model_version()
            );
            return Err(SweepError::message(self.path, &message));
        }
        Ok((found, damaged))
    }

    /// Writes rows of a part, a file for each segment of the part, in the order of the cells. Returns the segments and their files. The same
    /// rows have the same file.
    pub(crate) fn write_rows(
        &self,
        plan: &SweepPlan,
        part: SweepPart,
        mut rows: Vec<SweepRow>,
    ) -> Result<Vec<(usize, PartFile)>, SweepError> {
        rows.sort_by_key(|row| row.index);
        let of_segment = rows.chunk_by(|one, other| segment(one.index, part) == segment(other.index, part));
        let write = |rows: &[SweepRow]| {
            let cells: Vec<usize> = rows.iter().map(|row| row.index).collect();
            let table = SweepTable::of_rows(plan.layout(), rows);
            Ok((segment(cells[0], part), self.write_table(plan.identity(), part, &cells, &table)?))
        };
        of_segment.map(write).collect()
    }

    fn write_table(
        &self,
        plan: &str,
        part: SweepPart,
        cells: &[usize],
        table: &SweepTable,
    ) -> Result<PartFile, SweepError> {
        let failed = table.texts("error").iter().flatten().count();
        let texts =
            [(PLAN, plan.to_string()), (CELLS, text_of_runs(&runs(cells))), (FAILED, failed.to_string())];
        let fault = |error: io::Error| SweepError::folder(&self.parts, &error);
        let mut file =
            temporary(&self.parts, |file| parquet_file::write(table, &texts, file).map_err(io::Error::other))
                .map_err(fault)?;
        file.rewind().map_err(fault)?;
        let hash = hash_of(file.as_file_mut()).map_err(fault)?;
        let path = self.parts.join(format!("{}-of-{}-{hash}.parquet", part.number, part.of));
        file.persist(&path).map_err(|error| fault(error.error))?;
        Ok(PartFile { path, number: part.number, of: part.of, hash })
    }

    /// Merges files of one segment of a part into one, and removes them. Returns the file; none if there was nothing to merge.
    ///
    /// *Errors:* a file cannot be read, written or removed; a file is damaged.
    pub(crate) fn compact(
        &self,
        plan: &SweepPlan,
        part: SweepPart,
        files: &[PartFile],
    ) -> Result<Option<PartFile>, SweepError> {
        let (mut table, mut cells, mut merged) = (SweepTable::new(plan.layout()), Vec::new(), Vec::new());
        for file in files {
            match file.read(ReadColumns::All)? {
                FileState::Good(rows) if rows.plan == plan.identity() => {
                    cells.extend(rows.cells);
                    table.append(rows.table);
                    merged.push(file);
                }
                FileState::Good(_) | FileState::Gone => {}
                FileState::Damaged => return Err(damaged(&file.path)),
            }
        }
        if merged.len() < 2 {
            return Ok(merged.first().map(|file| (*file).clone()));
        }
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_key(|row| cells[*row]);
        // Two runs of the same part may have stored a cell twice, with equal rows.
        order.dedup_by_key(|row| cells[*row]);
        let cells: Vec<usize> = order.iter().map(|row| cells[*row]).collect();
        let written = self.write_table(plan.identity(), part, &cells, &table.select(&order))?;
        for file in merged.into_iter().filter(|file| **file != written) {
            match fs::remove_file(&file.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(SweepError::folder(&file.path, &error));
                }
                _ => {}
            }
        }
        Ok(Some(written))
    }

    /// Merges all files of these segments of a part, each segment into one.
    ///
    /// *Errors:* those of [`SweepFolder::compact`].
    pub(crate) fn compact_all(&self, plan: &SweepPlan, part: SweepPart) -> Result<(), SweepError> {
        let mut by_segment = std::collections::BTreeMap::<usize, Vec<PartFile>>::new();
        for file in self.files()?.into_iter().filter(|file| file.is_of(part)) {
            if let FileState::Good(rows) = file.read(ReadColumns::Errors)? {
                let first = rows.cells.first().filter(|_| rows.plan == plan.identity());
                if let Some(first) = first {
                    by_segment.entry(segment(*first, part)).or_default().push(file);
                }
            }
        }
        by_segment.values().try_for_each(|files| self.compact(plan, part, files).map(drop))
    }
}

/// The segment of its part in which a cell is.
pub(crate) fn segment(index: usize, part: SweepPart) -> usize {
    index / (SEGMENT * part.of)
}

/// All rows of a sweep's folder, each as its columns by name (absent values are null), in the order of their keys and each once.
///
/// *Errors:* a file cannot be read or is damaged.
pub fn read_rows(folder: &Path) -> Result<Vec<serde_json::Map<String, serde_json::Value>>, SweepError> {
    let mut rows = std::collections::BTreeMap::new();
    for file in SweepFolder::open(folder)?.files()? {
        for row in whole(&file)?.into_iter().flat_map(|rows| rows.table.to_maps()) {
            rows.insert(row["key"].as_str().unwrap_or_default().to_string(), row);
        }
    }
    Ok(rows.into_values().collect())
}

/// All rows of a plan that a folder has, in the order of the plan's cells and each once.
///
/// *Errors:* a file cannot be read or is damaged.
pub fn read_table(plan: &SweepPlan, folder: &Path) -> Result<SweepTable, SweepError> {
    let (mut table, mut cells, mut index_of) = (SweepTable::new(plan.layout()), Vec::new(), None);
    for file in SweepFolder::open(folder)?.files()? {
        let Some(rows) = whole(&file)? else { continue };
        if rows.plan == plan.identity() {
            cells.extend(rows.cells.iter().map(|cell| Some(*cell)));
        } else {
            let index_of = index_of.get_or_insert_with(|| plan.index_by_key());
            cells.extend(rows.table.texts("key").iter().map(|key| index_of.get(key.as_deref()?)));
        }
        table.append(rows.table);
    }
    let mut order: Vec<usize> = (0..cells.len()).filter(|row| cells[*row].is_some()).collect();
    order.sort_by_key(|row| cells[*row]);
    order.dedup_by_key(|row| cells[*row]);
    let is_in_order = order.len() == cells.len() && order.windows(2).all(|pair| pair[0] < pair[1]);
    Ok(if is_in_order { table } else { table.select(&order) })
}

/// All rows of a file; none if another run has merged it meanwhile.
fn whole(file: &PartFile) -> Result<Option<Box<FileRows>>, SweepError> {
    match file.read(ReadColumns::All)? {
        FileState::Good(rows) => Ok(Some(rows)),
        FileState::Gone => Ok(None),
        FileState::Damaged => Err(damaged(&file.path)),
    }
}

/// Writes a table into one file.
///
/// *Errors:* the file cannot be written.
pub fn write_table(table: &SweepTable, path: &Path) -> Result<(), SweepError> {
    write_renamed(path, |file| parquet_file::write(table, &[], file).map_err(io::Error::other))
}

pub(crate) fn damaged(path: &Path) -> SweepError {
    SweepError::message(
        path,
        "is damaged: its bytes are not those that were written; run the sweep again, which repeats its cells",
    )
}

/// Renames a damaged file, so that no reader takes it for rows; returns its name from before.
fn set_aside(path: &Path) -> Result<PathBuf, SweepError> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".damaged");
    match fs::rename(path, &aside) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(SweepError::folder(path, &error)),
        _ => Ok(path.to_path_buf()),
    }
}

/// *Errors:* the name is a URL, which would become a folder of that name.
fn check_local(path: &Path) -> Result<(), SweepError> {
    let name = path.to_string_lossy();
    let scheme = name.split_once(":/").map(|(scheme, _)| scheme);
    let is_scheme = |scheme: &str| {
        !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    };
    match scheme.filter(|scheme| is_scheme(scheme)) {
        None => Ok(()),
        Some(scheme) => {
            let cure = "rows are written into folders of the file system; write them there and copy them";
            Err(SweepError::message(path, &format!("is a URL ({scheme}:); {cure}")))
        }
    }
}

fn write_renamed(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), SweepError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = temporary(folder, write).and_then(|file| file.persist(path).map_err(|error| error.error));
    written.map(drop).map_err(|error| SweepError::folder(path, &error))
}

/// A complete file in a folder, under a temporary name with a dot, which readers of data sets ignore.
fn temporary(folder: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<NamedTempFile> {
    let mode = Permissions::from_mode(MODE);
    let mut file = tempfile::Builder::new().prefix(".writing-").permissions(mode).tempfile_in(folder)?;
    write(file.as_file_mut())?;
    Ok(file)
}
