//! N-step SCAN: the oldest N requests by sweeps up and down, then the oldest N of those that arrived meanwhile.

use super::axis::{Axis, Sweep};
use super::batch::Batch;
use super::built_in::Algorithm;
use super::{AccessCost, Entry, Knowledge, Parameter};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "n-step",
    summary: "N-step SCAN: LOOK by cylinder through the oldest N requests, then through the next N",
    knowledge: Knowledge::Cylinder,
    parameters: &[Parameter::whole("N", "the requests of a batch", 8.0, 1.0, 1024.0)],
    source: "Frank 1969",
    make: |values| {
        NStep { most: values[0] as usize, batch: Batch::default(), sweep: Sweep::new(Axis::Cylinder) }.into()
    },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NStep {
    most: usize,
    batch: Batch,
    sweep: Sweep,
}

impl Algorithm for NStep {
    const ALWAYS_CONSULTED: bool = true;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let (len, _) = self.batch.continue_batch(queue, self.most);
        self.sweep.pick(queue, cost, |index| index < len)
    }
}
