//! Tests of the NBD state machines with a client that is written from the protocol's text.

#[allow(dead_code, reason = "tests of the server use the same client")]
mod client;
mod handshake;
mod properties;
mod session;
