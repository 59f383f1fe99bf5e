//! A trace as a workload.

use super::info::{WorkloadInfo, file_name};
use crate::error::Error;
use crate::numbers::grouped;
use headstack_model::Instant;
use headstack_workload::trace::{DeviceMap, Format, OutOfRange, Record, Replay, ReplayOptions, Trace};
use headstack_workload::{Load, Poll, VolumeInfo};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a trace is read and mapped to the volumes of a rig.
#[derive(Clone, Copy, Debug)]
pub struct TraceOptions {
    /// Its format. Default: detected from its first bytes.
    pub format: Option<&'static Format>,
    /// Factor of its times: 0.5 is twice as fast.
    pub time_scale: f64,
    /// Whether blocks beyond the end of a volume wrap around; else such a request ends the replay with an error.
    pub wrap: bool,
    /// The volume for all its devices. Default: the rig's mapping, or the n-th volume for the n-th device that appears.
    pub all_to: Option<u32>,
    /// Maximum number of malformed lines or records that are skipped.
    pub malformed_max: u64,
}

impl Default for TraceOptions {
    fn default() -> TraceOptions {
        TraceOptions { format: None, time_scale: 1.0, wrap: false, all_to: None, malformed_max: 0 }
    }
}

/// Bytes read from a file, counted by its reader.
type BytesRead = Arc<AtomicU64>;

struct CountingReader<R> {
    inner: R,
    read: BytesRead,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A trace whose format is known.
pub(super) struct TraceSource {
    name: String,
    trace: Trace<'static>,
    options: TraceOptions,
    length: Option<u64>,
    read: BytesRead,
}

impl TraceSource {
    /// Reads the head of a trace. `origin` (the file's name) goes into errors.
    pub(super) fn open(
        input: impl Read + 'static,
        length: Option<u64>,
        origin: &str,
        options: &TraceOptions,
    ) -> Result<TraceSource, Error> {
        let read = BytesRead::default();
        let input = CountingReader { inner: input, read: Arc::clone(&read) };
        let trace = Trace::open(input, origin, options.format)?.skipping(options.malformed_max);
        Ok(TraceSource { name: file_name(origin), trace, options: *options, length, read })
    }

    /// A trace of requests that the program has. `name` goes into errors and results.
    pub(super) fn from_records(
        records: impl Iterator<Item = Record> + 'static,
        name: &str,
        options: &TraceOptions,
    ) -> TraceSource {
        let trace = Trace::from_records(records, name);
        TraceSource {
            name: file_name(name),
            trace,
            options: *options,
            length: None,
            read: BytesRead::default(),
        }
    }

    /// The replay on these volumes. `devices` maps devices of the trace to volumes, if the rig defines that.
    pub(super) fn build(
        self,
        volumes: &[VolumeInfo],
        devices: Option<BTreeMap<String, u32>>,
    ) -> (TraceReplay, WorkloadInfo) {
        let TraceSource { name, trace, options, length, read } = self;
        let info = WorkloadInfo::of_one_job(&name, &format!("trace, {}", trace.format().title));
        let devices = match options.all_to {
            Some(volume) => DeviceMap::AllTo(volume),
            None => devices.map_or(DeviceMap::FirstAppearance, DeviceMap::Named),
        };
        let out_of_range = if options.wrap { OutOfRange::Wrap } else { OutOfRange::Error };
        let options = ReplayOptions { time_scale: options.time_scale, devices, out_of_range };
        (TraceReplay { replay: Replay::new(trace, volumes, options), length, read }, info)
    }
}

/// The replay of a trace, and how much of the file was read.
pub(crate) struct TraceReplay {
    replay: Replay<'static>,
    length: Option<u64>,
    read: BytesRead,
}

impl Load for TraceReplay {
    fn poll(&mut self, now: Instant) -> Poll {
        self.replay.poll(now)
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.replay.handle_completion(now, id);
    }

    fn progress(&self, _now: Instant) -> Option<f64> {
        let length = self.length.filter(|length| *length > 0)?;
        Some((self.read.load(Ordering::Relaxed) as f64 / length as f64).min(1.0))
    }
}

impl TraceReplay {
    /// The remarks after the replay.
    ///
    /// *Errors:* what ended it before the end of the trace; a trace without requests.
    pub(super) fn finish(&mut self) -> Result<Vec<String>, Error> {
        if let Some(error) = self.replay.take_error() {
            return Err(Error::Replay(error));
        }
        let counts = self.replay.counts();
        if counts.issued == 0 {
            return Err(Error::EmptyTrace { file: self.replay.trace().file().to_string() });
        }
        let met = [
            (counts.trims, "trims left out"),
            (counts.empty, "empty requests left out"),
            (counts.wrapped, "requests wrapped around the end of their volume"),
            (counts.malformed, "malformed lines or records passed over"),
        ];
        let met = met.into_iter().filter(|(count, _)| *count > 0);
        Ok(met.map(|(count, what)| format!("{} {what}", grouped(count))).collect())
    }
}
