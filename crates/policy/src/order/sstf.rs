//! SSTF: the request on the nearest cylinder, of equally near ones the oldest.
//!
//! It knows cylinders, not seek times: on one cylinder all requests are equal, whatever their head or angle.

use super::{AccessCost, BuiltIn, Entry, Knowledge};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "sstf",
    summary: "Shortest seek first: the nearest cylinder, of equally near requests the oldest",
    knowledge: Knowledge::Cylinder,
    order: BuiltIn::Sstf(Sstf),
};

/// Shortest seek first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sstf;

impl Sstf {
    pub(super) fn pick<C: AccessCost + ?Sized>(&self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let (cylinders, arm) = (queue.cylinders, cost.arm_cylinder());
        let split = cylinders.partition_point(|cylinder| *cylinder < arm);
        // The oldest request of a cylinder comes first in it: below the arm that is the start of the last run.
        let below = cylinders[..split].last().map(|last| {
            let first = cylinders[..split].partition_point(|cylinder| cylinder < last);
            (arm - last, queue.by_cylinder[first])
        });
        let above = cylinders.get(split).map(|cylinder| (cylinder - arm, queue.by_cylinder[split]));
        below.into_iter().chain(above).min().map(|(_, slot)| usize::from(slot))
    }
}
