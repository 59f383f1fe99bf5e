//! What a program can read of a rig, and the orders that it can replace.

use super::{Engine, NodeId};
use crate::array::ArrayLayer;
use crate::controller::{Controller, ControllerActivity};
use crate::device::Device;
use crate::layer::Layer;
use crate::os::{HostError, PageCache, PageCacheActivity, PortQueue};
use crate::stream_layer::StreamLayer;
use headstack_policy::Guard;
use headstack_policy::order::Order;
use headstack_policy::streams::Streams;
use std::any::Any;

impl Engine {
    /// How many devices there are.
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// A device.
    pub fn device(&self, index: usize) -> &Device {
        self.devices[index].device()
    }

    /// Has a device choose by a program's own order, as [`Device::set_order`].
    pub fn set_order(&mut self, device: usize, order: Box<dyn Order>) {
        self.devices[device].device_mut().set_order(order);
    }

    /// Replaces the order of the host's queue for a device by a program's own. The host must have a queue with an order
    /// (`host.queue.order`, for example `fcfs`).
    ///
    /// *Errors:* it has none.
    pub fn set_host_order(&mut self, device: usize, order: Box<dyn Order>) -> Result<(), HostError> {
        let port = self.branches.iter_mut().filter(|branch| branch.device as usize == device);
        let port = port.filter_map(|branch| {
            (branch.layer.as_mut()?.as_mut() as &mut dyn Any).downcast_mut::<PortQueue>()
        });
        match port.last() {
            Some(port) => port.set_order(order),
            None => self.devices[device].set_order(order),
        }
    }

    /// The starvation guard of a device; `None` without one.
    pub fn guard(&self, index: usize) -> Option<&Guard> {
        if !self.devices[index].is_behind_controller() {
            return self.devices[index].guard();
        }
        let mut ports = self.branches.iter().filter(|branch| branch.device as usize == index);
        ports.find_map(|branch| downcast::<PortQueue>(branch.layer.as_deref()?))?.guard()
    }

    /// The counters of a volume's page cache; `None` without a page cache.
    pub fn page_cache(&self, volume: usize) -> Option<&PageCacheActivity> {
        self.layer_of::<PageCache>(volume).map(PageCache::activity)
    }

    /// Dirty pages in the page cache of a volume.
    pub fn dirty_pages(&self, volume: usize) -> usize {
        self.layer_of::<PageCache>(volume).map_or(0, PageCache::dirty)
    }

    /// Blocks of a volume's spares that have been filled, and those of all its spares.
    pub fn rebuilt(&self, volume: usize) -> (u64, u64) {
        self.layer_of::<ArrayLayer>(volume).map_or((0, 0), ArrayLayer::rebuilt)
    }

    /// The stream scheduler of a volume; `None` without a node.
    pub fn streams(&self, volume: usize) -> Option<&Streams> {
        self.layer_of::<StreamLayer>(volume).map(StreamLayer::streams)
    }

    /// The counters of a device's controller; `None` without a smart controller.
    pub fn controller(&self, device: usize) -> Option<&ControllerActivity> {
        self.controller_of(device).map(Controller::activity)
    }

    /// Dirty data in the cache of a device's controller: lines of its memory, or sectors of the drive that is the cache.
    pub fn controller_dirty(&self, device: usize) -> u64 {
        self.controller_of(device).map_or(0, Controller::dirty)
    }

    fn controller_of(&self, device: usize) -> Option<&Controller> {
        let mut above = self
            .branches
            .iter()
            .filter(|branch| branch.children.iter().any(|child| child.node as usize == device));
        above.find_map(|branch| downcast(branch.layer.as_deref()?))
    }

    /// The first layer of a type on the way from the top of a volume down its first children.
    fn layer_of<L: Layer>(&self, volume: usize) -> Option<&L> {
        let mut node: NodeId = self.volumes[volume].root;
        while let Some(number) = self.branch_of(node) {
            let branch = &self.branches[number];
            if let Some(layer) = branch.layer.as_deref().and_then(downcast) {
                return Some(layer);
            }
            node = branch.children[0].node;
        }
        None
    }
}

fn downcast<L: Layer>(layer: &dyn Layer) -> Option<&L> {
    (layer as &dyn Any).downcast_ref()
}
