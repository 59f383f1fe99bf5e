//! The thread of a simulation: it builds the simulation, and carries out one task after the other.
//!
//! A simulation holds readers of files, which no other thread may use; so it stays on the thread on which it was built, and Python's
//! threads wait for its replies without the global lock.

use crate::error::{CallError, caught};
use crate::load::LoadSource;
use crate::order::{PythonOrder, RaisedSlot};
use headstack::{Instant, Results, Rig, RunProgress, Simulation};
use pyo3::prelude::*;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// What a simulation is made of.
pub(crate) struct SimulationPlan {
    pub(crate) rig: Rig,
    pub(crate) rig_name: String,
    pub(crate) load: LoadSource,
    pub(crate) seed: u64,
    pub(crate) keeps_requests: bool,
    pub(crate) orders: Vec<ChooserPlan>,
}

/// An order written in Python, and where it chooses.
pub(crate) struct ChooserPlan {
    pub(crate) chooser: Py<PyAny>,
    pub(crate) needs_positions: bool,
    /// Whether it chooses in the host's queues, not in the drives.
    pub(crate) is_host: bool,
}

/// A task of the thread.
pub(crate) enum WorkerTask {
    /// Process all events up to and at a time.
    Advance { until: Instant },
    /// Process this number of events.
    Step { count: u64 },
    /// Return the results, and end.
    Finish,
}

/// The reply to a task, and the first one, to the plan.
pub(crate) enum WorkerReply {
    /// Whether events remain.
    Remain(bool),
    Finished(Box<Results>),
    Failed(CallError),
}

/// What the thread and its owner share while a task is carried out.
#[derive(Default)]
pub(crate) struct WorkerState {
    progress: Mutex<Option<RunProgress>>,
    /// Why to end the run now.
    stop: Mutex<Option<String>>,
}

impl WorkerState {
    /// The progress at the last report.
    pub(crate) fn progress(&self) -> Option<RunProgress> {
        *self.progress.lock().expect("no thread panics with it")
    }

    /// Ends the run at the next report.
    pub(crate) fn stop(&self, reason: &str) {
        *self.stop.lock().expect("no thread panics with it") = Some(reason.to_string());
    }

    fn report(&self, progress: &RunProgress) -> ControlFlow<String> {
        *self.progress.lock().expect("no thread panics with it") = Some(*progress);
        let reason = self.stop.lock().expect("no thread panics with it").clone();
        reason.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }
}

/// The owner's ends of the channels.
pub(crate) struct SimulationThread {
    pub(crate) tasks: Sender<WorkerTask>,
    pub(crate) replies: Receiver<WorkerReply>,
    pub(crate) shared: Arc<WorkerState>,
}

impl SimulationThread {
    /// Starts a thread that builds the simulation; its first reply says whether that worked.
    ///
    /// *Errors:* the system has no thread left.
    pub(crate) fn start(plan: SimulationPlan) -> io::Result<SimulationThread> {
        let (tasks, received) = channel();
        let (answers, replies) = channel();
        let shared = Arc::new(WorkerState::default());
        let theirs = Arc::clone(&shared);
        let body = move || {
            // The thread stays known to Python, so that orders enter it quickly.
            let has_orders = !plan.orders.is_empty();
            let work = move || {
                let failed = answers.clone();
                if let Err(error) = caught(|| serve(plan, &received, &answers, &theirs)) {
                    // Without an owner no one needs the error.
                    let _ = failed.send(WorkerReply::Failed(error));
                }
            };
            if has_orders { Python::attach(|py| py.detach(work)) } else { work() }
        };
        thread::Builder::new().name("headstack".to_string()).spawn(body)?;
        Ok(SimulationThread { tasks, replies, shared })
    }
}

/// Builds the simulation and carries out tasks until its owner is gone.
fn serve(
    plan: SimulationPlan,
    tasks: &Receiver<WorkerTask>,
    replies: &Sender<WorkerReply>,
    shared: &WorkerState,
) -> Result<(), CallError> {
    let raised = RaisedSlot::default();
    let rig_name = plan.rig_name.clone();
    let mut simulation = built(plan, &raised)?;
    let ended = |simulation: &Simulation<'_>| {
        *shared.progress.lock().expect("no thread panics with it") = Some(simulation.progress());
    };
    let mut reply = WorkerReply::Remain(true);
    while replies.send(reply).is_ok() {
        let Ok(task) = tasks.recv() else { return Ok(()) };
        let remains = match task {
            WorkerTask::Finish => {
                let mut results = simulation.finish()?;
                results.rig.name = rig_name;
                // Without an owner no one needs the results.
                let _ = replies.send(WorkerReply::Finished(Box::new(results)));
                return Ok(());
            }
            WorkerTask::Step { count } => (0..count).all(|_| !raised.has_raised() && simulation.step()),
            WorkerTask::Advance { until } => simulation.run_until_while(until, &mut |progress| {
                if raised.has_raised() {
                    return ControlFlow::Break("order".to_string());
                }
                shared.report(progress)
            }),
        };
        ended(&simulation);
        if let Some(error) = raised.clone().into_raised() {
            return Err(CallError::Raised(error));
        }
        reply = WorkerReply::Remain(remains);
    }
    Ok(())
}

fn built(plan: SimulationPlan, raised: &RaisedSlot) -> Result<Simulation<'static>, CallError> {
    let mut simulation = Simulation::new(&plan.rig, plan.load.workload()?, plan.seed)?;
    if plan.keeps_requests {
        simulation = simulation.keep_requests();
    }
    for plan in plan.orders {
        for device in 0..simulation.engine().devices() {
            let chooser = Python::attach(|py| plan.chooser.clone_ref(py));
            let order = Box::new(PythonOrder::new(chooser, plan.needs_positions, raised.clone()));
            let engine = simulation.engine_mut();
            match plan.is_host {
                true => {
                    let set = engine.set_host_order(device, order);
                    set.map_err(|error| CallError::Input(error.to_string()))?;
                }
                false => engine.set_order(device, order),
            }
        }
    }
    Ok(simulation)
}
