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
    pub(super) rank: Rank,
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
        self.rank.kind == LayerKind::Port
    }

    /// Whether it makes writes durable at its child.
    pub(super) fn is_durability(&self) -> bool {
        self.rank.kind == LayerKind::Durability
    }
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
