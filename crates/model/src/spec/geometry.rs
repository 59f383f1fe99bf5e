//! Keys of `[geometry]`.

use super::Extents;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The order in which LBNs run over tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Head 0 to the last on every cylinder, then the next cylinder (head-first).
    Cylinder,
    /// As `cylinder`, but every other cylinder of a zone runs from the last head to head 0.
    Serpentine,
    /// As `serpentine`, with the direction given by the parity of the absolute cylinder number.
    SerpentineAbsolute,
    /// Seek-first in bands: each surface of a band is read inward; surfaces in the order 0, 1, 2…
    Ff,
    /// Seek-first: surfaces 0, 1, 2… of every band are read alternately inward and outward.
    Af,
    /// Seek-first: every surface is read inward; the order of surfaces reverses from band to band.
    Fa,
    /// Seek-first: alternately inward and outward, beginning inward in every band; the order of surfaces reverses from band to
    /// band.
    Aa,
    /// Read off a real drive: `[geometry.extents]`.
    Extents,
}

/// Where spare sectors lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sparing {
    /// No spares.
    #[default]
    None,
    /// `spares` whole tracks at the end of each zone; slips and remaps are track indices.
    TracksPerZone,
    /// `spares` sectors at the end of each track.
    SectorsPerTrack,
    /// `spares` sectors at the end of each cylinder.
    SectorsPerCylinder,
    /// `spares` sectors at the front of each cylinder.
    SectorsPerCylinderFront,
    /// `spares` sectors at the end of each range of `range_cylinders` cylinders; an incomplete last range has none.
    SectorsPerRange,
    /// `spares` sectors at the end of each zone.
    SectorsPerZone,
    /// `spares` sectors at the end of the disk (given for each zone that holds some). Implies `slip_to_end`.
    EndOfDisk,
}

/// `[geometry]`: surfaces, order of LBNs, spares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeometrySpec {
    /// Recorded surfaces, each with its head.
    #[schemars(range(min = 1, max = 255))]
    pub heads: u32,
    /// Cylinders, those without user data included.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub cylinders: u32,
    /// The order in which LBNs run over tracks.
    pub layout: Layout,
    /// Where spare sectors lie.
    #[serde(default)]
    pub sparing: Sparing,
    /// Whether a slip shifts all later blocks of its zone, so that the spares of its own region stay free.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub slip_to_end: bool,
    /// Cylinders in a range, for `sectors-per-range`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub range_cylinders: Option<u32>,
    /// Zones of the layouts `cylinder` and `serpentine…`, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Zone>,
    /// Zones of the seek-first layouts `ff`, `af`, `fa`, `aa`, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub band_zones: Vec<BandZone>,
    /// The layout `extents`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extents: Option<Extents>,
}

/// A run of cylinders with one number of sectors a track.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// First cylinder of the zone.
    pub first_cylinder: u32,
    /// Last cylinder of the zone, included.
    pub last_cylinder: u32,
    /// Sectors of `sector_bytes` on each track, whatever `physical_sector_bytes` says.
    #[schemars(range(min = 1, max = 65_535), extend("x-unit" = "sectors"))]
    pub sectors_per_track: u32,
    /// Angle from the index to the zone's first sector.
    #[serde(default)]
    pub first_sector_offset_sectors: f64,
    /// Skew from one track to the next on a cylinder.
    pub track_skew_sectors: f64,
    /// Skew from the last track of a cylinder to the first of the next.
    pub cylinder_skew_sectors: f64,
    /// Good sectors at the front of the zone, in addition to spares, that hold no LBN.
    #[serde(default)]
    pub front_gap_sectors: u32,
    /// Spares of each region of the zone (see `sparing`).
    #[serde(default)]
    pub spares: u32,
    /// Slipped places, as sector indices (track indices for `tracks-per-zone`) from the start of the zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<u64>,
    /// Remapped places: pairs of the defect and its spare, indices as in `slips`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaps: Vec<(u64, u64)>,
}

/// A run of cylinders of a seek-first layout, in bands of tracks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BandZone {
    /// First cylinder of the zone.
    pub first_cylinder: u32,
    /// Last cylinder of the zone, included.
    pub last_cylinder: u32,
    /// Tracks of one surface in a band; the last band of a zone may be shorter.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub band_tracks: u32,
    /// Sectors of `sector_bytes` per track, whatever `physical_sector_bytes` says; one entry per head, or a single entry for all.
    #[schemars(inner(range(min = 1, max = 65_535)), extend("x-unit" = "sectors"))]
    pub sectors_per_track: Vec<u32>,
    /// Skew from a track to the next on the same surface.
    #[schemars(range(min = -1.0, max = 1.0))]
    pub track_skew_turns: f64,
    /// Skew at a change of surface; a band that begins on the surface where the last one ended has the track skew.
    #[schemars(range(min = -1.0, max = 1.0))]
    pub head_skew_turns: f64,
    /// Angle of the zone's first sector.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub first_sector_offset_turns: f64,
    /// Spare sectors at the end of the zone.
    #[serde(default)]
    pub spares: u32,
    /// Slipped sectors, as indices in LBN order from the start of the zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<u64>,
}
