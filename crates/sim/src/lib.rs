//! *What happens* over virtual time: the device, the host above it, and the engine that drives them.
#![doc = include_str!("../README.md")]

mod array;
pub mod controller;
pub mod device;
mod engine;
mod events;
mod home_seeks;
pub mod layer;
mod link;
mod memory;
mod observe;
pub mod os;
mod partition_layer;
mod rearrange_layer;
pub mod rig;
pub mod shingled;
pub mod stats;
mod stream_layer;
mod throttle_layer;

pub use array::{ArrayLayer, ArrayVolume};
pub use device::{
    Activity, ArmRecord, ArmTime, ArmWork, CacheUse, Command, Completion, Device, DeviceError, DeviceOptions,
    DeviceView, Drive, DriveShape, DriveSource, Fault, FaultError, MediaWrite, NewDrives, Outcome,
    OutstandingCommand, QueueFull, SeekDistances, ShingleActivity, ShingleView, SlowedAccesses, Tag,
    TaskAttribute, TimeSplit, Travel,
};
pub use engine::{Engine, LayerPlace};
pub use headstack_streams::rearrange::RearrangeCounters;
pub use layer::Layer;
pub use link::{LinkUse, ProcessorUse, ProcessorWork, Tenure, WorkKind};
pub use observe::{Finished, Observer};
pub use os::HostSpec;
pub use rearrange_layer::{RearrangeActivity, RearrangeLayer, RearrangePeriod, RearrangeTimes};
pub use rig::{Rig, RigError};
pub use stream_layer::StreamLayer;
