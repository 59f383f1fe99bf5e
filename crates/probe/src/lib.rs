//! *What is a disk like inside, as far as it shows from outside?*
#![doc = include_str!("../README.md")]

pub mod drive;
mod extraction;
pub mod journal;
pub mod lattice;
pub mod learn;
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

pub use extraction::{Disk, Extraction, Progress, Ticket};
pub use places::TranslationError;
pub use probe::{Answer, DiskInfo, Outcome, Probe, ProbeCommand};
