//! The contract between a connection and the owner of its socket.

use crate::limits::{Breach, Ending};
use headstack_model::Instant;
use rustls::ServerConfig;
use std::fmt;
use std::sync::Arc;

/// A server's use of TLS.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The server's certificate, and the client certificates that it accepts.
    pub config: Arc<ServerConfig>,
    /// Whether clients without TLS are refused.
    pub required: bool,
}

/// Decides whether another client may choose an export.
pub trait Gate: fmt::Debug + Send + Sync {
    /// Admits a client; it keeps the permit until its connection ends.
    ///
    /// *Errors:* there is no capacity for it, as a message for the client.
    fn enter(&self, export: usize) -> Result<Option<Permit>, String>;
}

/// The permit of an admitted client, held until its connection ends.
pub type Permit = Box<dyn Held>;

/// Anything that a connection can hold.
pub trait Held: fmt::Debug + Send {}

impl<T: fmt::Debug + Send> Held for T {}

/// One end of a connection; the owner of the socket moves the bytes.
pub trait Wire {
    /// Whether to read input now. If not, the owner must not read, so that the client waits.
    fn wants_input(&self) -> bool;

    /// Space for the next input; not empty while input is wanted.
    fn input_space(&mut self) -> &mut [u8];

    /// Reports that the first `bytes` of [`input_space`](Wire::input_space) were filled.
    fn filled(&mut self, now: Instant, bytes: usize);

    /// Reports the end of input. Earlier requests are still answered.
    fn input_ended(&mut self);

    /// The bytes to send to the client.
    fn output(&mut self) -> &[u8];

    /// Whether there are bytes to send.
    fn has_output(&self) -> bool;

    /// Reports that the first `bytes` of [`output`](Wire::output) were sent.
    fn sent(&mut self, now: Instant, bytes: usize);

    /// Why the connection ends, as soon as that is known.
    fn ending(&self) -> Option<&Ending>;

    /// Whether the connection is to be closed now.
    fn is_over(&self) -> bool;

    /// When to call [`handle_timeout`](Wire::handle_timeout), if no other call comes before.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Ends the connection of a client that took too long, and frees memory after a burst. Call it also every few seconds.
    fn handle_timeout(&mut self, now: Instant);
}

/// A [`Wire`] whose bytes a [`Transport`](crate::Transport) carries.
pub trait Machine: Wire {
    /// The TLS settings, once TLS was negotiated; it begins after the present output.
    fn take_tls(&mut self) -> Option<Tls>;

    /// Reports that TLS is in use from now on, with the names in the client's certificate if it is valid.
    fn secured(&mut self, names: Option<Vec<String>>);

    /// Ends the connection because of a failure below the machine.
    fn fail(&mut self, breach: Breach);
}
