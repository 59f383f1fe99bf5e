//! The keys of an array.

use headstack_policy::stripe::{Organisation, ReadChoice, Rotation, Shape, WriteOrder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Drives that a load sees as one volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// Name of the volume that it is.
    #[serde(default = "array")]
    pub name: String,
    /// How it lays its blocks on drives.
    pub organisation: Organisation,
    /// The member drives, by the names of their volumes; the name of a kind of drives stands for all of them.
    pub drives: Vec<String>,
    /// Blocks of a stripe unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub stripe_unit_sectors: Option<u64>,
    /// Whether each track is a stripe unit, so that no unit lies on two tracks. The drives must be of one kind.
    #[serde(default, skip_serializing_if = "is_off")]
    pub track_aligned: bool,
    /// Blocks of a unit of parity, where it is not the stripe unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub parity_unit_sectors: Option<u64>,
    /// Number of copies of each block, with `mirroring`.
    #[serde(default = "two")]
    #[schemars(range(min = 2, max = Shape::COPIES_MAX))]
    pub copies: u32,
    /// Which copy is read.
    #[serde(default)]
    pub read_choice: ReadChoice,
    /// Placement of parity, with `raid-5` and `raid-6`.
    #[serde(default)]
    pub rotation: Rotation,
    /// Share of all drives up to which a write uses read-modify-write, and from which on it reads the rest of the stripe
    /// (reconstruct-write). Default: the method with fewer reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub read_modify_write_ratio: Option<f64>,
    /// When to write data whose parity needs reads first.
    #[serde(default)]
    pub write_order: WriteOrder,
    /// The failed drives; the array must survive all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// Drives that die during the run. The array serves their requests from what is left, and rebuilds a spare if one is idle; requests that
    /// it cannot serve fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fails: Vec<ArrayFailure>,
    /// Spare drives. They replace failed ones in their order and are rebuilt while the load runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spares: Vec<String>,
    /// Share of the time in which two members seek at once that the later seek takes longer: the arms of one disk shake each other. For
    /// `concatenation` and for `striping` with `track_aligned`. Default: 0, because no data sheet gives a number.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub interference_ratio: f64,
    /// Largest rate at which the array rebuilds its spares. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = 1e6))]
    pub rebuild_mb_s: Option<f64>,
}

fn is_off(key: &bool) -> bool {
    !key
}

/// A drive of an array that dies during the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayFailure {
    /// The drive: a member or a spare.
    pub drive: String,
    /// When it dies: from then on it fails every command.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub at_s: f64,
}

fn is_zero(ratio: &f64) -> bool {
    *ratio == 0.0
}

fn array() -> String {
    "array".to_string()
}

fn two() -> u32 {
    2
}
