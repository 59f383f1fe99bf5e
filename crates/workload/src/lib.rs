//! *What is requested* of the disk: generators and traces.
#![doc = include_str!("../README.md")]

mod aligned;
mod closed;
pub mod dist;
mod drift;
pub mod fio;
mod inbox;
mod load;
mod mix;
mod only_disk;
mod open;
mod phase;
pub mod process;
mod shape;
mod streams;
pub mod trace;
mod volume;
mod window;

pub use aligned::{TrackLoad, TrackShape};
pub use closed::Closed;
pub use dist::{Distribution, DistributionError, Popularity};
pub use drift::{DriftShape, Drifting};
pub use inbox::Inbox;
pub use load::{Issue, Load, Poll, ReadAdvice};
pub use mix::{Member, Mix};
pub use only_disk::OnlyDisk;
pub use open::Open;
pub use phase::LoadPhase;
pub use shape::{Pattern, Pick, Region, Requests, Shape, ShapeError, generator, nonzero, seed_of};
pub use streams::{Spacing, StreamShape, Streams};
pub use volume::{VolumeInfo, VolumeZones, find_volume};
pub use window::Window;
