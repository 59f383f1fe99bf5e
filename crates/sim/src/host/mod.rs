//! The host: what lies between whoever asks and the drives.
//!
//! Modelled: the block layer's queue before each drive (plug list, splitting, merging, an elevator or an order, a limit
//! on what waits in it). Each part is off unless the [`HostSpec`] turns it on. Not modelled: CPU time.

mod block;
mod spec;
mod station;

pub use spec::{HostError, HostQueueSpec, HostSpec, Merge};

pub(crate) use station::{Piece, Station};
