//! `[controller]` of a rig: its keys.

use crate::os::Merge;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerKind {
    /// It forwards commands and data in both directions.
    #[default]
    PassThrough,
    /// It has a queue, an order and a cache of its own.
    Smart,
}

/// A controller between buses and host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ControllerSpec {
    /// Its name.
    #[serde(default = "controller")]
    pub name: String,
    /// The kind of the controller.
    pub kind: ControllerKind,
    /// Time of a sector through the controller.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub us_per_sector: f64,
    /// Time that each message takes: a command on its way to the drives, and its completion on the way to the host.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub delay_us: f64,
    /// Name of the `interleaved` bus that the controller is on, with others of its kind: a PCI bus, for example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Commands that a smart controller holds for all its drives together; more wait in front of it. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536), extend("x-unit" = "commands"))]
    pub queue_depth: Option<u32>,
    /// Name of the order policy of a smart controller's queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// Which waiting requests a smart controller merges. Default: `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    /// Commands that a smart controller has outstanding at each drive. Default: as many as the drive accepts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536), extend("x-unit" = "commands"))]
    pub drive_depth: Option<u32>,
    /// Whether a smart controller chooses a drive's next command after everything else that happens at the same time. A program that
    /// issues its next request as soon as one completes, in no time, then has it in the queue before the choice (DiskSim's order of
    /// events). By default the controller chooses as soon as the drive is ready, as a real one does.
    #[serde(skip_serializing_if = "is_default")]
    pub late_choice: bool,
    /// The cache of a smart controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<ControllerCacheSpec>,
}

fn controller() -> String {
    "controller".to_string()
}

/// When a controller reports a write done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerWrites {
    /// Once the drive has reported it done; if the cache is a drive, that drive.
    #[default]
    WriteThrough,
    /// Once its data are in the controller's cache.
    WriteBack,
}

/// Memory, or a drive that caches another drive's blocks at the same LBNs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControllerCacheSpec {
    /// Its size.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub sectors: u64,
    /// Size of a line, the unit of eviction. Default: 64; a cache on a drive has no lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub line_sectors: Option<u32>,
    /// Name of the drive that is the cache. Default: memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// When a write is reported done.
    #[serde(default)]
    pub writes: ControllerWrites,
    /// Largest read-ahead of each stream, once it is detected; 0 for none. Memory only.
    #[serde(default)]
    pub read_ahead_sectors: u32,
    /// Whether a read that misses takes room for its read-ahead as for its own data: it fetches both together, waits until there is
    /// room, and evicts what was read ahead and not requested yet (DiskSim's controllers). By default read-ahead takes room
    /// that no command needs, once a stream is detected. Memory only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead_evicts: bool,
    /// Share of the lines reserved for those used more than once (segmented LRU); with 0, plain LRU. Memory only.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 0.95))]
    pub protected_ratio: f64,
    /// Interval at which all dirty lines are written; memory only. Dirty lines are also written when their room is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = 1e9))]
    pub flush_period_ms: Option<f64>,
    /// Idle time after which dirty blocks are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e9))]
    pub flush_idle_ms: Option<f64>,
    /// Largest number of neighbouring lines that are written together. Memory only.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 4096), extend("x-unit" = "lines"))]
    pub flush_cluster_lines: u32,
}

fn one() -> u32 {
    1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl ControllerCacheSpec {
    /// Size of a line unless the rig says otherwise.
    pub(crate) const LINE_SECTORS: u32 = 64;
    /// The most lines that memory may have.
    pub(crate) const LINES_MAX: u64 = 1 << 24;
}
