//! Destaging: written data on their way from the cache to the media.

mod dirty_runs;
mod joined;
mod shingled;

use super::TaskAttribute;
use super::cost::{Cost, Target};
use super::disk::{DiskArm, Work};
use super::job::Job;
use super::media::{Arm, Arriving, Room};
use super::record::List;
use super::slow::PlannedAccess;
use dirty_runs::DirtyRuns;
use headstack_model::cache::{Cache, SegmentState};
use headstack_model::spec::{JoinedWrites, WriteCache};
use headstack_model::{Angle, DriveSpec, Instant, Lbn, Nanos, TrackPlace};
use headstack_policy::order::{self, BuiltIn};
use headstack_policy::{Queue, Slot, SlotId};
use std::collections::VecDeque;
use std::ops::Range;

/// A run of dirty blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    start: Lbn,
    end: Lbn,
    arriving: Arriving,
    not_before: Instant,
    segment: Option<usize>,
    /// Whether later writes have continued it: more will come.
    has_grown: bool,
    /// Where its first block lies, for the order of destaging; not set where it is that of arrival.
    place: TrackPlace,
    angle: Angle,
}

impl Target for Run {
    fn home(&self) -> (TrackPlace, Angle) {
        (self.place, self.angle)
    }
}

/// Dirty data, and the commands that wait for them.
#[derive(Debug)]
pub(super) struct Destage {
    pub(super) policy: WriteCache,
    joined: JoinedWrites,
    /// The order of destaging; none if that is the order of arrival.
    order: Option<BuiltIn>,
    runs: DirtyRuns,
    /// Runs that wait for the arm, also in order of arrival.
    queue: Queue,
    /// Writes for which room in the queue is reserved until their data have arrived.
    reserved: usize,
    current: Option<Run>,
    /// Runs that are being written together, to a shingled disk.
    batch: Vec<Run>,
    /// Whether the head passes over the blocks of a write that joined the run and has its own destage later.
    goes_over: bool,
    sectors: u64,
    most: u64,
    pressed: u64,
    /// Dirty runs from which the drive of a log writes records of them, one record before there is no room.
    pressed_runs: usize,
    idle: Nanos,
    /// Most sectors that are written before the arm and their room are free again; 0 for whole runs.
    piece: u64,
    /// Time that a destage far from the last access takes beyond its own.
    extra: Nanos,
    /// When the present idle time began.
    quiet_since: Instant,
    /// Whether the last media work was a destage: forced destages and commands alternate.
    pub(super) last_was_destage: bool,
    /// Writes that wait for room.
    pub(super) blocked: VecDeque<u32>,
    /// Flushes that wait for all dirty data.
    pub(super) flushes: VecDeque<u32>,
}

impl Destage {
    pub(super) fn new(spec: &DriveSpec) -> Result<Destage, order::OrderError> {
        let cache = &spec.cache;
        let policy = if cache.buffered { cache.write_cache } else { WriteCache::None };
        let room = match policy {
            WriteCache::None => 1,
            WriteCache::Full => (cache.dirty_runs_max as usize).min(Queue::MAX_CAPACITY),
            _ => Queue::COMMANDS_MAX,
        };
        let order = order::built_in(&cache.destage_order)?;
        let record = spec.shingled.as_ref().map(|log| log.record_extents_max as usize);
        let chooses = policy == WriteCache::Full && spec.shingled.is_none() && order.uses_places();
        let by_block = policy == WriteCache::Full || spec.queue.stream_hold_ms.is_some();
        Ok(Destage {
            policy,
            joined: cache.joined_writes,
            order: chooses.then_some(order),
            runs: DirtyRuns::new(room, u64::from(cache.segment_sectors), by_block),
            queue: if chooses { Queue::new(room) } else { Queue::by_arrival(room) },
            current: None,
            batch: Vec::new(),
            goes_over: false,
            reserved: 0,
            sectors: 0,
            most: cache.dirty_max_sectors,
            pressed: cache.dirty_start_sectors,
            pressed_runs: record.map_or(usize::MAX, |record| room.saturating_sub(record).max(1)),
            idle: Nanos::from_ms(cache.destage_idle_ms),
            piece: u64::from(cache.destage_piece_sectors),
            extra: Nanos::from_ms(cache.destage_extra_ms),
            quiet_since: Instant::ZERO,
            last_was_destage: false,
            blocked: VecDeque::with_capacity(spec.queue.depth as usize),
            flushes: VecDeque::with_capacity(spec.queue.depth as usize),
        })
    }

