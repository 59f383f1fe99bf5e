//! The state of a layer written in Python between two calls: its unanswered requests, and its actions for the engine to carry out.

use crate::error::input_error;
use crate::steps::op_name;
use headstack::Instant;
use headstack::model::{Lbn, Request};
use headstack::sim::device::Tag;
use headstack::sim::layer::{Completed, Out, Submission};
use headstack::sim::{CacheUse, Completion, Outcome, TimeSplit};
use pyo3::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// A request at a layer written in Python.
#[pyclass(name = "LayerRequest", module = "headstack._native", frozen)]
pub(crate) struct NativeLayerRequest {
    pub(crate) number: u32,
    submission: Submission,
    arrived: Instant,
    is_own: bool,
}

#[pymethods]
impl NativeLayerRequest {
    /// First block.
    #[getter]
    fn lbn(&self) -> u64 {
        self.submission.request.lbn.0
    }

    /// Number of blocks.
    #[getter]
    fn sectors(&self) -> u32 {
        self.submission.request.sectors
    }

    /// `read`, `write` or `flush`.
    #[getter]
    fn op(&self) -> &'static str {
        op_name(self.submission.request.op)
    }

    /// Whether a write must be on the media before it completes, or a read must come from the media.
    #[getter]
    fn fua(&self) -> bool {
        self.submission.request.fua
    }

    /// The number of the process, job or stream that issued it; `None` for none.
    #[getter]
    fn source(&self) -> Option<u32> {
        (self.submission.source != u32::MAX).then_some(self.submission.source)
    }

    /// Whether queues that obey priorities serve it before other requests.
    #[getter]
    fn urgent(&self) -> bool {
        self.submission.urgent
    }

    /// When it arrived at the layer, in nanoseconds since the start of the run.
    #[getter]
    fn arrived_ns(&self) -> u64 {
        self.arrived.0
    }

    /// Whether the layer issued it itself.
    #[getter]
    fn is_own(&self) -> bool {
        self.is_own
    }

    fn __repr__(&self) -> String {
        describe(&self.submission.request)
    }
}

fn describe(request: &Request) -> String {
    let Request { op, lbn: Lbn(lbn), sectors, .. } = request;
    format!("<LayerRequest: {} of {sectors} sectors at LBN {lbn}>", op_name(*op))
}

/// A request that the layer has not answered.
pub(crate) struct UnansweredRequest {
    pub(crate) object: Py<NativeLayerRequest>,
    pub(crate) submission: Submission,
    arrived: Instant,
    pub(crate) is_own: bool,
    /// Number of requests to the volume or disk below that belong to this one and have not completed. Includes delayed ones.
    pub(crate) below: usize,
    pub(crate) is_answering: bool,
    /// The last completion from below, or the first that failed.
    completion: Option<Completion>,
}

impl UnansweredRequest {
    /// Counts a request that is sent below. If no earlier one is outstanding, discards the outcome of the earlier ones.
    pub(crate) fn send(&mut self) {
        if self.below == 0 {
            self.completion = None;
        }
        self.below += 1;
    }

    /// Records that a request below has completed.
    pub(crate) fn observe(&mut self, completion: &Completion) {
        self.below -= 1;
        match &self.completion {
            Some(failed) if failed.outcome != Outcome::Done => {}
            _ => self.completion = Some(*completion),
        }
    }

    /// The first failure below so far, or `Done`.
    pub(crate) fn outcome(&self) -> Outcome {
        self.completion.map_or(Outcome::Done, |completion| completion.outcome)
    }

    /// The answer at `now`: times since the last completion from below count as `queued`.
    fn answer(&self, now: Instant) -> Completed {
        let at_once = || Completion {
            tag: Tag(0),
            number: 0,
            request: self.submission.request,
            submitted: self.arrived,
            completed: self.arrived,
            outcome: Outcome::Done,
            parts: TimeSplit::default(),
            cache: CacheUse::Miss,
            travel: None,
        };
        let mut completion = self.completion.unwrap_or_else(at_once);
        completion.parts.queued += now - completion.completed;
        completion.completed = now;
        Completed { id: self.submission.id, completion, cached: self.completion.is_none() }
    }
}

/// An action of a layer that may be delayed.
pub(crate) enum DelayedAction {
    Send(Submission),
    Answer(u32),
}

/// An action of a layer that is due.
enum LayerAction {
    Send(Submission),
    Answer(Completed),
}

/// The requests of a layer between two calls, and its actions for the engine.
pub(crate) struct LayerState {
    /// Name of the layer's class, for errors.
    name: String,
    /// Sectors of the volume or disk below.
    pub(crate) sectors: u64,
    pub(crate) now: Instant,
    /// Whether one of the layer's methods is running.
    pub(crate) is_called: bool,
    pub(crate) pending: HashMap<u32, UnansweredRequest>,
    next_number: u32,
    /// Actions of the call that the engine has not got yet.
    actions: Vec<LayerAction>,
    /// The number in the key keeps actions of equal times in the order in which they were added.
    delayed: BTreeMap<(Instant, u64), DelayedAction>,
    delays: u64,
    pub(crate) call_at: Instant,
}

