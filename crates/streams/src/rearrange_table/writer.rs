//! The order in which the table is written.
//!
//! Changes are written in batches: all that have been submitted when the batch begins. A batch is a flush, the write of one copy of each
//! page that it changes, a flush, and the write of the other copy. Its changes are in force after the second flush. The flush at the
//! beginning of the next batch makes the second copies durable before any page is written again.

use super::label::RegionLabel;
use super::page::{PageHead, SLOTS_PER_PAGE, TableEntry, encode};
use super::recovery::{RecoveredPage, RecoveredTable};
use crate::rearrange::TableChange;
use std::collections::{BTreeSet, VecDeque};

/// Work on the disk. Steps that were polled together may be carried out in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableStep {
    /// Make durable all that was done before.
    Flush,
    /// Write a page: its first byte on the disk is [`RegionLabel::page_first`], its bytes are [`TableWriter::page`].
    Write {
        /// 0 or 1.
        copy: u8,
        /// Its number.
        page: u32,
    },
}

/// What the steps in progress do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchPhase {
    Idle,
    FlushData,
    WriteFirst,
    FlushTable,
    WriteSecond,
    /// The second copies of a closed table become durable.
    FlushSecond,
}

/// The writer of a region's table.
#[derive(Debug)]
pub struct TableWriter {
    label: RegionLabel,
    pages: Vec<RecoveredPage>,
    entries: Vec<TableEntry>,
    phase: BatchPhase,
    /// Changes that wait for the next batch.
    pending: Vec<TableChange>,
    /// Slots of the batch.
    batch: Vec<u32>,
    /// Pages of the batch.
    changed: BTreeSet<u32>,
    steps: VecDeque<TableStep>,
    /// Steps that were polled and have not ended, and those that wait to be polled.
    left: usize,
    recorded: VecDeque<u32>,
    is_open: bool,
    is_closing: bool,
    is_closed: bool,
    /// Whether a step has failed, after which nothing is written.
    has_failed: bool,
}

impl TableWriter {
    /// A writer that continues a table. It first writes the pages that are closed or whose copies differ; no copy may be used before
    /// [`TableWriter::is_open`].
    pub fn new(table: &RecoveredTable) -> TableWriter {
        let mut writer = TableWriter {
            label: *table.label(),
            pages: table.pages.clone(),
            entries: table.entries.iter().map(|entry| TableEntry { is_clean: false, ..*entry }).collect(),
            phase: BatchPhase::Idle,
            pending: Vec::new(),
            batch: Vec::new(),
            changed: (0..)
                .zip(&table.pages)
                .filter(|(_, page)| page.is_stale)
                .map(|(page, _)| page)
                .collect(),
            steps: VecDeque::new(),
            left: 0,
            recorded: VecDeque::new(),
            is_open: false,
            is_closing: false,
            is_closed: false,
            has_failed: false,
        };
        if writer.changed.is_empty() {
            writer.is_open = true;
        } else {
            writer.begin_batch();
        }
        writer
    }

    /// Whether the table on the disk durably says that copies are in use.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether no step is in progress and no change waits.
    pub fn is_idle(&self) -> bool {
        self.phase == BatchPhase::Idle && self.pending.is_empty()
    }

    /// Whether the table was closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether a step has failed. The table on the disk is then before the last changes or after them.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Submits a change. The data of the block are where the change says, but need not be durable yet.
    pub fn change(&mut self, change: TableChange) {
        self.pending.push(change);
        self.begin_next_batch();
    }

    /// Closes the table: `is_clean` says of a slot with a copy whether that equals its home. Call it when the writer is idle and nothing
    /// uses a copy any more.
    pub fn close(&mut self, is_clean: impl Fn(u32) -> bool) {
        assert!(self.is_idle(), "a table is closed after its last change");
        for (slot, entry) in (0u32..).zip(&mut self.entries) {
            entry.is_clean = entry.block.is_some() && is_clean(slot);
        }
        self.is_closing = true;
        self.changed = (0..self.label.pages()).collect();
        self.begin_batch();
    }

    /// The next step.
    pub fn poll_step(&mut self) -> Option<TableStep> {
        self.steps.pop_front()
    }

    /// The bytes of a page that is to be written.
    pub fn page(&self, page: u32) -> Vec<u8> {
        let first = page as usize * SLOTS_PER_PAGE;
        let end = (first + SLOTS_PER_PAGE).min(self.entries.len());
        let sequence = self.pages[page as usize].sequence;
        encode(
            &self.label.id,
            PageHead { page, sequence, is_closed: self.is_closing },
            &self.entries[first..end],
        )
    }

    /// Reports that a step has ended, with success if `is_done`.
    pub fn handle_end(&mut self, is_done: bool) {
        self.left -= 1;
        self.has_failed |= !is_done;
        if self.left == 0 && !self.has_failed {
            self.begin_next_phase();
        }
    }

    /// The next slot whose change is in force.
    pub fn poll_recorded(&mut self) -> Option<u32> {
        self.recorded.pop_front()
    }

    fn begin_next_batch(&mut self) {
        if self.phase != BatchPhase::Idle || self.pending.is_empty() || self.has_failed {
            return;
        }
        for TableChange { slot, block } in self.pending.drain(..) {
            self.entries[slot as usize] = TableEntry { block, is_clean: false };
            self.batch.push(slot);
            self.changed.insert(slot / SLOTS_PER_PAGE as u32);
        }
        self.begin_batch();
    }

    fn begin_batch(&mut self) {
        self.changed.iter().for_each(|page| self.pages[*page as usize].sequence += 1);
        self.begin(BatchPhase::FlushData);
    }

    fn begin(&mut self, phase: BatchPhase) {
        self.phase = phase;
        let is_second = phase == BatchPhase::WriteSecond;
        match phase {
            BatchPhase::Idle => {}
            BatchPhase::FlushData | BatchPhase::FlushTable | BatchPhase::FlushSecond => {
                self.steps.push_back(TableStep::Flush)
            }
            BatchPhase::WriteFirst | BatchPhase::WriteSecond => {
                for &page in &self.changed {
                    let first = self.pages[page as usize].first_copy;
                    let copy = if is_second { 1 - first } else { first };
                    self.steps.push_back(TableStep::Write { copy, page });
                }
            }
        }
        self.left = self.steps.len();
    }

    fn begin_next_phase(&mut self) {
        match self.phase {
            BatchPhase::Idle => unreachable!("no step is in progress"),
            BatchPhase::FlushData => self.begin(BatchPhase::WriteFirst),
            BatchPhase::WriteFirst => self.begin(BatchPhase::FlushTable),
            BatchPhase::FlushTable => {
                self.recorded.extend(self.batch.drain(..));
                self.is_open = true;
                self.begin(BatchPhase::WriteSecond);
            }
            BatchPhase::WriteSecond if self.is_closing => self.begin(BatchPhase::FlushSecond),
            BatchPhase::WriteSecond => {
                self.changed.clear();
                self.begin(BatchPhase::Idle);
                self.begin_next_batch();
            }
            BatchPhase::FlushSecond => {
                self.is_closed = true;
                self.changed.clear();
                self.begin(BatchPhase::Idle);
            }
        }
    }
}
