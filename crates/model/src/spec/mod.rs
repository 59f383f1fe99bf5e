//! The drive file: every parameter of a drive, as one TOML document.
//!
//! A field here is the key in the file; its doc comment is its documentation. Units end each name. Unknown keys are
//! errors that name the nearest known one. [`DriveSpec::parse`] reads, [`DriveSpec::to_toml`] writes.

mod check;
mod electronics;
mod error;
mod extents;
pub mod firmware;
mod geometry;
mod limits;
mod mechanics;
mod media_cache;
mod notes;
mod ranges;
mod shingled;
mod slow;
mod with_defaults;
mod zones;

pub use electronics::{
    BusSpec, CacheSpec, Delivery, Interface, JoinedWrites, OverheadSet, OverheadSpec, QueueSpec, ReadAhead,
    Replacement, Segmentation, Tagging, WatermarkOf, WriteCache, WriteDisconnect,
};
pub use error::{Fault, SpecError, did_you_mean, is_near, nearest};
pub use extents::{ExtentRemap, ExtentRun, Extents, Repeated, TrackKind};
pub use geometry::{BandZone, GeometrySpec, Layout, Sparing, Zone};
pub use limits::{DurationLimit, DurationLimits, LimitPolicy};
pub use mechanics::{
    LostTurns, MechanicsSpec, PhysicalSeek, Recalibration, Retries, SeekPiece, SeekSpec, SheetSeek,
    ZeroLatency,
};
pub use media_cache::MediaCacheSpec;
pub use ranges::{KeyRange, KeyRule, KeyRules, unit, within};
pub use shingled::{CachePlacement, ShingledSpec};
pub use slow::{SlowPattern, SlowPatternSpec, SlowPeriodSpec, StallSpec};
pub use zones::ZoneSpec;

use crate::Geometry;
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// How far a drive file may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Replayed against measured response times of the real drive.
    Validated,
    /// Parameters fitted to published measurements of the real drive.
    Fitted,
    /// Parameters from the maker's data sheet or manual.
    DataSheet,
    /// Some parameters inferred from other drives of its kind or from derived figures.
    Derived,
}

/// One drive: the contents of `drives/NAME.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// The drive's name on the command line: lower case with hyphens.
    pub name: String,
    /// Maker, model and capacity, for people.
    pub title: String,
    /// Year of introduction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub year: Option<u32>,
    /// How far the file may be trusted.
    pub evidence: Evidence,
    /// The class of firmware, of which the file overrides single keys; without one the file has all keys itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Logical sectors the host can address. Must fit in the geometry.
    #[schemars(range(min = 1, max = 1_000_000_000_000_000_u64))]
    pub capacity_sectors: u64,
    /// Bytes in a logical sector.
    #[serde(default = "default_sector_bytes")]
    pub sector_bytes: u32,
    /// Bytes in a physical sector. A write that covers part of one costs a read and a revolution.
    #[serde(default = "default_sector_bytes")]
    pub physical_sector_bytes: u32,
    /// Sources of the numbers: a short word used in the comments after them, and the full source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// Surfaces, zones, skews, spares and defects.
    pub geometry: GeometrySpec,
    /// Spindle, arm and zero-latency access.
    pub mechanics: MechanicsSpec,
    /// Time the electronics take for a command.
    #[serde(default)]
    pub overhead: OverheadSpec,
    /// Segments, read-ahead and write cache.
    #[serde(default)]
    pub cache: CacheSpec,
    /// A log on the media for writes that must be on the media before they are acknowledged; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_cache: Option<MediaCacheSpec>,
    /// Zones that the host writes in sequence; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<ZoneSpec>,
    /// Bands of shingled tracks that the drive manages; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shingled: Option<ShingledSpec>,
    /// The host's bus.
    pub bus: BusSpec,
    /// The command queue.
    #[serde(default)]
    pub queue: QueueSpec,
}

/// Merges `over` into `under`: tables are joined, everything else is replaced.
pub fn lay(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => lay(below, above),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

static RULES: LazyLock<KeyRules> = LazyLock::new(KeyRules::from_type::<DriveSpec>);

fn default_sector_bytes() -> u32 {
    512
}

impl DriveSpec {
    /// Reads and checks a drive file. `origin` (the file's name) goes into errors.
    ///
    /// *Errors:* the first fault found, with its line, its key and what is allowed.
    pub fn parse(text: &str, origin: &str) -> Result<DriveSpec, SpecError> {
        let spec = firmware::read(text, origin)?;
        spec.find_fault().map_err(|fault| firmware::locate(fault, text, origin))?;
        Ok(spec)
    }

    /// Checks a spec that did not come from a file.
    ///
    /// *Errors:* as [`DriveSpec::parse`], without a line.
    pub fn check(&self) -> Result<(), SpecError> {
        self.find_fault().map_err(|fault| fault.locate("", &self.name))
    }

    fn find_fault(&self) -> Result<(), Fault> {
        check::check(self)?;
        Geometry::build(self).map(|_| ())
    }

    /// Writes the spec as a drive file: the keys of its class of firmware with the drive's own, and the name of the class.
    ///
    /// Because the file has all keys that are set, none is taken from the class when it is read again.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("every spec is expressible in TOML")
    }

    /// The form of drive files as JSON Schema: every key with its type, default and documentation.
    pub fn json_schema() -> Schema {
        schema_for!(DriveSpec)
    }

    /// The kind of the drive's tags: the file's, else those of its interface, else SCSI's.
    pub fn tagging(&self) -> Tagging {
        let of_interface = self.bus.interface.map_or(Tagging::Tcq, Interface::tagging);
        self.queue.tagging.unwrap_or(of_interface)
    }

    /// The same drive behind SAS, whose queue is longer than NCQ's 32 tags: for questions about long queues.
    pub fn on_sas(mut self) -> DriveSpec {
        (self.bus.interface, self.queue.tagging) = (Some(Interface::Sas), None);
        self
    }

    /// Capacity in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_sectors * u64::from(self.sector_bytes)
    }
}
