//! Builds the tree: arrays, page caches, stream schedulers, controllers, and a program's own layers.

use super::{Branch, ChildPort, Engine, NodeId, Volume};
use crate::array::{ArrayLayer, ArrayVolume};
use crate::controller::{Controller, ControllerSetup};
use crate::events::Events;
use crate::layer::Layer;
use crate::os::{HostError, HostQueueSpec, HostSpec, PageCache, PageCacheSpec, PortQueue};
use crate::stream_layer::StreamLayer;
use headstack_policy::streams::{Config, ConfigError};

/// The order of layers with events at one time: by kind, and by number within a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    kind: LayerKind,
    number: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LayerKind {
    PageCache,
    Array,
    Streams,
    Port,
    Controller,
    Own,
}

/// The place of a program's own layer in a rig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerPlace {
    /// At the top of the volume with this number, before its page cache.
    Volume(u32),
    /// Directly above the device with this number and the queue in front of it.
    Device(u32),
}

impl Engine {
    /// The same engine with a stream scheduler before all volumes, below their page caches.
    ///
    /// *Errors:* a key of its configuration is out of its range.
    pub fn with_node(mut self, config: &Config) -> Result<Engine, ConfigError> {
        for number in 0..self.volumes.len() {
            let Volume { root, device, sectors, sector_bytes } = self.volumes[number];
            let layer = Box::new(StreamLayer::new(config, sectors, sector_bytes)?);
            let cache = self
                .branch_of(root)
                .filter(|branch| self.branches[*branch].rank.kind == LayerKind::PageCache);
            let below = cache.map_or(root, |cache| self.branches[cache].children[0].node);
            let rank = Rank { kind: LayerKind::Streams, number: number as u32 };
            let node = self.add(layer, vec![ChildPort { node: below, port: 0 }], device, rank);
            match cache {
                Some(cache) => self.branches[cache].children[0].node = node,
                None => self.volumes[number].root = node,
            }
        }
        Ok(self)
    }

    /// Inserts a caller's own layer into the tree, above what was at that place, which becomes its child 0. Call it before the
    /// first run.
    ///
    /// Panics if there is no such place.
    pub fn insert(&mut self, place: LayerPlace, layer: Box<dyn Layer>) {
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

    pub(super) fn add_page_caches(&mut self, spec: &PageCacheSpec) {
        for number in 0..self.volumes.len() {
            let Volume { root, device, sectors, sector_bytes } = self.volumes[number];
            let layer = Box::new(PageCache::new(spec, sectors, sector_bytes));
            let rank = Rank { kind: LayerKind::PageCache, number: number as u32 };
            self.volumes[number].root =
                self.add(layer, vec![ChildPort { node: root, port: 0 }], device, rank);
        }
    }

    /// Puts devices behind a controller. Call it before the first run.
    ///
    /// *Errors:* a key of the queue in front of the controller, or of its own, is invalid.
    pub(crate) fn put_behind(
        &mut self,
        setup: &ControllerSetup<'_>,
        host: &HostSpec,
    ) -> Result<(), HostError> {
        let ControllerSetup { spec, drives, cache } = setup;
        let (order, merge, depth) = (spec.order.clone(), spec.merge, spec.drive_depth);
        let queue = HostQueueSpec { order, merge, depth, ..HostQueueSpec::default() };
        let depth = spec.queue_depth.map_or(usize::MAX, |depth| depth as usize);
        let sectors = drives.iter().map(|device| self.device(*device as usize).sectors()).collect();
        let controller = Box::new(Controller::new(spec, sectors, *cache));
        let rank = Rank { kind: LayerKind::Controller, number: self.branches.len() as u32 };
        let controller = self.add(controller, Vec::new(), drives[0], rank);
        for (port, &device) in drives.iter().enumerate() {
            let (sectors, sector_bytes) = {
                let device = self.device(device as usize);
                (device.sectors(), device.sector_bytes())
            };
            let layer = Box::new(PortQueue::new(sectors, sector_bytes, depth, &host.queue)?);
            let node = self.add_above(device, layer, device, Rank { kind: LayerKind::Port, number: device });
            let to = ChildPort { node: controller, port: port as u32 };
            self.branch_mut(node).children = vec![to];
            self.devices[device as usize].put_behind_controller(&queue)?;
        }
        self.branch_mut(controller).children =
            drives.iter().map(|device| ChildPort { node: *device, port: 0 }).collect();
        Ok(())
    }

    /// Adds a layer between a node and all that send requests to it.
    fn add_above(&mut self, below: NodeId, layer: Box<dyn Layer>, device: u32, rank: Rank) -> NodeId {
        let node = (self.devices.len() + self.branches.len()) as u32;
        let edges = self.branches.iter_mut().flat_map(|branch| branch.children.iter_mut());
        edges.filter(|child| child.node == below).for_each(|child| child.node = node);
        self.volumes.iter_mut().filter(|volume| volume.root == below).for_each(|volume| volume.root = node);
        self.add(layer, vec![ChildPort { node: below, port: 0 }], device, rank)
    }

    fn add(&mut self, layer: Box<dyn Layer>, children: Vec<ChildPort>, device: u32, rank: Rank) -> NodeId {
        self.branches.push(Branch { layer: Some(layer), children, device, rank, event: 0, in_flight: 0 });
        self.rank();
        (self.devices.len() + self.branches.len() - 1) as u32
    }

    /// Gives each layer its place among the events.
    fn rank(&mut self) {
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

    fn branch_mut(&mut self, node: NodeId) -> &mut Branch {
        let number = self.branch_of(node).expect("the node is a layer");
        &mut self.branches[number]
    }
}
