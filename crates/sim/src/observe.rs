//! What a run tells whoever looks on: requests that came back, and what devices did for them.

use crate::device::Completion;
use crate::link::Tenure;
use headstack_model::Nanos;
use headstack_workload::{Issue, Load};
use std::ops::ControlFlow;

/// A request that came back, as the load sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The volume it went to.
    pub volume: u32,
    /// The device that served it, or the last part of it.
    pub device: u32,
    /// The load's number for it.
    pub id: u64,
    /// Who asked for it.
    pub source: u32,
    /// How it went, from the load's issue to its end. Where several parts or commands served it, the time split is the
    /// last one's; what went by before that one came to its device is `queued`. An array that serves it in phases has in
    /// it the last part of each. Where the page cache served it, see [`crate::os`].
    pub completion: Completion,
    /// Whether the page cache served it without waiting for a device.
    pub cached: bool,
}

impl Finished {
    pub(crate) fn on(device: u32, completion: Completion) -> Finished {
        Finished { volume: 0, device, id: 0, source: 0, completion, cached: false }
    }
}

/// Somebody who sees what happens.
pub trait Observer {
    /// The load issued a request at `now`.
    fn issued(&mut self, _now: Nanos, _issue: &Issue, _load: &dyn Load) {}
    /// A load's request came back.
    fn finished(&mut self, finished: &Finished);
    /// A device ended a command, which may be a part of a load's request, or several of them in one.
    fn served(&mut self, _device: u32, _command: &Completion) {}
    /// A device gave up a bus that others share.
    fn held(&mut self, _tenure: &Tenure) {}
    /// Whether [`Observer::part`] is to be called.
    fn sees_parts(&self) -> bool {
        false
    }
    /// A device's part of a request, of a page cache's transfer or of a spare's filling came back. It was asked at `issued`,
    /// when it may have had to wait before the device.
    fn part(&mut self, _device: u32, _issued: Nanos, _part: &Completion) {}
    /// Whether a run is to end now, with whatever is outstanding.
    fn stops(&self) -> bool {
        false
    }
}

/// An observer that wants the load's requests alone.
pub(crate) struct Requests<'a>(pub(crate) &'a mut dyn FnMut(&Finished));

impl Observer for Requests<'_> {
    #[inline]
    fn finished(&mut self, finished: &Finished) {
        self.0(finished);
    }
}

/// An observer that wants the load's requests alone, and may stop the run.
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
