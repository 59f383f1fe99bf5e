//! The engine: moves time from event to event, and requests through a tree of layers.
//!
//! The leaves are devices, each with the queue in front of it; above them are layers ([`crate::layer`]), and the tops are the
//! *volumes* that a load addresses. The engine carries requests down and answers up, and calls what is due, in the order of time.
//! Of several at one time, devices come first, then layers by their rank ([`build`]), then the load, then the buses that devices
//! share.
//!
//! Modelled: any number of devices, alone or in arrays. Not modelled: time of the host itself, except the cost of transfers for
//! its processor ([`crate::link`]).

mod build;
mod links;
mod media;
mod time;
mod views;
mod walk;

pub use build::LayerPlace;

use crate::device::{Completion, Device};
use crate::events::Events;
use crate::layer::Layer;
use crate::link::Links;
use crate::observe::Finished;
use crate::os::{DeviceQueue, HostError, HostSpec};
use headstack_model::{Nanos, Request};
use slab::Slab;
use std::collections::VecDeque;

use crate::array::ArrayVolume;

/// A node of the tree: the number of a device, or that of a layer after all devices.
type NodeId = u32;

/// A child of a layer, and the port of the child where the layer's requests arrive.
#[derive(Clone, Copy, Debug)]
struct ChildPort {
    node: NodeId,
    port: u32,
}

/// A layer in the tree.
#[derive(Debug)]
struct Branch {
    /// `None` during a call of the layer.
    layer: Option<Box<dyn Layer>>,
    children: Vec<ChildPort>,
    /// The first device below it.
    device: u32,
    rank: build::Rank,
    /// Its place in the engine's `branch_events`.
    event: u32,
    /// Requests that it has not answered.
    in_flight: usize,
}

/// A run of blocks that a load addresses.
#[derive(Clone, Copy, Debug)]
struct Volume {
    root: NodeId,
    /// The first of its devices.
    device: u32,
    sectors: u64,
    sector_bytes: u32,
}

/// The sender of a request.
const LOAD: u32 = u32::MAX;

/// A request in flight between two nodes, or from the load to a volume.
#[derive(Clone, Copy, Debug)]
struct RequestTicket {
    issued: Nanos,
    request: Request,
    /// The sender's number for it.
    id: u64,
    /// The layer that sent it, or `LOAD`.
    from: u32,
    /// The number among the sender's children, or of the volume.
    to: u32,
    source: u32,
}

/// A part of a request that a device's queue has answered, for observers that see parts.
#[derive(Clone, Copy, Debug)]
struct ServedPart {
    device: u32,
    issued: Nanos,
    completion: Completion,
}

/// Moves devices and layers through time.
#[derive(Debug)]
pub struct Engine {
    devices: Vec<DeviceQueue>,
    device_events: Events,
    /// What devices share on their way to the host, while none of them has it.
    links: Option<Box<Links>>,
    branches: Vec<Branch>,
    branch_events: Events,
    /// The branch of each place in `branch_events`.
    ranked: Vec<u32>,
    volumes: Vec<Volume>,
    tickets: Slab<RequestTicket>,
    /// Nodes that got requests and have not settled since.
    touched: Vec<NodeId>,
    /// Requests of the load that were answered by layers, until the load hears of it.
    returned: VecDeque<Finished>,
    /// Parts that have to be shown to the observer, where it sees parts.
    parts: Option<Vec<ServedPart>>,
    /// The device whose answer is on its way up.
    serving: u32,
    /// Requests of the load in flight.
    outstanding: usize,
    /// Whether the load has nothing more to issue.
    done: bool,
    /// When to poll the load again.
    wanted: Nanos,
    powered_off: bool,
    now: Nanos,
}

impl Engine {
    /// Requests in flight for which memory is allocated at the start.
    const AT_ONCE: usize = 1024;

    /// An engine at time 0 with these devices, each a volume, and a host that holds the requests that they cannot accept.
    pub fn new(devices: Vec<Device>) -> Engine {
        Engine::with_queues(devices.into_iter().map(DeviceQueue::plain).collect())
    }

    /// An engine at time 0 with these devices, each a volume, behind a host.
    ///
    /// *Errors:* a key of the host is invalid.
    pub fn with_host(devices: Vec<Device>, host: &HostSpec) -> Result<Engine, HostError> {
        Engine::with_arrays(devices, Vec::new(), host)
    }

    /// An engine at time 0 with these devices behind a host. Devices outside arrays are the first volumes; each array is a further
    /// volume.
    ///
    /// *Errors:* a key of the host is invalid.
    pub fn with_arrays(
        devices: Vec<Device>,
        arrays: Vec<ArrayVolume>,
        host: &HostSpec,
    ) -> Result<Engine, HostError> {
        host.check()?;
        let queues = devices.into_iter().map(|device| DeviceQueue::new(device, host));
        let mut engine = Engine::with_queues(queues.collect::<Result<_, _>>()?);
        engine.add_arrays(arrays);
        if let Some(spec) = &host.page_cache {
            engine.add_page_caches(spec);
        }
        Ok(engine)
    }

    /// Each device is a volume.
    fn with_queues(devices: Vec<DeviceQueue>) -> Engine {
        let volume = |(number, queue): (usize, &DeviceQueue)| {
            let (sectors, sector_bytes) = (queue.device().sectors(), queue.device().sector_bytes());
            Volume { root: number as u32, device: number as u32, sectors, sector_bytes }
        };
        Engine {
            device_events: Events::new(devices.len()),
            volumes: devices.iter().enumerate().map(volume).collect(),
            links: None,
            branches: Vec::new(),
            branch_events: Events::new(0),
            ranked: Vec::new(),
            tickets: Slab::with_capacity(Engine::AT_ONCE),
            touched: Vec::with_capacity(devices.len()),
            devices,
            returned: VecDeque::new(),
            parts: None,
            serving: 0,
            outstanding: 0,
            done: false,
            wanted: Nanos::MAX,
            powered_off: false,
            now: Nanos::ZERO,
        }
    }

    /// Up to when all is done.
    pub fn now(&self) -> Nanos {
        self.now
    }
}
