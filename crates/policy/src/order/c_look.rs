//! C-LOOK: upward from where the last access ended, then again from the lowest. Also in batches, and zone by zone.
//!
//! By block number it needs only what a host knows; where block numbers do not follow cylinders, its sweep does not either.

use super::axis::{Axis, one_way};
use super::batch::Batch;
use super::built_in::Algorithm;
use super::{AccessCost, Entry, Knowledge, Parameter};
use crate::queue::QueueView;

pub(super) const LBN: Entry = Entry {
    name: "c-look",
    summary: "Upward by block number from the last access, then again from the lowest",
    knowledge: Knowledge::Lbn,
    parameters: &[],
    source: "Merten 1970",
    make: |_| CLook(Axis::Lbn).into(),
};

pub(super) const CYLINDER: Entry = Entry {
    name: "c-look-cylinder",
    summary: "Upward by cylinder from the last access, then again from the lowest",
    knowledge: Knowledge::Cylinder,
    make: |_| CLook(Axis::Cylinder).into(),
    ..LBN
};

pub(super) const BATCHED: Entry = Entry {
    name: "c-look-batched",
    summary: "Upward by block number through the requests that waited when the sweep began; later ones wait for the next",
    knowledge: Knowledge::Lbn,
    parameters: &[],
    source: "Coffman, Klimko and Ryan 1972 (the batch)",
    make: |_| BatchedCLook(Batch::default()).into(),
};

pub(super) const ZONED: Entry = Entry {
    name: "c-look-zoned",
    summary: "C-LOOK by cylinder within one of N parts of the disk until nothing waits there, then in the next",
    knowledge: Knowledge::Cylinder,
    parameters: &[Parameter::whole(
        "N",
        "the parts of the disk, with equal numbers of cylinders",
        8.0,
        1.0,
        1e6,
    )],
    source: "ours, after GSTF",
    make: |values| ZonedCLook { zones: values[0] as u64, zone: 0 }.into(),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CLook(Axis);

impl Algorithm for CLook {
    const ALWAYS_CONSULTED: bool = false;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        one_way(self.0, queue, cost, |_| true)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchedCLook(Batch);

impl Algorithm for BatchedCLook {
    const ALWAYS_CONSULTED: bool = true;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let (len, is_new) = self.0.continue_batch(queue, usize::MAX);
        if is_new {
            return Axis::Lbn.up(queue, 0, |index| index < len).map(|(_, index)| index);
        }
        one_way(Axis::Lbn, queue, cost, |index| index < len)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZonedCLook {
    zones: u64,
    zone: u64,
}

impl Algorithm for ZonedCLook {
    const ALWAYS_CONSULTED: bool = true;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let (zones, cylinders) = (self.zones, u64::from(cost.cylinders()));
        let zone_of = |cylinder: u64| cylinder * zones / cylinders;
        let zone_at = |index: usize| zone_of(u64::from(queue.slots[index].cylinder));
        let zone = self.zone;
        if let Some(index) = one_way(Axis::Cylinder, queue, cost, |index| zone_at(index) == zone) {
            return Some(index);
        }
        let next = Axis::Cylinder.up(queue, 0, |index| zone_at(index) > zone);
        let (cylinder, index) = next.or_else(|| Axis::Cylinder.up(queue, 0, |_| true))?;
        self.zone = zone_of(cylinder);
        Some(index)
    }
}
