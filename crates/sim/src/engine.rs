//! The engine: moves time from event to event, and requests through a tree of layers.
//!
//! The leaves are devices, each with the queue in front of it; above them are layers ([`crate::layer`]), and the tops are the
//! *volumes* that a load addresses. The engine carries requests down and answers up, and calls each part when it is due, in the
//! order of time. At equal times, devices come first, then layers by their rank ([`tree`]), then the load, then the buses that
//! devices share, and last the controllers that choose late.
//!
//! Modelled: any number of devices, alone or in arrays. The host's own time is that of its processor ([`crate::link`]), where it has one.

mod arm_groups;
mod branch;
mod build;
mod device_layers;
mod durability;
mod links;
mod out;
mod stack;
mod time;
mod tree;
mod walk;

pub use out::{ChildView, Out};
pub(crate) use stack::{MakeNodeQueue, MakeRearranger, StackSpec};
pub use tree::LayerPlace;

use crate::array::ArrayVolume;
use crate::device::{self, ArmRecord, Completion, Device, FaultError, MediaWrite};
use crate::layer::Layer;
use crate::link::{LinkUse, Links, ProcessorUse};
use crate::observe::Finished;
use crate::os::{CgroupSpec, DeviceQueue, DriveSafety, HostSpec};
use crate::rearrange_layer::RearrangeLayer;
use branch::NodeId;
use headstack_model::spec::Fault;
use headstack_model::zones::Zones;
use headstack_model::{Instant, Lbn, QuantityReport, Request};
use headstack_policy::Guard;
use headstack_policy::order::Order;
use headstack_streams::rearrange_table::PlacementCopies;
use links::SharedLinks;
use slab::Slab;
use std::collections::VecDeque;
use tree::LayerTree;

/// The load as the sender of a request.
const LOAD: u32 = u32::MAX;

/// Marks a request that no layer forwarded, and the end of a list of forwards.
const NONE: u32 = u32::MAX;

/// In place of a child's number: the sender held the request and forwarded it, so that its answer goes up without the sender.
const HELD: u32 = u32::MAX;

/// A request in flight between two nodes, or from the load to a volume.
#[derive(Clone, Copy, Debug)]
struct RequestTicket {
    issued: Instant,
    request: Request,
    /// The sender's number for it.
    id: u64,
    /// The layer that sent it, or `LOAD`.
    from: u32,
    /// The number among the sender's children, or `HELD`, or the number of the volume.
    to: u32,
    source: u32,
    /// The first layer that forwarded it, or `NONE`, and that layer's number for it.
    forwarded_by: u32,
    forwarded_key: u32,
    /// The last of the further layers that forwarded it, in `forwards`, or `NONE`.
    forwarded_again: u32,
}

/// A layer that forwarded a request after another one did.
#[derive(Clone, Copy, Debug)]
struct FurtherForward {
    by: u32,
    key: u32,
    /// Where the request began when it arrived at the layer.
    lbn: Lbn,
    /// The forward before it, or `NONE` after the ticket's own.
    previous: u32,
}

/// A part of a request that a device's queue has answered, for observers that see parts.
#[derive(Clone, Copy, Debug)]
struct ServedPart {
    device: u32,
    issued: Instant,
    completion: Completion,
}

/// Devices whose controllers choose after everything else that happens at this time.
#[derive(Debug)]
struct LateChoices {
    nodes: Vec<NodeId>,
    /// When they choose; [`Instant::MAX`] where none does.
    at: Instant,
}

impl LateChoices {
    #[cold]
    fn defer(&mut self, node: NodeId, now: Instant) {
        if !self.nodes.contains(&node) {
            self.nodes.push(node);
        }
        self.at = now;
    }

    fn drain(&mut self) -> Vec<NodeId> {
        self.at = Instant::MAX;
        std::mem::take(&mut self.nodes)
    }
}

