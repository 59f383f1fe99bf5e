//! ASPTF: SPTF less a share of the age.
//!
//! The cost is T − W E / 1000 for a positioning time T and an age E: W is the share of the age, in thousandths, that is
//! subtracted.

use headstack_model::{Instant, Nanos};

use super::built_in::Algorithm;
use super::search::{self, NONE_FOUND};
use super::{AccessCost, Entry, Knowledge, Parameter, text};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "asptf",
    summary: "Aged SPTF: positioning times less W thousandths of the age",
    knowledge: Knowledge::Position,
    parameters: &[Parameter::real(
        "W",
        "thousandths of a request's age that are subtracted from its positioning time",
        6.0,
        0.0,
        1e6,
    )],
    source: "Jacobson and Wilkes 1991; Worthington, Ganger and Patt 1994",
    make: |values| Asptf(Ageing::new(values[0])).into(),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asptf(Ageing);

impl Algorithm for Asptf {
    const ALWAYS_CONSULTED: bool = false;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        search::least_by_arrival(queue, cost, (i128::MAX, NONE_FOUND), self.0.key(queue.now))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ageing {
    /// W / 1000, in units of 10⁻⁹.
    share: u64,
}

impl Ageing {
    pub(super) fn new(thousandths: f64) -> Ageing {
        Ageing { share: text::millionths(thousandths) }
    }

    /// The cost at `now`, in 10⁻⁹ ns, as a function of the positioning time and the arrival.
    pub(super) fn key(self, now: Instant) -> impl Fn(Nanos, Instant) -> i128 {
        move |time, arrived| {
            let off = i128::from(self.share) * i128::from(now.since(arrived).0);
            i128::from(time.0) * 1_000_000_000 - off
        }
    }
}
