//! A simulation as a Python object: it runs whole, until a time or step by step.

use crate::error::input_error;
use crate::load::NativeLoad;
use crate::order::is_interrupt;
use crate::results::NativeResults;
use crate::rig::NativeRig;
use crate::run_state::WorkerState;
use crate::worker::{ChooserPlan, LayerPlan, SimulationPlan, SimulationThread, WorkerReply, WorkerTask};
use headstack::sim::LayerPlace;
use headstack::{Instant, RunProgress};
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// How long a run may ignore Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// A simulation. Python's class `Simulation` wraps it.
#[pyclass(name = "Simulation", module = "headstack._native", frozen)]
pub(crate) struct NativeSimulation {
    /// None while a thread waits for a task, once the results were returned, and after an error.
    worker: Mutex<Option<SimulationThread>>,
}

/// A run's progress for Python: virtual time in ns, completed requests, share.
type ProgressTuple = (u64, u64, Option<f64>);

fn as_tuple(progress: RunProgress) -> ProgressTuple {
    (progress.now.0, progress.completed, progress.share)
}

#[pymethods]
impl NativeSimulation {
    /// A load on a rig. `orders` are objects with a method `choose`, each with whether it needs positions and whether it
    /// chooses for the host; `layers` are objects with methods of a layer, each with its place, whether that is a device or a volume,
    /// and whether it defines a method `complete`.
    #[new]
    fn new(
        py: Python<'_>,
        rig: &NativeRig,
        load: &NativeLoad,
        seed: u64,
        keep_requests: bool,
        orders: Vec<(Py<PyAny>, bool, bool)>,
        layers: Vec<(Py<PyAny>, u32, bool, bool)>,
    ) -> PyResult<NativeSimulation> {
        let order = |(chooser, needs_positions, is_host)| ChooserPlan { chooser, needs_positions, is_host };
        let layer = |(object, number, is_device, completes)| {
            let place = if is_device { LayerPlace::Device(number) } else { LayerPlace::Volume(number) };
            LayerPlan { object, place, completes }
        };
        let plan = SimulationPlan {
            rig: rig.rig.clone(),
            rig_name: rig.name.clone(),
            load: load.source.clone(),
            seed,
            keeps_requests: keep_requests,
            orders: orders.into_iter().map(order).collect(),
            layers: layers.into_iter().map(layer).collect(),
        };
        let worker = SimulationThread::start(plan).map_err(input_error)?;
        let simulation = NativeSimulation { worker: Mutex::new(Some(worker)) };
        simulation.reply(py, None, None)?;
        Ok(simulation)
    }

    /// Processes all events up to and at a time, or until the load is done; returns whether events remain. Every `interval_s`
    /// seconds `report` gets the progress; the run ends if it returns false. Ctrl-C also ends the run; then the second value is true.
    #[pyo3(signature = (until_ns, report, interval_s))]
    fn advance(
        &self,
        py: Python<'_>,
        until_ns: Option<u64>,
        report: Option<Bound<'_, PyAny>>,
        interval_s: f64,
    ) -> PyResult<(bool, bool)> {
        let until = until_ns.map_or(Instant::MAX, Instant);
        let interval = Duration::try_from_secs_f64(interval_s).map_err(input_error)?;
        let report = report.map(|report| (report, interval));
        match self.reply(py, Some(WorkerTask::Advance { until }), report)? {
            (WorkerReply::Remain(remains), interrupted) => Ok((remains, interrupted)),
            _ => Err(ended()),
        }
    }

    /// Processes this number of events; returns whether events remain.
    fn step(&self, py: Python<'_>, count: u64) -> PyResult<bool> {
        match self.reply(py, Some(WorkerTask::Step { count }), None)? {
            (WorkerReply::Remain(remains), _) => Ok(remains),
            _ => Err(ended()),
        }
    }

