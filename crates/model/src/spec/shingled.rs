//! Keys of `[shingled]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the persistent cache of a shingled drive lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CachePlacement {
    /// In one piece on the outermost tracks.
    Outer,
    /// In equal pieces, spread evenly over the blocks.
    Spread,
}

/// `[shingled]`: bands of shingled tracks that the drive itself manages. Writes go to a log in a persistent cache on the media; a map of
/// extents says where the newest data of a block are. Later the drive cleans the band of the oldest extent in the log (FIFO): it
/// reads the band, merges its cached extents, saves the result in the cache, and writes the band. A band of which the volatile
/// cache holds new data for all blocks is written at its own place at once. The blocks of a band have fixed places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShingledSpec {
    /// Blocks of a band.
    pub band_sectors: u32,
    /// Size of the persistent cache: the log and one band, where cleaning saves its work.
    pub cache_sectors: u64,
    /// Where the persistent cache lies.
    pub cache_placement: CachePlacement,
    /// Pieces of a cache that is spread.
    #[serde(default = "default_pieces")]
    #[schemars(range(min = 1, max = 1000))]
    pub pieces: u32,
    /// Largest number of extents in the map.
    pub map_entries_max: u32,
    /// Largest number of records in the log.
    #[serde(default = "default_records_max")]
    #[schemars(range(min = 16, max = 10_000_000), extend("x-unit" = "records"))]
    pub records_max: u32,
    /// Sectors of a record's header in the log.
    #[schemars(range(min = 1, max = 1024))]
    pub header_sectors: u32,
    /// Copies of a record's data that the drive writes, one behind the other.
    #[serde(default = "default_copies")]
    #[schemars(range(min = 1, max = 4))]
    pub record_copies: u32,
    /// Number of records after which the drive saves its map; 0 if no record waits for that.
    #[serde(default)]
    #[schemars(range(min = 0, max = 10_000_000))]
    pub map_save_records: u32,
    /// Time of saving the map.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1e5))]
    pub map_save_ms: f64,
    /// Largest number of extents in a record.
    #[schemars(range(min = 1, max = 1024), extend("x-unit" = "extents"))]
    pub record_extents_max: u32,
    /// Size of a record from which on no more extents are added. A longer write has a record of its own.
    #[schemars(range(min = 1, max = 65_536))]
    pub record_max_sectors: u32,
    /// Time without a command after which a band is cleaned.
    #[schemars(range(min = 0.1, max = 1e6))]
    pub idle_ms: f64,
    /// Most that one access of cleaning moves: a command that arrives meanwhile waits for it.
    #[schemars(range(min = 8, max = 65_536))]
    pub clean_step_sectors: u32,
}

fn default_pieces() -> u32 {
    1
}

fn default_copies() -> u32 {
    1
}

fn default_records_max() -> u32 {
    1_000_000
}
