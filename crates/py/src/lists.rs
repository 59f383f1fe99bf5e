//! The lists of what ships: drives, rigs, orders, trace formats, and the names behind the codes of columns.

use headstack::KeptRequests;
use headstack::model::drives as shipped_drives;
use headstack::sim::rig::shipped;
use headstack::sim::{CacheUse, TimeSplit};
use headstack::workload::trace;
use pyo3::prelude::*;

/// The library's version.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Names of the shipped drives.
#[pyfunction]
pub(crate) fn drives() -> Vec<&'static str> {
    shipped_drives::all().iter().map(|(name, _)| *name).collect()
}

/// Names of the shipped rigs.
#[pyfunction]
pub(crate) fn rigs() -> Vec<&'static str> {
    shipped::all().iter().map(|(name, _)| *name).collect()
}

/// Names of the built-in orders.
#[pyfunction]
pub(crate) fn orders() -> Vec<&'static str> {
    headstack_policy::order::all().iter().map(|entry| entry.name).collect()
}

/// Names and titles of the trace formats.
#[pyfunction]
pub(crate) fn trace_formats() -> Vec<(&'static str, &'static str)> {
    trace::all().iter().map(|format| (format.name, format.title)).collect()
}

/// Names of the parts of a response time.
#[pyfunction]
pub(crate) fn parts() -> Vec<&'static str> {
    TimeSplit::NAMES.to_vec()
}

/// Names of a request's operations, by code.
#[pyfunction]
pub(crate) fn operations() -> Vec<&'static str> {
    KeptRequests::OPS.to_vec()
}

/// Names of the uses of the cache, by code.
#[pyfunction]
pub(crate) fn cache_uses() -> Vec<&'static str> {
    CacheUse::NAMES.to_vec()
}

/// Names of a request's outcomes, by code.
#[pyfunction]
pub(crate) fn outcomes() -> Vec<&'static str> {
    KeptRequests::OUTCOMES.to_vec()
}
