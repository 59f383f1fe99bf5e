//! Runs the cells of a plan on all cores, in chunks, and writes their rows.

use crate::drives::SharedDrives;
use crate::error::SweepError;
use crate::finished::FinishedCells;
use crate::folder::{PartFile, SEGMENT, SweepFolder};
use crate::inputs::SharedFiles;
use crate::objects::run_whole;
use crate::pending::pending;
use crate::plan::{SweepCell, SweepPart, SweepPlan};
use crate::row::SweepRow;
use cpu_time::ThreadTime;
use headstack::{Error, Simulation};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// CPU time of a chunk, in seconds: a thousand times what it costs the usual task engines to pass a chunk to a worker.
const CHUNK_S: f64 = 2.0;

/// Maximum number of cells in a chunk, for cells that take no time because they fail.
const CHUNK_CELLS: usize = 1000;

/// Chunks per core that a sweep has at least, so that all cores end at about the same time.
const CHUNKS_PER_CORE: usize = 4;

/// Files of a few rows each that are merged at a time.
const SMALL_FILES: usize = 64;

/// A run of a plan, or of a part of it, into a folder.
pub struct SweepRun<'a> {
    plan: &'a SweepPlan,
    folder: &'a Path,
    files: SharedFiles<'a>,
    part: SweepPart,
    stops: &'a (dyn Fn() -> bool + Sync),
    progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// What a run has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepSummary {
    /// Cells of the part.
    pub cells: usize,
    /// Cells whose rows existed before.
    pub reused: usize,
    /// Cells that were run now.
    pub ran: usize,
    /// Cells that need no run, because the difference of their settings is clear.
    pub unneeded: usize,
    /// Cells of the part that failed, now or before: the label and the error.
    pub failed: Vec<(String, String)>,
    /// Files of rows that were damaged. They were renamed, and their cells run again.
    pub damaged: Vec<PathBuf>,
    /// Whether it stopped before its last cell.
    pub is_stopped: bool,
}

/// Cells that are run one after the other and stored in one file.
#[derive(Debug)]
struct SweepChunk {
    /// Indices of the cells in the plan.
    cells: Vec<usize>,
}

/// A cell's row, or none if it was stopped, and its CPU time in seconds.
struct CellOutcome {
    row: Option<SweepRow>,
    cost_s: f64,
}

