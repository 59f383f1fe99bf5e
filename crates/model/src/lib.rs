//! The drive model: *where* is a block, and *how long* does it take to reach it?
//!
//! Start with [`DriveSpec`] (a drive file, `drives/*.toml`), from which [`Geometry`], [`Mechanics`] and
//! [`cache::Cache`] are built. Nothing here reads a clock, a file or a socket; every answer follows from its arguments.

pub mod cache;
pub mod drives;
pub mod geometry;
pub mod import;
mod mechanics;
mod request;
pub mod spec;
mod spindle;
mod units;

pub use geometry::{Extent, Geometry, Place, Track};
pub use mechanics::{Mechanics, SeekCurve, TrackPlace};
pub use request::{Op, Request};
pub use spec::{DriveSpec, SpecError};
pub use spindle::Spindle;
pub use units::{Angle, Lbn, Nanos};
