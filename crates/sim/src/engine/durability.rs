//! Where the host's rules for FLUSH and FUA apply: at each block device that the host sees.
//!
//! That is a drive, the port of a controller for a drive, or the queue in front of a disk with several arms.

use super::branch::{ChildPort, LayerKind, LayerRole, NodeId};
use super::tree::LayerTree;
use crate::controller::{ControllerSetup, ControllerWrites};
use crate::os::{DriveSafety, Durability, DurabilityLayer, PortQueue};

impl LayerTree {
    /// The node that makes writes durable at a node.
    #[inline]
    pub(super) fn durability_of(&self, node: NodeId) -> Option<NodeId> {
        self.durability.get(node as usize).copied().flatten()
    }

    /// Makes the host keep writes durable on these drives, one for each device.
    pub(super) fn keep_durable(
        &mut self,
        drives: &[DriveSafety],
        controllers: &[ControllerSetup<'_>],
        kind: LayerKind,
    ) {
        let kind = LayerKind { role: LayerRole::Durability, ..kind };
        self.durability = vec![None; self.devices.len() + self.branches.len()];
        let mut safety: Vec<DriveSafety> = drives.to_vec();
        for setup in controllers {
            for (port, &drive) in setup.drives.iter().enumerate() {
                safety[drive as usize] = at_port(setup, port, drives);
            }
        }
        let disks: Vec<(usize, Vec<u32>)> = self.disk_queues().collect();
        for (branch, arms) in &disks {
            let arms = arms.iter().map(|arm| safety[*arm as usize]);
            let disk = arms.reduce(DriveSafety::both).expect("a disk has arms");
            let (node, device) = ((self.devices.len() + branch) as u32, self.branches[*branch].device);
            self.add_durability(kind, node, device, disk.durability());
        }
        for device in 0..self.devices.len() as u32 {
            let is_arm = disks.iter().any(|(_, arms)| arms.contains(&device));
            let port = self.port_node(device);
            if !is_arm {
                self.add_durability(
                    kind,
                    port.unwrap_or(device),
                    device,
                    safety[device as usize].durability(),
                );
            }
            // A controller knows whether its drives cache writes, and always uses FUA where they do.
            if port.is_some() && !drives[device as usize].is_volatile {
                self.add_durability(kind, device, device, Durability::WriteThrough);
            }
        }
    }

    fn add_durability(&mut self, kind: LayerKind, node: NodeId, device: u32, durability: Durability) {
        let layer = Box::new(DurabilityLayer::new(durability));
        let own = self.add(layer, vec![ChildPort { node, port: 0 }], device, kind, node);
        self.durability[node as usize] = Some(own);
    }

    /// The branches of the queues in front of disks with several arms, each with the devices that are its arms.
    fn disk_queues(&self) -> impl Iterator<Item = (usize, Vec<u32>)> {
        let is_queue = |number: usize| self.downcast::<PortQueue>(number).is_some();
        let queues = self.branches.iter().enumerate();
        let queues = queues.filter(move |(number, branch)| !branch.is_port() && is_queue(*number));
        queues.map(|(number, branch)| (number, self.devices_below(branch.children[0].node)))
    }

    /// The devices below a node, through the ports of controllers.
    fn devices_below(&self, node: NodeId) -> Vec<u32> {
        match self.branch_of(node).map(|number| &self.branches[number]) {
            None => vec![node],
            Some(branch) if branch.is_port() => vec![branch.device],
            Some(branch) => branch.children.iter().flat_map(|child| self.devices_below(child.node)).collect(),
        }
    }

    /// The node of the host's queue in front of a device's port at its controller; `None` without a controller.
    fn port_node(&self, device: u32) -> Option<NodeId> {
        Some((self.devices.len() + self.port_number(device as usize)?) as u32)
    }
}

/// What the host sees of a drive through a controller's port: the controller's cache in front of the drive's.
fn at_port(setup: &ControllerSetup<'_>, port: usize, drives: &[DriveSafety]) -> DriveSafety {
    let own = drives[setup.drives[port] as usize];
    let cache = setup.spec.cache.as_ref();
    let keeps_writes = cache.is_some_and(|cache| cache.writes == ControllerWrites::WriteBack);
    let shelf = setup.cache.filter(|(_, cached)| *cached as usize == port);
    let is_shelf_volatile =
        shelf.is_some_and(|(shelf, _)| drives[setup.drives[shelf as usize] as usize].is_volatile);
    DriveSafety { is_volatile: own.is_volatile || keeps_writes || is_shelf_volatile, ..own }
}