/// Moves devices and layers through time.
#[derive(Debug)]
pub struct Engine {
    tree: LayerTree,
    links: SharedLinks,
    tickets: Slab<RequestTicket>,
    forwards: Slab<FurtherForward>,
    /// Nodes that got requests and have not settled since.
    touched: Vec<NodeId>,
    late: LateChoices,
    /// Requests of the load that layers answered, until the load gets the answers.
    returned: VecDeque<Finished>,
    /// Parts to pass to the observer, where it sees parts.
    parts: Option<Vec<ServedPart>>,
    /// The device whose answer is on its way up.
    serving: u32,
    /// That answer, or the last one. It is reused because it is large.
    answered: Finished,
    outstanding: usize,
    /// Whether the load has nothing more to issue.
    done: bool,
    /// When to poll the load again.
    wanted: Instant,
    powered_off: bool,
    now: Instant,
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
    pub fn with_host(devices: Vec<Device>, host: &HostSpec) -> Result<Engine, Fault> {
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
    ) -> Result<Engine, Fault> {
        let stack = StackSpec { arrays, ..StackSpec::of_host(host) };
        Engine::with_stack(devices, stack, None)
    }

    /// An engine at time 0 with these devices, the layers that a rig asks for, and the links that the devices share.
    ///
    /// *Errors:* a key of a section is invalid.
    pub(crate) fn with_stack(
        devices: Vec<Device>,
        mut stack: StackSpec<'_>,
        links: Option<Links>,
    ) -> Result<Engine, Fault> {
        let host = stack.host;
        host.check()?;
        let queues = devices.into_iter().map(|device| DeviceQueue::new(device, host));
        let mut engine = Engine::with_queues(queues.collect::<Result<_, _>>()?);
        stack::build(&mut engine.tree, &mut stack)?;
        let links = links.unwrap_or_else(|| {
            let mut links = Links::new(engine.devices());
            host.add_processor(&mut links);
            links
        });
        Ok(if links.is_any() { engine.with_shared_links(links) } else { engine })
    }

    /// Each device is a volume.
    fn with_queues(devices: Vec<DeviceQueue>) -> Engine {
        Engine {
            links: SharedLinks::default(),
            tickets: Slab::with_capacity(Engine::AT_ONCE),
            forwards: Slab::new(),
            touched: Vec::with_capacity(devices.len()),
            tree: LayerTree::new(devices),
            late: LateChoices { nodes: Vec::new(), at: Instant::MAX },
            returned: VecDeque::new(),
            parts: None,
            serving: 0,
            answered: Finished::on(0, Completion::at_once(Request::flush(), Instant::ZERO)),
            outstanding: 0,
            done: false,
            wanted: Instant::MAX,
            powered_off: false,
            now: Instant::ZERO,
        }
    }

    /// The same engine whose devices share links.
    fn with_shared_links(mut self, links: Links) -> Engine {
        let devices = self.tree.devices.iter_mut().enumerate();
        devices.for_each(|(index, device)| device.share(links.sharing(index)));
        Engine { links: SharedLinks::new(links), ..self }
    }

    /// Inserts a caller's own layer into the tree, above what was at that place, which becomes its child 0. Call it before the
    /// first run.
    ///
    /// Panics if there is no such place.
    pub fn insert(&mut self, place: LayerPlace, layer: Box<dyn Layer>) {
        self.tree.insert(place, layer);
    }

    /// Limits the requests of control groups from here on. `group_of[n]` is the index in `groups` of the group of source n of the load, if it is
    /// in one. Call it at most once, before the first run.
    pub fn limit_groups(&mut self, groups: &[CgroupSpec], group_of: &[Option<usize>]) {
        let host = HostSpec::default();
        let mut spec = StackSpec { groups: Some((groups, group_of)), ..StackSpec::of_host(&host) };
        stack::add_named(&mut self.tree, &mut spec, stack::GROUPS).expect("a limit has no invalid key");
    }

