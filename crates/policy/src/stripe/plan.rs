//! An array's plan for a request: accesses of its members, in phases.

use headstack_model::{Lbn, Op, Request};

/// An access of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Access {
    pub member: u32,
    pub request: Request,
}

/// Accesses in phases; each phase begins when all accesses of the previous one have completed. A plan keeps its memory when it is
/// reused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    first: Vec<Access>,
    /// Writes of the second phase that wait only for the first phase's reads of the same member.
    early: Vec<Access>,
    then: Vec<Access>,
}

impl Plan {
    /// The accesses of each phase; no phase is empty. The accesses of [`Plan::early`] are in none.
    pub fn phases(&self) -> impl Iterator<Item = &[Access]> {
        [&self.first[..], &self.then].into_iter().filter(|phase| !phase.is_empty())
    }

    /// Accesses that may begin as soon as the first phase's reads of their own member have completed.
    pub fn early(&self) -> &[Access] {
        &self.early
    }

    /// All accesses.
    pub fn accesses(&self) -> impl Iterator<Item = &Access> {
        self.first.iter().chain(&self.early).chain(&self.then)
    }

    /// Makes the plan this single access.
    pub fn set(&mut self, access: Access) {
        self.clear();
        self.first.push(access);
    }

    pub(super) fn clear(&mut self) {
        self.first.clear();
        self.early.clear();
        self.then.clear();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    First,
    Early,
    Then,
}

/// Makes plans in which adjacent blocks on a member are one access.
#[derive(Clone, Debug)]
pub(super) struct Planner {
    /// For each phase and member, the plan in which it was last accessed, and the place of that access.
    last: [Vec<(u64, u32)>; 3],
    number: u64,
}

impl Planner {
    pub(super) fn new(members: usize) -> Planner {
        Planner { last: [(); 3].map(|()| vec![(0, 0); members]), number: 0 }
    }

    pub(super) fn begin(&mut self, plan: &mut Plan) {
        plan.clear();
        self.number += 1;
    }

    /// Adds an access of `sectors` blocks from `start` on, and joins it to the member's last one where it continues that.
    pub(super) fn add(&mut self, plan: &mut Plan, phase: Phase, access: Access) {
        let list = match phase {
            Phase::First => &mut plan.first,
            Phase::Early => &mut plan.early,
            Phase::Then => &mut plan.then,
        };
        let last = &mut self.last[phase as usize][access.member as usize];
        if last.0 == self.number {
            let before = &mut list[last.1 as usize].request;
            if before.op == access.request.op && before.end() == access.request.lbn {
                before.sectors += access.request.sectors;
                return;
            }
        }
        *last = (self.number, list.len() as u32);
        list.push(access);
    }
}

/// A part of a request, of `sectors` blocks from `start` of a member on; with another `op` it has no FUA.
pub(super) fn part(request: &Request, op: Op, member: u32, start: u64, sectors: u64) -> Access {
    let fua = request.fua && op == request.op;
    Access { member, request: Request { op, lbn: Lbn(start), sectors: sectors as u32, fua } }
}
