//! The tree of layers: arrays, page caches, stream schedulers, controllers, and a program's own layers above the devices.

use super::arm_groups::ArmGroups;
use super::branch::{Branch, NodeId};
use super::out::Out;
use crate::events::Events;
use crate::layer::Layer;
use crate::os::{DeviceQueue, PortQueue};
use crate::partition_layer::PartitionLayer;
use crate::rearrange_layer::RearrangeLayer;
use headstack_model::{Instant, Nanos, QuantityReport};
use headstack_streams::rearrange_table::PlacementCopies;
use std::any::Any;

/// A run of blocks that a load addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Volume {
    pub(super) root: NodeId,
    pub(super) device: u32,
    pub(super) sectors: u64,
    pub(super) sector_bytes: u32,
}

/// The devices, the layers above them, and when each of them next has something to do.
#[derive(Debug)]
pub(super) struct LayerTree {
    pub(super) devices: Vec<DeviceQueue>,
    pub(super) device_events: Events,
    pub(super) branches: Vec<Branch>,
    /// The layer of each branch.
    pub(super) layers: Vec<Box<dyn Layer>>,
    pub(super) branch_events: Events,
    /// The branch of each place in `branch_events`.
    pub(super) ranked: Vec<u32>,
    pub(super) volumes: Vec<Volume>,
    /// The node that makes writes durable at each node; `None` where the node itself gets every FLUSH and FUA.
    pub(super) durability: Vec<Option<NodeId>>,
    /// The kinds of layers from the top of a volume, by their places in the list of all; empty before the rig's layers are built.
    pub(super) stack: Vec<usize>,
    /// The devices that are arms of one disk and delay each other's seeks; none in most rigs.
    pub(super) arm_groups: ArmGroups,
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
            layers: Vec::new(),
            branch_events: Events::new(0),
            ranked: Vec::new(),
            durability: Vec::new(),
            stack: Vec::new(),
            arm_groups: ArmGroups::default(),
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

    /// The number of the branch of a node; `None` for a device.
    pub(super) fn branch_of(&self, node: NodeId) -> Option<usize> {
        (node as usize).checked_sub(self.devices.len())
    }

    /// The node of a branch.
    pub(super) fn node_of(&self, number: usize) -> NodeId {
        (self.devices.len() + number) as u32
    }

    /// A layer, and the sink for what it does in a call.
    #[inline]
    pub(super) fn layer_with_sink(&mut self, number: usize, port: u32) -> (&mut dyn Layer, Out<'_>) {
        let LayerTree { devices, branches, layers, branch_events: events, .. } = self;
        let out = Out { devices, branches, events, number, port, forward: None, gathers: false };
        (layers[number].as_mut(), out)
    }

    pub(super) fn downcast<L: Layer>(&self, number: usize) -> Option<&L> {
        (self.layers[number].as_ref() as &dyn Any).downcast_ref()
    }

    fn downcast_mut<L: Layer>(&mut self, number: usize) -> Option<&mut L> {
        (self.layers[number].as_mut() as &mut dyn Any).downcast_mut()
    }

    /// The branch whose layer has the event at a place in `branch_events`.
    pub(super) fn branch_at(&self, event: usize) -> usize {
        self.ranked[event] as usize
    }

    pub(super) fn branch_mut(&mut self, node: NodeId) -> &mut Branch {
        let number = self.branch_of(node).expect("the node is a layer");
        &mut self.branches[number]
    }

    /// The device whose media hold all of a volume's data: the volume itself, or the one below its rearranger.
    pub(super) fn media_device(&self, volume: usize) -> Option<usize> {
        let root = self.volumes[volume].root;
        let node = self.branch_of(root).map_or(Some(root), |number| {
            self.downcast::<RearrangeLayer>(number).map(|_| self.branches[number].children[0].node)
        })?;
        self.branch_of(node).is_none().then_some(node as usize)
    }

    /// The device that has the same blocks as a volume, below layers that change no block numbers.
    pub(super) fn only_device(&self, volume: usize) -> Option<usize> {
        let mut node = self.volumes[volume].root;
        while let Some(number) = self.branch_of(node) {
            let branch = &self.branches[number];
            let is_moved = self.downcast::<PartitionLayer>(number).is_some()
                || self.downcast::<RearrangeLayer>(number).is_some();
            let [child] = &branch.children[..] else { return None };
            node = if is_moved { return None } else { child.node };
        }
        Some(node as usize)
    }

    /// The queue of a device's port at its controller; `None` without a controller.
    pub(super) fn port(&self, device: usize) -> Option<&PortQueue> {
        self.downcast(self.port_number(device)?)
    }

    pub(super) fn port_mut(&mut self, device: usize) -> Option<&mut PortQueue> {
        self.downcast_mut(self.port_number(device)?)
    }

    /// The branch of the host's queue in front of a device's port at its controller.
    pub(super) fn port_number(&self, device: usize) -> Option<usize> {
        self.branches.iter().position(|branch| branch.is_port() && branch.device as usize == device)
    }

    /// The first layer of a type that sends requests to a device.
    pub(super) fn layer_above<L: Layer>(&self, device: usize) -> Option<&L> {
        let is_above = |branch: &Branch| branch.children.iter().any(|child| child.node as usize == device);
        let above = self.branches.iter().enumerate().filter(|(_, branch)| is_above(branch));
        above.map(|(number, _)| number).find_map(|number| self.downcast(number))
    }

    /// The first layer of a type on the path from the top of a volume through the first children.
    pub(super) fn layer_of<L: Layer>(&self, volume: usize) -> Option<&L> {
        self.downcast(self.number_of::<L>(volume)?)
    }

    pub(super) fn layer_of_mut<L: Layer>(&mut self, volume: usize) -> Option<&mut L> {
        self.downcast_mut(self.number_of::<L>(volume)?)
    }

    /// What the layers of each volume report after this time.
    pub(super) fn reports(&self, elapsed: Nanos) -> Vec<QuantityReport> {
        let mut is_reported = vec![false; self.layers.len()];
        let mut of_volume = |volume: &Volume| {
            let (mut report, mut waiting) = (QuantityReport::new(elapsed), vec![volume.root]);
            while let Some(node) = waiting.pop() {
                let Some(number) = self.branch_of(node) else { continue };
                waiting.extend(self.branches[number].children.iter().rev().map(|child| child.node));
                if !std::mem::replace(&mut is_reported[number], true) {
                    let mut own = QuantityReport::new(elapsed);
                    self.layers[number].report(&mut own);
                    report.merge(own);
                }
            }
            report
        };
        self.volumes.iter().map(&mut of_volume).collect()
    }

    /// Restores a rearranger's copies from an earlier run, which moves the end of its period.
    pub(super) fn restore_copies(&mut self, volume: usize, copies: &PlacementCopies) {
        let number = self.number_of::<RearrangeLayer>(volume).expect("the volume has a rearranger");
        let layer = self.downcast_mut::<RearrangeLayer>(number).expect("it was found by its type");
        layer.restore(copies);
        self.rank();
    }

    /// The branch of the first layer of a type.
    fn number_of<L: Layer>(&self, volume: usize) -> Option<usize> {
        let mut node = self.volumes[volume].root;
        while let Some(number) = self.branch_of(node) {
            if self.downcast::<L>(number).is_some() {
                return Some(number);
            }
            node = self.branches[number].children[0].node;
        }
        None
    }
}
