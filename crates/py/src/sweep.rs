//! A sweep as a Python object: its plan, its run by the library's own threads, and its rows.

use crate::error::{CallError, detached, input_error};
use crate::files::MachineFiles;
use crate::watch::{own_threads, watched};
use headstack_sweep::{
    MODEL_VERSION, SweepCell, SweepError, SweepFile, SweepPart, SweepPlan, SweepRun, SweepSummary, read_rows,
};
use pyo3::prelude::*;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A planned sweep. Python's class `Sweep` wraps it.
#[pyclass(name = "Sweep", module = "headstack._native", frozen)]
pub(crate) struct NativeSweep {
    plan: SweepPlan,
}

/// Cells of the sweep, cells that had a row, cells that were run now, cells that need no run, and the label and error of each failed cell.
type SummaryTuple = (usize, usize, usize, usize, Vec<(String, String)>);

#[pymethods]
impl NativeSweep {
    /// The sweep of a file's text; `origin` is its path. The paths of rigs and loads are relative to its folder.
    #[staticmethod]
    fn from_toml(py: Python<'_>, text: &str, origin: &str) -> PyResult<NativeSweep> {
        let file = SweepFile::parse(text, origin).map_err(input_error)?;
        let threads = own_threads(0)?;
        let plan = py.detach(|| threads.install(|| SweepPlan::new(&file, origin, MODEL_VERSION, &MachineFiles)));
        Ok(NativeSweep { plan: plan.map_err(input_error)? })
    }

    /// The sweep of a file's keys in JSON; paths are relative to the folder of `origin`.
    #[staticmethod]
    fn from_json(py: Python<'_>, json: &str, origin: &str) -> PyResult<NativeSweep> {
        let value: toml::Value = serde_json::from_str(json).map_err(input_error)?;
        let text = toml::to_string(&value).map_err(input_error)?;
        NativeSweep::from_toml(py, &text, origin)
    }

    /// Key, label, rig, load and seed of each cell.
    fn cells(&self) -> Vec<(String, String, String, String, u64)> {
        let plan = &self.plan;
        let tuple = |cell: &SweepCell| {
            let (rig, load) = (plan.rig_name(cell).to_string(), plan.load_name(cell).to_string());
            (cell.key.clone(), plan.label(cell), rig, load, cell.seed)
        };
        plan.cells().iter().map(tuple).collect()
    }

    /// The keys that its cells set, each a column of the rows.
    fn setting_keys(&self) -> Vec<String> {
        self.plan.setting_keys().to_vec()
    }

    /// The indices of the cells that run next: they have no row in the folder.
    fn unfinished(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<usize>> {
        detached(py, || self.run_in(&folder).unfinished().map_err(call_error))
    }

    /// The number of cells that have a row in the folder.
    fn finished(&self, py: Python<'_>, folder: PathBuf) -> PyResult<usize> {
        detached(py, || self.run_in(&folder).finished().map_err(call_error))
    }

    /// Runs a cell and stores its row.
    fn run_cell(&self, py: Python<'_>, folder: PathBuf, index: usize) -> PyResult<()> {
        detached(py, || self.run_in(&folder).run_cell(index).map_err(call_error))
    }

    /// Stores a row with an error for a cell that ends its process.
    fn store_failure(&self, py: Python<'_>, folder: PathBuf, index: usize, message: &str) -> PyResult<()> {
        detached(py, || self.run_in(&folder).store_failure(index, message).map_err(call_error))
    }

    /// The columns of the rows in the folder as a JSON object of lists, in the order of the plan's cells.
    fn rows(&self, py: Python<'_>, folder: PathBuf) -> PyResult<String> {
        detached(py, || {
            let found = read_rows(&folder).map_err(call_error)?;
            Ok(columns_json(&self.plan, found))
        })
    }

    /// Runs the cells of part `number` of `of` that have no row in the folder yet, on this many threads; 0 is one for each core. `report`
    /// gets the numbers of finished and of all cells of the part.
    fn run(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        number: usize,
        of: usize,
        threads: usize,
        report: Option<Bound<'_, PyAny>>,
    ) -> PyResult<SummaryTuple> {
        let part: SweepPart = format!("{number}/{of}").parse().map_err(input_error)?;
        let report = report.map(Bound::unbind);
        let threads = own_threads(threads)?;
        let (ended, raised) = py.detach(|| self.run_watched(&folder, part, &threads, report.as_ref()));
        match raised {
            Some(error) => Err(error),
            None => Ok(ended.map(|done| (done.cells, done.reused, done.ran, done.unneeded, done.failed))?),
        }
    }
}

/// The error of a sweep, as an error in the input.
fn call_error(error: SweepError) -> CallError {
    CallError::Input(error.to_string())
}

/// The columns of the rows as a JSON object of lists of equal length, in the order of the plan's cells.
fn columns_json(plan: &SweepPlan, rows: Vec<Map<String, Value>>) -> String {
    let by_key: BTreeMap<String, Map<String, Value>> =
        rows.into_iter().map(|row| (row["key"].as_str().unwrap_or_default().to_string(), row)).collect();
    let in_order: Vec<&Map<String, Value>> =
        plan.cells().iter().filter_map(|cell| by_key.get(&cell.key)).collect();
    let names = in_order.first().map(|row| row.keys()).into_iter().flatten();
    let column = |name: &String| {
        let values = in_order.iter().map(|row| row.get(name).cloned().unwrap_or(Value::Null));
        (name.clone(), Value::Array(values.collect()))
    };
    Value::Object(names.map(column).collect()).to_string()
}

impl NativeSweep {
    fn run_in<'a>(&'a self, folder: &'a Path) -> SweepRun<'a> {
        SweepRun::new(&self.plan, folder, &MachineFiles)
    }

    /// Runs a part of the sweep on `threads`, while the calling thread handles signals and reports. Also returns the exception that a signal
    /// handler or the report raised.
    fn run_watched(
        &self,
        folder: &Path,
        part: SweepPart,
        threads: &rayon::ThreadPool,
        report: Option<&Py<PyAny>>,
    ) -> (Result<SweepSummary, CallError>, Option<PyErr>) {
        let (is_stopped, done, of) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        let stops = || is_stopped.load(Ordering::Relaxed);
        let progress = |finished: usize, cells: usize| {
            done.fetch_max(finished, Ordering::Relaxed);
            of.store(cells, Ordering::Relaxed);
        };
        let work = || {
            let run =
                SweepRun::new(&self.plan, folder, &MachineFiles).part(part).stop_if(&stops).report(&progress);
            threads.install(|| run.run()).map_err(|error| CallError::Input(error.to_string()))
        };
        let check = || {
            let (done, of) = (done.load(Ordering::Relaxed), of.load(Ordering::Relaxed));
            Python::attach(|py| {
                py.check_signals()?;
                if let Some(report) = report.filter(|_| of > 0) {
                    report.call1(py, (done, of))?;
                }
                Ok(())
            })
        };
        watched(&is_stopped, work, check)
    }
}
