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
    pub(super) fn plan_copies(&mut self, request: &Request, cut: &Cut, view: &dyn Members, plan: &mut Plan) {
        if request.op == Op::Read {
            let copy = self.choose_copy(cut, view);
            let home = self.readable_copy(cut, copy).expect("a copy was chosen");
            return self.add_read(request, home, cut, plan);
        }
        for copy in 0..self.layout.copies() {
            let (member, start) = self.copy(cut, copy);
            if let Some(member) = self.failed.writable(member, start) {
                let access = part(request, Op::Write, member, start, cut.sectors);
                self.planner.add(plan, Phase::First, access);
            }
        }
    }

    /// Plans a read of the first copy of a cut that can be read.
    pub(super) fn plan_first_copy(&mut self, request: &Request, cut: &Cut, plan: &mut Plan) {
        let first = (0..self.layout.copies()).find_map(|copy| self.readable_copy(cut, copy));
        if let Some(home) = first {
            self.add_read(request, home, cut, plan);
        }
    }

    fn add_read(&mut self, request: &Request, (member, start): (u32, u64), cut: &Cut, plan: &mut Plan) {
        self.planner.add(plan, Phase::First, part(request, Op::Read, member, start, cut.sectors));
    }

    /// The member that has a copy, and the copy's first block there.
    fn copy(&self, cut: &Cut, copy: u32) -> (u32, u64) {
        let (member, start) = self.layout.data(&cut.row, cut.unit, copy);
        (member, start + cut.offset)
    }

    /// The member that can read a copy, and the copy's first block there.
    fn readable_copy(&self, cut: &Cut, copy: u32) -> Option<(u32, u64)> {
        let (member, start) = self.copy(cut, copy);
        Some((self.failed.readable(member, start + cut.sectors)?, start))
    }

    fn choose_copy(&mut self, cut: &Cut, view: &dyn Members) -> u32 {
        if self.layout.copies() == 1 {
            return 0;
        }
        let array = &*self;
        let copies = || {
            let all = 0..array.layout.copies();
            all.filter_map(|copy| Some((copy, array.readable_copy(cut, copy)?)))
        };
        let distance = |(member, start): (u32, u64)| view.distance(member, Lbn(start));
        let chosen = match array.shape.read_choice {
            ReadChoice::Primary => copies().next(),
            ReadChoice::Nearest => copies().min_by_key(|(_, home)| distance(*home)),
            ReadChoice::ShortestQueue => {
                copies().min_by_key(|(_, home)| (view.outstanding(home.0), distance(*home)))
            }
            choice @ (ReadChoice::Random | ReadChoice::RoundRobin) => {
                let count = copies().count().max(1);
                let nth = match choice {
                    ReadChoice::Random => self.random.random_range(0..count),
                    _ => self.turn as usize % count,
                };
                self.turn = self.turn.wrapping_add(1);
                let mut readable =
                    (0..self.layout.copies()).filter_map(|copy| Some((copy, self.readable_copy(cut, copy)?)));
                readable.nth(nth)
            }
        };
        chosen.expect("an array without a readable copy is rejected when it is built").0
    }
}
