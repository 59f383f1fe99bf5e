//! Any order of [`crate::order`] as a host's: by what a host knows of the disk, which is block numbers.
//!
//! An order that asks for cylinders or positioning times is told distances in blocks: SSTF and SPTF both take the nearest
//! block then. Requests beyond the window wait their turn in order of arrival.

use headstack_model::{Lbn, Nanos};
use std::collections::VecDeque;

use super::Scheduler;
use super::pool::{Entry, Pool};
use crate::order::{AccessCost, BuiltIn};
use crate::queue::{Queue, Slot, SlotId};

/// An order over a window of the oldest requests.
#[derive(Debug)]
pub(super) struct Ordered {
    order: BuiltIn,
    window: Queue,
    beyond: VecDeque<u32>,
    cost: Distance,
}

/// Distances in blocks from where the last request ended.
#[derive(Clone, Copy, Debug)]
struct Distance {
    last: Lbn,
    sectors: u64,
    /// Blocks of the disk that one made-up cylinder holds, as a power of two: one, unless the disk has over 2³².
    shift: u32,
}

impl Distance {
    fn cylinder(&self, lbn: Lbn) -> u32 {
        (lbn.0 >> self.shift) as u32
    }
}

impl AccessCost for Distance {
    fn arm_cylinder(&self) -> u32 {
        self.cylinder(self.last)
    }

    fn cylinders(&self) -> u32 {
        self.cylinder(Lbn(self.sectors)).max(1)
    }

    fn last_lbn(&self) -> Lbn {
        self.last
    }

    fn seek_at_least(&self, cylinder: u32) -> Nanos {
        Nanos(u64::from(cylinder.abs_diff(self.arm_cylinder())))
    }

    fn positioning(&self, slot: &Slot) -> Nanos {
        self.seek_at_least(slot.cylinder)
    }
}

impl Ordered {
    /// `order` over the oldest `window` requests for a disk of `sectors` blocks.
    pub(super) fn new(order: BuiltIn, window: usize, sectors: u64) -> Ordered {
        Ordered {
            order,
            window: Queue::new(window),
            beyond: VecDeque::new(),
            cost: Distance {
                last: Lbn(0),
                sectors,
                shift: (64 - sectors.leading_zeros()).saturating_sub(32),
            },
        }
    }

    fn enter(&mut self, id: u32, entry: &Entry) {
        let cylinder = self.cost.cylinder(entry.request.lbn);
        let slot =
            Slot { urgent: entry.urgent, ..Slot::new(SlotId(id), entry.request, entry.added, cylinder, 0) };
        self.window.insert(slot).expect("the window was seen to have room");
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
    fn add(&mut self, _now: Nanos, id: u32, pool: &Pool) {
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

    fn dispatch(&mut self, now: Nanos, pool: &Pool) -> Option<u32> {
        let index = self.order.pick(&self.window.view(now), &self.cost)?;
        let SlotId(id) = self.window.slots()[index].id;
        self.leave(index, pool);
        self.cost.last = pool.get(id).request.end();
        Some(id)
    }
}
