//! *How is a DiskSim set-up described here?* DiskSim 4.0's parameter files become drive files, rigs and loads.
#![doc = include_str!("../README.md")]

mod drive;
mod electronics;
mod fields;
mod grammar;
mod layout;
mod lexer;
mod logorg;
mod mechanics;
mod not_carried;
mod parse;
mod queue;
pub mod rig;
pub mod setup;
mod simple;
mod spec;
mod synthetic;
mod topology;

pub use drive::{Imported, import};
pub use not_carried::NotCarried;
