//! Arrays: how a request for an array's blocks becomes accesses of members, and in which order.
//!
//! An [`Array`] is a state machine without a clock: it gets a request for its blocks and a view of its members, and plans accesses of
//! them in phases. It stores no data and never waits.
//!
//! Modelled: concatenation; striping, with units of one length or of given lengths, as when each is a track; mirroring and chained
//! declustering; a drive of parity, RAID-5 and RAID-6; all of them with failed members, and their rebuilding on spares.
//!
//! [`advise`] says which stripe unit suits a load.
//!
//! *Source:* Patterson, Gibson and Katz, "A case for redundant arrays of inexpensive disks" (1988); Hsiao and DeWitt, "Chained
//! declustering" (1990).

pub mod advise;
mod copies;
mod layout;
mod parity;
mod plan;
mod rebuild;
mod shape;
mod units;

pub use plan::{Access, Plan};
pub use shape::{Organisation, Policy, ReadChoice, Rotation, Shape, ShapeError, WriteOrder};
pub use units::{Unit, UnitRun};

use headstack_model::{Lbn, Op, Request};
use layout::Layout;
use parity::Spans;
use plan::{Phase, Planner, part};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use rebuild::{FailedMembers, RebuildStep};

/// An array's view of its members, by their numbers; spares are numbered after all members.
pub trait Members {
    /// Commands that wait for a member or are in flight there.
    fn outstanding(&self, member: u32) -> usize;
    /// How far a member's arm is from a block, in any unit.
    fn distance(&self, member: u32, lbn: Lbn) -> u64;
}

/// Drives as one run of blocks.
#[derive(Clone, Debug)]
pub struct Array {
    shape: Shape,
    layout: Layout,
    planner: Planner,
    spans: Spans,
    random: Pcg64Mcg,
    /// Reads chosen so far, in turn or at random.
    turn: u64,
    failed: FailedMembers,
}

impl Array {
    /// The array of this shape.
    ///
    /// *Errors:* the members cannot form one, or more of them have failed than it survives.
    pub fn new(shape: Shape) -> Result<Array, ShapeError> {
        shape.check()?;
        let layout = Layout::new(&shape)?;
        Ok(Array {
            planner: Planner::new(shape.members.len() + shape.spares),
            spans: Spans::default(),
            random: Pcg64Mcg::seed_from_u64(shape.seed),
            turn: 0,
            failed: FailedMembers::new(&shape),
            layout,
            shape,
        })
    }

    /// Blocks that it holds.
    pub fn sectors(&self) -> u64 {
        self.layout.sectors()
    }

    /// The first block of each member of a concatenation; `None` for an array that spreads consecutive blocks over its members.
    pub fn concatenated_starts(&self) -> Option<&[u64]> {
        self.layout.concatenated_starts()
    }

    /// Whether each track is a stripe unit, without copies or parity: so are the blocks of a disk laid out over the surfaces of several arms.
    pub fn is_striped_by_tracks(&self) -> bool {
        self.shape.organisation == Organisation::Striping && matches!(self.shape.unit, Unit::Lengths(_))
    }

    /// Blocks of data in a stripe of units of one length; none for an array without them, such as a mirror of whole drives.
    pub fn stripe_sectors(&self) -> Option<u64> {
        let Unit::Sectors(unit) = self.shape.unit else { return None };
        let (organisation, members) = (self.shape.organisation, self.shape.members.len() as u64);
        organisation.data_members(members, self.shape.copies)?.checked_mul(unit)
    }

    /// Plans what the members must do for a request, which must lie within the array.
    pub fn plan(&mut self, request: &Request, view: &dyn Members, plan: &mut Plan) {
        assert!(request.end().0 <= self.sectors(), "{request:?} lies in an array of {}", self.sectors());
        self.planner.begin(plan);
        if request.op == Op::Flush {
            return self.plan_flush(request, plan);
        }
        let mut from = request.lbn.0;
        while from < request.end().0 {
            let left = request.end().0 - from;
            let mut cut = self.layout.cut(from);
            from += if self.layout.parities() > 0 {
                self.plan_row(request, &cut, left, plan)
            } else {
                cut.sectors = cut.sectors.min(left);
                self.plan_copies(request, &cut, view, plan);
                cut.sectors
            };
        }
    }

    /// Plans a flush of every member that is written to.
    fn plan_flush(&mut self, request: &Request, plan: &mut Plan) {
        for member in 0..self.shape.members.len() as u32 {
            if let Some(member) = self.failed.writable(member, 0) {
                self.planner.add(plan, Phase::First, part(request, Op::Flush, member, 0, 0));
            }
        }
    }

    /// Where a block of the array lies: the member that has its first copy, and the block there.
    pub fn locate(&self, lbn: Lbn) -> (u32, Lbn) {
        let cut = self.layout.cut(lbn.0);
        let (member, start) = self.layout.data(&cut.row, cut.unit, 0);
        (member, Lbn(start + cut.offset))
    }

    /// The block of the array that lies at a block of a member, as any of its copies; none where there is parity or nothing.
    pub fn block_at(&self, member: u32, lbn: Lbn) -> Option<Lbn> {
        self.layout.block_at(member, lbn.0).map(Lbn)
    }

    /// The members that have the parity of the row of an array's block.
    pub fn parity_of(&self, lbn: Lbn) -> impl Iterator<Item = u32> {
        let row = self.layout.cut(lbn.0).row;
        (0..self.layout.parities()).map(move |which| self.layout.parity(&row, which))
    }

    /// Plans the next step of rebuilding, of at most `most` blocks; returns their number, and `None` when all is rebuilt.
    /// [`Array::rebuilt`] must follow before the next.
    pub fn plan_rebuild(&mut self, most: u64, plan: &mut Plan) -> Option<u64> {
        let RebuildStep { member, spare, from, to } = self.failed.begin_step(self.layout.used(), most)?;
        self.planner.begin(plan);
        let mut at = from;
        while at < to {
            let sectors = self.layout.rest_of_row(at).min(to - at);
            self.plan_recovery(member, at, sectors, plan);
            let write = part(&Request::write(Lbn(at), 0), Op::Write, spare, at, sectors);
            self.planner.add(plan, Phase::Then, write);
            at += sectors;
        }
        Some(to - from)
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

    /// Marks a member or a spare as failed, from the next plan on: the next idle spare replaces it, if there is one. Returns whether the array
    /// survives it; one that does not stays as it was, and its plans have accesses of the dead member where nothing replaces it.
    pub fn fail(&mut self, device: u32) -> bool {
        if self.failed.has_failed(device) {
            return true;
        }
        let incomplete = self.failed.incomplete_without(device, self.layout.used());
        let survives = self.shape.survives(&incomplete);
        if survives {
            self.failed.fail(device);
        }
        survives
    }

    /// Whether a member or a spare has failed.
    pub fn has_failed(&self, device: u32) -> bool {
        self.failed.has_failed(device)
    }

    /// Ends the last planned step, whose blocks could not be recovered, and the rebuilding of its member.
    pub fn give_up_rebuild(&mut self) {
        self.failed.give_up_step();
    }

    /// Completes the last planned step.
    pub fn rebuilt(&mut self) {
        self.failed.complete_step();
    }

    /// Blocks of spares that have been rebuilt, and those of all spares that replace a member.
    pub fn progress(&self) -> (u64, u64) {
        self.failed.progress(self.layout.used())
    }
}