    /// Whether one dirty run has all of these blocks, if dirty runs answer reads of this cache.
    #[inline]
    pub(super) fn holds(&self, start: Lbn, end: Lbn) -> bool {
        self.policy == WriteCache::Full && self.holds_dirty(start, end)
    }

    fn holds_dirty(&self, start: Lbn, end: Lbn) -> bool {
        let holds = |run: &Run| run.start <= start && end <= run.end;
        self.runs.hold(start, end) || self.current.iter().chain(&self.batch).any(holds)
    }

    pub(super) fn dirty_sectors(&self) -> u64 {
        let waiting = self.queue.slots().iter().map(|slot| &self.runs[slot.id.0 as usize]);
        waiting.chain(&self.current).chain(&self.batch).map(|run| run.end - run.start).sum()
    }

    pub(super) fn is_clean(&self) -> bool {
        self.queue.is_empty() && self.current.is_none() && self.batch.is_empty() && self.reserved == 0
    }

    /// Whether the head has passed over the joined blocks; resets the flag.
    pub(super) fn ends_going_over(&mut self) -> bool {
        std::mem::take(&mut self.goes_over)
    }

    /// Whether dirty data must go to the media soon: writes or flushes wait for that, or too many sectors are dirty.
    fn presses(&self) -> bool {
        !self.blocked.is_empty() || !self.flushes.is_empty() || self.is_nearly_full()
    }

    fn is_nearly_full(&self) -> bool {
        self.sectors >= self.pressed || self.queue.len() >= self.pressed_runs
    }

    /// Whether destages take turns with commands.
    pub(super) fn alternates(&self) -> bool {
        self.policy == WriteCache::Full && !self.queue.is_empty() && self.presses()
    }

    /// Reserves room in the cache for a write; false if there is none, or a flush is in progress.
    pub(super) fn reserve(&mut self, cache: &mut Cache, job: &mut Job) -> bool {
        let request = job.command.request;
        let is_full = self.queue.len() + self.reserved >= self.queue.capacity();
        // Writes accepted during a flush would delay its end for as long as more arrive.
        if is_full || !self.flushes.is_empty() {
            return false;
        }
        if self.policy == WriteCache::Full {
            let sectors = u64::from(request.sectors);
            if self.sectors > 0 && self.sectors + sectors > self.most {
                return false;
            }
            self.sectors += sectors;
            cache.invalidate(request.lbn, request.end(), None);
        } else {
            let written_to = self.current.as_ref().map_or(Lbn(0), |run| run.start);
            let segment = cache.take_for_write(request.lbn, request.end(), written_to);
            if segment.is_none() {
                return false;
            }
            cache.invalidate(request.lbn, request.end(), segment);
            job.segment = segment;
        }
        self.reserved += 1;
        true
    }

    /// Adds a write's data, for which room was reserved, to the dirty ones.
    pub(super) fn enqueue(&mut self, disk: &mut DiskArm, cache: &Cache, now: Instant, job: &Job) {
        self.reserved -= 1;
        self.quiet_since = now;
        if let Some(id) = self.extend_run(cache, job) {
            return disk.note_write(List::Run(id), job);
        }
        let request = job.command.request;
        let (place, angle) = match self.order {
            Some(_) => disk.drive.target(request.lbn),
            None => Default::default(),
        };
        let run = Run {
            start: request.lbn,
            end: request.end(),
            arriving: job.arriving,
            not_before: job.overhead_done,
            segment: job.segment,
            has_grown: false,
            place,
            angle,
        };
        let id = self.runs.insert(run);
        disk.note_write(List::Run(id), job);
        let entry = Slot::new(SlotId(id), request, now, place.cylinder, place.head);
        self.queue.insert(entry).expect("room was reserved");
    }

