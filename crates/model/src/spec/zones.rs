//! Keys of `[zones]`.

use crate::zones::{ZoneLayout, ZoneModel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[zones]`: a shingled disk whose host writes its zones in sequence (ZBC, ZAC). A read beyond the write pointers needs no access.
///
/// No command only resets a zone: a write at the first block of a full zone resets it first. fio's `zone_reset_frequency` resets other
/// zones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZoneSpec {
    /// Whether the disk refuses a write that is not at a write pointer (`host-managed`), or takes it (`host-aware`).
    pub model: ZoneModel,
    /// Sectors of a zone. The last one may be shorter.
    pub zone_sectors: u64,
    /// Number of zones, from the first on, that may be written anywhere.
    #[serde(default)]
    pub conventional: u32,
    /// Most zones that may be open at a time.
    pub open_max: u32,
    /// Most zones that may be open or closed at a time. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_max: Option<u32>,
    /// Whether all zones are full at first, as on a disk that has been in use; else they are empty.
    #[serde(default = "yes")]
    pub full_at_first: bool,
}

fn yes() -> bool {
    true
}

impl ZoneSpec {
    /// The zones of a disk of this many sectors.
    pub fn layout(&self, sectors: u64) -> ZoneLayout {
        ZoneLayout {
            model: self.model,
            sectors,
            zone_sectors: self.zone_sectors,
            conventional: self.conventional,
            open_max: self.open_max,
            active_max: self.active_max,
        }
    }
}
