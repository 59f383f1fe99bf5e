//! The map and the log together: where writes go, where reads find their data, which band is cleaned next.

use super::cleaning::{BandCleaning, CleaningPlan};
use super::extents::{CachedExtent, ExtentMap};
use super::layout::{ShingleLayout, ShingleLayoutError};
use super::log::ShingleLog;
use super::messages::{
    BandCleaned, CleaningStep, LoggedExtent, MediaPlace, ScratchHeader, ShingleAnchor, ShingleRecord,
};
use thiserror::Error;

/// The log or the map has no room for a record: clean until [`ShingleTranslation::has_room`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the persistent cache has no room for a record of {extents} extents; carry out steps of cleaning first"
)]
pub struct LogIsFull {
    /// Extents of the record, split at the borders of bands.
    extents: usize,
    /// Its sectors of data.
    sectors: u64,
}

/// The translation layer. Its owner carries out each write and step on the media before it calls again; after a power cut it
/// drops the layer and makes another one with [`ShingleTranslation::recover`].
#[derive(Clone, Debug)]
pub struct ShingleTranslation {
    layout: ShingleLayout,
    map: ExtentMap,
    log: ShingleLog,
    /// By band, its extents in records from the anchor on, those that no longer count too.
    logged: Vec<u32>,
    cleaning: Option<BandCleaning>,
}

impl ShingleTranslation {
    /// A disk whose cache was never used.
    ///
    /// *Errors:* sizes that do not fit together.
    pub fn new(layout: ShingleLayout) -> Result<ShingleTranslation, ShingleLayoutError> {
        layout.check()?;
        Ok(ShingleTranslation::with_anchor(layout, ShingleLog::first_anchor(&layout)))
    }

    pub(super) fn with_anchor(layout: ShingleLayout, anchor: ShingleAnchor) -> ShingleTranslation {
        ShingleTranslation {
            layout,
            map: ExtentMap::new(&layout),
            log: ShingleLog::new(&layout, anchor),
            logged: vec![0; layout.bands() as usize],
            cleaning: None,
        }
    }

    /// Its sizes.
    pub fn layout(&self) -> &ShingleLayout {
        &self.layout
    }

    /// Number of extents in the map.
    pub fn entries(&self) -> usize {
        self.map.len()
    }

    /// Number of bands with extents in the map.
    pub fn bands_to_clean(&self) -> u64 {
        self.map.bands()
    }

    /// Sectors of the log that are free.
    pub fn free_sectors(&self) -> u64 {
        self.log.free()
    }

    /// Whether no block has its newest data in the cache, and no band is being cleaned.
    pub fn is_clean(&self) -> bool {
        self.map.is_empty() && self.cleaning.is_none()
    }

    /// Whether a band is being cleaned.
    pub fn is_cleaning(&self) -> bool {
        self.cleaning.is_some()
    }

    /// The blocks of the band that is being cleaned: the first, and the one behind the last.
    pub fn cleaned_band(&self) -> Option<(u64, u64)> {
        self.cleaning.as_ref().map(|cleaning| self.layout.band(cleaning.band()))
    }

    /// The first of the blocks `first..end` whose newest data are in the cache.
    pub fn first_cached(&self, first: u64, end: u64) -> Option<u64> {
        let in_map = self.map.over(first, end).next().map(|extent| extent.lbn);
        let (from, to) = self.cleaning.as_ref().and_then(BandCleaning::scratch_band).unwrap_or_default();
        let in_scratch = (from.max(first) < to.min(end)).then(|| from.max(first));
        [in_map, in_scratch].into_iter().flatten().min()
    }

    /// Where a read finds its data: calls `sees` with first block, number of blocks and place of each piece, in the order of the blocks.
    pub fn read(&self, first: u64, end: u64, sees: &mut impl FnMut(u64, u64, MediaPlace)) {
        let mut next = first;
        for extent in self.map.over(first, end) {
            self.read_uncached(next, extent.lbn, sees);
            sees(extent.lbn, extent.sectors, MediaPlace::Cache(extent.place));
            next = extent.lbn + extent.sectors;
        }
        self.read_uncached(next, end, sees);
    }

