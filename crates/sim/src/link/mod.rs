//! What drives share on their way to the host: the loop that they stand on.
//!
//! A drive that shares nothing has its bus to itself and its port knows how long everything takes. One that does asks for
//! each transfer when it is over. The engine lends the links to the device whose turn it is, so that a device stays a
//! machine that is only told the time, and asks for nothing that has not come yet.

mod lane;
mod ring;

pub(crate) use ring::RingShape;

use headstack_model::Nanos;
use lane::Flow;
use ring::Ring;

/// The way of a device to the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    /// The loop that it stands on, and its place there.
    pub(crate) ring: Option<(u32, u32)>,
}

/// A device's data on their way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// When the first of them can go.
    pub(crate) begins: Nanos,
    /// Time over which the device gives or takes them, left to itself.
    pub(crate) least: Nanos,
    pub(crate) bytes: u64,
    pub(crate) to_host: bool,
}

/// What a part of a link that drives share has carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkUse {
    /// The name of the bus.
    pub name: String,
    /// Which part of it.
    pub part: &'static str,
    /// Time for which what it has carried fills it.
    pub busy: Nanos,
}

/// What the devices of an engine share.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    rings: Vec<Ring>,
    /// The names of the loops.
    names: Vec<String>,
    /// The way of each device.
    ways: Vec<Way>,
}

impl Links {
    pub(crate) fn new(rings: Vec<(String, RingShape)>, ways: Vec<Way>) -> Links {
        let (names, rings): (_, Vec<RingShape>) = rings.into_iter().unzip();
        Links { rings: rings.iter().map(Ring::new).collect(), names, ways }
    }

    /// What each part of the links has carried.
    pub(crate) fn usage(&self) -> Vec<LinkUse> {
        let parts = |(name, ring): (&String, &Ring)| {
            ring.busy().map(|(part, busy)| LinkUse { name: name.clone(), part, busy })
        };
        self.names.iter().zip(&self.rings).flat_map(parts).collect()
    }

    /// Whether a device shares anything.
    pub(crate) fn reach(&self, device: usize) -> bool {
        self.ways.get(device).is_some_and(|way| *way != Way::default())
    }

    fn ring(&mut self, device: u32) -> Option<(&mut Ring, u32)> {
        let (ring, place) = self.ways[device as usize].ring?;
        Some((&mut self.rings[ring as usize], place))
    }

    /// Whether a device's data go as they come, while its electronics do other things: frames, not tenures of a bus.
    pub(crate) fn streams(&self, device: u32) -> bool {
        self.ways[device as usize].ring.is_some()
    }

    /// When a command that is given at `now` has come to its device.
    pub(crate) fn command(&mut self, now: Nanos, device: u32) -> Nanos {
        self.ring(device).map_or(now, |(ring, place)| ring.command(now, place))
    }

    /// When what a device reports at `at` has come to the host.
    pub(crate) fn report(&mut self, at: Nanos, device: u32) -> Nanos {
        self.ring(device).map_or(at, |(ring, place)| at + ring.report(place))
    }

    /// Carries a device's data; tells when all of them are there.
    pub(crate) fn transfer(&mut self, now: Nanos, device: u32, transfer: Transfer) -> Nanos {
        let Transfer { begins, least, bytes, to_host } = transfer;
        let flow = Flow { begins, least, units: bytes };
        match self.ring(device) {
            Some((ring, place)) => ring.transfer(now, place, flow, to_host),
            None => begins + least,
        }
    }
}
