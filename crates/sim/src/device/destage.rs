//! Destaging: written data on their way from the cache to the media.

mod choice;
mod joined;

use super::media::{Arm, Arriving, Room};
use super::port::Wanted;
use super::split::Part;
use super::{Device, TaskAttribute, Work};
use headstack_model::cache::SegmentState;
use headstack_model::spec::{JoinedWrites, WriteCache};
use headstack_model::{Angle, DriveSpec, Lbn, Nanos, TrackPlace};
use headstack_policy::order::{self, BuiltIn};
use headstack_policy::{Queue, Slot, SlotId};
use std::collections::VecDeque;

/// A run of dirty blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    start: Lbn,
    end: Lbn,
    arriving: Arriving,
    not_before: Nanos,
    segment: Option<usize>,
    /// Where its first block lies, for the order of destaging.
    place: TrackPlace,
    angle: Angle,
}

/// Dirty data, and the commands that wait for them.
#[derive(Debug)]
pub(super) struct Destage {
    pub(super) policy: WriteCache,
    joined: JoinedWrites,
    order: BuiltIn,
    runs: Vec<Run>,
    free: Vec<u32>,
    /// Runs that wait for the arm. Kept in order of arrival too.
    queue: Queue,
    /// Writes for which room in the queue is reserved until their data have arrived.
    reserved: usize,
    /// The run being written.
    current: Option<Run>,
    /// Whether the head passes over the blocks of a write that joined the run and has its own destage later.
    goes_over: bool,
    sectors: u64,
    most: u64,
    pressed: u64,
    idle: Nanos,
    /// When the oldest idle time began.
    quiet_since: Nanos,
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
        let room = match cache.write_cache {
            WriteCache::None => 1,
            WriteCache::Full => (cache.dirty_runs_max as usize).min(Queue::MAX_CAPACITY),
            _ => Queue::MAX_CAPACITY,
        };
        Ok(Destage {
            policy: cache.write_cache,
            joined: cache.joined_writes,
            order: order::built_in(&cache.destage_order)?,
            runs: Vec::with_capacity(room),
            free: Vec::with_capacity(room),
            queue: Queue::new(room),
            current: None,
            goes_over: false,
            reserved: 0,
            sectors: 0,
            most: cache.dirty_max_sectors,
            pressed: cache.dirty_start_sectors,
            idle: Nanos::from_ms(cache.destage_idle_ms),
            quiet_since: Nanos::ZERO,
            last_was_destage: false,
            blocked: VecDeque::with_capacity(spec.queue.depth as usize),
            flushes: VecDeque::with_capacity(spec.queue.depth as usize),
        })
    }

    /// Whether dirty data cover all of `start..end`.
    pub(super) fn holds(&self, start: Lbn, end: Lbn) -> bool {
        if self.policy != WriteCache::Full {
            return false;
        }
        let holds = |run: &Run| run.start <= start && end <= run.end;
        let waits = self.queue.slots().iter().any(|slot| holds(&self.runs[slot.id.0 as usize]));
        waits || self.current.as_ref().is_some_and(holds)
    }

    /// Blocks that are in the cache and not on the media.
    pub(super) fn dirty_sectors(&self) -> u64 {
        let waiting = self.queue.slots().iter().map(|slot| &self.runs[slot.id.0 as usize]);
        waiting.chain(&self.current).map(|run| run.end - run.start).sum()
    }

    pub(super) fn is_clean(&self) -> bool {
        self.queue.is_empty() && self.current.is_none() && self.reserved == 0
    }

    /// Whether the head has passed over the joined blocks; resets the flag.
    pub(super) fn ends_going_over(&mut self) -> bool {
        std::mem::take(&mut self.goes_over)
    }

    /// First block of `segment` that is in the cache and not on the media.
    fn dirty_from(&self) -> Option<Lbn> {
        self.current.as_ref().map(|run| run.start)
    }

    /// Whether only the write that is being written to the media has its data in the cache, or on their way there.
    fn none_waits(&self) -> bool {
        self.queue.is_empty() && self.reserved == 0
    }

    /// The run that is being written to the media, and the oldest waiting one, if it continues that run.
    fn current_and_joined(&self) -> Option<(Run, Run)> {
        let current = self.current?;
        let next = self.runs[self.queue.slots().first()?.id.0 as usize];
        (next.start == current.end).then_some((current, next))
    }

    fn forced(&self) -> bool {
        !self.blocked.is_empty() || !self.flushes.is_empty()
    }
}

