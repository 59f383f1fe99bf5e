//! The NBD machines, by a client written from the protocol's text.

#[allow(dead_code, reason = "tests of the server use the same client")]
mod client;
mod handshake;
mod properties;
mod session;