impl<'a> SweepRun<'a> {
    /// A run of the whole plan into `folder`; `files` opens the loads.
    pub fn new(
        plan: &'a SweepPlan,
        folder: &'a Path,
        files: &'a (dyn headstack::FileSource + Sync),
    ) -> SweepRun<'a> {
        SweepRun { plan, folder, files, part: SweepPart::default(), stops: &|| false, progress: &|_, _| {} }
    }

    /// Runs only a part of the plan.
    pub fn part(self, part: SweepPart) -> SweepRun<'a> {
        SweepRun { part, ..self }
    }

    /// Calls `stops` from all threads, every few thousand steps; the run ends once it returns true. The rows of finished cells are
    /// kept.
    pub fn stop_if(self, stops: &'a (dyn Fn() -> bool + Sync)) -> SweepRun<'a> {
        SweepRun { stops, ..self }
    }

    /// Calls `progress` from all threads with the number of finished cells and that of all cells of the part.
    pub fn report(self, progress: &'a (dyn Fn(usize, usize) + Sync)) -> SweepRun<'a> {
        SweepRun { progress, ..self }
    }

    /// Runs the cells that have no row in the folder yet.
    ///
    /// *Errors:* the folder cannot be read or written or has rows of another sweep; a file of a load cannot be read. The rows of
    /// finished chunks are kept.
    pub fn run(&self) -> Result<SweepSummary, SweepError> {
        let folder = SweepFolder::create(self.folder)?;
        let (mut finished, damaged) = folder.finished(self.plan, self.part)?;
        folder.write_plan(self.plan)?;
        let mine: Vec<usize> = self.plan.part(self.part).collect();
        let reused = with_rows(&mine, &finished);
        let work = self.work(&folder, reused, mine.len());
        (self.progress)(reused, mine.len());
        // The rows of all cells decide which run next where settings are compared until the answer is clear.
        let group = if self.plan.until_clear().is_none() { SEGMENT } else { mine.len().max(1) };
        let (mut costs, mut left) = (CellCosts::new(), 0);
        for cells in mine.chunks(group) {
            let mut next = pending(self.plan, cells, &finished);
            let has_new = !next.is_empty();
            while !next.is_empty() && !work.is_over.load(Ordering::Relaxed) {
                let (chunks, measured) = work.chunks(&next, &mut costs)?;
                for row in work.run_all(&chunks, measured)? {
                    finished.add_row(&row, self.plan.until_clear());
                }
                next = pending(self.plan, cells, &finished);
            }
            left += next.len();
            if has_new && next.is_empty() {
                folder.compact_all(self.plan, self.part)?;
            }
        }
        let is_mine = |index: usize| self.plan.part_of(index, self.part.of) == self.part;
        let failed = finished.errors.iter().filter(|(index, _)| is_mine(**index));
        let with_rows = with_rows(&mine, &finished);
        Ok(SweepSummary {
            cells: mine.len(),
            reused,
            ran: with_rows - reused,
            unneeded: if left == 0 { mine.len() - with_rows } else { 0 },
            failed: failed
                .map(|(index, error)| (self.plan.label(&self.plan.cell(*index)), error.clone()))
                .collect(),
            damaged,
            is_stopped: left > 0,
        })
    }

    /// The indices of the part's cells that run next: they have no row in the folder yet. Where settings are compared until the answer is
    /// clear, more may follow once these have rows.
    ///
    /// *Errors:* those of [`SweepRun::run`].
    pub fn unfinished(&self) -> Result<Vec<usize>, SweepError> {
        let (finished, _) = SweepFolder::create(self.folder)?.finished(self.plan, self.part)?;
        Ok(pending(self.plan, &self.plan.part(self.part).collect::<Vec<_>>(), &finished))
    }

    /// The number of the part's cells that have a row in the folder.
    ///
    /// *Errors:* those of [`SweepRun::run`].
    pub fn finished(&self) -> Result<usize, SweepError> {
        let (finished, _) = SweepFolder::create(self.folder)?.finished(self.plan, self.part)?;
        Ok(self.plan.part(self.part).filter(|index| finished.has(*index)).count())
    }

    /// The label and the error of each cell of the part that failed, by the rows in the folder.
    ///
    /// *Errors:* those of [`SweepRun::run`].
    pub fn failed(&self) -> Result<Vec<(String, String)>, SweepError> {
        let (finished, _) = SweepFolder::create(self.folder)?.finished(self.plan, self.part)?;
        let is_mine = |index: usize| self.plan.part_of(index, self.part.of) == self.part;
        let failed = finished.errors.into_iter().filter(|(index, _)| is_mine(*index));
        Ok(failed.map(|(index, error)| (self.plan.label(&self.plan.cell(index)), error)).collect())
    }

    /// Runs one cell of the plan and stores its row in a file of its own, as one of the part. It reports no progress.
    ///
    /// *Errors:* those of [`SweepRun::run`]; the plan has no such cell.
    pub fn run_cell(&self, index: usize) -> Result<(), SweepError> {
        let folder = SweepFolder::create(self.folder)?;
        self.check_index(index)?;
        let work = self.work(&folder, 0, 1);
        work.run_chunk(&SweepChunk { cells: vec![index] }, &MeasuredRows::new()).map(drop)
    }

    /// Stores a row with an error for a cell that cannot be run, because its process does not survive it.
    ///
    /// *Errors:* the folder cannot be written; the plan has no such cell.
    pub fn store_failure(&self, index: usize, message: &str) -> Result<(), SweepError> {
        self.check_index(index)?;
        let row = SweepRow::failed(self.plan, &self.plan.cell(index), message.to_string());
        SweepFolder::create(self.folder)?.write_rows(self.plan, self.part, vec![row]).map(drop)
    }

    fn check_index(&self, index: usize) -> Result<(), SweepError> {
        let cells = self.plan.len();
        if index < cells { Ok(()) } else { Err(SweepError::Cell { index, cells }) }
    }

    fn work<'w>(&'w self, folder: &'w SweepFolder<'w>, done: usize, of: usize) -> SweepWork<'w> {
        let (drives, is_over) = (SharedDrives::default(), AtomicBool::new(false));
        let small = UnmergedFiles::default();
        SweepWork { run: self, folder, drives, is_over, small, done: AtomicUsize::new(done), of }
    }
}

/// The number of these cells that have rows.
fn with_rows(cells: &[usize], finished: &FinishedCells) -> usize {
    cells.iter().filter(|index| finished.has(**index)).count()
}

/// The state that the threads of a run share.
struct SweepWork<'a> {
    run: &'a SweepRun<'a>,
    folder: &'a SweepFolder<'a>,
    drives: SharedDrives,
    is_over: AtomicBool,
    small: UnmergedFiles,
    done: AtomicUsize,
    of: usize,
}

/// Rows of the cells that were run to measure their cost.
type MeasuredRows = BTreeMap<usize, SweepRow>;

