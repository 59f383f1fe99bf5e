//! The commands that wait for the arm, and which of them goes next.
//!
//! The drive's order chooses among the oldest so many, its window. Past it go commands for the head of the queue, the
//! youngest first; then one that is older than the firmware lets a command grow; then urgent ones, where the drive knows
//! of them.

use super::cost::{Cost, Target};
use headstack_model::{DriveSpec, Nanos};
use headstack_policy::order::{BuiltIn, Edge};
use headstack_policy::{Queue, Slot, SlotId};
use std::collections::VecDeque;

/// What waits for the arm.
#[derive(Debug)]
pub(super) struct Waiting {
    order: BuiltIn,
    window: Queue,
    /// Commands that wait until the window has room.
    beyond: VecDeque<Slot>,
    /// Urgent commands of a drive that puts them first.
    urgent: Option<Queue>,
    /// Commands for the head of the queue.
    head: Vec<Slot>,
    age_limit: Option<Nanos>,
    /// Whether the order itself chose what goes next.
    was_asked: bool,
}

impl Waiting {
    pub(super) fn new(spec: &DriveSpec, order: BuiltIn, depth: usize) -> Waiting {
        let window = spec.queue.window.map_or(depth, |window| (window as usize).min(depth));
        Waiting {
            order,
            window: Queue::new(window),
            beyond: VecDeque::with_capacity(depth),
            urgent: spec.queue.urgent_first.then(|| Queue::new(depth)),
            head: Vec::new(),
            age_limit: spec.queue.age_limit_ms.map(Nanos::from_ms),
            was_asked: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.window.is_empty() && self.head.is_empty() && self.urgent.as_ref().is_none_or(Queue::is_empty)
    }

    /// Whether a command that nothing else waits beside must be put to the order all the same.
    pub(super) fn must_ask(&self) -> bool {
        self.order.is_always_asked()
    }

    /// Takes a command.
    pub(super) fn add(&mut self, slot: Slot) {
        let queue = match &mut self.urgent {
            Some(urgent) if slot.urgent => urgent,
            _ if self.window.is_full() => return self.beyond.push_back(slot),
            _ => &mut self.window,
        };
        queue.insert(slot).expect("it has room for all, or was seen to have room");
    }

    /// Takes a command for the head of the queue.
    pub(super) fn add_at_head(&mut self, slot: Slot) {
        self.head.push(slot);
    }

    /// Takes the command out that goes next.
    pub(super) fn choose<T: Target>(&mut self, cost: &Cost<'_, T>) -> Option<SlotId> {
        self.was_asked = false;
        if let Some(slot) = self.head.pop() {
            return Some(slot.id);
        }
        let (now, limit) = (cost.arm.at, self.age_limit);
        let is_late = |queue: &Queue| match (limit, queue.slots().first()) {
            (Some(limit), Some(oldest)) => now.since(oldest.arrived) >= limit,
            _ => false,
        };
        let queue = match &mut self.urgent {
            Some(urgent) if !urgent.is_empty() && !is_late(&self.window) => urgent,
            _ => &mut self.window,
        };
        let index = match queue.len() {
            0 => return None,
            _ if is_late(queue) => 0,
            1 if !self.order.is_always_asked() => 0,
            _ => {
                self.was_asked = true;
                self.order.pick(&queue.view(now), cost)?
            }
        };
        let slot = queue.remove(index);
        if !self.window.is_full()
            && let Some(next) = self.beyond.pop_front()
        {
            self.window.insert(next).expect("it was seen to have room");
        }
        Some(slot.id)
    }

    /// By way of which edges of the disk the arm goes to the command taken out last.
    pub(super) fn way(&self) -> &[Edge] {
        if self.was_asked { self.order.way() } else { &[] }
    }
}
