//! The links that devices share on their way to the host; the engine passes them to each device that it calls.

use crate::link::{HostLink, LinkUse, Links, ProcessorUse, ProcessorWork, Tenure};
use headstack_model::Instant;

/// The links that devices share, if they share any.
#[derive(Debug, Default)]
pub(super) struct SharedLinks {
    links: Option<Box<Links>>,
}

impl SharedLinks {
    pub(super) fn new(links: Links) -> SharedLinks {
        SharedLinks { links: Some(Box::new(links)) }
    }

    /// The load of each part of the links; empty if none is shared.
    pub(super) fn usage(&self) -> Vec<LinkUse> {
        self.links.as_ref().map_or(Vec::new(), |links| links.usage())
    }

    /// The use of the host's processor; `None` without one.
    pub(super) fn processor_usage(&self) -> Option<ProcessorUse> {
        self.links.as_ref()?.processor_usage()
    }

    /// Does work from `now` on; returns its end. Without a processor nothing else delays it.
    pub(super) fn run(&mut self, now: Instant, work: &ProcessorWork) -> Instant {
        self.links.as_mut().map_or(now + work.total(), |links| links.run(now, work))
    }

    /// When the next bus is won; [`Instant::MAX`] without requests.
    #[inline]
    pub(super) fn next_event(&self) -> Instant {
        self.links.as_ref().map_or(Instant::MAX, |links| links.next_event())
    }

    pub(super) fn arbitrate(&mut self, now: Instant) -> Option<u32> {
        self.links.as_mut()?.arbitrate(now)
    }

    #[inline]
    pub(super) fn poll_tenure(&mut self) -> Option<Tenure> {
        self.links.as_mut()?.poll_tenure()
    }

    /// The links of a device, to be passed to a call of it.
    #[inline]
    pub(super) fn host_link(&mut self, device: usize) -> HostLink<'_> {
        // Most devices share nothing.
        self.links.as_mut().map_or_else(HostLink::default, |links| links.host_link(device))
    }
}
