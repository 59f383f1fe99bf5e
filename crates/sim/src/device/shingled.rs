//! Drive-managed shingled disks: writes go to a log in the persistent cache, reads follow the map, and the drive cleans bands when it is
//! idle or the cache is full.
//!
//! Modelled: every access to the log, the scratch area and the bands; the cache's tracks are those of the blocks at its place. A write that
//! finds the cache full waits until cleaning has made room, and so do all other commands. Idle cleaning stops after the access
//! in progress when a command arrives. Not modelled: the search for the log's end at power-on, blocks that a torn band leaves
//! unreadable, the order of commands by places in the cache (they are sorted by their own places), duration limits that abort a read
//! of which the cache has blocks during its access.
//!
//! *Source:* Aghayev and Desnoyers, Skylight, FAST 2015; see [`crate::shingled`].

use super::buffered_access::BufferedAccess;
use super::disk::{DiskArm, Work};
use super::job::Job;
use super::media::{Arriving, Room, Span};
use super::persistent_cache::PersistentCache;
use super::record::List;
use super::slow::PlannedAccess;
use super::split::Part;
use super::{CacheUse, Device, Travel};
use crate::shingled::{CleaningStep, LoggedExtent, MediaPlace, ShingleLayout};
use headstack_model::{Instant, Lbn, Op};
use std::ops::Range;

/// Accesses one after the other, each where the last one left the arm.
struct Accesses<'a> {
    disk: &'a mut DiskArm,
    span: Span,
}

impl<'a> Accesses<'a> {
    /// The first begins at `begins`.
    fn new(disk: &'a mut DiskArm, begins: Instant) -> Accesses<'a> {
        disk.arm.at = begins;
        let last = super::pass::Pass { extent: disk.last_extent, ..Default::default() };
        Accesses { disk, span: Span { end: begins, last, ..Span::default() } }
    }

    fn add(&mut self, span: &Span) {
        self.span.append(span);
        (self.disk.arm, self.disk.last_extent) = (span.arm(), span.last.extent);
    }

    /// An access whose data are in the drive's buffer, or go there.
    fn access(&mut self, blocks: Range<Lbn>, is_write: bool) {
        let access = BufferedAccess { drive: &self.disk.drive, blocks, is_write };
        let span = access.span(&self.disk.last_extent, self.disk.arm);
        self.add(&span);
    }

    /// An access to a place in the persistent cache whose data are in the drive's buffer, or go there.
    fn access_cache(&mut self, shingles: &PersistentCache, place: u64, sectors: u64, is_write: bool) {
        shingles.runs(place, sectors).for_each(|run| self.access(run, is_write));
    }

    /// A write to the persistent cache of data that may still be on their way.
    fn write_arriving(&mut self, shingles: &PersistentCache, place: u64, sectors: u64, arriving: Arriving) {
        for run in shingles.runs(place, sectors) {
            let (near, arm) = (&self.disk.last_extent, self.disk.arm);
            let span = self.disk.drive.write_in_parts(near, arm, run, arriving, Room::ENDLESS, &mut |_| {});
            self.add(&span);
        }
    }

    /// Carries out a step of cleaning. All of the accesses count as cleaning, so each step has new ones.
    fn clean(&mut self, shingles: &mut PersistentCache, step: &CleaningStep) {
        let header = shingles.layer.layout().header_sectors;
        let band = |lbn: u64, sectors: u64| Lbn(lbn)..Lbn(lbn + sectors);
        let sectors = match *step {
            CleaningStep::ReadBand { lbn, sectors } => {
                self.access(band(lbn, sectors), false);
                sectors
            }
            CleaningStep::ReadLog { place, sectors, .. }
            | CleaningStep::ReadScratch { place, sectors, .. } => {
                self.access_cache(shingles, place, sectors, false);
                sectors
            }
            CleaningStep::WriteScratch { place, sectors, .. } => {
                self.access_cache(shingles, place, sectors, true);
                sectors
            }
            CleaningStep::WriteBand { lbn, sectors } => {
                self.access(band(lbn, sectors), true);
                sectors
            }
            CleaningStep::CommitScratch(_) => {
                self.access_cache(shingles, shingles.layer.layout().scratch_header(), header, true);
                header
            }
            CleaningStep::WriteRecord(ref record) => {
                self.disk.activity.shingled.bands_cleaned += 1;
                self.access_cache(shingles, record.place, header, true);
                header
            }
            CleaningStep::WriteAnchor(anchor) => {
                let place = shingles.layer.layout().anchor_place(anchor.generation);
                self.access_cache(shingles, place, header, true);
                header
            }
        };
        self.disk.activity.clean(&self.span, sectors * shingles.sector_bytes);
    }
}

impl DiskArm {
    /// When a band should be cleaned if no command needs the arm; `Instant::MAX` when the cache has no data that count.
    #[inline]
    pub(super) fn cleaning_due(&self) -> Instant {
        match &self.shingled {
            Some(shingles) if !shingles.layer.is_clean() => shingles.quiet_since + shingles.idle,
            _ => Instant::MAX,
        }
    }

