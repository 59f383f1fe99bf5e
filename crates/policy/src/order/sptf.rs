//! SPTF: the request with the shortest positioning time, of equal ones the oldest. Also called STF and SATF.
//!
//! Exact, yet it rarely costs every request: it walks outward from the arm on both sides, and leaves a side as soon as
//! the seek alone takes longer than the best whole positioning found so far.
//!
//! *Source:* Seltzer, Chen and Ousterhout 1990; Jacobson and Wilkes 1991 (the algorithm); the pruned walk is ours.

use headstack_model::Nanos;

use super::{AccessCost, BuiltIn, Entry, Knowledge};
use crate::queue::{Place, QueueView};

pub(super) const ENTRY: Entry = Entry {
    name: "sptf",
    summary: "Shortest positioning time first: seek, settle and rotational latency, of equal ones the oldest",
    knowledge: Knowledge::Position,
    order: BuiltIn::Sptf(Sptf),
};

/// Shortest positioning time first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sptf;

impl Sptf {
    #[inline]
    pub(super) fn pick<C: AccessCost + ?Sized>(&self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let places = queue.by_cylinder;
        let arm = cost.arm_cylinder();
        let split = places.partition_point(|place| place.cylinder < arm);
        let (mut below, mut above) = (split, split);
        let mut best = (Nanos::MAX, u32::MAX);
        loop {
            let low = below.checked_sub(1).map(|at| places[at]);
            let (place, is_below) = match (low, places.get(above)) {
                (Some(low), Some(high)) if arm - low.cylinder < high.cylinder - arm => (low, true),
                (_, Some(high)) => (*high, false),
                (Some(low), None) => (low, true),
                (None, None) => break,
            };
            if cost.seek_at_least(place.cylinder) > best.0 {
                // Everything farther out on this side takes at least as long.
                if is_below {
                    below = 0
                } else {
                    above = places.len()
                }
                continue;
            }
            best = best.min(costed(queue, place, cost));
            if is_below { below -= 1 } else { above += 1 }
        }
        (best.1 != u32::MAX).then_some(best.1 as usize)
    }
}

/// The positioning time of a place with its slot's index, so that of equal ones the oldest is the least.
#[inline]
fn costed<C: AccessCost + ?Sized>(queue: &QueueView<'_>, place: Place, cost: &C) -> (Nanos, u32) {
    (cost.positioning(&queue.slots[place.slot as usize]), place.slot)
}
