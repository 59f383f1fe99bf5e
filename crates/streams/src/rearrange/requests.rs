//! Requests from above: each goes to the homes of its blocks, to their copies, or in pieces to both.

use super::messages::{BlockAccess, BlockCommand, BlockRequest, CommandBuffer, RearrangeAction};
use super::table::CopyState;
use super::{CommandPurpose, InFlightCommand, ReadSource, Rearranger};
use headstack_model::{BlockError, Instant, Lbn};

/// A request that became several commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct DividedRequest {
    ticket: u64,
    /// Commands that have not ended.
    left: u32,
    result: Result<(), BlockError>,
}

/// Where a request finds a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockLocation {
    Home,
    Slot(u32),
    /// Nowhere until a change of the table is recorded.
    Held,
}

/// A run of a request's sectors that is contiguous on the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestPiece {
    lbn: Lbn,
    sectors: u32,
    /// Sectors of the request before it.
    skipped: u32,
    /// Its first and last block.
    blocks: (u64, u64),
    /// The first and last slot, if it lies in the region.
    slots: Option<(u32, u32)>,
}

impl RequestPiece {
    /// Appends a piece, if it follows on the disk and lies in the region as this one does.
    fn join(&mut self, next: &RequestPiece) -> bool {
        let slots = match (self.slots, next.slots) {
            (None, None) => None,
            (Some((first, last)), Some((one, end))) if one == last || one == last + 1 => Some((first, end)),
            _ => return false,
        };
        if self.lbn + u64::from(self.sectors) != next.lbn {
            return false;
        }
        *self = RequestPiece {
            sectors: self.sectors + next.sectors,
            blocks: (self.blocks.0, next.blocks.1),
            slots,
            ..*self
        };
        true
    }
}

/// What to update when a command that is a whole request ends. Only a write to homes has a record, because no copy of its blocks may begin
/// during it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirectEnd {
    HomeRead,
    HomeWrite { write: u32 },
    Slot { slot: u32, is_write: bool },
}

/// The end of a command that [`Rearranger::submit_direct`] accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectEnded {
    /// The slot that it accessed; `None` for homes.
    pub slot: Option<u32>,
    /// Whether actions or another timeout may follow.
    pub may_act: bool,
}

impl DirectEnd {
    /// A number for the owner: the kind in the two lowest bits.
    #[inline]
    fn key(self) -> u32 {
        match self {
            DirectEnd::HomeRead => 0,
            DirectEnd::HomeWrite { write } => write << 2 | 1,
            DirectEnd::Slot { slot, is_write } => slot << 2 | 2 | u32::from(is_write),
        }
    }

    #[inline]
    fn from_key(key: u32) -> DirectEnd {
        match (key & 3, key >> 2) {
            (0, _) => DirectEnd::HomeRead,
            (1, write) => DirectEnd::HomeWrite { write },
            (kind, slot) => DirectEnd::Slot { slot, is_write: kind == 3 },
        }
    }
}

// What few requests need is out of line, so that the way of most requests saves few registers.
impl Rearranger {
    /// The first and last block of a run of visible sectors.
    #[inline]
    pub(super) fn blocks_of(&self, lbn: Lbn, sectors: u32) -> (u64, u64) {
        let first = self.block_of(lbn);
        let last = lbn.0 + u64::from(sectors) - 1;
        // Most requests end in the block where they begin, and a division is slow.
        let is_one = last - first * self.block_sectors < self.block_sectors;
        (first, if is_one { first } else { self.block_of(Lbn(last)) })
    }

    /// The block of a visible sector.
    #[inline]
    fn block_of(&self, lbn: Lbn) -> u64 {
        match self.block_shift {
            Some(shift) => lbn.0 >> shift,
            None => self.divided_by_block(lbn),
        }
    }

    #[inline(never)]
    fn divided_by_block(&self, lbn: Lbn) -> u64 {
        lbn.0 / self.block_sectors
    }

