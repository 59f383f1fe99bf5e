//! `zonemode=zbd`: writes go to the write pointers of zones, reads to what was written.
//!
//! The place that a job draws says the zone. A write goes to the zone's write pointer; a full zone is begun again, which resets it; the last
//! write of a zone is as long as what is left of it. Where as many zones as may be are written in part, one of them takes the write. A
//! read goes to what is written of the zone, or to the next zone of which enough is; in a job that writes as well, a read that finds none
//! becomes a write. All jobs on a volume share its write pointers.
//!
//! *Source:* HOWTO of fio 3.33, `zonemode=zbd`. Unlike fio, no job finishes a zone whose rest is shorter than a request.

use std::collections::BTreeMap;
use std::ops::Range;

use super::extent::Run;
use super::settings::WRITE;

/// What was written of each zone of a volume.
#[derive(Debug)]
pub(super) struct ZonePointers {
    pub(super) zone_bytes: u64,
    /// Bytes of the volume.
    end: u64,
    /// Bytes at its start that may be written anywhere.
    conventional: u64,
    /// Bytes written of each zone.
    written: Vec<u64>,
    /// The zones that are written in part, in the order in which they were begun.
    open: Vec<usize>,
    open_max: usize,
}

impl ZonePointers {
    /// Of a volume of `end` bytes, whose zones are all full or all empty. `conventional` bytes at its start are written anywhere.
    pub(super) fn new(
        zone_bytes: u64,
        end: u64,
        conventional: u64,
        open_max: usize,
        full: bool,
    ) -> ZonePointers {
        let (written, open) = (Vec::new(), Vec::new());
        let mut zones = ZonePointers { zone_bytes, end, conventional, written, open, open_max };
        let bytes = |range: Range<u64>| if full { range.end - range.start } else { 0 };
        zones.written = (0..zones.zone_at(end - 1) + 1).map(|zone| bytes(zones.range(zone))).collect();
        zones
    }

    /// The whole zones from one byte to another; `None` if there is none.
    pub(super) fn whole_zones(&self, bytes: Range<u64>) -> Option<(Range<u64>, Range<usize>)> {
        let start = bytes.start.next_multiple_of(self.zone_bytes);
        let end =
            if bytes.end >= self.end { self.end } else { bytes.end / self.zone_bytes * self.zone_bytes };
        (start < end).then(|| (start..end, self.zone_at(start)..self.zone_at(end - 1) + 1))
    }

    fn zone_at(&self, byte: u64) -> usize {
        (byte / self.zone_bytes) as usize
    }

    fn range(&self, zone: usize) -> Range<u64> {
        let start = zone as u64 * self.zone_bytes;
        start..(start + self.zone_bytes).min(self.end)
    }

    /// The zone that takes a write meant for `zone`: itself, or one of those written in part if no more may be.
    fn zone_for_write(&self, zone: usize, bounds: &Range<usize>) -> usize {
        if self.open.contains(&zone) || self.open.len() < self.open_max {
            return zone;
        }
        let candidates: Vec<usize> = self.open.iter().copied().filter(|open| bounds.contains(open)).collect();
        if candidates.is_empty() { zone } else { candidates[zone % candidates.len()] }
    }

    fn write(&mut self, run: Run, bounds: &Range<usize>) -> Run {
        if run.offset < self.conventional {
            return Run { offset: run.offset, bytes: run.bytes.min(self.conventional - run.offset) };
        }
        let zone = self.zone_for_write(self.zone_at(run.offset), bounds);
        let range = self.range(zone);
        let size = range.end - range.start;
        if self.written[zone] == size {
            self.written[zone] = 0;
        }
        let before = self.written[zone];
        let placed = Run { offset: range.start + before, bytes: run.bytes.min(size - before) };
        self.written[zone] += placed.bytes;
        self.open.retain(|open| *open != zone || self.written[zone] < size);
        if before == 0 && self.written[zone] < size {
            self.open.push(zone);
        }
        placed
    }

    /// `None` if nothing is written from there on, or for a random place, anywhere.
    fn read(&self, run: Run, random: Option<u64>, bounds: &Range<usize>) -> Option<Run> {
        if run.offset < self.conventional {
            return Some(run);
        }
        let zone = self.zone_at(run.offset);
        let pointer = self.range(zone).start + self.written[zone];
        if run.offset + run.bytes <= pointer || random.is_none() && run.offset < pointer {
            return Some(Run { bytes: run.bytes.min(pointer - run.offset), ..run });
        }
        let is_long_enough =
            |zone: &usize| self.written[*zone] >= if random.is_some() { run.bytes } else { 1 };
        let Some(align) = random else {
            let next = (zone + 1..bounds.end).find(is_long_enough)?;
            return Some(Run { offset: self.range(next).start, bytes: run.bytes.min(self.written[next]) });
        };
        let from_here = (zone..bounds.end).chain(bounds.start..zone);
        let found =
            from_here.filter(|zone| self.range(*zone).start >= self.conventional).find(is_long_enough)?;
        let places = (self.written[found] - run.bytes) / align + 1;
        let place = (run.offset - self.range(zone).start) / align % places;
        Some(Run { offset: self.range(found).start + place * align, ..run })
    }
}

/// The zones that a job uses of a file.
#[derive(Clone, Debug)]
pub(super) struct ZonedFile {
    pub(super) volume: u32,
    /// The numbers of the zones.
    pub(super) bounds: Range<usize>,
    /// Where the file begins on the volume.
    pub(super) base: u64,
    pub(super) reads_beyond: bool,
}

/// The write pointers of the volumes of a load, as far as jobs use them.
#[derive(Debug, Default)]
pub(super) struct ZonedVolumes {
    pub(super) volumes: BTreeMap<u32, ZonePointers>,
}

impl ZonedVolumes {
    fn pointers(&mut self, file: &ZonedFile) -> &mut ZonePointers {
        self.volumes.get_mut(&file.volume).expect("a file with zones lies on a volume with zones")
    }

    /// Where the zones let a request go; `None` if a read finds nothing written. `random` is the alignment of a random place.
    pub(super) fn placed_run(
        &mut self,
        file: &ZonedFile,
        at: usize,
        run: Run,
        random: Option<u64>,
    ) -> Option<Run> {
        let wanted = Run { offset: file.base + run.offset, ..run };
        let placed = match at {
            WRITE => self.pointers(file).write(wanted, &file.bounds),
            _ if file.reads_beyond => wanted,
            _ => self.pointers(file).read(wanted, random, &file.bounds)?,
        };
        Some(Run { offset: placed.offset - file.base, ..placed })
    }
}
