//! Any order of [`crate::order`] in a host's queue, with the host's knowledge of the disk.
//!
//! Without a map of the disk the host knows block numbers alone, and an order that needs cylinders or positioning times gets distances
//! in blocks: SSTF and SPTF then both choose the nearest block. With a [`DiskMap`] it gets the map's positions.
//! The arm is assumed to be where the last request ended, which is true while the drive has one command at a time and serves it
//! from the media. Requests beyond the window wait in order of arrival. Urgent requests may go first, in a separate order that starts
//! where the last request of either kind ended.

use headstack_model::{Instant, Lbn, Nanos, Request};
use std::collections::VecDeque;
use std::fmt;

use super::Scheduler;
use super::pool::{Entry, Pool};
use crate::order::{AccessCost, Order, QueueOrder};
use crate::queue::{Queue, Slot, SlotId};

/// A host's map of a drive's tracks.
pub trait DiskMap: fmt::Debug + Send {
    /// Cylinders of the disk.
    fn cylinders(&self) -> u32;
    /// Cylinder and head of a block.
    fn track(&self, lbn: Lbn) -> (u32, u32);
    /// A lower bound of the time to seek over `cylinders`. It is monotonic.
    fn seek_at_least(&self, cylinders: u32) -> Nanos;
    /// Seek, settle and rotational latency of a request that is sent `now`, from where a block was accessed last.
    fn positioning(&self, now: Instant, last: Lbn, slot: &Slot) -> Nanos;
}

#[derive(Debug)]
pub(super) struct Ordered {
    order: QueueOrder,
    window: Queue,
    beyond: VecDeque<u32>,
    blocks: BlockDistance,
    map: Option<Box<dyn DiskMap>>,
}

/// An order among the urgent requests and, while there are none, one among the others.
#[derive(Debug)]
pub(super) struct UrgentFirst {
    urgent: Ordered,
    others: Ordered,
}

impl UrgentFirst {
    pub(super) fn new(urgent: Ordered, others: Ordered) -> UrgentFirst {
        UrgentFirst { urgent, others }
    }

    fn order_of(&mut self, entry: &Entry) -> &mut Ordered {
        if entry.urgent { &mut self.urgent } else { &mut self.others }
    }
}

impl Scheduler for UrgentFirst {
    fn add(&mut self, now: Instant, id: u32, pool: &Pool) {
        self.order_of(pool.get(id)).add(now, id, pool);
    }

    fn change(&mut self, id: u32, before: &Entry, pool: &Pool) {
        self.order_of(before).change(id, before, pool);
    }

    fn remove(&mut self, id: u32, pool: &Pool) {
        self.order_of(pool.get(id)).remove(id, pool);
    }

    fn dispatch(&mut self, now: Instant, pool: &Pool) -> Option<u32> {
        let id = self.urgent.dispatch(now, pool).or_else(|| self.others.dispatch(now, pool))?;
        let last = pool.get(id).request.end();
        (self.urgent.blocks.last, self.others.blocks.last) = (last, last);
        Some(id)
    }
}

/// Distances in blocks from where the last request ended.
#[derive(Clone, Copy, Debug)]
pub struct BlockDistance {
    last: Lbn,
    began: Lbn,
    sectors: u64,
    /// Blocks of the disk per synthetic cylinder, as a power of two: one, unless the disk has over 2³².
    shift: u32,
}

impl BlockDistance {
    /// Distances on a disk of `sectors` blocks, from its first.
    pub fn new(sectors: u64) -> BlockDistance {
        let shift = (64 - sectors.leading_zeros()).saturating_sub(32);
        BlockDistance { last: Lbn(0), began: Lbn(0), sectors, shift }
    }

    /// The block after the last one of the request that was dispatched last.
    pub fn last(&self) -> Lbn {
        self.last
    }

    /// Records the request that was dispatched last.
    pub fn dispatched(&mut self, request: &Request) {
        (self.began, self.last) = (request.lbn, request.end());
    }

    fn cylinder(&self, lbn: Lbn) -> u32 {
        (lbn.0 >> self.shift) as u32
    }
}

impl AccessCost for BlockDistance {
    fn arm_cylinder(&self) -> u32 {
        self.cylinder(self.last)
    }

    fn cylinders(&self) -> u32 {
        self.cylinder(Lbn(self.sectors)).max(1)
    }

    fn last_lbn(&self) -> Lbn {
        self.last
    }

