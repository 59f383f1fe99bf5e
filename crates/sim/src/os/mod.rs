//! The simulated operating system of the host, between a load and the drives.
//!
//! Modelled: a page cache for each volume (read-ahead, write-back); the block layer's queue for each drive (plug list, splitting,
//! merging, an elevator or an order, a limit on waiting requests); FLUSH and FUA; and a starvation guard. Each part but FLUSH and FUA
//! is off unless the [`HostSpec`] turns it on. A [`ProcessorSpec`] has the times of the host's work; all of that work shares one processor.

mod block;
mod cache;
mod calls;
mod cgroup;
mod costs;
mod device_queue;
mod dispatch;
mod durability;
mod host_error;
mod interface;
mod map;
mod page_cache_spec;
mod port;
mod processor;
mod queue;
mod spec;
mod target;
mod throttle;

pub use cache::{PageCache, PageCacheActivity};
pub use cgroup::CgroupSpec;
pub use durability::{DriveSafety, Durability};
pub(crate) use host_error::host_fault;
pub use interface::{InterfaceKind, InterfaceSpec};
pub use page_cache_spec::PageCacheSpec;
pub use processor::{ClientsSpec, ProcessorSpec};
pub use spec::{GuardKind, HostQueueSpec, HostSpec, Knows, Merge};

pub(crate) use cache::CopyCost;
pub(crate) use calls::CallLayer;
pub(crate) use device_queue::DeviceQueue;
pub(crate) use durability::DurabilityLayer;
pub(crate) use port::PortQueue;
pub(crate) use throttle::Throttle;
