//! A layer's place in the tree: its children, its rank among the layers, and what it did that is not carried out.

use crate::layer::{Completed, Submission};
use crate::link::ProcessorWork;
use std::collections::VecDeque;

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
    pub(super) children: Vec<ChildPort>,
    /// The first device below it.
    pub(super) device: u32,
    pub(super) kind: LayerKind,
    /// Its number among layers of its kind.
    pub(super) number: u32,
    /// Its place in the tree's `branch_events`.
    pub(super) event: u32,
    pub(super) in_flight: usize,
    /// Requests that its layer has not answered, if the layer counts them itself.
    pub(super) outstanding: Option<usize>,
    /// What its layer did and the engine has not carried out.
    pub(super) effects: VecDeque<Effect>,
}

impl Branch {
    /// Whether it is the host's queue in front of a controller's port, which stands for a drive.
    pub(super) fn is_port(&self) -> bool {
        self.kind.role == LayerRole::Drive
    }

    /// Whether it makes writes durable at its child.
    pub(super) fn is_durability(&self) -> bool {
        self.kind.role == LayerRole::Durability
    }
}

/// What the engine knows of a kind of layers.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerKind {
    /// Its place in the stack of a volume, counted from the top.
    pub(super) place: u8,
    /// Its place among layers with events at one time, which wake in this order.
    pub(super) wakes: u8,
    pub(super) role: LayerRole,
}

/// A layer for which the engine has a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayerRole {
    Plain,
    /// The host's queue in front of a controller's port, which stands for a drive.
    Drive,
    /// The host's FLUSH and FUA, which gets these requests only.
    Durability,
}

impl LayerKind {
    /// A program's own layer: above all others, and the last to wake.
    pub(super) const OWN: LayerKind = LayerKind { place: 0, wakes: u8::MAX, role: LayerRole::Plain };
}

/// What a layer does, until the engine carries it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Submit a request to a child.
    Down { child: u32, submission: Submission },
    /// The same for a request from above that the layer held; the answer to it goes up without the layer.
    ForwardHeld { child: u32, submission: Submission },
    /// Complete a request from above.
    Up(Completed),
    /// Occupy the host's processor, and call the layer with the end.
    Compute { id: u32, work: ProcessorWork },
}
