//! Loads: fio jobs, load files, traces in files and in columns.

use crate::error::{CallError, detached, input_error};
use crate::files::MachineFiles;
use crate::python_load::{PythonLoad, PythonSources, SourceRun};
use crate::trace::{TraceColumns, format_named};
use headstack::workload::LoadFile;
use headstack::{Error, FileSource, TraceOptions, Workload, WorkloadKind};
use headstack_sweep::SweepLoad;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use std::sync::Arc;

/// A load, from which any number of runs make their workloads. Python's classes `Fio`, `Trace`, `Generators` and `Requests` wrap it.
#[pyclass(name = "Load", module = "headstack._native", frozen)]
pub(crate) struct NativeLoad {
    pub(crate) source: LoadSource,
}

/// Where the requests of a load come from.
#[derive(Clone)]
pub(crate) enum LoadSource {
    Job { text: String, origin: String },
    Generators { text: String, origin: String },
    File { kind: WorkloadKind, path: String, options: TraceOptions },
    Columns { columns: Arc<TraceColumns>, name: String, options: TraceOptions },
    Python(Arc<PythonSources>),
}

/// Why a load cannot be built outside of the calls that run Python.
const IN_PYTHON: &str = "is written in Python; only Rig.run and Simulation run it";

impl LoadSource {
    /// A workload of these requests.
    ///
    /// *Errors:* a file cannot be read or is invalid; the load is written in Python.
    pub(crate) fn workload(&self) -> Result<Workload<'static>, CallError> {
        if let LoadSource::Python(sources) = self {
            return Err(CallError::Input(format!("load: {} {IN_PYTHON}", sources.name)));
        }
        Ok(self.workload_with(&MachineFiles)?)
    }

    /// A workload of these requests whose files `files` opens.
    ///
    /// *Errors:* a file cannot be read or is invalid; the load is written in Python.
    fn workload_with<'f>(&self, files: &'f dyn FileSource) -> Result<Workload<'f>, Error> {
        match self {
            LoadSource::Job { text, origin } => Workload::fio_job(text, origin, files),
            LoadSource::Generators { text, origin } => Workload::load_file(text, origin),
            LoadSource::File { kind, path, options } => Workload::open_as(*kind, path, options, files),
            LoadSource::Columns { columns, name, options } => {
                Ok(Workload::records(Arc::clone(columns).records(), name, options))
            }
            LoadSource::Python(sources) => {
                Err(Error::Read { file: sources.name.clone(), message: IN_PYTHON.to_string() })
            }
        }
    }

    /// A workload of these requests for one run, whichever language they are written in.
    ///
    /// *Errors:* as [`LoadSource::workload`]; what a source written in Python raises.
    pub(crate) fn workload_of(&self, run: SourceRun) -> Result<Workload<'static>, CallError> {
        let LoadSource::Python(sources) = self else { return self.workload() };
        let names = sources.functions.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let load = PythonLoad::new(sources, run)?;
        Ok(Workload::from_load(&sources.name, load).with_sources(names))
    }

    /// Whether the load is written in Python.
    pub(crate) fn is_python(&self) -> bool {
        matches!(self, LoadSource::Python(_))
    }
}

impl SweepLoad for LoadSource {
    fn content(&self) -> Vec<u8> {
        let text = |kind: &str, text: &str| format!("{kind}\0{text}").into_bytes();
        let options = |options: &TraceOptions| {
            let format = options.format.map(|format| format.name);
            let TraceOptions { time_scale, wrap, all_to, malformed_max, .. } = options;
            format!("{format:?} {time_scale} {wrap} {all_to:?} {malformed_max}")
        };
        match self {
            LoadSource::Job { text: job, .. } => text("job", job),
            LoadSource::Generators { text: load, .. } => text("generators", load),
            LoadSource::File { options: read, .. } => text("file", &options(read)),
            LoadSource::Columns { columns, options: read, .. } => {
                let mut bytes = text("columns", &options(read));
                bytes.extend(columns.bytes());
                bytes
            }
            LoadSource::Python(sources) => text("python", &sources.name),
        }
    }

    fn workload<'f>(&self, files: &'f dyn FileSource) -> Result<Workload<'f>, Error> {
        self.workload_with(files)
    }
}

