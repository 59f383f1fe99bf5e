//! The tree of layers: arrays, page caches, stream schedulers, controllers, and a program's own layers above the devices.

use crate::array::{ArrayLayer, ArrayVolume};
use crate::controller::{Controller, ControllerSetup};
use crate::events::Events;
use crate::layer::Layer;
use crate::os::{
    CallLayer, CgroupSpec, CopyCost, DeviceQueue, HostError, HostQueueSpec, HostSpec, PageCache, PortQueue,
};
use crate::partition_layer::{self, PartitionLayer};
use crate::rearrange_layer::RearrangeLayer;
use crate::stream_layer::StreamLayer;
use crate::throttle_layer::ThrottleLayer;
use headstack_model::Instant;
use headstack_policy::rearrange_table::PlacementCopies;
use headstack_policy::streams::{Config, ConfigError};
use std::any::Any;

/// A node of the tree: the number of a device, or that of a layer after all devices.
pub(super) type NodeId = u32;

/// A child of a layer, and the port of the child where the layer's requests arrive.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildPort {
    pub(super) node: NodeId,
    pub(super) port: u32,
}

#[derive(Debug)]
pub(super) struct Branch {
    /// `None` during a call of the layer.
    pub(super) layer: Option<Box<dyn Layer>>,
    pub(super) children: Vec<ChildPort>,
    /// The first device below it.
    pub(super) device: u32,
    pub(super) rank: Rank,
    /// Its place in the tree's `branch_events`.
    event: u32,
    pub(super) in_flight: usize,
}

impl Branch {
    /// Whether it is the host's queue in front of a controller's port, which stands for a drive.
    pub(super) fn is_port(&self) -> bool {
        self.rank.kind == LayerKind::Port
    }

    /// Whether it makes writes durable at its child.
    pub(super) fn is_durability(&self) -> bool {
        self.rank.kind == LayerKind::Durability
    }

    fn downcast<L: Layer>(&self) -> Option<&L> {
        (self.layer.as_deref()? as &dyn Any).downcast_ref()
    }
}

/// A run of blocks that a load addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Volume {
    pub(super) root: NodeId,
    device: u32,
    sectors: u64,
    sector_bytes: u32,
}

/// The devices, the layers above them, and when each of them next has something to do.
#[derive(Debug)]
pub(super) struct LayerTree {
    pub(super) devices: Vec<DeviceQueue>,
    pub(super) device_events: Events,
    pub(super) branches: Vec<Branch>,
    pub(super) branch_events: Events,
    /// The branch of each place in `branch_events`.
    ranked: Vec<u32>,
    pub(super) volumes: Vec<Volume>,
    /// The node that makes writes durable at each node; `None` where the node itself gets every FLUSH and FUA.
    pub(super) durability: Vec<Option<NodeId>>,
    /// The devices that are arms of one disk and delay each other's seeks; none in most rigs.
    pub(super) arm_groups: Vec<Vec<u32>>,
}

/// The order of layers with events at one time: by kind, and by number within a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) kind: LayerKind,
    pub(super) number: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LayerKind {
    Calls,
    PageCache,
    Throttle,
    Partition,
    Array,
    Streams,
    Rearrange,
    /// The host's queue in front of a disk with several arms.
    DiskQueue,
    Port,
    Controller,
    /// The host's FLUSH and FUA.
    Durability,
    Own,
}

/// The place of a program's own layer in a rig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerPlace {
    /// At the top of the volume with this number, above its page cache.
    Volume(u32),
    /// Directly above the device with this number and the queue in front of it.
    Device(u32),
}

impl LayerTree {
    /// Each device is a volume.
    pub(super) fn new(devices: Vec<DeviceQueue>) -> LayerTree {
        let volume = |(number, queue): (usize, &DeviceQueue)| {
            let (sectors, sector_bytes) = (queue.device().sectors(), queue.device().sector_bytes());
            Volume { root: number as u32, device: number as u32, sectors, sector_bytes }
        };
        LayerTree {
            device_events: Events::new(devices.len()),
            volumes: devices.iter().enumerate().map(volume).collect(),
            devices,
            branches: Vec::new(),
            branch_events: Events::new(0),
            ranked: Vec::new(),
            durability: Vec::new(),
            arm_groups: Vec::new(),
        }
    }

