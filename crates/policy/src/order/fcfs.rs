//! FCFS: first come, first served.

use super::built_in::Algorithm;
use super::{AccessCost, Entry, Knowledge};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "fcfs",
    summary: "First come, first served",
    knowledge: Knowledge::Arrival,
    parameters: &[],
    source: "Denning 1967",
    make: |_| Fcfs.into(),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fcfs;

impl Algorithm for Fcfs {
    const ALWAYS_CONSULTED: bool = false;
    const USES_PLACES: bool = false;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, _: &C) -> Option<usize> {
        if queue.slots.is_empty() { None } else { Some(0) }
    }
}
