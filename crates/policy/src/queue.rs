//! The waiting requests: in order of arrival, and by cylinder as well.
//!
//! Both orders are maintained with every request that arrives or leaves, so that an order policy can walk outward from the arm and stop
//! early instead of computing the cost of every request. A queue for a policy that uses arrivals alone is built without the second order.

use headstack_model::{Instant, Request};
use thiserror::Error;

/// The queue owner's number for a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u32);

/// A waiting request and where it begins on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Slot {
    pub id: SlotId,
    pub request: Request,
    pub arrived: Instant,
    /// Cylinder of its first block.
    pub cylinder: u32,
    /// Head of its first block.
    pub head: u32,
    /// Whether it is urgent: orders that obey priorities serve it before others.
    pub urgent: bool,
    /// The number of its duration limit, 1 to 7; 0 without one.
    pub limit: u8,
    /// Its deadline; [`Instant::MAX`] without one.
    pub deadline: Instant,
    /// Number of requests that the queue accepted before it.
    pub number: u64,
}

impl Slot {
    /// A request like any other: not urgent, without a deadline.
    pub fn new(id: SlotId, request: Request, arrived: Instant, cylinder: u32, head: u32) -> Slot {
        Slot {
            id,
            request,
            arrived,
            cylinder,
            head,
            urgent: false,
            limit: 0,
            deadline: Instant::MAX,
            number: 0,
        }
    }
}

/// An order policy's view of a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueView<'a> {
    /// The time.
    pub now: Instant,
    /// The waiting requests, oldest first.
    pub slots: &'a [Slot],
    /// The same requests by cylinder, within one cylinder oldest first: indices into `slots`. Empty in a queue without this order.
    pub by_cylinder: &'a [u16],
    /// The cylinder of each entry of `by_cylinder`, contiguous because a search walks along it.
    pub cylinders: &'a [u32],
}

/// The queue holds as many requests as it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the queue is full: it holds {capacity} requests")]
pub struct QueueFull {
    /// Its capacity.
    pub capacity: usize,
}

/// A queue of bounded length. It allocates when it is made and never again.
#[derive(Clone, Debug)]
pub struct Queue {
    capacity: usize,
    /// Twice the capacity, so that the waiting requests can slide along in it and only the shorter side of a gap moves.
    room: Vec<Slot>,
    first: usize,
    len: usize,
    taken: u64,
    /// Whether it keeps the order by cylinder.
    is_indexed: bool,
    by_cylinder: Vec<u16>,
    cylinders: Vec<u32>,
}

impl Queue {
    /// The largest capacity: that of a drive's cache for writes.
    pub const MAX_CAPACITY: usize = 8192;

    /// The most commands that a drive or a host has outstanding.
    pub const COMMANDS_MAX: usize = 1024;

    /// An empty queue for up to `capacity` requests. Panics where that is not in `1..=8192`.
    pub fn new(capacity: usize) -> Queue {
        assert!(
            (1..=Queue::MAX_CAPACITY).contains(&capacity),
            "a queue holds 1 to 8192 requests, not {capacity}"
        );
        let nothing = Slot::new(SlotId(0), Request::flush(), Instant::ZERO, 0, 0);
        Queue {
            capacity,
            room: vec![nothing; 2 * capacity],
            first: 0,
            len: 0,
            taken: 0,
            is_indexed: true,
            by_cylinder: Vec::with_capacity(capacity),
            cylinders: Vec::with_capacity(capacity),
        }
    }

    /// As [`Queue::new`], without the order by cylinder, for policies that do not use it.
    pub fn by_arrival(capacity: usize) -> Queue {
        Queue { is_indexed: false, ..Queue::new(capacity) }
    }

    /// Keeps the order by cylinder from now on, too.
    pub fn index(&mut self) {
        if !self.is_indexed {
            self.is_indexed = true;
            (0..self.len).for_each(|index| self.insert_by_cylinder(self.slots()[index].cylinder, index));
        }
    }

