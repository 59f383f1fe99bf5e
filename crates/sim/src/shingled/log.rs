//! The log of the persistent cache: its write head, its records, and the anchor behind which its space is free.

use super::layout::ShingleLayout;
use super::messages::{LoggedExtent, ShingleAnchor, ShingleRecord};
use std::collections::VecDeque;

/// A record that counts, or that lies behind one that does.
#[derive(Clone, Debug)]
struct KeptRecord {
    place: u64,
    /// Sectors of data that the map names.
    live: u64,
    /// Number of its first extent, counted from the first that this log ever had.
    first_extent: u64,
}

#[derive(Clone, Debug)]
pub(super) struct ShingleLog {
    first: u64,
    end: u64,
    header: u64,
    /// Copies of a record's data.
    copies: u64,
    /// Where the next record begins, if it fits before the end.
    head: u64,
    next_sequence: u64,
    /// The anchor on the media.
    anchor: ShingleAnchor,
    /// The records from the anchor on.
    records: VecDeque<KeptRecord>,
    /// Their extents.
    extents: VecDeque<LoggedExtent>,
    /// Extents of the records before the anchor.
    freed_extents: u64,
    /// Sectors from the anchor to the head.
    used: u64,
    /// Records of which the map names data.
    live_records: usize,
    /// The map names no data of the records before this one.
    oldest: u64,
    /// The map names none of the extents before this one.
    oldest_extent: u64,
}

impl ShingleLog {
    pub(super) fn new(layout: &ShingleLayout, anchor: ShingleAnchor) -> ShingleLog {
        ShingleLog {
            first: layout.log_first(),
            end: layout.cache_sectors,
            header: layout.header_sectors,
            copies: layout.record_copies,
            head: anchor.place,
            next_sequence: anchor.sequence,
            anchor,
            records: VecDeque::new(),
            extents: VecDeque::new(),
            freed_extents: 0,
            used: 0,
            live_records: 0,
            oldest: anchor.sequence,
            oldest_extent: 0,
        }
    }

    /// The anchor of a cache that was never used.
    pub(super) fn first_anchor(layout: &ShingleLayout) -> ShingleAnchor {
        ShingleAnchor { generation: 0, place: layout.log_first(), sequence: 1 }
    }

    pub(super) fn head(&self) -> u64 {
        self.head
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    pub(super) fn free(&self) -> u64 {
        self.end - self.first - self.used
    }

    /// Where a record with `data` sectors of data goes, and how much of the log it takes: more where it does not fit before the end.
    fn room_for(&self, data: u64) -> (u64, u64) {
        let sectors = self.header + self.copies * data;
        if self.head + sectors <= self.end {
            (self.head, sectors)
        } else {
            (self.first, self.end - self.head + sectors)
        }
    }

    /// Whether a record fits and leaves `rest` sectors free.
    pub(super) fn fits(&self, data: u64, rest: u64) -> bool {
        self.room_for(data).1 + rest <= self.free()
    }

    /// Place of the next record, with `data` sectors of data.
    pub(super) fn place_for(&self, data: u64) -> u64 {
        self.room_for(data).0
    }

    /// Adds a record, which is the next one; none of its data count yet.
    pub(super) fn push(&mut self, record: &ShingleRecord) {
        let data = self.copies * record.data_sectors();
        let skipped = if record.place == self.head { 0 } else { self.end - self.head };
        self.used += skipped + self.header + data;
        assert!(record.sequence == self.next_sequence && self.used <= self.end - self.first, "a record fits");
        self.head = record.place + self.header + data;
        self.next_sequence += 1;
        let first_extent = self.freed_extents + self.extents.len() as u64;
        self.records.push_back(KeptRecord { place: record.place, live: 0, first_extent });
        self.extents.extend(&record.extents);
    }

    fn record(&mut self, sequence: u64) -> &mut KeptRecord {
        &mut self.records[(sequence - self.anchor.sequence) as usize]
    }

    /// Records that the map names these sectors of a record from now on.
    pub(super) fn add_live(&mut self, sequence: u64, sectors: u64) {
        let record = self.record(sequence);
        let is_new = record.live == 0 && sectors > 0;
        record.live += sectors;
        self.live_records += usize::from(is_new);
    }

    /// Records that the map no longer names these sectors of a record.
    pub(super) fn drop_live(&mut self, sequence: u64, sectors: u64) {
        let record = self.record(sequence);
        record.live -= sectors;
        let is_dead = record.live == 0 && sectors > 0;
        self.live_records -= usize::from(is_dead);
    }

    /// Number of records of which the map names data.
    pub(super) fn live_records(&self) -> usize {
        self.live_records
    }

    /// The oldest extent for which `counts` returns true. An extent that does not count never will again.
    pub(super) fn oldest(&mut self, counts: impl Fn(u64, &LoggedExtent) -> bool) -> Option<LoggedExtent> {
        let dead = (self.oldest - self.anchor.sequence) as usize;
        let more = self.records.iter().skip(dead).take_while(|record| record.live == 0).count();
        self.oldest += more as u64;
        let first = self.records.get(dead + more)?.first_extent.max(self.oldest_extent);
        let mut rest = self.extents.range((first - self.freed_extents) as usize..);
        let into = rest.position(|extent| counts(self.oldest, extent));
        self.oldest_extent = first + into.expect("the map names data of the record") as u64;
        Some(self.extents[(self.oldest_extent - self.freed_extents) as usize])
    }

    /// Moves the anchor to the oldest record that counts, and calls `sees` with the extents of the records before it. None where it stays.
    pub(super) fn advance(&mut self, sees: &mut impl FnMut(&LoggedExtent)) -> Option<ShingleAnchor> {
        if self.records.front().is_none_or(|record| record.live > 0) {
            return None;
        }
        let count = self.records.iter().take_while(|record| record.live == 0).count();
        self.records.drain(..count);
        let next_extent = self.freed_extents + self.extents.len() as u64;
        let kept_from = self.records.front().map_or(next_extent, |record| record.first_extent);
        self.extents.drain(..(kept_from - self.freed_extents) as usize).for_each(|extent| sees(&extent));
        self.freed_extents = kept_from;
        self.anchor.sequence += count as u64;
        self.oldest = self.oldest.max(self.anchor.sequence);
        self.anchor.generation += 1;
        self.anchor.place = self.records.front().map_or(self.head, |record| record.place);
        let log = self.end - self.first;
        self.used =
            if self.records.is_empty() { 0 } else { (self.head + log - self.anchor.place - 1) % log + 1 };
        Some(self.anchor)
    }
}
