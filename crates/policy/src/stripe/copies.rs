//! Arrays without parity: every block lies on one member, or copies of it on several.
//!
//! A write goes to all copies. A read goes to one, which the [`ReadChoice`] picks among those that can be read.

use super::layout::Cut;
use super::plan::{Phase, Plan, part};
use super::shape::ReadChoice;
use super::{Array, Members};
use headstack_model::{Lbn, Op, Request};
use rand::RngExt;

impl Array {
    /// Plans the accesses for the blocks of a cut.
    pub(super) fn plan_copies(&mut self, request: &Request, cut: &Cut, view: &dyn Members, plan: &mut Plan) {
        if request.op == Op::Read {
            let copy = self.choose(cut, view);
            let (member, start) = self.copy(cut, copy);
            let member = self.readable(member, start, start + cut.sectors).expect("a copy was chosen");
            let access = part(request, Op::Read, member, start, cut.sectors);
            return self.planner.add(plan, Phase::First, access);
        }
        for copy in 0..self.layout.copies() {
            let (member, start) = self.copy(cut, copy);
            if let Some(member) = self.writable(member, start) {
                let access = part(request, Op::Write, member, start, cut.sectors);
                self.planner.add(plan, Phase::First, access);
            }
        }
    }

    /// Has the first copy of a cut read that can be.
    pub(super) fn plan_first_copy(&mut self, request: &Request, cut: &Cut, plan: &mut Plan) {
        let copies = (0..self.layout.copies()).map(|copy| self.copy(cut, copy));
        let mut readable = copies
            .filter_map(|(member, start)| Some((self.readable(member, start, start + cut.sectors)?, start)));
        let found = readable.next();
        if let Some((member, start)) = found {
            let access = part(request, Op::Read, member, start, cut.sectors);
            self.planner.add(plan, Phase::First, access);
        }
    }

    /// The member that has a copy, and the copy's first block there.
    fn copy(&self, cut: &Cut, copy: u32) -> (u32, u64) {
        let (member, start) = self.layout.data(&cut.row, cut.unit, copy);
        (member, start + cut.offset)
    }

    /// Which copy to read.
    fn choose(&mut self, cut: &Cut, view: &dyn Members) -> u32 {
        let copies = self.layout.copies();
        if copies == 1 {
            return 0;
        }
        let home = |copy: u32| {
            let (member, start) = self.copy(cut, copy);
            Some((self.readable(member, start, start + cut.sectors)?, start))
        };
        let alive = || (0..copies).filter(|copy| home(*copy).is_some());
        let far =
            |copy: u32| home(copy).map_or(u64::MAX, |(member, start)| view.distance(member, Lbn(start)));
        let queue = |copy: u32| home(copy).map_or(usize::MAX, |(member, _)| view.outstanding(member));
        let chosen = match self.shape.read_choice {
            ReadChoice::Primary => alive().next(),
            ReadChoice::Nearest => alive().min_by_key(|copy| far(*copy)),
            ReadChoice::ShortestQueue => alive().min_by_key(|copy| (queue(*copy), far(*copy))),
            ReadChoice::Random | ReadChoice::RoundRobin => {
                let count = alive().count();
                let nth = match self.shape.read_choice {
                    ReadChoice::Random => self.random.random_range(0..count.max(1)),
                    _ => self.turn as usize % count.max(1),
                };
                self.turn = self.turn.wrapping_add(1);
                (0..copies).filter(|copy| self.has_copy(cut, *copy)).nth(nth)
            }
        };
        chosen.expect("an array that has failed for good is refused")
    }

    fn has_copy(&self, cut: &Cut, copy: u32) -> bool {
        let (member, start) = self.copy(cut, copy);
        self.readable(member, start, start + cut.sectors).is_some()
    }
}
