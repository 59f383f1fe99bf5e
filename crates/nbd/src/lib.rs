//! *What do client and server of a network block device say to each other?* The NBD protocol as machines: bytes in, bytes out.
#![doc = include_str!("../README.md")]

mod access;
mod block;
mod budget;
mod buffer;
mod certificate;
pub mod client;
mod export;
mod handshake;
mod limits;
mod option;
mod proto;
mod records;
mod reply;
mod request;
mod session;
mod transport;
mod uri;
mod visible;

pub use access::{Allow, AllowError, Origin, Peer};
pub use block::{Answer, Operation, StatusExtent};
pub use budget::Budget;
pub use export::{BlockSizes, Export, ExportError, Exports};
pub use handshake::Handshake;
pub use headstack_model::BlockError;
pub use limits::{Breach, Ending, Limits};
pub use session::{ReplyHandle, Request, Session};
pub use transport::Transport;
pub use uri::{NbdServer, NbdUri, UriError};

use std::fmt;
use std::sync::Arc;

use headstack_model::Nanos;
use rustls::ServerConfig;

/// How a server speaks TLS.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Its certificate, and whose it takes.
    pub config: Arc<ServerConfig>,
    /// Whether nothing else is served.
    pub required: bool,
}

/// Who decides whether one client more may choose an export.
pub trait Gate: fmt::Debug + Send + Sync {
    /// Lets a client in, with what it holds meanwhile.
    ///
    /// *Errors:* there is no room for it, in words for the client.
    fn enter(&self, export: usize) -> Result<Option<Permit>, String>;
}

/// What a client holds that was let in, until its connection ends.
pub type Permit = Box<dyn Held>;

/// Anything that a connection can hold.
pub trait Held: fmt::Debug + Send {}

impl<T: fmt::Debug + Send> Held for T {}

/// One end of a connection, to be kept going by whoever has the socket.
pub trait Wire {
    /// Whether more input is wanted now. While it is not, nothing is to be read from the client, who then waits.
    fn wants_input(&self) -> bool;

    /// Where the next bytes from the client go; not empty while input is wanted.
    fn input_space(&mut self) -> &mut [u8];

    /// Tells that so many bytes were put at the beginning of [`input_space`](Wire::input_space).
    fn filled(&mut self, now: Nanos, bytes: usize);

    /// Tells that the client sends no more. What it asked for before is still answered.
    fn input_ended(&mut self);

    /// What is to be sent to the client.
    fn output(&mut self) -> &[u8];

    /// Whether there is anything to be sent.
    fn has_output(&self) -> bool;

    /// Tells that so many bytes from the beginning of [`output`](Wire::output) were sent.
    fn sent(&mut self, now: Nanos, bytes: usize);

    /// Why the connection ends, as soon as that is known.
    fn ending(&self) -> Option<&Ending>;

    /// Whether the connection is to be closed now.
    fn is_over(&self) -> bool;

    /// When to come back with [`handle_timeout`](Wire::handle_timeout), if nothing else happens before.
    fn poll_timeout(&self) -> Option<Nanos>;

    /// Ends the connection of a client that took too long, and gives back memory that a burst took. To be called now and
    /// then at other times too, in seconds.
    fn handle_timeout(&mut self, now: Nanos);
}

/// One whose bytes a [`Transport`] carries.
pub trait Machine: Wire {
    /// How TLS is to begin behind what is now to be sent, where it was just agreed on.
    fn take_tls(&mut self) -> Option<Tls>;

    /// Tells that the bytes cross within TLS from now on, and whom the client's certificate names if it has a good one.
    fn secured(&mut self, names: Option<Vec<String>>);

    /// Ends the connection for a reason that lies beneath the machine.
    fn fail(&mut self, breach: Breach);
}
