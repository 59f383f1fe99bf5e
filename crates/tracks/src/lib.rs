//! *Where do tracks begin, and how are data laid on them?*
#![doc = include_str!("../README.md")]

pub mod check;
pub mod crossings;
pub mod exclude;
pub mod map;
pub mod relocate;
pub mod unit;

pub use map::{Run, Track, TrackMap};
