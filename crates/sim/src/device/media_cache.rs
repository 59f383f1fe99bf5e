//! The media cache: a log on the media for writes that must be on the media before they are acknowledged.
//!
//! Modelled: regions spread over the cylinders, of which the nearest is used; a write goes to the next sector that passes under
//! the head, and skipped sectors stay empty until the region is reused; the drive moves writes to their own places in runs while
//! commands wait, and one by one when none does. Not modelled: reading a logged block from the log (a read is timed as if it were
//! at its own place), and the log's index on the media.
//!
//! *Source:* HGST and WD drives from the Ultrastar 7K6000 on have such a log; its internals are an assumption.

use super::cost::{Cost, Target};
use super::disk::{DiskArm, Work};
use super::drive::Drive;
use super::job::Job;
use super::media::{Arm, Arriving, Room, Span};
use headstack_model::spec::MediaCacheSpec;
use headstack_model::{Angle, DriveSpec, Instant, Lbn, Nanos, Request, TrackPlace};
use headstack_policy::order::{self, BuiltIn};
use headstack_policy::{Queue, Slot, SlotId};
use slab::Slab;

/// A run of blocks whose data are in the log but not yet at their own place.
#[derive(Clone, Copy, Debug, Default)]
struct Logged {
    start: Lbn,
    end: Lbn,
    place: TrackPlace,
    angle: Angle,
}

impl Target for Logged {
    fn home(&self) -> (TrackPlace, Angle) {
        (self.place, self.angle)
    }
}

/// Runs among which a logged write looks for its neighbours: the commands of a stream end out of order by as many as a drive queues.
const YOUNG_RUNS: usize = 32;

#[derive(Clone, Copy, Debug)]
struct Region {
    first_cylinder: u32,
    last_cylinder: u32,
    /// Length of a sector on its tracks.
    sector_ns: f64,
    /// The track that is written now, and the share of a revolution that has passed over it.
    track: u32,
    gone_by: f64,
}

#[derive(Debug)]
pub(super) struct MediaCache {
    /// The regions, by their cylinders.
    regions: Vec<Region>,
    spec: MediaCacheSpec,
    idle: Nanos,
    order: BuiltIn,
    logged: Slab<Logged>,
    /// The logged writes that are to be moved, also in order of arrival.
    queue: Queue,
    /// Number of writes still to be moved before commands.
    left: u32,
    /// The command whose write is being logged.
    logging: Option<u32>,
    quiet_since: Instant,
}

impl Region {
    /// The region number `region` of `regions`, in the middle of its equal part of the blocks.
    fn new(region: u32, regions: u32, spec: &DriveSpec, drive: &Drive) -> Region {
        let sectors = u128::from(drive.geometry.sectors());
        let middle = sectors * (2 * u128::from(region) + 1) / (2 * u128::from(regions));
        let extent = drive.geometry.extent_at(Lbn(middle as u64));
        let turn = drive.mechanics.spindle().period().0 as f64;
        let sector_ns = turn / f64::from(extent.sectors_per_track);
        let last_cylinder = spec.geometry.cylinders - 1;
        Region { first_cylinder: extent.cylinder, last_cylinder, sector_ns, track: 0, gone_by: 0.0 }
    }

    /// The track that is written now, in a region of `tracks` tracks.
    fn current_track(&self, tracks: u32) -> TrackPlace {
        let cylinder = (self.first_cylinder + self.track % tracks).min(self.last_cylinder);
        TrackPlace { cylinder, head: 0 }
    }
}

