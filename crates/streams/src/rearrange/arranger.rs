//! The block arranger's plan: which blocks leave the region and which enter it, in which order.
//!
//! Blocks that leave do so first, because they free slots. Of these, a clean copy takes no time; a dirty one is written home. Then blocks
//! enter, the hottest first. A block that moves from slot to slot leaves and enters.
//!
//! *Source:* Akyürek and Salem 1995: blocks are copied, and only modified ones are written back. Ours: a block that has cooled stays until
//! another one needs its slot, because its copy costs nothing there.

use super::analyzer::HotBlock;
use super::table::{CopyState, HotBlockTable};
use std::collections::{BTreeSet, VecDeque};

/// Attempts at a copy, each spoiled by a write to its block, after which it is left for the next period.
const ATTEMPTS: u8 = 8;

/// Planned copies that are checked to find one that can begin: requests in flight block others.
const TRIES: usize = 16;

/// A copy between a block's home and a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedCopy {
    pub(super) block: u64,
    pub(super) slot: u32,
    pub(super) is_out: bool,
    attempts: u8,
}

/// Whether a planned copy can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// It can.
    Ready,
    /// It can later.
    Blocked,
    /// It is no longer needed.
    Obsolete,
}

/// Copies that have not begun.
#[derive(Debug, Default)]
pub(super) struct CopyPlan {
    outs: VecDeque<PlannedCopy>,
    ins: VecDeque<PlannedCopy>,
}

impl CopyPlan {
    /// The plan after which `hot[i]` is in `slots[i]`.
    pub(super) fn new(table: &HotBlockTable, hot: &[HotBlock], slots: &[u32]) -> CopyPlan {
        let (mut leaving, mut plan) = (BTreeSet::new(), CopyPlan::default());
        for (hot, &slot) in hot.iter().zip(slots) {
            let is_there = matches!(table.slot(slot).state, CopyState::Entering | CopyState::Valid);
            if is_there && table.slot_of(hot.block) == Some(slot) {
                continue;
            }
            leaving.extend(table.slot_of(hot.block));
            leaving.insert(slot);
            plan.ins.push_back(PlannedCopy { block: hot.block, slot, is_out: false, attempts: 0 });
        }
        leaving.into_iter().for_each(|slot| plan.push_out(table, slot));
        plan
    }

    /// The plan that empties the region.
    pub(super) fn emptying(table: &HotBlockTable) -> CopyPlan {
        let mut plan = CopyPlan::default();
        (0..table.len() as u32).for_each(|slot| plan.push_out(table, slot));
        plan
    }

    fn push_out(&mut self, table: &HotBlockTable, slot: u32) {
        let holds = table.slot(slot);
        if matches!(holds.state, CopyState::Entering | CopyState::Valid) {
            self.outs.push_back(PlannedCopy { block: holds.block, slot, is_out: true, attempts: 0 });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outs.is_empty() && self.ins.is_empty()
    }

    /// Copies that have not begun: out and in.
    pub(super) fn pending(&self) -> (usize, usize) {
        (self.outs.len(), self.ins.len())
    }

    /// Plans a spoiled copy again; returns whether it was, which it is not after its last attempt.
    pub(super) fn retry(&mut self, mut copy: PlannedCopy) -> bool {
        copy.attempts += 1;
        if copy.attempts < ATTEMPTS {
            let copies = if copy.is_out { &mut self.outs } else { &mut self.ins };
            copies.push_back(copy);
        }
        copy.attempts < ATTEMPTS
    }

    /// The next copy that can begin.
    pub(super) fn next_ready(
        &mut self,
        readiness: impl Fn(&PlannedCopy) -> Readiness,
    ) -> Option<PlannedCopy> {
        [&mut self.outs, &mut self.ins].into_iter().find_map(|copies| next_in(copies, &readiness))
    }
}

fn next_in(
    copies: &mut VecDeque<PlannedCopy>,
    readiness: impl Fn(&PlannedCopy) -> Readiness,
) -> Option<PlannedCopy> {
    let mut blocked = 0;
    while blocked < TRIES.min(copies.len()) {
        let copy = copies.pop_front().expect("there is one");
        match readiness(&copy) {
            Readiness::Ready => return Some(copy),
            Readiness::Blocked => {
                copies.push_back(copy);
                blocked += 1;
            }
            Readiness::Obsolete => {}
        }
    }
    None
}
