//! Block rearrangement before a node's disk: the state machine of [`headstack_streams::rearrange`] with real bytes and a table that survives
//! a crash ([`headstack_streams::rearrange_table`]).
//!
//! It lies between the stream scheduler and the disk. A command of the scheduler has addresses on the disk as clients see it; it becomes one
//! or more commands with addresses on the whole disk. This module also issues the commands that move copies and write the table and the
//! saved counts, with separate buffers. No request reaches the disk before the table says durably that copies are in use.
//!
//! If a step of the table fails, it is unknown whether its changes are on the disk. From then on the disk is read-only: both places of a
//! block have the same data as long as nothing is written.

mod commands;
mod distance;

use super::messages::Ended;
use super::stack::{CommandEnd, NodeOut};
use crate::{BlockError, StatusExtent};
use commands::{DiskPurpose, block_access, with_run};
pub use distance::SeekDistance;
use headstack_model::{Instant, Lbn, Nanos};
use headstack_streams::rearrange::{
    BlockAccess, BlockCommand, BlockRequest, CommandBuffer, HotBlock, RearrangeAction, RearrangeSpec,
    RearrangeView, Rearranger,
};
use headstack_streams::rearrange_table::{
    PAGE_BYTES, RecoveredTable, RegionLabel, SECTOR_BYTES, SavedCounts, TableError, TableStep, TableWriter,
};
use headstack_streams::streams::{Command, DiskLayer, LayerSink, RequestKind, TransferBuffer};
use slab::Slab;
use std::collections::VecDeque;

/// Bytes of a command that saves counts.
const SAVE_BYTES: usize = 1 << 20;

/// The stage of an orderly end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndStage {
    Serving,
    /// Copies in flight end.
    Copies,
    /// The counts are saved.
    Counts,
    /// The table is closed.
    Table,
}

/// Counts that are being saved.
#[derive(Debug)]
struct CountsSave {
    buffer: u32,
    first: u64,
    done: usize,
    end: usize,
}

/// The state of a disk's rearranger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeRearrangeView {
    /// State and counts.
    pub view: RearrangeView,
    /// The way of the arm, with the copies and without.
    pub distance: SeekDistance,
    /// Whether the table could not be written, so that the disk refuses writes.
    pub is_read_only: bool,
}

/// The rearranger of a node's disk. The disk appears smaller by its region.
#[derive(Debug)]
pub struct NodeRearranger {
    rearranger: Rearranger,
    writer: TableWriter,
    label: RegionLabel,
    /// Commands of the scheduler, by ticket.
    requests: Slab<Command>,
    /// Commands at the disk, by number.
    commands: Slab<DiskPurpose>,
    /// Buffers of copies, by the rearranger's number.
    copies: Vec<u32>,
    /// Commands of the scheduler that came before the table was open.
    waiting: VecDeque<Command>,
    distance: SeekDistance,
    save: Option<CountsSave>,
    saves: u64,
    next_area: u8,
    periods: u64,
    left: Nanos,
    stage: EndStage,
}

impl NodeRearranger {
    /// The rearranger for a recovered table. Of `spec`, the size of the region, of a block and of the counters are those of the table.
    ///
    /// *Errors:* a key is out of its range.
    pub fn new(spec: &RearrangeSpec, table: &RecoveredTable) -> Result<NodeRearranger, TableError> {
        let label = *table.label();
        let spec = RearrangeSpec {
            blocks: label.slots,
            block_bytes: label.block_bytes,
            counters: Some(label.counters.max(1)),
            ..spec.clone()
        };
        let block_sectors = label.block_bytes / SECTOR_BYTES;
        let mut rearranger = Rearranger::new(spec, block_sectors, label.region()?, label.slot_list())?;
        for (slot, block, is_dirty) in table.copies() {
            rearranger.restore_copy(slot, block, is_dirty);
        }
        if let Some(counts) = table.counts() {
            let blocks = rearranger.region().visible_sectors() / block_sectors;
            let hot: Vec<HotBlock> = counts.hot.iter().copied().filter(|hot| hot.block < blocks).collect();
            rearranger.restore_counts(&hot);
            rearranger.restore_period(counts.left);
        }
        Ok(NodeRearranger {
            rearranger,
            writer: TableWriter::new(table),
            label,
            requests: Slab::new(),
            commands: Slab::new(),
            copies: Vec::new(),
            waiting: VecDeque::new(),
            distance: SeekDistance::new(block_sectors),
            save: None,
            saves: table.counts().map_or(0, |counts| counts.sequence),
            next_area: table.next_area(),
            periods: 0,
            left: Nanos::ZERO,
            stage: EndStage::Serving,
        })
    }

    /// Bytes of the disk as clients see it.
    pub fn visible_bytes(&self) -> u64 {
        self.rearranger.region().visible_sectors() * SECTOR_BYTES
    }

    /// Bytes of the whole disk.
    pub fn disk_bytes(&self) -> u64 {
        self.label.disk_bytes
    }

    /// Whether visible places are places of the disk, because the region is behind all of them.
    pub fn is_at_end(&self) -> bool {
        self.rearranger.region().runs()[0].first.0 * SECTOR_BYTES == self.visible_bytes()
    }

