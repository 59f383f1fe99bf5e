//! Which waiting request next: one file an algorithm, and one list of them all.

mod c_look;
mod fcfs;
mod sptf;
mod sstf;

use std::fmt;

use headstack_model::{Lbn, Nanos};
use thiserror::Error;

use crate::queue::{QueueView, Slot};

pub use c_look::CLook;
pub use fcfs::Fcfs;
pub use sptf::Sptf;
pub use sstf::Sstf;

/// What an access would cost, seen from where the arm is now.
pub trait AccessCost {
    /// Where the arm is.
    fn arm_cylinder(&self) -> u32;
    /// The block after the last one accessed.
    fn last_lbn(&self) -> Lbn;
    /// A lower bound of the time to reach a cylinder, the seek alone. It never falls as the distance grows, on either
    /// side of the arm.
    fn seek_at_least(&self, cylinder: u32) -> Nanos;
    /// Seek, settle and rotational latency until the first wanted sector.
    fn positioning(&self, slot: &Slot) -> Nanos;
}

/// An algorithm that chooses the next request. It never acts.
pub trait Order: fmt::Debug + Send {
    /// The index in `queue.slots` of the request to serve next; none where the queue is empty.
    fn choose(&mut self, queue: &QueueView<'_>, cost: &dyn AccessCost) -> Option<usize>;
}

/// What an order looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// The order of arrival.
    Arrival,
    /// Logical block numbers.
    Lbn,
    /// Cylinders.
    Cylinder,
    /// Cylinder, head and angle: the whole positioning time.
    Position,
}

/// An order in the list of them all.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name on the command line and in files.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What it looks at.
    pub knowledge: Knowledge,
    /// The algorithm itself.
    pub order: BuiltIn,
}

/// Every order there is.
pub fn all() -> &'static [Entry] {
    &[fcfs::ENTRY, sstf::ENTRY, c_look::ENTRY, sptf::ENTRY]
}

/// There is no order of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no order is called `{name}`; the nearest is `{nearest}`")]
pub struct UnknownOrder {
    /// The name met.
    pub name: String,
    /// The known name that is most like it.
    pub nearest: &'static str,
}

/// The order called `name`.
///
/// *Errors:* there is none; the error names the nearest.
pub fn by_name(name: &str) -> Result<Box<dyn Order>, UnknownOrder> {
    built_in(name).map(|order| Box::new(order) as Box<dyn Order>)
}

/// The order called `name`, for calls without dynamic dispatch.
///
/// *Errors:* there is none; the error names the nearest.
pub fn built_in(name: &str) -> Result<BuiltIn, UnknownOrder> {
    let lower = name.to_lowercase();
    let likeness = |entry: &&Entry| (strsim::jaro_winkler(&lower, entry.name) * 1e9) as u64;
    match all().iter().find(|entry| entry.name == name) {
        Some(entry) => Ok(entry.order),
        None => {
            let nearest = all().iter().max_by_key(likeness).expect("the list is not empty").name;
            Err(UnknownOrder { name: name.to_owned(), nearest })
        }
    }
}

/// Any order of the list, by value: its `pick` is compiled for the cost it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    /// First come, first served.
    Fcfs(Fcfs),
    /// Shortest seek first.
    Sstf(Sstf),
    /// One way by block number.
    CLook(CLook),
    /// Shortest positioning time first.
    Sptf(Sptf),
}

impl BuiltIn {
    /// As [`Order::choose`], for a cost whose type is known.
    #[inline]
    pub fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        match self {
            BuiltIn::Fcfs(order) => order.pick(queue),
            BuiltIn::Sstf(order) => order.pick(queue, cost),
            BuiltIn::CLook(order) => order.pick(queue, cost),
            BuiltIn::Sptf(order) => order.pick(queue, cost),
        }
    }
}

impl Order for BuiltIn {
    fn choose(&mut self, queue: &QueueView<'_>, cost: &dyn AccessCost) -> Option<usize> {
        self.pick(queue, cost)
    }
}
