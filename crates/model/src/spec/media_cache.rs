//! Keys of `[media_cache]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[media_cache]`: a log on the media for writes that must be safe before they are reported: those past the volatile cache (which is off,
/// or the write asks for FUA). Such a write goes to the log's region that is nearest to the arm, at the next place that comes under the head,
/// and home later, in an order of the drive's choice. A flush still writes what the volatile cache holds home.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediaCacheSpec {
    /// Regions of the log, spread evenly over the cylinders, on one surface.
    pub regions: u32,
    /// Tracks of a region.
    pub region_tracks: u32,
    /// Sectors that the log adds to each write, for what it is to find it again.
    #[serde(default)]
    pub header_sectors: u32,
    /// Largest write that goes to the log; larger ones go home at once.
    pub write_max_sectors: u32,
    /// Most writes that the log holds: the drive remembers where each is.
    pub records_max: u32,
    /// Writes in the log from which on it is emptied while commands wait.
    pub empty_from_records: u32,
    /// Writes that go home in one go then, before commands that wait.
    pub empty_run_records: u32,
    /// Time without a command after which the log is emptied.
    pub idle_ms: f64,
    /// Order in which the writes go home.
    pub order: String,
}
