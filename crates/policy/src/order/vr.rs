//! V(R): the nearest cylinder, where a reversal adds R times all cylinders of the disk. V(0) is SSTF, V(1) is LOOK.

use super::axis::Axis;
use super::built_in::Algorithm;
use super::{AccessCost, Entry, Knowledge, Parameter, text};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "vr",
    summary: "The nearest cylinder, where reversing costs R times all cylinders",
    knowledge: Knowledge::Cylinder,
    parameters: &[Parameter::real("R", "the reluctance to reverse, from SSTF's to LOOK's", 0.2, 0.0, 1.0)],
    source: "Geist and Daniel 1987",
    make: |values| Vr { reluctance: text::millionths(values[0]), falls: false }.into(),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vr {
    /// In millionths of the cylinders of the disk.
    reluctance: u64,
    falls: bool,
}

impl Algorithm for Vr {
    const ALWAYS_CONSULTED: bool = true;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let axis = Axis::Cylinder;
        let here = axis.here(cost);
        let turn = self.reluctance * u64::from(cost.cylinders());
        let weigh = |(place, index): (u64, usize), falls: bool| {
            let distance = place.abs_diff(here);
            let turns = falls != self.falls && distance > 0;
            (
                distance * 1_000_000 + if turns { turn } else { 0 },
                index,
                if turns { falls } else { self.falls },
            )
        };
        let up = axis.up(queue, here, |_| true).map(|found| weigh(found, false));
        let down = axis.down(queue, here, |_| true).map(|found| weigh(found, true));
        let (_, index, falls) = up.into_iter().chain(down).min()?;
        self.falls = falls;
        Some(index)
    }
}
