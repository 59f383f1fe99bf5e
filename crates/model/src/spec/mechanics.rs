//! Keys of `[mechanics]`.

use super::slow::{SlowPatternSpec, SlowPeriodSpec, StallSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sectors that the head may access before the first wanted one arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ZeroLatency {
    /// Nothing: sectors are accessed in ascending order.
    #[default]
    None,
    /// Any wanted sector of the track, when the whole request lies on one track; otherwise in order.
    WithinTrack,
    /// Any wanted sector of the track, for each track's part of the request.
    PerFragment,
}

/// `[mechanics]`: spindle, arm, heads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MechanicsSpec {
    /// Nominal spindle speed.
    #[schemars(range(min = 100.0, max = 100_000.0))]
    pub rpm: f64,
    /// How far the spindle really is from its nominal speed.
    #[serde(default)]
    #[schemars(range(min = -10.0, max = 10.0))]
    pub rpm_deviation_percent: f64,
    /// Time to change heads on a cylinder.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub head_switch_ms: f64,
    /// Added to a seek or head switch before a write. Negative where seek times were measured with reads, whose data appear only
    /// some time after the arm would have been ready for a write.
    #[serde(default)]
    #[schemars(range(min = -100.0, max = 100.0))]
    pub write_settle_ms: f64,
    /// Zero-latency access on reads.
    #[serde(default)]
    pub zero_latency_read: ZeroLatency,
    /// Zero-latency access on writes.
    #[serde(default)]
    pub zero_latency_write: ZeroLatency,
    /// Whether sectors of a track that hold no block pass in no time while a write waits there for its data, as in DiskSim. No
    /// drive does that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_skip_spares: bool,
    /// Time of every access, whatever its blocks: the disk of queueing models, without arm motion or rotation. Spindle speed and
    /// head switch then have no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub constant_access_ms: Option<f64>,
    /// Time of a seek over a distance; required unless there is a `constant_access_ms`.
    #[serde(default, skip_serializing_if = "SeekSpec::is_empty")]
    pub seek: SeekSpec,
    /// Servo recalibration; off when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalibration: Option<Recalibration>,
    /// Random retries; off when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Revolutions lost to retries and to the drive's own work, as a distribution; off when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_turns: Option<LostTurns>,
    /// Periods in which the drive is late, as one that fails slowly; none by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_periods: Vec<SlowPeriodSpec>,
    /// Times in which the drive begins no access; none by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<StallSpec>,
    /// Patterns of slowness that were observed in the field; none by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_patterns: Vec<SlowPatternSpec>,
}

/// `[mechanics.seek]`: a measured table, a curve in pieces, a table continued by a curve, the four-phase physical curve, or a
/// curve computed from a data sheet's figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeekSpec {
    /// Measured points: distance in cylinders, time in ms. Interpolated; beyond the last, `pieces` or the last slope.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points_cylinders_ms: Vec<(u32, f64)>,
    /// The same for writes, where they were measured apart (the write settle is then not added to a seek).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_points_cylinders_ms: Vec<(u32, f64)>,
    /// Square root plus linear, in pieces of rising distance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<SeekPiece>,
    /// Accelerate, coast, slow down, settle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical: Option<PhysicalSeek>,
    /// The data sheet's figures. The curve is computed from them, or checked against them where another form is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sheet: Option<SheetSeek>,
}

impl SeekSpec {
    fn is_empty(&self) -> bool {
        *self == SeekSpec::default()
    }

    /// The data sheet's figures, where the curve is computed from them because no other form is given.
    pub fn curve_of_sheet(&self) -> Option<&SheetSeek> {
        let is_alone =
            self.points_cylinders_ms.is_empty() && self.pieces.is_empty() && self.physical.is_none();
        self.sheet.as_ref().filter(|_| is_alone)
    }
}

