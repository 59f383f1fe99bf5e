//! WSTF: SPTF by positioning times that shrink with age, to zero at the longest allowed response.
//!
//! The cost is T (M − E) / M for a positioning time T and an age E. The study does not define it for E above M: here it is zero
//! then, and the oldest goes first.

use headstack_model::Nanos;

use super::built_in::Algorithm;
use super::search::{self, NONE_FOUND};
use super::{AccessCost, Entry, Knowledge, Parameter};
use crate::queue::{QueueView, Slot};

pub(super) const ENTRY: Entry = Entry {
    name: "wstf",
    summary: "Weighted SPTF: positioning times shrink with age, to zero at M ms",
    knowledge: Knowledge::Position,
    parameters: &[Parameter {
        letter: "M",
        summary: "the longest response allowed in ms",
        default: 3000.0,
        least: 1.0,
        most: 1e7,
        is_whole: false,
    }],
    source: "Seltzer, Chen and Ousterhout 1990",
    make: |values| Wstf { longest: Nanos::from_ms(values[0]) }.into(),
};

/// Positioning times shrink with age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wstf {
    longest: Nanos,
}

impl Algorithm for Wstf {
    const ALWAYS_CONSULTED: bool = false;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        // The same for all: the division by M.
        let left = |arrived| u128::from(self.longest.since(queue.now.since(arrived)).0);
        let key = |time: Nanos, arrived| u128::from(time.0) * left(arrived);
        let all = 0..queue.cylinders.len();
        let oldest = search::oldest(queue);
        let floor = |time| key(time, oldest);
        let aged = |time, slot: &Slot| key(time, slot.arrived);
        search::index(search::least(queue, cost, all, |_| true, (u128::MAX, NONE_FOUND), floor, aged))
    }
}