    /// Makes the host keep writes durable on these drives as Linux does, one for each device: by FLUSH, by FUA, or without either. A rig
    /// does so itself; without this call, every FLUSH and FUA of the load reaches the devices. Call it before the first run.
    pub fn keep_durable(&mut self, drives: &[DriveSafety]) {
        let host = HostSpec::default();
        let mut spec = StackSpec { drives: drives.to_vec(), ..StackSpec::of_host(&host) };
        stack::add_named(&mut self.tree, &mut spec, stack::DURABILITY).expect("durability has no key");
    }

    /// The time up to which everything is done.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The load of each part of the shared links; empty if none is shared.
    pub fn link_usage(&self) -> Vec<LinkUse> {
        self.links.usage()
    }

    /// The use of the host's processor; `None` if no work costs any time.
    pub fn processor_usage(&self) -> Option<ProcessorUse> {
        self.links.processor_usage()
    }

    /// How many devices there are.
    pub fn devices(&self) -> usize {
        self.tree.devices.len()
    }

    /// A device.
    pub fn device(&self, index: usize) -> &Device {
        self.tree.devices[index].device()
    }

    /// Logs the accesses of all arms from now on, for [`Engine::poll_arm_record`].
    pub fn log_arms(&mut self) {
        self.tree.devices.iter_mut().for_each(|queue| queue.device_mut().log_arm());
    }

    /// The next access of a device's arm; as [`Device::poll_arm_record`].
    pub fn poll_arm_record(&mut self, device: usize) -> Option<ArmRecord> {
        self.tree.devices[device].device_mut().poll_arm_record()
    }

    /// Makes a device choose by a program's own order, as [`Device::set_order`].
    pub fn set_order(&mut self, device: usize, order: Box<dyn Order>) {
        self.tree.devices[device].device_mut().set_order(order);
    }

    /// Replaces the order of the host's queue for a device by a program's own. The host must have a queue with an order
    /// (`host.queue.order`, for example `fcfs`).
    ///
    /// *Errors:* it has none.
    pub fn set_host_order(&mut self, device: usize, order: Box<dyn Order>) -> Result<(), Fault> {
        match self.tree.port_mut(device) {
            Some(port) => port.set_order(order),
            None => self.tree.devices[device].set_order(order),
        }
    }

    /// The starvation guard of a device; `None` without one.
    pub fn guard(&self, index: usize) -> Option<&Guard> {
        match &self.tree.devices[index] {
            device if device.is_behind_controller() => self.tree.port(index)?.guard(),
            device => device.guard(),
        }
    }

    /// The first layer of a type on the way from the top of a volume to its first device, for its counters; `None` without one.
    pub fn layer<L: Layer>(&self, volume: usize) -> Option<&L> {
        self.tree.layer_of(volume)
    }

    /// What the layers of each volume have counted, from its top to its devices. A layer that several volumes share is in the report of the
    /// first one.
    pub fn reports(&self) -> Vec<QuantityReport> {
        self.tree.reports(self.now().since_start())
    }

    /// As [`Engine::layer`], for a change that moves no time at which the layer wakes.
    pub fn layer_mut<L: Layer>(&mut self, volume: usize) -> Option<&mut L> {
        self.tree.layer_of_mut(volume)
    }

    /// The layer of a type that sends requests to a device, such as its controller; `None` without one.
    pub fn layer_above<L: Layer>(&self, device: usize) -> Option<&L> {
        self.tree.layer_above(device)
    }

    /// Continues with copies that a volume's region held before a restart, and logs changes of its table from now on. Call it before
    /// the first run.
    ///
    /// Panics if the volume has no rearranger, or the copies are not those of its region.
    pub fn restore_copies(&mut self, volume: usize, copies: &PlacementCopies) {
        self.tree.restore_copies(volume, copies);
    }

    /// Whether a volume has a media-write log: it is a single device without a page cache, a node or a controller's memory in
    /// front of it; a rearranger may be. Elsewhere data also wait in places without such a log.
    pub fn tells_media(&self, volume: usize) -> bool {
        self.tree.media_device(volume).is_some()
    }

