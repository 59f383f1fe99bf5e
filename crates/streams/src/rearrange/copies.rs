//! Copies in flight between homes and slots.
//!
//! A copy is a read and then a write. A request that writes to the block meanwhile *spoils* the copy: what was read is old. A spoiled copy
//! has no effect and is planned again. A copy begins when no write to its block is in flight, so that it misses none, and goes into a
//! slot that no request reads, so that no read finds another block there.

use super::arranger::{CopyPlan, PlannedCopy, Readiness};
use super::messages::{BlockAccess, CommandBuffer, RearrangeAction, TableChange};
use super::table::CopyState;
use super::{CommandPurpose, InFlightCommand, Rearranger};
use headstack_model::{BlockError, Instant, Lbn};

/// A copy in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActiveCopy {
    planned: PlannedCopy,
    started: Instant,
    /// Whether a request has written to its block meanwhile.
    is_spoiled: bool,
    /// Whether a later plan does not contain it.
    is_cancelled: bool,
}

impl Rearranger {
    /// Marks the copies of these blocks in flight as spoiled.
    #[inline(never)]
    pub(super) fn spoil_copies(&mut self, (first, last): (u64, u64)) {
        for (_, copy) in &mut self.copies {
            copy.is_spoiled |= (first..=last).contains(&copy.planned.block);
        }
    }

    /// Replaces the plan and cancels the copies in flight, which then have no effect.
    pub(super) fn replace_plan(&mut self, plan: CopyPlan) {
        let (outs, ins) = self.plan.pending();
        self.counters.abandoned += (outs + ins) as u64;
        self.copies.iter_mut().for_each(|(_, copy)| copy.is_cancelled = true);
        self.plan = plan;
    }

    /// Begins copies as far as the pace permits.
    #[inline]
    pub(super) fn pump(&mut self) {
        if self.may_begin_copy() {
            self.begin_copies();
        }
    }

    #[inline]
    fn may_begin_copy(&self) -> bool {
        !self.plan.is_empty()
            && self.copies.len() < self.spec.parallel_copies as usize
            && self.pace.next_copy() <= self.now
    }

    fn begin_copies(&mut self) {
        while self.may_begin_copy() {
            let mut plan = std::mem::take(&mut self.plan);
            let next = plan.next_ready(|copy| self.readiness(copy));
            self.plan = plan;
            match next {
                Some(copy) => self.begin_copy(copy),
                None => break,
            }
        }
    }

    fn readiness(&self, copy: &PlannedCopy) -> Readiness {
        let slot = self.table.slot(copy.slot);
        let ready = |is_ready: bool| if is_ready { Readiness::Ready } else { Readiness::Blocked };
        if copy.is_out {
            return match slot.state {
                CopyState::Valid if slot.block == copy.block => {
                    ready(slot.writes == 0 && !self.has_copy_of(copy.block))
                }
                CopyState::Entering => Readiness::Blocked,
                _ => Readiness::Obsolete,
            };
        }
        let is_free = slot.state == CopyState::Free && slot.reads == 0;
        let is_elsewhere = self.table.slot_of(copy.block).is_some() || self.has_copy_of(copy.block);
        ready(is_free && !is_elsewhere && !self.in_flight.writes_home_of(copy.block))
    }

    fn has_copy_of(&self, block: u64) -> bool {
        self.copies.iter().any(|(_, copy)| copy.planned.block == block)
    }

    fn begin_copy(&mut self, planned: PlannedCopy) {
        if planned.is_out && !self.table.slot(planned.slot).is_dirty {
            self.counters.left_clean += 1;
            return self.leave(planned.slot);
        }
        if !planned.is_out {
            self.table.begin_filling(planned.slot);
        }
        let copy = ActiveCopy { planned, started: self.now, is_spoiled: false, is_cancelled: false };
        let key = self.copies.insert(copy) as u32;
        self.transfer(key, CommandPurpose::CopyRead(key), BlockAccess::Read);
    }

    /// Begins the read or the write of a copy.
    fn transfer(&mut self, key: u32, purpose: CommandPurpose, access: BlockAccess) {
        let PlannedCopy { block, slot, is_out, .. } = self.copies[key as usize].planned;
        let at_slot = is_out == (access == BlockAccess::Read);
        let lbn = if at_slot { self.slots[slot as usize].lbn } else { self.home_of(block) };
        // Requests wait for slots and homes in use by their own writes only.
        let command = InFlightCommand { purpose, is_write: false, blocks: (block, block), slots: None };
        self.start(command, access, (lbn, self.block_sectors as u32), CommandBuffer::Copy(key));
    }

    fn home_of(&self, block: u64) -> Lbn {
        self.region.home(Lbn(block * self.block_sectors)).0
    }

    /// Whether a copy of a block can be made: its sectors are visible, and contiguous on the disk.
    pub(super) fn is_eligible(&self, block: u64) -> bool {
        let first = block * self.block_sectors;
        first + self.block_sectors <= self.region.visible_sectors()
            && self.region.home(Lbn(first)).1 >= self.block_sectors
    }

    /// Handles the end of a copy's read.
    pub(super) fn end_copy_read(&mut self, key: u32, result: Result<(), BlockError>) {
        let copy = self.copies[key as usize];
        if result.is_err() || copy.is_spoiled || copy.is_cancelled {
            return self.abandon(key, result);
        }
        self.transfer(key, CommandPurpose::CopyWrite(key), BlockAccess::Write);
    }

    /// Handles the end of a copy's write.
    pub(super) fn end_copy_write(&mut self, key: u32, result: Result<(), BlockError>) {
        let copy = self.copies[key as usize];
        if result.is_err() || copy.is_spoiled || copy.is_cancelled {
            return self.abandon(key, result);
        }
        self.copies.remove(key as usize);
        self.pace.copy_ends(self.now, copy.started);
        let PlannedCopy { block, slot, is_out, .. } = copy.planned;
        if is_out {
            self.counters.written_home += 1;
            return self.leave(slot);
        }
        self.counters.copied_in += 1;
        self.table.begin_entering(slot, block);
        self.actions.push_back(RearrangeAction::Record(TableChange { slot, block: Some(block) }));
    }

    /// Ends a copy without effect.
    fn abandon(&mut self, key: u32, result: Result<(), BlockError>) {
        let ActiveCopy { planned, started, is_cancelled, .. } = self.copies.remove(key as usize);
        self.pace.copy_ends(self.now, started);
        if !planned.is_out {
            self.table.abandon_filling(planned.slot);
        }
        if result.is_err() {
            self.counters.failed += 1;
            return;
        }
        self.counters.spoiled += 1;
        if is_cancelled || !self.plan.retry(planned) {
            self.counters.abandoned += 1;
        }
    }

    fn leave(&mut self, slot: u32) {
        self.table.begin_leaving(slot);
        self.actions.push_back(RearrangeAction::Record(TableChange { slot, block: None }));
    }
}