    /// The pieces of blocks that are not in the log: in their band, or in the scratch area while the band is being written over.
    fn read_uncached(&self, first: u64, end: u64, sees: &mut impl FnMut(u64, u64, MediaPlace)) {
        let (from, to) = self.cleaning.as_ref().and_then(BandCleaning::scratch_band).unwrap_or_default();
        let (from, to) = (from.clamp(first, end.max(first)), to.clamp(first, end.max(first)));
        let scratch = self.layout.scratch_first() + from % self.layout.band_sectors;
        let pieces = [
            (first, from, MediaPlace::Band),
            (from, to, MediaPlace::Cache(scratch)),
            (to, end, MediaPlace::Band),
        ];
        for (lbn, end, place) in pieces {
            if lbn < end {
                sees(lbn, end - lbn, place);
            }
        }
    }

    /// Appends writes to the log, in their order. Once the record is on the media, the writes are safe.
    ///
    /// *Errors:* the log or the map is full. Panics where the record is larger than [`ShingleLayout::record_sectors_max`] or than
    /// [`ShingleLayout::record_extents_max`], after the extents were split at the borders of bands.
    pub fn append(&mut self, writes: &[LoggedExtent]) -> Result<ShingleRecord, LogIsFull> {
        let mut extents = Vec::with_capacity(writes.len());
        for write in writes {
            self.split(*write, &mut extents);
        }
        let data: u64 = extents.iter().map(|extent| u64::from(extent.sectors)).sum();
        let is_small =
            extents.len() <= self.layout.record_extents_max && data <= self.layout.record_sectors_max();
        assert!(is_small, "the owner divides what is too large for a record");
        let needed = LogIsFull { extents: extents.len(), sectors: data };
        if !self.has_room(&needed) {
            return Err(needed);
        }
        let record = self.next_record(extents, data, None);
        self.apply(&record);
        Ok(record)
    }

    /// Whether there is room now for a record that was refused.
    pub fn has_room(&self, refused: &LogIsFull) -> bool {
        // A write into the middle of an extent leaves both its ends.
        let entries = self.map.len() + 2 * refused.extents;
        entries <= self.layout.map_entries_max
            && self.log.live_records() < self.layout.records_max
            && self.log.fits(refused.sectors, self.layout.reserve())
    }

    /// Splits a write at the borders of bands.
    fn split(&self, write: LoggedExtent, extents: &mut Vec<LoggedExtent>) {
        let (mut lbn, end) = (write.lbn, write.lbn + u64::from(write.sectors));
        while lbn < end {
            let to = self.layout.band(self.layout.band_of(lbn)).1.min(end);
            extents.push(LoggedExtent { lbn, sectors: (to - lbn) as u32 });
            lbn = to;
        }
    }

    fn next_record(
        &self,
        extents: Vec<LoggedExtent>,
        data: u64,
        cleaned: Option<BandCleaned>,
    ) -> ShingleRecord {
        let (place, sequence) = (self.log.place_for(data), self.log.next_sequence());
        ShingleRecord { place, sequence, extents, cleaned }
    }

    /// Applies a record that is on the media or will be next.
    pub(super) fn apply(&mut self, record: &ShingleRecord) {
        let ShingleTranslation { layout, map, log, logged, .. } = self;
        log.push(record);
        let drops = |log: &mut ShingleLog, extent: &CachedExtent| {
            log.drop_live(extent.sequence, extent.sectors);
        };
        if let Some(BandCleaned { band, up_to }) = record.cleaned {
            map.remove_older(band, up_to, &mut |extent| drops(log, extent));
        }
        let mut place = record.place + layout.header_sectors;
        for LoggedExtent { lbn, sectors } in record.extents.iter().copied() {
            let sectors = u64::from(sectors);
            logged[layout.band_of(lbn) as usize] += 1;
            let extent = CachedExtent { lbn, sectors, place, sequence: record.sequence };
            map.insert(extent, &mut |older| drops(log, older));
            log.add_live(record.sequence, sectors);
            place += sectors;
        }
    }

