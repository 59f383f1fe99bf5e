//! The NBD protocol, from the server's side: handshake and transmission as machines, bytes in and bytes out.
//!
//! No socket, no clock, no thread: whoever has a socket reads into [`Wire::input_space`], tells of it with
//! [`Wire::filled`], sends [`Wire::output`] and tells of that with [`Wire::sent`]. A connection begins as a [`Handshake`];
//! once the client has chosen an export it becomes a [`Session`], which hands out [`Operation`](crate::Operation)s and is
//! told what came of each, in any order.
//!
//! What is spoken: fixed newstyle, simple and structured replies, the context `base:allocation`, block sizes. What is not:
//! TLS, extended headers, resizing, the oldstyle handshake.
//!
//! *Source:* "The NBD protocol", doc/proto.md of the NetworkBlockDevice project.

mod buffer;
mod export;
mod handshake;
mod limits;
mod option;
mod proto;
mod reply;
mod request;
mod session;
mod slots;

pub use export::{BlockSizes, Export, ExportError, Exports};
pub use handshake::Handshake;
pub use limits::{Breach, Ending, Limits};
pub use session::{Request, Session};

use headstack_model::Nanos;

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
    fn output(&self) -> &[u8];

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
