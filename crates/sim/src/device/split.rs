//! The parts of a response time.

use headstack_model::Nanos;
use std::ops::AddAssign;

/// The parts of a response time. They add up to it exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSplit {
    /// Waiting for the electronics or the arm to be free of other requests.
    pub queued: Nanos,
    /// Command processing, connecting, completion.
    pub overhead: Nanos,
    /// Seek, head switch and settle.
    pub seek: Nanos,
    /// Rotational latency.
    pub rotational_latency: Nanos,
    /// Revolutions lost to retries and to the drive's own work.
    pub retries: Nanos,
    /// Media transfer.
    pub media: Nanos,
    /// Bus transfer that does not overlap the media transfer.
    pub bus: Nanos,
    /// Waiting for the cache: for a read-ahead in progress, for room, for destaging.
    pub cache: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Queued,
    Overhead,
    Bus,
    Cache,
}

impl AddAssign for TimeSplit {
    fn add_assign(&mut self, other: TimeSplit) {
        self.parts_mut().into_iter().zip(other.parts()).for_each(|(part, time)| *part += time);
    }
}

impl TimeSplit {
    /// The names of the parts, in the order of [`TimeSplit::parts`].
    pub const NAMES: [&'static str; 8] =
        ["queued", "overhead", "seek", "rotational_latency", "retries", "media", "bus", "cache"];

    /// All parts, in the order of [`TimeSplit::NAMES`].
    pub fn parts(&self) -> [Nanos; 8] {
        let TimeSplit { queued, overhead, seek, rotational_latency, retries, media, bus, cache } = *self;
        [queued, overhead, seek, rotational_latency, retries, media, bus, cache]
    }

    fn parts_mut(&mut self) -> [&mut Nanos; 8] {
        let TimeSplit { queued, overhead, seek, rotational_latency, retries, media, bus, cache } = self;
        [queued, overhead, seek, rotational_latency, retries, media, bus, cache]
    }

    /// The sum of the parts: the response time.
    pub fn total(&self) -> Nanos {
        Nanos(self.parts().iter().map(|part| part.0).sum())
    }

    /// The last `time` of the parts: the rest is removed, beginning with the first part.
    pub(crate) fn last(&self, time: Nanos) -> TimeSplit {
        let mut rest = *self;
        let mut excess = self.total().0.saturating_sub(time.0);
        for part in rest.parts_mut() {
            let off = part.0.min(excess);
            part.0 -= off;
            excess -= off;
        }
        rest
    }

    /// The first `time` of the parts: the rest is removed, beginning with the last part.
    pub(crate) fn first(&self, time: Nanos) -> TimeSplit {
        let (mut first, rest) = (*self, self.last(Nanos(self.total().0.saturating_sub(time.0))));
        first.parts_mut().into_iter().zip(rest.parts()).for_each(|(part, time)| *part = *part - time);
        first
    }

    pub(crate) fn add(&mut self, part: Part, time: Nanos) {
        match part {
            Part::Queued => self.queued += time,
            Part::Overhead => self.overhead += time,
            Part::Bus => self.bus += time,
            Part::Cache => self.cache += time,
        }
    }
}
