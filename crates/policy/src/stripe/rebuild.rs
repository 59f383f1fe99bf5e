//! Failed members, and their rebuilding on spares.
//!
//! A failed member is neither read nor written. Its spare replaces it run by run: rebuilt runs are read there, and the run being
//! rebuilt is also written there. Spares are numbered after the members, in the order of the failed ones.

use super::Array;
use super::plan::{Phase, Plan, part};
use headstack_model::{Lbn, Op, Request};

/// A member that has failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    member: u32,
    /// Blocks from the first on that the spare has.
    rebuilt: u64,
    /// Blocks from the first on that it has or is about to get.
    in_flight: u64,
}

impl Lost {
    pub(super) fn new(member: u32) -> Lost {
        Lost { member, rebuilt: 0, in_flight: 0 }
    }
}

impl Array {
    /// The member that can read a run of a member's blocks.
    pub(super) fn readable(&self, member: u32, _from: u64, to: u64) -> Option<u32> {
        match self.lost.iter().position(|lost| lost.member == member) {
            None => Some(member),
            Some(index) => (to <= self.lost[index].rebuilt).then_some(self.spare(index)),
        }
    }

    /// The member that must write the blocks from a block of a member on.
    pub(super) fn writable(&self, member: u32, from: u64) -> Option<u32> {
        match self.lost.iter().position(|lost| lost.member == member) {
            None => Some(member),
            Some(index) => (from < self.lost[index].in_flight).then_some(self.spare(index)),
        }
    }

    /// Plans the next step of rebuilding, of at most `most` blocks; returns their number, and `None` when all is rebuilt.
    /// [`Array::rebuilt`] must follow before the next.
    pub fn plan_rebuild(&mut self, most: u64, plan: &mut Plan) -> Option<u64> {
        let used = self.layout.used();
        let index = self.lost.iter().take(self.shape.spares).position(|lost| lost.rebuilt < used)?;
        let Lost { member, rebuilt: from, .. } = self.lost[index];
        let end = used.min(from + most);
        self.lost[index].in_flight = end;
        self.planner.begin(plan);
        let (mut at, spare) = (from, self.spare(index));
        while at < end {
            let sectors = self.layout.rest_of_row(at).min(end - at);
            self.plan_recovery(member, at, sectors, plan);
            let write = part(&Request::write(Lbn(at), 0), Op::Write, spare, at, sectors);
            self.planner.add(plan, Phase::Then, write);
            at += sectors;
        }
        Some(end - from)
    }

    /// Plans the reads from which a run of a member's blocks, which lies in one unit, is recovered.
    fn plan_recovery(&mut self, member: u32, from: u64, sectors: u64, plan: &mut Plan) {
        let read = Request::read(Lbn(from), 0);
        if self.layout.parities() > 0 {
            self.plan_lost_unit(&read, from, from + sectors, plan);
        } else if let Some(block) = self.layout.block_at(member, from) {
            let mut cut = self.layout.cut(block);
            cut.sectors = sectors;
            self.plan_first_copy(&read, &cut, plan);
        }
    }

    /// Completes the last planned step.
    pub fn rebuilt(&mut self) {
        self.lost.iter_mut().for_each(|lost| lost.rebuilt = lost.in_flight);
    }

    /// Blocks of spares that have been rebuilt, and those of all spares.
    pub fn progress(&self) -> (u64, u64) {
        let spares = self.lost.iter().take(self.shape.spares);
        let done = spares.map(|lost| lost.rebuilt).sum();
        (done, self.shape.spares as u64 * self.layout.used())
    }

    /// The number of the spare of a failed member.
    fn spare(&self, index: usize) -> u32 {
        (self.shape.members.len() + index) as u32
    }
}
