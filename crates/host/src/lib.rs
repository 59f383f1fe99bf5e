//! *The same* with real bytes and the real clock: what the simulator does in virtual time, a program can have here.
//!
//! This is the one crate that meets the operating system; each place where it does says so line by line.

mod block;
pub mod nbd;

pub use block::{Answer, BlockError, Operation, Stretch};
