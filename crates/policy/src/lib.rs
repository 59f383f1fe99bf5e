//! *What next?* Choices without a clock, a thread or I/O.
//!
//! An [`order`] chooses which waiting request a drive serves next; a [`Queue`] holds them so that the choice is fast.
//!
//! An order only chooses. It gets the queue, and an [`AccessCost`] that returns the time of an access. It does not know what a
//! disk is, and the owner of the queue acts on the choice. So the same order serves a drive's own queue, its destaging and a
//! host's queue. The queue stays sorted by arrival and by cylinder as requests arrive and leave. That costs each a binary search,
//! and saves a position-aware order from costing every request at every choice.
//!
//! A [`Guard`] prevents starvation in a queue that a drive reorders, by holding new commands back.
//!
//! An [`elevator`] is a host's I/O scheduler: it merges, it is fair among processes, and unlike an order it may hold requests back
//! for a while.
//!
//! A [`stripe::Array`] maps a request for an array's blocks to requests of its drives, and [`stripe::advise`] recommends the
//! stripe unit for a load.
//!
//! [`streams::Streams`] detects sequential streams among a disk's requests and serves them in turns that are worth the seek.
//!
//! [`admission::Admission`] guarantees streams no more than a disk can deliver; [`rounds`] computes the longest time of rounds of
//! sorted requests.
//!
//! [`order::all`], [`elevator::all`] and [`stripe::advise::all`] are the lists: each entry has a name on the command line and in
//! files, and is tested.

pub mod admission;
pub mod elevator;
mod guard;
pub mod order;
mod queue;
pub mod rounds;
pub mod streams;
pub mod stripe;

pub use guard::Guard;
pub use order::{AccessCost, BuiltIn, Order};
pub use queue::{Queue, QueueFull, QueueView, Slot, SlotId};
