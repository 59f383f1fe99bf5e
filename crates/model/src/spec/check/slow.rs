//! Checks of the keys of drives that fail slowly.

use super::{Checked, within};
use crate::spec::slow::TIME_MAX_S;
use crate::spec::{Fault, MechanicsSpec, RULES, SlowPatternSpec, SlowPeriodSpec, StallSpec};

/// Checks what the ranges of single keys leave open.
pub(super) fn slow(spec: &MechanicsSpec, heads: u32, sectors: u64) -> Checked {
    for (number, period) in spec.slow_periods.iter().enumerate() {
        period.check_relations(&format!("mechanics.slow_periods[{number}]."), heads, sectors)?;
    }
    Ok(())
}

impl SlowPeriodSpec {
    /// Checks the ranges for a drive with this number of heads and blocks. `path` is the prefix of the keys in errors.
    ///
    /// *Errors:* the first value outside its range.
    pub fn check(&self, path: &str, heads: u32, sectors: u64) -> Checked {
        RULES.check(self, path)?;
        self.check_relations(path, heads, sectors)
    }

    fn check_relations(&self, path: &str, heads: u32, sectors: u64) -> Checked {
        let key = |name: &str| format!("{path}{name}");
        let length = self.length_s.unwrap_or(TIME_MAX_S);
        match self.every_s {
            Some(every) if self.length_s.is_none() => {
                let message = format!("{every} needs a `length_s` below it: the first period never ends");
                return Err(Fault::new(key("every_s"), message));
            }
            Some(every) => within(&key("every_s"), every, length, TIME_MAX_S, "s")?,
            None => {}
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
        let losses = [self.delay_ms, self.delay_mean_ms, self.factor];
        if losses.iter().flatten().count() == 1 {
            return Ok(());
        }
        let message = "give one of `delay_ms`, `delay_mean_ms` and `factor`";
        Err(Fault::new(format!("{path}delay_ms"), message))
    }
}

impl StallSpec {
    /// Checks the ranges. `path` is the prefix of the keys in errors.
    ///
    /// *Errors:* the first value outside its range.
    pub fn check(&self, path: &str) -> Checked {
        RULES.check(self, path)
    }
}

impl SlowPatternSpec {
    /// Checks the range of `from_s`. `path` is the prefix of the key in the error.
    ///
    /// *Errors:* `from_s` is outside its range.
    pub fn check(&self, path: &str) -> Checked {
        RULES.check(self, path)
    }
}
