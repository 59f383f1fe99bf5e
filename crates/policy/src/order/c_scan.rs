//! C-SCAN: upward to the last cylinder, back to the first one, and upward again.
//!
//! It chooses as C-LOOK does, but the arm visits both edges of the disk before it starts again.

use super::axis::Axis;
use super::built_in::Algorithm;
use super::{AccessCost, Edge, Entry, Knowledge};
use crate::queue::QueueView;

pub(super) const CYLINDER: Entry = Entry {
    name: "c-scan",
    summary: "Upward by cylinder to the last one, then again from the first one",
    knowledge: Knowledge::Cylinder,
    parameters: &[],
    source: "Seaman, Lind and Wilson 1966",
    make: |_| CScan { axis: Axis::Cylinder, starts_again: false }.into(),
};

pub(super) const LBN: Entry = Entry {
    name: "c-scan-lbn",
    summary: "Upward by block number to the last cylinder, then again from the first one",
    knowledge: Knowledge::Lbn,
    make: |_| CScan { axis: Axis::Lbn, starts_again: false }.into(),
    ..CYLINDER
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CScan {
    axis: Axis,
    /// Whether it went back for the request chosen last.
    starts_again: bool,
}

impl Algorithm for CScan {
    const ALWAYS_CONSULTED: bool = true;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let ahead = self.axis.up(queue, self.axis.here(cost), |_| true);
        let found = ahead.or_else(|| self.axis.up(queue, 0, |_| true));
        self.starts_again = ahead.is_none() && found.is_some();
        found.map(|(_, index)| index)
    }

    fn edges_visited(&self) -> &[Edge] {
        if self.starts_again { &[Edge::Last, Edge::First] } else { &[] }
    }
}
