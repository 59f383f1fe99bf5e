//! Keys of `[media_cache]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[media_cache]`: a log on the media for writes that must be on the media before they are acknowledged: with the volatile cache
/// off, or with FUA. Such a write goes to the log region nearest to the arm, at the next sector that passes under the head. The
/// drive later moves it to its own place, in an order of its choice. A flush still writes the blocks of the volatile cache to
/// their own places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediaCacheSpec {
    /// Regions of the log, spread evenly over the cylinders, on one surface.
    pub regions: u32,
    /// Tracks of a region.
    pub region_tracks: u32,
    /// Sectors that the log adds to each write, so that the drive can find it again.
    #[serde(default)]
    pub header_sectors: u32,
    /// Largest write that goes to the log; larger ones go to their own places at once.
    pub write_max_sectors: u32,
    /// Waiting writes from which on a sequential run of them goes to its own place, if it is longer than `write_max_sectors`.
    #[serde(default = "stream_commands")]
    pub stream_commands: u32,
    /// Largest number of writes in the log: the drive remembers where each is.
    pub records_max: u32,
    /// Writes in the log from which on it is emptied while commands wait.
    pub empty_from_records: u32,
    /// Number of writes that it then moves in one run, before waiting commands.
    pub empty_run_records: u32,
    /// Time without a command after which the log is emptied.
    pub idle_ms: f64,
    /// Order in which the drive moves writes to their own places.
    pub order: String,
}

/// Two writes that wait may be the last of a run; with three, the next one arrives while they are written. *Source:* assumption.
fn stream_commands() -> u32 {
    3
}
