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
    #[schemars(range(min = 1, max = 10_000))]
    pub regions: u32,
    /// Tracks of a region.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub region_tracks: u32,
    /// Sectors that the log adds to each write, so that the drive can find it again.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1024))]
    pub header_sectors: u32,
    /// Largest write that goes to the log; larger ones go to their own places at once.
    #[schemars(range(min = 1, max = 65_536))]
    pub write_max_sectors: u32,
    /// Waiting writes from which on a sequential run of them goes to its own place, if it is longer than `write_max_sectors`.
    #[serde(default = "stream_commands")]
    #[schemars(range(min = 1, max = 1024), extend("x-unit" = "writes"))]
    pub stream_commands: u32,
    /// Largest number of writes in the log: the drive remembers where each is.
    #[schemars(range(min = 1, max = 8192), extend("x-unit" = "writes"))]
    pub records_max: u32,
    /// Writes in the log from which on it is emptied while commands wait.
    pub empty_from_records: u32,
    /// Number of writes that it then moves in one run, before waiting commands.
    pub empty_run_records: u32,
    /// Time without a command after which the log is emptied.
    #[schemars(range(min = 0.1, max = 1e6))]
    pub idle_ms: f64,
    /// Order in which the drive moves writes to their own places.
    pub order: String,
}

/// Two writes that wait may be the last of a run; with three, the next one arrives while they are written. *Source:* assumption.
fn stream_commands() -> u32 {
    3
}
