//! Traces as columns: read from any format, written to any format, replayed.

use crate::error::{CallError, detached, input_error};
use crate::files::MachineFiles;
use headstack::workload::trace::{self, Format, Header, Kind, Losses, Packing, Record, Trace, TraceWriter};
use headstack::{FileSource, Instant, Nanos};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The requests of a trace.
#[derive(Default)]
pub(crate) struct TraceColumns {
    time_ns: Vec<i64>,
    device: Vec<i64>,
    /// Index in [`Kind::ALL`].
    op: Vec<u8>,
    offset: Vec<i64>,
    bytes: Vec<i64>,
    /// Response and think times; -1 where the trace has none.
    response_ns: Vec<i64>,
    think_ns: Vec<i64>,
}

impl TraceColumns {
    /// *Errors:* columns of several lengths; a value out of range, with its row.
    pub(crate) fn new(
        time_ns: PyReadonlyArray1<'_, i64>,
        device: PyReadonlyArray1<'_, i64>,
        op: PyReadonlyArray1<'_, u8>,
        offset: PyReadonlyArray1<'_, i64>,
        bytes: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<TraceColumns> {
        let rows = op.as_slice().map_err(input_error)?.len();
        let column = |name: &str, values: PyReadonlyArray1<'_, i64>, most: i64| -> PyResult<Vec<i64>> {
            let values = values.as_slice().map_err(input_error)?;
            if values.len() != rows {
                return Err(input_error(format!("{name}: {} rows, where op has {rows}", values.len())));
            }
            match values.iter().position(|value| !(0..=most).contains(value)) {
                Some(row) => {
                    Err(input_error(format!("{name}[{row}]: {} is outside 0 to {most}", values[row])))
                }
                None => Ok(values.to_vec()),
            }
        };
        let op_codes = op.as_slice().map_err(input_error)?.to_vec();
        if let Some(row) = op_codes.iter().position(|code| usize::from(*code) >= Kind::ALL.len()) {
            let most = Kind::ALL.len() - 1;
            return Err(input_error(format!("op[{row}]: {} is outside 0 to {most}", op_codes[row])));
        }
        Ok(TraceColumns {
            time_ns: column("time_ns", time_ns, i64::MAX)?,
            device: column("device", device, u32::MAX.into())?,
            op: op_codes,
            offset: column("offset", offset, i64::MAX)?,
            bytes: column("bytes", bytes, i64::MAX)?,
            ..TraceColumns::default()
        })
    }

    /// The columns of a replay as bytes.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = u8> {
        let numbers = [&self.time_ns, &self.device, &self.offset, &self.bytes].into_iter().flatten();
        numbers.flat_map(|number| number.to_le_bytes()).chain(self.op.iter().copied())
    }

    fn record(&self, row: usize) -> Record {
        let time = Instant(self.time_ns[row] as u64);
        let kind = Kind::ALL[usize::from(self.op[row])];
        let (offset, bytes) = match kind {
            Kind::Flush => (0, 0),
            _ => (self.offset[row] as u64, self.bytes[row] as u64),
        };
        Record::new(time, self.device[row] as u32, kind, offset, bytes)
    }

    /// The requests, in the order of the rows.
    pub(crate) fn records(self: Arc<Self>) -> impl Iterator<Item = Record> {
        (0..self.op.len()).map(move |row| self.record(row))
    }

    /// Adds a record; its time counts from `origin`, as in a replay.
    ///
    /// *Errors:* a number does not fit in 64 bits with a sign.
    fn push(&mut self, record: &Record, origin: Instant) -> Result<(), CallError> {
        let row = self.op.len();
        let fits = |name: &str, value: i128| {
            let fault = |_| CallError::Input(format!("{name}[{row}]: {value} does not fit in 64 bits"));
            i64::try_from(value).map_err(fault)
        };
        let span = |name: &str, time: Option<Nanos>| time.map_or(Ok(-1), |time| fits(name, time.0.into()));
        self.time_ns.push(fits("time_ns", i128::from(record.time.0) - i128::from(origin.0))?);
        self.device.push(record.device.into());
        self.op.push(record.kind as u8);
        self.offset.push(fits("offset", record.offset.into())?);
        self.bytes.push(fits("bytes", record.bytes.into())?);
        self.response_ns.push(span("response_ns", record.response)?);
        self.think_ns.push(span("think_ns", record.think)?);
        Ok(())
    }
}