/// Holds the global lock while it releases the requests, for the same reason as `PythonLoad`.
impl Drop for LayerState {
    fn drop(&mut self) {
        Python::attach(|_| self.pending.clear());
    }
}

/// A layer's state, which its calls and the engine share.
pub(crate) type SharedLayerState = Arc<Mutex<LayerState>>;

impl LayerState {
    /// The state of a layer of the class `name`, above a volume or disk with this number of sectors.
    pub(crate) fn new(name: String, sectors: u64) -> LayerState {
        LayerState {
            name,
            sectors,
            now: Instant::ZERO,
            is_called: false,
            pending: HashMap::new(),
            next_number: 0,
            actions: Vec::new(),
            delayed: BTreeMap::new(),
            delays: 0,
            call_at: Instant::MAX,
        }
    }

    /// Removes a request that the layer issued itself, if it has completed and was not sent again.
    pub(crate) fn forget_own(&mut self, number: u32) {
        if self.pending.get(&number).is_some_and(|pending| pending.is_own && pending.below == 0) {
            self.pending.remove(&number);
        }
    }

    pub(crate) fn add(&mut self, py: Python<'_>, submission: Submission, is_own: bool) -> PyResult<u32> {
        let number = self.next_number;
        self.next_number = self.next_number.wrapping_add(1);
        let object = NativeLayerRequest { number, submission, arrived: self.now, is_own };
        let request = UnansweredRequest {
            object: Py::new(py, object)?,
            submission,
            arrived: self.now,
            is_own,
            below: 0,
            is_answering: false,
            completion: None,
        };
        self.pending.insert(number, request);
        Ok(number)
    }

    pub(crate) fn object(&self, py: Python<'_>, number: u32) -> Option<Py<NativeLayerRequest>> {
        self.pending.get(&number).map(|pending| pending.object.clone_ref(py))
    }

    pub(crate) fn check_called(&self) -> PyResult<()> {
        let cure = "call it inside submit(), complete() or timeout()";
        if self.is_called {
            Ok(())
        } else {
            Err(input_error(format!("{}: called outside of the layer's methods; {cure}", self.name)))
        }
    }

    /// The request of this object.
    ///
    /// *Errors:* it is answered already, or its answer is scheduled.
    pub(crate) fn unanswered(
        &mut self,
        request: &Py<NativeLayerRequest>,
    ) -> PyResult<&mut UnansweredRequest> {
        let answered = || input_error(format!("{}: the request is answered already", self.name));
        let pending = self.pending.get_mut(&request.get().number);
        pending.filter(|pending| pending.object.is(request) && !pending.is_answering).ok_or_else(answered)
    }

    /// Carries out an action at once if `time` has come; otherwise schedules it.
    pub(crate) fn act(&mut self, time: Instant, action: DelayedAction) {
        if time <= self.now {
            self.carry_out(action);
        } else {
            self.delays += 1;
            self.delayed.insert((time, self.delays), action);
        }
    }

    pub(crate) fn carry_out(&mut self, action: DelayedAction) {
        match action {
            DelayedAction::Send(submission) => self.actions.push(LayerAction::Send(submission)),
            DelayedAction::Answer(number) => {
                let Some(pending) = self.pending.remove(&number) else { return };
                if !pending.is_own {
                    self.actions.push(LayerAction::Answer(pending.answer(self.now)));
                }
            }
        }
    }

    pub(crate) fn carry_out_due(&mut self) {
        while let Some(entry) = self.delayed.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let action = entry.remove();
            self.carry_out(action);
        }
    }

    /// Passes the actions of a call to the engine, and the time of the next call.
    pub(crate) fn pass_actions(&mut self, out: &mut Out<'_>) {
        for action in self.actions.drain(..) {
            match action {
                LayerAction::Send(submission) => out.down(0, submission),
                LayerAction::Answer(completed) => out.up(completed),
            }
        }
        let delayed = self.delayed.first_key_value().map_or(Instant::MAX, |((time, _), _)| *time);
        out.wake_at(delayed.min(self.call_at));
    }

    /// Names the oldest request that the layer has not answered, which keeps a run without further events from being over. None if all are
    /// answered.
    pub(crate) fn stuck(&self) -> Option<String> {
        let held = self.pending.values().filter(|pending| !pending.is_own);
        let first = held.min_by_key(|pending| (pending.arrived, pending.submission.id))?;
        let (arrived, request) = (first.arrived.as_secs(), describe(&first.submission.request));
        let cure = "each request must be sent or answered";
        Some(format!("{}: {request}, which arrived at {arrived:.6} s, is not answered; {cure}", self.name))
    }
}
