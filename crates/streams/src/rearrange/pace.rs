//! When the arranger may copy: while the disk is idle, for a share of the time, or at once.

use super::config::{CopyTime, RearrangeSpec};
use headstack_model::{Instant, Nanos};

#[derive(Clone, Copy, Debug)]
pub(super) struct CopyPace {
    when: CopyTime,
    idle: Nanos,
    /// Time without a copy after each copy, as a multiple of the copy's time.
    rest: f64,
    /// Requests that are not answered.
    requests: u32,
    /// When the last request was answered.
    last_answer: Instant,
    /// When the next copy may begin, with a share.
    rested: Instant,
}

impl CopyPace {
    pub(super) fn new(spec: &RearrangeSpec) -> CopyPace {
        let rest = (1.0 - spec.share) / spec.share;
        let (last_answer, rested) = (Instant::ZERO, Instant::ZERO);
        CopyPace { when: spec.when, idle: spec.idle(), rest, requests: 0, last_answer, rested }
    }

    /// Makes copies follow each other without a pause from now on, as when the region is dissolved.
    pub(super) fn hurry(&mut self) {
        self.when = CopyTime::AtOnce;
    }

    /// Whether the times of copies do not depend on requests.
    pub(super) fn ignores_requests(&self) -> bool {
        self.when != CopyTime::Idle
    }

    /// Requests that are not answered.
    pub(super) fn requests(&self) -> u32 {
        self.requests
    }

    pub(super) fn request_begins(&mut self) {
        self.requests += 1;
    }

    pub(super) fn request_ends(&mut self, now: Instant) {
        (self.requests, self.last_answer) = (self.requests - 1, now);
    }

    pub(super) fn copy_ends(&mut self, now: Instant, started: Instant) {
        self.rested = now.saturating_add(Nanos((now.since(started).0 as f64 * self.rest) as u64));
    }

    /// When the next copy may begin; [`Instant::MAX`] while a request must be answered first.
    pub(super) fn next_copy(&self) -> Instant {
        match self.when {
            CopyTime::Idle if self.requests > 0 => Instant::MAX,
            CopyTime::Idle => self.last_answer.saturating_add(self.idle),
            CopyTime::Share => self.rested,
            CopyTime::AtOnce => Instant::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(when: CopyTime) -> CopyPace {
        CopyPace::new(&RearrangeSpec { when, idle_ms: 5.0, share: 0.25, ..RearrangeSpec::default() })
    }

    #[test]
    fn idle_pace_waits_for_the_last_answer_and_the_pause() {
        let mut pace = pace(CopyTime::Idle);
        pace.request_begins();
        pace.request_begins();
        pace.request_ends(Instant::from_ms(1.0));
        assert_eq!(pace.next_copy(), Instant::MAX);
        pace.request_ends(Instant::from_ms(3.0));
        assert_eq!(pace.next_copy(), Instant::from_ms(8.0));
    }

    #[test]
    fn share_pace_rests_three_times_a_copy_for_a_quarter() {
        let mut pace = pace(CopyTime::Share);
        pace.request_begins();
        pace.copy_ends(Instant::from_ms(10.0), Instant::from_ms(8.0));
        assert_eq!(pace.next_copy(), Instant::from_ms(16.0));
    }

    #[test]
    fn pace_at_once_never_waits() {
        let mut pace = pace(CopyTime::AtOnce);
        pace.request_begins();
        pace.copy_ends(Instant::from_ms(10.0), Instant::ZERO);
        assert_eq!(pace.next_copy(), Instant::ZERO);
    }
}
