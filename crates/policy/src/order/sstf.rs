//! SSTF: the nearest request, of equally near ones the oldest. Also called SSF.
//!
//! It knows distances, not seek times: on one cylinder all requests are equal, whatever their head or angle. By block number it
//! needs only what a host knows.

use super::axis::Axis;
use super::built_in::Algorithm;
use super::{AccessCost, Entry, Knowledge};
use crate::queue::QueueView;

pub(super) const CYLINDER: Entry = Entry {
    name: "sstf",
    summary: "Shortest seek first: the nearest cylinder, on a tie the oldest request",
    knowledge: Knowledge::Cylinder,
    parameters: &[],
    source: "Denning 1967",
    make: |_| Sstf(Axis::Cylinder).into(),
};

pub(super) const LBN: Entry = Entry {
    name: "sstf-lbn",
    summary: "Shortest seek first with a host's knowledge: the nearest block number, on a tie the oldest request",
    knowledge: Knowledge::Lbn,
    make: |_| Sstf(Axis::Lbn).into(),
    ..CYLINDER
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sstf(Axis);

impl Algorithm for Sstf {
    const ALWAYS_CONSULTED: bool = false;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let here = self.0.here(cost);
        let either = self.0.up(queue, here, |_| true).into_iter().chain(self.0.down(queue, here, |_| true));
        either.map(|(place, index)| (place.abs_diff(here), index)).min().map(|(_, index)| index)
    }
}
