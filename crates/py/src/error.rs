//! Errors of the library, and panics, as exceptions.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

pyo3::create_exception!(
    headstack,
    InputError,
    PyValueError,
    "Bad input: the message says where, the value met, what is allowed and what to do."
);
pyo3::create_exception!(
    headstack,
    InternalError,
    PyRuntimeError,
    "A bug of Headstack: an assertion does not hold. Please report it."
);

/// Why a call failed.
pub(crate) enum CallError {
    Input(String),
    /// An exception that the program's Python code raised.
    Raised(PyErr),
    /// The message of a panic.
    Bug(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Input(message) | CallError::Bug(message) => f.write_str(message),
            CallError::Raised(raised) => raised.fmt(f),
        }
    }
}

impl From<headstack::Error> for CallError {
    fn from(error: headstack::Error) -> CallError {
        CallError::Input(error.to_string())
    }
}

impl From<CallError> for PyErr {
    fn from(error: CallError) -> PyErr {
        match error {
            CallError::Input(message) => InputError::new_err(message),
            CallError::Raised(raised) => raised,
            CallError::Bug(message) => InternalError::new_err(message),
        }
    }
}

/// An exception for bad input.
pub(crate) fn input_error(error: impl ToString) -> PyErr {
    InputError::new_err(error.to_string())
}

/// Runs `work` without Python's global lock.
///
/// *Errors:* those of `work`; also a panic of `work`, which Python could not catch as an ordinary exception.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, CallError> + Send,
) -> PyResult<T> {
    py.detach(|| caught(work)).map_err(PyErr::from)
}

/// The result of `work`, with a panic as an error.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, CallError>) -> Result<T, CallError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(CallError::Bug(panic_message(&*panic))))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_string()
}

/// The function `json.loads`, imported once.
pub(crate) fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS.import(py, "json", "loads")?.call1((text,))
}
