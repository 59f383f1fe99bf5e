//! Shared links between drives and host: an exclusive bus, a rate that transfers share, a loop, and the processor that moves the
//! data.
//!
//! A drive that shares nothing has its bus to itself, and its port computes every time itself. A drive with shared links requests
//! a bus before it uses its port, and the end of each transfer. The engine passes the links to each call of the device, so that a
//! device has no clock and needs nothing from the future.
//! The winner of a bus is decided after everything else that is due at that time.

mod bus;
mod interface;
mod lane;
mod ring;

pub(crate) use bus::Arbitration;
pub(crate) use interface::InterfaceCost;
pub(crate) use ring::RingShape;

use bus::ExclusiveBus;
use headstack_model::Nanos;
use interface::Interface;
use lane::{Flow, Lane};
use ring::Ring;
use std::collections::VecDeque;

/// The path of a device to the host: the links of each kind on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    /// Its loop, and its place there.
    pub(crate) ring: Option<(u32, u32)>,
    /// The bus that it has to win.
    pub(crate) bus: Option<u32>,
    /// Rates that it shares: of its bus, and of its controller's bus.
    pub(crate) rates: [Option<u32>; 2],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// When the first of them can go.
    pub(crate) begins: Nanos,
    /// Time in which the device alone sends or receives them.
    pub(crate) least: Nanos,
    pub(crate) bytes: u64,
    pub(crate) to_host: bool,
}

/// The load of a part of the shared links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkUse {
    /// The name of the bus; `host` for the host's processor.
    pub name: String,
    /// Which part of it.
    pub part: &'static str,
    /// Time for which it was held, or which its transfers fill.
    pub busy: Nanos,
}

/// From when to when a device had a bus that it shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// Number of the bus among those that have to be won.
    pub bus: u32,
    /// The device.
    pub device: u32,
    /// When it won the bus.
    pub from: Nanos,
    /// When it gave the bus up.
    pub to: Nanos,
}

/// The links that the devices of an engine share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    rings: Vec<(String, Ring)>,
    buses: Vec<(String, ExclusiveBus)>,
    rates: Vec<(String, Lane)>,
    interface: Option<Interface>,
    /// Tenures that ended and were not reported yet.
    ended: VecDeque<Tenure>,
    ways: Vec<Way>,
}

impl Links {
    pub(crate) fn new(devices: usize) -> Links {
        Links { ways: vec![Way::default(); devices], ..Links::default() }
    }

    pub(crate) fn way(&mut self, device: usize) -> &mut Way {
        &mut self.ways[device]
    }

    pub(crate) fn add_ring(&mut self, name: &str, shape: &RingShape) -> u32 {
        self.rings.push((name.to_string(), Ring::new(shape)));
        self.rings.len() as u32 - 1
    }

    pub(crate) fn add_bus(&mut self, name: &str, arbitration: Arbitration) -> u32 {
        self.buses.push((name.to_string(), ExclusiveBus::new(arbitration)));
        self.buses.len() as u32 - 1
    }

    /// Adds a shared rate in bytes a second.
    pub(crate) fn add_rate(&mut self, name: &str, rate: u64) -> u32 {
        self.rates.push((name.to_string(), Lane::new(rate)));
        self.rates.len() as u32 - 1
    }

    pub(crate) fn set_interface(&mut self, cost: InterfaceCost) {
        self.interface = Some(Interface::new(cost));
    }

    pub(crate) fn is_any(&self) -> bool {
        (0..self.ways.len()).any(|device| self.reach(device))
    }

    fn reach(&self, device: usize) -> bool {
        self.interface.is_some() || self.ways[device] != Way::default()
    }

    /// The load of each part of the links.
    pub(crate) fn usage(&self) -> Vec<LinkUse> {
        let used = |name: &str, part, busy| LinkUse { name: name.to_string(), part, busy };
        let parts = |(name, ring): &(String, Ring)| {
            let name = name.clone();
            ring.busy().map(|(part, busy)| LinkUse { name: name.clone(), part, busy })
        };
        let rings = self.rings.iter().flat_map(parts);
        let buses = self.buses.iter().map(|(name, bus)| used(name, "held", bus.held()));
        let rates = self.rates.iter().map(|(name, rate)| used(name, "data", rate.busy()));
        let host = self.interface.iter().map(|interface| used("host", "processor", interface.busy()));
        rings.chain(buses).chain(rates).chain(host).collect()
    }

    /// When the next bus is won; `Nanos::MAX` without requests.
    pub(crate) fn next_event(&self) -> Nanos {
        self.buses.iter().map(|(_, bus)| bus.next_event()).min().unwrap_or(Nanos::MAX)
    }

