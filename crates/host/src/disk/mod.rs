//! The emulated disk without its clock: the caller gives the time, and the disk keeps the bytes.
//!
//! The model alone decides when an operation is done; a [`Store`] keeps the bytes, as fast as the host can. Dirty data of the
//! modelled drive are kept apart, so that the store always holds what is on the media: a power cut drops the rest.
//!
//! Data that the store refuses because the host has no space are kept in memory, and writes and flushes fail until the store
//! takes them.
//!
//! *Assumptions:* where data in a drive's cache were overwritten, the model says which version was destaged, by the time at which it was
//! submitted to the drive. Of several versions submitted by then (one waited, or they came at the same time) the latest counts.
//!
//! Not modelled: data that a failing disk garbles; time that TRIM takes.

mod books;
mod copies;
mod copies_error;
mod emulator;
mod live;
mod machine;
mod mark;
mod rules;
mod store;
mod strikes;
mod task;
mod unwritten;
mod volume;
mod zones;
mod zones_error;

pub use books::{Books, Count, Kind};
pub use copies_error::CopiesError;
pub use emulator::{Answered, Emulator, EmulatorFaults, Outcome};
pub use live::LiveEvent;
pub use rules::{FaultEffect, FaultRule, FaultRules, StruckOperations};
pub use store::{Store, stored_disk_bytes};
pub use volume::Volume;
pub use zones::stored_write_pointers;
pub use zones_error::ZonesError;
