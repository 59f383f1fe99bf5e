//! SCAN-EDF: the earliest deadline first, and by sweeps up and down among those with the same one.
//!
//! Deadlines within one interval count as the same, or there would be nothing to sweep.

use headstack_model::Nanos;

use super::axis::{Axis, Sweep};
use super::built_in::Algorithm;
use super::edf::{Deadlines, READ, WRITE};
use super::{AccessCost, Entry, Knowledge, Parameter};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "scan-edf",
    summary: "Earliest deadline first as EDF, and LOOK by cylinder among deadlines within Q ms",
    knowledge: Knowledge::Cylinder,
    parameters: &[
        READ,
        WRITE,
        Parameter::real("Q", "the interval in ms within which deadlines count as the same", 100.0, 1e-3, 1e7),
    ],
    source: "Reddy and Wyllie 1993",
    make: |values| {
        let (deadlines, interval) = (Deadlines::new(values), Nanos::from_ms(values[2]));
        ScanEdf { deadlines, interval, sweep: Sweep::new(Axis::Cylinder) }.into()
    },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScanEdf {
    deadlines: Deadlines,
    interval: Nanos,
    sweep: Sweep,
}

impl Algorithm for ScanEdf {
    const ALWAYS_CONSULTED: bool = true;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let interval = |index: usize| self.deadlines.deadline_of(&queue.slots[index]).0 / self.interval.0;
        let first = (0..queue.slots.len()).map(interval).min()?;
        self.sweep.pick(queue, cost, |index| interval(index) == first)
    }
}