    /// Stores the persistent cache again after a method that changed it.
    fn put_back(&mut self, shingles: Box<PersistentCache>) {
        self.activity.shingled.bands_to_clean = shingles.layer.bands_to_clean();
        self.shingled = Some(shingles);
    }

    /// Starts the next access of cleaning; false if the cache has no data that count.
    pub(super) fn start_cleaning(&mut self, now: Instant) -> bool {
        let Some(mut shingles) = self.shingled.take() else { return false };
        let step = shingles.layer.clean();
        if let Some(step) = &step {
            let begins = self.arm.at.max(now);
            let mut accesses = Accesses::new(self, begins);
            accesses.clean(&mut shingles, step);
            let end = accesses.span.end;
            self.occupy(Work::Emptying, end);
        }
        self.put_back(shingles);
        step.is_some()
    }

    /// Up to where blocks before `end` can be read from their bands, from `start` on.
    pub(super) fn in_bands_to(&self, start: Lbn, end: Lbn) -> Lbn {
        let Some(shingles) = &self.shingled else { return end };
        if start >= end {
            return end;
        }
        shingles.layer.first_cached(start.0, end.0).map_or(end, Lbn)
    }

    /// The accesses for a read of which the cache has blocks, from `begins` on: one for each piece.
    fn read_pieces(&mut self, begins: Instant, blocks: Range<Lbn>) -> Span {
        let shingles = self.shingled.take().expect("the caller has found cached blocks");
        let mut accesses = Accesses::new(self, begins);
        shingles.layer.read(blocks.start.0, blocks.end.0, &mut |lbn, sectors, place| match place {
            MediaPlace::Band => accesses.access(Lbn(lbn)..Lbn(lbn + sectors), false),
            MediaPlace::Cache(place) => accesses.access_cache(&shingles, place, sectors, false),
        });
        let span = accesses.span;
        self.shingled = Some(shingles);
        self.last_lbn = blocks.end;
        span
    }

    /// Cleans a band completely, or moves the anchor, from `begins` on; returns when that is done.
    fn make_room(&mut self, shingles: &mut PersistentCache, mut begins: Instant) -> Instant {
        loop {
            let step = shingles.layer.clean_whole().expect("a full cache has data that count");
            let mut accesses = Accesses::new(self, begins);
            accesses.clean(shingles, &step);
            begins = accesses.span.end;
            if !shingles.layer.is_cleaning() {
                return begins;
            }
        }
    }

    /// Cleans bands until the log has room for the extents, from `begins` on, and appends them. Returns when there was room, and the
    /// accesses for the record.
    fn log_record(
        &mut self,
        shingles: &mut PersistentCache,
        begins: Instant,
        extents: &[LoggedExtent],
        arriving: Arriving,
    ) -> (Instant, Span) {
        let mut room = begins;
        let record = shingles.layer.append(extents).or_else(|full| {
            while !shingles.layer.has_room(&full) {
                room = self.make_room(shingles, room);
            }
            shingles.layer.append(extents)
        });
        let record = record.expect("cleaning has made room");
        if room > begins {
            self.activity.shingled.full_stalls += 1;
            self.activity.shingled.stalled += room - begins;
        }
        self.activity.shingled.records += 1;
        let ShingleLayout { header_sectors, record_copies, .. } = *shingles.layer.layout();
        let sectors = header_sectors + record_copies * record.data_sectors();
        let mut accesses = Accesses::new(self, room);
        accesses.write_arriving(shingles, record.place, sectors, arriving);
        let mut span = accesses.span;
        let saved = shingles.save_map();
        span.delay_media(saved);
        self.arm.at += saved;
        (room, span)
    }

