//! The contract of a load: it issues requests, and gets their completions.

use crate::phase::LoadPhase;
use headstack_model::{Instant, Nanos, Request};

/// A program's advice about its reads of a file (`posix_fadvise`), which read-ahead follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAdvice {
    /// Nothing, or `POSIX_FADV_NORMAL`.
    #[default]
    Normal,
    /// `POSIX_FADV_SEQUENTIAL`: the page cache reads ahead twice as far.
    Sequential,
    /// `POSIX_FADV_RANDOM`: the page cache reads nothing ahead.
    Random,
}

/// A request that a load issues now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The device it goes to, counted from 0.
    pub device: u32,
    /// The request.
    pub request: Request,
    /// The load's own number for it, returned with the completion.
    pub id: u64,
    /// The number of the issuing process, job or stream, for schedulers that are fair among them and for statistics.
    pub source: u32,
    /// Whether it is urgent: queues that obey priorities serve it before others (the real-time class, ATA's high priority).
    pub urgent: bool,
    /// Whether the host serves it only while no other request waits, if it is not urgent (Linux's idle class, `ionice -c 3`).
    pub idle: bool,
    /// The number of its command duration limit, 1 to 7 (Linux's hint in its priority); 0 for none.
    pub limit: u8,
    /// Whether it bypasses the page cache of the host, if the rig has one (as with `O_DIRECT`).
    pub direct: bool,
    /// The program's advice about its reads, if it goes through the page cache.
    pub advice: ReadAdvice,
    /// Whether the zone of a write, which begins at its first block, is reset before it (on a disk with zones).
    pub resets_zone: bool,
}

impl Issue {
    /// A request of source 0 without priority that bypasses the page cache.
    pub fn new(device: u32, request: Request, id: u64) -> Issue {
        let advice = ReadAdvice::Normal;
        Issue {
            device,
            request,
            id,
            source: 0,
            urgent: false,
            idle: false,
            limit: 0,
            direct: true,
            advice,
            resets_zone: false,
        }
    }
}

/// The answer of a load to a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// Issue this now and poll again.
    Issue(Issue),
    /// A program of the load computes for `time` on the host's processor. [`Load::handle_computed`] follows at once, then the next
    /// poll.
    Compute {
        /// The load's own number for it.
        id: u64,
        /// How long it takes alone.
        time: Nanos,
    },
    /// Issue nothing before this time, unless a completion comes first.
    Later(Instant),
    /// Issue nothing until a completion comes.
    Waiting,
    /// Issue nothing any more.
    Done,
}

/// A source of requests.
///
/// ```
/// use headstack_model::{Instant, Lbn, Request};
/// use headstack_workload::{Issue, Load, Poll};
///
/// /// One read of 4 KiB at a time, each after the block before.
/// struct Sequence {
///     next: u64,
///     is_outstanding: bool,
/// }
///
/// impl Load for Sequence {
///     fn poll(&mut self, _now: Instant) -> Poll {
///         if self.is_outstanding {
///             return Poll::Waiting;
///         }
///         self.is_outstanding = true;
///         self.next += 8;
///         Poll::Issue(Issue::new(0, Request::read(Lbn(self.next - 8), 8), self.next))
///     }
///
///     fn handle_completion(&mut self, _now: Instant, _id: u64) {
///         self.is_outstanding = false;
///     }
/// }
///
/// let mut load = Sequence { next: 0, is_outstanding: false };
/// assert!(matches!(load.poll(Instant::ZERO), Poll::Issue(issue) if issue.request.lbn == Lbn(0)));
/// assert_eq!(load.poll(Instant::ZERO), Poll::Waiting);
/// load.handle_completion(Instant::from_ms(8.0), 8);
/// assert!(matches!(load.poll(Instant::from_ms(8.0)), Poll::Issue(issue) if issue.request.lbn == Lbn(8)));
/// ```
pub trait Load {
    /// The next request at `now`, or when to poll again.
    fn poll(&mut self, now: Instant) -> Poll;
    /// The request with this `id` completed at `now`.
    fn handle_completion(&mut self, now: Instant, id: u64);

    /// Reports that the processor will have done the computation with this `id` at `until`. [`Poll::Later`] then says when to poll again.
    fn handle_computed(&mut self, _now: Instant, _id: u64, _until: Instant) {}

    /// Share of the load that is done by `now`, 0 to 1; `None` if its amount is unknown.
    fn progress(&self, _now: Instant) -> Option<f64> {
        None
    }

    /// The phases of the load, in their order; none where it does only one thing.
    fn phases(&self) -> &[LoadPhase] {
        &[]
    }

    /// When completions of a source begin to count; before, it warms up. The value is valid once the source has issued a request.
    fn measured_from(&self, _source: u32) -> Instant {
        Instant::ZERO
    }
}

/// A load that its owner keeps to read its state after a run.
impl<L: Load + ?Sized> Load for &mut L {
    fn poll(&mut self, now: Instant) -> Poll {
        (**self).poll(now)
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        (**self).handle_completion(now, id);
    }

    fn handle_computed(&mut self, now: Instant, id: u64, until: Instant) {
        (**self).handle_computed(now, id, until);
    }

    fn progress(&self, now: Instant) -> Option<f64> {
        (**self).progress(now)
    }

    fn phases(&self) -> &[LoadPhase] {
        (**self).phases()
    }

    fn measured_from(&self, source: u32) -> Instant {
        (**self).measured_from(source)
    }
}
