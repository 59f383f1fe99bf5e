//! The requests that wait: in order of arrival, and by cylinder as well.
//!
//! Both orders are kept up with every request that comes or goes, so that an order policy can walk outward from the arm
//! and stop early instead of costing every request.

use headstack_model::{Nanos, Request};
use thiserror::Error;

/// The queue owner's number for a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u32);

/// A waiting request and where it begins on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The queue owner's number.
    pub id: SlotId,
    /// What is asked.
    pub request: Request,
    /// When it came.
    pub arrived: Nanos,
    /// Cylinder of its first block.
    pub cylinder: u32,
    /// Head of its first block.
    pub head: u32,
}

/// An entry of the order by cylinder. Entries compare by cylinder, then by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Cylinder of the slot.
    pub cylinder: u32,
    /// Index of the slot in [`QueueView::slots`].
    pub slot: u32,
}

/// What an order policy sees of a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueView<'a> {
    /// The waiting requests, oldest first.
    pub slots: &'a [Slot],
    /// The same ones by cylinder, in one cylinder oldest first.
    pub by_cylinder: &'a [Place],
}

/// The queue holds as many requests as it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the queue is full: it holds {capacity} requests")]
pub struct QueueFull {
    /// The most that it holds.
    pub capacity: usize,
}

/// A queue of bounded length. It allocates when it is made and never again.
#[derive(Clone, Debug)]
pub struct Queue {
    capacity: usize,
    slots: Vec<Slot>,
    by_cylinder: Vec<Place>,
}

impl Queue {
    /// The deepest queue there is.
    pub const MAX_CAPACITY: usize = 1024;

    /// An empty queue for up to `capacity` requests. Panics where that is not in `1..=1024`.
    pub fn new(capacity: usize) -> Queue {
        assert!(
            (1..=Queue::MAX_CAPACITY).contains(&capacity),
            "a queue holds 1 to 1024 requests, not {capacity}"
        );
        Queue { capacity, slots: Vec::with_capacity(capacity), by_cylinder: Vec::with_capacity(capacity) }
    }

    /// How many requests wait.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether no more can come.
    pub fn is_full(&self) -> bool {
        self.slots.len() == self.capacity
    }

    /// The most that can wait.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The waiting requests, oldest first.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// What an order policy is shown.
    pub fn view(&self) -> QueueView<'_> {
        QueueView { slots: &self.slots, by_cylinder: &self.by_cylinder }
    }

    /// Appends the youngest request.
    ///
    /// *Errors:* the queue is full; it is unchanged.
    pub fn insert(&mut self, slot: Slot) -> Result<(), QueueFull> {
        if self.is_full() {
            return Err(QueueFull { capacity: self.capacity });
        }
        let place = Place { cylinder: slot.cylinder, slot: self.slots.len() as u32 };
        let at = self.by_cylinder.partition_point(|other| *other < place);
        self.by_cylinder.insert(at, place);
        self.slots.push(slot);
        Ok(())
    }

    /// Takes out the request at `index` of the order of arrival; younger ones move up by one. Panics where there is none.
    pub fn remove(&mut self, index: usize) -> Slot {
        let slot = self.slots.remove(index);
        let gone = Place { cylinder: slot.cylinder, slot: index as u32 };
        let at = self.by_cylinder.partition_point(|other| *other < gone);
        debug_assert_eq!(self.by_cylinder[at], gone);
        self.by_cylinder.remove(at);
        for place in &mut self.by_cylinder {
            place.slot -= u32::from(place.slot > gone.slot);
        }
        slot
    }
}
