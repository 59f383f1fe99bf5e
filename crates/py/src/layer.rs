//! Layers written in Python: an object between the load and a volume or a disk, which passes requests on, changes, delays or answers
//! them.
//!
//! Each call by the engine becomes a call of one of the object's methods. A method records its actions in a [`LayerState`], from where they go
//! to the engine at the end of the call. A request has a number, by which the layer finds it until it is answered.

use crate::error::input_error;
use crate::layer_state::{DelayedAction, LayerState, NativeLayerRequest, SharedLayerState};
use crate::order::RaisedSlot;
use crate::steps::{check_range, checked_request, delayed, instant, op_named};
use headstack::model::Request;
use headstack::sim::Layer;
use headstack::sim::layer::{Completed, Out, Submission};
use headstack::{Instant, KeptRequests};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::fmt;
use std::sync::MutexGuard;

/// What a layer written in Python can do in its methods.
#[pyclass(name = "LayerCalls", module = "headstack._native", frozen)]
pub(crate) struct NativeLayerCalls {
    state: SharedLayerState,
}

impl NativeLayerCalls {
    fn locked(&self) -> MutexGuard<'_, LayerState> {
        self.state.lock().expect("no thread panics with it")
    }
}

#[pymethods]
impl NativeLayerCalls {
    /// The time in nanoseconds since the start of the run.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.locked().now.0
    }

    /// Number of blocks of the volume or disk below.
    #[getter]
    fn sectors(&self) -> u64 {
        self.locked().sectors
    }

    /// Sends a request to the volume or disk below, now or after a delay, with the given values in place of the old ones. A request can be sent
    /// several times; `complete` is called when all of these have completed.
    #[pyo3(signature = (request, *, lbn=None, sectors=None, op=None, delay_ns=0))]
    fn send(
        &self,
        request: Py<NativeLayerRequest>,
        lbn: Option<i64>,
        sectors: Option<i64>,
        op: Option<&str>,
        delay_ns: i64,
    ) -> PyResult<()> {
        let mut state = self.locked();
        state.check_called()?;
        let (below, time) = (state.sectors, delayed("delay_ns", state.now, delay_ns)?);
        let pending = state.unanswered(&request)?;
        let number = request.get().number;
        let Request { op: old_op, lbn: old_lbn, sectors: old_sectors, fua } = pending.submission.request;
        let op = op.map_or(Ok(old_op), op_named)?;
        let changed =
            checked_request(op, lbn.unwrap_or(old_lbn.0 as i64), sectors.unwrap_or(old_sectors.into()), fua)?;
        check_range(&changed, below)?;
        pending.send();
        let submission = Submission { id: number, request: changed, ..pending.submission };
        state.act(time, DelayedAction::Send(submission));
        Ok(())
    }

    /// Sends a request of the layer itself, such as a read-ahead or a write-back, and returns it. `complete` is called with it.
    #[pyo3(signature = (lbn, sectors, op="read", *, delay_ns=0))]
    fn issue(
        &self,
        py: Python<'_>,
        lbn: i64,
        sectors: i64,
        op: &str,
        delay_ns: i64,
    ) -> PyResult<Py<NativeLayerRequest>> {
        let mut state = self.locked();
        state.check_called()?;
        let time = delayed("delay_ns", state.now, delay_ns)?;
        let request = checked_request(op_named(op)?, lbn, sectors, false)?;
        check_range(&request, state.sectors)?;
        let number = state.add(py, Submission { sync: false, ..Submission::new(0, request) }, true)?;
        let pending = state.pending.get_mut(&number).expect("it was added");
        pending.send();
        let (object, submission) =
            (pending.object.clone_ref(py), Submission { id: number, ..pending.submission });
        state.act(time, DelayedAction::Send(submission));
        Ok(object)
    }

    /// Answers a request, now or after a delay: with the outcome from the volume or disk below, or as done if it was not sent there.
    #[pyo3(signature = (request, *, delay_ns=0))]
    fn answer(&self, request: Py<NativeLayerRequest>, delay_ns: i64) -> PyResult<()> {
        let mut state = self.locked();
        state.check_called()?;
        let time = delayed("delay_ns", state.now, delay_ns)?;
        let pending = state.unanswered(&request)?;
        if pending.below > 0 {
            let cure = "answer it in complete(); issue() writes for an answered request";
            return Err(input_error(format!("request: it is sent and has not completed; {cure}")));
        }
        pending.is_answering = true;
        state.act(time, DelayedAction::Answer(request.get().number));
        Ok(())
    }

    /// The outcome of a request below so far: `done`, or the name of the failure, one of `RequestTable.names("outcome")`.
    fn outcome(&self, request: Py<NativeLayerRequest>) -> PyResult<&'static str> {
        let mut state = self.locked();
        state.check_called()?;
        let outcome = state.unanswered(&request)?.outcome();
        Ok(KeptRequests::OUTCOMES[usize::from(KeptRequests::outcome_code(outcome))])
    }

    /// Requests one call of `timeout` at this time. A later `call_at` replaces the time.
    fn call_at(&self, time_ns: i64) -> PyResult<()> {
        let mut state = self.locked();
        state.check_called()?;
        state.call_at = instant("time_ns", time_ns)?.max(state.now);
        Ok(())
    }
}

