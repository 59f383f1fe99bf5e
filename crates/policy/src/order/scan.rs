//! SCAN: up and down from edge to edge of the disk.
//!
//! It chooses as LOOK does, but the arm goes to the edge before it reverses.

use super::axis::{Axis, Sweep};
use super::built_in::Algorithm;
use super::{AccessCost, Edge, Entry, Knowledge};
use crate::queue::QueueView;

pub(super) const CYLINDER: Entry = Entry {
    name: "scan",
    summary: "Up and down by cylinder, reversing at the edges of the disk only",
    knowledge: Knowledge::Cylinder,
    parameters: &[],
    source: "Denning 1967",
    make: |_| Scan { sweep: Sweep::new(Axis::Cylinder), has_turned: false }.into(),
};

pub(super) const LBN: Entry = Entry {
    name: "scan-lbn",
    summary: "Up and down by block number, reversing at the edges of the disk only",
    knowledge: Knowledge::Lbn,
    make: |_| Scan { sweep: Sweep::new(Axis::Lbn), has_turned: false }.into(),
    ..CYLINDER
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scan {
    sweep: Sweep,
    /// Whether it reversed for the request chosen last.
    has_turned: bool,
}

impl Algorithm for Scan {
    const ALWAYS_CONSULTED: bool = true;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let fell = self.sweep.falls();
        let index = self.sweep.pick(queue, cost, |_| true);
        self.has_turned = self.sweep.falls() != fell;
        index
    }

    fn edges_visited(&self) -> &[Edge] {
        match (self.has_turned, self.sweep.falls()) {
            (false, _) => &[],
            (true, true) => &[Edge::Last],
            (true, false) => &[Edge::First],
        }
    }
}
