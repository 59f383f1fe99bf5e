//! The thread of a simulation: it builds the simulation, and carries out one task after the other.
//!
//! A simulation holds file readers, which no other thread may use. So it stays on the thread on which it was built, and Python's threads
//! wait for its replies without the global lock.

use crate::error::{CallError, caught};
use crate::layer::PythonLayer;
use crate::layer_state::SharedLayerState;
use crate::load::LoadSource;
use crate::order::{PythonOrder, RaisedSlot};
use crate::python_load::SourceRun;
use crate::run_state::WorkerState;
use headstack::sim::LayerPlace;
use headstack::{Instant, Results, Rig, Simulation};
use pyo3::prelude::*;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// The inputs of a simulation.
pub(crate) struct SimulationPlan {
    pub(crate) rig: Rig,
    pub(crate) rig_name: String,
    pub(crate) load: LoadSource,
    pub(crate) seed: u64,
    pub(crate) keeps_requests: bool,
    pub(crate) orders: Vec<ChooserPlan>,
    pub(crate) layers: Vec<LayerPlan>,
}

/// An order written in Python, and where it chooses.
pub(crate) struct ChooserPlan {
    pub(crate) chooser: Py<PyAny>,
    pub(crate) needs_positions: bool,
    /// Whether it chooses in the host's queues, not in the drives.
    pub(crate) is_host: bool,
}

/// A layer written in Python, and where it is.
pub(crate) struct LayerPlan {
    pub(crate) object: Py<PyAny>,
    pub(crate) place: LayerPlace,
    /// Whether the object defines a method `complete`.
    pub(crate) completes: bool,
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

/// The reply to a task. The first reply answers the plan: it says whether the simulation could be built.
pub(crate) enum WorkerReply {
    /// Whether events remain.
    Remain(bool),
    Finished(Box<Results>),
    Failed(CallError),
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
            // The thread stays attached to Python, so that a call of an order, layer or load takes the global lock quickly.
            let calls_python = !plan.orders.is_empty() || !plan.layers.is_empty() || plan.load.is_python();
            let work = move || {
                let failed = answers.clone();
                if let Err(error) = caught(|| serve(plan, &received, &answers, &theirs)) {
                    // Sending fails only without an owner, and then the error is not needed.
                    let _ = failed.send(WorkerReply::Failed(error));
                }
            };
            if calls_python { Python::attach(|py| py.detach(work)) } else { work() }
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
    shared: &Arc<WorkerState>,
) -> Result<(), CallError> {
    let raised = RaisedSlot::default();
    let rig_name = plan.rig_name.clone();
    let (mut simulation, layers) = built(plan, &raised, shared)?;
    let mut reply = WorkerReply::Remain(true);
    while replies.send(reply).is_ok() {
        let Ok(task) = tasks.recv() else { return Ok(()) };
        let remains = match task {
            WorkerTask::Finish => {
                let mut results = simulation.finish()?;
                results.rig.name = rig_name;
                // Sending fails only without an owner, and then the results are not needed.
                let _ = replies.send(WorkerReply::Finished(Box::new(results)));
                return Ok(());
            }
            WorkerTask::Step { count } => (0..count).all(|_| !raised.has_raised() && simulation.step()),
            WorkerTask::Advance { until } => simulation.run_until_while(until, &mut |progress| {
                if raised.has_raised() {
                    return ControlFlow::Break("exception".to_string());
                }
                shared.report(progress)
            }),
        };
        shared.keep_progress(simulation.progress());
        if let Some(error) = raised.clone().into_raised() {
            return Err(CallError::Raised(error));
        }
        if !remains && !shared.is_stopped() {
            check_answered(&layers)?;
        }
        reply = WorkerReply::Remain(remains);
    }
    Ok(())
}

/// Checks, once no events remain, that each layer written in Python has answered all its requests.
///
/// *Errors:* a layer has not.
pub(crate) fn check_answered(layers: &[SharedLayerState]) -> Result<(), CallError> {
    let stuck = layers.iter().find_map(|layer| layer.lock().expect("no thread panics with it").stuck());
    if let Some(message) = stuck { Err(CallError::Input(message)) } else { Ok(()) }
}

/// A simulation, and the states of its layers that are written in Python.
type BuiltSimulation = (Simulation<'static>, Vec<SharedLayerState>);

fn built(
    plan: SimulationPlan,
    raised: &RaisedSlot,
    shared: &Arc<WorkerState>,
) -> Result<BuiltSimulation, CallError> {
    let volumes: Vec<u64> = plan.rig.volumes().iter().map(|volume| volume.sectors).collect();
    let run = SourceRun { seed: plan.seed, volumes, raised: raised.clone(), shared: Arc::clone(shared) };
    let mut simulation = Simulation::new(&plan.rig, plan.load.workload_of(run)?, plan.seed)?;
    if plan.keeps_requests {
        simulation = simulation.keep_requests();
    }
    let layers = put_into(&mut simulation, &plan.rig, &plan.orders, &plan.layers, raised)?;
    Ok((simulation, layers))
}

/// Puts orders and layers written in Python into a simulation. Returns the states of the layers.
///
/// *Errors:* the rig has no such place; what a layer raises at its start.
pub(crate) fn put_into(
    simulation: &mut Simulation<'_>,
    rig: &Rig,
    orders: &[ChooserPlan],
    plans: &[LayerPlan],
    raised: &RaisedSlot,
) -> Result<Vec<SharedLayerState>, CallError> {
    for order in orders {
        set_order(simulation, order, raised)?;
    }
    let volumes: Vec<u64> = rig.volumes().iter().map(|volume| volume.sectors).collect();
    let mut layers = Vec::new();
    for LayerPlan { object, place, completes } in plans {
        let (place, object) = (*place, Python::attach(|py| object.clone_ref(py)));
        let sectors = match place {
            LayerPlace::Volume(number) => volumes.get(number as usize).copied(),
            LayerPlace::Device(number) => ((number as usize) < simulation.engine().devices())
                .then(|| simulation.engine().device(number as usize).sectors()),
        };
        let sectors = sectors.ok_or_else(|| CallError::Input(format!("layer: the rig has no {place:?}")))?;
        let layer = PythonLayer::new(object, sectors, *completes, raised.clone());
        let layer = layer.map_err(CallError::Raised)?;
        layers.push(layer.state());
        simulation.engine_mut().insert(place, Box::new(layer));
    }
    Ok(layers)
}

fn set_order(
    simulation: &mut Simulation<'_>,
    plan: &ChooserPlan,
    raised: &RaisedSlot,
) -> Result<(), CallError> {
    for device in 0..simulation.engine().devices() {
        let chooser = Python::attach(|py| plan.chooser.clone_ref(py));
        let order = Box::new(PythonOrder::new(chooser, plan.needs_positions, raised.clone()));
        let engine = simulation.engine_mut();
        if plan.is_host {
            let set = engine.set_host_order(device, order);
            set.map_err(|error| CallError::Input(error.to_string()))?;
        } else {
            engine.set_order(device, order)
        }
    }
    Ok(())
}
