//! Reads before writes, in one of three orders; writes that have waited too long before reads.

use headstack_model::{Nanos, Op};

use super::axis::{Axis, one_way};
use super::built_in::Algorithm;
use super::sptf::shortest;
use super::{AccessCost, Entry, Knowledge, Parameter};
use crate::queue::QueueView;

pub(super) const FCFS: Entry = Entry {
    name: "fcfs-reads",
    summary: "Reads before writes, each first come, first served; writes older than L ms before reads",
    knowledge: Knowledge::Arrival,
    parameters: &[Parameter::real(
        "L",
        "the age in ms from which on writes go before reads",
        5000.0,
        0.0,
        1e7,
    )],
    source: "Worthington, Ganger and Patt 1994 (priority); Linux's deadline scheduler (limit)",
    make: |values| ReadsFirst::new(Among::Fcfs, values).into(),
};

pub(super) const C_LOOK: Entry = Entry {
    name: "c-look-reads",
    summary: "Reads before writes, each by C-LOOK by block number; writes older than L ms before reads",
    knowledge: Knowledge::Lbn,
    make: |values| ReadsFirst::new(Among::CLook, values).into(),
    ..FCFS
};

pub(super) const SPTF: Entry = Entry {
    name: "sptf-reads",
    summary: "Reads before writes, each by SPTF; writes older than L ms before reads",
    knowledge: Knowledge::Position,
    make: |values| ReadsFirst::new(Among::Sptf, values).into(),
    ..FCFS
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    Fcfs,
    CLook,
    Sptf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadsFirst {
    among: Among,
    limit: Nanos,
}

impl ReadsFirst {
    fn new(among: Among, values: &[f64]) -> ReadsFirst {
        ReadsFirst { among, limit: Nanos::from_ms(values[0]) }
    }

    fn among<C: AccessCost + ?Sized>(
        &self,
        queue: &QueueView<'_>,
        cost: &C,
        may: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        match self.among {
            Among::Fcfs => (0..queue.slots.len()).find(|index| may(*index)),
            Among::CLook => one_way(Axis::Lbn, queue, cost, may),
            Among::Sptf => shortest(queue, cost, may),
        }
    }
}

impl Algorithm for ReadsFirst {
    const ALWAYS_CONSULTED: bool = false;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let is_read = |index: usize| queue.slots[index].request.op == Op::Read;
        let is_late =
            |index: usize| !is_read(index) && queue.now.since(queue.slots[index].arrived) >= self.limit;
        let late = self.among(queue, cost, is_late);
        late.or_else(|| self.among(queue, cost, is_read)).or_else(|| self.among(queue, cost, |_| true))
    }
}
