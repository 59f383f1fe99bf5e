//! Loads written in Python: each source is an iterator of requests. A source that is a generator can wait for its completions.

use crate::error::{CallError, input_error};
use crate::order::RaisedSlot;
use crate::run_state::WorkerState;
use crate::steps::{LoadStep, NativeCompletion, NativeLoadContext, NativeRequest, delayed};

use headstack::workload::{Issue, Poll};
use headstack::{Instant, Load};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::iterator::PySendResult;
use pyo3::types::{PyIterator, PyNone};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Polls between two checks whether the run must end. The check is needed here, because a source that never waits is polled without an
/// event in between.
const POLLS_PER_CHECK: u32 = 1 << 10;

/// The sources of a load: functions that return iterators, with their names in results.
pub(crate) struct PythonSources {
    pub(crate) name: String,
    pub(crate) functions: Vec<(String, Py<PyAny>)>,
}

/// The inputs of a run's sources, and the means to end the run.
pub(crate) struct SourceRun {
    pub(crate) seed: u64,
    /// Sectors of each volume.
    pub(crate) volumes: Vec<u64>,
    pub(crate) raised: RaisedSlot,
    pub(crate) shared: Arc<WorkerState>,
}

/// An outstanding request.
struct IssuedRequest {
    source: usize,
    request: Py<NativeRequest>,
    issued: Instant,
}

/// What a source does next.
enum SourceState {
    /// It continues; its `yield` returns this value.
    Continues(Option<NativeCompletion>),
    /// It sleeps.
    Sleeps,
    /// Its request is issued at a later time.
    Issues(Py<NativeRequest>),
    /// It waits for a completion.
    Waits,
    Ended,
}

struct PythonSource {
    iterator: Py<PyIterator>,
    /// Whether it is a generator, into which completions and exceptions can be sent.
    receives: bool,
    state: SourceState,
    outstanding: usize,
    /// Completions that it has not waited for yet, oldest first.
    completions: VecDeque<NativeCompletion>,
}

/// The load of one run.
pub(crate) struct PythonLoad {
    run: SourceRun,
    now_ns: Arc<AtomicU64>,
    sources: Vec<PythonSource>,
    /// Sources that can continue now, in the order in which they will run.
    ready: VecDeque<usize>,
    /// Sources that continue at a later time. The number in the key is that of the source, so that sources of equal times have an order.
    timed: BTreeMap<(Instant, u64), usize>,
    outstanding: HashMap<u64, IssuedRequest>,
    next_id: u64,
    polls: u32,
}

impl PythonLoad {
    /// Calls the functions of the sources.
    ///
    /// *Errors:* one raises, or returns nothing that can be iterated over.
    pub(crate) fn new(sources: &PythonSources, run: SourceRun) -> Result<PythonLoad, CallError> {
        let now_ns = Arc::new(AtomicU64::new(0));
        let volumes = Arc::new(run.volumes.clone());
        let made = Python::attach(|py| {
            let source =
                |(number, (name, function)): (usize, &(String, Py<PyAny>))| -> PyResult<PythonSource> {
                    let (now_ns, volumes) = (Arc::clone(&now_ns), Arc::clone(&volumes));
                    let context = NativeLoadContext::new(run.seed, number, volumes, now_ns);
                    let made = function.bind(py).call1((context,))?;
                    if !made.hasattr(intern!(py, "__iter__"))? && !made.hasattr(intern!(py, "__getitem__"))? {
                        let kind = made.get_type().name()?;
                        return Err(input_error(format!(
                            "source {name}: returned {kind} (an iterable of requests)"
                        )));
                    }
                    let iterator = made.try_iter()?;
                    let receives = iterator.hasattr(intern!(py, "throw"))?;
                    Ok(PythonSource {
                        iterator: iterator.unbind(),
                        receives,
                        state: SourceState::Continues(None),
                        outstanding: 0,
                        completions: VecDeque::new(),
                    })
                };
            sources.functions.iter().enumerate().map(source).collect::<PyResult<Vec<_>>>()
        });
        let sources = made.map_err(CallError::Raised)?;
        Ok(PythonLoad {
            run,
            now_ns,
            ready: (0..sources.len()).collect(),
            sources,
            timed: BTreeMap::new(),
            outstanding: HashMap::new(),
            next_id: 0,
            polls: 0,
        })
    }

    /// Whether the run must end, because Python code raised or the program's thread stopped the run.
    fn is_ending(&mut self) -> bool {
        self.polls = (self.polls + 1) % POLLS_PER_CHECK;
        self.run.raised.has_raised() || self.polls == 0 && self.run.shared.is_stopped()
    }

    fn wake_due(&mut self, now: Instant) {
        while let Some(entry) = self.timed.first_entry().filter(|entry| entry.key().0 <= now) {
            self.ready.push_back(entry.remove());
        }
    }

    fn wake_at(&mut self, time: Instant, number: usize) {
        // Two entries never have both the same time and the same number: a source has at most one.
        self.timed.insert((time, number as u64), number);
    }

