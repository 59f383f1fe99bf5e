//! The media of a small shingled disk, a host that writes and reads, and power cuts between any two sectors. Each sector holds the number
//! of the write that wrote it. A plain array has the number that a read must return.
//!
//! A write to a sector of a band damages the sectors behind it in the band. Headers have checksums, so that a torn record is not valid.

use headstack_sim::shingled::{
    CleaningStep, LoggedExtent, MediaPlace, ScratchHeader, ShingleAnchor, ShingleLayout, ShingleMedia,
    ShingleRecord, ShingleTranslation,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const SECTORS: u64 = 250;

/// The content of a damaged sector.
const DAMAGED: u64 = u64::MAX;

/// Number of sectors behind the written one that a write to a band damages.
const DAMAGED_BEHIND: u64 = 2;

/// A fault of the layer's owner that the checks must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The header of a record with data is not written.
    DroppedRecord,
    /// A band is overwritten before its contents are in the scratch area.
    UnsafeRewrite,
    /// Recovery does not find out which bands are clean.
    StaleMap,
}

/// A sector of the cache.
#[derive(Clone, Debug, Default)]
enum Stored {
    #[default]
    Nothing,
    Anchor(ShingleAnchor),
    /// A header and the number of its record, which stands for a checksum of header and data.
    Record(ShingleRecord, u64),
    /// A block's data, and the number of its record.
    Logged(u64, u64),
    /// The header of the scratch area and the number of the cleaning, which stands for a checksum of the contents.
    Scratch(ScratchHeader, u64),
    Saved(u64, u64),
}

/// Counts of the situations that the test is for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Met {
    pub(crate) torn_records: u64,
    pub(crate) torn_cleanings: u64,
    pub(crate) torn_bands: u64,
    pub(crate) resumed: u64,
    pub(crate) damaged: u64,
    pub(crate) laps: u64,
    pub(crate) full: u64,
    pub(crate) cleaned: u64,
    pub(crate) scratch_reads: u64,
    pub(crate) superseded: u64,
}

