//! Runs the cells of a plan on all cores, in chunks, and writes their rows.

use crate::drives::SharedDrives;
use crate::error::SweepError;
use crate::folder::{FinishedCells, SweepFolder};
use crate::inputs::SharedFiles;
use crate::pending::pending;
use crate::plan::{SweepCell, SweepPart, SweepPlan};
use crate::row::SweepRow;
use cpu_time::ThreadTime;
use headstack::{Error, Simulation, Workload};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// CPU time of a chunk, in seconds: a thousand times what it costs the usual task engines to pass a chunk to a worker.
const CHUNK_S: f64 = 2.0;

/// Maximum number of cells in a chunk, for cells that take no time because they fail.
const CHUNK_CELLS: usize = 1000;

/// Chunks per core that a sweep has at least, so that all cores end at about the same time.
const CHUNKS_PER_CORE: usize = 4;

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
        let mut finished = folder.finished(self.plan)?;
        folder.write_plan(self.plan)?;
        let mine: Vec<usize> = self.plan.part(self.part).collect();
        let reused = self.with_rows(&finished);
        let work = self.work(&folder, reused, mine.len());
        (self.progress)(reused, mine.len());
        let mut next = pending(self.plan, &mine, &finished);
        while !next.is_empty() && !work.is_over.load(Ordering::Relaxed) {
            let (chunks, measured) = work.chunks(&next)?;
            match work.run_all(&chunks, &measured)? {
                Some(ran) => finished.extend(ran),
                None => finished = folder.finished(self.plan)?,
            }
            next = pending(self.plan, &mine, &finished);
        }
        let error = |index: &usize| {
            let cell = &self.plan.cells()[*index];
            Some((self.plan.label(cell), finished.get(&cell.key)?.error.clone()?))
        };
        let with_rows = self.with_rows(&finished);
        Ok(SweepSummary {
            cells: mine.len(),
            reused,
            ran: with_rows - reused,
            unneeded: if next.is_empty() { mine.len() - with_rows } else { 0 },
            failed: mine.iter().filter_map(error).collect(),
            is_stopped: !next.is_empty(),
        })
    }

    /// The indices of the part's cells that run next: they have no row in the folder yet. Where settings are compared until the answer is
    /// clear, more may follow once these have rows.
    ///
    /// *Errors:* those of [`SweepRun::run`].
    pub fn unfinished(&self) -> Result<Vec<usize>, SweepError> {
        let finished = SweepFolder::create(self.folder)?.finished(self.plan)?;
        Ok(pending(self.plan, &self.plan.part(self.part).collect::<Vec<_>>(), &finished))
    }

    /// The number of the part's cells that have a row in the folder.
    ///
    /// *Errors:* those of [`SweepRun::run`].
    pub fn finished(&self) -> Result<usize, SweepError> {
        let finished = SweepFolder::create(self.folder)?.finished(self.plan)?;
        Ok(self.with_rows(&finished))
    }

    /// The number of the part's cells among the finished ones.
    fn with_rows(&self, finished: &FinishedCells) -> usize {
        let has_row = |index: &usize| finished.contains_key(&self.plan.cells()[*index].key);
        self.plan.part(self.part).filter(has_row).count()
    }

    /// Runs one cell of the plan and stores its row in a file of its own, unless that file exists. It reports no progress.
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
        let row = SweepRow::failed(self.plan, &self.plan.cells()[index], message.to_string());
        SweepFolder::create(self.folder)?.write_rows(self.plan, &[row])
    }

    fn check_index(&self, index: usize) -> Result<(), SweepError> {
        let cells = self.plan.cells().len();
        if index < cells { Ok(()) } else { Err(SweepError::Cell { index, cells }) }
    }

    fn work<'w>(&'w self, folder: &'w SweepFolder<'w>, done: usize, of: usize) -> SweepWork<'w> {
        let (drives, is_over) = (SharedDrives::default(), AtomicBool::new(false));
        SweepWork { run: self, folder, drives, is_over, done: AtomicUsize::new(done), of }
    }
}

/// The state that the threads of a run share.
struct SweepWork<'a> {
    run: &'a SweepRun<'a>,
    folder: &'a SweepFolder<'a>,
    drives: SharedDrives,
    is_over: AtomicBool,
    done: AtomicUsize,
    of: usize,
}

/// Rows of the cells that were run to measure their cost.
type MeasuredRows = BTreeMap<usize, SweepRow>;

