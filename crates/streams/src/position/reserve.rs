//! The reserve of time that the host leaves before a sector, so that an arm or a command that is a little late still meets it.
//!
//! A missed sector costs a turn; a sector that is not tried costs the difference to the next best. Only reads near the edge of the reserve
//! change it: a missed sector raises it by a step, a met one lowers it by an eighth of a step. So one in nine of these reads misses; there
//! another tenth of a millisecond costs about as much as the turns that it saves.
//!
//! *Source:* ours.

use headstack_model::Nanos;

/// Steps of the reserve in a turn.
const STEPS: u64 = 256;
/// Steps of the reserve at first: about the delay of a busy host.
const FIRST_STEPS: u64 = 4;
/// Largest reserve, in steps: an eighth of a turn.
const MOST_STEPS: u64 = 32;
/// A read counts up to this many steps beyond the reserve.
const NEAR_STEPS: u64 = 8;
/// A met sector lowers the reserve by this part of a step.
const PART: u64 = 8;

/// Time left before a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reserve {
    time: Nanos,
    step: Nanos,
}

impl Reserve {
    /// For a spindle with this period.
    pub(super) fn new(period: Nanos) -> Reserve {
        let step = Nanos(period.0 / STEPS);
        Reserve { time: Nanos(FIRST_STEPS * step.0), step }
    }

    pub(super) fn time(&self) -> Nanos {
        self.time
    }

    /// Learns from a read that was predicted to wait `wait` for its sector after the arm arrived: it came this many turns after its
    /// predicted time.
    pub(super) fn observe(&mut self, wait: Nanos, turns_late: i64) {
        let near = self.time + Nanos(NEAR_STEPS * self.step.0);
        let most = Nanos(MOST_STEPS * self.step.0);
        self.time = match turns_late {
            late if late < 0 => self.time.saturating_sub(self.step),
            _ if wait > near => self.time,
            0 => self.time.saturating_sub(Nanos(self.step.0 / PART)),
            _ => (self.time + self.step).min(most),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_settles_where_one_near_read_in_nine_is_missed() {
        // An arm that is up to 0.4 ms later than predicted.
        let mut reserve = Reserve::new(Nanos(8_333_333));
        let mut missed = 0;
        for read in 0..9_000u64 {
            let wait = reserve.time();
            let late = Nanos(read * 7_919 % 400_000);
            missed += u64::from(late > wait);
            reserve.observe(wait, i64::from(late > wait));
        }
        assert!((900..1_100).contains(&missed), "{missed} of 9000");
        assert!((280_000..400_000).contains(&reserve.time().0), "{}", reserve.time());
    }

    #[test]
    fn reads_far_from_the_edge_leave_the_reserve() {
        let mut reserve = Reserve::new(Nanos(8_333_333));
        let before = reserve;
        // Turns that a drive loses anyway.
        (0..100).for_each(|_| reserve.observe(Nanos(4_000_000), 1));
        assert_eq!(reserve, before);
        (0..100).for_each(|_| reserve.observe(Nanos(100_000), 1));
        assert_eq!(reserve.time(), Nanos(32 * (8_333_333 / 256)));
    }
}
