//! WSTF: SPTF by positioning times that shrink with age, to zero at the longest allowed response.
//!
//! The cost is T (M − E) / M for a positioning time T and an age E. The study does not define it for E above M: here it is zero
//! then, and the oldest goes first.

use headstack_model::Nanos;

use super::built_in::Algorithm;
use super::search::{self, NONE_FOUND};
use super::{AccessCost, Entry, Knowledge, Parameter};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "wstf",
    summary: "Weighted SPTF: positioning times shrink with age, to zero at M ms",
    knowledge: Knowledge::Position,
    parameters: &[Parameter::real("M", "the longest response allowed in ms", 3000.0, 1.0, 1e7)],
    source: "Seltzer, Chen and Ousterhout 1990",
    make: |values| Wstf { longest: Nanos::from_ms(values[0]) }.into(),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wstf {
    longest: Nanos,
}

impl Algorithm for Wstf {
    const ALWAYS_CONSULTED: bool = false;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        // The same for all: the division by M.
        let left = |arrived| u128::from(self.longest.saturating_sub(queue.now.since(arrived)).0);
        let key = |time: Nanos, arrived| u128::from(time.0) * left(arrived);
        search::least_by_arrival(queue, cost, (u128::MAX, NONE_FOUND), key)
    }
}
