//! Results as Python objects: figures, histograms, and the columns of the requests without a copy.

use crate::error::detached;
use headstack::sim::TimeSplit;
use headstack::sim::stats::{TimeHistogram, Totals};
use headstack::{KeptRequests, Results, SparseColumn};
use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Mutex;

/// Results of a run. Python's class `Results` wraps them.
#[pyclass(name = "Results", module = "headstack._native", frozen)]
pub(crate) struct NativeResults {
    results: Results,
    /// Empty once `take_requests` has moved their columns out.
    requests: Mutex<Option<Box<KeptRequests>>>,
}

impl NativeResults {
    pub(crate) fn new(mut results: Results) -> NativeResults {
        let requests = Mutex::new(results.requests.take());
        NativeResults { results, requests }
    }

    /// The counted requests of a kind; none if there were none.
    fn totals(&self, kind: &str) -> PyResult<Option<Totals>> {
        match kind {
            "all" => Ok(Some(self.results.totals())),
            "read" => Ok(self.results.reads()),
            "write" => Ok(self.results.writes()),
            "flush" => Ok(self.results.flushes()),
            _ => Err(PyKeyError::new_err(format!("kind: no `{kind}` (all, read, write or flush)"))),
        }
    }

    fn responses(&self, kind: &str) -> PyResult<TimeHistogram> {
        Ok(self.totals(kind)?.map_or_else(TimeHistogram::new, |totals| totals.responses))
    }
}

#[pymethods]
impl NativeResults {
    /// The text that the command prints for the same run with `--json`, whose CPU time is `null`.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || Ok(self.results.to_json()))
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.results.seed
    }

    #[getter]
    fn iops(&self) -> f64 {
        self.results.iops()
    }

    #[getter]
    fn bandwidth_mb_s(&self) -> f64 {
        self.results.bandwidth_mb_s()
    }

    #[getter]
    fn simulated_s(&self) -> f64 {
        self.results.end.as_secs()
    }

    #[getter]
    fn counted_s(&self) -> f64 {
        self.results.counted_s()
    }

    /// Title of the rig, name of the load and its kind.
    fn titles(&self) -> (String, String, String) {
        let workload = &self.results.workload;
        (self.results.rig.title.clone(), workload.name.clone(), workload.kind.clone())
    }

    /// What was ignored, as messages.
    fn remarks(&self) -> Vec<String> {
        self.results.workload.remarks.clone()
    }

    /// What is suspicious: the name of each check and its text.
    fn notes(&self) -> Vec<(&'static str, String)> {
        self.results.notes().into_iter().map(|note| (note.name, note.text)).collect()
    }

    /// What decides about the figures, as a line; none if the program built the engine.
    fn setup(&self) -> Option<String> {
        self.results.setup.line()
    }

    /// Reads, writes and flushes per second.
    fn rates(&self) -> (f64, f64, f64) {
        (self.results.read_iops(), self.results.write_iops(), self.results.flushes_per_s())
    }

    /// Why the run ended early, the share that was done, and the outstanding requests.
    fn early_stop(&self) -> Option<(String, Option<f64>, u64)> {
        let stop = self.results.early_stop.as_ref()?;
        Some((stop.reason.clone(), stop.share, stop.outstanding))
    }

    /// Number of requests of a kind that counted, and their bytes.
    fn count(&self, kind: &str) -> PyResult<(u64, u64)> {
        Ok(self.totals(kind)?.map_or((0, 0), |totals| (totals.responses.count(), totals.bytes)))
    }

    /// Mean, standard deviation, least and largest response time of a kind in ms.
    fn moments_ms(&self, kind: &str) -> PyResult<[f64; 4]> {
        let times = self.responses(kind)?;
        Ok([times.mean_ms(), times.std_dev_ms(), times.min().as_ms(), times.max().as_ms()])
    }

    /// The response time of a kind in ms that a share of the requests does not exceed.
    fn quantile_ms(&self, kind: &str, share: f64) -> PyResult<f64> {
        Ok(self.responses(kind)?.quantile(share.clamp(0.0, 1.0)).as_ms())
    }

    /// The distribution of the response times of a kind: shares, and the time in ms at each.
    #[allow(clippy::type_complexity, reason = "two columns")]
    fn distribution<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        steps: u32,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
        let times = self.responses(kind)?;
        let steps = if times.count() == 0 { 0 } else { steps };
        let (shares, times): (Vec<f64>, Vec<f64>) =
            times.points(steps).map(|(share, time)| (share, time.as_ms())).unzip();
        Ok((shares.into_pyarray(py), times.into_pyarray(py)))
    }

    /// The counts of the response times of a kind: the largest time of each in ns, and the requests. Quantiles follow from these.
    #[allow(clippy::type_complexity, reason = "two columns")]
    fn steps<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>)> {
        let times = self.responses(kind)?;
        let (times, counts): (Vec<i64>, Vec<i64>) =
            times.steps().map(|(time, count)| (time.0 as i64, count as i64)).unzip();
        Ok((times.into_pyarray(py), counts.into_pyarray(py)))
    }

    /// Mean of each part of the response time in ms.
    fn parts_ms(&self) -> Vec<(&'static str, f64)> {
        TimeSplit::NAMES.into_iter().zip(self.results.totals().parts_ms()).collect()
    }

    /// Moves the columns of the requests out of the results, without a copy; `None` for a column of zeros. Only the first call has
    /// them; nothing if the requests were not kept.
    fn take_requests<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let table = self.requests.lock().expect("no thread panics with it").take();
        table.map(|table| columns(py, *table)).transpose()
    }
}

/// A column as an array that owns its memory; `None` for zeros.
fn sparse<T>(py: Python<'_>, column: SparseColumn<T>) -> Option<Bound<'_, PyArray1<T>>>
where
    T: Element + Copy + Default + PartialEq,
{
    column.into_values().map(|values| values.into_pyarray(py))
}

fn columns<'py>(py: Python<'py>, table: KeptRequests) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("lbn", table.lbn.into_pyarray(py))?;
    dict.set_item("sectors", table.sectors.into_pyarray(py))?;
    dict.set_item("op", table.op.into_pyarray(py))?;
    dict.set_item("urgent", sparse(py, table.urgent))?;
    dict.set_item("limit", sparse(py, table.limit))?;
    dict.set_item("source", sparse(py, table.source))?;
    dict.set_item("volume", sparse(py, table.volume))?;
    dict.set_item("device", sparse(py, table.device))?;
    dict.set_item("outcome", sparse(py, table.outcome))?;
    let counted =
        |values: Vec<bool>| values.into_iter().map(|is_left_out| !is_left_out).collect::<Vec<bool>>();
    let counted = table.uncounted.into_values().map(|values| counted(values).into_pyarray(py));
    dict.set_item("counted", counted)?;
    dict.set_item("submitted_ns", table.submitted_ns.into_pyarray(py))?;
    dict.set_item("completed_ns", table.completed_ns.into_pyarray(py))?;
    for (name, column) in TimeSplit::NAMES.into_iter().zip(table.parts_ns) {
        dict.set_item(format!("{name}_ns"), sparse(py, column))?;
    }
    dict.set_item("cache", table.cache.into_pyarray(py))?;
    dict.set_item("from_cylinder", table.from_cylinder.into_pyarray(py))?;
    dict.set_item("to_cylinder", table.to_cylinder.into_pyarray(py))?;
    Ok(dict)
}
