//! The spindle: time to angle and back, exact for as long as [`Instant`] lasts.
//!
//! The angle follows from the speed: a period rounded to nanoseconds would move a 7,200 rpm platter by 0.41 revolutions a day.

use crate::{Angle, Instant, Nanos};

/// A platter stack turning at constant speed, at angle 0 at time 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spindle {
    /// Revolutions per nanosecond in units of 2⁻⁹⁶: the high and the low 64 bits.
    turns_high: u64,
    turns_low: u64,
    /// Time of a revolution in 2⁻²⁴ ns.
    period_fixed: u64,
}

impl Spindle {
    /// A spindle of `micro_rpm` millionths of a revolution per minute. The speed is stored exactly to 10⁻⁶ rpm.
    pub fn from_micro_rpm(micro_rpm: u64) -> Spindle {
        assert!(micro_rpm > 0, "a spindle turns");
        // One revolution per minute is 1 / 6e10 revolutions per nanosecond; a millionth of that is 1 / 6e16.
        const NANOS_TIMES_MICRO: u128 = 60_000_000_000 * 1_000_000;
        let (speed, mut rest, mut fixed) = (u128::from(micro_rpm), 0u128, 0u128);
        // Long division of speed · 2⁹⁶ by 6e16, 32 bits at a time, so that it fits.
        for shift in [96, 64, 32, 0] {
            let digit = if shift == 96 { speed } else { 0 };
            let value = (rest << 32) + digit;
            fixed = (fixed << 32) + value / NANOS_TIMES_MICRO;
            rest = value % NANOS_TIMES_MICRO;
        }
        let period_fixed = (NANOS_TIMES_MICRO << 24) / speed;
        Spindle {
            turns_high: (fixed >> 64) as u64,
            turns_low: fixed as u64,
            period_fixed: u64::try_from(period_fixed).expect("a turn takes less than 18 minutes"),
        }
    }

    /// A spindle of `rpm` revolutions per minute, rounded to 10⁻⁶ rpm.
    pub fn from_rpm(rpm: f64) -> Spindle {
        Spindle::from_micro_rpm((rpm * 1e6).round() as u64)
    }

    /// The angle under the heads at `now`.
    #[inline]
    pub fn angle_at(&self, now: Instant) -> Angle {
        let low = (u128::from(now.0) * u128::from(self.turns_low)) >> 64;
        Angle((now.0.wrapping_mul(self.turns_high) as u32).wrapping_add(low as u32))
    }

    /// The time in which the platter rotates by `angle`, rounded down.
    ///
    /// Rounding down keeps a computed arrival at or before the sector it waits for, so that no rounding costs a revolution.
    #[inline]
    pub fn time_of(&self, angle: Angle) -> Nanos {
        Nanos(((u128::from(angle.0) * u128::from(self.period_fixed)) >> 56) as u64)
    }

    /// The time in which the platter rotates by `units` of 2⁻³² revolutions, whole revolutions included, rounded down.
    #[inline]
    pub fn time_of_units(&self, units: u64) -> Nanos {
        Nanos(((u128::from(units) * u128::from(self.period_fixed)) >> 56) as u64)
    }

    /// The time of one revolution, rounded down.
    #[inline]
    pub fn period(&self) -> Nanos {
        Nanos(self.period_fixed >> 24)
    }

    /// The time from `now` until `target` passes under the heads: less than one revolution.
    ///
    /// A head that is past the target by no more than the time's own resolution (2 ns) is on time: times are whole nanoseconds,
    /// and a rounding must not cost a revolution.
    #[inline]
    pub fn wait(&self, now: Instant, target: Angle) -> Nanos {
        let ahead = target - self.angle_at(now);
        let behind = u64::from(ahead.0.wrapping_neg()) * self.period_fixed.div_ceil(1 << 24);
        if behind <= 2 << 32 { Nanos::ZERO } else { self.time_of(ahead) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spindle_angle_stays_exact_for_years() {
        // 7,200 rpm is 120 revolutions a second: after any multiple of 1/120 s · 3 = 25 ms the platter is at 0 again.
        let spindle = Spindle::from_rpm(7200.0);
        for quarter_seconds in [1u64, 4, 345_600, 3_600 * 24 * 365 * 4 * 50] {
            let angle = spindle.angle_at(Instant(quarter_seconds * 250_000_000));
            let off = angle.0.min(angle.0.wrapping_neg());
            assert!(off <= 1, "{quarter_seconds} quarter seconds: off by {off} of 2^32");
        }
    }

    #[test]
    fn spindle_wait_ends_at_the_target_angle() {
        let spindle = Spindle::from_rpm(10_025.0);
        let mut now = 1_234_567u64;
        for step in 0..10_000u64 {
            now = now.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step) >> 8;
            let target = Angle((now >> 7) as u32);
            let arrival = Instant(now) + spindle.wait(Instant(now), target);
            let left = target - spindle.angle_at(arrival);
            let nearest = left.0.min(left.0.wrapping_neg());
            assert!(spindle.time_of(Angle(nearest)) <= Nanos(2), "{left:?} left at {arrival:?}");
        }
    }

    #[test]
    fn turn_period_is_60_seconds_over_rpm() {
        assert_eq!(Spindle::from_rpm(6000.0).period(), Nanos(10_000_000));
        assert_eq!(Spindle::from_rpm(7200.0).period(), Nanos(8_333_333));
        let spindle = Spindle::from_rpm(6000.0);
        assert_eq!(spindle.time_of(Angle(1 << 31)), Nanos(5_000_000));
        assert_eq!(spindle.time_of_units(3 << 32), Nanos(30_000_000));
    }
}
