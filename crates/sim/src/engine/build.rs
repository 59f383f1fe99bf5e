//! Builds the tree: puts layers above the devices and above each other.

use super::branch::{Branch, ChildPort, LayerKind, NodeId, Rank};
use super::tree::{LayerPlace, LayerTree, Volume};
use crate::array::{ArrayLayer, ArrayVolume};
use crate::controller::{Controller, ControllerSetup};
use crate::events::Events;
use crate::layer::Layer;
use crate::os::{CallLayer, CgroupSpec, CopyCost, HostError, HostQueueSpec, HostSpec, PageCache, PortQueue};
use crate::partition_layer::{self, PartitionLayer};
use crate::rearrange_layer::RearrangeLayer;
use crate::stream_layer::StreamLayer;
use crate::throttle_layer::ThrottleLayer;
use headstack_policy::streams::{Config, ConfigError};
use std::collections::VecDeque;

/// Effects of a layer for which memory is allocated at the start.
const EFFECTS_AT_ONCE: usize = 64;

impl LayerTree {
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
            self.arm_groups.add(&array, &mut self.devices);
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
            self.add_on_top(LayerKind::Partition, number, PartitionLayer { first });
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
            let arms_of = |found: usize| self.downcast::<ArrayLayer>(found)?.arms();
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
            self.add_above(
                self.node_of(found),
                layer,
                device,
                Rank { kind: LayerKind::DiskQueue, number: device },
            );
        }
        Ok(())
    }

    /// Inserts a layer between a node and all nodes that send requests to it.
    fn add_above(&mut self, below: NodeId, layer: Box<dyn Layer>, device: u32, rank: Rank) -> NodeId {
        let node = self.node_of(self.branches.len());
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
        self.layers.push(layer);
        let (effects, outstanding) = (VecDeque::with_capacity(EFFECTS_AT_ONCE), None);
        self.branches.push(Branch { children, device, rank, event: 0, in_flight: 0, outstanding, effects });
        self.node_of(self.branches.len() - 1)
    }

    pub(super) fn rank(&mut self) {
        self.ranked = (0..self.branches.len() as u32).collect();
        self.ranked.sort_by_key(|branch| self.branches[*branch as usize].rank);
        self.branch_events = Events::new(self.branches.len());
        for (event, branch) in self.ranked.iter().enumerate() {
            self.branches[*branch as usize].event = event as u32;
            self.branch_events.set(event, self.layers[*branch as usize].first_wake());
        }
    }
}
