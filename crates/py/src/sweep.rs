//! A sweep as a Python object: its plan, its run by the library's own threads, and its rows.

use crate::error::{CallError, detached, input_error};
use crate::files::MachineFiles;
use crate::load::NativeLoad;
use crate::rig::NativeRig;
use crate::sweep_setup::PythonSetup;
use crate::watch::{own_threads, watched};
use headstack_sweep::{
    ColumnValues, MODEL_VERSION, SweepCell, SweepError, SweepFile, SweepObjects, SweepPart, SweepPlan,
    SweepRig, SweepRun, SweepSetup, SweepSummary, read_table,
};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Texts of more bytes, which are mostly keys, are a string each; shorter ones are shared by all rows.
const SHARED_TEXT: usize = 31;

/// A planned sweep. Python's class `Sweep` wraps it.
#[pyclass(name = "Sweep", module = "headstack._native", frozen)]
pub(crate) struct NativeSweep {
    plan: SweepPlan,
}

/// Cells of the sweep, cells that had a row, cells that were run now, cells that need no run, the label and error of each failed cell, and the
/// files that were damaged.
type SummaryTuple = (usize, usize, usize, usize, Vec<(String, String)>, Vec<PathBuf>);

/// A rig of the program by its name in the sweep, with the orders and layers in Python that it has, and all that decides about these.
#[derive(FromPyObject)]
struct RigObject<'py>(
    String,
    PyRef<'py, NativeRig>,
    Vec<(Py<PyAny>, bool, bool)>,
    Vec<(Py<PyAny>, u32, bool, bool)>,
    Vec<u8>,
);

#[pymethods]
impl NativeSweep {
    /// The sweep of a file's text; `origin` is its path. The paths of rigs and loads are relative to its folder.
    #[staticmethod]
    fn from_toml(py: Python<'_>, text: &str, origin: &str) -> PyResult<NativeSweep> {
        planned(py, text, origin, &SweepObjects::default())
    }

    /// The sweep of a file's keys in JSON; paths are relative to the folder of `origin`. `rigs` and `loads` have the objects that it names.
    #[staticmethod]
    fn from_json(
        py: Python<'_>,
        json: &str,
        origin: &str,
        rigs: Vec<RigObject<'_>>,
        loads: Vec<(String, PyRef<'_, NativeLoad>)>,
    ) -> PyResult<NativeSweep> {
        let value: toml::Value = serde_json::from_str(json).map_err(input_error)?;
        let text = toml::to_string(&value).map_err(input_error)?;
        let mut objects = SweepObjects::default();
        for RigObject(name, rig, orders, layers, content) in rigs {
            let has_python = !orders.is_empty() || !layers.is_empty();
            let setup = || Arc::new(PythonSetup::new(orders, layers, content)) as Arc<dyn SweepSetup>;
            let rig = SweepRig { rig: rig.rig.clone(), setup: has_python.then(setup) };
            objects.rigs.insert(name, rig);
        }
        for (name, load) in loads {
            objects.loads.insert(name, Arc::new(load.source.clone()));
        }
        planned(py, &text, origin, &objects)
    }

    /// Number of cells.
    fn __len__(&self) -> usize {
        self.plan.len()
    }

    /// Key, label, rig, load and seed of each cell.
    fn cells(&self) -> Vec<(String, String, String, String, u64)> {
        let plan = &self.plan;
        let tuple = |cell: SweepCell| {
            let (rig, load) = (plan.rig_name(&cell).to_string(), plan.load_name(&cell).to_string());
            (plan.key(&cell), plan.label(&cell), rig, load, cell.seed)
        };
        plan.cells().map(tuple).collect()
    }

    /// The indices of the cells that run next: they have no row in the folder.
    fn unfinished(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<usize>> {
        detached(py, || self.run_in(&folder).unfinished().map_err(call_error))
    }

    /// The number of cells that have a row in the folder.
    fn finished(&self, py: Python<'_>, folder: PathBuf) -> PyResult<usize> {
        detached(py, || self.run_in(&folder).finished().map_err(call_error))
    }

    /// The label and the error of each cell that failed, by the rows in the folder.
    fn failed(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<(String, String)>> {
        detached(py, || self.run_in(&folder).failed().map_err(call_error))
    }

    /// Runs a cell and stores its row, as one of its part of `of`.
    fn run_cell(&self, py: Python<'_>, folder: PathBuf, index: usize, of: usize) -> PyResult<()> {
        let part = self.plan.part_of(index, of);
        detached(py, || self.run_in(&folder).part(part).run_cell(index).map_err(call_error))
    }

    /// Stores a row with an error for a cell that ends its process.
    fn store_failure(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        index: usize,
        of: usize,
        message: &str,
    ) -> PyResult<()> {
        let part = self.plan.part_of(index, of);
        detached(py, || self.run_in(&folder).part(part).store_failure(index, message).map_err(call_error))
    }

    /// The columns of the rows in the folder, in the order of the plan's cells: lists of text, arrays of numbers, lists of arrays.
    fn rows<'py>(&self, py: Python<'py>, folder: PathBuf) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let table = detached(py, || read_table(&self.plan, &folder).map_err(call_error))?;
        table
            .columns()
            .map(|(name, values)| {
                Ok((name.to_string(), column(py, values, self.plan.setting_kinds().contains_key(name))?))
            })
            .collect()
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
            None => Ok(ended
                .map(|done| (done.cells, done.reused, done.ran, done.unneeded, done.failed, done.damaged))?),
        }
    }
}