/// The cost of a cell of each rig and load, in seconds of CPU time.
type CellCosts = BTreeMap<(usize, usize), f64>;

impl SweepWork<'_> {
    /// The chunks of the pending cells: of about two seconds by the measured cost of a cell of each rig and load, the longest first.
    fn chunks(
        &self,
        pending: &[usize],
        costs: &mut CellCosts,
    ) -> Result<(Vec<SweepChunk>, MeasuredRows), SweepError> {
        let measured = self.measure(pending, costs)?;
        if self.is_over.load(Ordering::Relaxed) {
            // The rows that were measured before the stop are kept.
            let cells = measured.keys().copied().collect();
            return Ok((vec![SweepChunk { cells }], measured));
        }
        let kind = |index: usize| {
            let cell = self.run.plan.cell(index);
            (cell.rig, cell.load)
        };
        let chunks = chunks_by_cost(pending, kind, costs, rayon::current_num_threads());
        Ok((chunks.into_iter().map(|cells| SweepChunk { cells }).collect(), measured))
    }

    /// Measures the cost of a cell of each rig and load whose cost is not known: one of each is run. Returns their rows.
    fn measure(&self, pending: &[usize], costs: &mut CellCosts) -> Result<MeasuredRows, SweepError> {
        let mut first = BTreeMap::new();
        for index in pending {
            let cell = self.run.plan.cell(*index);
            if !costs.contains_key(&(cell.rig, cell.load)) {
                first.entry((cell.rig, cell.load)).or_insert(*index);
            }
        }
        let first: Vec<((usize, usize), usize)> = first.into_iter().collect();
        let ran: Vec<_> = first.par_iter().map(|(_, index)| self.run_cell(*index)).collect();
        let mut measured = MeasuredRows::new();
        for ((kind, index), outcome) in first.into_iter().zip(ran) {
            let outcome = outcome?;
            costs.insert(kind, outcome.cost_s);
            measured.extend(outcome.row.map(|row| (index, row)));
        }
        Ok(measured)
    }

    /// Runs all chunks on all cores, in their order. Returns the rows that it stored.
    fn run_all(&self, chunks: &[SweepChunk], measured: MeasuredRows) -> Result<Vec<SweepRow>, SweepError> {
        let (next, measured) = (AtomicUsize::new(0), &measured);
        let worker = |_| {
            let mut ran = Vec::new();
            while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let is_measured = chunk.cells.iter().all(|cell| measured.contains_key(cell));
                if self.is_over.load(Ordering::Relaxed) && !is_measured {
                    break;
                }
                let stored = self.run_chunk(chunk, measured);
                if stored.is_err() {
                    self.is_over.store(true, Ordering::Relaxed);
                }
                ran.extend(stored?);
            }
            Ok(ran)
        };
        let ended: Vec<Result<Vec<SweepRow>, SweepError>> =
            (0..rayon::current_num_threads()).into_par_iter().with_max_len(1).map(worker).collect();
        Ok(ended.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Runs the cells of a chunk and stores the rows of those that ended; returns them.
    fn run_chunk(&self, chunk: &SweepChunk, measured: &MeasuredRows) -> Result<Vec<SweepRow>, SweepError> {
        let (mut rows, mut failure) = (Vec::new(), None);
        for index in &chunk.cells {
            let row = match measured.get(index) {
                Some(row) => Some(row.clone()),
                None => match self.run_cell(*index) {
                    Ok(CellOutcome { row: None, .. }) => break,
                    Ok(CellOutcome { row, .. }) => row,
                    Err(error) => {
                        failure = Some(error);
                        break;
                    }
                },
            };
            rows.extend(row);
            let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            (self.run.progress)(done, self.of);
        }
        if !rows.is_empty() {
            let (plan, part) = (self.run.plan, self.run.part);
            for (segment, file) in self.folder.write_rows(plan, part, rows.clone())? {
                self.small.merge(segment, file, |files| self.folder.compact(plan, part, files))?;
            }
        }
        failure.map_or(Ok(rows), Err)
    }

    /// Runs a cell. If it fails, even by a panic, its row has the error.
    ///
    /// *Errors:* a file of the load can no longer be read; that is not a failure of the cell.
    fn run_cell(&self, index: usize) -> Result<CellOutcome, SweepError> {
        let (plan, started) = (self.run.plan, ThreadTime::now());
        let cell = plan.cell(index);
        let ended = catch_unwind(AssertUnwindSafe(|| self.simulate(&cell)));
        let row = match ended {
            Ok(Ok(row)) => row,
            Ok(Err(SweepError::Input(error @ Error::Read { .. }))) => return Err(error.into()),
            Ok(Err(error)) => Some(SweepRow::failed(plan, &cell, error.to_string())),
            Err(panic) => Some(SweepRow::failed(plan, &cell, panic_message(&*panic))),
        };
        Ok(CellOutcome { row, cost_s: started.elapsed().as_secs_f64() })
    }

    /// The row of a cell; none if the run was stopped.
    fn simulate(&self, cell: &SweepCell) -> Result<Option<SweepRow>, SweepError> {
        let plan = self.run.plan;
        let rig = match plan.rig(cell) {
            Ok(rig) => rig,
            Err(message) => return Ok(Some(SweepRow::failed(plan, cell, message))),
        };
        let workload = plan.load_place(cell).workload(plan.trace_options(), self.run.files)?;
        let simulation = Simulation::with_drives(&rig, workload, cell.seed, &self.drives)?;
        let mut stops = || (self.run.stops)();
        let ended = match plan.setup(cell) {
            None => run_whole(simulation, &mut stops)?,
            Some(setup) => match setup.run(&rig, simulation, &mut stops) {
                Ok(ended) => ended,
                Err(message) => return Ok(Some(SweepRow::failed(plan, cell, message))),
            },
        };
        match ended {
            Some(results) => Ok(Some(SweepRow::of_results(plan, cell, &results))),
            None => {
                self.is_over.store(true, Ordering::Relaxed);
                Ok(None)
            }
        }
    }
}