    /// Whether a band may be written as a whole with new data now: it is not being cleaned, and the log has room for the record.
    pub fn may_write_band(&self, band: u64) -> bool {
        let is_cleaned = self.cleaning.as_ref().is_some_and(|cleaning| cleaning.band() == band);
        !is_cleaned && self.log.fits(0, self.layout.reserve())
    }

    /// Records that a band has been written as a whole with new data. The write is safe once the record, if there is one, is on the
    /// media. Panics unless [`ShingleTranslation::may_write_band`].
    pub fn supersede_band(&mut self, band: u64) -> Option<ShingleRecord> {
        assert!(self.may_write_band(band), "the owner has asked");
        (self.logged[band as usize] > 0).then(|| self.append_cleaned(band, self.log.next_sequence() - 1))
    }

    /// Appends the record that extents of a band no longer count.
    pub(super) fn append_cleaned(&mut self, band: u64, up_to: u64) -> ShingleRecord {
        let record = self.next_record(Vec::new(), 0, Some(BandCleaned { band, up_to }));
        self.apply(&record);
        record
    }

    /// The next step of cleaning, after which the owner may do other work; none when the cache has no data that count.
    pub fn clean(&mut self) -> Option<CleaningStep> {
        self.next_step(self.layout.step_sectors)
    }

    /// The next step of cleaning for an owner that cleans until the log has room: as [`ShingleTranslation::clean`], but a step moves
    /// all of a band.
    pub fn clean_whole(&mut self) -> Option<CleaningStep> {
        self.next_step(self.layout.band_sectors)
    }

    fn next_step(&mut self, most: u64) -> Option<CleaningStep> {
        if self.cleaning.is_none() {
            if let Some(anchor) = self.advance_anchor() {
                return Some(CleaningStep::WriteAnchor(anchor));
            }
            self.cleaning = Some(self.next_band()?);
        }
        let cleaning = self.cleaning.as_mut().expect("a band has been chosen");
        match cleaning.next_step(&self.layout, most) {
            CleaningPlan::Step(step) => Some(step),
            CleaningPlan::Done(ScratchHeader { band, up_to, .. }) => {
                self.cleaning = None;
                Some(CleaningStep::WriteRecord(self.append_cleaned(band, up_to)))
            }
        }
    }

    /// Moves the anchor, if the log has little room.
    fn advance_anchor(&mut self) -> Option<ShingleAnchor> {
        // A record of the largest size may need as much again at the log's end.
        let low = self.layout.log_sectors() / 4 + 2 * self.layout.reserve();
        if self.log.free() >= low {
            return None;
        }
        let ShingleTranslation { layout, log, logged, .. } = self;
        log.advance(&mut |extent| logged[layout.band_of(extent.lbn) as usize] -= 1)
    }

    /// Starts to clean the band of the oldest extent that counts.
    fn next_band(&mut self) -> Option<BandCleaning> {
        let map = &self.map;
        let oldest = self.log.oldest(|sequence, extent| {
            map.has_data_of(extent.lbn, extent.lbn + u64::from(extent.sectors), sequence)
        })?;
        let band = self.layout.band_of(oldest.lbn);
        let (first, end) = self.layout.band(band);
        let cached: Vec<CachedExtent> = self.map.in_band(band, first, end).collect();
        let from = cached.first().map_or(first, |extent| extent.lbn);
        let header = ScratchHeader { band, from, up_to: self.log.next_sequence() - 1 };
        Some(BandCleaning::new(&self.layout, header, cached))
    }

    pub(super) fn log(&self) -> &ShingleLog {
        &self.log
    }

    /// Continues to clean a band whose merged contents are in the scratch area.
    pub(super) fn resume_cleaning(&mut self, header: ScratchHeader) {
        self.cleaning = Some(BandCleaning::from_scratch(&self.layout, header));
    }
}
