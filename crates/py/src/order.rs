//! Orders written in Python: a method that chooses among the waiting requests.

use crate::error::input_error;
use headstack::{Instant, KeptRequests};
use headstack_policy::order::{AccessCost, Order};
use headstack_policy::{QueueView, Slot};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyIndexError, PyKeyboardInterrupt};
use pyo3::intern;
use pyo3::prelude::*;
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;

/// The first exception of an order, layer or load written in Python, for the thread that waits for the simulation.
#[derive(Clone, Default)]
pub(crate) struct RaisedSlot(Arc<Mutex<Option<PyErr>>>);

impl RaisedSlot {
    /// Stores an exception, unless an earlier one is stored.
    pub(crate) fn keep(&self, error: PyErr) {
        let mut slot = self.0.lock().expect("no thread panics with it");
        slot.get_or_insert(error);
    }

    pub(crate) fn has_raised(&self) -> bool {
        self.0.lock().expect("no thread panics with it").is_some()
    }

    pub(crate) fn into_raised(self) -> Option<PyErr> {
        self.0.lock().expect("no thread panics with it").take()
    }
}

/// The requests that wait at a device, oldest first, as Python's orders see them.
#[pyclass(name = "Queue", module = "headstack._native", frozen)]
pub(crate) struct NativeQueue {
    now: Instant,
    slots: Vec<Slot>,
    arm_cylinder: u32,
    cylinders: u32,
    last_lbn: u64,
    /// Positioning times in ns, if the order needs positions.
    positioning_ns: Option<Vec<i64>>,
}

impl NativeQueue {
    fn column<'py>(&self, py: Python<'py>, value: impl Fn(&Slot) -> i64) -> Bound<'py, PyArray1<i64>> {
        self.slots.iter().map(value).collect::<Vec<i64>>().into_pyarray(py)
    }
}

#[pymethods]
impl NativeQueue {
    fn __len__(&self) -> usize {
        self.slots.len()
    }

    /// The time in nanoseconds since the start of the run.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.now.0
    }

    /// Cylinder of the arm.
    #[getter]
    fn arm_cylinder(&self) -> u32 {
        self.arm_cylinder
    }

    /// Number of the disk's cylinders.
    #[getter]
    fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// The block after the last one accessed.
    #[getter]
    fn last_lbn(&self) -> u64 {
        self.last_lbn
    }

    /// First block of each request.
    #[getter]
    fn lbn<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, |slot| slot.request.lbn.0 as i64)
    }

    /// Number of sectors of each request.
    #[getter]
    fn sectors<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, |slot| slot.request.sectors.into())
    }

    /// Cylinder of the first block of each request.
    #[getter]
    fn cylinder<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, |slot| slot.cylinder.into())
    }

    /// Head of the first block of each request.
    #[getter]
    fn head<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, |slot| slot.head.into())
    }

    /// When each request arrived, in nanoseconds since the start of the run.
    #[getter]
    fn arrived_ns<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, |slot| slot.arrived.0 as i64)
    }

    /// How long each request has waited, in nanoseconds.
    #[getter]
    fn age_ns<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, |slot| self.now.since(slot.arrived).0 as i64)
    }

    /// Operation of each request: its code in `headstack.operations()`.
    #[getter]
    fn op<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let codes = KeptRequests::op_code;
        self.column(py, move |slot| codes(slot.request.op).into())
    }

    /// Seek, settle and rotational latency of each request, in nanoseconds. `None` unless the order has `knows = "position"`.
    #[getter]
    fn positioning_ns<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<i64>>> {
        self.positioning_ns.as_ref().map(|times| times.clone().into_pyarray(py))
    }
}

/// An order whose choices a Python object makes.
pub(crate) struct PythonOrder {
    /// The object; its method `choose` takes a queue and returns an index.
    chooser: Py<PyAny>,
    needs_positions: bool,
    raised: RaisedSlot,
}

impl fmt::Debug for PythonOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PythonOrder")
    }
}

impl PythonOrder {
    pub(crate) fn new(chooser: Py<PyAny>, needs_positions: bool, raised: RaisedSlot) -> PythonOrder {
        PythonOrder { chooser, needs_positions, raised }
    }

    fn call(&self, view: &QueueView<'_>, cost: &dyn AccessCost) -> PyResult<usize> {
        let positions = || view.slots.iter().map(|slot| cost.positioning(slot).0 as i64).collect();
        let queue = NativeQueue {
            now: view.now,
            slots: view.slots.to_vec(),
            arm_cylinder: cost.arm_cylinder(),
            cylinders: cost.cylinders(),
            last_lbn: cost.last_lbn().0,
            positioning_ns: self.needs_positions.then(positions),
        };
        let waiting = view.slots.len();
        Python::attach(|py| {
            let index = self.chooser.bind(py).call_method1(intern!(py, "choose"), (queue,))?;
            if !index.hasattr(intern!(py, "__index__"))? {
                let message = format!("order: choose() returned {index:?}, which is no whole number");
                return Err(input_error(message));
            }
            let index: i64 = index.call_method0(intern!(py, "__index__"))?.extract()?;
            usize::try_from(index).ok().filter(|index| *index < waiting).ok_or_else(|| {
                PyIndexError::new_err(format!(
                    "choose() returned {index}, which is outside 0 to {}",
                    waiting - 1
                ))
            })
        })
    }
}

impl Order for PythonOrder {
    fn choose(&mut self, view: &QueueView<'_>, cost: &dyn AccessCost) -> Option<usize> {
        if view.slots.is_empty() {
            return None;
        }
        // After an exception the run ends at the next report; until then the oldest request is served.
        if self.raised.has_raised() {
            return Some(0);
        }
        Some(self.call(view, cost).unwrap_or_else(|error| {
            self.raised.keep(error);
            0
        }))
    }
}

/// Whether an exception is that of Ctrl-C.
pub(crate) fn is_interrupt(error: &PyErr) -> bool {
    Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py))
}
