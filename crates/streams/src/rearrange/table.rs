//! The hot block table: which slot of the region holds a copy of which block.
//!
//! *Source:* Akyürek and Salem 1995; the states, and the counts of commands in flight, are ours.

use super::index::BlockIndex;

/// The state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyState {
    /// It holds no copy.
    Free,
    /// A block is being copied into it.
    Filling,
    /// It holds a copy, and the table's change is being recorded.
    Entering,
    /// It holds the copy that is in force.
    Valid,
    /// Its copy equals the home again, and the table's change is being recorded.
    Leaving,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TableSlot {
    pub(super) state: CopyState,
    /// Its block, unless it is free or being filled.
    pub(super) block: u64,
    /// Whether the copy was written since it was copied.
    pub(super) is_dirty: bool,
    /// Reads of requests in flight.
    pub(super) reads: u32,
    /// Writes of requests in flight.
    pub(super) writes: u32,
}

/// The copies in the region, by slot and by block.
#[derive(Debug)]
pub(super) struct HotBlockTable {
    slots: Vec<TableSlot>,
    index: BlockIndex,
    /// Slots that hold a copy in force.
    valid: u32,
    dirty: u32,
}

impl HotBlockTable {
    pub(super) fn new(slots: usize) -> HotBlockTable {
        let free = TableSlot { state: CopyState::Free, block: 0, is_dirty: false, reads: 0, writes: 0 };
        HotBlockTable { slots: vec![free; slots], index: BlockIndex::new(slots), valid: 0, dirty: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Copies in force.
    pub(super) fn valid(&self) -> u32 {
        self.valid
    }

    /// Copies in force that were written.
    pub(super) fn dirty(&self) -> u32 {
        self.dirty
    }

    #[inline]
    pub(super) fn slot(&self, slot: u32) -> &TableSlot {
        &self.slots[slot as usize]
    }

    fn slot_mut(&mut self, slot: u32) -> &mut TableSlot {
        &mut self.slots[slot as usize]
    }

    /// The slot that holds a block, whatever its state.
    #[inline]
    pub(super) fn slot_of(&self, block: u64) -> Option<u32> {
        self.index.get(block)
    }

    /// The block whose copy a slot holds, whether its change is recorded or not.
    pub(super) fn block_in(&self, slot: u32) -> Option<u64> {
        let slot = self.slot(slot);
        (!matches!(slot.state, CopyState::Free | CopyState::Filling)).then_some(slot.block)
    }

    /// Whether a copy of a block is newer than its home.
    pub(super) fn is_dirty(&self, block: u64) -> bool {
        self.slot_of(block).is_some_and(|slot| self.slot(slot).is_dirty)
    }

    /// Whether no slot holds anything.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.iter().all(|slot| slot.state == CopyState::Free)
    }

    /// Whether a change is being recorded.
    pub(super) fn is_changing(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.state, CopyState::Entering | CopyState::Leaving))
    }

    /// The slots that hold a copy in force.
    pub(super) fn copies(&self) -> impl Iterator<Item = (u32, u64, bool)> + '_ {
        let slots = self.slots.iter().zip(0u32..);
        let valid = slots.filter(|(slot, _)| slot.state == CopyState::Valid);
        valid.map(|(slot, number)| (number, slot.block, slot.is_dirty))
    }

    pub(super) fn begin_filling(&mut self, slot: u32) {
        let slot = self.slot_mut(slot);
        assert_eq!(slot.state, CopyState::Free, "a copy goes into a free slot");
        slot.state = CopyState::Filling;
    }

    pub(super) fn abandon_filling(&mut self, slot: u32) {
        self.slot_mut(slot).state = CopyState::Free;
    }

    /// Marks a slot as holding the block's copy once the change is recorded.
    pub(super) fn begin_entering(&mut self, slot: u32, block: u64) {
        self.index.insert(block, slot);
        let slot = self.slot_mut(slot);
        assert_eq!(slot.state, CopyState::Filling, "a copy enters after it was copied");
        (slot.state, slot.block) = (CopyState::Entering, block);
    }

    /// Marks a copy that equals its home as leaving once the change is recorded.
    pub(super) fn begin_leaving(&mut self, slot: u32) {
        self.set_dirty(slot, false);
        self.valid -= 1;
        let slot = self.slot_mut(slot);
        assert!(slot.state == CopyState::Valid && slot.writes == 0, "{slot:?} leaves");
        slot.state = CopyState::Leaving;
    }

    /// Completes the change of a slot that was recorded.
    pub(super) fn finish_change(&mut self, slot: u32) {
        let TableSlot { state, block, .. } = *self.slot(slot);
        self.slot_mut(slot).state = match state {
            CopyState::Entering => {
                self.valid += 1;
                CopyState::Valid
            }
            CopyState::Leaving => {
                self.index.remove(block);
                CopyState::Free
            }
            _ => panic!("slot {slot} has no change to record"),
        };
    }

    /// Counts a command of a request in flight. A write makes the copy dirty.
    #[inline]
    pub(super) fn begin_use(&mut self, slot: u32, is_write: bool) {
        if is_write {
            self.set_dirty(slot, true);
            self.slot_mut(slot).writes += 1;
        } else {
            self.slot_mut(slot).reads += 1;
        }
    }

    #[inline]
    pub(super) fn end_use(&mut self, slot: u32, is_write: bool) {
        let slot = self.slot_mut(slot);
        let count = if is_write { &mut slot.writes } else { &mut slot.reads };
        *count -= 1;
    }

    fn set_dirty(&mut self, slot: u32, is_dirty: bool) {
        let was_dirty = std::mem::replace(&mut self.slot_mut(slot).is_dirty, is_dirty);
        self.dirty = self.dirty + u32::from(is_dirty) - u32::from(was_dirty);
    }

    /// Fills a free slot with a copy that was there before a restart.
    pub(super) fn restore(&mut self, slot: u32, block: u64, is_dirty: bool) {
        self.begin_filling(slot);
        self.begin_entering(slot, block);
        self.finish_change(slot);
        self.set_dirty(slot, is_dirty);
    }

    /// Panics if the table contradicts itself.
    pub(super) fn check(&self) {
        let (mut valid, mut dirty) = (0, 0);
        for (slot, number) in self.slots.iter().zip(0u32..) {
            if matches!(slot.state, CopyState::Free | CopyState::Filling) {
                assert!(!slot.is_dirty && slot.writes == 0, "{slot:?} holds no copy");
                continue;
            }
            assert_eq!(self.slot_of(slot.block), Some(number), "the table finds {slot:?}");
            valid += u32::from(slot.state == CopyState::Valid);
            dirty += u32::from(slot.is_dirty);
        }
        assert_eq!((valid, dirty), (self.valid, self.dirty), "the table counts its copies");
    }
}
