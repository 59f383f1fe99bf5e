//! The values of distributions: times and numbers.

use headstack_model::Nanos;
use rand::{Rng, RngExt};

use super::{DistributionError, range};

/// The longest time that may be named: a hundred days.
const LONGEST: Nanos = Nanos::from_secs(100 * 86_400);

/// The largest number that may be named: whole numbers up to here are exact.
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// The units of times, the longest first, in nanoseconds.
const UNITS: [(&str, f64); 6] =
    [("h", 3.6e12), ("min", 6e10), ("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

/// A value that can be distributed: a time ([`Nanos`]) or a number (`f64`).
pub trait Quantity: Copy + PartialEq {
    /// No time, or 0.
    const ZERO: Self;
    /// Whether it may be a count of things.
    const COUNTS: bool;
    /// The expected kind of value, for errors.
    const WANTED: &'static str;
    /// As a plain number; times in nanoseconds.
    fn to_f64(self) -> f64;
    /// From a plain number: times are rounded to nanoseconds, and those out of range become the nearest in it.
    fn from_f64(value: f64) -> Self;
    /// Whether a plain number is valid; times are not negative.
    fn has(value: f64) -> bool;
    /// A value between two others.
    fn between(low: Self, high: Self, random: &mut impl Rng) -> Self;
    /// Parses a value; `None` if it is invalid.
    fn read(text: &str) -> Option<Self>;
    /// Writes a value, so that [`Quantity::read`] gives the same.
    fn text(self) -> String;
    /// Checks that the value is allowed in a distribution.
    ///
    /// *Errors:* it is not.
    fn check(self, name: &'static str) -> Result<(), DistributionError>;
}

impl Quantity for Nanos {
    const ZERO: Nanos = Nanos::ZERO;
    const COUNTS: bool = false;
    const WANTED: &'static str = "time (such as 20ms; units: ns, us, ms, s, min, h)";

    #[inline]
    fn to_f64(self) -> f64 {
        self.0 as f64
    }

    #[inline]
    fn from_f64(value: f64) -> Nanos {
        // As `round`, which is a call into a library on processors of the baseline.
        let whole = value as u64;
        Nanos(whole.saturating_add(u64::from(value - whole as f64 >= 0.5)))
    }

    fn has(value: f64) -> bool {
        value >= 0.0
    }

    #[inline]
    fn between(low: Nanos, high: Nanos, random: &mut impl Rng) -> Nanos {
        Nanos(random.random_range(low.0..=high.0))
    }

    fn read(text: &str) -> Option<Nanos> {
        let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
        let value = f64::read(number.trim())? * scale;
        (0.0..=LARGEST).contains(&value).then(|| Nanos::from_f64(value))
    }

    fn text(self) -> String {
        let fits = |scale: f64| self.0.is_multiple_of(scale as u64);
        let (unit, scale) = match self {
            Nanos::ZERO => ("ms", 1.0),
            _ => *UNITS.iter().skip(2).find(|(_, scale)| fits(*scale)).expect("nanoseconds are whole"),
        };
        format!("{}{unit}", self.0 / scale as u64)
    }

    fn check(self, name: &'static str) -> Result<(), DistributionError> {
        if self <= LONGEST { Ok(()) } else { range(name, "a time", self.text(), "up to a hundred days") }
    }
}

impl Quantity for f64 {
    const ZERO: f64 = 0.0;
    const COUNTS: bool = true;
    const WANTED: &'static str = "number";

    #[inline]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline]
    fn from_f64(value: f64) -> f64 {
        value
    }

    fn has(_: f64) -> bool {
        true
    }

    #[inline]
    fn between(low: f64, high: f64, random: &mut impl Rng) -> f64 {
        low + (high - low) * random.random::<f64>()
    }

    fn read(text: &str) -> Option<f64> {
        // The standard parser also accepts words: inf, nan.
        let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        text.parse().ok().filter(|value: &f64| plain && value.is_finite())
    }

    fn text(self) -> String {
        self.to_string()
    }

    fn check(self, name: &'static str) -> Result<(), DistributionError> {
        if self.abs() <= LARGEST {
            Ok(())
        } else {
            range(name, "a number", format!("{self:e}"), "-2^53 to 2^53")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_the_nearest_nanosecond() {
        for value in [
            -3.0,
            -0.4,
            0.0,
            0.499_999_999_999_999_94,
            0.5,
            1.5,
            2.5,
            1e6 + 0.49,
            4_503_599_627_370_497.0,
            1e30,
            f64::NAN,
        ] {
            assert_eq!(Nanos::from_f64(value), Nanos(value.round() as u64), "{value}");
        }
    }
}