pub(crate) struct World {
    layer: ShingleTranslation,
    random: Pcg64Mcg,
    bands: Vec<u64>,
    cache: Vec<Stored>,
    /// For each block, the number that a read must return.
    settled: Vec<u64>,
    /// The buffer of a cleaning, by block.
    buffer: Vec<u64>,
    cleanings: u64,
    /// The block of the scratch area with which the cleaning in progress continues.
    saved_to: u64,
    records: u64,
    writes: u64,
    /// Number of sectors that can be written before the power fails.
    power: u64,
    last_place: u64,
    pub(crate) fault: Option<Fault>,
    pub(crate) met: Met,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut layout = ShingleLayout {
            sectors: SECTORS,
            band_sectors: random.random_range(8..40),
            cache_sectors: 0,
            header_sectors: random.random_range(1..3),
            record_copies: random.random_range(1..3),
            record_extents_max: random.random_range(3..6),
            map_entries_max: random.random_range(24..60),
            records_max: random.random_range(8..100),
            step_sectors: random.random_range(2..20),
        };
        layout.cache_sectors = layout.log_first() + random.random_range(360..500);
        World {
            layer: ShingleTranslation::new(layout).expect("the sizes fit"),
            random,
            bands: vec![0; SECTORS as usize],
            cache: vec![Stored::Nothing; layout.cache_sectors as usize],
            settled: vec![0; SECTORS as usize],
            buffer: vec![DAMAGED; SECTORS as usize],
            cleanings: 0,
            saved_to: 0,
            records: 0,
            writes: 0,
            power: u64::MAX,
            last_place: 0,
            fault: None,
            met: Met::default(),
        }
    }

    /// One event, during which the power may fail.
    pub(crate) fn step(&mut self) {
        if self.random.random_range(0..40) == 0 {
            self.power = self.random.random_range(0..30);
        }
        match self.random.random_range(0..20) {
            0..8 => self.write_some(),
            8..15 => self.clean(),
            15 => self.write_band(),
            _ => self.read_some(),
        }
        if self.power == 0 {
            self.recover();
        }
    }

    /// Whether the power lasts for the write of another sector.
    fn spend(&mut self) -> bool {
        let lasts = self.power > 0;
        self.power -= u64::from(lasts && self.power < u64::MAX);
        lasts && self.power > 0
    }

    fn store(&mut self, place: u64, content: Stored) {
        if self.spend() {
            self.cache[place as usize] = content;
        }
    }

    fn store_in_band(&mut self, lbn: u64, content: u64) {
        if self.spend() {
            self.bands[lbn as usize] = content;
            let layout = self.layer.layout();
            let end = layout.band(layout.band_of(lbn)).1.min(lbn + 1 + DAMAGED_BEHIND);
            self.bands[lbn as usize + 1..end as usize].fill(DAMAGED);
        }
    }

    /// Writes one to three extents in one record, like a drive's cache that destages.
    fn write_some(&mut self) {
        let mut extents = Vec::new();
        for _ in 0..self.random.random_range(1..4) {
            let sectors = self.random.random_range(1..5u32);
            // Most writes go to a third of the blocks.
            let reach = if self.random.random_range(0..3) == 0 { SECTORS } else { SECTORS / 3 };
            let lbn = self.random.random_range(0..reach - u64::from(sectors));
            extents.push(LoggedExtent { lbn, sectors });
        }
        extents.truncate(self.layer.layout().record_extents_max / 2);
        let Ok(record) = self.layer.append(&extents) else {
            self.met.full += 1;
            return self.clean();
        };
        let first = self.writes + 1;
        self.writes += record.extents.len() as u64;
        self.store_record(&record, first);
        let is_safe = self.power > 0;
        self.met.torn_records += u64::from(!is_safe);
        for (extent, write) in record.extents.iter().zip(first..) {
            let range = extent.lbn as usize..extent.lbn as usize + extent.sectors as usize;
            if is_safe {
                self.settled[range].fill(write);
            }
        }
    }

    fn store_record(&mut self, record: &ShingleRecord, first_write: u64) {
        self.met.laps += u64::from(record.place < self.last_place);
        self.last_place = record.place;
        self.records += 1;
        let is_dropped = self.fault == Some(Fault::DroppedRecord) && !record.extents.is_empty();
        if !is_dropped {
            self.store(record.place, Stored::Record(record.clone(), self.records));
        }
        let mut place = record.place + self.layer.layout().header_sectors;
        for (extent, write) in record.extents.iter().zip(first_write..) {
            for _ in 0..extent.sectors {
                self.store(place, Stored::Logged(write, self.records));
                place += 1;
            }
        }
    }

    /// Writes a whole band as a stream does. After a power cut, each block has the old data, the new data, or none.
    fn write_band(&mut self) {
        let layout = *self.layer.layout();
        let band = self.random.random_range(0..layout.bands());
        if !self.layer.may_write_band(band) {
            return self.clean();
        }
        self.writes += 1;
        let (write, (first, end)) = (self.writes, layout.band(band));
        (first..end).for_each(|lbn| self.store_in_band(lbn, write));
        if let Some(record) = self.layer.supersede_band(band) {
            self.met.superseded += 1;
            self.store_record(&record, 0);
        }
        let blocks = first as usize..end as usize;
        if self.power > 0 {
            return self.settled[blocks].fill(write);
        }
        self.met.torn_bands += 1;
        self.recover();
        for lbn in blocks {
            let found = self.read(lbn as u64);
            assert!([self.settled[lbn], write, DAMAGED].contains(&found), "block {lbn} has {found}");
            self.met.damaged += u64::from(found == DAMAGED);
            self.settled[lbn] = found;
        }
    }

    fn clean(&mut self) {
        let is_whole = self.random.random_range(0..3) == 0;
        let step = if is_whole { self.layer.clean_whole() } else { self.layer.clean() };
        let Some(step) = step else { return };
        let is_unsafe = self.fault == Some(Fault::UnsafeRewrite);
        match step {
            CleaningStep::ReadBand { lbn, sectors } => {
                (lbn..lbn + sectors).for_each(|lbn| self.buffer[lbn as usize] = self.bands[lbn as usize]);
            }
            CleaningStep::ReadLog { place, lbn, sectors }
            | CleaningStep::ReadScratch { place, lbn, sectors } => {
                (0..sectors).for_each(|offset| {
                    self.buffer[(lbn + offset) as usize] = self.content(place + offset);
                });
            }
            CleaningStep::WriteScratch { .. } | CleaningStep::CommitScratch(_) if is_unsafe => {}
            CleaningStep::WriteScratch { place, lbn, sectors } => {
                self.cleanings += u64::from(lbn != self.saved_to);
                self.saved_to = lbn + sectors;
                for offset in 0..sectors {
                    let content = Stored::Saved(self.buffer[(lbn + offset) as usize], self.cleanings);
                    self.store(place + offset, content);
                }
            }
            CleaningStep::CommitScratch(header) => {
                let content = Stored::Scratch(header, self.cleanings);
                self.saved_to = u64::MAX;
                self.store(self.layer.layout().scratch_header(), content);
            }
            CleaningStep::WriteBand { lbn, sectors } => {
                (lbn..lbn + sectors).for_each(|lbn| self.store_in_band(lbn, self.buffer[lbn as usize]));
                self.met.torn_cleanings += u64::from(self.power == 0);
            }
            CleaningStep::WriteRecord(record) => {
                self.met.cleaned += 1;
                self.store_record(&record, 0);
            }
            CleaningStep::WriteAnchor(anchor) => {
                let place = self.layer.layout().anchor_place(anchor.generation);
                self.store(place, Stored::Anchor(anchor));
            }
        }
    }

    fn content(&self, place: u64) -> u64 {
        match self.cache[place as usize] {
            Stored::Logged(write, _) | Stored::Saved(write, _) => write,
            _ => DAMAGED,
        }
    }

    fn read(&mut self, lbn: u64) -> u64 {
        let mut found = None;
        self.layer.read(lbn, lbn + 1, &mut |first, sectors, place| {
            assert!((first, sectors, found) == (lbn, 1, None), "one block has one place");
            found = Some(place);
        });
        match found.expect("every block has a place") {
            MediaPlace::Band => self.bands[lbn as usize],
            MediaPlace::Cache(place) => {
                let is_saved = matches!(self.cache[place as usize], Stored::Saved(..));
                self.met.scratch_reads += u64::from(is_saved);
                self.content(place)
            }
        }
    }

    fn read_some(&mut self) {
        let first = self.random.random_range(0..SECTORS - 20);
        (first..first + 20).for_each(|lbn| self.check_block(lbn));
        let mut next = first;
        self.layer.read(first, first + 20, &mut |lbn, sectors, _| {
            assert_eq!(lbn, next, "the pieces of a read follow each other");
            next = lbn + sectors;
        });
        assert_eq!(next, first + 20);
    }

    fn check_block(&mut self, lbn: u64) {
        let found = self.read(lbn);
        assert_eq!(found, self.settled[lbn as usize], "block {lbn}");
    }

    pub(crate) fn read_all(&mut self) {
        (0..SECTORS).for_each(|lbn| self.check_block(lbn));
    }

    /// The power returns: makes a new layer from the media alone. A write that was in progress may be there or not.
    fn recover(&mut self) {
        self.power = u64::MAX;
        let layout = *self.layer.layout();
        let hides_cleaned = self.fault == Some(Fault::StaleMap);
        let mut media = CacheMedia { cache: &self.cache, layout, hides_cleaned };
        self.layer = ShingleTranslation::recover(layout, &mut media).expect("the sizes fit");
        self.buffer.fill(DAMAGED);
        self.met.resumed += u64::from(self.layer.is_cleaning());
    }

    /// Cuts the power between two events, cleans everything, and reads it.
    pub(crate) fn end(&mut self) {
        self.recover();
        self.read_all();
        for _ in 0..20_000 {
            if self.layer.is_clean() {
                break;
            }
            self.clean();
        }
        assert!(self.layer.is_clean(), "cleaning ends");
        self.read_all();
        assert_eq!(self.bands, self.settled, "all data are in their bands");
    }
}

