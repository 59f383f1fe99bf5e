//! How far a sweep is, and all its rows as one table, without its definition.

use crate::error::SweepError;
use crate::finished::FinishedCells;
use crate::folder::{FileState, PartFile, ReadColumns, SweepFolder, damaged};
use crate::settings::CELLS_MAX;
use crate::table::SweepTable;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The state of a sweep's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepStatus {
    /// Title of the sweep.
    pub title: String,
    /// Cells of the plan.
    pub cells: usize,
    /// Cells with a row.
    pub finished: usize,
    /// Cells that failed.
    pub failed: usize,
    /// Whether some cells may need no run (`until_clear`).
    pub is_until_clear: bool,
    /// Rows of an earlier definition, which may or may not be cells of this one; the sweep itself finds out.
    pub of_other_plans: usize,
    /// The files of each part that has any, in order.
    pub parts: Vec<PartStatus>,
    /// Files whose bytes are not those that were written. The sweep repeats their cells.
    pub damaged: Vec<PathBuf>,
}

/// The files of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartStatus {
    /// The number of the part, from 1 on.
    pub number: usize,
    /// The number of parts.
    pub of: usize,
    /// Its files.
    pub files: usize,
    /// The rows in them.
    pub rows: usize,
}

/// The part of `sweep.json` that is needed.
struct PlanSummary {
    title: String,
    identity: String,
    cells: usize,
    is_until_clear: bool,
}

impl PlanSummary {
    fn read(folder: &SweepFolder<'_>, path: &Path) -> Result<PlanSummary, SweepError> {
        let text = folder.plan_text()?;
        let fault = || {
            let message = "is not the plan of a sweep of this version; run the sweep again, which writes it";
            SweepError::message(&path.join("sweep.json"), message)
        };
        let plan: Value = serde_json::from_str(&text).map_err(|_| fault())?;
        Ok(PlanSummary {
            title: plan["title"].as_str().unwrap_or_default().to_string(),
            identity: plan["plan"].as_str().ok_or_else(fault)?.to_string(),
            cells: plan["cells"].as_u64().filter(|cells| *cells <= CELLS_MAX as u64).ok_or_else(fault)?
                as usize,
            is_until_clear: plan["until_clear"].is_string(),
        })
    }
}

impl SweepStatus {
    /// Reads the state of a folder. Each file is read once.
    ///
    /// *Errors:* it is not the folder of a sweep, or cannot be read.
    pub fn read(path: &Path) -> Result<SweepStatus, SweepError> {
        let folder = SweepFolder::open(path)?;
        let plan = PlanSummary::read(&folder, path)?;
        let mut status = SweepStatus {
            title: plan.title,
            cells: plan.cells,
            is_until_clear: plan.is_until_clear,
            ..SweepStatus::default()
        };
        let mut finished = FinishedCells::new(plan.cells);
        let mut parts = BTreeMap::<(usize, usize), PartStatus>::new();
        for file in folder.files()? {
            let rows = match file.read(ReadColumns::Errors)? {
                FileState::Good(rows) => rows,
                FileState::Gone => continue,
                FileState::Damaged => {
                    status.damaged.push(file.path);
                    continue;
                }
            };
            if rows.plan == plan.identity {
                finished.add(&rows.cells, &rows.table, None);
            } else {
                status.of_other_plans += rows.cells.len();
            }
            let PartFile { number, of, .. } = file;
            let part = parts.entry((of, number)).or_insert(PartStatus { number, of, files: 0, rows: 0 });
            part.files += 1;
            part.rows += rows.cells.len();
        }
        status.finished = finished.count();
        status.failed = finished.errors.len();
        status.parts = parts.into_values().collect();
        Ok(status)
    }
}

/// All rows of a folder as one table, in the order of the plan and each once; those of an earlier definition are last, by key.
///
/// *Errors:* it is not the folder of a sweep; a file cannot be read or is damaged.
pub fn merged_table(path: &Path) -> Result<SweepTable, SweepError> {
    let folder = SweepFolder::open(path)?;
    let plan = PlanSummary::read(&folder, path)?;
    let (mut table, mut places) = (None::<SweepTable>, Vec::new());
    for file in folder.files()? {
        let rows = match file.read(ReadColumns::All)? {
            FileState::Good(rows) => rows,
            FileState::Gone => continue,
            FileState::Damaged => return Err(damaged(&file.path)),
        };
        let is_of_plan = rows.plan == plan.identity;
        places.extend(rows.cells.iter().map(|cell| if is_of_plan { *cell } else { usize::MAX }));
        match &mut table {
            None => table = Some(rows.table),
            Some(table) => table.append(rows.table),
        }
    }
    let table = table.ok_or_else(|| SweepError::message(path, "has no rows yet"))?;
    let keys = table.texts("key");
    let mut order: Vec<usize> = (0..table.rows()).collect();
    order.sort_by(|one, other| (places[*one], &keys[*one]).cmp(&(places[*other], &keys[*other])));
    let mut met = BTreeSet::new();
    order.retain(|row| met.insert(keys[*row].clone()));
    Ok(table.select(&order))
}
