//! Keys of drives that fail slowly: `[[mechanics.slow_periods]]`, `[[mechanics.stalls]]` and `[[mechanics.slow_patterns]]`.

use super::with_defaults::with_defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most time that an access loses, and the longest mean of a stall: an hour.
const LOSS_MAX_MS: f64 = 3_600_000.0;
pub(super) const TIME_MAX_S: f64 = 1e9;

with_defaults! {
    /// A period in which a share of the drive's accesses loses time, in whole revolutions: a time is rounded up, and those of a factor are
    /// drawn so that their mean is right. Where periods overlap, an access can be late in each of them. Give one of `delay_ms`,
    /// `delay_mean_ms` and `factor`.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct SlowPeriodSpec {
        /// When it begins, in simulated time.
        #[schemars(range(min = 0.0, max = TIME_MAX_S))]
        pub from_s: f64,
        /// How long it lasts. Default: to the end of the run.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.001, max = TIME_MAX_S))]
        pub length_s: Option<f64>,
        /// Time from the start of a period to the start of the next of the same kind. Default: there is one only.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub every_s: Option<f64>,
        /// Time from the start of the period in which the share of late accesses grows evenly from 0 to `share`. Default: it does not grow.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.001, max = TIME_MAX_S))]
        pub grows_over_s: Option<f64>,
        /// Share of the accesses that lose time, from 0 to 1.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub share: f64 = 1.0,
        /// First block of the slow region. Only accesses that touch the region lose time. Default: 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub start_lbn: Option<u64>,
        /// Block after the last one of the slow region. Default: the end of the drive.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub end_lbn: Option<u64>,
        /// The slow head: only accesses that begin on its surface lose time. Default: all heads.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub head: Option<u32>,
        /// The time that a late access loses.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = LOSS_MAX_MS))]
        pub delay_ms: Option<f64>,
        /// Mean of the times that late accesses lose. They are distributed exponentially.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.001, max = LOSS_MAX_MS))]
        pub delay_mean_ms: Option<f64>,
        /// How many times as long as usual a late access takes, from the start of its seek to the end of its transfer.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1.0, max = 10_000.0))]
        pub factor: Option<f64>,
    }
}

/// Times in which the drive begins no access to its media. It still answers from its cache. An access that has begun is not interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StallSpec {
    /// When stalls begin to occur, in simulated time.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = TIME_MAX_S))]
    pub from_s: f64,
    /// How long they occur. Default: to the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = TIME_MAX_S))]
    pub length_s: Option<f64>,
    /// Mean time from the end of a stall to the start of the next. The times are distributed exponentially.
    #[schemars(range(min = 0.1, max = TIME_MAX_S))]
    pub mean_gap_s: f64,
    /// Mean length of a stall. Lengths are distributed exponentially.
    #[schemars(range(min = 0.001, max = LOSS_MAX_MS))]
    pub mean_stall_ms: f64,
}

/// A pattern of slowness of drives in the field, from `from_s` on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowPatternSpec {
    /// Which pattern.
    pub name: SlowPattern,
    /// When it begins, in simulated time.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = TIME_MAX_S))]
    pub from_s: f64,
}

/// The patterns. Where a figure has no source it says `assumption`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowPattern {
    /// Every access takes twice as long for an hour, 0.2 % of the hours: so often a disk was more than twice as slow as its peers in a
    /// RAID group (Hao and others, FAST 2016, 857 million hours of disks). Assumption: an hour at a time, exactly twice.
    SlowHours,
    /// Reads of 128 KiB get 100 KB/s, as on a disk that vibrates (Gunawi and others, ;login: summer 2018). Assumption: each access loses
    /// a time that is distributed exponentially, with a mean of 1.3 s.
    Vibration,
    /// Over a week the share of accesses with retries grows from 0 to 5 %, and each of them loses 200 ms in the mean (assumption).
    Wear,
}

impl SlowPatternSpec {
    /// The pattern as slow periods.
    pub fn periods(&self) -> Vec<SlowPeriodSpec> {
        const HOUR: f64 = 3600.0;
        let always = SlowPeriodSpec { from_s: self.from_s, ..SlowPeriodSpec::default() };
        let period = match self.name {
            SlowPattern::SlowHours => SlowPeriodSpec {
                length_s: Some(HOUR),
                every_s: Some(HOUR / 0.002),
                factor: Some(2.0),
                ..always
            },
            SlowPattern::Vibration => SlowPeriodSpec { delay_mean_ms: Some(1300.0), ..always },
            SlowPattern::Wear => SlowPeriodSpec {
                grows_over_s: Some(7.0 * 24.0 * HOUR),
                share: 0.05,
                delay_mean_ms: Some(200.0),
                ..always
            },
        };
        vec![period]
    }
}