    /// Virtual time in ns, completed requests, and the share of the load that is done, if known.
    fn progress(&self) -> PyResult<ProgressTuple> {
        let worker = self.worker.lock().expect("no thread panics with it");
        let worker = worker.as_ref().ok_or_else(ended)?;
        Ok(worker.shared.progress().map_or((0, 0, None), as_tuple))
    }

    /// The results up to now; the simulation is over.
    fn finish(&self, py: Python<'_>) -> PyResult<NativeResults> {
        match self.reply(py, Some(WorkerTask::Finish), None)? {
            (WorkerReply::Finished(results), _) => Ok(NativeResults::new(*results)),
            _ => Err(ended()),
        }
    }
}

/// The error of a simulation that is over, or that another thread runs.
fn ended() -> PyErr {
    let cure = "make a new one, or wait for the other thread";
    input_error(format!("the simulation is over, or another thread runs it; {cure}"))
}

/// Handles signals and reports progress while Python's thread waits for a task.
struct RunWatch<'py> {
    report: Option<(Bound<'py, PyAny>, Duration)>,
    waited: Duration,
    /// Whether the report has ended the run.
    is_stopped: bool,
    /// The exception that a signal handler or the report raised.
    raised: Option<PyErr>,
}

impl RunWatch<'_> {
    /// How long to wait before the next check.
    fn interval(&self) -> Duration {
        let report = self.report.as_ref().map_or(SIGNAL_INTERVAL, |(_, interval)| *interval);
        report.clamp(Duration::from_millis(1), SIGNAL_INTERVAL)
    }

    /// Handles signals and reports progress after each interval. Ends the run if a signal handler or the report raises, or if the report
    /// returns false.
    fn check(&mut self, py: Python<'_>, shared: &WorkerState) {
        if self.raised.is_some() || self.is_stopped {
            return;
        }
        self.waited += self.interval();
        let result = py.check_signals().and_then(|()| self.call_report(shared));
        self.raised = result.err();
        if let Some(error) = &self.raised {
            shared.stop(if is_interrupt(error) { "SIGINT" } else { "exception" });
        }
    }

    fn call_report(&mut self, shared: &WorkerState) -> PyResult<()> {
        let Some((report, interval)) = &self.report else { return Ok(()) };
        let Some(progress) = shared.progress().filter(|_| self.waited >= *interval) else { return Ok(()) };
        self.waited = Duration::ZERO;
        let answer = report.call1(as_tuple(progress))?;
        if !answer.is_none() && !answer.is_truthy()? {
            self.is_stopped = true;
            shared.stop("progress");
        }
        Ok(())
    }
}

impl NativeSimulation {
    /// Sends a task to the thread and waits for the reply without the global lock. Also returns whether Ctrl-C ended the run.
    ///
    /// *Errors:* that of the task, of the report, or of a handler of a signal.
    fn reply(
        &self,
        py: Python<'_>,
        task: Option<WorkerTask>,
        report: Option<(Bound<'_, PyAny>, Duration)>,
    ) -> PyResult<(WorkerReply, bool)> {
        let mut worker = self.worker.lock().expect("no thread panics with it").take().ok_or_else(ended)?;
        if let Some(task) = task {
            worker.tasks.send(task).map_err(|_| ended())?;
        }
        let mut watch = RunWatch { report, waited: Duration::ZERO, is_stopped: false, raised: None };
        let reply = loop {
            let interval = watch.interval();
            let (met, returned) = py.detach(move || (worker.replies.recv_timeout(interval), worker));
            worker = returned;
            match met {
                Ok(reply) => break reply,
                Err(RecvTimeoutError::Timeout) => watch.check(py, &worker.shared),
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            }
        };
        match reply {
            WorkerReply::Failed(error) => return Err(error.into()),
            WorkerReply::Remain(_) => *self.worker.lock().expect("no thread panics with it") = Some(worker),
            WorkerReply::Finished(_) => {}
        }
        match watch.raised {
            None => Ok((reply, false)),
            Some(error) if is_interrupt(&error) => Ok((reply, true)),
            Some(error) => Err(error),
        }
    }
}
