//! *What next?* Choices without a clock, a thread or I/O.
//!
//! An [`order`] chooses which waiting request a drive serves next; a [`Queue`] holds them so that the choice is quick.

pub mod order;
mod queue;

pub use order::{AccessCost, BuiltIn, Order};
pub use queue::{Queue, QueueFull, QueueView, Slot, SlotId};