    /// Joins a write to the dirty run that it continues, the youngest first; returns the run's number.
    fn extend_run(&mut self, cache: &Cache, job: &Job) -> Option<u32> {
        let request = job.command.request;
        let most = cache.segment_sectors();
        let fits = |run: &Run| run.end == request.lbn && request.end() - run.start <= most;
        let youngest = self.queue.slots().last().filter(|_| self.policy == WriteCache::Full)?.id.0;
        let id = if fits(&self.runs[youngest as usize]) {
            youngest
        } else {
            self.runs.find_run(request.lbn, fits)?
        };
        self.runs.extend(id, |run| {
            run.end = request.end();
            run.has_grown = true;
            // The model assumes that they arrive without a gap, the last of them no earlier than it does.
            let all = run.arriving.time_of(run.end - run.start);
            run.arriving.begins += job.arriving.time_of(u64::from(request.sectors)).since(all);
        });
        Some(id)
    }

    /// When destaging should start if no command needs the arm; `Instant::MAX` when nothing is dirty.
    #[inline]
    pub(super) fn due(&self) -> Instant {
        match self.queue.is_empty() {
            true => Instant::MAX,
            false if self.policy != WriteCache::Full || self.presses() => Instant::ZERO,
            false => self.quiet_since + self.idle,
        }
    }

    /// Whether dirty data go before the waiting commands.
    #[inline]
    pub(super) fn is_first(&self, jobs: &[Job]) -> bool {
        !self.queue.is_empty() && self.precedes(jobs)
    }

    fn precedes(&self, jobs: &[Job]) -> bool {
        // A queued flush, writes for which the cache has no room, and the commands that wait for the arm have equal rights: they
        // alternate, so that none waits for all of another. A flush for the head of the queue goes before all.
        let attribute = |slot: &u32| jobs[*slot as usize].command.attribute;
        self.policy != WriteCache::Full
            || self.presses() && !self.last_was_destage
            || self.flushes.iter().any(|slot| attribute(slot) == TaskAttribute::HeadOfQueue)
    }

    /// Starts to write a dirty run; false if there is none.
    pub(super) fn start(&mut self, disk: &mut DiskArm, now: Instant) -> bool {
        if self.queue.is_empty() {
            return false;
        }
        if disk.shingled.is_some() {
            return self.start_shingled(disk, now);
        }
        let arm = disk.arm_from(now);
        let index = self.next(disk, arm);
        let run = self.take_piece(disk, index, arm);
        self.current = Some(run);
        self.last_was_destage = true;
        let begins = arm.at.max(run.not_before);
        let blocks = run.start..run.end;
        let extra = self.extra_before(disk, run.start);
        let known = self.known_around(disk, &run);
        let (mut span, travel) = disk.write_span(begins, blocks.clone(), known, run.arriving, Room::ENDLESS);
        let lost = disk.slowness_time(PlannedAccess { begins, ends: span.end, blocks });
        disk.put_off(&mut span, lost);
        disk.account_destage(&span, travel, run.start..run.end, extra);
        span.end += extra;
        disk.arm.at = span.end;
        disk.occupy(Work::Writing { slot: None }, span.end);
        true
    }

    /// Time that the next destage, from `start` on, takes beyond its access: in full from a 256th of the cylinders on, else its share.
    fn extra_before(&self, disk: &DiskArm, start: Lbn) -> Nanos {
        if self.extra == Nanos::ZERO || start == disk.last_lbn {
            return Nanos::ZERO;
        }
        let distance = disk.arm.place.cylinder.abs_diff(disk.drive.target(start).0.cylinder);
        let near = u64::from(disk.cylinders / 256).max(1);
        Nanos(self.extra.0 * u64::from(distance).min(near) / near)
    }

    /// Whether a dirty run begins at a block at which the last access ended, where the drive chooses among its runs.
    pub(super) fn continues_at(&self, lbn: Lbn) -> bool {
        self.order.is_some() && self.continuing(lbn).is_some()
    }

    fn continuing(&self, lbn: Lbn) -> Option<u32> {
        self.runs.find_run(lbn, |run| run.start == lbn)
    }

    /// The place in the queue of the run that goes next: the one that continues the last access, or the choice of the order.
    fn next(&mut self, disk: &DiskArm, arm: Arm) -> usize {
        // Also in order of arrival: the data of two commands can arrive in another order than they.
        if let Some(id) = self.continuing(disk.last_lbn) {
            let place = self.queue.slots().iter().position(|slot| slot.id.0 == id);
            return place.expect("every dirty run is in the queue");
        }
        let Some(order) = &mut self.order else { return 0 };
        let cost = Cost { disk, buffer: (), targets: &self.runs, arm };
        order.pick(&self.queue.view(arm.at), &cost).unwrap_or(0)
    }

