//! SPCTF: SPTF that knows the cache. Requests that the cache can answer now take no time, and go first.

use headstack_model::Nanos;

use super::asptf::{self, Ageing};
use super::built_in::Algorithm;
use super::search::{self, NONE_FOUND};
use super::{AccessCost, Entry, Knowledge};
use crate::queue::QueueView;

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
    make: |values| Spctf(Ageing::new(values[0])).into(),
    ..asptf::ENTRY
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spctf(Ageing);

impl Algorithm for Spctf {
    const ALWAYS_CONSULTED: bool = false;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let key = self.0.key(queue.now);
        let hits = (0u16..).zip(queue.slots).filter(|(_, slot)| cost.is_cached(slot));
        let hit = hits.map(|(index, slot)| (key(Nanos::ZERO, slot.arrived), index)).min();
        let best = hit.unwrap_or((i128::MAX, NONE_FOUND));
        search::least_by_arrival(queue, cost, best, key)
    }
}
