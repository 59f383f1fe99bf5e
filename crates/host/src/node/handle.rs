//! A node as other threads see it: what they ask of it, and what they share with its thread.

use super::figures::{Busy, ClientView, Responses};
use super::messages::Shape;
use super::thread::Core;
use crate::connection::Link;
use crate::disk::Books;
use crate::{BlockError, Clock};
use headstack_model::Nanos;
use headstack_nbd::{BlockSizes, Export};
use headstack_policy::streams::Streams;
use rustix::event::{EventfdFlags, eventfd};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
#[allow(clippy::disallowed_types, reason = "a node's thread is looked at by others")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError};

/// A way to a node, for any thread.
#[derive(Clone, Debug)]
pub struct NodeHandle(Arc<Shared>);

/// A node at a moment.
#[derive(Clone, Debug)]
pub struct NodeView {
    /// When, by the node's clock.
    pub at: Nanos,
    /// Requests that are not answered yet.
    pub outstanding: usize,
    /// Connections.
    pub connections: usize,
    /// Whether its thread has failed: it serves nobody any more.
    pub has_failed: bool,
    /// What was asked so far.
    pub books: Books,
    /// Time in which the disk had a command.
    pub busy: Nanos,
    /// How long clients waited; of some hundreds, where there are more.
    pub clients: Vec<ClientView>,
}

impl NodeHandle {
    pub(super) fn new(shared: &Arc<Shared>) -> NodeHandle {
        NodeHandle(Arc::clone(shared))
    }

    /// Has it take nothing more and begin to end, as [`super::Node::stop`] does, which then waits for less.
    pub fn ask_to_stop(&self) {
        self.0.lock().stopping = true;
        self.0.wake();
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What its disk is, in one line.
    pub fn title(&self) -> &str {
        &self.0.title
    }

    /// Its disk.
    pub fn shape(&self) -> Shape {
        self.0.shape
    }

    /// Its clock.
    pub fn clock(&self) -> Clock {
        self.0.clock
    }

    /// The node as it is now.
    pub fn view(&self) -> NodeView {
        let at = self.0.clock.now();
        let state = self.0.lock();
        NodeView {
            at,
            outstanding: state.core.outstanding(),
            connections: state.connections,
            has_failed: state.broken,
            books: state.books.clone(),
            busy: state.busy.until(at),
            clients: state.responses.views(),
        }
    }

    /// Inspects the scheduler. The node's thread waits meanwhile.
    pub fn inspect<R>(&self, look: impl FnOnce(&Streams) -> R) -> R {
        look(self.0.lock().core.streams())
    }

    /// What clients are told of it: all that it serves.
    pub fn export(&self, name: &str) -> Export {
        let Shape { bytes, block_bytes: minimum, read_only } = self.0.shape;
        let usual = Export::new(name, bytes);
        let preferred = usual.blocks.preferred.max(minimum);
        Export { blocks: BlockSizes { minimum, preferred, ..usual.blocks }, read_only, ..usual }
    }

    /// Gives the node's thread a connection, which is closed where that thread ends.
    pub(crate) fn adopt(&self, link: Link) {
        let mut state = self.0.lock();
        if !state.stopping {
            state.arrived.push(link);
        }
        drop(state);
        self.0.wake();
    }
}

/// What only one thread at a time may touch.
pub(super) struct State {
    pub(super) core: Core,
    /// Connections whose clients have chosen the disk.
    pub(super) arrived: Vec<Link>,
    pub(super) connections: usize,
    pub(super) books: Books,
    pub(super) busy: Busy,
    pub(super) responses: Responses,
    pub(super) stopping: bool,
    /// How the last flush ended, once it has.
    pub(super) flushed: Option<Result<(), BlockError>>,
    /// The thread failed, perhaps in the middle of something.
    pub(super) broken: bool,
}

/// A node as threads share it.
#[allow(clippy::disallowed_types, reason = "a node's thread is looked at by others")]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) wake: OwnedFd,
    pub(super) clock: Clock,
    pub(super) name: String,
    title: String,
    shape: Shape,
}

impl fmt::Debug for Shared {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Shared").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Shared {
    #[allow(clippy::disallowed_types, reason = "a node's thread is looked at by others")]
    pub(super) fn new(name: &str, title: String, core: Core) -> io::Result<Shared> {
        let shape = core.shape();
        let state = State {
            core,
            arrived: Vec::new(),
            connections: 0,
            books: Books::new(),
            busy: Busy::default(),
            responses: Responses::default(),
            stopping: false,
            flushed: None,
            broken: false,
        };
        Ok(Shared {
            state: Mutex::new(state),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            clock: Clock::new(1.0).map_err(io::Error::other)?,
            name: name.to_string(),
            title,
            shape,
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        // It only fails when the counter is full, and then the thread is awake.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}
