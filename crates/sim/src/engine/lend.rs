//! The engine's part with what devices share: it lends the links to the device whose turn it is.

use super::Engine;
use crate::host::Station;
use crate::link::{LinkUse, Links};
use headstack_model::Nanos;

impl Engine {
    /// The same engine whose devices share links.
    pub(crate) fn with_links(mut self, links: Links) -> Engine {
        let stations = self.stations.iter_mut().enumerate();
        stations.filter(|(index, _)| links.reach(*index)).for_each(|(_, station)| station.share());
        Engine { links: Some(Box::new(links)), ..self }
    }

    /// What each part of the links that devices share has carried; nothing where none is shared.
    pub fn link_usage(&self) -> Vec<LinkUse> {
        self.links.as_ref().map_or(Vec::new(), |links| links.usage())
    }

    /// Lets a device have the bus that it has won.
    pub(super) fn turn_links(&mut self) {
        let now = self.now;
        if let Some(device) = self.links.as_mut().and_then(|links| links.arbitrate(now)) {
            self.with_station(device as usize, Station::handle_bus);
            self.settle(device as usize);
        }
    }

    /// Has a station do something now, with the links that its device shares at hand.
    #[inline]
    pub(super) fn with_station<R>(&mut self, index: usize, act: impl FnOnce(&mut Station, Nanos) -> R) -> R {
        // One call, so that it is compiled into the place: most devices share nothing.
        let shares = self.links.as_ref().is_some_and(|links| links.reach(index));
        if shares {
            self.lend(index);
        }
        let result = act(&mut self.stations[index], self.now);
        if shares {
            self.links = self.stations[index].give_back();
        }
        result
    }

    #[cold]
    fn lend(&mut self, index: usize) {
        let links = self.links.take().expect("there are links that reach the device");
        self.stations[index].lend(links, index as u32);
    }
}
