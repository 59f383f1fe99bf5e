//! Errors in the input of a run, with their place.

use headstack_model::SpecError;
use headstack_model::zones::ZoneRefusal;
use headstack_sim::{DeviceError, RigError};
use headstack_workload::ShapeError;
use headstack_workload::trace::{ReplayError, TraceError};
use std::io;

/// Why a run failed. Displays as one line that names the file and the place in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum Error {
    /// A file cannot be read, is too long, or is not text.
    #[error("{file}: {message}")]
    Read { file: String, message: String },
    /// A drive, load or job file is invalid: file, line, key, what is allowed.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A rig is invalid, or its parts do not fit each other.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// A device cannot be built with these options.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The format of a trace is not recognised, or its first record is malformed.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The replay of a trace failed before its end.
    #[error(transparent)]
    Replay(ReplayError),
    /// The replay of a job's log (`read_iolog`) failed before its end.
    #[error(transparent)]
    Log(ReplayError),
    /// A trace holds no request.
    #[error("{file}: the trace has no request")]
    EmptyTrace { file: String },
    /// A host-managed disk refused writes.
    #[error(
        "{device}: the disk refused {count} writes, the first of {sectors} sectors at block {lbn}: {reason}; write each zone in sequence \
         from its first block on, as `rw=write` does"
    )]
    #[allow(missing_docs, reason = "the names say it")]
    Zones { device: String, count: u64, sectors: u32, lbn: u64, reason: ZoneRefusal },
    /// The parts of a pattern contradict each other, or it does not fit on the volume.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

impl Error {
    pub(crate) fn read(path: &str, error: &io::Error) -> Error {
        Error::Read { file: path.to_string(), message: error.to_string() }
    }
}

/// Why a pattern is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum PatternError {
    /// Several streams of a pattern without streams.
    #[error("streams: {0} is more than 1, which only the pattern `Streams` takes")]
    Streams(u32),
    /// Streams that write.
    #[error("write share: streams only read (0)")]
    StreamWrites,
    /// Tracks that are both read and written.
    #[error("write share: patterns by track are all reads or all writes (0 or 1)")]
    TrackMix,
    /// Open arrivals of streams or tracks.
    #[error("arrivals: only random and sequential patterns are open")]
    OpenArrivals,
    /// A size that is no whole number of sectors.
    #[error("{bytes} bytes are no whole number of {volume}'s sectors of {sector_bytes} bytes")]
    SectorSize { bytes: u64, volume: String, sector_bytes: u32 },
    /// A size larger than any request.
    #[error("{0} bytes are too many for one request")]
    TooLong(u64),
    /// An invalid rate of arrivals.
    #[error("arrivals: {0} is outside 0.000001 to 1000000000 requests a second")]
    Rate(f64),
    /// A part of a volume that is larger than the volume.
    #[error("{within} sectors are more than the {sectors} of {volume}")]
    Within { within: u64, volume: String, sectors: u64 },
    /// A pattern by track on a volume that is not one drive.
    #[error("{0} is not a single drive: patterns by track need the tracks of one")]
    Tracks(String),
    /// An engine without volumes.
    #[error("there is no volume for the pattern")]
    NoVolume,
    /// The requests do not fit.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}
