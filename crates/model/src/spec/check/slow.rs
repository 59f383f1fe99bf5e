//! Ranges of the keys of drives that fail slowly.

use super::{Checked, ms, within};
use crate::spec::{Fault, MechanicsSpec, SlowPatternSpec, SlowPeriodSpec, StallSpec};

/// The most time that an access loses, and the longest mean of a stall: an hour.
const LOSS_MAX_MS: f64 = 3_600_000.0;
const TIME_MAX_S: f64 = 1e9;

pub(super) fn slow(spec: &MechanicsSpec, heads: u32, sectors: u64) -> Checked {
    for (number, period) in spec.slow_periods.iter().enumerate() {
        period.check(&format!("mechanics.slow_periods[{number}]."), heads, sectors)?;
    }
    for (number, stall) in spec.stalls.iter().enumerate() {
        stall.check(&format!("mechanics.stalls[{number}]."))?;
    }
    for (number, pattern) in spec.slow_patterns.iter().enumerate() {
        pattern.check(&format!("mechanics.slow_patterns[{number}]."))?;
    }
    Ok(())
}

impl SlowPeriodSpec {
    /// Checks the ranges for a drive with this number of heads and blocks. `path` is the prefix of the keys in errors.
    ///
    /// *Errors:* the first value outside its range.
    pub fn check(&self, path: &str, heads: u32, sectors: u64) -> Checked {
        let key = |name: &str| format!("{path}{name}");
        within(&key("from_s"), self.from_s, 0.0, TIME_MAX_S, "s")?;
        within(&key("share"), self.share, 0.0, 1.0, "")?;
        let length = self.length_s.unwrap_or(TIME_MAX_S);
        within(&key("length_s"), length, 0.001, TIME_MAX_S, "s")?;
        match self.every_s {
            Some(every) if self.length_s.is_none() => {
                let message = format!("{every} needs a `length_s` below it: the first period never ends");
                return Err(Fault::new(key("every_s"), message));
            }
            Some(every) => within(&key("every_s"), every, length, TIME_MAX_S, "s")?,
            None => {}
        }
        if let Some(time) = self.grows_over_s {
            within(&key("grows_over_s"), time, 0.001, TIME_MAX_S, "s")?;
        }
        self.check_place(path, heads, sectors)?;
        self.check_loss(path)
    }

    fn check_place(&self, path: &str, heads: u32, sectors: u64) -> Checked {
        let key = |name: &str| format!("{path}{name}");
        if let Some(head) = self.head
            && head >= heads
        {
            let message = format!("the drive has no head {head}: its heads are 0 to {}", heads - 1);
            return Err(Fault::new(key("head"), message));
        }
        let (start, end) = (self.start_lbn.unwrap_or(0), self.end_lbn.unwrap_or(sectors));
        if end > sectors || start >= end {
            let name = if end > sectors || self.start_lbn.is_none() { "end_lbn" } else { "start_lbn" };
            let message = format!(
                "blocks {start} to {end} (not included): none, or outside the drive's 0 to {sectors}"
            );
            return Err(Fault::new(key(name), message));
        }
        Ok(())
    }

    fn check_loss(&self, path: &str) -> Checked {
        let key = |name: &str| format!("{path}{name}");
        match (self.delay_ms, self.delay_mean_ms, self.factor) {
            (Some(delay), None, None) => ms(&key("delay_ms"), delay, LOSS_MAX_MS),
            (None, Some(mean), None) => within(&key("delay_mean_ms"), mean, 0.001, LOSS_MAX_MS, "ms"),
            (None, None, Some(factor)) => within(&key("factor"), factor, 1.0, 10_000.0, ""),
            _ => Err(Fault::new(key("delay_ms"), "give one of `delay_ms`, `delay_mean_ms` and `factor`")),
        }
    }
}

impl StallSpec {
    /// Checks the ranges. `path` is the prefix of the keys in errors.
    ///
    /// *Errors:* the first value outside its range.
    pub fn check(&self, path: &str) -> Checked {
        let key = |name: &str| format!("{path}{name}");
        within(&key("from_s"), self.from_s, 0.0, TIME_MAX_S, "s")?;
        within(&key("length_s"), self.length_s.unwrap_or(TIME_MAX_S), 0.001, TIME_MAX_S, "s")?;
        within(&key("mean_gap_s"), self.mean_gap_s, 0.1, TIME_MAX_S, "s")?;
        within(&key("mean_stall_ms"), self.mean_stall_ms, 0.001, LOSS_MAX_MS, "ms")
    }
}

impl SlowPatternSpec {
    /// Checks the range of `from_s`. `path` is the prefix of the key in the error.
    ///
    /// *Errors:* `from_s` is outside its range.
    pub fn check(&self, path: &str) -> Checked {
        within(&format!("{path}from_s"), self.from_s, 0.0, TIME_MAX_S, "s")
    }
}