    /// The next event of a device after the end of a load; `Instant::MAX` if devices only have bands to clean in idle time.
    #[cold]
    pub(super) fn next_device_event_at_rest(&self) -> Instant {
        let has_none = |device: &DeviceQueue| {
            device.device().has_only_cleaning() || device.next_event(Instant::ZERO) == Instant::MAX
        };
        if self.devices.iter().all(has_none) { Instant::MAX } else { self.device_events.first() }
    }

    /// Puts a stream scheduler in front of all volumes, below their page caches.
    ///
    /// *Errors:* a key of its configuration is out of its range.
    pub(super) fn add_schedulers(&mut self, config: &Config) -> Result<(), ConfigError> {
        for number in 0..self.volumes.len() {
            let Volume { sectors, sector_bytes, .. } = self.volumes[number];
            let mut layer = Box::new(StreamLayer::new(config, sectors, sector_bytes)?);
            // The members of a concatenation have an arm each. A rearranger moves blocks from one to another.
            let is_moved = self.layer_of::<RearrangeLayer>(number).is_some();
            let array = self.layer_of::<ArrayLayer>(number).filter(|_| !is_moved);
            if let Some(starts) = array.and_then(ArrayLayer::concatenated_starts) {
                layer.set_arms(starts);
            }
            let only = self.only_device(number);
            if let Some(zones) = only.and_then(|only| self.devices[only].device().zones()) {
                layer.set_write_zones(zones.layout().zone_sectors);
            }
            let limits = only.map_or(&[][..], |only| self.devices[only].device().reads_without_abort());
            layer.set_read_limits(limits.iter().copied());
            self.add_below_page_cache(LayerKind::Streams, number, layer);
        }
        Ok(())
    }

    /// Puts the limits of control groups in front of all volumes, below their page caches.
    pub(super) fn add_throttles(&mut self, groups: &[CgroupSpec], group_of: &[Option<usize>]) {
        for number in 0..self.volumes.len() {
            let layer = ThrottleLayer::new(groups, group_of, self.volumes[number].sector_bytes);
            self.add_below_page_cache(LayerKind::Throttle, number, Box::new(layer));
        }
    }

    /// Puts a layer in front of a volume. Calls and a page cache stay above it.
    fn add_below_page_cache(&mut self, kind: LayerKind, volume: usize, layer: Box<dyn Layer>) {
        let Volume { root, device, .. } = self.volumes[volume];
        let is_above = |branch: &usize| {
            matches!(self.branches[*branch].rank.kind, LayerKind::Calls | LayerKind::PageCache)
        };
        let first = self.branch_of(root).filter(is_above);
        let second =
            first.and_then(|first| self.branch_of(self.branches[first].children[0].node)).filter(is_above);
        let above = second.or(first);
        let below = above.map_or(root, |above| self.branches[above].children[0].node);
        let rank = Rank { kind, number: volume as u32 };
        let node = self.add(layer, vec![ChildPort { node: below, port: 0 }], device, rank);
        match above {
            Some(above) => self.branches[above].children[0].node = node,
            None => self.volumes[volume].root = node,
        }
    }

    pub(super) fn insert(&mut self, place: LayerPlace, layer: Box<dyn Layer>) {
        let rank = Rank { kind: LayerKind::Own, number: self.branches.len() as u32 };
        match place {
            LayerPlace::Volume(number) => {
                let Volume { root, device, .. } = self.volumes[number as usize];
                let node = self.add(layer, vec![ChildPort { node: root, port: 0 }], device, rank);
                self.volumes[number as usize].root = node;
            }
            LayerPlace::Device(device) => {
                assert!((device as usize) < self.devices.len(), "there is a device {device}");
                self.add_above(device, layer, device, rank);
            }
        }
    }

