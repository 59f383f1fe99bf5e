//! How long before its deadline an answer is begun, so that the client has it in time.

use std::time::Duration;

/// Usual time to send an answer: from reading the clock that finds it due to the end of the system call that wakes the client.
///
/// It is the lower quartile of the last ones: most answers then come slightly late, and few early.
#[derive(Debug, Default)]
pub(crate) struct Lead {
    /// The last times in nanoseconds, as a ring.
    took: [u64; Lead::WINDOW],
    seen: usize,
    nanos: u64,
}

impl Lead {
    /// Number of last times: enough for a quartile, and soon reached after a start.
    const WINDOW: usize = 32;

    /// Maximum lead in nanoseconds.
    const MOST: u64 = 80_000;

    pub(crate) fn observe(&mut self, took: Duration) {
        self.took[self.seen % Lead::WINDOW] = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.seen += 1;
        let mut known = self.took;
        let known = &mut known[..self.seen.min(Lead::WINDOW)];
        let quarter = known.len() / 4;
        self.nanos = (*known.select_nth_unstable(quarter).1).min(Lead::MOST);
    }

    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lead_follows_the_lower_quartile_up_to_its_limit() {
        let mut lead = Lead::default();
        assert_eq!(lead.get(), Duration::ZERO);
        (0..100).for_each(|turn| lead.observe(Duration::from_micros(10 + turn * 7 % 20)));
        assert!((14..=16).contains(&lead.get().as_micros()), "{:?}", lead.get());
        (0..10).for_each(|_| lead.observe(Duration::from_millis(1)));
        assert!(lead.get() < Duration::from_micros(20), "some that took long are chance");
        (0..32).for_each(|_| lead.observe(Duration::from_secs(1)));
        assert_eq!(lead.get(), Duration::from_nanos(Lead::MOST));
    }
}
