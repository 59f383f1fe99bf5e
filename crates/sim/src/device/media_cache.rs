//! The media cache: a log on the media for writes that must be on the media before they are acknowledged.
//!
//! Modelled: regions spread over the cylinders, of which the nearest is used; a write goes to the next sector that passes under
//! the head, and skipped sectors stay empty until the region is reused; the drive moves writes to their own places in runs while
//! commands wait, and one by one when none does. Not modelled: reading a logged block from the log (a read is timed as if it were
//! at its own place), and the log's index on the media.
//!
//! *Source:* HGST and WD drives from the Ultrastar 7K6000 on have such a log; its internals are an assumption.

use super::cost::{Cost, Unwritten};
use super::drive::Drive;
use super::media::{Arm, Arriving, Room, Span};
use super::port::Wanted;
use super::{Device, Travel, Work};
use headstack_model::{Angle, DriveSpec, Lbn, Nanos, Request, TrackPlace};
use headstack_policy::order::{self, BuiltIn};
use headstack_policy::{Queue, Slot, SlotId};

/// A run of blocks whose data are in the log and not yet at their own place.
#[derive(Clone, Copy, Debug, Default)]
struct Logged {
    start: Lbn,
    end: Lbn,
    place: TrackPlace,
    angle: Angle,
}

impl Unwritten for Logged {
    fn home(&self) -> (TrackPlace, Angle) {
        (self.place, self.angle)
    }
}

/// A part of the log.
#[derive(Clone, Copy, Debug)]
struct Region {
    first_cylinder: u32,
    /// Length of a sector on its tracks.
    sector_ns: f64,
    /// The track that is written now, and the share of a revolution that has passed over it.
    track: u32,
    gone_by: f64,
}

/// The log and its contents.
#[derive(Debug)]
pub(super) struct MediaCache {
    /// In the order of their cylinders.
    regions: Vec<Region>,
    region_tracks: u32,
    header: u64,
    write_max: u64,
    empty_from: usize,
    empty_run: usize,
    idle: Nanos,
    order: BuiltIn,
    logged: Vec<Logged>,
    free: Vec<u32>,
    /// The writes to be moved, in order of arrival too.
    queue: Queue,
    /// Writes to be moved before commands.
    left: usize,
    /// The command whose write is being logged.
    logging: Option<u32>,
    quiet_since: Nanos,
}

impl Region {
    /// One of `regions`, in the middle of as many equal parts of the blocks.
    fn new(region: u32, regions: u32, drive: &Drive) -> Region {
        let sectors = u128::from(drive.geometry.sectors());
        let middle = sectors * (2 * u128::from(region) + 1) / (2 * u128::from(regions));
        let extent = drive.geometry.extent_at(Lbn(middle as u64));
        let turn = drive.mechanics.spindle().period().0 as f64;
        let sector_ns = turn / f64::from(extent.sectors_per_track);
        Region { first_cylinder: extent.cylinder, sector_ns, track: 0, gone_by: 0.0 }
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
            regions: (0..cache.regions).map(|region| Region::new(region, cache.regions, drive)).collect(),
            region_tracks: cache.region_tracks,
            header: u64::from(cache.header_sectors),
            write_max: u64::from(cache.write_max_sectors),
            empty_from: cache.empty_from_records as usize,
            empty_run: cache.empty_run_records as usize,
            idle: Nanos::from_ms(cache.idle_ms),
            order: order::built_in(&cache.order)?,
            logged: Vec::with_capacity(room),
            free: Vec::with_capacity(room),
            queue: Queue::new(room),
            left: 0,
            logging: None,
            quiet_since: Nanos::ZERO,
        })))
    }

    /// Whether writes are moved before commands.
    pub(super) fn is_first(&self) -> bool {
        self.left > 0 && !self.queue.is_empty()
    }

    /// When writes should be moved if no command needs the arm; `Nanos::MAX` when the log is empty.
    pub(super) fn due(&self) -> Nanos {
        match self.queue.is_empty() {
            true => Nanos::MAX,
            false => self.quiet_since + self.idle,
        }
    }

    /// Whether a write of `sectors` sectors goes to the log.
    fn takes(&self, sectors: u64) -> bool {
        sectors <= self.write_max && self.queue.len() < self.queue.capacity()
    }

    /// The region nearest to a cylinder.
    fn nearest(&mut self, cylinder: u32) -> &mut Region {
        let after = self.regions.partition_point(|region| region.first_cylinder <= cylinder);
        let (before, last) = (after.saturating_sub(1), self.regions.len() - 1);
        let away = |index: usize| self.regions[index].first_cylinder.abs_diff(cylinder);
        let index = if away(before) <= away(after.min(last)) { before } else { after.min(last) };
        &mut self.regions[index]
    }

    /// Adds a run of blocks to those to be moved. Older data of the same blocks in the log are dropped.
    fn add(&mut self, run: Logged, now: Nanos) {
        self.drop_covered(run.start, run.end);
        if self.extend_youngest(&run) {
            return;
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.logged[id as usize] = run;
                id
            }
            None => {
                self.logged.push(run);
                (self.logged.len() - 1) as u32
            }
        };
        let request = Request::write(run.start, (run.end - run.start) as u32);
        let entry = Slot::new(SlotId(id), request, now, run.place.cylinder, run.place.head);
        self.queue.insert(entry).expect("the log takes no more than it holds");
    }

    /// Joins a run to the youngest one when it continues it.
    fn extend_youngest(&mut self, run: &Logged) -> bool {
        let Some(youngest) = self.queue.slots().last() else { return false };
        let youngest = &mut self.logged[youngest.id.0 as usize];
        let joins = youngest.end == run.start && run.end - youngest.start <= self.write_max;
        if joins {
            youngest.end = run.end;
        }
        joins
    }

    /// Drops runs wholly in `start..end`, which is overwritten.
    fn drop_covered(&mut self, start: Lbn, end: Lbn) {
        let covered = |slot: &Slot| {
            let run = &self.logged[slot.id.0 as usize];
            start <= run.start && run.end <= end
        };
        while let Some(index) = self.queue.slots().iter().position(covered) {
            self.free.push(self.queue.remove(index).id.0);
        }
    }

    /// Removes the next run to be moved.
    fn next(&mut self, drive: &Drive, cylinders: u32, arm: Arm, last_lbn: Lbn) -> Logged {
        let cost = Cost { drive, cylinders, buffer: None, targets: &self.logged, arm, last_lbn };
        let index = self.order.pick(&self.queue.view(arm.at), &cost).unwrap_or(0);
        let id = self.queue.remove(index).id.0;
        self.free.push(id);
        self.logged[id as usize]
    }
}