    /// What it is doing.
    pub fn view(&self) -> NodeRearrangeView {
        let is_read_only = self.writer.has_failed();
        NodeRearrangeView { view: self.rearranger.view(), distance: self.distance, is_read_only }
    }

    fn route(&mut self, now: Instant, command: Command, out: &mut NodeOut) {
        let access = block_access(command.kind);
        let (offset, bytes) = command.kind.run();
        let Ok(sectors) = u32::try_from(bytes / SECTOR_BYTES) else {
            return out.up(command.id, Err(BlockError::Invalid));
        };
        if access == BlockAccess::Write && self.writer.has_failed() {
            return out.up(command.id, Err(BlockError::Medium));
        }
        let lbn = Lbn(offset / SECTOR_BYTES);
        if access != BlockAccess::Flush {
            let (home, contiguous) = self.rearranger.region().home(lbn);
            self.distance.note_home(home, u64::from(sectors).min(contiguous));
        }
        let ticket = self.requests.insert(command) as u64;
        self.rearranger.submit(now, BlockRequest { ticket, access, lbn, sectors });
    }

    /// When the rearranger is due, which is not before the table is open.
    fn next_rearrangement(&self) -> Option<Instant> {
        self.rearranger.poll_timeout().filter(|_| self.writer.is_open() && self.stage == EndStage::Serving)
    }

    /// Carries out actions and steps until there are none.
    fn act(&mut self, now: Instant, out: &mut NodeOut) {
        loop {
            while let Some(action) = self.rearranger.poll_action() {
                match action {
                    RearrangeAction::Start(command) => self.start(command, out),
                    RearrangeAction::Record(change) => self.writer.change(change),
                    RearrangeAction::Answer { ticket, result } => {
                        let command = self.requests.remove(ticket as usize);
                        out.up(command.id, result.map(|()| Ended::Done));
                    }
                }
            }
            self.advance_end(out);
            while let Some(step) = self.writer.poll_step() {
                self.start_step(step, out);
            }
            let Some(slot) = self.writer.poll_recorded() else { break };
            self.rearranger.handle_recorded(now, slot);
        }
        out.wake_at(self.next_rearrangement().unwrap_or(Instant::MAX));
    }

    fn start(&mut self, command: BlockCommand, out: &mut NodeOut) {
        let BlockCommand { id, lbn, sectors, buffer, other_lbn, access } = command;
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        let (place, kind, lbn) = match buffer {
            CommandBuffer::Request { ticket, skipped } => {
                let request = self.requests[ticket as usize];
                let lbn = self.distance.nearest(lbn, other_lbn);
                if access != BlockAccess::Flush {
                    self.distance.note_command(lbn, u64::from(sectors));
                }
                let skipped = u64::from(skipped) * SECTOR_BYTES;
                let place = match request.place {
                    TransferBuffer::Memory(first) => TransferBuffer::Memory(first + skipped),
                    TransferBuffer::Request(ticket) => {
                        TransferBuffer::Part { ticket, offset: request.kind.run().0 + skipped }
                    }
                    TransferBuffer::None => TransferBuffer::None,
                    place => unreachable!("no layer above moves blocks: {place:?}"),
                };
                (place, with_run(request.kind, lbn.0 * SECTOR_BYTES, bytes), lbn)
            }
            CommandBuffer::Copy(copy) => {
                while self.copies.len() <= copy as usize {
                    self.copies.push(out.allocate(self.label.block_bytes as usize));
                }
                let offset = lbn.0 * SECTOR_BYTES;
                let kind = match access {
                    BlockAccess::Read => RequestKind::Read { offset, bytes, fua: false },
                    _ => RequestKind::Write { offset, bytes, fua: false },
                };
                (TransferBuffer::Layer { buffer: self.copies[copy as usize], from: 0 }, kind, lbn)
            }
        };
        assert!(lbn.0 * SECTOR_BYTES + bytes <= self.label.disk_bytes);
        self.send(DiskPurpose::Block(id), kind, place, out);
    }

    fn send(&mut self, purpose: DiskPurpose, kind: RequestKind, place: TransferBuffer, out: &mut NodeOut) {
        let id = self.commands.insert(purpose) as u32;
        out.down(Command { id, kind, place, limit: 0 });
    }

    fn start_step(&mut self, step: TableStep, out: &mut NodeOut) {
        let (buffer, kind, place) = match step {
            TableStep::Flush => (None, RequestKind::Flush, TransferBuffer::None),
            TableStep::Write { copy, page } => {
                let buffer = out.allocate(PAGE_BYTES);
                out.buffer(buffer)[..PAGE_BYTES].copy_from_slice(&self.writer.page(page));
                let offset = self.label.page_first(copy, page);
                let kind = RequestKind::Write { offset, bytes: PAGE_BYTES as u64, fua: false };
                (Some(buffer), kind, TransferBuffer::Layer { buffer, from: 0 })
            }
        };
        self.send(DiskPurpose::Table(buffer), kind, place, out);
    }

