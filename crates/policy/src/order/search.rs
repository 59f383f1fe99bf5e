//! Finds the minimum of a cost that grows with the positioning time, exactly, without costing every request.
//!
//! It walks outward from the arm on both sides, and leaves a side as soon as the seek alone, for a request as old as the oldest
//! one, costs more than the best found so far. A request on the way is costed only if its own age and seek can make it better.
//! *Source:* ours.

use super::AccessCost;
use crate::queue::{QueueView, Slot};
use headstack_model::{Instant, Nanos};
use std::ops::Range;

/// A cost, and the index of the request that has it: of equal ones the oldest is the least.
pub(super) type Found<K> = (K, u16);

pub(super) const NONE_FOUND: u16 = u16::MAX;

/// Of the requests in `range` of the queue by cylinder that may be chosen, the one with the least `key` of its positioning time and
/// itself; `best` if that is less. `key` must not fall as the time grows. `floor` of a time must not exceed the key of any request of the
/// queue with that time.
#[inline]
pub(super) fn least<C: AccessCost + ?Sized, K: Copy + Ord>(
    queue: &QueueView<'_>,
    cost: &C,
    range: Range<usize>,
    may: impl Fn(usize) -> bool,
    mut best: Found<K>,
    floor: impl Fn(Nanos) -> K,
    key: impl Fn(Nanos, &Slot) -> K,
) -> Found<K> {
    let (cylinders, arm) = (queue.cylinders, cost.arm_cylinder());
    let split = cylinders.partition_point(|cylinder| *cylinder < arm).clamp(range.start, range.end);
    let (mut start, mut end) = (range.start, range.end);
    let (mut below, mut above) = (split, split);
    loop {
        let low = (below > start).then(|| cylinders[below - 1]);
        let high = (above < end).then(|| cylinders[above]);
        let (cylinder, is_below) = match (low, high) {
            (Some(low), Some(high)) if arm.abs_diff(low) < arm.abs_diff(high) => (low, true),
            (_, Some(high)) => (high, false),
            (Some(low), None) => (low, true),
            (None, None) => return best,
        };
        let seek = cost.seek_at_least(cylinder);
        if floor(seek) > best.0 {
            // Everything farther out on this side takes at least this long.
            if is_below {
                start = below
            } else {
                end = above
            }
            continue;
        }
        let slot = queue.by_cylinder[if is_below { below - 1 } else { above }];
        if is_below {
            below -= 1
        } else {
            above += 1
        }
        let waits = &queue.slots[usize::from(slot)];
        if may(usize::from(slot)) && key(seek, waits) <= best.0 {
            best = best.min((key(cost.positioning(waits), waits), slot));
        }
    }
}

/// The index of the request with the least `key` of its positioning time and arrival; `best` if that is less. `key` must not fall as the
/// time grows, or as the arrival is later. A host's queue may hold the oldest request behind younger ones.
#[inline]
pub(super) fn least_by_arrival<C: AccessCost + ?Sized, K: Copy + Ord>(
    queue: &QueueView<'_>,
    cost: &C,
    best: Found<K>,
    key: impl Fn(Nanos, Instant) -> K,
) -> Option<usize> {
    let oldest = queue.slots.iter().map(|slot| slot.arrived).min().unwrap_or(Instant::ZERO);
    let all = 0..queue.cylinders.len();
    let (floor, aged) = (|time| key(time, oldest), |time, slot: &Slot| key(time, slot.arrived));
    index(least(queue, cost, all, |_| true, best, floor, aged))
}

pub(super) fn index<K>(found: Found<K>) -> Option<usize> {
    (found.1 != NONE_FOUND).then_some(usize::from(found.1))
}
