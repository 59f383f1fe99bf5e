//! *What next?* Choices without a clock, a thread or I/O.
#![doc = include_str!("../README.md")]

pub mod admission;
pub mod elevator;
mod guard;
pub mod order;
mod queue;
pub mod slowness;
pub mod stripe;

pub use guard::Guard;
pub use order::{AccessCost, BuiltIn, Order};
pub use queue::{Queue, QueueFull, QueueView, Slot, SlotId};
