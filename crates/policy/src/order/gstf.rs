//! GSTF: SPTF within a group of adjacent cylinders until nothing waits there, then in the next group above.
//!
//! The frozen variant serves only the requests that waited in a group when the arm arrived: no request waits longer than a round.

use headstack_model::Nanos;

use super::axis::Axis;
use super::batch::Batch;
use super::built_in::Algorithm;
use super::search::{self, NONE_FOUND};
use super::{AccessCost, Entry, Knowledge, Parameter};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "gstf",
    summary: "Grouped SPTF: within N cylinders until nothing waits there, then in the next group above",
    knowledge: Knowledge::Position,
    parameters: &[Parameter::whole("N", "the cylinders of a group", 28.0, 1.0, 1e7)],
    source: "Seltzer, Chen and Ousterhout 1990",
    make: |values| Gstf::new(values[0], false).into(),
};

pub(super) const FROZEN: Entry = Entry {
    name: "gstf-frozen",
    summary: "GSTF that serves in a group only what waited there when the arm came",
    make: |values| Gstf::new(values[0], true).into(),
    ..ENTRY
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gstf {
    cylinders: u32,
    freezes: bool,
    group: u32,
    batch: Batch,
}

impl Gstf {
    fn new(cylinders: f64, freezes: bool) -> Gstf {
        Gstf { cylinders: cylinders as u32, freezes, group: 0, batch: Batch::default() }
    }

    fn within<C: AccessCost + ?Sized>(&self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let group_of = |cylinder: u32| cylinder / self.cylinders;
        let start = queue.cylinders.partition_point(|cylinder| group_of(*cylinder) < self.group);
        let end = queue.cylinders.partition_point(|cylinder| group_of(*cylinder) <= self.group);
        let len = if self.freezes { self.batch.len(queue) } else { usize::MAX };
        let (may, nothing) = (|index| index < len, (Nanos::MAX, NONE_FOUND));
        search::index(search::least(queue, cost, start..end, may, nothing, |time| time, |time, _| time))
    }
}

impl Algorithm for Gstf {
    const ALWAYS_CONSULTED: bool = true;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        if let Some(index) = self.within(queue, cost) {
            return Some(index);
        }
        let above = (u64::from(self.group) + 1) * u64::from(self.cylinders);
        let next =
            Axis::Cylinder.up(queue, above, |_| true).or_else(|| Axis::Cylinder.up(queue, 0, |_| true));
        self.group = next?.0 as u32 / self.cylinders;
        self.batch.close(queue, usize::MAX);
        self.within(queue, cost)
    }
}
