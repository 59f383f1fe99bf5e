//! *What happens* over virtual time: the device, the host above it, and the engine that drives them.
//!
//! A [`Device`] is a drive with its queue and cache. An [`Engine`] moves the time for any number of them and feeds them from a
//! [`headstack_workload::Load`], through a host ([`os`]) whose every part is off by default. [`stats`] summarises the completions.
//!
//! The device has no clock: every call has the time. Each operation starts when its resource was free and its command had arrived,
//! not when the call came. So it can be driven in several ways: the engine jumps from event to event, a test may call too late on
//! purpose, a program may follow a real clock. Within the device an access is computed whole when it starts, and read-ahead only
//! when its state is needed; there are a few events per request, and none per sector.

mod array;
pub mod controller;
pub mod device;
mod engine;
mod events;
pub mod layer;
mod link;
mod memory;
mod observe;
pub mod os;
pub mod rig;
pub mod stats;
mod stream_layer;

pub use array::ArrayVolume;
pub use device::{
    Activity, ArmTime, ArmWork, CacheUse, Command, Completion, Device, DeviceError, DeviceOptions,
    DeviceView, Drive, Fault, FaultError, MediaWrite, Outcome, QueueFull, SeekDistances, Tag, TaskAttribute,
    TimeSplit, Travel,
};
pub use engine::{Engine, LayerPlace};
pub use layer::Layer;
pub use link::{LinkUse, Tenure};
pub use observe::{Finished, Observer};
pub use os::{HostError, HostSpec};
pub use rig::{Rig, RigError};

/// The program in the README, which must compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
