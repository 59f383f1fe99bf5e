//! A trace as a load.

use super::{LoadArgs, SimLoad};
use crate::failure::Failure;
use crate::files;
use crate::sim::outcome::{LoadNotes, ReadyLoad};
use crate::units::grouped;
use headstack_model::Nanos;
use headstack_sim::rig::Rig;
use headstack_workload::trace::{self, DeviceMap, OutOfRange, Replay, ReplayError, ReplayOptions, Trace};
use headstack_workload::{Load, Poll};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a file that were read, counted by its reader.
type BytesRead = Arc<AtomicU64>;

/// A reader that counts what was read.
struct Counted<R> {
    inner: R,
    read: BytesRead,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

struct TraceLoad {
    replay: Replay<'static>,
    length: u64,
    read: BytesRead,
}

impl Load for TraceLoad {
    fn poll(&mut self, now: Nanos) -> Poll {
        self.replay.poll(now)
    }

    fn handle_completion(&mut self, now: Nanos, id: u64) {
        self.replay.handle_completion(now, id);
    }
}

impl SimLoad for TraceLoad {
    fn progress(&self, _now: Nanos) -> Option<f64> {
        let share = self.read.load(Ordering::Relaxed) as f64 / self.length as f64;
        (self.length > 0).then_some(share.min(1.0))
    }

    fn finish(&self) -> Result<Vec<String>, Failure> {
        if let Some(error) = self.replay.error() {
            let hint = match error {
                ReplayError::TooManyDevices { .. } => " (--all-to 0 sends all to one)",
                ReplayError::OutOfRange { .. } => " (--wrap puts such blocks on it all the same)",
                _ => "",
            };
            return Err(Failure::Input(format!("{error}{hint}")));
        }
        let counts = self.replay.counts();
        if counts.issued == 0 {
            return Err(Failure::Input(format!("{}: the trace has no request", self.replay.trace().file())));
        }
        let met = [
            (counts.trims, "trims left out"),
            (counts.empty, "empty requests left out"),
            (counts.wrapped, "requests wrapped around the end of their volume"),
            (counts.malformed, "malformed lines or records passed over"),
        ];
        let said = met.into_iter().filter(|(count, _)| *count > 0);
        Ok(said.map(|(count, what)| format!("{} {what}", grouped(count))).collect())
    }
}

/// The replay of the trace at `path` on a rig.
pub(super) fn ready(path: &Path, options: &LoadArgs, rig: &Rig) -> Result<ReadyLoad, Failure> {
    let file = files::open(path)?;
    let length = file.metadata().map_or(0, |data| data.len());
    let read = BytesRead::default();
    let counted = Counted { inner: file, read: Arc::clone(&read) };
    let format = options.format.as_deref().and_then(trace::named);
    let shown = path.display().to_string();
    let trace = Trace::open(counted, &shown, format).map_err(Failure::input)?.skipping(options.skip_bad);
    let format = trace.format();
    let devices = match options.all_to {
        Some(volume) => DeviceMap::AllTo(volume),
        None => rig.trace_devices().map_or(DeviceMap::FirstAppearance, DeviceMap::Named),
    };
    let replay_options = ReplayOptions {
        time_scale: options.time_scale.unwrap_or(1.0),
        devices,
        out_of_range: if options.wrap { OutOfRange::Wrap } else { OutOfRange::Error },
    };
    let replay = Replay::new(trace, &rig.volumes(), replay_options);
    let notes = LoadNotes::of_one_job(super::file_name(path), format!("trace, {}", format.title));
    Ok(ReadyLoad { load: Box::new(TraceLoad { replay, length, read }), notes })
}
