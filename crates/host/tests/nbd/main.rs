//! The server of disks and nodes, by a client written from the text of the NBD protocol.

mod access;
mod authority;
mod changes;
#[allow(dead_code, reason = "tests of the protocol use the same client")]
#[path = "../../../nbd/tests/protocol/client.rs"]
mod client;
mod hostile;
#[path = "../common/loops.rs"]
mod loops;
mod mischief;
mod node;
mod promises;
mod server;
mod tls;
