//! *Where is a block, and how long does it take to reach it?* The model of a rotating disk.
#![doc = include_str!("../README.md")]

pub mod cache;
pub mod drives;
pub mod geometry;
mod mechanics;
pub mod report;
mod request;
pub mod sheet;
pub mod spec;
mod spindle;
mod units;
pub mod zones;

pub use geometry::{Extent, Geometry, Place, Track, WholeTracks};
pub use mechanics::{Mechanics, SeekCurve, SheetCurve, TrackPlace};
pub use report::QuantityReport;
pub use request::{BlockError, Op, Request};
pub use spec::firmware;
pub use spec::{DriveSpec, SpecError};
pub use spindle::Spindle;
pub use units::{Angle, Instant, Lbn, Nanos};
