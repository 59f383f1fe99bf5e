//! `[controller]` of a rig: its keys.

use crate::os::Merge;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a controller does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerKind {
    /// It passes on what comes, both ways.
    #[default]
    PassThrough,
    /// It has a queue, an order and a cache of its own.
    Smart,
}

/// A controller between buses and host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ControllerSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub kind: ControllerKind,
    /// Time a sector takes through it.
    pub us_per_sector: f64,
    /// Time that each of its messages takes: a command on its way to the drives, and its end on the way to the host.
    pub delay_us: f64,
    /// Name of the `interleaved` bus that it is on itself, with others of its kind: a PCI bus, say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Commands that it holds, for all its drives together, of a smart one; more wait before it. No limit when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// Name of the order policy of its queue, of a smart one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// Which requests that wait in its queue become one, of a smart one. Default: `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    /// Commands that it has outstanding at each drive, of a smart one. Default: as many as the drive takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_depth: Option<u32>,
    /// Its cache, of a smart one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<ControllerCacheSpec>,
}

impl Default for ControllerSpec {
    fn default() -> ControllerSpec {
        ControllerSpec {
            name: "controller".to_string(),
            kind: ControllerKind::PassThrough,
            us_per_sector: 0.0,
            delay_us: 0.0,
            on: None,
            queue_depth: None,
            order: None,
            merge: None,
            drive_depth: None,
            cache: None,
        }
    }
}

/// When a controller reports a write done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerWrites {
    /// Once the drive has reported it done; where a drive is the cache, that one.
    #[default]
    WriteThrough,
    /// Once its data are in the controller's cache.
    WriteBack,
}

/// Memory, or a drive that stands in for it and keeps another drive's blocks at the same places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControllerCacheSpec {
    /// Its size.
    pub sectors: u64,
    /// Size of a line, the least that is kept or given up. Default: 64; a cache on a drive has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_sectors: Option<u32>,
    /// Name of the drive that is the cache, where it is not memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// When a write is reported done.
    #[serde(default)]
    pub writes: ControllerWrites,
    /// Most that is read ahead of each stream, once it is seen to be one; 0 for nothing. Of memory only.
    #[serde(default)]
    pub read_ahead_sectors: u32,
    /// Share of the lines kept for those used more than once (segmented LRU); with 0, plain LRU. Of memory only.
    #[serde(default)]
    pub protected_ratio: f64,
    /// How often all that is dirty is written, of memory only. Dirty lines are written in any case when their room is
    /// wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush_period_ms: Option<f64>,
    /// After how long without anything to do dirty blocks are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush_idle_ms: Option<f64>,
    /// Most neighbouring lines that are written together. Of memory only.
    #[serde(default = "one")]
    pub flush_cluster_lines: u32,
}

fn one() -> u32 {
    1
}

impl ControllerCacheSpec {
    /// Size of a line unless the rig says otherwise.
    pub(crate) const LINE_SECTORS: u32 = 64;
    /// The most lines that memory may have.
    pub(crate) const LINES_MAX: u64 = 1 << 24;
}
