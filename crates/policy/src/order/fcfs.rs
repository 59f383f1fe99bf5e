//! FCFS: first come, first served.

use super::{BuiltIn, Entry, Knowledge};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "fcfs",
    summary: "First come, first served",
    knowledge: Knowledge::Arrival,
    order: BuiltIn::Fcfs(Fcfs),
};

/// First come, first served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fcfs;

impl Fcfs {
    pub(super) fn pick(&self, queue: &QueueView<'_>) -> Option<usize> {
        if queue.slots.is_empty() { None } else { Some(0) }
    }
}