    /// Accepts a request in place of [`Rearranger::submit`], if one command serves it, it delays no planned copy, and its owner needs no
    /// answer but the command's. Returns the key of the command's end, which several commands may have at one time, and its first sector.
    /// `None`: the request was not accepted. [`Rearranger::poll_timeout`] does not change.
    #[inline]
    pub fn submit_direct(
        &mut self,
        now: Instant,
        access: BlockAccess,
        lbn: Lbn,
        sectors: u32,
    ) -> Option<(u32, Lbn)> {
        let is_plain = access != BlockAccess::Flush && self.spec.read_from == ReadSource::Copy;
        if !is_plain || !(self.plan.is_empty() || self.pace.ignores_requests()) {
            return None;
        }
        let (blocks, is_write) = (self.blocks_of(lbn, sectors), access == BlockAccess::Write);
        let (slot, lbn) = self.only_place(is_write, blocks, (lbn, sectors))?;
        self.now = now;
        self.pace.request_begins();
        let end = self.begin_direct(is_write, blocks, slot);
        self.count(blocks);
        Some((end.key(), lbn))
    }

    /// Begins a request of one command, and returns what its end changes.
    #[inline]
    fn begin_direct(&mut self, is_write: bool, blocks: (u64, u64), slot: Option<u32>) -> DirectEnd {
        if is_write && !self.copies.is_empty() {
            self.spoil_copies(blocks);
        }
        if let Some(slot) = slot {
            self.counters.hits += 1;
            self.table.begin_use(slot, is_write);
            return DirectEnd::Slot { slot, is_write };
        }
        if !is_write {
            return DirectEnd::HomeRead;
        }
        DirectEnd::HomeWrite { write: self.in_flight.direct_home_writes.insert(blocks) as u32 }
    }

    /// Reports the end of a command of [`Rearranger::submit_direct`], by its key.
    #[inline]
    pub fn end_direct(&mut self, now: Instant, key: u32) -> DirectEnded {
        self.now = now;
        let slot = match DirectEnd::from_key(key) {
            DirectEnd::HomeRead => None,
            DirectEnd::HomeWrite { write } => {
                self.in_flight.direct_home_writes.remove(write as usize);
                None
            }
            DirectEnd::Slot { slot, is_write } => {
                self.table.end_use(slot, is_write);
                Some(slot)
            }
        };
        self.pace.request_ends(now);
        DirectEnded { slot, may_act: !self.plan.is_empty() && self.pump_after_direct() }
    }

    /// Begins copies after a direct command's end; returns whether actions or another timeout may follow.
    fn pump_after_direct(&mut self) -> bool {
        self.pump();
        !(self.pace.ignores_requests() && self.actions.is_empty())
    }

    /// The place of a request that has only one: the slot of its only block, or the homes of blocks without copies. `None` if it has
    /// more than one, or must be held.
    #[inline]
    fn only_place(
        &self,
        is_write: bool,
        (first, last): (u64, u64),
        (lbn, sectors): (Lbn, u32),
    ) -> Option<(Option<u32>, Lbn)> {
        if first == last {
            match self.location(first, is_write) {
                BlockLocation::Held => return None,
                BlockLocation::Home => {}
                BlockLocation::Slot(slot) => {
                    let within = lbn.0 - first * self.block_sectors;
                    return Some((Some(slot), self.slots[slot as usize].lbn + within));
                }
            }
        } else if self.has_copies_of(first, last) {
            return None;
        }
        Some((None, self.region.home_of_run(lbn, sectors)?))
    }

    #[inline(never)]
    fn has_copies_of(&self, first: u64, last: u64) -> bool {
        (first..=last).any(|block| self.table.slot_of(block).is_some())
    }

    /// Counts a request and its references to blocks.
    #[inline]
    pub(super) fn count(&mut self, (first, last): (u64, u64)) {
        self.counters.requests += 1;
        if first != last {
            return self.count_many(first, last);
        }
        self.counters.references += 1;
        self.analyzer.observe(first);
    }