    /// Enables the media-write logs. Call it before the first run.
    pub fn track_media(&mut self) {
        for device in (0..self.tree.volumes.len())
            .filter_map(|volume| self.tree.media_device(volume))
            .collect::<Vec<_>>()
        {
            self.tree.devices[device].device_mut().track_media();
        }
    }

    /// The next blocks of a volume written to its media, in order; as [`crate::Device::poll_media_write`].
    /// Everything that a flush or a forced write guarantees has been reported when the [`Engine::advance`] that completes it
    /// returns. Below a rearranger, a write to a copy is reported as one to its block.
    pub fn poll_media_write(&mut self, volume: usize) -> Option<MediaWrite> {
        let device = self.tree.media_device(volume)?;
        loop {
            let rearranger = self.tree.layer_of_mut::<RearrangeLayer>(volume);
            if let Some(written) = rearranger.and_then(RearrangeLayer::poll_visible_write) {
                return Some(written);
            }
            let written = self.tree.devices[device].device_mut().poll_media_write()?;
            match self.tree.layer_of_mut::<RearrangeLayer>(volume) {
                Some(layer) => layer.note_media_write(written),
                None => return Some(written),
            }
        }
    }

    /// The zones of a volume with a media-write log; `None` if its disk has none.
    pub fn media_zones(&self, volume: usize) -> Option<&Zones> {
        self.device(self.tree.media_device(volume)?).zones()
    }

    /// Restores the write pointers of a volume with a media-write log; as [`Device::restore_zones`].
    ///
    /// Panics if the volume has no media-write log, or not that many zones.
    pub fn restore_zones(&mut self, volume: usize, written: &[u64]) {
        let device = self.tree.media_device(volume).expect("it has a media-write log");
        self.tree.devices[device].device_mut().restore_zones(written);
    }

    /// Reports the write pointers of a volume that would move if the power failed now; as [`Device::report_zones`].
    pub fn report_zones(&mut self, volume: usize, has_settled: bool, report: &mut dyn FnMut(u32, u64)) {
        if let Some(device) = self.tree.media_device(volume) {
            self.tree.devices[device].device_mut().report_zones(has_settled, report);
        }
    }

    /// Injects a fault into a device's disk; as [`crate::Device::inject`]. The outcome of its commands reaches the load's
    /// requests.
    /// Arrays recover from a dead member as far as their redundancy allows, and from no other fault; page caches and controllers' memories
    /// treat failed transfers as successful.
    ///
    /// *Errors:* as [`crate::Device::inject`].
    pub fn inject(&mut self, device: usize, fault: device::Fault) -> Result<(), FaultError> {
        self.with_links(device, |queue, link, now| {
            queue.handle_timeout(now, link);
            queue.device_mut().inject(fault)
        })?;
        self.settle(device as u32);
        Ok(())
    }

    /// Whether the disk of a volume with a media-write log has died by now ([`device::Fault::Dead`]). Everything written to its media
    /// before is then available from [`Engine::poll_media_write`], and the contents of its cache are lost.
    pub fn has_died(&mut self, volume: usize) -> bool {
        let now = self.now;
        let dead = |device: &usize| self.tree.devices[*device].device().has_died(now);
        let Some(device) = self.tree.media_device(volume).filter(dead) else { return false };
        self.with_links(device, |queue, link, now| queue.handle_timeout(now, link));
        self.settle(device as u32);
        true
    }

    /// Cuts the power of everything at `now`, up to which [`Engine::advance`] must have been called. It reports the finished parts
    /// of writes in progress; nothing happens after that, and outstanding requests never complete.
    pub fn cut_power(&mut self, now: Instant) {
        assert_eq!(now, self.now, "all that was due before has been seen");
        self.tree.devices.iter_mut().for_each(|queue| queue.device_mut().cut_power(now));
        self.powered_off = true;
    }
}
