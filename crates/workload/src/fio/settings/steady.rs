//! When the results of a job are steady, so that it ends: `steadystate`.

use headstack_model::Nanos;

use crate::fio::value::{Given, Parsed, wrong};

/// What is to be steady.
#[derive(Clone, Copy, Debug)]
pub(in crate::fio) struct SteadyTarget {
    /// Whether it is about bytes a second instead of requests a second.
    pub(in crate::fio) by_bytes: bool,
    /// Whether the slope counts, and not the largest deviation from the mean.
    pub(in crate::fio) slope: bool,
    pub(in crate::fio) limit: f64,
    /// Whether the limit is in percent of the mean.
    pub(in crate::fio) percent: bool,
}

impl Default for SteadyTarget {
    /// fio's default, `iops_slope:0.01%`.
    fn default() -> SteadyTarget {
        SteadyTarget { by_bytes: false, slope: true, limit: 0.01, percent: true }
    }
}

impl SteadyTarget {
    /// `steadystate=iops:10%`, `steadystate=bw_slope:0.5`.
    pub(in crate::fio) fn read(given: &Given<'_>) -> Parsed<SteadyTarget> {
        let (word, limit) = given.head()?;
        let (by_bytes, slope) = word.word(&[
            ("iops", (false, false)),
            ("iops_slope", (false, true)),
            ("bw", (true, false)),
            ("bw_slope", (true, true)),
        ])?;
        let text = limit.map_or(Err("needs a limit, such as iops:10%".to_string()), |limit| limit.text())?;
        let number = text.strip_suffix('%').unwrap_or(text);
        match number.parse::<f64>() {
            Ok(limit) if limit.is_finite() && limit >= 0.0 => {
                Ok(SteadyTarget { by_bytes, slope, limit, percent: number != text })
            }
            _ => Err(wrong(text, "a limit such as 100 or 10%")),
        }
    }
}

/// `steadystate` and its time. It counts only with a duration.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fio) struct SteadyRules {
    pub(in crate::fio) target: SteadyTarget,
    /// Seconds over which the results have to be steady; 0 for no such end.
    pub(in crate::fio) seconds: u64,
    /// Time after the start of a clone that does not count.
    pub(in crate::fio) ramp: Nanos,
}

impl SteadyRules {
    /// `steadystate_duration=30s`: whole seconds.
    pub(in crate::fio) fn duration(given: &Given<'_>) -> Parsed<u64> {
        let seconds = given.time(Nanos::from_secs(1))?.0 / 1_000_000_000;
        match seconds {
            0 | 2..=86_400 => Ok(seconds),
            _ => Err(wrong(given.text()?, "2s to 1d, or 0")),
        }
    }
}
