//! Exact integer arithmetic for look-ups: division by a constant and fractions of a revolution, without a divide instruction.

use crate::Angle;

#[derive(Clone, Copy, Debug)]
pub(super) struct Divisor {
    value: u64,
    /// ⌊(2⁶⁴ − 1) / value⌋.
    reciprocal: u64,
}

impl Divisor {
    pub(super) fn new(value: u64) -> Divisor {
        Divisor { value, reciprocal: u64::MAX / value }
    }

    #[inline]
    pub(super) fn value(self) -> u64 {
        self.value
    }

    #[inline]
    pub(super) fn divide(self, n: u64) -> (u64, u64) {
        let quotient = ((u128::from(n) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = n - quotient * self.value;
        // The reciprocal is too small by less than 2⁻⁶⁴ of itself a unit of `n`: the quotient lacks one at most.
        if rest >= self.value { (quotient + 1, rest - self.value) } else { (quotient, rest) }
    }
}

/// A fraction of a revolution in units of 2⁻⁶⁴, so that sums over a million tracks stay below a unit of [`Angle`]. Sums wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Turns(pub(super) u64);

impl Turns {
    /// The angle of `sectors` sectors of a track of `sectors_per_track`, modulo a revolution.
    pub(super) fn of_sectors(sectors: f64, sectors_per_track: u32) -> Turns {
        let spt = f64::from(sectors_per_track);
        let sectors = sectors.rem_euclid(spt);
        let whole = ((sectors.floor() as u128) << 64) / u128::from(sectors_per_track);
        // Whole sectors are exact; only the part of one passes through a float.
        Turns((whole as u64).wrapping_add(Turns::of_turns(sectors.fract() / spt).0))
    }

    /// A number of revolutions, modulo one.
    pub(super) fn of_turns(turns: f64) -> Turns {
        Turns((turns.rem_euclid(1.0) * 18_446_744_073_709_551_616.0) as u64)
    }

    #[inline]
    pub(super) fn plus(self, other: Turns) -> Turns {
        Turns(self.0.wrapping_add(other.0))
    }

    #[inline]
    pub(super) fn times(self, count: u64) -> Turns {
        Turns(self.0.wrapping_mul(count))
    }

    #[inline]
    pub(super) fn angle(self) -> Angle {
        Angle((self.0.wrapping_add(1 << 31) >> 32) as u32)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SectorWidth(u64);

impl SectorWidth {
    pub(super) fn new(sectors_per_track: u32) -> SectorWidth {
        // Rounded up, so that sector starts come out as those of `Angle::of_sector`: exact below 65,536 sectors a
        // track, as the excess of s · 2⁻³² units stays below the distance to the next whole unit, 1 / spt.
        SectorWidth((u64::MAX / u64::from(sectors_per_track)).saturating_add(1))
    }

    /// The width for a number of sectors that is already a divisor.
    #[inline]
    pub(super) fn for_sectors(sectors_per_track: Divisor) -> SectorWidth {
        SectorWidth(sectors_per_track.reciprocal.saturating_add(1))
    }

    /// The start of sector `sector` from the start of its track, rounded down to the unit.
    #[inline]
    pub(super) fn start(self, sector: u32) -> Angle {
        Angle((u64::from(sector).wrapping_mul(self.0) >> 32) as u32)
    }

    /// The width in 2⁻⁶⁴ of a revolution, rounded down.
    #[inline]
    pub(super) fn floor(self) -> u64 {
        // That of a track of one sector was not rounded up, as it would not fit.
        self.0 - u64::from(self.0 != u64::MAX)
    }

    #[inline]
    pub(super) fn turns(self) -> Turns {
        Turns(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divisor_matches_processor_division(n in any::<u64>(), d in 1..=u64::MAX, small in 1u64..5000) {
            for d in [d, small, 1] {
                prop_assert_eq!(Divisor::new(d).divide(n), (n / d, n % d));
            }
        }

        #[test]
        fn sector_starts_are_exact(spt in 1u32..65_536, pick in any::<u32>()) {
            for sector in [pick % spt, 0, spt - 1] {
                prop_assert_eq!(SectorWidth::new(spt).start(sector), Angle::of_sector(sector, spt));
            }
            prop_assert_eq!(SectorWidth::new(spt).floor(), u64::MAX / u64::from(spt));
            prop_assert_eq!(SectorWidth::for_sectors(Divisor::new(u64::from(spt))).0, SectorWidth::new(spt).0);
        }
    }

    #[test]
    fn sectors_of_a_track_sum_to_one_turn() {
        for spt in [3u32, 7, 334, 1170] {
            let third = Turns::of_sectors(1.0, spt).times(u64::from(spt)).angle();
            assert_eq!(third, Angle(0), "{spt}");
            assert_eq!(Turns::of_sectors(-1.0, spt).plus(Turns::of_sectors(1.0, spt)).angle(), Angle(0));
        }
        assert_eq!(Turns::of_turns(-0.25).angle(), Angle(3 << 30));
    }
}
