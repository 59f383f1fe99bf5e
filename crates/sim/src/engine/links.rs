//! The engine's part with what devices share: it lends the links to the device whose turn it is.

use super::Engine;
use crate::link::{LinkUse, Links};
use crate::os::DeviceQueue;
use headstack_model::Nanos;

impl Engine {
    /// The same engine whose devices share links.
    pub(crate) fn with_shared_links(mut self, links: Links) -> Engine {
        let devices = self.devices.iter_mut().enumerate();
        devices.filter(|(index, _)| links.reach(*index)).for_each(|(_, device)| device.share());
        Engine { links: Some(Box::new(links)), ..self }
    }

    /// The load of each part of the shared links; empty if none is shared.
    pub fn link_usage(&self) -> Vec<LinkUse> {
        self.links.as_ref().map_or(Vec::new(), |links| links.usage())
    }

    /// Lets a device have the bus that it has won.
    pub(super) fn turn_links(&mut self) {
        let now = self.now;
        if let Some(device) = self.links.as_mut().and_then(|links| links.arbitrate(now)) {
            self.with_links(device as usize, DeviceQueue::handle_bus);
            self.settle(device);
        }
    }

    /// Calls a device with the links that it shares.
    #[inline]
    pub(super) fn with_links<R>(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut DeviceQueue, Nanos) -> R,
    ) -> R {
        // One call, so that it is compiled into the place: most devices share nothing.
        let shares = self.links.as_ref().is_some_and(|links| links.reach(index));
        if shares {
            self.lend(index);
        }
        let result = act(&mut self.devices[index], self.now);
        if shares {
            self.links = self.devices[index].give_back();
        }
        result
    }

    #[cold]
    fn lend(&mut self, index: usize) {
        let links = self.links.take().expect("there are links that reach the device");
        self.devices[index].lend(links, index as u32);
    }
}
