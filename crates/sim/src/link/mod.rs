//! Shared links between drives and host: an exclusive bus, a rate that transfers share, a loop, and the processor that moves the
//! data.
//!
//! A drive that shares nothing has a bus to itself, and its port computes every time itself. A drive with shared links requests
//! a bus before it uses its port, and has the links compute the end of each transfer. The engine passes the links to each call of the
//! device, so that a device has no clock and needs no knowledge of the future.
//! The winner of a bus is decided after everything else that is due at that time.

mod bus;
mod interface;
mod lane;
mod processor;
mod ring;

pub(crate) use bus::Arbitration;
pub(crate) use interface::InterfaceCost;
pub(crate) use processor::{CommandCost, Processor};
pub use processor::{ProcessorUse, ProcessorWork, WorkKind};
pub(crate) use ring::RingShape;

use bus::ExclusiveBus;
use headstack_model::{Instant, Nanos};
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
    /// When the first of the data can be sent.
    pub(crate) begins: Instant,
    /// Time in which the device alone sends or receives the data.
    pub(crate) least: Nanos,
    pub(crate) bytes: u64,
    pub(crate) to_host: bool,
}

/// The load of a part of the shared links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkUse {
    /// The name of the bus.
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
    pub from: Instant,
    /// When it released the bus.
    pub to: Instant,
}

/// The links that the devices of an engine share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    rings: Vec<(String, Ring)>,
    buses: Vec<(String, ExclusiveBus)>,
    rates: Vec<(String, Lane)>,
    processor: Option<Processor>,
    interface: Option<InterfaceCost>,
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

    /// Adds the host's processor, and what transfers cost it.
    pub(crate) fn set_processor(&mut self, processor: Processor, interface: Option<InterfaceCost>) {
        (self.processor, self.interface) = (Some(processor), interface);
    }

    pub(crate) fn is_any(&self) -> bool {
        self.processor.is_some() || (0..self.ways.len()).any(|device| self.reach(device))
    }

    fn reach(&self, device: usize) -> bool {
        let works = |processor: &Processor| processor.command != CommandCost::default();
        self.interface.is_some()
            || self.processor.as_ref().is_some_and(works)
            || self.ways[device] != Way::default()
    }

    /// The use of the host's processor; `None` without one.
    pub(crate) fn processor_usage(&self) -> Option<ProcessorUse> {
        self.processor.as_ref().map(Processor::usage)
    }

    /// Does work of a program or layer from `now` on; returns its end.
    pub(crate) fn run(&mut self, now: Instant, work: &ProcessorWork) -> Instant {
        match &mut self.processor {
            Some(processor) => processor.run(now, work),
            None => now + work.total(),
        }
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
        rings.chain(buses).chain(rates).collect()
    }

    /// When the next bus is won; `Instant::MAX` without requests.
    pub(crate) fn next_event(&self) -> Instant {
        self.buses.iter().map(|(_, bus)| bus.next_event()).min().unwrap_or(Instant::MAX)
    }

    /// The next device that wins its bus now.
    pub(crate) fn arbitrate(&mut self, now: Instant) -> Option<u32> {
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
        let takes = |bus: u32| self.buses[bus as usize].1.arbitration_time();
        let arbitration = bus.map_or(Nanos::ZERO, takes);
        PortSharing { is_shared, is_exclusive: bus.is_some(), arbitration, streams: ring.is_some() }
    }

    /// The links of a device, to be passed to a call of it.
    #[inline]
    pub(crate) fn host_link(&mut self, device: usize) -> HostLink<'_> {
        HostLink(self.reach(device).then_some((self, device as u32)))
    }

    fn ring(&mut self, device: u32) -> Option<(&mut Ring, u32)> {
        let (ring, place) = self.ways[device as usize].ring?;
        Some((&mut self.rings[ring as usize].1, place))
    }

    fn transfer(&mut self, now: Instant, device: u32, transfer: Transfer) -> Instant {
        let Transfer { begins, least, bytes, to_host } = transfer;
        let mut flow = Flow { begins, least, units: bytes };
        if let Some((ring, place)) = self.ring(device) {
            flow.least = ring.transfer(now, place, flow, to_host) - begins;
        }
        for rate in self.ways[device as usize].rates.into_iter().flatten() {
            flow.least = self.rates[rate as usize].1.take(now, flow) - begins;
        }
        match (&self.interface, &mut self.processor) {
            (Some(interface), Some(processor)) => {
                let work = interface.words(processor.command.interrupt, bytes, to_host);
                processor.occupy(now, begins, flow.least, &work)
            }
            _ => begins + flow.least,
        }
    }

    /// When the processor has submitted a command of `bytes` bytes.
    fn submit(&mut self, now: Instant, bytes: u64) -> Instant {
        let Some(processor) = &mut self.processor else { return now };
        let list = self.interface.as_ref().map_or(Nanos::ZERO, |interface| interface.list(bytes));
        processor.run(now, &ProcessorWork::new(WorkKind::Submit, processor.command.submit + list))
    }

    /// When the processor has handled the interrupt of a command that ends at `at`.
    fn interrupt(&mut self, now: Instant, at: Instant) -> Instant {
        match &mut self.processor {
            Some(processor) if !self.interface.as_ref().is_some_and(InterfaceCost::is_programmed) => {
                let work = ProcessorWork::new(WorkKind::Interrupt, processor.command.interrupt);
                processor.occupy(now, at, Nanos::ZERO, &work)
            }
            _ => at,
        }
    }
}

