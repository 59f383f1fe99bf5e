//! *What next?* Choices without a clock, a thread or I/O.
#![doc = include_str!("../README.md")]

pub mod admission;
pub mod elevator;
mod guard;
pub mod order;
pub mod position;
mod queue;
pub mod rearrange;
pub mod rearrange_table;
pub mod rounds;
pub mod shingled;
pub mod slowness;
pub mod streams;
pub mod stripe;
mod throttle;

pub use guard::Guard;
pub use order::{AccessCost, BuiltIn, Order};
pub use queue::{Queue, QueueFull, QueueView, Slot, SlotId};
pub use throttle::{Throttle, ThrottleRates};
