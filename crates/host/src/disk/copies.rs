//! The hot block table of an emulated disk in its store's file, behind the disk's bytes.
//!
//! The data themselves lie in the file at the addresses that clients use. The table only says where the model's arm finds a block, also after
//! a restart. A change is written when the model records it. After an end that was not orderly, each copy counts as newer than its home.

use super::Emulator;
use super::copies_error::CopiesError;
use super::store::Store;
use crate::BlockError;
use headstack_model::Instant;
use headstack_sim::{Engine, RearrangeLayer};
use headstack_streams::rearrange::{Rearranger, TableChange};
use headstack_streams::rearrange_table::{PlacementCopies, PlacementTable, SavedCounts};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A table in a file.
#[derive(Debug)]
pub(super) struct CopiesFile {
    file: File,
    /// First byte of the table.
    first: u64,
    table: PlacementTable,
    /// Number of the last save of the counts.
    saves: u64,
    next_area: u8,
    periods: u64,
    /// Whether writing it has failed; nothing is written after that.
    has_failed: bool,
}

impl CopiesFile {
    /// Opens the table behind a store's bytes, or makes one; `None` for a store in memory. It is marked as in use.
    fn open(
        store: &mut Store,
        rearranger: &Rearranger,
        forget: bool,
    ) -> Result<Option<(CopiesFile, PlacementCopies)>, CopiesError> {
        let table = PlacementTable::new(rearranger);
        let Some((file, first)) = store.table(table.bytes(), forget)? else { return Ok(None) };
        let mut bytes = vec![0; table.bytes() as usize];
        file.read_exact_at(&mut bytes, first)?;
        let found = table.decode(&bytes)?.unwrap_or_default();
        let saves = found.counts.as_ref().map_or(0, |counts| counts.sequence);
        let next_area = found.next_area;
        let new = CopiesFile { file, first, table, saves, next_area, periods: 0, has_failed: false };
        new.file.write_all_at(&new.table.head(false), new.first)?;
        Ok(Some((new, found)))
    }

    fn write(&mut self, place: u64, bytes: &[u8]) {
        if !self.has_failed {
            self.has_failed = self.file.write_all_at(bytes, self.first + place).is_err();
        }
    }

    fn record(&mut self, TableChange { slot, block }: TableChange) {
        self.write(PlacementTable::entry_first(slot), &PlacementTable::entry(slot, block, false));
    }

    fn save_counts(&mut self, now: Instant, rearranger: &Rearranger) {
        self.saves += 1;
        let hot = rearranger.hot_list(self.table.counts() as usize);
        let counts = SavedCounts { sequence: self.saves, left: rearranger.period_left(now), hot };
        self.write(self.table.counts_first(self.next_area), &counts.encode(&self.table.id()));
        self.next_area = 1 - self.next_area;
    }

    /// Saves the counts once a period has ended.
    fn note_periods(&mut self, now: Instant, rearranger: &Rearranger) {
        let ended = rearranger.view().periods;
        if std::mem::replace(&mut self.periods, ended) < ended {
            self.save_counts(now, rearranger);
        }
    }

    /// Closes the table: it says which copies equal their homes.
    fn close(&mut self, now: Instant, rearranger: &Rearranger) -> Result<(), BlockError> {
        self.save_counts(now, rearranger);
        for (slot, block, is_dirty) in rearranger.copies() {
            self.write(
                PlacementTable::entry_first(slot),
                &PlacementTable::entry(slot, Some(block), !is_dirty),
            );
        }
        self.write(0, &self.table.head(true));
        if self.has_failed { Err(BlockError::NoSpace) } else { Ok(()) }
    }
}

impl Emulator {
    /// Continues with the copies in the tables of the stores' files, and records each change there. `forget` empties the tables
    /// first. Call it before the first operation. A volume without a rearranger, and one whose bytes are in memory, have no table.
    ///
    /// *Errors:* a table that is damaged, of another region, or cannot be read or written, with the number of its volume.
    pub fn keep_copies(&mut self, forget: bool) -> Result<(), (usize, CopiesError)> {
        let Some(engine) = self.machine.engine_mut() else { return Ok(()) };
        for (number, volume) in self.volumes.iter_mut().enumerate() {
            let Some(rearranger) = engine.layer(number).map(RearrangeLayer::rearranger) else { continue };
            let opened = CopiesFile::open(&mut volume.store, rearranger, forget);
            let Some((table, found)) = opened.map_err(|error| (number, error))? else { continue };
            engine.restore_copies(number, &found);
            self.tables.push((number, table));
        }
        Ok(())
    }

    /// Writes what has changed in the tables.
    pub(super) fn record_copies(&mut self) {
        let Some(engine) = self.machine.engine_mut() else { return };
        for (number, table) in &mut self.tables {
            while let Some(change) = engine.layer_mut(*number).and_then(RearrangeLayer::poll_change) {
                table.record(change);
            }
            let (now, rearranger) = rearranger(engine, *number);
            table.note_periods(now, rearranger);
        }
    }

    /// Closes the tables for an orderly end.
    pub(super) fn close_copies(&mut self) -> Result<(), BlockError> {
        let Some(engine) = self.machine.engine() else { return Ok(()) };
        let closed = self.tables.iter_mut().map(|(number, table)| {
            let (now, rearranger) = rearranger(engine, *number);
            table.close(now, rearranger)
        });
        closed.fold(Ok(()), Result::and)
    }
}

fn rearranger(engine: &Engine, volume: usize) -> (Instant, &Rearranger) {
    (
        engine.now(),
        engine.layer(volume).map(RearrangeLayer::rearranger).expect("a volume with a table has a rearranger"),
    )
}
