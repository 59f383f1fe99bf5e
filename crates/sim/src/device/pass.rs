//! Consecutive sectors that pass under a head.

use super::drive::{Drive, track_of};
use headstack_model::{Extent, Instant, Lbn, Nanos, TrackPlace};

/// Consecutive sectors that pass under a head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pass {
    pub(crate) first: Lbn,
    pub(crate) sectors: u32,
    /// The run of blocks that the pass is part of.
    pub(crate) extent: Extent,
    pub(crate) on_track: Instant,
    /// When the first sector begins.
    pub(crate) begins: Instant,
    /// Length of a sector in 2⁻³² of a revolution, with 32 fractional bits: the fraction matters over a track.
    pub(super) width: u64,
}

impl Pass {
    #[inline]
    pub(crate) fn place(&self) -> TrackPlace {
        track_of(&self.extent)
    }

    /// Whether it takes any time; it takes none where every access has the same time.
    #[inline]
    pub(crate) fn takes_time(&self) -> bool {
        self.width > 0
    }

    pub(crate) fn sector(&self, drive: &Drive) -> Nanos {
        drive.mechanics.spindle().time_of_units(self.width >> 32).max(Nanos(1))
    }

    /// When `count` sectors of the pass have passed.
    #[inline]
    pub(crate) fn end_of(&self, drive: &Drive, count: u32) -> Instant {
        let units = (u128::from(count) * u128::from(self.width)) >> 32;
        self.begins + drive.mechanics.spindle().time_of_units(units as u64)
    }

    #[inline]
    pub(crate) fn end(&self, drive: &Drive) -> Instant {
        self.end_of(drive, self.sectors)
    }

    #[inline]
    pub(crate) fn end_lbn(&self) -> Lbn {
        self.first + u64::from(self.sectors)
    }

    /// The rest of the pass, from `lbn` (in it) up to `end`.
    pub(crate) fn part(&self, drive: &Drive, lbn: Lbn, end: Lbn) -> Pass {
        let skipped = (lbn - self.first) as u32;
        let sectors = (end.min(self.end_lbn()) - lbn) as u32;
        Pass { first: lbn, sectors, begins: self.end_of(drive, skipped), ..*self }
    }

    /// Sectors that have passed completely at `now`.
    pub(crate) fn gone_by(&self, drive: &Drive, now: Instant) -> u32 {
        self.gone_by_of(drive, now, self.end(drive))
    }

    /// The same, if the end of the pass `whole` is already known.
    #[inline]
    pub(crate) fn gone_by_of(&self, drive: &Drive, now: Instant, whole: Instant) -> u32 {
        if now <= self.begins {
            return 0;
        }
        if now >= whole {
            return self.sectors;
        }
        let (passed, total) = ((now - self.begins).0, (whole - self.begins).0);
        let wide = || (u128::from(passed) * u128::from(self.sectors) / u128::from(total)) as u64;
        let product = passed.checked_mul(u64::from(self.sectors));
        let mut count = product.map_or_else(wide, |product| product / total) as u32;
        while count < self.sectors && self.end_of(drive, count + 1) <= now {
            count += 1;
        }
        while count > 0 && self.end_of(drive, count) > now {
            count -= 1;
        }
        count
    }
}
