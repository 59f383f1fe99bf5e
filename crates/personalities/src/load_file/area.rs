//! The blocks that a table of a load file uses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The blocks that a table uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// Name of the rig's volume. Default: the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Start of the area.
    #[serde(default)]
    pub offset_bytes: u64,
    /// Length of the area. Default: to the volume's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}