/// The error of a sweep, as an error in the input.
fn call_error(error: SweepError) -> CallError {
    CallError::Input(error.to_string())
}

/// The plan of a sweep file's text.
fn planned(py: Python<'_>, text: &str, origin: &str, objects: &SweepObjects) -> PyResult<NativeSweep> {
    let file = SweepFile::parse(text, origin).map_err(input_error)?;
    let plan = py.detach(|| SweepPlan::with_objects(&file, origin, MODEL_VERSION, &MachineFiles, objects));
    Ok(NativeSweep { plan: plan.map_err(input_error)? })
}

/// A column as an array of NumPy, NaN where a number is absent, or as a list. Whole numbers stay so where they are settings, whose type does
/// not depend on whether some cell has failed.
fn column<'py>(py: Python<'py>, values: &ColumnValues, is_setting: bool) -> PyResult<Bound<'py, PyAny>> {
    let numbers = |found: Vec<f64>| found.into_pyarray(py).into_any();
    Ok(match values {
        ColumnValues::Text(found) => {
            let mut known = BTreeMap::<&str, Bound<'py, PyString>>::new();
            let list = PyList::empty(py);
            for value in found {
                match value.as_deref() {
                    None => list.append(py.None())?,
                    Some(word) if word.len() > SHARED_TEXT => list.append(word)?,
                    Some(word) => {
                        list.append(&*known.entry(word).or_insert_with(|| PyString::new(py, word)))?
                    }
                }
            }
            list.into_any()
        }
        ColumnValues::Whole(found) => match found.iter().copied().collect::<Option<Vec<i64>>>() {
            Some(all) if is_setting => all.into_pyarray(py).into_any(),
            _ => numbers(found.iter().map(|value| value.map_or(f64::NAN, |whole| whole as f64)).collect()),
        },
        ColumnValues::Unsigned(found) => found.clone().into_pyarray(py).into_any(),
        ColumnValues::Real(found) => numbers(found.iter().map(|value| value.unwrap_or(f64::NAN)).collect()),
        ColumnValues::Flag(found) => match found.iter().copied().collect::<Option<Vec<bool>>>() {
            Some(all) => all.into_pyarray(py).into_any(),
            None => found.clone().into_pyobject(py)?.into_any(),
        },
        ColumnValues::Lists(found) => {
            let arrays = found.iter().map(|list| list.clone().into_pyarray(py));
            PyList::new(py, arrays)?.into_any()
        }
    })
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
