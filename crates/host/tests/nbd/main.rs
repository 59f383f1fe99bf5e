//! The NBD machines, by a client written from the protocol's text.

mod access;
mod authority;
mod changes;
mod client;
mod handshake;
mod hostile;
#[path = "../common/loops.rs"]
mod loops;
mod mischief;
mod node;
mod promises;
mod properties;
mod server;
mod session;
mod tls;