    pub(super) fn add_arrays(&mut self, arrays: Vec<ArrayVolume>) {
        let mut is_member = vec![false; self.devices.len()];
        for device in arrays.iter().flat_map(ArrayVolume::devices) {
            assert!(
                !std::mem::replace(&mut is_member[*device as usize], true),
                "device {device} is in one array"
            );
        }
        self.volumes.retain(|volume| !is_member[volume.device as usize]);
        for array in arrays {
            self.add_arm_group(&array);
            let device = array.devices()[0];
            let first = self.devices[device as usize].device();
            let (member_sectors, sector_bytes, sectors) =
                (first.sectors(), first.sector_bytes(), array.sectors());
            let children =
                array.devices().iter().map(|device| ChildPort { node: *device, port: 0 }).collect();
            let rank = Rank { kind: LayerKind::Array, number: self.volumes.len() as u32 };
            let layer = Box::new(ArrayLayer::new(array, member_sectors, sector_bytes));
            let root = self.add(layer, children, device, rank);
            self.volumes.push(Volume { root, device, sectors, sector_bytes });
        }
    }

    /// Puts a rearranger in front of each volume, whose reserved sectors are hidden from then on; does nothing without layers.
    pub(super) fn add_rearrangers(&mut self, layers: Vec<RearrangeLayer>) {
        for (number, layer) in layers.into_iter().enumerate() {
            self.volumes[number].sectors = layer.visible_sectors();
            self.add_on_top(LayerKind::Rearrange, number, layer);
        }
    }

    /// Puts the start of a partition in front of each volume, whose sectors before it are hidden from then on, if there is one.
    ///
    /// *Errors:* a volume has no such sector.
    pub(super) fn add_partitions(&mut self, host: &HostSpec) -> Result<(), HostError> {
        let start = host.partition_start;
        for number in 0..self.volumes.len() * usize::from(start > 0) {
            let Volume { sectors, sector_bytes, .. } = self.volumes[number];
            let first = partition_layer::first_sector(start, sectors, sector_bytes);
            let first = first.map_err(|message| HostError::new("partition_start", message))?;
            self.volumes[number].sectors -= first;
            self.add_on_top(LayerKind::Partition, number, PartitionLayer::new(first));
        }
        Ok(())
    }

    /// Puts a page cache in front of each volume, if the host has one.
    pub(super) fn add_page_caches(&mut self, host: &HostSpec) {
        let Some(spec) = &host.page_cache else { return };
        for number in 0..self.volumes.len() {
            let Volume { sectors, sector_bytes, .. } = self.volumes[number];
            let copies = CopyCost::new(host, sector_bytes);
            self.add_on_top(
                LayerKind::PageCache,
                number,
                PageCache::new(spec, copies, sectors, sector_bytes),
            );
        }
    }

    /// Puts the host's calls in front of each volume, if they take any time.
    pub(super) fn add_calls(&mut self, host: &HostSpec) {
        let Some(cost) = host.call_cost() else { return };
        for number in 0..self.volumes.len() {
            let layer = CallLayer::new(cost, self.volumes[number].sector_bytes);
            self.add_on_top(LayerKind::Calls, number, layer);
        }
    }

    fn add_on_top(&mut self, kind: LayerKind, volume: usize, layer: impl Layer) {
        let Volume { root, device, .. } = self.volumes[volume];
        let rank = Rank { kind, number: volume as u32 };
        self.volumes[volume].root =
            self.add(Box::new(layer), vec![ChildPort { node: root, port: 0 }], device, rank);
    }

    pub(super) fn put_behind(
        &mut self,
        setup: &ControllerSetup<'_>,
        host: &HostSpec,
    ) -> Result<(), HostError> {
        let ControllerSetup { spec, drives, cache } = setup;
        let (order, merge, depth) = (spec.order.clone(), spec.merge, spec.drive_depth);
        let queue = HostQueueSpec { order, merge, depth, ..HostQueueSpec::default() };
        let depth = spec.queue_depth.map_or(usize::MAX, |depth| depth as usize);
        let sectors = drives.iter().map(|device| self.devices[*device as usize].device().sectors()).collect();
        let controller = Box::new(Controller::new(spec, sectors, *cache));
        let rank = Rank { kind: LayerKind::Controller, number: self.branches.len() as u32 };
        let controller = self.add(controller, Vec::new(), drives[0], rank);
        for (port, &device) in drives.iter().enumerate() {
            let (sectors, sector_bytes) = {
                let device = self.devices[device as usize].device();
                (device.sectors(), device.sector_bytes())
            };
            let layer = Box::new(PortQueue::new(sectors, sector_bytes, depth, &[], &host.queue.of_arm())?);
            let node = self.add_above(device, layer, device, Rank { kind: LayerKind::Port, number: device });
            let to = ChildPort { node: controller, port: port as u32 };
            self.branch_mut(node).children = vec![to];
            self.devices[device as usize].put_behind_controller(&queue, spec.late_choice)?;
        }
        self.branch_mut(controller).children =
            drives.iter().map(|device| ChildPort { node: *device, port: 0 }).collect();
        Ok(())
    }

