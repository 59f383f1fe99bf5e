//! LOOK: up and down, reversing where nothing lies ahead. Also called the elevator.

use super::axis::{Axis, Sweep};
use super::built_in::Algorithm;
use super::{AccessCost, Entry, Knowledge};
use crate::queue::QueueView;

pub(super) const CYLINDER: Entry = Entry {
    name: "look",
    summary: "Up and down by cylinder, reversing where nothing lies ahead",
    knowledge: Knowledge::Cylinder,
    parameters: &[],
    source: "Merten 1970",
    make: |_| Look(Sweep::new(Axis::Cylinder)).into(),
};

pub(super) const LBN: Entry = Entry {
    name: "look-lbn",
    summary: "Up and down by block number, reversing where nothing lies ahead",
    knowledge: Knowledge::Lbn,
    make: |_| Look(Sweep::new(Axis::Lbn)).into(),
    ..CYLINDER
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look(Sweep);

impl Algorithm for Look {
    const ALWAYS_CONSULTED: bool = true;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        self.0.pick(queue, cost, |_| true)
    }
}
