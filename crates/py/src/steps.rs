//! The Python objects of loads written in Python: the requests and sleeps that they yield, their completions, and their run's context.

use crate::error::input_error;
use headstack::model::spec::nearest;
use headstack::model::{Lbn, Op, Request};
use headstack::workload::Issue;
use headstack::{Instant, KeptRequests, Nanos};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The operation of this name.
///
/// *Errors:* there is no such operation.
pub(crate) fn op_named(name: &str) -> PyResult<Op> {
    match name {
        "read" => Ok(Op::Read),
        "write" => Ok(Op::Write),
        "flush" => Ok(Op::Flush),
        _ => Err(input_error(format!("op: `{name}` (read, write or flush)"))),
    }
}

/// Name of an operation.
pub(crate) fn op_name(op: Op) -> &'static str {
    KeptRequests::OPS[usize::from(KeptRequests::op_code(op))]
}

/// The request for these blocks.
///
/// *Errors:* a number is out of range; a flush has blocks, or a request of another kind has none.
pub(crate) fn checked_request(op: Op, lbn: i64, sectors: i64, fua: bool) -> PyResult<Request> {
    let first = u64::try_from(lbn).map_err(|_| input_error(format!("lbn: {lbn} is below 0")))?;
    let least = i64::from(op != Op::Flush);
    if !(least..=i64::from(u32::MAX)).contains(&sectors) {
        return Err(input_error(format!("sectors: {sectors} is outside {least} to {}", u32::MAX)));
    }
    Ok(match op {
        Op::Flush => Request::flush(),
        op => Request { op, lbn: Lbn(first), sectors: sectors as u32, fua },
    })
}

/// Checks that a request is on a volume or disk of this many sectors.
///
/// *Errors:* it is not.
pub(crate) fn check_range(request: &Request, sectors: u64) -> PyResult<()> {
    let end = request.lbn.0.checked_add(request.sectors.into());
    if end.is_some_and(|end| end <= sectors) {
        return Ok(());
    }
    let Request { lbn: Lbn(lbn), sectors: length, .. } = request;
    Err(input_error(format!(
        "request: {length} sectors at LBN {lbn} are outside the {sectors} sectors there are"
    )))
}

/// A request that a load written in Python yields.
#[pyclass(name = "Request", module = "headstack._native", frozen)]
pub(crate) struct NativeRequest {
    request: Request,
    volume: u32,
    /// When it is issued; none for at once.
    time: Option<Instant>,
    urgent: bool,
}

impl NativeRequest {
    pub(crate) fn issue_time(&self) -> Option<Instant> {
        self.time
    }

    /// Checks that the request fits its volume. `volumes` has the number of sectors of each volume.
    ///
    /// *Errors:* there is no such volume or block.
    pub(crate) fn check(&self, volumes: &[u64]) -> PyResult<()> {
        let Some(sectors) = volumes.get(self.volume as usize) else {
            let count = volumes.len();
            return Err(input_error(format!("volume: {} is outside 0 to {}", self.volume, count - 1)));
        };
        check_range(&self.request, *sectors)
    }

    pub(crate) fn issue(&self, id: u64, source: u32) -> Issue {
        Issue { source, urgent: self.urgent, ..Issue::new(self.volume, self.request, id) }
    }
}

#[pymethods]
impl NativeRequest {
    /// A request for `sectors` blocks from `lbn` on. It is issued when it is yielded, or at `time_ns`, if that is later.
    #[new]
    #[pyo3(
        signature = (lbn, sectors, op="read", *, time_ns=None, volume=0, fua=false, urgent=false, **unknown),
        text_signature = "(lbn, sectors, op='read', *, time_ns=None, volume=0, fua=False, urgent=False)"
    )]
    #[allow(clippy::too_many_arguments, reason = "a request's keywords in Python")]
    fn new(
        lbn: i64,
        sectors: i64,
        op: &str,
        time_ns: Option<i64>,
        volume: i64,
        fua: bool,
        urgent: bool,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<NativeRequest> {
        if let Some(unknown) = unknown {
            return Err(unknown_keyword(unknown)?);
        }
        let request = checked_request(op_named(op)?, lbn, sectors, fua)?;
        let time = time_ns.map(|time| instant("time_ns", time)).transpose()?;
        let volume =
            u32::try_from(volume).map_err(|_| input_error(format!("volume: {volume}: no such volume")))?;
        Ok(NativeRequest { request, volume, time, urgent })
    }

    /// First block.
    #[getter]
    fn lbn(&self) -> u64 {
        self.request.lbn.0
    }

    /// Number of blocks.
    #[getter]
    fn sectors(&self) -> u32 {
        self.request.sectors
    }

    /// `read`, `write` or `flush`.
    #[getter]
    fn op(&self) -> &'static str {
        op_name(self.request.op)
    }

    /// Number of the volume.
    #[getter]
    fn volume(&self) -> u32 {
        self.volume
    }

    fn __repr__(&self) -> String {
        let Request { op, lbn: Lbn(lbn), sectors, .. } = self.request;
        format!("<Request: {} of {sectors} sectors at LBN {lbn}>", op_name(op))
    }
}

/// Keyword arguments of `Request`.
const KEYWORDS: [&str; 7] = ["lbn", "sectors", "op", "time_ns", "volume", "fua", "urgent"];