    /// Runs the first ready source up to its next `yield`. Returns the request that it issues, if it does.
    fn resume(&mut self, py: Python<'_>, now: Instant) -> PyResult<Option<Issue>> {
        let Some(&number) = self.ready.front() else { return Ok(None) };
        let source = &mut self.sources[number];
        let reply = match std::mem::replace(&mut source.state, SourceState::Continues(None)) {
            SourceState::Issues(request) => return self.issue(py, number, request, now).map(Some),
            SourceState::Continues(reply) => reply,
            SourceState::Sleeps | SourceState::Waits | SourceState::Ended => None,
        };
        let iterator = source.iterator.bind(py).clone();
        let sent = match reply {
            Some(completion) => iterator.send(Bound::new(py, completion)?.as_any())?,
            None => iterator.send(&PyNone::get(py))?,
        };
        let PySendResult::Next(yielded) = sent else {
            source.state = SourceState::Ended;
            source.completions = VecDeque::new();
            self.ready.pop_front();
            return Ok(None);
        };
        let step = LoadStep::read(&yielded);
        let result = step.and_then(|step| self.step(py, number, step, now));
        result.map_err(|error| self.raised_at_yield(py, number, error))
    }

    fn step(
        &mut self,
        py: Python<'_>,
        number: usize,
        step: LoadStep,
        now: Instant,
    ) -> PyResult<Option<Issue>> {
        let source = &mut self.sources[number];
        match step {
            LoadStep::Issue(request) => match request.get().issue_time().filter(|time| *time > now) {
                None => return self.issue(py, number, request, now).map(Some),
                Some(time) => {
                    request.get().check(&self.run.volumes)?;
                    source.state = SourceState::Issues(request);
                    self.wake_at(time, number);
                }
            },
            LoadStep::Sleep(time) => {
                let time = delayed("seconds", now, time.0 as i64)?;
                source.state = SourceState::Sleeps;
                self.wake_at(time, number);
            }
            LoadStep::Wait => {
                if !source.receives {
                    return Err(input_error(
                        "a load yielded None, to wait; only a generator can (yield a Request)",
                    ));
                }
                if let Some(completion) = source.completions.pop_front() {
                    source.state = SourceState::Continues(Some(completion));
                    return Ok(None);
                }
                if source.outstanding == 0 {
                    let cure = "yield a Request first, or Sleep";
                    return Err(input_error(format!(
                        "a load waits for a completion, but has no request outstanding; {cure}"
                    )));
                }
                source.state = SourceState::Waits;
            }
        }
        self.ready.pop_front();
        Ok(None)
    }

    fn issue(
        &mut self,
        py: Python<'_>,
        number: usize,
        request: Py<NativeRequest>,
        now: Instant,
    ) -> PyResult<Issue> {
        request.get().check(&self.run.volumes)?;
        let id = self.next_id;
        self.next_id += 1;
        let issue = request.get().issue(id, number as u32);
        self.sources[number].outstanding += 1;
        let request = request.clone_ref(py);
        self.outstanding.insert(id, IssuedRequest { source: number, request, issued: now });
        Ok(issue)
    }

    /// Raises the error in the source at its `yield`, so that the traceback has that line. Returns the error.
    fn raised_at_yield(&self, py: Python<'_>, number: usize, error: PyErr) -> PyErr {
        let source = &self.sources[number];
        if !source.receives {
            return error;
        }
        let thrown = source
            .iterator
            .bind(py)
            .call_method1(intern!(py, "throw"), (error.clone_ref(py).into_value(py),));
        // The run ends with the error even if the source catches it.
        thrown.err().filter(|raised| raised.value(py).is(error.value(py))).unwrap_or(error)
    }

    fn next_poll(&self) -> Poll {
        if let Some(((time, _), _)) = self.timed.first_key_value() {
            return Poll::Later(*time);
        }
        let waits = |source: &PythonSource| !matches!(source.state, SourceState::Ended);
        if self.sources.iter().any(waits) { Poll::Waiting } else { Poll::Done }
    }
}

/// Holds the global lock while it releases the Python objects. PyO3 puts objects that are released without the lock on a list, and the next
/// thread with the lock releases those. Each of our objects works through that list again when it is freed, so that the calls nest: a million
/// outstanding requests overflowed the stack of the program's thread.
impl Drop for PythonLoad {
    fn drop(&mut self) {
        Python::attach(|_| {
            self.outstanding.clear();
            self.sources.clear();
        });
    }
}

impl Load for PythonLoad {
    fn poll(&mut self, now: Instant) -> Poll {
        if self.is_ending() {
            return Poll::Done;
        }
        self.now_ns.store(now.0, Ordering::Relaxed);
        self.wake_due(now);
        if self.ready.is_empty() {
            return self.next_poll();
        }
        let found = Python::attach(|py| {
            while !self.ready.is_empty() {
                if let Some(issue) = self.resume(py, now)? {
                    return Ok(Some(issue));
                }
            }
            Ok(None)
        });
        match found {
            Ok(Some(issue)) => Poll::Issue(issue),
            Ok(None) => self.next_poll(),
            Err(error) => {
                self.run.raised.keep(error);
                Poll::Done
            }
        }
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        let Some(IssuedRequest { source: number, request, issued }) = self.outstanding.remove(&id) else {
            return;
        };
        let source = &mut self.sources[number];
        source.outstanding -= 1;
        if !source.receives || matches!(source.state, SourceState::Ended) {
            return;
        }
        let completion = NativeCompletion::new(request, issued, now);
        if matches!(source.state, SourceState::Waits) {
            source.state = SourceState::Continues(Some(completion));
            self.ready.push_back(number);
        } else {
            source.completions.push_back(completion);
        }
    }
}