/// The format of this name.
///
/// *Errors:* there is no such format. The message lists all formats.
pub(crate) fn format_named(name: &str) -> Result<&'static Format, CallError> {
    trace::named(name).ok_or_else(|| {
        let names: Vec<_> = trace::all().iter().map(|format| format.name).collect();
        CallError::Input(format!("format: no `{name}` (one of {})", names.join(", ")))
    })
}

/// The columns of a trace file, its first record's time in nanoseconds, the names of its devices, and the title of its format. The times
/// count from the first record's.
#[pyfunction]
#[pyo3(signature = (path, format, malformed_max))]
pub(crate) fn read_trace<'py>(
    py: Python<'py>,
    path: &str,
    format: Option<&str>,
    malformed_max: u64,
) -> PyResult<(Bound<'py, PyDict>, u64, Vec<String>, &'static str)> {
    let (columns, origin, names, title) = detached(py, || {
        let format = format.map(format_named).transpose()?;
        let fault = |error: &dyn std::fmt::Display| CallError::Input(error.to_string());
        let input = MachineFiles.open(Path::new(path)).map_err(|error| fault(&format!("{path}: {error}")))?;
        let trace = Trace::open(input, path, format).map_err(|error| fault(&error))?;
        let (mut trace, mut columns, mut origin) =
            (trace.skipping(malformed_max), TraceColumns::default(), None);
        while let Some(record) = trace.next_record().map_err(|error| fault(&error))? {
            columns.push(&record, *origin.get_or_insert(record.time))?;
        }
        Ok((columns, origin.unwrap_or(Instant::ZERO).0, trace.header().names.clone(), trace.format().title))
    })?;
    let dict = PyDict::new(py);
    let TraceColumns { time_ns, device, op, offset, bytes, response_ns, think_ns } = columns;
    let numbers = [
        ("time_ns", time_ns),
        ("device", device),
        ("offset", offset),
        ("bytes", bytes),
        ("response_ns", response_ns),
        ("think_ns", think_ns),
    ];
    for (name, values) in numbers {
        dict.set_item(name, values.into_pyarray(py))?;
    }
    dict.set_item("op", op.into_pyarray(py))?;
    Ok((dict, origin, names, title))
}

/// Writes columns as a trace file; returns the number of requests written, and what the format could not express.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the columns of a trace, which Python passes by keyword")]
pub(crate) fn write_trace(
    py: Python<'_>,
    path: PathBuf,
    format: &str,
    time_ns: PyReadonlyArray1<'_, i64>,
    device: PyReadonlyArray1<'_, i64>,
    op: PyReadonlyArray1<'_, u8>,
    offset: PyReadonlyArray1<'_, i64>,
    bytes: PyReadonlyArray1<'_, i64>,
) -> PyResult<(u64, Vec<(&'static str, u64)>)> {
    let columns = TraceColumns::new(time_ns, device, op, offset, bytes)?;
    detached(py, || {
        let format = format_named(format)?;
        let (written, losses) = write_file(&path, format, &columns)
            .map_err(|error| CallError::Input(format!("{}: {error}", path.display())))?;
        Ok((written, losses.iter().map(|(loss, count)| (loss.words(), count)).collect()))
    })
}

/// Writes a file under a temporary name in its folder, then renames it.
#[allow(clippy::disallowed_methods, reason = "the extension meets the operating system")]
fn write_file(path: &Path, format: &'static Format, columns: &TraceColumns) -> io::Result<(u64, Losses)> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let partial = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = write_records(&partial, Packing::of_name(name).0, format, columns);
    match written {
        Ok(counts) => fs::rename(&partial, path).map(|()| counts),
        Err(error) => {
            // The error of the write is reported, not that of the clean-up.
            let _ = fs::remove_file(&partial);
            Err(error)
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the extension meets the operating system")]
fn write_records(
    path: &Path,
    packing: Packing,
    format: &'static Format,
    columns: &TraceColumns,
) -> io::Result<(u64, Losses)> {
    let mut writer = TraceWriter::new(BufWriter::new(File::create(path)?), format, packing)?;
    let header = Header::default();
    (0..columns.op.len()).try_for_each(|row| writer.write(&columns.record(row), &header))?;
    let written = writer.written();
    let (mut output, losses) = writer.finish(&header)?;
    output.flush()?;
    Ok((written, losses))
}
