//! A sweep as a Python object: its plan, and its run by the library's own threads.

use crate::error::{CallError, caught, input_error};
use crate::files::MachineFiles;
use headstack_sweep::{MODEL_VERSION, SweepCell, SweepFile, SweepPart, SweepPlan, SweepRun, SweepSummary};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a sweep may ignore Ctrl-C, and the time between two reports.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// A planned sweep. Python's class `Sweep` wraps it.
#[pyclass(name = "Sweep", module = "headstack._native", frozen)]
pub(crate) struct NativeSweep {
    plan: SweepPlan,
}

/// Cells of the sweep, cells that had a row, cells that were run now, and the label and error of each failed cell.
type SummaryTuple = (usize, usize, usize, Vec<(String, String)>);

#[pymethods]
impl NativeSweep {
    /// The sweep of a file's text; `origin` is its path, from which the paths of rigs and loads count.
    #[staticmethod]
    fn from_toml(py: Python<'_>, text: &str, origin: &str) -> PyResult<NativeSweep> {
        let file = SweepFile::parse(text, origin).map_err(input_error)?;
        let plan = py.detach(|| SweepPlan::new(&file, origin, MODEL_VERSION, &MachineFiles));
        Ok(NativeSweep { plan: plan.map_err(input_error)? })
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

    /// Runs the cells of part `number` of `of` that have no row in the folder yet. `report` gets the numbers of finished and of all cells
    /// of the part.
    fn run(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        number: usize,
        of: usize,
        report: Option<Bound<'_, PyAny>>,
    ) -> PyResult<SummaryTuple> {
        let part: SweepPart = format!("{number}/{of}").parse().map_err(input_error)?;
        let report = report.map(Bound::unbind);
        let (ended, raised) = py.detach(|| self.run_watched(&folder, part, report.as_ref()));
        match raised {
            Some(error) => Err(error),
            None => Ok(ended.map(|done| (done.cells, done.reused, done.ran, done.failed))?),
        }
    }
}

impl NativeSweep {
    /// Runs on a thread of its own, while this one handles signals and reports; also returns what a handler or the report raised.
    fn run_watched(
        &self,
        folder: &Path,
        part: SweepPart,
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
            run.run().map_err(|error| CallError::Input(error.to_string()))
        };
        let check = || {
            let (done, of) = (done.load(Ordering::Relaxed), of.load(Ordering::Relaxed));
            Python::attach(|py| {
                py.check_signals()?;
                report.filter(|_| of > 0).map_or(Ok(()), |report| report.call1(py, (done, of)).map(|_| ()))
            })
        };
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| sender.send(caught(work)));
            let mut raised = None;
            loop {
                let ended = receiver.recv_timeout(SIGNAL_INTERVAL);
                if raised.is_none() {
                    raised = check().err();
                    is_stopped.fetch_or(raised.is_some(), Ordering::Relaxed);
                }
                if let Ok(ended) = ended {
                    break (ended, raised);
                }
            }
        })
    }
}