impl Device {
    /// Reserves room in the cache for a write; false if there is none, or a flush is in progress.
    pub(super) fn reserve_write(&mut self, slot: u32) -> bool {
        let request = self.commands.jobs[slot as usize].command.request;
        let is_full = self.destage.queue.len() + self.destage.reserved >= self.destage.queue.capacity();
        // Writes accepted during a flush would delay its end for as long as more arrive.
        if is_full || !self.destage.flushes.is_empty() {
            return false;
        }
        if self.destage.policy == WriteCache::Full {
            let sectors = u64::from(request.sectors);
            if self.destage.sectors > 0 && self.destage.sectors + sectors > self.destage.most {
                return false;
            }
            self.destage.sectors += sectors;
            self.destage.reserved += 1;
            self.cache.invalidate(request.lbn, request.end(), None);
            return true;
        }
        let written_to = self.destage.dirty_from().unwrap_or(Lbn(0));
        let taken = self.cache.take_for_write(request.lbn, request.end(), written_to);
        let Some(segment) = taken else { return false };
        self.cache.invalidate(request.lbn, request.end(), Some(segment));
        self.job(slot).segment = Some(segment);
        self.destage.reserved += 1;
        true
    }

    /// Adds a write's data, for which room was reserved, to the dirty ones.
    pub(super) fn enqueue_dirty(&mut self, slot: u32) {
        self.destage.reserved -= 1;
        let job = self.commands.jobs[slot as usize];
        if self.destage.policy == WriteCache::Full && self.extend_last(slot) {
            return;
        }
        let (place, angle) = self.drive.target(job.command.request.lbn);
        let run = Run {
            start: job.command.request.lbn,
            end: job.command.request.end(),
            arriving: job.arriving,
            not_before: job.overhead_done,
            segment: job.segment,
            place,
            angle,
        };
        let destage = &mut self.destage;
        let id = match destage.free.pop() {
            Some(id) => {
                destage.runs[id as usize] = run;
                id
            }
            None => {
                destage.runs.push(run);
                (destage.runs.len() - 1) as u32
            }
        };
        self.note_dirty(slot, id);
        let entry = Slot::new(SlotId(id), job.command.request, self.now, place.cylinder, place.head);
        self.destage.queue.insert(entry).expect("room was reserved");
        self.destage.quiet_since = self.now;
    }

    /// Joins a write to the youngest dirty run when it continues it.
    fn extend_last(&mut self, slot: u32) -> bool {
        let job = self.commands.jobs[slot as usize];
        let request = job.command.request;
        let Some(youngest) = self.destage.queue.slots().last() else { return false };
        let id = youngest.id.0;
        let run = &mut self.destage.runs[id as usize];
        if run.end != request.lbn || (request.end() - run.start) > self.cache.segment_sectors() {
            return false;
        }
        run.end = request.end();
        // The model assumes that they arrive without a gap, the last of them no earlier than it does.
        let all = run.arriving.time_of(run.end - run.start);
        run.arriving.begins += job.arriving.time_of(u64::from(request.sectors)).since(all);
        self.note_dirty(slot, id);
        self.destage.quiet_since = self.now;
        true
    }

    /// When destaging should start if no command needs the arm; `Nanos::MAX` when nothing is dirty.
    pub(super) fn destage_due(&self) -> Nanos {
        let destage = &self.destage;
        if destage.queue.is_empty() {
            return Nanos::MAX;
        }
        let at_once =
            destage.policy != WriteCache::Full || destage.forced() || destage.sectors >= destage.pressed;
        if at_once { Nanos::ZERO } else { destage.quiet_since + destage.idle }
    }