/// One piece of a seek curve: `constant + sqrt · √d + linear · d`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeekPiece {
    /// Largest distance of the piece; the last piece has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_cylinders: Option<u32>,
    /// Constant term.
    #[schemars(range(min = -100.0, max = 1000.0))]
    pub constant_ms: f64,
    /// Factor of the square root of the distance.
    #[serde(default)]
    #[schemars(range(min = -100.0, max = 100.0))]
    pub sqrt_ms: f64,
    /// Factor of the distance.
    #[serde(default)]
    #[schemars(range(min = -100.0, max = 100.0))]
    pub linear_ms: f64,
}

/// The four-phase seek: constant acceleration, coast at the speed limit, equal deceleration, settle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhysicalSeek {
    /// Time of a seek to the next cylinder, settle included.
    pub single_cylinder_ms: f64,
    /// Time to settle on the track at the end of a seek.
    pub settle_ms: f64,
    /// Distance covered while speeding up to the limit (and again while slowing down).
    pub acceleration_cylinders: f64,
    /// Time of a seek over all cylinders, settle included.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub full_stroke_ms: f64,
}

/// The seek times of a data sheet, settle included. The simulator computes the seek curve between them, with the shape of measured
/// curves. The arm accelerates constantly up to its speed limit. The settling time grows with the distance up to some 200 tracks,
/// and is constant beyond.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SheetSeek {
    /// Time of a seek to the next track, for a read.
    pub single_track_ms: f64,
    /// Mean time of a seek between two different cylinders drawn at random, for a read.
    #[schemars(range(min = 0.0, max = 500.0))]
    pub average_ms: f64,
    /// Time of a seek over all cylinders, for a read. Default: computed from the average, about 1.8 times the average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub full_stroke_ms: Option<f64>,
    /// Settling time of the head after a long seek, for a read. Default: computed from `full_stroke_ms`, or without that, 0.27 of
    /// `average_ms`, the mean of three measured drives of 7,200 rpm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_ms: Option<f64>,
    /// Time of a seek to the next track, for a write; needs `write_average_ms`. Default: `single_track_ms` and a tenth of the
    /// difference between `write_average_ms` and `average_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_single_track_ms: Option<f64>,
    /// Mean time of a seek between two different cylinders drawn at random, for a write. It includes the write settle, which the
    /// simulator then does not add to seeks. Default: seeks for writes take the time of seeks for reads and the write settle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_average_ms: Option<f64>,
}

/// Servo recalibration, for which the servo occupies the arm at regular times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recalibration {
    /// Mean time between recalibrations; each gap is drawn uniformly within a tenth of it.
    #[schemars(range(min = 0.001, max = 1e6))]
    pub interval_s: f64,
    /// How long one keeps the arm.
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub duration_ms: f64,
}

/// Random retries: a media access misses and is repeated after one revolution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// Probability that an access needs another revolution (drawn again for each revolution).
    #[schemars(range(min = 0.0, max = 0.99))]
    pub probability: f64,
    /// Revolutions after which the retries end and the sector counts as read.
    #[schemars(range(min = 1, max = 10_000), extend("x-unit" = "turns"))]
    pub turns_max: u32,
}

/// Whole revolutions that accesses lose. A sector that cannot be read at first is read again a revolution later; the drive's own
/// work (servo, background scans, cooling of the head) also makes an access miss its sector. Accesses that continue where the last
/// one ended lose none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LostTurns {
    /// Pairs of revolutions and the share of accesses that lose that many or more. Between two pairs the share falls
    /// geometrically. No access loses fewer revolutions than the first pair's, or more than the last pair's.
    pub turns_shares: Vec<(u32, f64)>,
    /// Whether only commands that find the drive idle (no other command outstanding) lose revolutions: to work that the drive does
    /// when it has no commands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_idle_only: bool,
}

impl LostTurns {
    /// Share of accesses that lose `turns` or more.
    pub fn share_of(&self, turns: u32) -> f64 {
        let points = &self.turns_shares;
        let after = points.partition_point(|(at, _)| *at < turns);
        match (after, points.get(after)) {
            (_, None) => 0.0,
            (0, Some((_, share))) => *share,
            (after, Some((to, to_share))) => {
                let (from, from_share) = points[after - 1];
                let way = f64::from(turns - from) / f64::from(to - from);
                from_share * (to_share / from_share).powf(way)
            }
        }
    }
}
