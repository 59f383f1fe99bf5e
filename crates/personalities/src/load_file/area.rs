//! The blocks that a table of a load file uses.

use serde::{Deserialize, Serialize};

/// The blocks that a table uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// The volume's name; the first one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Start of the area.
    #[serde(default)]
    pub offset_bytes: u64,
    /// Length of the area; to the volume's end when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}