    fn swept_to(&self) -> Lbn {
        self.began
    }

    fn seek_at_least(&self, cylinder: u32) -> Nanos {
        Nanos(u64::from(cylinder.abs_diff(self.arm_cylinder())))
    }

    fn positioning(&self, slot: &Slot) -> Nanos {
        self.seek_at_least(slot.cylinder)
    }
}

/// Positions of a map from where the last request ended.
#[derive(Clone, Copy, Debug)]
pub struct MappedCost<'a> {
    map: &'a dyn DiskMap,
    now: Instant,
    /// The block after the last one accessed, and the cylinder of that.
    next: Lbn,
    arm_cylinder: u32,
}

impl<'a> MappedCost<'a> {
    /// Positions for requests sent `now`, with the arm before the block `next`.
    pub fn new(map: &'a dyn DiskMap, now: Instant, next: Lbn) -> MappedCost<'a> {
        let last = MappedCost::before(next);
        MappedCost { map, now, next, arm_cylinder: map.track(last).0 }
    }

    fn before(next: Lbn) -> Lbn {
        Lbn(next.0.saturating_sub(1))
    }
}

impl AccessCost for MappedCost<'_> {
    fn arm_cylinder(&self) -> u32 {
        self.arm_cylinder
    }

    fn cylinders(&self) -> u32 {
        self.map.cylinders()
    }

    fn last_lbn(&self) -> Lbn {
        self.next
    }

    fn seek_at_least(&self, cylinder: u32) -> Nanos {
        self.map.seek_at_least(cylinder.abs_diff(self.arm_cylinder))
    }

    fn positioning(&self, slot: &Slot) -> Nanos {
        self.map.positioning(self.now, MappedCost::before(self.next), slot)
    }
}

impl Ordered {
    /// `order` over the oldest `window` requests for a disk of `sectors` blocks.
    pub(super) fn new(
        order: impl Into<QueueOrder>,
        window: usize,
        sectors: u64,
        map: Option<Box<dyn DiskMap>>,
    ) -> Ordered {
        Ordered {
            order: order.into(),
            window: Queue::new(window),
            beyond: VecDeque::new(),
            blocks: BlockDistance::new(sectors),
            map,
        }
    }

    fn enter(&mut self, id: u32, entry: &Entry) {
        let lbn = entry.request.lbn;
        let (cylinder, head) = match &self.map {
            Some(map) => map.track(lbn),
            None => (self.blocks.cylinder(lbn), 0),
        };
        let slot = Slot::new(SlotId(id), entry.request, entry.added, cylinder, head);
        let slot = Slot { urgent: entry.urgent, ..slot };
        self.window.insert(slot).expect("the window was seen to have room");
    }

    fn choose(&mut self, now: Instant) -> Option<usize> {
        let queue = self.window.view(now);
        match &self.map {
            Some(map) => self.order.pick(&queue, &MappedCost::new(&**map, now, self.blocks.last)),
            None => self.order.pick(&queue, &self.blocks),
        }
    }

    fn leave(&mut self, index: usize, pool: &Pool) {
        self.window.remove(index);
        if let Some(next) = self.beyond.pop_front() {
            self.enter(next, pool.get(next));
        }
    }

    fn index_of(&self, id: u32) -> Option<usize> {
        self.window.slots().iter().position(|slot| slot.id == SlotId(id))
    }
}

impl Scheduler for Ordered {
    fn set_order(&mut self, order: Box<dyn Order>) -> bool {
        self.order = order.into();
        true
    }

    fn add(&mut self, _now: Instant, id: u32, pool: &Pool) {
        if self.window.is_full() {
            self.beyond.push_back(id);
        } else {
            self.enter(id, pool.get(id));
        }
    }

    fn change(&mut self, id: u32, _before: &Entry, pool: &Pool) {
        if let Some(index) = self.index_of(id) {
            self.window.remove(index);
            self.enter(id, pool.get(id));
        }
    }

    fn remove(&mut self, id: u32, pool: &Pool) {
        match self.index_of(id) {
            Some(index) => self.leave(index, pool),
            None => self.beyond.retain(|other| *other != id),
        }
    }

    fn dispatch(&mut self, now: Instant, pool: &Pool) -> Option<u32> {
        let index = self.choose(now)?;
        let SlotId(id) = self.window.slots()[index].id;
        self.leave(index, pool);
        self.blocks.dispatched(&pool.get(id).request);
        Some(id)
    }
}
