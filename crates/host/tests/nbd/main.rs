//! The NBD machines, by a client written from the protocol's text.

mod authority;
mod client;
mod handshake;
mod hostile;
mod node;
mod properties;
mod server;
mod session;
mod tls;