    /// Removes a run, or its first piece where it is longer than one, to be written from `arm` on.
    fn take_piece(&mut self, disk: &mut DiskArm, index: usize, arm: Arm) -> Run {
        let id = self.queue.slots()[index].id.0;
        let whole = self.runs[id as usize];
        let begins = arm.at.max(whole.not_before);
        let Some(cut) = self.cut_of(&whole, arm.at, disk.physical_sectors) else {
            self.queue.remove(index);
            if let Some(record) = &mut disk.record {
                record.begin(List::Run(id), begins);
            }
            return self.runs.remove(id);
        };
        let place = disk.drive.target(cut);
        self.runs.cut_front(id, cut, |rest| {
            (rest.place, rest.angle) = place;
            rest.arriving.begins = whole.arriving.time_of(cut - whole.start);
        });
        if let Some(record) = &mut disk.record {
            record.begin_several(begins);
            record.bear(List::Run(id), whole.start..cut);
        }
        Run { end: cut, ..whole }
    }

    /// A run with the rest of the physical sectors at its ends, where the drive has it: in front from the access before, behind as dirty.
    fn known_around(&self, disk: &DiskArm, run: &Run) -> Range<Lbn> {
        let physical = disk.physical_sectors;
        let (mut start, mut end) = (run.start.0, run.end.0);
        if run.start == disk.last_lbn {
            start = start / physical * physical;
        }
        if !end.is_multiple_of(physical) && self.continuing(run.end).is_some() {
            end = end.next_multiple_of(physical);
        }
        Lbn(start)..Lbn(end)
    }

    /// Up to where a run is written first; none if it is written whole.
    fn cut_of(&self, run: &Run, now: Instant, physical: u64) -> Option<Lbn> {
        // A part of a physical sector would be read before it is written.
        let whole_before = |end: Lbn| Lbn(end.0 / physical * physical);
        let piece = whole_before(run.start + self.piece).max(run.start + 1);
        if self.piece > 0 && piece < run.end {
            return Some(piece);
        }
        // The rest of the last physical sector probably comes with the next write of a run that has grown.
        let rest = whole_before(run.end);
        let waits = run.has_grown && self.flushes.is_empty() && now < self.quiet_since + self.idle;
        (waits && run.start < rest && rest < run.end).then_some(rest)
    }

    pub(super) fn finish(&mut self, cache: &mut Cache) {
        if !self.batch.is_empty() {
            return self.finish_batch();
        }
        let run = self.current.take().expect("a run was being written");
        if self.policy == WriteCache::Full {
            self.sectors -= run.end - run.start;
        }
        self.clean(cache, run.segment, run.end);
    }

    /// Records that data up to `end` are on the media: their segment is clean unless more data arrived after them.
    pub(super) fn clean(&self, cache: &mut Cache, segment: Option<usize>, end: Lbn) {
        if let Some(index) = segment
            && cache.blocks(index).end == end
        {
            cache.slide(index, end);
            cache.set_state(index, SegmentState::Written);
        }
    }

    /// The next flush that has nothing left to wait for.
    pub(super) fn next_flushed(&mut self) -> Option<u32> {
        if self.is_clean() { self.flushes.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Device, DeviceOptions};
    use headstack_model::{Instant, Lbn, Request, drives};

    #[test]
    fn scattered_writes_complete_within_the_dirty_run_limit() {
        let mut spec = drives::load("st2000dm006").expect("the drive is shipped");
        spec.cache.dirty_runs_max = 3;
        let mut device = Device::new(&spec, &DeviceOptions::default()).expect("the drive file is good");
        let (mut now, mut begun, mut done) = (Instant::ZERO, 0u64, 0);
        while done < 500 {
            while begun < 500
                && device.submit(now, Request::write(Lbn(begun * 7_654_320 % 3_900_000_000), 8)).is_ok()
            {
                begun += 1;
            }
            now = device.poll_timeout().expect("writes are outstanding");
            device.handle_timeout(now);
            while device.poll_completion().is_some() {
                done += 1;
            }
            assert!(device.destage.queue.len() + device.destage.reserved <= 3);
        }
        assert_eq!(device.outstanding(), 0);
    }
}
