//! `zonemode=zbd`: writes go to the write pointers of zones, reads to what was written.
//!
//! The place that a job draws selects the zone. A write goes to the zone's write pointer; a write to a full zone resets the zone first; the
//! last write of a zone is as long as the rest of the zone. If the maximum number of zones is written in part, one of them takes the write.
//! A read goes to written blocks of the zone, or to the next zone with enough of them; in a job that also writes, a read that finds none
//! becomes a write. All jobs on a volume share its write pointers. `zone_reset_frequency` also resets a zone that is not full before a write
//! to it; the job then waits for its earlier requests first, as fio does.
//!
//! *Source:* HOWTO of fio 3.33, `zonemode=zbd`. Unlike fio, no job finishes a zone whose rest is shorter than a request.

use std::collections::BTreeMap;
use std::ops::Range;

use super::extent::Run;
use super::settings::{WRITE, ZoneResets};

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
    /// Writes until the next reset by `zone_reset_frequency`; `None` before the first write that counts.
    until_reset: Option<u64>,
}

impl ZonePointers {
    /// Pointers of a volume of `end` bytes whose zones are all full or all empty. `conventional` bytes at its start may be written anywhere.
    pub(super) fn new(
        zone_bytes: u64,
        end: u64,
        conventional: u64,
        open_max: usize,
        full: bool,
    ) -> ZonePointers {
        let (written, open) = (Vec::new(), Vec::new());
        let mut zones =
            ZonePointers { zone_bytes, end, conventional, written, open, open_max, until_reset: None };
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

    /// The zone that takes a write meant for `zone`: `zone` itself, or one written in part if no more may be opened.
    fn zone_for_write(&self, zone: usize, bounds: &Range<usize>) -> usize {
        if self.open.contains(&zone) || self.open.len() < self.open_max {
            return zone;
        }
        let candidates: Vec<usize> = self.open.iter().copied().filter(|open| bounds.contains(open)).collect();
        if candidates.is_empty() { zone } else { candidates[zone % candidates.len()] }
    }

    /// Whether the job's frequency requires a reset of the zone before a write. Writes count once the threshold is reached.
    fn is_reset_due(&mut self, file: &ZonedFile) -> bool {
        let ZoneResets { frequency, threshold } = file.resets;
        if frequency == 0.0 || threshold > 0.0 && self.share_written(&file.bounds) < threshold {
            return false;
        }
        let period = ((1.0 / frequency) as u64).min(u64::from(u32::MAX));
        let left = self.until_reset.unwrap_or(period) - 1;
        self.until_reset = Some(if left == 0 { period } else { left });
        left == 0
    }

    /// Share of some zones that is written; conventional ones do not count.
    fn share_written(&self, bounds: &Range<usize>) -> f64 {
        let sequential = bounds.clone().filter(|zone| self.range(*zone).start >= self.conventional);
        let (written, all) = sequential.fold((0, 0), |(written, all), zone| {
            let range = self.range(zone);
            (written + self.written[zone], all + range.end - range.start)
        });
        if all == 0 { 0.0 } else { written as f64 / all as f64 }
    }

    fn write(&mut self, run: Run, file: &ZonedFile) -> Run {
        if run.offset < self.conventional {
            return Run { bytes: run.bytes.min(self.conventional - run.offset), ..run };
        }
        let zone = self.zone_for_write(self.zone_at(run.offset), &file.bounds);
        let range = self.range(zone);
        let size = range.end - range.start;
        let is_due = self.is_reset_due(file);
        // The write at its start resets a full zone by itself.
        let resets_zone = is_due && (1..size).contains(&self.written[zone]);
        if resets_zone || self.written[zone] == size {
            self.written[zone] = 0;
            self.open.retain(|open| *open != zone);
        }
        let before = self.written[zone];
        let placed = Run { offset: range.start + before, bytes: run.bytes.min(size - before), resets_zone };
        self.written[zone] += placed.bytes;
        self.open.retain(|open| *open != zone || self.written[zone] < size);
        if before == 0 && self.written[zone] < size {
            self.open.push(zone);
        }
        placed
    }

    /// `None` if no data lie at `run` or behind it (for a random place: anywhere).
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
            return Some(Run {
                offset: self.range(next).start,
                bytes: run.bytes.min(self.written[next]),
                ..run
            });
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
    pub(super) resets: ZoneResets,
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

    /// The run that the zones allow for a request; `None` if a read finds nothing written. `random` is the alignment of a random place.
    #[inline(never)]
    pub(super) fn placed_run(
        &mut self,
        file: &ZonedFile,
        at: usize,
        run: Run,
        random: Option<u64>,
    ) -> Option<Run> {
        let wanted = Run { offset: file.base + run.offset, ..run };
        let placed = match at {
            WRITE => self.pointers(file).write(wanted, file),
            _ if file.reads_beyond => wanted,
            _ => self.pointers(file).read(wanted, random, &file.bounds)?,
        };
        Some(Run { offset: placed.offset - file.base, ..placed })
    }
}
