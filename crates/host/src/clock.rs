//! The clock of a disk: real time, scaled by a speed.

use headstack_model::{Instant, Nanos};
use std::time::Duration;

/// Converts real time to disk time, which is zero when the clock is made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: std::time::Instant,
    /// Disk seconds in 1,000 real seconds.
    speed_per_mille: u32,
}

/// The last disk time, after 548 years; the clock then stops. The rest of the range is for what a model adds to a time.
const LAST: u64 = u64::MAX - (1 << 60);

impl Clock {
    /// Highest speed: a disk then runs for a month before its time ends.
    pub const FASTEST: f64 = 5000.0;

    /// A clock whose disks run `speed` times as fast as real time.
    ///
    /// *Errors:* a speed outside 0.001 to 5,000.
    pub fn new(speed: f64) -> Result<Clock, String> {
        if !(0.001..=Clock::FASTEST).contains(&speed) {
            let most = Clock::FASTEST;
            return Err(format!(
                "a speed of {speed} is outside 0.001 to {most} (with {most} a disk's time lasts for a month)"
            ));
        }
        #[allow(clippy::disallowed_methods, reason = "this is the clock")]
        let start = std::time::Instant::now();
        Ok(Clock { start, speed_per_mille: (speed * 1000.0).round() as u32 })
    }

    /// Disk time over real time.
    pub fn speed(&self) -> f64 {
        f64::from(self.speed_per_mille) / 1000.0
    }

    /// The disk time.
    #[inline]
    pub fn now(&self) -> Instant {
        self.time_at(self.start.elapsed())
    }

    /// The disk time at a real time since the clock was made.
    #[inline]
    fn time_at(&self, elapsed: Duration) -> Instant {
        (Instant::ZERO + self.disk(elapsed)).min(Instant(LAST))
    }

    /// Converts a real duration to disk time.
    #[inline]
    pub fn disk(&self, time: Duration) -> Nanos {
        let nanos = time.as_nanos() * u128::from(self.speed_per_mille) / 1000;
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The real time, which is zero when the clock is made.
    #[inline]
    pub fn real_now(&self) -> Instant {
        Instant(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Converts a disk time to real time.
    #[inline]
    pub fn real(&self, time: Nanos) -> Duration {
        let nanos = u128::from(time.0) * 1000 / u128::from(self.speed_per_mille);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_scales_inversely_with_speed() {
        let clock = Clock::new(10.0).expect("it is allowed");
        assert_eq!(clock.real(Nanos::from_ms(5.0)), Duration::from_micros(500));
        assert_eq!(Clock::new(0.5).expect("it is allowed").real(Nanos(1000)), Duration::from_micros(2));
        assert_eq!(clock.disk(Duration::from_micros(500)), Nanos::from_ms(5.0));
        assert!(clock.now() <= clock.now());
        assert!(Clock::new(0.0).is_err() && Clock::new(f64::NAN).is_err());
    }

    #[test]
    fn fastest_clock_runs_31_days_and_then_stops() {
        let day = Duration::from_secs(86_400);
        let clock = Clock::new(Clock::FASTEST).expect("it is allowed");
        assert_eq!(clock.time_at(31 * day), Instant::from_secs(31 * 86_400 * 5000));
        let [end, later] = [100, 100_000].map(|days| clock.time_at(days * day));
        assert_eq!(end, later, "time never goes back");
        assert!(end > clock.time_at(31 * day) && end + Nanos::from_secs(3600) < Instant::MAX);
        assert!(Clock::new(5000.1).is_err());
    }
}
