//! Destaging of a shingled drive: whole bands at their own places, everything else to the log.

use super::{Destage, Run};
use crate::device::activity::Travel;
use crate::device::disk::{DiskArm, Work};
use crate::device::media::Arriving;
use crate::device::persistent_cache::PersistentCache;
use crate::device::shingled::bear;
use crate::device::slow::PlannedAccess;
use headstack_model::{Instant, Lbn};
use std::ops::Range;

impl Destage {
    /// Starts to write dirty runs: the band of the oldest, if all its blocks are dirty, else the oldest runs in one record of the log.
    pub(super) fn start_shingled(&mut self, disk: &mut DiskArm, now: Instant) -> bool {
        let oldest = self.runs[self.queue.slots()[0].id.0 as usize];
        let shingles = disk.shingled.as_ref().expect("the caller has asked");
        let whole = self.whole_band(shingles);
        let is_streamed = whole.is_some();
        let band = whole.unwrap_or(oldest.start..oldest.end);
        let (extents, sectors) = (shingles.record_extents_max, shingles.record_max_sectors);
        let ids = if is_streamed { self.take_band(&band) } else { self.take_record(extents, sectors) };
        let arrives = |run: &Run| run.arriving.time_of(run.end - run.start).max(run.not_before);
        let here = self.batch.iter().map(arrives).max().unwrap_or(now);
        let begins = disk.access_from(now).max(here);
        let blocks = |run: &Run| run.start..run.end;
        let written = self.batch.iter().map(blocks);
        bear(disk, begins, ids.into_iter().zip(written.clone()));
        let from = disk.arm.place;
        let extra = self.extra_before(disk, oldest.start);
        let blocks = band.clone();
        let mut span = if is_streamed {
            disk.write_whole_band(begins, band)
        } else {
            disk.log_runs(begins, written, Arriving::default()).1
        };
        let lost = disk.slowness_time(PlannedAccess { begins, ends: span.end, blocks });
        span.delay_media(lost);
        disk.arm.at += lost;
        let travel = Travel::to_track(from.cylinder, disk.arm.place);
        disk.account_destage(&span, travel, oldest.start..oldest.end, extra);
        span.end += extra;
        disk.arm.at = span.end;
        self.last_was_destage = true;
        disk.occupy(Work::Writing { slot: None }, span.end);
        true
    }

    /// The band of the oldest run, if all its blocks are dirty and it may be written now.
    fn whole_band(&self, cache: &PersistentCache) -> Option<Range<Lbn>> {
        let mut last = Lbn(0)..Lbn(0);
        for slot in self.queue.slots() {
            let start = self.runs[slot.id.0 as usize].start;
            let band = cache.band(start);
            if band == last {
                continue;
            }
            if self.sectors < band.end - band.start {
                return None;
            }
            if self.covers(&band) && cache.may_write_band(start) {
                return Some(band);
            }
            last = band;
        }
        None
    }

    /// Whether the dirty runs have all blocks of a band. With several writes outstanding, a stream's runs wait in another order than
    /// that of its blocks.
    fn covers(&self, band: &Range<Lbn>) -> bool {
        if self.sectors < band.end - band.start {
            return false;
        }
        let runs = self.queue.slots().iter().map(|slot| &self.runs[slot.id.0 as usize]);
        let mut runs: Vec<&Run> = runs.filter(|run| run.start < band.end && band.start < run.end).collect();
        // Of a run that goes beyond both ends, two parts would be left.
        if runs.iter().any(|run| run.start < band.start && band.end < run.end) {
            return false;
        }
        runs.sort_unstable_by_key(|run| run.start);
        let extend = |next: Lbn, run: &Run| if run.start <= next { next.max(run.end) } else { next };
        runs.into_iter().fold(band.start, extend) >= band.end
    }

    /// Moves the dirty blocks of a band from the waiting runs to the batch. Returns the numbers of their runs.
    fn take_band(&mut self, band: &Range<Lbn>) -> Vec<u32> {
        let (mut ids, mut index) = (Vec::new(), 0);
        while let Some(slot) = self.queue.slots().get(index) {
            let id = slot.id.0;
            let run = self.runs[id as usize];
            let (start, end) = (run.start.max(band.start), run.end.min(band.end));
            if start >= end {
                index += 1;
                continue;
            }
            ids.push(id);
            self.batch.push(Run { start, end, ..run });
            match (run.start < start, end < run.end) {
                (true, _) => {
                    self.runs.extend(id, |run| run.end = start);
                    index += 1;
                }
                (_, true) => {
                    self.runs.cut_front(id, end, |_| {});
                    index += 1;
                }
                _ => {
                    self.queue.remove(index);
                    self.runs.remove(id);
                }
            }
        }
        ids
    }

    /// Removes the oldest runs that fit in a record, at least one. Returns their numbers.
    fn take_record(&mut self, extents: usize, sectors: u64) -> Vec<u32> {
        let (mut ids, mut total) = (Vec::with_capacity(extents), 0);
        while let Some(slot) = self.queue.slots().first() {
            let id = slot.id.0;
            let run = self.runs[id as usize];
            total += run.end - run.start;
            if !ids.is_empty() && (total > sectors || ids.len() == extents) {
                break;
            }
            self.queue.remove(0);
            self.runs.remove(id);
            self.batch.push(run);
            ids.push(id);
        }
        ids
    }

    /// Ends the access: what it wrote is clean.
    pub(super) fn finish_batch(&mut self) {
        self.sectors -= self.batch.iter().map(|run| run.end - run.start).sum::<u64>();
        self.batch.clear();
    }
}