struct CacheMedia<'a> {
    cache: &'a [Stored],
    layout: ShingleLayout,
    hides_cleaned: bool,
}

impl ShingleMedia for CacheMedia<'_> {
    fn anchor(&mut self, place: u64) -> Option<ShingleAnchor> {
        match &self.cache[place as usize] {
            Stored::Anchor(anchor) => Some(*anchor),
            _ => None,
        }
    }

    fn record(&mut self, place: u64) -> Option<ShingleRecord> {
        let Stored::Record(record, number) = &self.cache[place as usize] else { return None };
        let first = (place + self.layout.header_sectors) as usize;
        let data = &self.cache[first..first + record.data_sectors() as usize];
        let is_its = |sector: &Stored| matches!(sector, Stored::Logged(_, of) if of == number);
        let mut record = data.iter().all(is_its).then(|| record.clone())?;
        if self.hides_cleaned {
            record.cleaned = None;
        }
        Some(record)
    }

    fn scratch(&mut self, place: u64) -> Option<ScratchHeader> {
        let Stored::Scratch(header, cleaning) = self.cache[place as usize] else { return None };
        let (first, end) = self.layout.band(header.band);
        let place = |lbn: u64| (self.layout.scratch_first() + lbn - first) as usize;
        let saved = &self.cache[place(header.from)..place(end)];
        let is_its = |sector: &Stored| matches!(sector, Stored::Saved(_, of) if *of == cleaning);
        saved.iter().all(is_its).then_some(header)
    }
}