    /// The next device that wins its bus now.
    pub(crate) fn arbitrate(&mut self, now: Nanos) -> Option<u32> {
        let (_, bus) = self.buses.iter_mut().find(|(_, bus)| bus.next_event() <= now)?;
        Some(bus.arbitrate(now))
    }

    pub(crate) fn poll_tenure(&mut self) -> Option<Tenure> {
        self.ended.pop_front()
    }

    /// What the port of a device shares.
    pub(crate) fn sharing(&self, device: usize) -> PortSharing {
        let Way { ring, bus, .. } = self.ways[device];
        let is_shared = self.reach(device);
        PortSharing { is_shared, is_exclusive: bus.is_some(), streams: ring.is_some() }
    }

    /// The links of a device, for a call of it.
    #[inline]
    pub(crate) fn host_link(&mut self, device: usize) -> HostLink<'_> {
        HostLink(self.reach(device).then_some((self, device as u32)))
    }

    fn ring(&mut self, device: u32) -> Option<(&mut Ring, u32)> {
        let (ring, place) = self.ways[device as usize].ring?;
        Some((&mut self.rings[ring as usize].1, place))
    }

    fn transfer(&mut self, now: Nanos, device: u32, transfer: Transfer) -> Nanos {
        let Transfer { begins, least, bytes, to_host } = transfer;
        let mut flow = Flow { begins, least, units: bytes };
        if let Some((ring, place)) = self.ring(device) {
            flow.least = ring.transfer(now, place, flow, to_host) - begins;
        }
        for rate in self.ways[device as usize].rates.into_iter().flatten() {
            flow.least = self.rates[rate as usize].1.take(now, flow) - begins;
        }
        match &mut self.interface {
            Some(interface) => interface.transfer(now, begins, flow.least, bytes),
            None => begins + flow.least,
        }
    }
}

/// What a device's port shares with those of others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortSharing {
    pub(crate) is_shared: bool,
    /// Whether the device has to win its bus.
    pub(crate) is_exclusive: bool,
    /// Whether data are sent as they arrive, while the electronics do other work: as frames, without tenures of a bus.
    pub(crate) streams: bool,
}

/// The links between one device and the host, for a call of the device. By default it shares none, and nothing waits for them.
#[derive(Debug, Default)]
pub(crate) struct HostLink<'a>(Option<(&'a mut Links, u32)>);

impl HostLink<'_> {
    /// Whether the device has its bus; if not, its request is queued.
    pub(crate) fn has_bus(&mut self, now: Nanos) -> bool {
        let Some((links, device)) = &mut self.0 else { return true };
        let bus = links.ways[*device as usize].bus;
        bus.is_none_or(|bus| links.buses[bus as usize].1.ask(now, *device))
    }

    /// Gives the device's bus up, if it has it.
    pub(crate) fn release_bus(&mut self, now: Nanos) {
        let Some((links, device)) = &mut self.0 else { return };
        let Some(bus) = links.ways[*device as usize].bus else { return };
        if let Some(from) = links.buses[bus as usize].1.release(now, *device) {
            links.ended.push_back(Tenure { bus, device: *device, from, to: now });
        }
    }

    /// When a command of `bytes` bytes that the host begins to send at `now` has arrived at the device.
    pub(crate) fn command(&mut self, now: Nanos, bytes: u64) -> Nanos {
        let Some((links, device)) = &mut self.0 else { return now };
        let given = links.interface.as_mut().map_or(now, |interface| interface.command(now, bytes));
        links.ring(*device).map_or(given, |(ring, place)| ring.command(given, place))
    }

    /// When a status without data that the device sends at `at` has arrived at the host.
    pub(crate) fn report(&mut self, at: Nanos) -> Nanos {
        let Some((links, device)) = &mut self.0 else { return at };
        links.ring(*device).map_or(at, |(ring, place)| at + ring.report(place))
    }

    /// When the host is notified of a command that ends at `at`.
    pub(crate) fn interrupt(&mut self, now: Nanos, at: Nanos) -> Nanos {
        let Some((links, _)) = &mut self.0 else { return at };
        links.interface.as_mut().map_or(at, |interface| interface.report(now, at))
    }

    /// Transfers the device's data; returns when all of them have arrived.
    pub(crate) fn transfer(&mut self, now: Nanos, transfer: Transfer) -> Nanos {
        match &mut self.0 {
            None => transfer.begins + transfer.least,
            Some((links, device)) => links.transfer(now, *device, transfer),
        }
    }
}
