//! SPTF: the request with the shortest positioning time, of equal ones the oldest. Also called STF and SATF.
//!
//! Exact, yet it rarely costs every request: it walks outward from the arm on both sides, and leaves a side as soon as
//! the seek alone takes longer than the best whole positioning found so far.
//!
//! *Source:* Seltzer, Chen and Ousterhout 1990; Jacobson and Wilkes 1991 (the algorithm); the pruned walk is ours.

use headstack_model::Nanos;

use super::{AccessCost, BuiltIn, Entry, Knowledge};
use crate::queue::QueueView;

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
        let (cylinders, arm) = (queue.cylinders, cost.arm_cylinder());
        let split = cylinders.partition_point(|cylinder| *cylinder < arm);
        let (mut below, mut above) = (split, split);
        let mut best = (Nanos::MAX, u16::MAX);
        loop {
            let low = below.checked_sub(1).map(|at| cylinders[at]);
            let (cylinder, is_below) = match (low, cylinders.get(above)) {
                (Some(low), Some(high)) if arm - low < high - arm => (low, true),
                (_, Some(high)) => (*high, false),
                (Some(low), None) => (low, true),
                (None, None) => break,
            };
            if cost.seek_at_least(cylinder) > best.0 {
                // Everything farther out on this side takes at least as long.
                if is_below {
                    below = 0
                } else {
                    above = cylinders.len()
                }
                continue;
            }
            let at = if is_below { below - 1 } else { above };
            let slot = queue.by_cylinder[at];
            // The index comes second, so that of equal ones the oldest is the least.
            best = best.min((cost.positioning(&queue.slots[usize::from(slot)]), slot));
            if is_below { below -= 1 } else { above += 1 }
        }
        (best.1 != u16::MAX).then_some(usize::from(best.1))
    }
}