impl MediaCache {
    /// The media cache of a drive file.
    ///
    /// *Errors:* no such order.
    pub(super) fn of(spec: &DriveSpec, drive: &Drive) -> Result<Option<Box<MediaCache>>, order::OrderError> {
        let Some(cache) = &spec.media_cache else { return Ok(None) };
        let room = (cache.records_max as usize).min(Queue::MAX_CAPACITY);
        Ok(Some(Box::new(MediaCache {
            regions: (0..cache.regions)
                .map(|region| Region::new(region, cache.regions, spec, drive))
                .collect(),
            spec: cache.clone(),
            idle: Nanos::from_ms(cache.idle_ms),
            order: order::built_in(&cache.order)?,
            logged: Slab::with_capacity(room),
            queue: Queue::new(room),
            left: 0,
            logging: None,
            quiet_since: Instant::ZERO,
        })))
    }

    /// Whether writes are moved before commands.
    pub(super) fn is_first(&self) -> bool {
        self.left > 0 && !self.queue.is_empty()
    }

    /// When writes should be moved if no command needs the arm; `Instant::MAX` when the log is empty.
    pub(super) fn due(&self) -> Instant {
        if self.queue.is_empty() { Instant::MAX } else { self.quiet_since + self.idle }
    }

    /// The region whose first cylinder is nearest.
    fn nearest(&self, cylinder: u32) -> usize {
        let after = self.regions.partition_point(|region| region.first_cylinder <= cylinder);
        let (before, last) = (after.saturating_sub(1), self.regions.len() - 1);
        let away = |index: usize| self.regions[index].first_cylinder.abs_diff(cylinder);
        if away(before) <= away(after.min(last)) { before } else { after.min(last) }
    }

    /// Adds a run of blocks to those to be moved. Older data of the same blocks in the log are dropped.
    fn add(&mut self, mut run: Logged, now: Instant) {
        self.drop_covered(run.start, run.end);
        if let Some(after) = self.young(&run, |other| other.start == run.end) {
            run.end = self.logged.remove(self.queue.remove(after).id.0 as usize).end;
        }
        if let Some(before) = self.young(&run, |other| other.end == run.start) {
            self.logged[self.queue.slots()[before].id.0 as usize].end = run.end;
            return;
        }
        let id = self.logged.insert(run) as u32;
        let request = Request::write(run.start, (run.end - run.start) as u32);
        let entry = Slot::new(SlotId(id), request, now, run.place.cylinder, run.place.head);
        self.queue.insert(entry).expect("the log takes no more than it holds");
    }

    /// The index of a run that satisfies `is_next`, among the youngest, and with which `run` is not too long for one write.
    fn young(&self, run: &Logged, is_next: impl Fn(&Logged) -> bool) -> Option<usize> {
        let fits = |other: &Logged| {
            (other.end - other.start) + (run.end - run.start) <= u64::from(self.spec.write_max_sectors)
        };
        let of = |slot: &Slot| &self.logged[slot.id.0 as usize];
        let slots = self.queue.slots();
        let oldest = slots.len().saturating_sub(YOUNG_RUNS);
        let found = slots[oldest..].iter().rposition(|slot| is_next(of(slot)) && fits(of(slot)));
        found.map(|index| oldest + index)
    }

    /// Drops runs wholly in `start..end`, which is overwritten.
    fn drop_covered(&mut self, start: Lbn, end: Lbn) {
        let is_covered = |run: &Logged| start <= run.start && run.end <= end;
        let covered = |log: &MediaCache| {
            log.queue.slots().iter().position(|slot| is_covered(&log.logged[slot.id.0 as usize]))
        };
        while let Some(index) = covered(self) {
            self.logged.remove(self.queue.remove(index).id.0 as usize);
        }
    }

    fn next(&mut self, disk: &DiskArm, arm: Arm) -> Logged {
        let cost = Cost { disk, buffer: (), targets: &self.logged, arm };
        let index = self.order.pick(&self.queue.view(arm.at), &cost).unwrap_or(0);
        self.logged.remove(self.queue.remove(index).id.0 as usize)
    }

    /// Whether a sequential run of waiting writes goes to its own place: too long for the log, and the next one arrives meanwhile.
    pub(super) fn is_for_own_place(&self, commands: u32, sectors: u64) -> bool {
        commands >= self.spec.stream_commands && sectors > u64::from(self.spec.write_max_sectors)
    }

