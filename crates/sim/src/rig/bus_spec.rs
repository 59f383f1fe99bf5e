//! The keys of a bus.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the drives on a bus share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Not shared: each drive has such a bus of its own.
    #[default]
    None,
    /// Transfers interleave. They share `mb_s` if it is given, and else do not delay each other.
    Interleaved,
    /// One drive at a time has the bus, for a command, for data or for a status, and must win it each time.
    Exclusive,
}

/// Which of several drives wins an exclusive bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArbitrationRule {
    /// The one that has waited longest.
    #[default]
    Fifo,
    /// The last drive in the rig, as the highest SCSI id does.
    Priority,
}

/// The kind of a bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BusKind {
    /// Transfers cross it one at a time (parallel SCSI, ATA).
    #[default]
    Parallel,
    /// A ring of links that carry frames in both directions at once (SSA): adapter, first drive, second drive and so on, in the
    /// order of the file, and the adapter again. Two routes lead to each drive.
    SsaLoop,
}

/// A bus between drives and controller. The time of a sector is the maximum of the times of drive, bus and controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RigBusSpec {
    /// Its name.
    #[serde(default = "bus")]
    pub name: String,
    /// How the drives share it.
    pub sharing: Sharing,
    /// Time a sector takes to the host.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub read_us_per_sector: f64,
    /// Time a sector takes from the host.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub write_us_per_sector: f64,
    /// Time to win the bus, each time.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub arbitration_us: f64,
    /// Which waiting drive wins the bus.
    pub arbitration: ArbitrationRule,
    /// Rate in 10⁶ bytes a second that all transfers on an `interleaved` bus share: each gets what earlier transfers leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = 1e6))]
    pub mb_s: Option<f64>,
    /// The kind of the bus.
    pub kind: BusKind,
    /// Rate of a loop's link in each direction, in 10⁶ bytes a second. Default: 20 (SSA).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = 1e6))]
    pub link_mb_s: Option<f64>,
    /// Bytes in a loop's frame. Default: 128 (SSA).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub frame_bytes: Option<u32>,
    /// Links of a loop that are cut: 0 joins the adapter to the first drive, 1 the first drive to the second, and so on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut_links: Vec<u32>,
    /// Time that a loop's adapter takes for each command; it handles one command at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub command_us: Option<f64>,
    /// Name of the bus's controller; required only if the rig has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
}

fn bus() -> String {
    "bus".to_string()
}
