//! *The same* with real bytes and the real clock: it serves programs in real time with what the simulator computes in virtual time.
//!
//! The crates below this one use nothing of the operating system. This one and the command do; `clippy.toml` requires each such
//! line to say so.

mod clock;
mod connection;
pub mod disk;
mod disk_thread;
mod event_loop;
pub mod ext4;
pub mod extents;
pub mod facilities;
mod fair;
pub mod fuse;
mod lateness;
mod lead;
mod links;
pub mod log_parts;
pub mod memory;
pub mod node;
pub mod probe;
mod realtime;
pub mod region;
pub mod scsi;
mod server;
mod shared;
pub mod shell;
mod snapshot;
pub mod sysfs;
mod tls;

pub use clock::Clock;
pub use disk_thread::{Disk, Timing};
pub use headstack_nbd::{Answer, BlockError, Operation, StatusExtent};
pub use lateness::Lateness;
pub use server::{
    Address, AddressError, Guaranteed, Listener, Promises, Rules, Served, Server, Target, TlsUse, tell_ready,
    tell_stopping,
};
pub use shared::{Caller, DiskHandle};
pub use snapshot::{LiveState, Snapshot, VolumeSnapshot};
pub use tls::{ClientCertificates, TlsError, TlsSettings};