/// What a device's port shares with those of others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortSharing {
    pub(crate) is_shared: bool,
    /// Whether the device has to win its bus.
    pub(crate) is_exclusive: bool,
    /// Time of an arbitration for it.
    pub(crate) arbitration: Nanos,
    /// Whether data are sent as they arrive, while the electronics do other work: as frames, without tenures of a bus.
    pub(crate) streams: bool,
}

/// The links between one device and the host, passed to a call of the device. By default it shares none, and they delay nothing.
#[derive(Debug, Default)]
pub(crate) struct HostLink<'a>(Option<(&'a mut Links, u32)>);

impl HostLink<'_> {
    /// Whether the device has its bus; if not, its request is queued.
    pub(crate) fn has_bus(&mut self, now: Instant) -> bool {
        let Some((links, device)) = &mut self.0 else { return true };
        let bus = links.ways[*device as usize].bus;
        bus.is_none_or(|bus| links.buses[bus as usize].1.ask(now, *device))
    }

    /// Releases the device's bus, if it has it.
    pub(crate) fn release_bus(&mut self, now: Instant) {
        let Some((links, device)) = &mut self.0 else { return };
        let Some(bus) = links.ways[*device as usize].bus else { return };
        if let Some(from) = links.buses[bus as usize].1.release(now, *device) {
            links.ended.push_back(Tenure { bus, device: *device, from, to: now });
        }
    }

    /// When a command of `bytes` bytes that the host begins to send at `now` has arrived at the device.
    pub(crate) fn command(&mut self, now: Instant, bytes: u64) -> Instant {
        let Some((links, device)) = &mut self.0 else { return now };
        let given = links.submit(now, bytes);
        links.ring(*device).map_or(given, |(ring, place)| ring.command(given, place))
    }

    /// When a status without data that the device sends at `at` has arrived at the host.
    pub(crate) fn report(&mut self, at: Instant) -> Instant {
        let Some((links, device)) = &mut self.0 else { return at };
        links.ring(*device).map_or(at, |(ring, place)| at + ring.report(place))
    }

    /// When the host is notified of a command that ends at `at`.
    pub(crate) fn interrupt(&mut self, now: Instant, at: Instant) -> Instant {
        let Some((links, _)) = &mut self.0 else { return at };
        links.interrupt(now, at)
    }

    /// Transfers the device's data; returns when all of them have arrived.
    pub(crate) fn transfer(&mut self, now: Instant, transfer: Transfer) -> Instant {
        match &mut self.0 {
            None => transfer.begins + transfer.least,
            Some((links, device)) => links.transfer(now, *device, transfer),
        }
    }
}
