//! Two arms on one spindle: a seek of one arm shakes the drive, so that the other arm settles later.
//!
//! Modelled: of two seeks that overlap in time, the one that is planned later takes longer by a share of the overlap; of two that are
//! planned at the same time, neither. It includes the seeks of reads that miss the cache, of writes and of destages. An order predicts
//! the seek without it, because the drive cannot know what its other arm will do.
//! Not modelled: errors of the head's position during a transfer; seeks of read-ahead, from one track to the next of an access, and of
//! drives without a buffer.
//!
//! *Source:* assumption; no data sheet gives a number, so that the share is 0 by default.

use headstack_model::{Instant, Nanos};
use std::ops::Range;

/// The seeks of the other arms of a disk, as one arm knows them.
#[derive(Debug)]
pub(crate) struct Interference {
    /// Share of an overlap, in 2⁻³².
    share: u64,
    /// The last seek of this arm.
    own: Range<Instant>,
    /// The last seek of each other arm, by the number of its device.
    others: Vec<(u32, Range<Instant>)>,
}

impl Interference {
    pub(crate) fn new(ratio: f64) -> Interference {
        let share = (ratio * (1u64 << 32) as f64).round() as u64;
        Interference { share, own: Instant::ZERO..Instant::ZERO, others: Vec::new() }
    }

    pub(crate) fn observe(&mut self, device: u32, seek: Range<Instant>) {
        match self.others.iter_mut().find(|(other, _)| *other == device) {
            Some((_, known)) => *known = seek,
            None => self.others.push((device, seek)),
        }
    }

    pub(crate) fn own_seek(&self) -> Range<Instant> {
        self.own.clone()
    }

    /// By how much a seek from `begins` on, which takes `seek` without the other arms, takes longer. Records the seek.
    pub(crate) fn delay(&mut self, begins: Instant, seek: Nanos) -> Nanos {
        let ends = begins + seek;
        let overlap = |other: &Range<Instant>| ends.min(other.end).since(begins.max(other.start)).0;
        let shared: u64 = self.others.iter().map(|(_, other)| overlap(other)).sum();
        let delay = Nanos(((u128::from(shared) * u128::from(self.share)) >> 32) as u64);
        self.own = begins..ends + delay;
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The delay of a seek of 500 ns at 1,000 ns, with the begin and end of a seek of each other arm.
    fn delay(ratio: f64, others: &[(u64, u64)]) -> Nanos {
        let mut arm = Interference::new(ratio);
        for (device, (begin, end)) in others.iter().enumerate() {
            arm.observe(device as u32, Instant(*begin)..Instant(*end));
        }
        let delay = arm.delay(Instant(1000), Nanos(500));
        assert_eq!(arm.own_seek(), Instant(1000)..Instant(1500) + delay);
        delay
    }

    #[test]
    fn seek_is_delayed_by_the_share_of_its_overlap_with_other_seeks() {
        assert_eq!(delay(0.5, &[(0, 1200)]), Nanos(100));
        assert_eq!(delay(0.5, &[(1200, 9000)]), Nanos(150));
        assert_eq!(delay(0.5, &[(900, 9000)]), Nanos(250));
        assert_eq!(delay(1.0, &[(0, 1200), (1400, 1500)]), Nanos(300));
    }

    #[test]
    fn seek_without_overlap_or_with_a_ratio_of_zero_is_not_delayed() {
        assert_eq!(delay(1.0, &[]), Nanos::ZERO);
        assert_eq!(delay(1.0, &[(0, 1000), (1500, 9000)]), Nanos::ZERO);
        assert_eq!(delay(0.0, &[(0, 9000)]), Nanos::ZERO);
    }

    #[test]
    fn only_the_last_seek_of_another_arm_counts() {
        let mut arm = Interference::new(1.0);
        arm.observe(3, Instant(0)..Instant(5000));
        arm.observe(3, Instant(5000)..Instant(6000));
        assert_eq!(arm.delay(Instant(1000), Nanos(500)), Nanos::ZERO);
    }
}