    /// Puts the host's queue in front of each disk with several arms, below its page cache, if the host has one queue for a whole disk. The disk
    /// accepts as many commands as the controller of its arms, or as all of them.
    ///
    /// *Errors:* a volume is neither a concatenation nor striped by tracks; a key of the queue is invalid.
    pub(super) fn add_disk_queues(&mut self, host: &HostSpec) -> Result<(), HostError> {
        if !host.queue.whole_disk {
            return Ok(());
        }
        for number in 0..self.volumes.len() {
            let Volume { device, sectors, sector_bytes, .. } = self.volumes[number];
            let is_array = |branch: &Branch| branch.device == device && branch.rank.kind == LayerKind::Array;
            let found = self.branches.iter().position(is_array);
            let arms_of = |found: usize| self.branches[found].downcast::<ArrayLayer>()?.arms();
            let disk =
                found.and_then(|found| arms_of(found).map(|(arms, starts)| (found, arms, starts.to_vec())));
            let Some((found, arms, starts)) = disk else {
                let message = format!(
                    "volume {number} is no disk with several arms: no concatenation, and no striping with `track_aligned`"
                );
                return Err(HostError::new("queue.whole_disk", message));
            };
            // The arms of a disk are alike.
            let own = arms * self.devices[device as usize].device().depth();
            let depth = self.port(device as usize).map_or(own, |port| port.depth().min(own));
            let layer = Box::new(PortQueue::new(sectors, sector_bytes, depth, &starts, &host.queue)?);
            let node = (self.devices.len() + found) as u32;
            self.add_above(node, layer, device, Rank { kind: LayerKind::DiskQueue, number: device });
        }
        Ok(())
    }

    /// Inserts a layer between a node and all nodes that send requests to it.
    fn add_above(&mut self, below: NodeId, layer: Box<dyn Layer>, device: u32, rank: Rank) -> NodeId {
        let node = (self.devices.len() + self.branches.len()) as u32;
        let edges = self.branches.iter_mut().flat_map(|branch| branch.children.iter_mut());
        edges.filter(|child| child.node == below).for_each(|child| child.node = node);
        self.volumes.iter_mut().filter(|volume| volume.root == below).for_each(|volume| volume.root = node);
        self.add(layer, vec![ChildPort { node: below, port: 0 }], device, rank)
    }

    fn add(&mut self, layer: Box<dyn Layer>, children: Vec<ChildPort>, device: u32, rank: Rank) -> NodeId {
        let node = self.add_unranked(layer, children, device, rank);
        self.rank();
        node
    }

    /// Adds a layer; [`LayerTree::rank`] must follow before the first event.
    pub(super) fn add_unranked(
        &mut self,
        layer: Box<dyn Layer>,
        children: Vec<ChildPort>,
        device: u32,
        rank: Rank,
    ) -> NodeId {
        self.branches.push(Branch { layer: Some(layer), children, device, rank, event: 0, in_flight: 0 });
        (self.devices.len() + self.branches.len() - 1) as u32
    }

    pub(super) fn rank(&mut self) {
        self.ranked = (0..self.branches.len() as u32).collect();
        self.ranked.sort_by_key(|branch| self.branches[*branch as usize].rank);
        self.branch_events = Events::new(self.branches.len());
        for (event, branch) in self.ranked.iter().enumerate() {
            let branch = &mut self.branches[*branch as usize];
            branch.event = event as u32;
            let layer = branch.layer.as_ref().expect("no layer is taking a request");
            self.branch_events.set(event, layer.next_event());
        }
    }