    /// How many requests wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the queue is full.
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity
    }

    /// Maximum number of waiting requests.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The waiting requests, oldest first.
    pub fn slots(&self) -> &[Slot] {
        &self.room[self.first..self.first + self.len()]
    }

    /// The view of an order policy at `now`.
    pub fn view(&self, now: Instant) -> QueueView<'_> {
        QueueView { now, slots: self.slots(), by_cylinder: &self.by_cylinder, cylinders: &self.cylinders }
    }

    /// Appends the youngest request.
    ///
    /// *Errors:* the queue is full; it is unchanged.
    pub fn insert(&mut self, slot: Slot) -> Result<(), QueueFull> {
        if self.is_full() {
            return Err(QueueFull { capacity: self.capacity });
        }
        let len = self.len();
        if self.first + len == self.room.len() {
            // At the end of the room; the way back is made at most once in `capacity` insertions.
            self.room.copy_within(self.first.., 0);
            self.first = 0;
        }
        self.room[self.first + len] = Slot { number: self.taken, ..slot };
        self.taken += 1;
        self.len += 1;
        if self.is_indexed {
            self.insert_by_cylinder(slot.cylinder, len);
        }
        Ok(())
    }

    #[inline(never)]
    fn insert_by_cylinder(&mut self, cylinder: u32, index: usize) {
        // Behind the others of its cylinder, which are all older.
        let at = self.cylinders.partition_point(|other| *other <= cylinder);
        self.cylinders.insert(at, cylinder);
        self.by_cylinder.insert(at, index as u16);
    }

    /// Removes the request at `index` of the order of arrival; younger ones move up by one. Panics if there is none.
    pub fn remove(&mut self, index: usize) -> Slot {
        let slot = self.slots()[index];
        if index == 0 {
            self.first += 1;
        } else {
            self.close_gap(index);
        }
        self.len -= 1;
        if self.is_indexed {
            self.remove_by_cylinder(slot.cylinder, index as u16);
        }
        slot
    }

    /// Moves the shorter side of the gap that a request leaves.
    #[inline(never)]
    fn close_gap(&mut self, index: usize) {
        let (gap, end) = (self.first + index, self.first + self.len);
        if index < self.len / 2 {
            self.room.copy_within(self.first..gap, self.first + 1);
            self.first += 1;
        } else {
            self.room.copy_within(gap + 1..end, gap);
        }
    }

    #[inline(never)]
    fn remove_by_cylinder(&mut self, cylinder: u32, index: u16) {
        let run = self.cylinders.partition_point(|other| *other < cylinder);
        let in_run = self.by_cylinder[run..].iter().position(|other| *other == index);
        let at = run + in_run.expect("both orders hold the same slots");
        self.cylinders.remove(at);
        self.by_cylinder.remove(at);
        for other in &mut self.by_cylinder {
            *other -= u16::from(*other > index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn index_built_late_equals_one_kept_from_the_start(
            steps in prop::collection::vec((0u32..20, any::<bool>(), 0usize..8), 0..60),
        ) {
            let (mut kept, mut late) = (Queue::new(8), Queue::by_arrival(8));
            for (number, (cylinder, removes, index)) in steps.into_iter().enumerate() {
                if removes && index < kept.len() {
                    prop_assert_eq!(kept.remove(index), late.remove(index));
                } else {
                    let slot = Slot::new(SlotId(number as u32), Request::flush(), Instant::ZERO, cylinder, 0);
                    prop_assert_eq!(kept.insert(slot), late.insert(slot));
                }
                prop_assert!(late.view(Instant::ZERO).by_cylinder.is_empty());
                prop_assert_eq!(kept.slots(), late.slots());
            }
            late.index();
            let (kept, late) = (kept.view(Instant::ZERO), late.view(Instant::ZERO));
            prop_assert_eq!((kept.by_cylinder, kept.cylinders), (late.by_cylinder, late.cylinders));
        }
    }
}
