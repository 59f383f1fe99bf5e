//! SPCTF: SPTF that knows the cache. Requests that the cache can answer now take no time, and go first.

use super::asptf::{Ageing, PARAMETERS, SOURCE};
use super::built_in::Algorithm;
use super::search::{self, NONE_FOUND};
use super::{AccessCost, Entry, Knowledge};
use crate::queue::{QueueView, Slot};

pub(super) const ENTRY: Entry = Entry {
    name: "spctf",
    summary: "SPTF that knows the cache: requests that it can answer now go first",
    knowledge: Knowledge::Cache,
    parameters: &[],
    source: "Worthington, Ganger and Patt 1994",
    make: |_| Spctf(Ageing::new(0.0)).into(),
};

pub(super) const AGED: Entry = Entry {
    name: "aspctf",
    summary: "Aged SPCTF: positioning times, none where the cache can answer, less W thousandths of the age",
    knowledge: Knowledge::Cache,
    parameters: PARAMETERS,
    source: SOURCE,
    make: |values| Spctf(Ageing::new(values[0])).into(),
};

/// Shortest positioning time first, none where the cache can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spctf(Ageing);

impl Algorithm for Spctf {
    const ALWAYS_CONSULTED: bool = false;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let (all, key) = (0..queue.cylinders.len(), self.0.key(queue.now));
        let hits = (0u16..).zip(queue.slots).filter(|(_, slot)| cost.is_cached(slot));
        let hit = hits.map(|(index, slot)| (key(headstack_model::Nanos::ZERO, slot.arrived), index)).min();
        let best = hit.unwrap_or((i128::MAX, NONE_FOUND));
        let oldest = search::oldest(queue);
        let floor = |time| key(time, oldest);
        let aged = |time, slot: &Slot| key(time, slot.arrived);
        search::index(search::least(queue, cost, all, |_| true, best, floor, aged))
    }
}
