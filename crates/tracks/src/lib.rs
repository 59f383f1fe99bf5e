//! *Where do tracks begin, and how to lay data on them?*
//!
//! An [`Extraction`] learns something of a disk from outside: it says what to ask next (a [`Probe`]), is told how long the
//! answer took (an [`Answer`]), and ends with what it learned. It knows no clock and no disk, so the same one runs on a
//! simulated disk ([`simulated`]), on an emulated one and on a real one.
//!
//! Before anything else [`spin`] looks whether it is a disk at all, and [`journal`] keeps answers, so that an extraction that was
//! interrupted goes on where it was.
//!
//! What is learned of tracks is a [`TrackMap`], which [`check`] compares with another. The classic ways to it are [`timing`],
//! [`query`] and [`scsi`]; [`repair`] mends a map after a defect. With a map in hand [`exclude`] says which blocks a file system
//! leaves out so that its data keep to the tracks, [`crossings`] what data cross, and [`mod@unit`] what one constant length can do.

pub mod check;
pub mod crossings;
pub mod drive;
pub mod exclude;
mod extraction;
pub mod journal;
pub mod lattice;
pub mod learn;
pub mod map;
mod places;
mod probe;
pub mod query;
pub mod repair;
pub mod scsi;
pub mod simulated;
pub mod spec;
pub mod spin;
pub mod synthetic;
pub mod timing;
mod track_end;
pub mod unit;

pub use extraction::{Disk, Extraction, Progress, Ticket};
pub use map::{Run, Track, TrackMap};
pub use places::TranslationError;
pub use probe::{Answer, Ask, Facts, Outcome, Probe};