/// Options of a trace.
///
/// *Errors:* no such format; a time scale out of range.
fn trace_options(
    format: Option<&str>,
    time_scale: f64,
    wrap: bool,
    all_to: Option<u32>,
    malformed_max: u64,
) -> PyResult<TraceOptions> {
    let format = format.map(format_named).transpose().map_err(PyErr::from)?;
    if !(1e-6..=1e6).contains(&time_scale) {
        return Err(input_error(format!("time_scale: {time_scale} is outside 0.000001 to 1000000")));
    }
    Ok(TraceOptions { format, time_scale, wrap, all_to, malformed_max })
}

/// A column from Python with one number for each request: nanoseconds, sectors or bytes.
type NumberColumn<'py> = PyReadonlyArray1<'py, i64>;

#[pymethods]
impl NativeLoad {
    /// The jobs of a fio job file's text.
    #[staticmethod]
    fn fio(py: Python<'_>, text: String, origin: String) -> PyResult<NativeLoad> {
        detached(py, || {
            Workload::fio_job(&text, &origin, &MachineFiles)?;
            Ok(NativeLoad { source: LoadSource::Job { text, origin } })
        })
    }

    /// The generators of a load file's text.
    #[staticmethod]
    fn generators(py: Python<'_>, text: String, origin: String) -> PyResult<NativeLoad> {
        detached(py, || {
            LoadFile::parse(&text, &origin).map_err(|error| CallError::Input(error.to_string()))?;
            Ok(NativeLoad { source: LoadSource::Generators { text, origin } })
        })
    }

    /// The generators that keys in JSON describe.
    #[staticmethod]
    fn generators_of_json(py: Python<'_>, json: &str, origin: String) -> PyResult<NativeLoad> {
        let value: toml::Value = serde_json::from_str(json).map_err(input_error)?;
        let text = toml::to_string(&value).map_err(input_error)?;
        NativeLoad::generators(py, text, origin)
    }

    /// The load in a file, whose kind is detected, or the trace in it.
    #[staticmethod]
    #[pyo3(signature = (path, is_trace, format, time_scale, wrap, all_to, malformed_max))]
    #[allow(clippy::too_many_arguments, reason = "the options of a trace, which Python passes by keyword")]
    fn file(
        py: Python<'_>,
        path: String,
        is_trace: bool,
        format: Option<&str>,
        time_scale: f64,
        wrap: bool,
        all_to: Option<u32>,
        malformed_max: u64,
    ) -> PyResult<NativeLoad> {
        let options = trace_options(format, time_scale, wrap, all_to, malformed_max)?;
        detached(py, || {
            let kind = if is_trace {
                WorkloadKind::Trace
            } else {
                WorkloadKind::detect(&path, &options, &MachineFiles)?
            };
            Workload::open_as(kind, &path, &options, &MachineFiles)?;
            Ok(NativeLoad { source: LoadSource::File { kind, path, options } })
        })
    }

    /// A load whose sources are functions of Python, each with its name.
    #[staticmethod]
    fn python(name: String, functions: Vec<(String, Py<PyAny>)>) -> NativeLoad {
        NativeLoad { source: LoadSource::Python(Arc::new(PythonSources { name, functions })) }
    }

    /// A trace of requests in columns of equal length. `op` has the codes of the kinds: read, write, flush, trim.
    #[staticmethod]
    #[allow(clippy::too_many_arguments, reason = "the columns and options, which Python passes by keyword")]
    fn columns(
        time_ns: NumberColumn<'_>,
        device: NumberColumn<'_>,
        op: PyReadonlyArray1<'_, u8>,
        offset: NumberColumn<'_>,
        bytes: NumberColumn<'_>,
        name: String,
        time_scale: f64,
        wrap: bool,
        all_to: Option<u32>,
    ) -> PyResult<NativeLoad> {
        let options = trace_options(None, time_scale, wrap, all_to, 0)?;
        let columns = TraceColumns::new(time_ns, device, op, offset, bytes)?;
        let columns = Arc::new(columns);
        Ok(NativeLoad { source: LoadSource::Columns { columns, name, options } })
    }
}