/// A layer that forwards each call to the methods of a Python object.
pub(crate) struct PythonLayer {
    object: Py<PyAny>,
    calls: Py<NativeLayerCalls>,
    state: SharedLayerState,
    /// Whether the object defines a method `complete`. Without one, the layer answers each request as soon as it has completed.
    completes: bool,
    raised: RaisedSlot,
}

impl fmt::Debug for PythonLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PythonLayer")
    }
}

impl PythonLayer {
    /// A layer above a volume or disk with this number of sectors. Calls the object's method `start`.
    ///
    /// *Errors:* what `start` raises.
    pub(crate) fn new(
        object: Py<PyAny>,
        sectors: u64,
        completes: bool,
        raised: RaisedSlot,
    ) -> PyResult<PythonLayer> {
        Python::attach(|py| {
            let name = object.bind(py).get_type().name()?.to_string();
            object.bind(py).call_method0(intern!(py, "start"))?;
            let state = SharedLayerState::new(LayerState::new(name, sectors).into());
            let calls = Py::new(py, NativeLayerCalls { state: SharedLayerState::clone(&state) })?;
            Ok(PythonLayer { object, calls, state, completes, raised })
        })
    }

    pub(crate) fn state(&self) -> SharedLayerState {
        SharedLayerState::clone(&self.state)
    }

    fn locked(&self) -> MutexGuard<'_, LayerState> {
        self.state.lock().expect("no thread panics with it")
    }

    /// Calls a method with the request of this number, if any. Stores the exception that it raises.
    fn call(&self, py: Python<'_>, method: &Bound<'_, PyString>, number: Option<u32>) {
        let request = {
            let mut state = self.locked();
            state.is_called = true;
            number.and_then(|number| state.object(py, number))
        };
        let (object, calls) = (self.object.bind(py), self.calls.bind(py));
        let result = match request {
            Some(request) => object.call_method1(method, (calls, request)),
            None => object.call_method1(method, (calls,)),
        };
        self.locked().is_called = false;
        if let Err(error) = result {
            self.raised.keep(error);
        }
    }

    /// Records the answer to a request below; after the last of those for one request, answers it or calls the object.
    fn observe(&self, now: Instant, answer: &Completed) {
        {
            let mut state = self.locked();
            state.now = now;
            let Some(pending) = state.pending.get_mut(&answer.id) else { return };
            pending.observe(&answer.completion);
            if pending.below > 0 {
                return;
            }
            if !self.completes {
                state.carry_out(DelayedAction::Answer(answer.id));
                return;
            }
        }
        if !self.raised.has_raised() {
            Python::attach(|py| self.call(py, intern!(py, "complete"), Some(answer.id)));
            self.locked().forget_own(answer.id);
        }
    }
}

impl Layer for PythonLayer {
    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        // After an exception the run ends at the next report; until then nothing is answered.
        if self.raised.has_raised() {
            return;
        }
        Python::attach(|py| {
            let added = {
                let mut state = self.locked();
                state.now = now;
                state.add(py, submission, false)
            };
            match added {
                Ok(number) => self.call(py, intern!(py, "submit"), Some(number)),
                Err(error) => self.raised.keep(error),
            }
        });
        self.locked().pass_actions(out);
    }

    fn complete(&mut self, now: Instant, _child: u32, answer: &Completed, out: &mut Out<'_>) {
        self.observe(now, answer);
        self.locked().pass_actions(out);
    }

    fn wake(&mut self, now: Instant, out: &mut Out<'_>) {
        let is_called = {
            let mut state = self.locked();
            state.now = now;
            state.carry_out_due();
            let is_due = state.call_at <= now;
            if is_due {
                state.call_at = Instant::MAX;
            }
            is_due
        };
        if is_called && !self.raised.has_raised() {
            Python::attach(|py| self.call(py, intern!(py, "timeout"), None));
        }
        self.locked().pass_actions(out);
    }
}
