//! What devices share on their way to the host: the links are passed to the device that is called.

use crate::link::{LinkUse, Links, Tenure};
use crate::os::DeviceQueue;
use headstack_model::Nanos;

/// The links that devices share, if they share any.
#[derive(Debug, Default)]
pub(super) struct SharedLinks {
    /// `None` also while a device has them.
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

    /// When the next bus is won; [`Nanos::MAX`] without requests.
    #[inline]
    pub(super) fn next_event(&self) -> Nanos {
        self.links.as_ref().map_or(Nanos::MAX, |links| links.next_event())
    }

    pub(super) fn arbitrate(&mut self, now: Nanos) -> Option<u32> {
        self.links.as_mut()?.arbitrate(now)
    }

    #[inline]
    pub(super) fn poll_tenure(&mut self) -> Option<Tenure> {
        self.links.as_mut()?.poll_tenure()
    }

    /// Calls a device with the links that it shares.
    #[inline]
    pub(super) fn call<R>(
        &mut self,
        index: usize,
        device: &mut DeviceQueue,
        act: impl FnOnce(&mut DeviceQueue) -> R,
    ) -> R {
        // One call of `act`, so that it is inlined: most devices share nothing.
        let shares = self.links.as_ref().is_some_and(|links| links.reach(index));
        if shares {
            self.lend(index, device);
        }
        let result = act(device);
        if shares {
            self.links = device.give_back();
        }
        result
    }

    #[cold]
    fn lend(&mut self, index: usize, device: &mut DeviceQueue) {
        let links = self.links.take().expect("there are links that reach the device");
        device.lend(links, index as u32);
    }
}