impl Device {
    /// Whether the log is emptied before commands are served.
    pub(super) fn log_first(&self) -> bool {
        self.media_cache.as_ref().is_some_and(|log| log.is_first())
    }

    /// When the log is emptied if no command needs the arm; `Nanos::MAX` if it is empty.
    pub(super) fn log_due(&self) -> Nanos {
        self.media_cache.as_ref().map_or(Nanos::MAX, |log| log.due())
    }

    /// Starts to write a command's data to the log; false if it goes to its own place.
    pub(super) fn start_logging(&mut self, slot: u32) -> bool {
        let request = self.commands.jobs[slot as usize].command.request;
        let is_sound = self.media_cache.is_some() && self.is_sound(request.lbn, request.end());
        let Some(log) = &mut self.media_cache else { return false };
        // A bad block becomes good when it is written at its own place.
        if !is_sound || !log.takes(u64::from(request.sectors)) {
            log.drop_covered(request.lbn, request.end());
            return false;
        }
        log.logging = Some(slot);
        let begins = self.access_begins(slot);
        if let Some(record) = &mut self.record {
            record.begin_command(slot, begins);
        }
        let (span, place) = self.log_span(slot, begins);
        let travel = Travel { from: self.arm.place.cylinder, to: place.cylinder };
        self.account_span(slot, &span, travel);
        self.arm = Arm { place, at: span.end };
        self.want_port(span.end, slot, Wanted::Finish);
        self.destage.last_was_destage = false;
        self.arm_event = span.end;
        self.work = Work::Writing { slot: Some(slot) };
        true
    }

    /// A write to the log, from `begins` on: to the nearest region, at the next sector that passes under the head once the data
    /// are there. Also returns the track.
    fn log_span(&mut self, slot: u32, begins: Nanos) -> (Span, TrackPlace) {
        let job = self.commands.jobs[slot as usize];
        let log = self.media_cache.as_mut().expect("the write goes to its log");
        let (here, last_cylinder) = (self.arm.place, self.size.cylinders - 1);
        let (tracks, header) = (log.region_tracks, log.header);
        let turn = self.drive.mechanics.spindle().period().0 as f64;
        let region = log.nearest(here.cylinder);
        let track = |region: &Region| TrackPlace {
            cylinder: (region.first_cylinder + region.track % tracks).min(last_cylinder),
            head: 0,
        };
        if here == track(region) {
            // Sectors that have passed since the last write stay empty.
            region.gone_by += begins.since(self.arm.at).0 as f64 / turn;
        }
        if region.gone_by >= 1.0 {
            (region.track, region.gone_by) = (region.track + 1, 0.0);
        }
        let place = track(region);
        let seek = self.drive.mechanics.reposition(here, place, true);
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
    pub(super) fn start_emptying(&mut self) -> bool {
        let at = self.arm.at.max(self.now);
        let arm = Arm { place: self.arm.place, at };
        let Some(log) = &mut self.media_cache else { return false };
        if log.queue.is_empty() {
            return false;
        }
        log.left = log.left.saturating_sub(1);
        let run = log.next(&self.drive, self.size.cylinders, arm, self.last.lbn);
        let all_here = Arriving::default();
        // Its data were on the media before: no new record.
        let record = self.record.take();
        let (span, travel) = self.write_span(at, run.start..run.end, all_here, Room::ENDLESS);
        self.record = record;
        self.activity.destage(&span, travel);
        self.arm_event = span.end;
        self.work = Work::Emptying;
        true
    }

    /// A command's write, if it went to the log, is on the media now.
    pub(super) fn finish_logging(&mut self, slot: u32) {
        let request = self.commands.jobs[slot as usize].command.request;
        let (place, angle) = self.drive.target(request.lbn);
        let Some(log) = &mut self.media_cache else { return };
        if log.logging.take() != Some(slot) {
            return;
        }
        log.add(Logged { start: request.lbn, end: request.end(), place, angle }, self.now);
        log.quiet_since = self.now;
        if log.left == 0 && log.queue.len() >= log.empty_from {
            log.left = log.empty_run;
        }
        if let Some(record) = &mut self.record {
            record.tell_logged(self.now);
        }
    }
}
