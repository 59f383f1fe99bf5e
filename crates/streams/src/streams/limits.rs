//! The duration limit that a read is sent with, so that the disk keeps the guarantee of its client.
//!
//! A disk may have command duration limits: times, each with a number, by which the disk should end a command that names one. A read of a
//! client with a guarantee gets the longest limit that does not exceed the time left for it, and the shortest if all are longer. A
//! read-ahead for which no request waits has as long as a request that arrives now. A client that requests more than its guaranteed rate
//! gets no limits, because they would delay the other clients.

use super::config::Config;
use headstack_model::Nanos;

/// The duration limits of a disk's reads.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadLimits {
    /// Times and numbers, the shortest first.
    limits: Vec<(Nanos, u8)>,
}

impl ReadLimits {
    /// The limits in the configuration.
    pub(super) fn new(config: &Config) -> ReadLimits {
        let times = config.read_limits_ms.iter().flatten();
        ReadLimits::sorted(times.zip(1..).map(|(ms, number)| (number, Nanos::from_ms(*ms))))
    }

    /// Limits by their numbers, each with its time.
    pub(super) fn sorted(limits: impl IntoIterator<Item = (u8, Nanos)>) -> ReadLimits {
        let mut limits: Vec<_> = limits.into_iter().map(|(number, time)| (time, number)).collect();
        limits.sort_unstable();
        ReadLimits { limits }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// The number of the longest limit that does not exceed `left`, or else of the shortest; 0 without limits.
    pub(super) fn fitting(&self, left: Nanos) -> u8 {
        let longer = self.limits.partition_point(|(time, _)| *time <= left);
        self.limits.get(longer.saturating_sub(1)).map_or(0, |(_, number)| *number)
    }
}
