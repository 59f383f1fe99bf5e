//! Bounded SPTF: SPTF that bounds how many later requests overtake a request.
//!
//! The bound grows with the queue, L = m + K mᴾ for m other requests waiting. The cost is T (L − A) for a positioning time T and A
//! later requests, and zero from A = L on. It has no unit of time, so one setting suits every depth and every drive: under a
//! closed load the longest response is about L services.

use headstack_model::Nanos;

use super::built_in::Algorithm;
use super::search::{self, NONE_FOUND};
use super::{AccessCost, Entry, Knowledge, Parameter, text};
use crate::queue::{QueueView, Slot};

/// The unit of the bound and of the number of later requests.
const REQUEST: u64 = 1_000_000;

pub(super) const ENTRY: Entry = Entry {
    name: "bounded-sptf",
    summary: "SPTF with bounded overtaking: positioning times shrink with every later request, to zero at \
              m + K m^P of them, with m others waiting",
    knowledge: Knowledge::Position,
    parameters: &[
        Parameter::real("K", "later requests allowed beyond m, in units of m^P", 1.2, 0.0, 1000.0),
        Parameter::real("P", "the power of m", 1.0, 0.0, 1.0),
    ],
    source: "ours, after Seltzer, Chen and Ousterhout 1990 (the weight) and starvation bounds of NCQ firmware",
    make: |values| Bounded { more: text::millionths(values[0]), power: text::millionths(values[1]) }.into(),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounded {
    /// K, in millionths.
    more: u64,
    /// P, in millionths.
    power: u64,
}

impl Bounded {
    /// L for `others` other requests, in millionths.
    fn bound(self, others: usize) -> u64 {
        let others = others as u64;
        let more = match self.power {
            1_000_000 => self.more * others,
            power => text::millionths(self.more as f64 / 1e6 * libm::pow(others as f64, power as f64 / 1e6)),
        };
        REQUEST * others + more
    }
}

impl Algorithm for Bounded {
    const ALWAYS_CONSULTED: bool = false;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let (oldest, youngest) = (queue.slots.first()?.number, queue.slots.last()?.number);
        let bound = self.bound(queue.slots.len() - 1);
        let left = |number: u64| u128::from(bound.saturating_sub(REQUEST * (youngest - number)));
        let least_left = left(oldest);
        let floor = |time: Nanos| u128::from(time.0) * least_left;
        let key = |time: Nanos, slot: &Slot| u128::from(time.0) * left(slot.number);
        let all = 0..queue.cylinders.len();
        search::index(search::least(queue, cost, all, |_| true, (u128::MAX, NONE_FOUND), floor, key))
    }
}