    /// Whether dirty data go before the commands that wait.
    pub(super) fn destage_first(&self) -> bool {
        let destage = &self.destage;
        if destage.queue.is_empty() {
            return false;
        }
        if destage.policy != WriteCache::Full {
            return true;
        }
        // A queued flush, writes for which the cache has no room, and the commands that wait for the arm have equal rights: they
        // alternate, so that none waits for all of another.
        let presses = destage.forced() || destage.sectors >= destage.pressed;
        presses && !destage.last_was_destage || self.is_flush_at_head()
    }

    /// Whether a flush in progress is one for the head of the queue.
    fn is_flush_at_head(&self) -> bool {
        let attribute = |slot: &u32| self.commands.jobs[*slot as usize].command.attribute;
        self.destage.flushes.iter().any(|slot| attribute(slot) == TaskAttribute::HeadOfQueue)
    }

    /// Starts to write a dirty run; false if there is none.
    pub(super) fn start_destage(&mut self) -> bool {
        if self.destage.queue.is_empty() {
            return false;
        }
        let index = match self.destage.policy {
            WriteCache::Full => {
                let arm = Arm { place: self.arm.place, at: self.arm.at.max(self.now) };
                self.destage.choose(&self.drive, self.size.cylinders, arm, self.last.lbn)
            }
            _ => 0,
        };
        let id = self.destage.queue.remove(index).id.0;
        let run = self.destage.runs[id as usize];
        self.destage.free.push(id);
        self.destage.current = Some(run);
        self.destage.last_was_destage = true;
        let begins = self.arm.at.max(self.now).max(run.not_before);
        if let Some(record) = &mut self.record {
            record.begin_run(id, begins);
        }
        let (mut span, travel) = self.write_span(begins, run.start..run.end, run.arriving, Room::ENDLESS);
        self.activity.destage(&span, travel);
        span.end += self.config.destage_extra;
        self.arm.at = span.end;
        self.arm_event = span.end;
        self.work = Work::Writing { slot: None };
        true
    }

    /// A dirty run is on the media.
    pub(super) fn finish_destage(&mut self) {
        let run = self.destage.current.take().expect("a run was being written");
        if self.destage.policy == WriteCache::Full {
            self.destage.sectors -= run.end - run.start;
        }
        self.settle_segment(run.segment, run.end);
        self.finish_flushes(self.now);
        self.unblock();
    }

    /// Data up to `end` are on the media: their segment is clean unless more arrived behind them.
    pub(super) fn settle_segment(&mut self, segment: Option<usize>, end: Lbn) {
        if let Some(index) = segment
            && self.cache.segment(index).end == end
        {
            self.cache.slide(index, end);
            self.cache.set_state(index, SegmentState::Written);
        }
    }

    /// Accepts writes that waited for room.
    pub(super) fn unblock(&mut self) {
        while let Some(slot) = self.destage.blocked.front().copied() {
            if !self.reserve_write(slot) {
                return;
            }
            self.destage.blocked.pop_front();
            self.want_port(self.now, slot, Wanted::FromHost);
        }
    }

    /// Ends the flushes once nothing is dirty.
    pub(super) fn finish_flushes(&mut self, at: Nanos) {
        if !self.destage.is_clean() {
            return;
        }
        while let Some(slot) = self.destage.flushes.pop_front() {
            let done = at + self.config.flush;
            self.job(slot).account(Part::Cache, done);
            self.want_port(done, slot, Wanted::Finish);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Device, DeviceOptions};
    use headstack_model::{Lbn, Nanos, Request, drives};

    #[test]
    fn scattered_writes_complete_within_the_dirty_run_limit() {
        let mut spec = drives::load("st2000dm006").expect("the drive is shipped");
        spec.cache.dirty_runs_max = 3;
        let mut device = Device::new(&spec, &DeviceOptions::default()).expect("the drive file is good");
        let (mut now, mut begun, mut done) = (Nanos::ZERO, 0u64, 0);
        while done < 500 {
            while begun < 500
                && device.submit(now, Request::write(Lbn(begun * 7_654_320 % 3_900_000_000), 8)).is_ok()
            {
                begun += 1;
            }
            now = device.poll_timeout().expect("writes are under way");
            device.handle_timeout(now);
            while device.poll_completion().is_some() {
                done += 1;
            }
            assert!(device.destage.queue.len() + device.destage.reserved <= 3);
        }
        assert_eq!(device.outstanding(), 0);
    }
}
