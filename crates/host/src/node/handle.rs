//! A node as other threads see it: handle, view, and the state shared with its thread.

use super::core::NodeCore;
use super::figures::{Busy, ClientView, Responses};
use super::live::{ClientRequest, NodeCommand, NodeEvent, NodeLiveLog};
use super::messages::Shape;
use super::rearrange::NodeRearrangeView;
use super::slowness::SlownessWatch;
use crate::disk::Books;
use crate::event_loop::Shared;
use crate::links::Answerable;
use crate::{BlockError, Clock};
use headstack_model::{Instant, Nanos};
use headstack_nbd::{BlockSizes, Export};
use headstack_policy::slowness::SlownessView;
use headstack_streams::position::OrderView;
use headstack_streams::streams::{StreamView, Streams, View};
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

/// The events of a node since the last call, and its state.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct NodeLiveState {
    pub at: Instant,
    pub events: Vec<NodeEvent>,
    /// Events that were dropped, because no page asked in time.
    pub dropped: u64,
    /// The commands at the disk; without those that began before the first call.
    pub at_disk: Vec<NodeCommand>,
    pub outstanding: usize,
    pub connections: usize,
    /// Whether its thread has failed and serves no requests.
    pub has_failed: bool,
    /// Time in which the disk had a command.
    pub busy: Nanos,
    /// Whether its disk fails slowly.
    pub slowness: SlownessView,
    pub scheduler: View,
    pub streams: Vec<StreamView>,
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

    /// The events since the last call, and the state. Events are recorded from the first call on. The node's thread waits while they are
    /// copied.
    pub fn live_state(&self) -> NodeLiveState {
        let mut state = self.0.lock();
        let at = self.0.clock.now();
        let has_failed = state.broken;
        let served = &mut state.served;
        let live = served.live.get_or_insert_with(NodeLiveLog::new);
        let (events, dropped) = live.drain();
        let streams = served.core.streams();
        NodeLiveState {
            at,
            events,
            dropped,
            at_disk: live.at_disk().collect(),
            outstanding: served.core.outstanding(),
            connections: served.connections,
            has_failed,
            busy: served.busy.until(at),
            slowness: served.slowness.view(),
            scheduler: streams.view(),
            streams: streams.stream_views().collect(),
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
    pub(super) request: ClientRequest,
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
    /// Client requests so far.
    pub(super) requests: u64,
    /// Events for pages that show the node; none until one does.
    pub(super) live: Option<NodeLiveLog>,
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
            requests: 0,
            live: None,
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
