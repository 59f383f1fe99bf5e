//! Keys of `[queue.duration_limits]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[queue.duration_limits]`: command duration limits, as ATA and SCSI have them. A command names one of up to seven limits of its
/// direction, numbered from 1; a command without a number has none. NCQ priority excludes them: with `urgent_first` they are off.
///
/// The drive multiplies the positioning time of a limited command by a weight that falls from 1 to 0.3 as its limit runs out. It prefers
/// that command if the product is below the positioning time of the command that `order` chooses, as long as `performance_percent`
/// allows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DurationLimits {
    /// Share of its time that the drive may lose by preferring limited commands, as the standards' *performance versus command
    /// duration guidelines*. With 0 it prefers one only where that costs nothing, or once its limit is exceeded.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub performance_percent: f64,
    /// The limits of reads, number 1 first.
    #[schemars(length(max = DurationLimits::MOST))]
    pub reads: Vec<DurationLimit>,
    /// The limits of writes, number 1 first. They change nothing for writes that are done once their data are in the cache.
    #[schemars(length(max = DurationLimits::MOST))]
    pub writes: Vec<DurationLimit>,
}

/// One limit: times, counted from the command's arrival, and what the drive does with a command that exceeds one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DurationLimit {
    /// Longest time until the drive starts the command's access.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20.0, max = 655_350.0))]
    pub inactive_ms: Option<f64>,
    /// What follows when it is exceeded.
    pub inactive_policy: LimitPolicy,
    /// Longest time from the start of the access to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20.0, max = 655_350.0))]
    pub active_ms: Option<f64>,
    /// What follows when it is exceeded. The access has begun then: only `abort` makes a difference.
    pub active_policy: LimitPolicy,
    /// Time in which the command should be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20.0, max = 655_350.0))]
    pub guideline_ms: Option<f64>,
    /// What follows when it is exceeded.
    pub guideline_policy: LimitPolicy,
}

/// What a drive does with a command that exceeds a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitPolicy {
    /// It goes before all others.
    #[default]
    CompleteEarliest,
    /// From then on it is a command without a limit.
    Continue,
    /// It ends with an error when the drive next chooses a command, or at the end of its access. A write that ends so while it waits has
    /// written nothing; one that ends so after its access has written all.
    Abort,
}

impl DurationLimit {
    /// The time in which a command with this limit should end, as far as the limit says so.
    fn time_ms(&self) -> Option<f64> {
        let both = self.inactive_ms.map(|inactive| inactive + self.active_ms.unwrap_or(0.0));
        match (self.guideline_ms, both) {
            (Some(guideline), Some(both)) => Some(guideline.min(both)),
            (guideline, both) => guideline.or(both),
        }
    }

    fn may_abort(&self) -> bool {
        let times = [
            (self.inactive_ms, self.inactive_policy),
            (self.active_ms, self.active_policy),
            (self.guideline_ms, self.guideline_policy),
        ];
        times.iter().any(|(ms, policy)| ms.is_some() && *policy == LimitPolicy::Abort)
    }
}

impl DurationLimits {
    /// The limits of reads that abort no command, by their numbers, each with the time in which the command should end.
    pub fn reads_without_abort(&self) -> impl Iterator<Item = (u8, f64)> {
        let numbered = self.reads.iter().zip(1..).filter(|(limit, _)| !limit.may_abort());
        numbered.filter_map(|(limit, number)| Some((number, limit.time_ms()?)))
    }

    /// The most limits of a direction.
    pub const MOST: usize = 7;
}
