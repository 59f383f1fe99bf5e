//! FSCAN: all waiting requests, by sweeps up and down; requests that arrive meanwhile wait in a second queue.

use super::axis::{Axis, Sweep};
use super::batch::Batch;
use super::built_in::Algorithm;
use super::{AccessCost, Entry, Knowledge};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "fscan",
    summary: "LOOK by cylinder through the requests that waited when the batch began; later ones wait for the next",
    knowledge: Knowledge::Cylinder,
    parameters: &[],
    source: "Coffman, Klimko and Ryan 1972",
    make: |_| Fscan { batch: Batch::default(), sweep: Sweep::new(Axis::Cylinder) }.into(),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fscan {
    batch: Batch,
    sweep: Sweep,
}

impl Algorithm for Fscan {
    const ALWAYS_CONSULTED: bool = true;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let (len, _) = self.batch.continue_batch(queue, usize::MAX);
        self.sweep.pick(queue, cost, |index| index < len)
    }
}
