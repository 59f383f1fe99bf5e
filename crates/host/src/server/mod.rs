//! The NBD server: one thread listens, handles the handshakes, and passes each connection to the thread of the disk that its
//! client chose.

mod accept;
mod address;
mod guarantees;
mod listen;
pub(crate) mod slots;
mod systemd;

pub use address::{Address, AddressError};
pub use guarantees::{Guaranteed, Promises};
pub use listen::{Listener, TlsUse};
pub use systemd::{tell_ready, tell_stopping};

use crate::connection::{Connection, Link};
use crate::node::NodeHandle;
use crate::{Clock, DiskHandle, memory, realtime};
use accept::Accepting;
use headstack_model::Nanos;
use headstack_nbd::{Allow, Budget, Export, ExportError, Exports, Limits, Session, Tls};
use headstack_streams::streams::Guarantee;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
#[allow(clippy::disallowed_types, reason = "the server's thread receives changes")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// An export and its target.
#[derive(Clone, Debug)]
pub struct Served {
    /// The export as announced to clients.
    pub export: Export,
    /// What serves it.
    pub target: Target,
}

/// What serves the clients of an export.
#[derive(Clone, Debug)]
pub enum Target {
    /// A volume of an emulated disk.
    Disk {
        /// The disk.
        disk: DiskHandle,
        /// Index of its volume.
        volume: u32,
    },
    /// A storage node.
    Node(NodeHandle),
}

impl Target {
    /// Whether answers have deadlines, rather than being sent as soon as possible.
    fn has_deadlines(&self) -> bool {
        match self {
            Target::Disk { disk, .. } => disk.inspect(|emulator| emulator.has_deadlines()),
            Target::Node(_) => false,
        }
    }

    fn clock(&self) -> Clock {
        match self {
            Target::Disk { disk, .. } => disk.clock(),
            Target::Node(node) => node.clock(),
        }
    }

    fn adopt(&self, connection: Connection<Session>, promised: Option<Guarantee>) {
        match self {
            Target::Disk { disk, volume } => disk.0.adopt(Link::new(connection, *volume)),
            Target::Node(node) => node.0.adopt(Link::new(connection, 0).promised(promised)),
        }
    }
}

/// Settings for all clients of a server.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Limits of memory and time per connection.
    pub limits: Limits,
    /// Maximum number of connections, an eighth of them reserved for Unix sockets; further clients are refused, unless an idle
    /// one is replaced. The process raises its limit of open files accordingly; if the system refuses, there are fewer
    /// connections.
    pub connections: usize,
    /// Maximum number of connections from one network address; IPv6 addresses count by their first 64 bits.
    pub connections_per_address: usize,
    /// Time without a request after which a new client may replace a connection if no slot is free.
    pub idle: Nanos,
    /// Bytes of requests that all connections may hold together, if limited.
    pub budget: Option<Budget>,
    /// Guarantees to each client of an export, by its name. A client is refused if its guarantee cannot be kept.
    pub guarantees: BTreeMap<String, Guaranteed>,
    /// TLS settings, if it is offered.
    pub tls: Option<Tls>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            limits: Limits::default(),
            connections: 1024,
            connections_per_address: 768,
            idle: Nanos::from_secs(60),
            budget: Some(Budget::new(memory::default_budget(memory::allowed()))),
            guarantees: BTreeMap::new(),
            tls: None,
        }
    }
}

#[derive(Debug)]
#[allow(clippy::disallowed_types, reason = "the server's thread receives changes")]
struct Mail {
    letter: Mutex<Letter>,
    wake: OwnedFd,
}

#[derive(Debug, Default)]
struct Letter {
    update: Option<(Rules, Exports)>,
    is_stopping: bool,
}

impl Mail {
    fn lock(&self) -> MutexGuard<'_, Letter> {
        self.letter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, write: impl FnOnce(&mut Letter)) {
        write(&mut self.lock());
        // Fails only if the counter is full; then the thread is awake.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<Address>,
    exports: Vec<Export>,
    mail: Arc<Mail>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the clients of these listeners.
    ///
    /// *Errors:* invalid exports; the system refuses a thread or its descriptors.
    #[allow(clippy::disallowed_types, reason = "the server's thread receives changes")]
    pub fn start(listeners: Vec<Listener>, served: Vec<Served>, rules: Rules) -> io::Result<Server> {
        let all: Vec<Export> = served.iter().map(|served| served.export.clone()).collect();
        let exports = checked(all.clone())?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let mail = Arc::new(Mail { letter: Mutex::default(), wake });
        let addresses = listeners.iter().map(|listener| listener.address().clone()).collect();
        let has_deadlines = served.iter().any(|served| served.target.has_deadlines());
        let accepting = Accepting::new(listeners, Arc::clone(&mail), exports, served, rules)?;
        let run = move || {
            realtime::set_timer_slack();
            if has_deadlines {
                realtime::set_realtime();
            }
            accepting.run();
        };
        let thread = Some(Builder::new().name("nbd server".to_string()).spawn(run)?);
        Ok(Server { addresses, exports: all, mail, thread })
    }

    /// Its addresses, with the ports that the system chose where they were 0.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Applies rules to clients that connect from now on, except for budget and guarantees, which stay; and sets who may use each
    /// export, by name. Clients that have chosen an export keep it.
    ///
    /// *Errors:* invalid exports.
    pub fn change(&self, rules: Rules, allow: &BTreeMap<String, Vec<Allow>>) -> io::Result<()> {
        let mut exports = self.exports.clone();
        for export in &mut exports {
            if let Some(allow) = allow.get(&export.name) {
                export.allow.clone_from(allow);
            }
        }
        let exports = checked(exports)?;
        self.mail.send(|letter| letter.update = Some((rules, exports)));
        Ok(())
    }
}

fn checked(exports: Vec<Export>) -> io::Result<Exports> {
    Exports::new(exports).map_err(|error: ExportError| io::Error::other(error.to_string()))
}

impl Drop for Server {
    fn drop(&mut self) {
        self.mail.send(|letter| letter.is_stopping = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
