//! Puts layers into the tree: above devices, above each other, and at the top of volumes.

use super::branch::{Branch, ChildPort, LayerKind, NodeId};
use super::tree::{LayerPlace, LayerTree, Volume};
use crate::events::Events;
use crate::layer::Layer;
use std::collections::VecDeque;

/// Effects of a layer for which memory is allocated at the start.
const EFFECTS_AT_ONCE: usize = 64;

impl LayerTree {
    /// Adds a program's own layer.
    pub(super) fn insert(&mut self, place: LayerPlace, layer: Box<dyn Layer>) {
        let number = self.branches.len() as u32;
        match place {
            LayerPlace::Volume(volume) => self.add_to_volume(volume as usize, layer, LayerKind::OWN, number),
            LayerPlace::Device(device) => {
                assert!((device as usize) < self.devices.len(), "there is a device {device}");
                self.add_above(device, layer, device, LayerKind::OWN, number);
            }
        }
        self.rank();
    }

    /// Puts a layer in front of a volume, below the layers whose kinds have their places above its own.
    pub(super) fn add_to_volume(
        &mut self,
        volume: usize,
        layer: Box<dyn Layer>,
        kind: LayerKind,
        number: u32,
    ) {
        let Volume { root, device, .. } = self.volumes[volume];
        let (mut above, mut below) = (None, root);
        while let Some(branch) =
            self.branch_of(below).filter(|branch| self.branches[*branch].kind.place < kind.place)
        {
            (above, below) = (Some(branch), self.branches[branch].children[0].node);
        }
        let node = self.add(layer, vec![ChildPort { node: below, port: 0 }], device, kind, number);
        match above {
            Some(above) => self.branches[above].children[0].node = node,
            None => self.volumes[volume].root = node,
        }
    }

    /// Inserts a layer between a node and all nodes that send requests to it.
    pub(super) fn add_above(
        &mut self,
        below: NodeId,
        layer: Box<dyn Layer>,
        device: u32,
        kind: LayerKind,
        number: u32,
    ) -> NodeId {
        let node = self.node_of(self.branches.len());
        let edges = self.branches.iter_mut().flat_map(|branch| branch.children.iter_mut());
        edges.filter(|child| child.node == below).for_each(|child| child.node = node);
        self.volumes.iter_mut().filter(|volume| volume.root == below).for_each(|volume| volume.root = node);
        self.add(layer, vec![ChildPort { node: below, port: 0 }], device, kind, number)
    }

    /// Adds a layer above these children. [`LayerTree::rank`] must follow before the first event.
    pub(super) fn add(
        &mut self,
        layer: Box<dyn Layer>,
        children: Vec<ChildPort>,
        device: u32,
        kind: LayerKind,
        number: u32,
    ) -> NodeId {
        self.layers.push(layer);
        let (effects, outstanding) = (VecDeque::with_capacity(EFFECTS_AT_ONCE), None);
        let (event, in_flight) = (0, 0);
        self.branches.push(Branch { children, device, kind, number, event, in_flight, outstanding, effects });
        self.node_of(self.branches.len() - 1)
    }

    /// Sets the order in which layers wake, and when each first does.
    pub(super) fn rank(&mut self) {
        self.ranked = (0..self.branches.len() as u32).collect();
        let branches = &self.branches;
        self.ranked.sort_by_key(|branch| {
            let Branch { kind, number, .. } = &branches[*branch as usize];
            (kind.wakes, *number)
        });
        self.branch_events = Events::new(self.branches.len());
        for (event, branch) in self.ranked.iter().enumerate() {
            self.branches[*branch as usize].event = event as u32;
            self.branch_events.set(event, self.layers[*branch as usize].first_wake());
        }
    }
}