    fn end_step(&mut self, now: Instant, is_done: bool, out: &mut NodeOut) {
        self.writer.handle_end(is_done);
        if self.writer.has_failed() {
            self.rearranger.suspend(now);
            self.rearranger.refuse_held(now, BlockError::Medium);
        }
        if self.writer.is_open() || self.writer.has_failed() {
            while let Some(command) = self.waiting.pop_front() {
                self.route(now, command, out);
            }
        }
    }

    /// Begins to save the counts, unless a save is in progress.
    fn begin_save(&mut self, left: Nanos, out: &mut NodeOut) {
        if self.save.is_some() || self.label.counters == 0 {
            return;
        }
        self.saves += 1;
        let hot = self.rearranger.hot_list(self.label.counters as usize);
        let area = SavedCounts { sequence: self.saves, left, hot }.encode(&self.label.id);
        let buffer = out.allocate(area.len());
        out.buffer(buffer)[..area.len()].copy_from_slice(&area);
        let first = self.label.counts_first(self.next_area);
        self.next_area = 1 - self.next_area;
        self.save = Some(CountsSave { buffer, first, done: 0, end: area.len() });
        self.write_counts(out);
    }

    fn write_counts(&mut self, out: &mut NodeOut) {
        let Some(CountsSave { buffer, first, done, end }) = self.save else { return };
        let (from, bytes) = (done as u64, (end - done).min(SAVE_BYTES) as u64);
        let kind = RequestKind::Write { offset: first + from, bytes, fua: false };
        self.send(DiskPurpose::Counts, kind, TransferBuffer::Layer { buffer, from }, out);
    }

    /// Continues the save after a part of the counts was written. If the part failed, the save ends, and the one before stays valid.
    fn continue_save(&mut self, is_done: bool, out: &mut NodeOut) {
        let save = self.save.as_mut().expect("counts are being saved");
        save.done = (save.done + SAVE_BYTES).min(save.end);
        if is_done && save.done < save.end {
            self.write_counts(out);
        } else {
            out.free(save.buffer);
            self.save = None;
        }
    }

    /// Begins the next stage of an orderly end, if the last one is over.
    fn advance_end(&mut self, out: &mut NodeOut) {
        if !self.commands.is_empty() || !self.writer.is_idle() || self.writer.has_failed() {
            return;
        }
        match self.stage {
            EndStage::Serving | EndStage::Table => {}
            EndStage::Copies => {
                self.stage = EndStage::Counts;
                self.begin_save(self.left, out);
                // Without a save, nothing else moves the end.
                self.advance_end(out);
            }
            EndStage::Counts => {
                self.stage = EndStage::Table;
                let mut is_clean = vec![false; self.label.slots as usize];
                for (slot, _, is_dirty) in self.rearranger.copies() {
                    is_clean[slot as usize] = !is_dirty;
                }
                self.writer.close(|slot| is_clean[slot as usize]);
            }
        }
    }
}

impl DiskLayer<NodeOut> for NodeRearranger {
    fn submit(&mut self, now: Instant, command: Command, out: &mut NodeOut) {
        if let RequestKind::BlockStatus { bytes, .. } = command.kind {
            // Holes of homes and of copies do not add up to holes of blocks: data is always a right answer.
            let all = Ended::BlockStatus(vec![StatusExtent { bytes, hole: false }]);
            return out.up(command.id, Ok(all));
        }
        if !self.writer.is_open() && !self.writer.has_failed() {
            return self.waiting.push_back(command);
        }
        self.route(now, command, out);
        self.act(now, out);
    }

    fn complete(&mut self, now: Instant, id: u32, end: CommandEnd, out: &mut NodeOut) {
        let is_done = end.is_ok();
        match self.commands.remove(id as usize) {
            DiskPurpose::Block(id) => self.rearranger.handle_end(now, id, end.map(drop)),
            DiskPurpose::Table(buffer) => {
                if let Some(buffer) = buffer {
                    out.free(buffer);
                }
                self.end_step(now, is_done, out);
            }
            DiskPurpose::Counts => self.continue_save(is_done, out),
        }
        self.act(now, out);
    }

    fn wake(&mut self, now: Instant, out: &mut NodeOut) {
        if self.next_rearrangement().is_some_and(|at| at <= now) {
            self.rearranger.handle_timeout(now);
            let periods = self.rearranger.view().periods;
            if periods > std::mem::replace(&mut self.periods, periods) && !self.writer.has_failed() {
                self.begin_save(self.rearranger.period_left(now), out);
            }
        }
        self.act(now, out);
    }

    /// The first commands open the table before any request comes.
    fn first_wake(&self) -> Instant {
        Instant::ZERO
    }

    fn close(&mut self, now: Instant, out: &mut NodeOut) {
        if self.stage == EndStage::Serving {
            self.left = self.rearranger.period_left(now);
            self.rearranger.suspend(now);
            self.stage = EndStage::Copies;
            self.act(now, out);
        }
    }

    fn is_closed(&self) -> bool {
        self.commands.is_empty() && (self.writer.is_closed() || self.writer.has_failed())
    }
}
