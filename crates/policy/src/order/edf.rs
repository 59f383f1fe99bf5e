//! EDF: the earliest deadline first, whatever the distance.

use headstack_model::{Instant, Nanos, Op};

use super::built_in::Algorithm;
use super::{AccessCost, Entry, Knowledge, Parameter};
use crate::queue::{QueueView, Slot};

pub(super) const READ: Parameter =
    Parameter::real("R", "the deadline of a read without one, in ms", 500.0, 0.0, 1e7);
pub(super) const WRITE: Parameter =
    Parameter::real("W", "the deadline of a write without one, in ms", 5000.0, 0.0, 1e7);

pub(super) const ENTRY: Entry = Entry {
    name: "edf",
    summary: "Earliest deadline first; without a deadline, R ms for a read and W ms for a write",
    knowledge: Knowledge::Arrival,
    parameters: &[READ, WRITE],
    source: "Liu and Layland 1973",
    make: |values| Edf(Deadlines::new(values)).into(),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edf(Deadlines);

impl Algorithm for Edf {
    const ALWAYS_CONSULTED: bool = false;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, _: &C) -> Option<usize> {
        (0..queue.slots.len()).min_by_key(|index| self.0.deadline_of(&queue.slots[*index]))
    }
}

/// The deadline of a request without one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadlines {
    read: Nanos,
    write: Nanos,
}

impl Deadlines {
    /// Deadlines from the times allowed for a read and for a write, in ms.
    pub(super) fn new(values: &[f64]) -> Deadlines {
        Deadlines { read: Nanos::from_ms(values[0]), write: Nanos::from_ms(values[1]) }
    }

    pub(super) fn deadline_of(self, slot: &Slot) -> Instant {
        let time = if slot.request.op == Op::Read { self.read } else { self.write };
        slot.deadline.min(slot.arrived + time)
    }
}
