//! Merging: a request that begins where a waiting one ends, ends where one begins, or requests the same blocks is merged
//! with it.
//!
//! Linux merges adjacent requests and leaves overlapping ones to the page cache; DiskSim's driver merges those, too.
//! *Source:* the behaviour of Linux's block layer (back, front, and joining the two neighbours of a gap that closes);
//! DiskSim 4.0 manual, "Overlapping request scheme".

use headstack_model::{Lbn, Op, Request};

use super::ElevatorRequest;
use super::pool::{Entry, Pool};
use super::sorted::Sorted;

/// Which requests may be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeRule {
    /// Whether requests are merged that follow each other without a gap.
    pub adjacent: bool,
    /// Whether requests are merged that share blocks.
    pub overlapping: bool,
    /// Most blocks that a merged request may have.
    pub sectors_max: u32,
}

impl MergeRule {
    /// No request is merged.
    pub const NONE: MergeRule = MergeRule { adjacent: false, overlapping: false, sectors_max: u32::MAX };

    fn joins(&self, first: (u64, u64), second: (u64, u64)) -> bool {
        let fits = first.1.max(second.1) - first.0 <= u64::from(self.sectors_max);
        let touches = first.1 == second.0 && self.adjacent;
        fits && (touches || (first.1 > second.0 && self.overlapping))
    }
}

/// The waiting reads, then writes, by where they begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Starts([Sorted; 2]);

impl Starts {
    fn of_kind(&mut self, op: Op) -> &mut Sorted {
        &mut self.0[usize::from(op != Op::Read)]
    }

    pub(super) fn insert(&mut self, id: u32, entry: &Entry) {
        self.of_kind(entry.request.op).insert(entry.lbn(), id);
    }

    pub(super) fn remove(&mut self, id: u32, entry: &Entry) {
        self.of_kind(entry.request.op).remove(entry.lbn(), id);
    }

    /// The waiting request that begins at or before `lbn`, and the one that begins after it.
    pub(super) fn neighbours(&self, op: Op, lbn: u64) -> (Option<u32>, Option<u32>) {
        let sorted = &self.0[usize::from(op != Op::Read)];
        (sorted.before(lbn + 1), sorted.at_or_after(lbn + 1))
    }
}

/// Whether `request` can be merged at the back of `entry`, which begins at or before it.
pub(super) fn takes_at_back(rule: MergeRule, entry: &Entry, ask: &Request) -> bool {
    rule.joins((entry.lbn(), entry.end()), (ask.lbn.0, ask.end().0))
}

/// Whether `request` can be merged at the front of `entry`, which begins after it.
pub(super) fn takes_at_front(rule: MergeRule, entry: &Entry, ask: &Request) -> bool {
    rule.joins((ask.lbn.0, ask.end().0), (entry.lbn(), entry.end()))
}

/// Whether two requests agree in FUA, class and duration limit, so that merging them loses nothing.
pub(super) fn alike(entry: &Entry, ask: &ElevatorRequest) -> bool {
    entry.request.fua == ask.request.fua
        && (entry.urgent, entry.idle, entry.limit) == (ask.urgent, ask.idle, ask.limit)
}

pub(super) fn join(pool: &mut Pool, id: u32, other: &Request) {
    let entry = pool.get_mut(id);
    let (first, end) = (entry.lbn().min(other.lbn.0), entry.end().max(other.end().0));
    entry.request.lbn = Lbn(first);
    entry.request.sectors = (end - first) as u32;
}