    /// The number of the branch of a node; `None` for a device.
    pub(super) fn branch_of(&self, node: NodeId) -> Option<usize> {
        (node as usize).checked_sub(self.devices.len())
    }

    pub(super) fn layer(&mut self, number: usize) -> &mut dyn Layer {
        self.branches[number].layer.as_deref_mut().expect("the layer is taking no request")
    }

    /// The branch whose layer has the event at a place in `branch_events`.
    pub(super) fn branch_at(&self, event: usize) -> usize {
        self.ranked[event] as usize
    }

    pub(super) fn schedule(&mut self, number: usize) {
        let next = self.layer(number).next_event();
        self.branch_events.set(self.branches[number].event as usize, next);
    }

    fn branch_mut(&mut self, node: NodeId) -> &mut Branch {
        let number = self.branch_of(node).expect("the node is a layer");
        &mut self.branches[number]
    }

    /// The device whose media hold all of a volume's data: the volume itself, or the one below its rearranger.
    pub(super) fn media_device(&self, volume: usize) -> Option<usize> {
        let root = self.volumes[volume].root;
        let below = self.branch_of(root).map(|number| &self.branches[number]);
        let node = match below {
            Some(branch) => branch.downcast::<RearrangeLayer>().map(|_| branch.children[0].node)?,
            None => root,
        };
        self.branch_of(node).is_none().then_some(node as usize)
    }

    /// The device that has the same blocks as a volume, below layers that change no block numbers.
    fn only_device(&self, volume: usize) -> Option<usize> {
        let mut node = self.volumes[volume].root;
        while let Some(number) = self.branch_of(node) {
            let branch = &self.branches[number];
            let is_moved =
                branch.rank.kind == LayerKind::Partition || branch.downcast::<RearrangeLayer>().is_some();
            let [child] = &branch.children[..] else { return None };
            node = if is_moved { return None } else { child.node };
        }
        Some(node as usize)
    }

    /// The queue of a device's port at its controller; `None` without a controller.
    pub(super) fn port(&self, device: usize) -> Option<&PortQueue> {
        let mut above =
            self.branches.iter().filter(|branch| branch.is_port() && branch.device as usize == device);
        above.find_map(Branch::downcast)
    }

    pub(super) fn port_mut(&mut self, device: usize) -> Option<&mut PortQueue> {
        let is_above = |branch: &&mut Branch| branch.is_port() && branch.device as usize == device;
        let above = self.branches.iter_mut().filter(is_above);
        let layers = above.filter_map(|branch| branch.layer.as_deref_mut());
        layers.filter_map(|layer| (layer as &mut dyn Any).downcast_mut()).last()
    }

    pub(super) fn controller(&self, device: usize) -> Option<&Controller> {
        let is_above = |branch: &&Branch| branch.children.iter().any(|child| child.node as usize == device);
        self.branches.iter().filter(is_above).find_map(Branch::downcast)
    }

    /// The first layer of a type on the path from the top of a volume through the first children.
    pub(super) fn layer_of<L: Layer>(&self, volume: usize) -> Option<&L> {
        self.branches[self.number_of::<L>(volume)?].downcast()
    }

    pub(super) fn layer_of_mut<L: Layer>(&mut self, volume: usize) -> Option<&mut L> {
        let number = self.number_of::<L>(volume)?;
        (self.layer(number) as &mut dyn Any).downcast_mut()
    }

    /// Restores a rearranger's copies from an earlier run, which moves the end of its period.
    pub(super) fn restore_copies(&mut self, volume: usize, copies: &PlacementCopies) {
        let number = self.number_of::<RearrangeLayer>(volume).expect("the volume has a rearranger");
        let layer = (self.layer(number) as &mut dyn Any).downcast_mut::<RearrangeLayer>();
        layer.expect("it was found by its type").restore(copies);
        self.schedule(number);
    }

    /// The branch of the first layer of a type.
    fn number_of<L: Layer>(&self, volume: usize) -> Option<usize> {
        let mut node = self.volumes[volume].root;
        while let Some(number) = self.branch_of(node) {
            let branch = &self.branches[number];
            if branch.downcast::<L>().is_some() {
                return Some(number);
            }
            node = branch.children[0].node;
        }
        None
    }
}
