//! Where a request's time went.

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
    /// Bus transfer that the media transfer does not hide.
    pub bus: Nanos,
    /// Waiting for the cache: for a read-ahead in progress, for room, for destaging.
    pub cache: Nanos,
}

/// A part of [`TimeSplit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Queued,
    Overhead,
    Bus,
    Cache,
}

impl AddAssign for TimeSplit {
    fn add_assign(&mut self, other: TimeSplit) {
        self.queued += other.queued;
        self.overhead += other.overhead;
        self.seek += other.seek;
        self.rotational_latency += other.rotational_latency;
        self.retries += other.retries;
        self.media += other.media;
        self.bus += other.bus;
        self.cache += other.cache;
    }
}

impl TimeSplit {
    /// The names of the parts, in the order of [`TimeSplit::parts`].
    pub const NAMES: [&'static str; 8] =
        ["queued", "overhead", "seek", "rotational_latency", "retries", "media", "bus", "cache"];

    /// All parts, in the order of [`TimeSplit::NAMES`].
    pub fn parts(&self) -> [Nanos; 8] {
        [
            self.queued,
            self.overhead,
            self.seek,
            self.rotational_latency,
            self.retries,
            self.media,
            self.bus,
            self.cache,
        ]
    }

    /// The sum of the parts: the response time.
    pub fn total(&self) -> Nanos {
        Nanos(self.parts().iter().map(|part| part.0).sum())
    }

    /// The last `time` of the parts: the rest is removed, from the first part on.
    pub(crate) fn last(&self, time: Nanos) -> TimeSplit {
        let mut rest = *self;
        let mut excess = self.total().0.saturating_sub(time.0);
        let parts = [
            &mut rest.queued,
            &mut rest.overhead,
            &mut rest.seek,
            &mut rest.rotational_latency,
            &mut rest.retries,
            &mut rest.media,
            &mut rest.bus,
            &mut rest.cache,
        ];
        for part in parts {
            let off = part.0.min(excess);
            part.0 -= off;
            excess -= off;
        }
        rest
    }

    /// The first `time` of the parts: the rest is removed, from the last part on.
    pub(crate) fn first(&self, time: Nanos) -> TimeSplit {
        let rest = self.last(Nanos(self.total().0.saturating_sub(time.0)));
        let less = |part: fn(&TimeSplit) -> Nanos| part(self) - part(&rest);
        TimeSplit {
            queued: less(|split| split.queued),
            overhead: less(|split| split.overhead),
            seek: less(|split| split.seek),
            rotational_latency: less(|split| split.rotational_latency),
            retries: less(|split| split.retries),
            media: less(|split| split.media),
            bus: less(|split| split.bus),
            cache: less(|split| split.cache),
        }
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
