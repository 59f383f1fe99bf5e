//! *What do client and server of a network block device say to each other?* The NBD protocol as state machines: bytes in, bytes
//! out.
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
mod outbox;
mod proto;
mod records;
mod reply;
mod request;
mod session;
mod transport;
mod uri;
mod visible;
mod wire;

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
pub use wire::{Gate, Held, Machine, Permit, Tls, Wire};
