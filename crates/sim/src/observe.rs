//! Observers of a run: the requests that completed, and the devices' parts of them.

use crate::device::Completion;
use crate::link::Tenure;
use headstack_model::Instant;
use headstack_workload::{Issue, Load};
use std::ops::ControlFlow;

/// A completed request of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The volume it went to.
    pub volume: u32,
    /// The device that served it, or the last part of it.
    pub device: u32,
    /// The load's number for it.
    pub id: u64,
    /// The process, job or stream that issued it.
    pub source: u32,
    /// Its completion, from the load's issue to its end. Where several parts or commands served it, the time split is the last
    /// one's; the time before that one reached its device is `queued`. For an array that serves it in phases, it has the last part
    /// of each. Where the page cache served it, see [`crate::os`].
    pub completion: Completion,
    /// Whether the page cache served it without waiting for a device.
    pub cached: bool,
}

impl Finished {
    pub(crate) fn on(device: u32, completion: Completion) -> Finished {
        Finished { volume: 0, device, id: 0, source: 0, completion, cached: false }
    }
}

/// An observer of a run.
///
/// ```
/// use headstack_sim::{Finished, Observer};
///
/// /// The longest response, and an end of the run at the first one of a second.
/// #[derive(Default)]
/// struct Longest(f64);
///
/// impl Observer for Longest {
///     fn finished(&mut self, finished: &Finished) {
///         self.0 = self.0.max(finished.completion.response().as_ms());
///     }
///
///     fn stops(&self) -> bool {
///         self.0 >= 1000.0
///     }
/// }
/// assert!(!Longest::default().stops());
/// ```
pub trait Observer {
    /// Reports that the load issued a request at `now`.
    fn issued(&mut self, _now: Instant, _issue: &Issue, _load: &dyn Load) {}
    /// Reports that a request of the load completed.
    fn finished(&mut self, finished: &Finished);
    /// Reports that a device ended a command, which may be a part of a load's request, or several of them in one.
    fn served(&mut self, _device: u32, _command: &Completion) {}
    /// Reports that a device released a bus that others share.
    fn held(&mut self, _tenure: &Tenure) {}
    /// Whether [`Observer::part`] is to be called.
    fn sees_parts(&self) -> bool {
        false
    }
    /// Reports that a device's part of a request, of a page cache's transfer or of a spare's rebuild completed. It was issued at `issued`, and
    /// may have waited in front of the device.
    fn part(&mut self, _device: u32, _issued: Instant, _part: &Completion) {}
    /// Whether to end the run now, with outstanding requests.
    fn stops(&self) -> bool {
        false
    }
}

/// An observer of the load's requests only.
pub(crate) struct Requests<'a>(pub(crate) &'a mut dyn FnMut(&Finished));

impl Observer for Requests<'_> {
    #[inline]
    fn finished(&mut self, finished: &Finished) {
        self.0(finished);
    }
}

/// An observer of the load's requests only, which may stop the run.
pub(crate) struct Stoppable<'a> {
    pub(crate) observe: &'a mut dyn FnMut(&Finished) -> ControlFlow<()>,
    pub(crate) is_stopped: bool,
}

impl Observer for Stoppable<'_> {
    #[inline]
    fn finished(&mut self, finished: &Finished) {
        self.is_stopped |= (self.observe)(finished).is_break();
    }

    #[inline]
    fn stops(&self) -> bool {
        self.is_stopped
    }
}