/// The exception about a keyword that a request does not have, in the words of Python 3.13.
fn unknown_keyword(unknown: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    let name = unknown.keys().get_item(0)?.extract::<String>()?;
    let near = nearest(&name, KEYWORDS).map_or(String::new(), |near| format!(". Did you mean '{near}'?"));
    let message = format!("Request() got an unexpected keyword argument '{name}'{near}");
    Ok(PyTypeError::new_err(message))
}

/// The latest time that Python code may ask for: 146 years, half of what 63 bits of nanoseconds can hold.
const LATEST: Instant = Instant(1 << 62);

/// The time at a number of nanoseconds.
///
/// *Errors:* it is negative, or too late.
pub(crate) fn instant(name: &str, time_ns: i64) -> PyResult<Instant> {
    let time = u64::try_from(time_ns).ok().map(Instant).filter(|time| *time <= LATEST);
    time.ok_or_else(|| input_error(format!("{name}: {time_ns} is outside 0 to {}", LATEST.0)))
}

/// The time `delay_ns` after `now`.
///
/// *Errors:* the number is negative, or the time too late.
pub(crate) fn delayed(name: &str, now: Instant, delay_ns: i64) -> PyResult<Instant> {
    let time = now + Nanos(instant(name, delay_ns)?.0);
    instant(name, time.0 as i64)
}

/// A pause of a load written in Python.
#[pyclass(name = "Sleep", module = "headstack._native", frozen)]
pub(crate) struct NativeSleep {
    time: Nanos,
}

#[pymethods]
impl NativeSleep {
    /// A pause of `seconds` of virtual time.
    #[new]
    fn new(seconds: f64) -> PyResult<NativeSleep> {
        if !(0.0..=1e9).contains(&seconds) {
            return Err(input_error(format!("seconds: {seconds} is outside 0 to 1000000000")));
        }
        Ok(NativeSleep { time: Nanos((seconds * 1e9).round() as u64) })
    }

    /// Its length in seconds.
    #[getter]
    fn seconds(&self) -> f64 {
        self.time.as_secs()
    }
}

/// The end of a request, for the load that issued it.
#[pyclass(name = "Completion", module = "headstack._native", frozen)]
pub(crate) struct NativeCompletion {
    request: Py<NativeRequest>,
    issued: Instant,
    completed: Instant,
}

impl NativeCompletion {
    pub(crate) fn new(request: Py<NativeRequest>, issued: Instant, completed: Instant) -> NativeCompletion {
        NativeCompletion { request, issued, completed }
    }
}

#[pymethods]
impl NativeCompletion {
    /// The request, the object that was yielded.
    #[getter]
    fn request(&self, py: Python<'_>) -> Py<NativeRequest> {
        self.request.clone_ref(py)
    }

    /// When it was issued, in nanoseconds since the start of the run.
    #[getter]
    fn issued_ns(&self) -> u64 {
        self.issued.0
    }

    /// When it completed, in nanoseconds since the start of the run.
    #[getter]
    fn completed_ns(&self) -> u64 {
        self.completed.0
    }

    /// The response time in nanoseconds: from its issue to its completion.
    #[getter]
    fn response_ns(&self) -> u64 {
        (self.completed - self.issued).0
    }
}

/// The run that a source of a load is in.
#[pyclass(name = "LoadContext", module = "headstack._native", frozen)]
pub(crate) struct NativeLoadContext {
    seed: u64,
    number: usize,
    volumes: Arc<Vec<u64>>,
    now_ns: Arc<AtomicU64>,
}

impl NativeLoadContext {
    pub(crate) fn new(
        seed: u64,
        number: usize,
        volumes: Arc<Vec<u64>>,
        now_ns: Arc<AtomicU64>,
    ) -> NativeLoadContext {
        NativeLoadContext { seed, number, volumes, now_ns }
    }
}

#[pymethods]
impl NativeLoadContext {
    /// The seed of the run.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// The number of this source among those of the load, from 0 on.
    #[getter]
    fn source(&self) -> usize {
        self.number
    }

    /// Sectors of each volume.
    #[getter]
    fn volumes(&self) -> Vec<u64> {
        (*self.volumes).clone()
    }

    /// Sectors of the first volume.
    #[getter]
    fn sectors(&self) -> u64 {
        self.volumes.first().copied().unwrap_or(0)
    }

    /// The time in nanoseconds since the start of the run.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }
}

/// What a source yielded.
pub(crate) enum LoadStep {
    Issue(Py<NativeRequest>),
    Sleep(Nanos),
    Wait,
}

impl LoadStep {
    /// The step that a yielded object stands for.
    ///
    /// *Errors:* the object is neither a `Request`, a `Sleep` nor `None`.
    pub(crate) fn read(yielded: &Bound<'_, PyAny>) -> PyResult<LoadStep> {
        if let Ok(request) = yielded.cast::<NativeRequest>() {
            return Ok(LoadStep::Issue(request.clone().unbind()));
        }
        if yielded.is_none() {
            return Ok(LoadStep::Wait);
        }
        if let Ok(sleep) = yielded.cast::<NativeSleep>() {
            return Ok(LoadStep::Sleep(sleep.get().time));
        }
        let kind = yielded.get_type().name()?;
        Err(input_error(format!(
            "a load yielded {kind} (a Request, a Sleep, or None to wait for a completion)"
        )))
    }
}
