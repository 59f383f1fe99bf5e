//! A command in the device.

use super::media::Arriving;
use super::split::{Part, TimeSplit};
use super::{CacheUse, Command, Outcome, Travel};
use headstack_model::{Angle, Extent, Instant, Lbn, Nanos, TrackPlace};

#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) command: Command,
    pub(super) submitted: Instant,
    pub(super) parts: TimeSplit,
    /// Time up to which `parts` accounts for the command's time.
    pub(super) accounted: Instant,
    /// When its command overhead ends: its arm movement starts no earlier.
    pub(super) overhead_done: Instant,
    /// Whether no other command was outstanding when it came.
    pub(super) found_idle: bool,
    /// First block that must come from the media.
    pub(super) media_from: Lbn,
    /// Block up to which the buffer supplies a read's data before the arm works for it, and the end of that transfer.
    pub(super) sent_to: Lbn,
    pub(super) sent_at: Instant,
    /// How a write's data arrive.
    pub(super) arriving: Arriving,
    /// Track and angle of `media_from`, and the run of blocks around it, of a command that waited for the arm.
    pub(super) place: TrackPlace,
    pub(super) angle: Angle,
    pub(super) extent: Extent,
    /// Segment reserved for a write.
    pub(super) segment: Option<usize>,
    /// Whether it gave up the bus before its data.
    pub(super) disconnected_early: bool,
    /// Whether its data are accepted only once the arm is free for it.
    pub(super) defers_data: bool,
    pub(super) cache: CacheUse,
    pub(super) travel: Option<Travel>,
    pub(super) outcome: Outcome,
}

impl Job {
    /// A command that arrives at `now`, with whether it found the drive idle.
    #[inline]
    pub(super) fn new(command: Command, now: Instant, found_idle: bool) -> Job {
        let first = command.request.lbn;
        Job {
            command,
            submitted: now,
            parts: TimeSplit::default(),
            accounted: now,
            overhead_done: now,
            found_idle,
            media_from: first,
            sent_to: first,
            sent_at: now,
            arriving: Arriving::default(),
            place: TrackPlace::default(),
            angle: Angle::default(),
            extent: Extent::default(),
            segment: None,
            disconnected_early: false,
            defers_data: false,
            cache: CacheUse::Miss,
            travel: None,
            outcome: Outcome::Done,
        }
    }

    /// Accounts for the time up to `until` as this part.
    pub(super) fn account(&mut self, part: Part, until: Instant) {
        if until > self.accounted {
            self.parts.add(part, until - self.accounted);
            self.accounted = until;
        }
    }

    /// Accounts for the time up to `now` that a command waited beyond its overhead.
    pub(super) fn wait_until(&mut self, now: Instant) {
        self.account(Part::Overhead, self.overhead_done.min(now));
        self.account(Part::Queued, now);
    }

    /// Accounts for the time until its access starts, and returns that time: when the arm is `free` and the overhead over.
    #[inline(always)]
    pub(super) fn begin_access(&mut self, free: Instant) -> Instant {
        let begins = free.max(self.overhead_done);
        self.account(Part::Overhead, self.overhead_done);
        self.account(Part::Queued, begins);
        begins
    }

    /// As [`Job::begin_access`], for an access that continues the one before it: it does not wait for the overhead.
    pub(super) fn continue_access(&mut self, free: Instant) -> Instant {
        self.account(Part::Overhead, self.overhead_done.min(free));
        self.account(Part::Queued, free);
        free
    }

    /// Separates the time lost to retries from the rotational latency.
    pub(super) fn account_retries(&mut self, lost: Nanos) {
        self.parts.rotational_latency = self.parts.rotational_latency.saturating_sub(lost);
        self.parts.retries += lost;
    }
}