/// Files of a few rows each that a run has written, by segment. Where there are many, they are merged, so that long cells leave few files.
#[derive(Default)]
#[allow(clippy::disallowed_types, reason = "the cells of a sweep run in several threads")]
struct UnmergedFiles(std::sync::Mutex<BTreeMap<usize, Vec<PartFile>>>);

impl UnmergedFiles {
    /// Adds a file, and merges those of its segment if there are enough. Other threads do not wait for that.
    fn merge(
        &self,
        segment: usize,
        file: PartFile,
        merge: impl FnOnce(&[PartFile]) -> Result<Option<PartFile>, SweepError>,
    ) -> Result<(), SweepError> {
        // The lists are valid after a panic: a file is added in one step.
        let lists = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let many = {
            let mut lists = lists();
            let list = lists.entry(segment).or_default();
            list.push(file);
            if list.len() < SMALL_FILES {
                return Ok(());
            }
            std::mem::take(list)
        };
        let merged = merge(&many)?;
        lists().entry(segment).or_default().extend(merged);
        Ok(())
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the simulator stopped, which is a fault of its own: {}", text.unwrap_or("without a message"))
}

/// Runs of cells of one rig and load that take about two seconds, the longest first.
fn chunks_by_cost(
    pending: &[usize],
    kind_of: impl Fn(usize) -> (usize, usize),
    costs: &CellCosts,
    cores: usize,
) -> Vec<Vec<usize>> {
    let most = pending.len().div_ceil(CHUNKS_PER_CORE * cores.max(1)).clamp(1, CHUNK_CELLS);
    let mut by_kind = BTreeMap::<(usize, usize), Vec<usize>>::new();
    for index in pending {
        by_kind.entry(kind_of(*index)).or_default().push(*index);
    }
    let mut chunks = Vec::new();
    for (kind, cells) in by_kind {
        let cost_s = costs.get(&kind).copied().unwrap_or(0.0);
        let length = ((CHUNK_S / cost_s.max(1e-9)) as usize).clamp(1, most);
        chunks.extend(cells.chunks(length).map(|chunk| (chunk.len() as f64 * cost_s, chunk.to_vec())));
    }
    chunks.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    chunks.into_iter().map(|(_, chunk)| chunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_two_seconds_of_work_and_the_longest_come_first() {
        let pending: Vec<usize> = (0..2000).filter(|index| index % 2 == 0).collect();
        let costs = BTreeMap::from([((0, 0), 0.02), ((1, 0), 5.0)]);
        let kind = |index: usize| (index / 1000, 0);
        let chunks = chunks_by_cost(&pending, kind, &costs, 2);
        assert_eq!(chunks.len(), 500 / 100 + 500);
        assert_eq!(chunks[0], [1000], "a cell of five seconds is a chunk of its own");
        assert_eq!(chunks[500].len(), 100);
        let mut all = chunks.concat();
        all.sort_unstable();
        assert_eq!(all, pending);
        let short = chunks_by_cost(&pending[..40], kind, &costs, 2);
        assert_eq!(short.len(), 8, "a short sweep is divided among the cores");
    }
}