impl SweepWork<'_> {
    /// The chunks of the pending cells: those that an earlier run chose, else of about two seconds by the measured cost of a cell of
    /// each rig and load, the longest first.
    fn chunks(&self, pending: &[usize]) -> Result<(Vec<SweepChunk>, MeasuredRows), SweepError> {
        let plan = self.run.plan;
        let mut measured = MeasuredRows::new();
        // With an early stop, the rows so far decide which cells the next chunks have.
        let keeps_chunks = plan.until_clear().is_none();
        let stored = if keeps_chunks { self.folder.chunks(plan, self.run.part) } else { None };
        let keys = match stored {
            Some(keys) => keys,
            None => {
                let costs = self.measure(pending, &mut measured)?;
                let chunks = chunks_by_cost(plan.cells(), pending, &costs, rayon::current_num_threads());
                let key = |index: &usize| plan.cells()[*index].key.clone();
                let keys = chunks.iter().map(|chunk| chunk.iter().map(key).collect()).collect();
                if self.is_over.load(Ordering::Relaxed) {
                    return Ok((Vec::new(), measured));
                }
                if keeps_chunks { self.folder.store_chunks(plan, self.run.part, keys)? } else { keys }
            }
        };
        let index_of: BTreeMap<&str, usize> =
            pending.iter().map(|index| (plan.cells()[*index].key.as_str(), *index)).collect();
        let chunk = |keys: &Vec<String>| SweepChunk {
            cells: keys.iter().filter_map(|key| index_of.get(key.as_str()).copied()).collect(),
        };
        let mut chunks: Vec<SweepChunk> =
            keys.iter().map(chunk).filter(|chunk| !chunk.cells.is_empty()).collect();
        // A part was removed after the chunks were chosen without its cells.
        let chosen: BTreeSet<usize> = chunks.iter().flat_map(|chunk| chunk.cells.iter().copied()).collect();
        let missing = pending.iter().copied().filter(|index| !chosen.contains(index));
        chunks.extend(missing.map(|index| SweepChunk { cells: vec![index] }));
        Ok((chunks, measured))
    }

    /// The cost of a cell of each rig and load, in seconds of CPU time: one of each is run.
    fn measure(
        &self,
        pending: &[usize],
        measured: &mut MeasuredRows,
    ) -> Result<BTreeMap<(usize, usize), f64>, SweepError> {
        let mut first = BTreeMap::new();
        for index in pending {
            let cell = &self.run.plan.cells()[*index];
            first.entry((cell.rig, cell.load)).or_insert(*index);
        }
        let first: Vec<((usize, usize), usize)> = first.into_iter().collect();
        let ran: Vec<_> = first.par_iter().map(|(_, index)| self.run_cell(*index)).collect();
        let mut costs = BTreeMap::new();
        for ((kind, index), outcome) in first.into_iter().zip(ran) {
            let outcome = outcome?;
            costs.insert(kind, outcome.cost_s);
            measured.extend(outcome.row.map(|row| (index, row)));
        }
        Ok(costs)
    }

    /// Runs all chunks on all cores, in their order. Returns the cells that it stored; none if another run on this folder stored some
    /// of them, whose rows must be read.
    fn run_all(
        &self,
        chunks: &[SweepChunk],
        measured: &MeasuredRows,
    ) -> Result<Option<FinishedCells>, SweepError> {
        let next = AtomicUsize::new(0);
        let worker = |_| {
            let mut ran = Some(FinishedCells::new());
            while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.is_over.load(Ordering::Relaxed) {
                    break;
                }
                let stored = self.run_chunk(chunk, measured);
                if stored.is_err() {
                    self.is_over.store(true, Ordering::Relaxed);
                }
                ran = joined(ran, stored?);
            }
            Ok(ran)
        };
        let ended: Vec<Result<Option<FinishedCells>, SweepError>> =
            (0..rayon::current_num_threads()).into_par_iter().with_max_len(1).map(worker).collect();
        ended.into_iter().try_fold(Some(FinishedCells::new()), |all, ran| Ok(joined(all, ran?)))
    }

    /// Runs the cells of a chunk and stores the rows of those that ended. Returns these cells; none if another run has stored the chunk.
    fn run_chunk(
        &self,
        chunk: &SweepChunk,
        measured: &MeasuredRows,
    ) -> Result<Option<FinishedCells>, SweepError> {
        let cells = self.run.plan.cells();
        // Another run on this folder may have stored it meanwhile.
        let keys = chunk.cells.iter().map(|index| cells[*index].key.as_str());
        let is_stored = self.folder.part_file(keys).exists();
        let (mut rows, mut failure) = (Vec::new(), None);
        for index in &chunk.cells {
            let row = match measured.get(index) {
                _ if is_stored => None,
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
            self.folder.write_rows(self.run.plan, &rows)?;
        }
        let column = self.run.plan.until_clear();
        let finished = rows.into_iter().map(|row| (row.key.clone(), row.finished(column)));
        failure.map_or_else(|| Ok((!is_stored).then(|| finished.collect())), Err)
    }

    /// Runs a cell. If it fails, even by a panic, its row has the error.
    ///
    /// *Errors:* a file of the load can no longer be read; that is not a failure of the cell.
    fn run_cell(&self, index: usize) -> Result<CellOutcome, SweepError> {
        let (plan, started) = (self.run.plan, ThreadTime::now());
        let cell = &plan.cells()[index];
        let ended = catch_unwind(AssertUnwindSafe(|| self.simulate(cell)));
        let row = match ended {
            Ok(Ok(row)) => row,
            Ok(Err(error @ Error::Read { .. })) => return Err(error.into()),
            Ok(Err(error)) => Some(SweepRow::failed(plan, cell, error.to_string())),
            Err(panic) => Some(SweepRow::failed(plan, cell, panic_message(&*panic))),
        };
        Ok(CellOutcome { row, cost_s: started.elapsed().as_secs_f64() })
    }

    /// The row of a cell; none if the run was stopped.
    fn simulate(&self, cell: &SweepCell) -> Result<Option<SweepRow>, Error> {
        let plan = self.run.plan;
        let rig = match plan.rig(cell) {
            Ok(rig) => rig,
            Err(message) => return Ok(Some(SweepRow::failed(plan, cell, message.to_string()))),
        };
        let workload = Workload::open(plan.load_path(cell), plan.trace_options(), self.run.files)?;
        let mut simulation = Simulation::with_drives(rig, workload, cell.seed, &self.drives)?;
        let mut is_stopped = (self.run.stops)();
        if !is_stopped {
            simulation.run_while(&mut |_| {
                is_stopped = (self.run.stops)();
                if is_stopped { ControlFlow::Break("stopped".to_string()) } else { ControlFlow::Continue(()) }
            });
        }
        if is_stopped {
            self.is_over.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        let results = simulation.finish()?;
        Ok(Some(SweepRow::of_results(plan, cell, &results)))
    }
}

/// The cells of both; none unless both are known.
fn joined(one: Option<FinishedCells>, other: Option<FinishedCells>) -> Option<FinishedCells> {
    one.zip(other).map(|(mut one, other)| {
        one.extend(other);
        one
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the simulator stopped, which is a fault of its own: {}", text.unwrap_or("without a message"))
}

/// Runs of cells of one rig and load that take about two seconds, the longest first.
fn chunks_by_cost(
    cells: &[SweepCell],
    pending: &[usize],
    costs: &BTreeMap<(usize, usize), f64>,
    cores: usize,
) -> Vec<Vec<usize>> {
    let most = pending.len().div_ceil(CHUNKS_PER_CORE * cores.max(1)).clamp(1, CHUNK_CELLS);
    let mut chunks = Vec::new();
    for (kind, cost_s) in costs {
        let of_kind =
            pending.iter().copied().filter(|index| (cells[*index].rig, cells[*index].load) == *kind);
        let of_kind: Vec<usize> = of_kind.collect();
        let length = ((CHUNK_S / cost_s.max(1e-9)) as usize).clamp(1, most);
        chunks.extend(of_kind.chunks(length).map(|chunk| (chunk.len() as f64 * cost_s, chunk.to_vec())));
    }
    chunks.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    chunks.into_iter().map(|(_, chunk)| chunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_two_seconds_of_work_and_the_longest_come_first() {
        let cell = |index: usize| SweepCell {
            key: index.to_string(),
            rig: index / 1000,
            load: 0,
            settings: 0,
            seed: index as u64,
        };
        let cells: Vec<SweepCell> = (0..2000).map(cell).collect();
        let pending: Vec<usize> = (0..2000).filter(|index| index % 2 == 0).collect();
        let costs = BTreeMap::from([((0, 0), 0.02), ((1, 0), 5.0)]);
        let chunks = chunks_by_cost(&cells, &pending, &costs, 2);
        assert_eq!(chunks.len(), 500 / 100 + 500);
        assert_eq!(chunks[0], [1000], "a cell of five seconds is a chunk of its own");
        assert_eq!(chunks[500].len(), 100);
        let mut all = chunks.concat();
        all.sort_unstable();
        assert_eq!(all, pending);
        let short = chunks_by_cost(&cells, &pending[..40], &costs, 2);
        assert_eq!(short.len(), 8, "a short sweep is divided among the cores");
    }
}
