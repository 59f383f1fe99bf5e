//! The simulated operating system of the host, between a load and the drives.
//!
//! Modelled: a page cache for each volume (read-ahead, write-back); the block layer's queue for each drive (plug list, splitting,
//! merging, an elevator or an order, a limit on waiting requests); and a starvation guard. Each part is off unless the
//! [`HostSpec`] turns it on. An [`InterfaceSpec`] has the processor's cost of transfers. Not modelled: other CPU time, except for
//! copying pages.

mod block;
mod cache;
mod device_queue;
mod dispatch;
mod interface;
mod map;
mod port;
mod queue;
mod spec;
mod target;

pub use cache::PageCacheActivity;
pub use interface::{InterfaceKind, InterfaceSpec};
pub use spec::{GuardKind, HostError, HostQueueSpec, HostSpec, Knows, Merge, PageCacheSpec};

pub(crate) use cache::PageCache;
pub(crate) use device_queue::DeviceQueue;
pub(crate) use port::PortQueue;
