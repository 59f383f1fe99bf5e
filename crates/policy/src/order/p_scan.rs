//! P-SCAN: sweeps up and down through the urgent requests; through the others where none is urgent.

use super::axis::{Axis, Sweep};
use super::built_in::Algorithm;
use super::{AccessCost, Entry, Knowledge};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "p-scan",
    summary: "Priority SCAN: LOOK by cylinder over the urgent requests, or over the others if none is urgent",
    knowledge: Knowledge::Cylinder,
    parameters: &[],
    source: "Carey, Jauhari and Livny 1989 (two priorities here)",
    make: |_| PScan(Sweep::new(Axis::Cylinder)).into(),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PScan(Sweep);

impl Algorithm for PScan {
    const ALWAYS_CONSULTED: bool = true;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let any = queue.slots.iter().any(|slot| slot.urgent);
        self.0.pick(queue, cost, |index| queue.slots[index].urgent == any)
    }
}
