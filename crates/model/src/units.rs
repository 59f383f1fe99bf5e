//! The units of the model: point in time, span of time, block and angle. Each is a type, so that they cannot be confused.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in time.
///
/// *Units:* nanoseconds since the start of the run; the range is 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Instant = Instant(0);
    /// Later than anything that happens.
    pub const MAX: Instant = Instant(u64::MAX);

    /// `ms` milliseconds after the start, rounded to the nearest nanosecond. Negative values become the start.
    pub fn from_ms(ms: f64) -> Instant {
        Instant::ZERO + Nanos::from_ms(ms)
    }

    /// `seconds` whole seconds after the start.
    pub const fn from_secs(seconds: u64) -> Instant {
        Instant(Nanos::from_secs(seconds).0)
    }

    /// Milliseconds since the start.
    pub fn as_ms(self) -> f64 {
        self.since_start().as_ms()
    }

    /// Seconds since the start.
    pub fn as_secs(self) -> f64 {
        self.since_start().as_secs()
    }

    /// The span from the start of the run to here.
    pub fn since_start(self) -> Nanos {
        Nanos(self.0)
    }

    /// The span from `earlier` to here, or zero when `earlier` is later.
    pub fn since(self, earlier: Instant) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// The point that is `span` later, at most [`Instant::MAX`].
    pub fn saturating_add(self, span: Nanos) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }

    /// The point that is `span` earlier, at the earliest the start of the run.
    pub fn saturating_sub(self, span: Nanos) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }
}

impl Add<Nanos> for Instant {
    type Output = Instant;
    fn add(self, span: Nanos) -> Instant {
        Instant(self.0 + span.0)
    }
}

impl AddAssign<Nanos> for Instant {
    fn add_assign(&mut self, span: Nanos) {
        self.0 += span.0;
    }
}

impl Sub for Instant {
    type Output = Nanos;
    fn sub(self, earlier: Instant) -> Nanos {
        Nanos(self.0 - earlier.0)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.since_start().fmt(f)
    }
}

/// A span of time, between two [`Instant`]s or as a parameter gives it.
///
/// *Units:* nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The empty span.
    pub const ZERO: Nanos = Nanos(0);
    /// Longer than anything takes.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// `ms` milliseconds, rounded to the nearest nanosecond. Negative values become zero.
    pub fn from_ms(ms: f64) -> Nanos {
        Nanos((ms * 1e6).round() as u64)
    }

    /// `us` microseconds, rounded to the nearest nanosecond. Negative values become zero.
    pub fn from_us(us: f64) -> Nanos {
        Nanos((us * 1e3).round() as u64)
    }

    /// `seconds` whole seconds.
    pub const fn from_secs(seconds: u64) -> Nanos {
        Nanos(seconds * 1_000_000_000)
    }

    /// This span in milliseconds.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// This span in microseconds.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// This span in seconds.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The sum of both spans, at most [`Nanos::MAX`].
    pub fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }

    /// This span without `other`, or zero when `other` is longer.
    pub fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.as_ms())
    }
}

/// The logical number of a block: what the host addresses.
///
/// *Units:* the drive's logical sectors (`sector_bytes`, usually 512).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lbn(pub u64);

impl Add<u64> for Lbn {
    type Output = Lbn;
    fn add(self, sectors: u64) -> Lbn {
        Lbn(self.0 + sectors)
    }
}

impl Sub<Lbn> for Lbn {
    type Output = u64;
    fn sub(self, other: Lbn) -> u64 {
        self.0 - other.0
    }
}

impl fmt::Display for Lbn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A wrapping fraction of a revolution of the platter.
///
/// *Units:* 2⁻³² of a revolution. All sums wrap, as the platter does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Angle(pub u32);

impl Angle {
    /// The angle nearest to a number of revolutions, modulo one.
    pub fn from_turns(turns: f64) -> Angle {
        Angle((turns.rem_euclid(1.0) * 4_294_967_296.0).round() as u64 as u32)
    }

    /// The start of sector `sector` on a track of `sectors_per_track`, rounded down to the unit.
    pub fn of_sector(sector: u32, sectors_per_track: u32) -> Angle {
        Angle(((u64::from(sector) << 32) / u64::from(sectors_per_track)) as u32)
    }

    /// This angle as a fraction of a revolution, in `0.0..1.0`.
    pub fn as_turns(self) -> f64 {
        f64::from(self.0) / 4_294_967_296.0
    }
}

impl Add for Angle {
    type Output = Angle;
    fn add(self, other: Angle) -> Angle {
        Angle(self.0.wrapping_add(other.0))
    }
}

impl Sub for Angle {
    type Output = Angle;
    fn sub(self, other: Angle) -> Angle {
        Angle(self.0.wrapping_sub(other.0))
    }
}