    /// Appends runs of blocks to the log, from `begins` on, in one record, or in several where a run is larger than one. Returns when
    /// the first had room, and the accesses.
    pub(super) fn log_runs(
        &mut self,
        begins: Instant,
        runs: impl Iterator<Item = Range<Lbn>>,
        arriving: Arriving,
    ) -> (Instant, Span) {
        let mut shingles = self.shingled.take().expect("the caller has asked");
        let mut extents = std::mem::take(&mut shingles.extents);
        extents.clear();
        let most = shingles.layer.layout().record_sectors_max().min(u64::from(u32::MAX));
        for Range { mut start, end } in runs {
            while start < end {
                let sectors = (end - start).min(most);
                extents.push(LoggedExtent { lbn: start.0, sectors: sectors as u32 });
                start = start + sectors;
            }
        }
        let (mut first, mut total) = (None, Span { end: begins, ..Span::default() });
        let is_one = extents.iter().map(|extent| u64::from(extent.sectors)).sum::<u64>() <= most;
        for record in extents.chunks(if is_one { shingles.record_extents_max } else { 1 }) {
            let (room, span) = self.log_record(&mut shingles, total.end, record, arriving);
            first = first.or(Some(room));
            total.append(&span);
        }
        for extent in &extents {
            let blocks = Lbn(extent.lbn)..Lbn(extent.lbn + u64::from(extent.sectors));
            if !self.bad_blocks.is_sound(blocks.start, blocks.end) {
                self.bad_blocks.cure(&blocks);
            }
        }
        (shingles.extents, shingles.is_writing) = (extents, true);
        shingles.log_end = Some(self.arm.place);
        self.put_back(shingles);
        (first.unwrap_or(begins), total)
    }

    /// Writes a whole band at its own place, from `begins` on.
    pub(super) fn write_whole_band(&mut self, begins: Instant, band: Range<Lbn>) -> Span {
        let mut shingles = self.shingled.take().expect("the caller has asked");
        let mut accesses = Accesses::new(self, begins);
        accesses.access(band.clone(), true);
        let index = shingles.layer.layout().band_of(band.start.0);
        if let Some(record) = shingles.layer.supersede_band(index) {
            let header = shingles.layer.layout().header_sectors;
            accesses.access_cache(&shingles, record.place, header, true);
        }
        let span = accesses.span;
        if !self.bad_blocks.is_sound(band.start, band.end) {
            self.bad_blocks.cure(&band);
        }
        self.activity.shingled.bands_streamed += 1;
        shingles.is_writing = true;
        self.put_back(shingles);
        span
    }

    /// A command's write to the log, from `begins` on; returns its end.
    pub(super) fn log_command(&mut self, job: &mut Job, begins: Instant) -> Instant {
        let blocks = job.command.request.lbn..job.command.request.end();
        let from = self.arm.place;
        let (room, mut span) = self.log_runs(begins, std::iter::once(blocks.clone()), job.arriving);
        let lost = self.slowness_time(PlannedAccess { begins, ends: span.end, blocks });
        span.end += lost;
        self.arm.at += lost;
        job.account(Part::Cache, room);
        let travel = Travel::to_track(from.cylinder, span.last.place());
        span.rotation += span.end.since(room).saturating_sub(span.seek + span.rotation + span.media);
        self.account(job, &span, travel);
        span.end
    }

    /// Records that the media write in progress ended at `now`: what went to the log or to a whole band is safe.
    pub(super) fn finish_logged(&mut self, now: Instant) {
        if let Some(shingles) = &mut self.shingled
            && std::mem::take(&mut shingles.is_writing)
            && let Some(record) = &mut self.record
        {
            record.tell_logged(now);
        }
    }
}

/// Starts a read of which the persistent cache has blocks; false if all its blocks are in their bands.
#[cold]
pub(super) fn start_read(device: &mut Device, slot: u32) -> bool {
    let Job { command, media_from: start, sent_to, sent_at, .. } = device.commands.jobs[slot as usize];
    let end = command.request.end();
    if command.request.op != Op::Read || device.disk.in_bands_to(start, end) == end {
        return false;
    }
    let free = device.disk.access_from(device.now);
    let job = &mut device.commands.jobs[slot as usize];
    let begins = job.begin_access(free);
    let retries = device.disk.retry_time(job.found_idle, start) + device.disk.slow_time(start, end);
    let from = device.disk.arm.place;
    let mut span = device.disk.read_pieces(begins, start..end);
    let access = PlannedAccess { begins, ends: span.end, blocks: start..end };
    let lost = retries + device.disk.slowness_time(access);
    span.delay_media(lost);
    device.disk.arm.at = span.end;
    let travel = Travel::to_track(from.cylinder, span.last.place());
    device.disk.account(job, &span, travel);
    job.account_retries(lost);
    if job.cache != CacheUse::Part {
        job.cache = CacheUse::Miss;
    }
    let (unsent, ready) = (start.min(sent_to), span.end.max(sent_at));
    device.send_from_media(slot, end - unsent, ready, ready);
    device.destage.last_was_destage = false;
    device.disk.occupy(Work::Reading { segment: None, start: command.request.lbn, end }, span.end);
    true
}

/// Records the writes whose data an access to the log or to a band has.
pub(super) fn bear(disk: &mut DiskArm, begins: Instant, runs: impl Iterator<Item = (u32, Range<Lbn>)>) {
    let Some(record) = &mut disk.record else { return };
    record.begin_several(begins);
    runs.for_each(|(id, blocks)| record.bear(List::Run(id), blocks));
}
