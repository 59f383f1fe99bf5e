//! A node as other threads see it: handle, view, and the state shared with its thread.

use super::core::NodeCore;
use super::figures::{Busy, ClientView, Responses};
use super::messages::Shape;
use super::rearrange::NodeRearrangeView;
use super::slowness::SlownessWatch;
use crate::disk::{Books, Kind};
use crate::event_loop::Shared;
use crate::links::Answerable;
use crate::{BlockError, Clock};
use headstack_model::{Instant, Nanos};
use headstack_nbd::{BlockSizes, Export};
use headstack_policy::position::OrderView;
use headstack_policy::slowness::SlownessView;
use headstack_policy::streams::Streams;
use std::sync::Arc;

/// A handle to a node, for any thread.
#[derive(Clone, Debug)]
pub struct NodeHandle(pub(crate) Arc<NodeShared>);

/// A node at a moment.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct NodeView {
    pub at: Instant,
    pub outstanding: usize,
    pub connections: usize,
    /// Whether its thread has failed and serves no requests.
    pub has_failed: bool,
    pub books: Books,
    /// Time in which the disk had a command.
    pub busy: Nanos,
    /// Response times of clients, limited to some hundreds of them.
    pub clients: Vec<ClientView>,
    /// The queue that orders the disk's commands, if there is one.
    pub order: Option<OrderView>,
    /// The rearranger of its blocks, if there is one.
    pub rearranger: Option<NodeRearrangeView>,
    /// Whether its disk fails slowly.
    pub slowness: SlownessView,
}

impl NodeHandle {
    /// Begins to stop the node, so that a later [`super::Node::stop`] waits for less: it accepts no more requests.
    pub fn request_stop(&self) {
        self.0.request_stop();
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.info.name
    }

    /// Description of its disk in one line.
    pub fn title(&self) -> &str {
        &self.0.info.title
    }

    /// Its disk.
    pub fn shape(&self) -> Shape {
        self.0.info.shape
    }

    /// Its clock.
    pub fn clock(&self) -> Clock {
        self.0.clock
    }

    /// The node at this moment.
    pub fn view(&self) -> NodeView {
        let at = self.0.clock.now();
        let state = self.0.lock();
        NodeView {
            at,
            outstanding: state.served.core.outstanding(),
            connections: state.served.connections,
            has_failed: state.broken,
            books: state.served.books.clone(),
            busy: state.served.busy.until(at),
            clients: state.served.responses.views(),
            order: state.served.core.order(),
            rearranger: state.served.core.rearranger(),
            slowness: state.served.slowness.view(),
        }
    }

    /// Calls `look` with the scheduler. The node's thread waits meanwhile.
    pub fn inspect<R>(&self, look: impl FnOnce(&Streams) -> R) -> R {
        look(self.0.lock().served.core.streams())
    }

    /// The export as announced to clients, with all features of the node.
    pub fn export(&self, name: &str) -> Export {
        let Shape { bytes, block_bytes: minimum, read_only } = self.0.info.shape;
        let usual = Export::new(name, bytes);
        let preferred = usual.blocks.preferred.max(minimum);
        Export { blocks: BlockSizes { minimum, preferred, ..usual.blocks }, read_only, ..usual }
    }
}

/// A client's request at the core. The final flush has no client.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) answerable: Answerable,
    pub(super) kind: Option<(Kind, u64)>,
    pub(super) begun: Instant,
}

pub(super) type Core = NodeCore<Option<PendingRequest>>;

/// The state of a node that its threads share.
pub(crate) struct ServedNode {
    pub(super) core: Core,
    pub(super) connections: usize,
    pub(super) books: Books,
    pub(super) busy: Busy,
    pub(super) slowness: SlownessWatch,
    pub(super) responses: Responses,
    /// Result of the last flush, once it has ended.
    pub(super) flushed: Option<Result<(), BlockError>>,
}

impl ServedNode {
    pub(super) fn new(core: Core, slowness: SlownessWatch) -> ServedNode {
        ServedNode {
            core,
            slowness,
            connections: 0,
            books: Books::new(),
            busy: Busy::default(),
            responses: Responses::default(),
            flushed: None,
        }
    }
}

/// What threads read of a node without its lock.
#[derive(Debug)]
pub(crate) struct NodeDetails {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) shape: Shape,
}

pub(crate) type NodeShared = Shared<ServedNode, NodeDetails>;