    /// Whether a command's write goes to the log instead of its own place. A `fast` one is of a stream, which the log would slow.
    pub(super) fn accepts(&mut self, disk: &DiskArm, slot: u32, request: &Request, fast: bool) -> bool {
        let fits = !fast
            && request.sectors <= self.spec.write_max_sectors
            && self.queue.len() < self.queue.capacity();
        // A bad block becomes good when it is written at its own place.
        if fits && disk.bad_blocks.is_sound(request.lbn, request.end()) {
            self.logging = Some(slot);
            return true;
        }
        self.drop_covered(request.lbn, request.end());
        false
    }

    /// Whether a write goes to the log on the track under the heads.
    pub(super) fn continues_at(&self, here: TrackPlace, request: &Request) -> bool {
        let region = &self.regions[self.nearest(here.cylinder)];
        request.sectors <= self.spec.write_max_sectors
            && here == region.current_track(self.spec.region_tracks)
    }

    /// Plans a write to the log, from `begins` on: in the nearest region, at the next sector that passes under the head once the data
    /// are in the buffer. Also returns the track.
    pub(super) fn span(&mut self, disk: &DiskArm, job: &Job, begins: Instant) -> (Span, TrackPlace) {
        let here = disk.arm.place;
        let (tracks, header) = (self.spec.region_tracks, u64::from(self.spec.header_sectors));
        let turn = disk.turns(1).0 as f64;
        let nearest = self.nearest(here.cylinder);
        let region = &mut self.regions[nearest];
        if here == region.current_track(tracks) {
            // Sectors that have passed since the last write stay empty.
            region.gone_by += begins.since(disk.arm.at).0 as f64 / turn;
        }
        if region.gone_by >= 1.0 {
            (region.track, region.gone_by) = (region.track + 1, 0.0);
        }
        let place = region.current_track(tracks);
        let seek = disk.drive.mechanics.reposition(here, place, true);
        let sectors = u64::from(job.command.request.sectors);
        let on_track = begins + seek;
        // The next sector that begins under the head after the data have arrived.
        let ready = on_track.max(job.arriving.time_of(sectors));
        let rotation = ready - on_track + Nanos(region.sector_ns.ceil() as u64);
        let media = Nanos((region.sector_ns * (sectors + header) as f64).ceil() as u64);
        region.gone_by += (rotation + media).0 as f64 / turn;
        (Span { seek, rotation, media, end: on_track + rotation + media, ..Span::default() }, place)
    }

    /// Starts to move a run of the log to its own place; false if the log is empty.
    pub(super) fn start_emptying(&mut self, disk: &mut DiskArm, now: Instant) -> bool {
        if self.queue.is_empty() {
            return false;
        }
        let arm = disk.arm_from(now);
        self.left = self.left.saturating_sub(1);
        let run = self.next(disk, arm);
        let all_here = Arriving::default();
        // Its data were on the media before: no new record.
        let record = disk.record.take();
        let (span, travel) =
            disk.write_span(arm.at, run.start..run.end, run.start..run.end, all_here, Room::ENDLESS);
        disk.record = record;
        disk.account_destage(&span, travel, run.start..run.end, Nanos::ZERO);
        disk.occupy(Work::Emptying, span.end);
        true
    }

    /// Records that a command's write, if it went to the log, is on the media now.
    pub(super) fn finish(&mut self, disk: &mut DiskArm, slot: u32, request: &Request, now: Instant) {
        if self.logging.take() != Some(slot) {
            return;
        }
        let (place, angle) = disk.drive.target(request.lbn);
        self.add(Logged { start: request.lbn, end: request.end(), place, angle }, now);
        self.quiet_since = now;
        if self.left == 0 && self.queue.len() >= self.spec.empty_from_records as usize {
            self.left = self.spec.empty_run_records;
        }
        if let Some(record) = &mut disk.record {
            record.tell_logged(now);
        }
    }
}
