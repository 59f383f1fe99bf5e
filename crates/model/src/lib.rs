//! The drive model: *where* is a block, and *how long* does it take to reach it?
//!
//! Start with [`DriveSpec`] (a drive file, `drives/*.toml`), from which [`Geometry`], [`Mechanics`] and
//! [`cache::Cache`] are built. Nothing here reads a clock, a file or a socket; every answer follows from its arguments.
//!
//! ```
//! use headstack_model::{Geometry, Lbn, Mechanics, TrackPlace, drives};
//!
//! let spec = drives::load("atlas-10k")?;
//! let (geometry, mechanics) = (Geometry::new(&spec)?, Mechanics::new(&spec));
//! let run = geometry.extent_at(Lbn(1_000_000));
//! let there = TrackPlace { cylinder: run.cylinder, head: run.head };
//! let seek = mechanics.reposition(TrackPlace::default(), there, false);
//! println!("{} sectors at cylinder {}, {seek} away", run.sectors, run.cylinder);
//! # Ok::<(), headstack_model::SpecError>(())
//! ```
//!
//! Three decisions shape it. Times are whole nanoseconds and angles wrapping fractions of a turn taken from the exact
//! speed, so that nothing drifts over years of simulated time. Look-ups return *runs* of blocks ([`Extent`]) and not
//! single ones, so that a caller who walks along a disk asks once a track. And the cache only knows which blocks are
//! where: *when* they come is the business of whoever moves the time.

pub mod cache;
pub mod drives;
pub mod geometry;
mod mechanics;
mod request;
pub mod sheet;
pub mod spec;
mod spindle;
mod units;

pub use geometry::{Extent, Geometry, Place, Track};
pub use mechanics::{Mechanics, SeekCurve, SheetCurve, TrackPlace};
pub use request::{Op, Request};
pub use spec::{DriveSpec, SpecError};
pub use spindle::Spindle;
pub use units::{Angle, Lbn, Nanos};
