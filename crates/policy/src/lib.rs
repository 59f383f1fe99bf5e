//! *What next?* Choices without a clock, a thread or I/O.
//!
//! An [`order`] chooses which waiting request a drive serves next; a [`Queue`] holds them so that the choice is quick.
//!
//! An order only chooses. It is shown the queue and asks an [`AccessCost`] what an access would take; it does not know
//! what a disk is, and whoever owns the queue acts on the choice. So the same order serves a drive's own queue, its
//! destaging and a host's. The queue is kept sorted by arrival and by cylinder as requests come and go, which costs each
//! a binary search and saves a position-aware order from costing every request at every choice.
//!
//! A [`Guard`] keeps a queue that others reorder from starving anyone, by holding new commands back.
//!
//! An [`elevator`] is what a host puts before a drive: it merges, it is fair among processes, and it may hold back for a
//! while what could go, which an order cannot.
//!
//! A [`stripe::Array`] says which drives a request for an array's blocks becomes requests of, and [`stripe::advise`] which
//! stripe unit suits a load.
//!
//! [`streams::Streams`] finds sequential streams among a disk's requests and serves them in turns that are worth the seek.
//!
//! [`admission::Admission`] promises streams no more than a disk can keep; [`rounds`] says how long rounds of
//! sorted requests take at worst.
//!
//! [`order::all`], [`elevator::all`] and [`stripe::advise::all`] are the lists: what is in them has a name on the command
//! line and in files, and is tested.

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
