//! How much before its time an answer has to be begun, so that whoever asked has it at its time.

use std::time::Duration;

/// A running estimate of what handing over an answer takes at the least: from the look at the clock that finds it due to
/// the end of the call that hands it to the system, which wakes the client.
///
/// It follows the tenth part of all that it is shown that took least, so that hardly an answer comes early.
#[derive(Debug, Default)]
pub(crate) struct Lead {
    nanos: u64,
}

impl Lead {
    /// No answer is begun earlier than that, whatever handing over takes.
    const MOST: u64 = 50_000;

    /// By how much it follows one that took longer.
    const STEP: u64 = 200;

    pub(crate) fn observe(&mut self, took: Duration) {
        // Nine that took longer weigh as much as one that took less.
        self.nanos = match took.as_nanos() > u128::from(self.nanos) {
            true => (self.nanos + Lead::STEP).min(Lead::MOST),
            false => self.nanos.saturating_sub(9 * Lead::STEP),
        };
    }

    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_it_follow_what_takes_least() {
        let mut lead = Lead::default();
        let took = |turn: u64| Duration::from_micros(10 + turn * 7 % 20);
        (0..10_000).for_each(|turn| lead.observe(took(turn)));
        assert!((8_000..16_000).contains(&(lead.get().as_nanos() as u64)), "{:?}", lead.get());
        (0..10_000).for_each(|_| lead.observe(Duration::from_secs(1)));
        assert_eq!(lead.get(), Duration::from_nanos(Lead::MOST));
    }
}
