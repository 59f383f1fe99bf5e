//! Requests along a line: by block number, or by cylinder.

use super::AccessCost;
use crate::queue::QueueView;
use std::cmp::Reverse;

/// The key by which requests are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// Block numbers, from the one after the last accessed.
    Lbn,
    /// Cylinders, from the arm's.
    Cylinder,
}

impl Axis {
    pub(super) fn here<C: AccessCost + ?Sized>(self, cost: &C) -> u64 {
        match self {
            Axis::Lbn => cost.last_lbn().0,
            Axis::Cylinder => u64::from(cost.arm_cylinder()),
        }
    }

    fn swept_to<C: AccessCost + ?Sized>(self, cost: &C) -> u64 {
        match self {
            Axis::Lbn => cost.swept_to().0,
            Axis::Cylinder => self.here(cost),
        }
    }

    /// The nearest request at or above a point, of those that may be chosen, and its index; of equal ones the oldest.
    pub(super) fn up(
        self,
        queue: &QueueView<'_>,
        from: u64,
        may: impl Fn(usize) -> bool,
    ) -> Option<(u64, usize)> {
        match self {
            Axis::Lbn => blocks(queue, may).filter(|(lbn, _)| *lbn >= from).min(),
            Axis::Cylinder => {
                let first = queue.cylinders.partition_point(|cylinder| u64::from(*cylinder) < from);
                first_in(queue, first, queue.cylinders.len(), may)
            }
        }
    }

    /// The nearest request at or below a point, of those that may be chosen, and its index; of equal ones the oldest.
    pub(super) fn down(
        self,
        queue: &QueueView<'_>,
        from: u64,
        may: impl Fn(usize) -> bool,
    ) -> Option<(u64, usize)> {
        match self {
            Axis::Lbn => {
                let below = blocks(queue, may).filter(|(lbn, _)| *lbn <= from);
                below.min_by_key(|(lbn, index)| (Reverse(*lbn), *index))
            }
            Axis::Cylinder => {
                let end = queue.cylinders.partition_point(|cylinder| u64::from(*cylinder) <= from);
                let last = (0..end).rev().find(|at| may(usize::from(queue.by_cylinder[*at])))?;
                let run = queue.cylinders.partition_point(|cylinder| *cylinder < queue.cylinders[last]);
                first_in(queue, run, last + 1, may)
            }
        }
    }
}

fn blocks(queue: &QueueView<'_>, may: impl Fn(usize) -> bool) -> impl Iterator<Item = (u64, usize)> {
    let allowed = (0..queue.slots.len()).filter(move |index| may(*index));
    allowed.map(|index| (queue.slots[index].request.lbn.0, index))
}

/// The first request that may be chosen, of a part of the order by cylinder.
fn first_in(
    queue: &QueueView<'_>,
    from: usize,
    to: usize,
    may: impl Fn(usize) -> bool,
) -> Option<(u64, usize)> {
    let at = (from..to).find(|at| may(usize::from(queue.by_cylinder[*at])))?;
    Some((u64::from(queue.cylinders[at]), usize::from(queue.by_cylinder[at])))
}

/// A sweep up and down that reverses where nothing lies ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sweep {
    axis: Axis,
    falls: bool,
}

impl Sweep {
    pub(super) const fn new(axis: Axis) -> Sweep {
        Sweep { axis, falls: false }
    }

    pub(super) fn falls(&self) -> bool {
        self.falls
    }

    pub(super) fn pick<C: AccessCost + ?Sized>(
        &mut self,
        queue: &QueueView<'_>,
        cost: &C,
        may: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let here = self.axis.here(cost);
        let go =
            |falls| if falls { self.axis.down(queue, here, &may) } else { self.axis.up(queue, here, &may) };
        if let Some((_, index)) = go(self.falls) {
            return Some(index);
        }
        let (_, index) = go(!self.falls)?;
        self.falls = !self.falls;
        Some(index)
    }
}

/// Upward from the end of the last access, then again from the lowest.
pub(super) fn one_way<C: AccessCost + ?Sized>(
    axis: Axis,
    queue: &QueueView<'_>,
    cost: &C,
    may: impl Fn(usize) -> bool,
) -> Option<usize> {
    let ahead = axis.up(queue, axis.swept_to(cost), &may);
    ahead.or_else(|| axis.up(queue, 0, &may)).map(|(_, index)| index)
}
