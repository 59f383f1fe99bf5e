//! SPTF: the request with the shortest positioning time, of equal ones the oldest. Also called STF and SATF.

use headstack_model::Nanos;

use super::built_in::Algorithm;
use super::search::{self, NONE_FOUND};
use super::{AccessCost, Entry, Knowledge};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "sptf",
    summary: "Shortest positioning time first: seek, settle and rotational latency, on a tie the oldest request",
    knowledge: Knowledge::Position,
    parameters: &[],
    source: "Seltzer, Chen and Ousterhout 1990; Jacobson and Wilkes 1991",
    make: |_| Sptf.into(),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sptf;

impl Algorithm for Sptf {
    const ALWAYS_CONSULTED: bool = false;

    #[inline]
    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        shortest(queue, cost, |_| true)
    }
}

/// The request with the shortest positioning time of those that may be chosen.
#[inline]
pub(super) fn shortest<C: AccessCost + ?Sized>(
    queue: &QueueView<'_>,
    cost: &C,
    may: impl Fn(usize) -> bool,
) -> Option<usize> {
    let all = 0..queue.cylinders.len();
    let nothing = (Nanos::MAX, NONE_FOUND);
    search::index(search::least(queue, cost, all, may, nothing, |time| time, |time, _| time))
}
