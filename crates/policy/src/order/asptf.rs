//! ASPTF: SPTF less a share of the age.
//!
//! The time counted is T − W E / 1000 for a positioning time T and an age E: W says how many thousandths of its age a
//! request gets off.

use headstack_model::Nanos;

use super::built_in::Algorithm;
use super::search::{self, NONE_FOUND};
use super::{AccessCost, Entry, Knowledge, Parameter, text};
use crate::queue::{QueueView, Slot};

pub(super) const PARAMETERS: &[Parameter] = &[Parameter {
    letter: "W",
    summary: "thousandths of a request's age that are subtracted from its positioning time",
    default: 6.0,
    least: 0.0,
    most: 1e6,
    is_whole: false,
}];

pub(super) const SOURCE: &str = "Jacobson and Wilkes 1991; Worthington, Ganger and Patt 1994";

pub(super) const ENTRY: Entry = Entry {
    name: "asptf",
    summary: "Aged SPTF: positioning times less W thousandths of the age",
    knowledge: Knowledge::Position,
    parameters: PARAMETERS,
    source: SOURCE,
    make: |values| Asptf(Ageing::new(values[0])).into(),
};

/// Positioning times less a share of the age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asptf(Ageing);

impl Algorithm for Asptf {
    const ALWAYS_CONSULTED: bool = false;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let (all, key) = (0..queue.cylinders.len(), self.0.key(queue.now));
        let oldest = search::oldest(queue);
        let floor = |time| key(time, oldest);
        let aged = |time, slot: &Slot| key(time, slot.arrived);
        search::index(search::least(queue, cost, all, |_| true, (i128::MAX, NONE_FOUND), floor, aged))
    }
}

/// A share of a request's age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ageing {
    /// In thousandths of millionths.
    share: u64,
}

impl Ageing {
    pub(super) fn new(thousandths: f64) -> Ageing {
        Ageing { share: text::millionths(thousandths) }
    }

    /// The time counted at `now`, in 10⁻⁹ ns: of a positioning time and an arrival.
    pub(super) fn key(self, now: Nanos) -> impl Fn(Nanos, Nanos) -> i128 {
        move |time, arrived| {
            let off = i128::from(self.share) * i128::from(now.since(arrived).0);
            i128::from(time.0) * 1_000_000_000 - off
        }
    }
}