    #[inline(never)]
    fn count_many(&mut self, first: u64, last: u64) {
        if last - first < u64::from(self.spec.longest_blocks) {
            self.counters.references += last - first + 1;
            (first..=last).for_each(|block| self.analyzer.observe(block));
        }
    }

    /// Begins a request, or holds it until a change of the table that concerns it is recorded.
    pub(super) fn route(&mut self, request: BlockRequest) {
        if request.access == BlockAccess::Flush {
            let buffer = CommandBuffer::Request { ticket: request.ticket, skipped: 0 };
            let flush = InFlightCommand {
                purpose: CommandPurpose::Whole(request.ticket),
                is_write: false,
                blocks: (u64::MAX, 0),
                slots: None,
            };
            return self.start(flush, BlockAccess::Flush, (Lbn(0), 0), buffer);
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        if !self.split(&request, &mut pieces) {
            self.held.push_back(request);
        } else if let [piece] = pieces[..] {
            self.start_piece(&request, &piece, CommandPurpose::Whole(request.ticket));
        } else {
            let left = pieces.len() as u32;
            let split = DividedRequest { ticket: request.ticket, left, result: Ok(()) };
            let purpose = CommandPurpose::Part(self.split.insert(split) as u32);
            pieces.iter().for_each(|piece| self.start_piece(&request, piece, purpose));
        }
        self.pieces = pieces;
    }

    /// Splits a request into pieces; `false` if it must be held.
    fn split(&mut self, request: &BlockRequest, pieces: &mut Vec<RequestPiece>) -> bool {
        let (first, last) = self.blocks_of(request.lbn, request.sectors);
        let is_write = request.access == BlockAccess::Write;
        let is_long = last - first >= u64::from(self.spec.longest_blocks);
        let reads_homes = is_long && !is_write && (first..=last).all(|block| !self.table.is_dirty(block));
        let end = request.lbn + u64::from(request.sectors);
        let mut is_hit = true;
        for block in first..=last {
            let from = Lbn(block * self.block_sectors).max(request.lbn);
            let until = Lbn((block + 1) * self.block_sectors).min(end);
            let location = if reads_homes { BlockLocation::Home } else { self.location(block, is_write) };
            let skipped = (from - request.lbn) as u32;
            match location {
                BlockLocation::Held => return false,
                BlockLocation::Slot(slot) => {
                    let lbn = self.slots[slot as usize].lbn + from.0 % self.block_sectors;
                    let slots = Some((slot, slot));
                    let sectors = (until - from) as u32;
                    push(pieces, RequestPiece { lbn, sectors, skipped, blocks: (block, block), slots });
                }
                BlockLocation::Home => {
                    is_hit = false;
                    self.push_home(pieces, block, (from, until), skipped);
                }
            }
        }
        self.counters.hits += u64::from(is_hit);
        true
    }

    /// Adds the part of a block from its home, which the region may divide.
    fn push_home(
        &self,
        pieces: &mut Vec<RequestPiece>,
        block: u64,
        (mut from, until): (Lbn, Lbn),
        mut skipped: u32,
    ) {
        while from < until {
            let (lbn, contiguous) = self.region.home(from);
            let sectors = contiguous.min(until - from) as u32;
            push(pieces, RequestPiece { lbn, sectors, skipped, blocks: (block, block), slots: None });
            (from, skipped) = (from + u64::from(sectors), skipped + sectors);
        }
    }

    #[inline]
    fn location(&self, block: u64, is_write: bool) -> BlockLocation {
        let Some(slot) = self.table.slot_of(block) else { return BlockLocation::Home };
        match (self.table.slot(slot).state, is_write) {
            (CopyState::Valid, _) | (CopyState::Leaving, false) => BlockLocation::Slot(slot),
            (CopyState::Entering, false) => BlockLocation::Home,
            (CopyState::Entering | CopyState::Leaving, true) => BlockLocation::Held,
            (CopyState::Free | CopyState::Filling, _) => unreachable!("the table finds no such slot"),
        }
    }

    fn start_piece(&mut self, request: &BlockRequest, piece: &RequestPiece, purpose: CommandPurpose) {
        let RequestPiece { lbn, sectors, skipped, blocks, slots } = *piece;
        let id = self.begin_request(purpose, request.access, blocks, slots);
        let buffer = CommandBuffer::Request { ticket: request.ticket, skipped };
        self.push_start(id, request.access, (lbn, sectors), buffer);
    }

    /// Notes a command of a request as in flight, and returns its number.
    #[inline]
    fn begin_request(
        &mut self,
        purpose: CommandPurpose,
        access: BlockAccess,
        blocks: (u64, u64),
        slots: Option<(u32, u32)>,
    ) -> u32 {
        let is_write = access == BlockAccess::Write;
        if is_write && !self.copies.is_empty() {
            self.spoil_copies(blocks);
        }
        if let Some((first, last)) = slots {
            (first..=last).for_each(|slot| self.table.begin_use(slot, is_write));
        }
        self.in_flight.commands.insert(InFlightCommand { purpose, is_write, blocks, slots }) as u32
    }

    #[inline]
    fn end_uses(&mut self, command: &InFlightCommand) {
        if let Some((first, last)) = command.slots {
            (first..=last).for_each(|slot| self.table.end_use(slot, command.is_write));
        }
    }

    /// Begins a command.
    pub(super) fn start(
        &mut self,
        command: InFlightCommand,
        access: BlockAccess,
        run: (Lbn, u32),
        buffer: CommandBuffer,
    ) {
        let id = self.in_flight.commands.insert(command) as u32;
        self.push_start(id, access, run, buffer);
    }

    fn push_start(
        &mut self,
        id: u32,
        access: BlockAccess,
        (lbn, sectors): (Lbn, u32),
        buffer: CommandBuffer,
    ) {
        let other_lbn = self.other_lbn(&self.in_flight.commands[id as usize], lbn, sectors);
        let command = BlockCommand { id, access, lbn, sectors, buffer, other_lbn };
        self.actions.push_back(RearrangeAction::Start(command));
    }

    /// The home of what a command reads from a clean copy of one block, where that may be read, too.
    fn other_lbn(&self, command: &InFlightCommand, lbn: Lbn, sectors: u32) -> Option<Lbn> {
        if self.spec.read_from == ReadSource::Copy || command.is_write {
            return None;
        }
        let (slot, _) = command.slots.filter(|(first, last)| first == last)?;
        let holds = self.table.slot(slot);
        if holds.is_dirty {
            return None;
        }
        let within = lbn - self.slots[slot as usize].lbn;
        let (home, contiguous) = self.region.home(Lbn(holds.block * self.block_sectors + within));
        (contiguous >= u64::from(sectors)).then_some(home)
    }

    /// Handles the end of a request's command.
    pub(super) fn end_request_command(&mut self, command: InFlightCommand, result: Result<(), BlockError>) {
        self.end_uses(&command);
        match command.purpose {
            CommandPurpose::Whole(ticket) => self.answer(ticket, result),
            CommandPurpose::Part(key) => {
                let split = &mut self.split[key as usize];
                split.left -= 1;
                split.result = split.result.and(result);
                if split.left == 0 {
                    let DividedRequest { ticket, result, .. } = self.split.remove(key as usize);
                    self.answer(ticket, result);
                }
            }
            CommandPurpose::CopyRead(_) | CommandPurpose::CopyWrite(_) => {
                unreachable!("these end elsewhere")
            }
        }
    }

    pub(super) fn answer(&mut self, ticket: u64, result: Result<(), BlockError>) {
        self.pace.request_ends(self.now);
        self.actions.push_back(RearrangeAction::Answer { ticket, result });
    }
}

fn push(pieces: &mut Vec<RequestPiece>, piece: RequestPiece) {
    if !pieces.last_mut().is_some_and(|last| last.join(&piece)) {
        pieces.push(piece);
    }
}
