//! *What happens* over virtual time: the device and the engine that turns it.
//!
//! A [`Device`] is a drive with its queue and cache; an [`Engine`] moves the time for any number of them and feeds them
//! from a [`headstack_workload::Load`].

pub mod device;
mod engine;
pub mod stats;

pub use device::{Completion, Device, DeviceError, DeviceOptions, Drive, Outcome, QueueFull, Tag, TimeSplit};
pub use engine::{Engine, Finished};
