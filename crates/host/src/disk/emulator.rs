//! An emulated disk without its clock: it maps operations in bytes to requests of the model, and completes them.

use super::books::{Books, Kind};
use super::copies::CopiesFile;
use super::live::LiveEvent;
use super::machine::{Ended, Machine};
use super::rules::{FaultRules, FaultVerdict};
use super::strikes;
use super::task::{Extent, Pending, Task};
use super::unwritten::Content;
use super::volume::Volume;
use super::zones::ZonesFile;
use crate::{BlockError, Operation, StatusExtent};
use headstack_model::{Geometry, Instant, Nanos, Op};
use headstack_sim::Engine;
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};

/// Faults of an emulated disk as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmulatorFaults {
    /// When its power is cut.
    pub power_cut: Option<Instant>,
    /// It acknowledges flushes at once and ignores FUA, as some real disks do.
    pub ignore_flush: bool,
}

/// Result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The operation succeeded.
    Done,
    /// [`Emulator::read`] returns these bytes now.
    Read {
        /// Index of the volume.
        volume: u32,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        bytes: u32,
    },
    /// Extents of data and holes.
    Allocation(Vec<StatusExtent>),
}

/// A completed operation.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Answered {
    pub ticket: u64,
    pub at: Instant,
    pub result: Result<Outcome, BlockError>,
}

/// Disks that share nothing with any other, their bytes, and the pending operations.
#[derive(Debug)]
pub struct Emulator {
    pub(super) machine: Machine,
    pub(super) volumes: Vec<Volume>,
    /// The hot block tables that are kept, by volume.
    pub(super) tables: Vec<(usize, CopiesFile)>,
    /// The write pointers of zones that are kept, by volume.
    pub(super) zones: Vec<(usize, ZonesFile)>,
    books: Vec<Books>,
    faults: EmulatorFaults,
    rules: FaultRules,
    /// Answers that a rule delays, by the times at which they are due.
    delayed: BTreeMap<(Instant, u64), Answered>,
    pending: Slab<Pending>,
    answered: VecDeque<Answered>,
    /// Time reached. An earlier `now` counts as this one: a caller runs the model slightly ahead to send answers in time, and may
    /// submit a request meanwhile.
    now: Instant,
    /// Whether operations end after the piece in progress.
    stopping: bool,
    dark: bool,
}

impl Emulator {
    /// Emulates the volumes of an engine, in the engine's order.
    ///
    /// *Errors:* a power cut of a volume whose model does not know what is on its media (an array, or a drive behind a page cache
    /// or a controller's memory): the volume's name.
    pub fn new(
        mut engine: Engine,
        mut volumes: Vec<Volume>,
        faults: EmulatorFaults,
    ) -> Result<Emulator, String> {
        engine.track_media();
        for (number, volume) in volumes.iter_mut().enumerate() {
            volume.tells_media = engine.tells_media(number);
            if faults.power_cut.is_some() && !volume.tells_media {
                return Err(volume.info().name.clone());
            }
        }
        Ok(Emulator::with(Machine::rig(engine), volumes, faults))
    }

    /// A disk that takes no time.
    pub fn null(volume: Volume) -> Emulator {
        Emulator::with(Machine::null(), vec![volume], EmulatorFaults::default())
    }

    fn with(machine: Machine, volumes: Vec<Volume>, faults: EmulatorFaults) -> Emulator {
        Emulator {
            machine,
            books: volumes.iter().map(|_| Books::new()).collect(),
            volumes,
            tables: Vec::new(),
            zones: Vec::new(),
            faults,
            rules: FaultRules::default(),
            delayed: BTreeMap::new(),
            pending: Slab::new(),
            answered: VecDeque::new(),
            now: Instant::ZERO,
            stopping: false,
            dark: false,
        }
    }

    /// The volumes.
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    /// The model; none for the null disk.
    pub fn engine(&self) -> Option<&Engine> {
        self.machine.engine()
    }

    /// Appends the events of the model since the last call to `into`; returns how many were dropped because they were not drained in time.
    /// Events are recorded from the first call on.
    pub fn drain_events(&mut self, into: &mut Vec<LiveEvent>) -> u64 {
        self.machine.drain_events(into)
    }

    /// Whether answers have deadlines, rather than being sent as soon as possible.
    pub(crate) fn has_deadlines(&self) -> bool {
        self.engine().is_some()
    }

    /// Statistics of a volume.
    pub fn books(&self, volume: u32) -> &Books {
        &self.books[volume as usize]
    }

    /// Number of pending operations.
    pub fn outstanding(&self) -> usize {
        self.pending.len() + self.delayed.len()
    }

    /// The faults that a test has set.
    pub fn rules(&mut self) -> &mut FaultRules {
        &mut self.rules
    }

    /// The places of a volume's blocks, if it is one drive.
    pub fn geometry(&self, volume: u32) -> Option<&Geometry> {
        let engine = self.engine().filter(|engine| engine.devices() == self.volumes.len())?;
        Some(&engine.device(volume as usize).drive().geometry)
    }

    /// Whether the power was cut.
    pub fn is_dark(&self) -> bool {
        self.dark
    }

    /// Reads the newest data, in no time.
    ///
    /// *Errors:* beyond the end of the volume; no power.
    pub fn read(&self, volume: u32, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        if self.dark {
            return Err(BlockError::Dead);
        }
        self.volumes[volume as usize].read(offset, into)
    }

    /// Submits an operation on a volume; [`Emulator::poll_answer`] returns it with its ticket.
    pub fn submit(&mut self, now: Instant, volume: u32, mut operation: Operation, ticket: u64) {
        self.handle_timeout(now);
        let now = self.now;
        let asked = Kind::from_operation(&operation);
        let FaultVerdict { error, delay, corrupt } = self.strike(volume, &operation);
        let begun = match (error, corrupt) {
            (Some(error), _) => Err(error),
            (None, Some(blocks)) => {
                let place = &mut self.volumes[volume as usize];
                strikes::corrupt(place, &mut operation, &blocks).and_then(|()| self.begin(volume, operation))
            }
            (None, None) => self.begin(volume, operation),
        };
        match begun {
            Ok((task, outcome)) => {
                let slot =
                    self.pending.insert(Pending { ticket, volume, task, outcome, asked, begun: now, delay });
                self.start_next_piece(now, slot);
                self.collect(now);
            }
            Err(error) => {
                self.record(volume, asked, Nanos::ZERO, false);
                self.answered.push_back(Answered { ticket, at: now, result: Err(error) });
            }
        }
    }

    /// What the rules do to an operation.
    fn strike(&mut self, volume: u32, operation: &Operation) -> FaultVerdict {
        let block = u64::from(self.volumes[volume as usize].info().sector_bytes);
        let mut rules = std::mem::take(&mut self.rules);
        let verdict = rules.strike(volume, operation, block, self.geometry(volume));
        self.rules = rules;
        verdict
    }

    fn record(&mut self, volume: u32, asked: Option<(Kind, u64)>, took: Nanos, is_done: bool) {
        if let Some(asked) = asked {
            self.books[volume as usize].record(asked, took, is_done);
        }
    }

    /// Handles all that is due up to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.faults.power_cut {
            Some(at) if at <= now => self.cut_power(at),
            _ => self.run_due(now),
        }
        self.now = self.now.max(now);
        while let Some(first) = self.delayed.first_entry().filter(|first| first.key().0 <= self.now) {
            self.answered.push_back(first.remove());
        }
    }

    fn run_due(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if !self.dark {
            self.machine.handle_timeout(self.now);
            self.collect(self.now);
            self.bury();
            self.record_copies();
        }
    }

    /// Drops the dirty data of volumes whose drives have died.
    fn bury(&mut self) {
        let Some(engine) = self.machine.engine_mut() else { return };
        for (number, volume) in self.volumes.iter_mut().enumerate() {
            if !volume.is_dead() && engine.has_died(number) {
                settle(engine, number, volume);
                volume.die();
            }
        }
    }

    /// The next completed operation.
    pub fn poll_answer(&mut self) -> Option<Answered> {
        self.answered.pop_front()
    }

    /// When [`Emulator::handle_timeout`] is due; `None` if only a new operation can change anything.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = self.machine.poll_timeout().filter(|_| !self.dark);
        let delayed = self.delayed.keys().next().map(|(at, _)| *at);
        next.into_iter().chain(self.faults.power_cut).chain(delayed).min()
    }

    /// Cuts the power: dirty data are lost, pending and later operations fail. The access in progress is torn between two blocks.
    pub fn cut_power(&mut self, now: Instant) {
        self.faults.power_cut = None;
        if self.dark {
            return;
        }
        self.run_due(now);
        let now = self.now;
        if let Some(engine) = self.machine.engine_mut() {
            engine.cut_power(now);
        }
        self.settle_media();
        self.record_zones(true);
        self.dark = true;
        self.volumes.iter_mut().for_each(Volume::forget);
        let slots: Vec<_> = self.pending.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.finish(slot, now, Err(BlockError::Dead));
        }
        let delayed = std::mem::take(&mut self.delayed).into_values();
        self.answered.extend(delayed.map(|answered| Answered {
            at: now,
            result: Err(BlockError::Dead),
            ..answered
        }));
    }

    /// Ends operations with the piece in flight; those with pieces left fail.
    pub fn stop_long_tasks(&mut self) {
        self.stopping = true;
    }

    /// Ends in an orderly way: writes all dirty data to the media, in no model time, and then the hot block tables and the write pointers.
    /// The data of a dead drive stay lost.
    ///
    /// *Errors:* no space is left for the data.
    pub fn finish_writing(&mut self) -> Result<(), BlockError> {
        let all = self.volumes.iter_mut().map(|volume| {
            volume.settle(0, u64::MAX, Instant::MAX);
            volume.try_again()
        });
        let written = all.fold(Ok(()), Result::and);
        // After a power cut, each copy counts as newer than its home.
        let closed = if self.dark { Ok(()) } else { self.close_copies() };
        written.and(closed).and(self.close_zones())
    }

    /// The model's task for an operation, and its outcome. Copies the bytes that come with it.
    fn begin(&mut self, volume: u32, operation: Operation) -> Result<(Task, Outcome), BlockError> {
        let (now, lies) = (self.now, self.faults.ignore_flush);
        let place = &mut self.volumes[volume as usize];
        let extent = Extent { block: u64::from(place.info().sector_bytes), total: place.info().bytes() };
        if self.dark {
            return Err(BlockError::Dead);
        }
        match operation {
            Operation::Write { .. } | Operation::WriteZeroes { .. } | Operation::Flush => {
                place.try_again()?
            }
            // The model handles the other operations, and reports their failure.
            Operation::Trim { .. } | Operation::Allocation { .. } if place.is_dead() => {
                return Err(BlockError::Dead);
            }
            _ => {}
        }
        let write = |fua: bool, zeros| Task { op: Op::Write, fua: fua && !lies, zeros, ..Task::NOTHING };
        Ok(match operation {
            Operation::Read { offset, bytes, fua } => {
                let task = extent.around(offset, u64::from(bytes), Task { fua, ..Task::NOTHING })?;
                (task, Outcome::Read { volume, offset, bytes })
            }
            Operation::Prefetch { offset, bytes } => {
                (extent.around(offset, bytes, Task::NOTHING)?, Outcome::Done)
            }
            Operation::Write { offset, data, fua } => {
                let task = extent.exactly(offset, data.len() as u64, write(fua, None))?;
                place.write(now, offset, Content::Data(data))?;
                (task, Outcome::Done)
            }
            Operation::WriteZeroes { offset, bytes, may_trim, fua } => {
                (extent.exactly(offset, bytes, write(fua, Some(may_trim)))?, Outcome::Done)
            }
            Operation::Trim { offset, bytes } => {
                extent.exactly(offset, bytes, Task::NOTHING)?;
                place.trim(offset, bytes)?;
                (Task::NOTHING, Outcome::Done)
            }
            Operation::Allocation { offset, bytes } => {
                extent.around(offset, bytes, Task::NOTHING)?;
                (Task::NOTHING, Outcome::Allocation(place.allocation(offset, bytes)))
            }
            Operation::Flush if lies => (Task::NOTHING, Outcome::Done),
            Operation::Flush => (Task::FLUSH, Outcome::Done),
        })
    }

    /// Submits the next piece of an operation to the model, or completes the operation.
    fn start_next_piece(&mut self, now: Instant, slot: usize) {
        let pending = &mut self.pending[slot];
        let place = &mut self.volumes[pending.volume as usize];
        let block = u64::from(place.info().sector_bytes);
        let (zeros, volume) = (pending.task.zeros, pending.volume);
        let Some(request) = pending.task.next_piece(block) else {
            let outcome = pending.outcome.clone();
            return self.finish(slot, now, Ok(outcome));
        };
        if let Some(may_trim) = zeros {
            let zeros = Content::Zeros { bytes: u64::from(request.sectors) * block, may_trim };
            if let Err(error) = place.write(now, request.lbn.0 * block, zeros) {
                return self.finish(slot, now, Err(error));
            }
        }
        self.machine.submit(now, volume, request, slot as u64);
    }

    fn collect(&mut self, now: Instant) {
        let mut has_settled = false;
        loop {
            has_settled |= self.settle_media();
            let Some(Ended { id, at, outcome }) = self.machine.poll_ended() else { break };
            has_settled = true;
            let slot = id as usize;
            match outcome.result() {
                Err(error) => self.finish(slot, at, Err(error)),
                Ok(()) => self.end_piece(now, at, slot),
            }
        }
        self.record_zones(has_settled);
    }

    /// Handles a completed piece. The last one completes the operation at the model's time; others are followed by the next
    /// piece, unless the store refuses the data on the media or the disk is stopping.
    fn end_piece(&mut self, now: Instant, at: Instant, slot: usize) {
        let Some(pending) = self.pending.get(slot) else { return };
        let is_last = pending.task.is_over();
        let keeps = matches!(pending.asked, Some((Kind::Write | Kind::Flush, _)));
        match self.volumes[pending.volume as usize].failed().filter(|_| keeps) {
            Some(error) => self.finish(slot, at, Err(error)),
            None if self.stopping && !is_last => self.finish(slot, at, Err(BlockError::ShuttingDown)),
            None => self.start_next_piece(if is_last { at } else { now }, slot),
        }
    }

    /// Updates all stores to what is on the media; returns whether anything is new there.
    fn settle_media(&mut self) -> bool {
        let Some(engine) = self.machine.engine_mut() else { return false };
        let settled =
            self.volumes.iter_mut().enumerate().map(|(number, volume)| settle(engine, number, volume));
        settled.fold(false, |any, one| any | one)
    }

    fn finish(&mut self, slot: usize, at: Instant, result: Result<Outcome, BlockError>) {
        if let Some(pending) = self.pending.try_remove(slot) {
            let at = at + pending.delay;
            if pending.asked.is_some() {
                self.books[pending.volume as usize].note_span(pending.begun, at);
            }
            self.record(pending.volume, pending.asked, at.since(pending.begun), result.is_ok());
            let answered = Answered { ticket: pending.ticket, at, result };
            if pending.delay == Nanos::ZERO {
                self.answered.push_back(answered);
            } else {
                self.delayed.insert((at, pending.ticket), answered);
            }
        }
    }
}

/// Updates a volume's store to what is on its media; returns whether anything is new there.
fn settle(engine: &mut Engine, number: usize, volume: &mut Volume) -> bool {
    let block = u64::from(volume.info().sector_bytes);
    let mut is_any = false;
    while let Some(written) = engine.poll_media_write(number) {
        volume.settle(written.start.0 * block, written.end.0 * block, written.submitted);
        is_any = true;
    }
    is_any
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Store;
    use headstack_sim::rig::shipped;

    fn drive(name: &str) -> Emulator {
        let rig = shipped::load(name).expect("it is shipped");
        let engine = rig.build(0).expect("it is good");
        let info = rig.volumes().remove(0);
        let store = Store::memory(info.bytes()).expect("unused memory is free");
        Emulator::new(engine, vec![Volume::new(info, store)], EmulatorFaults::default())
            .expect("a drive tells what is on its media")
    }

    fn ask(emulator: &mut Emulator, operation: Operation) -> Result<Outcome, BlockError> {
        emulator.submit(Instant::ZERO, 0, operation, 0);
        loop {
            match emulator.poll_answer() {
                Some(answered) => return answered.result,
                None => {
                    let next = emulator.poll_timeout().expect("it is in flight");
                    emulator.handle_timeout(next);
                }
            }
        }
    }

    #[test]
    fn host_write_failure_is_reported_until_the_store_recovers() {
        let write = |fua| Operation::Write { offset: 0, data: vec![1; 4096], fua };
        // A write-back drive, and a drive without a write cache.
        for (name, through) in [("st2000dm006", false), ("atlas-10k", true)] {
            let mut emulator = drive(name);
            assert_eq!(ask(&mut emulator, write(false)), Ok(Outcome::Done));
            assert_eq!(ask(&mut emulator, Operation::Flush), Ok(Outcome::Done));
            let good = emulator.volumes[0].be_read_only();
            if !through {
                assert_eq!(ask(&mut emulator, write(false)), Ok(Outcome::Done), "the cache takes it");
                assert_eq!(ask(&mut emulator, Operation::Flush), Err(BlockError::Medium));
            }
            assert_eq!(ask(&mut emulator, write(true)), Err(BlockError::Medium), "{name}");
            assert_eq!(ask(&mut emulator, Operation::Flush), Err(BlockError::Medium));
            let read = Operation::Read { offset: 0, bytes: 512, fua: false };
            assert!(ask(&mut emulator, read).is_ok(), "what is there is read on");
            emulator.volumes[0].take_store(good);
            assert_eq!(ask(&mut emulator, Operation::Flush), Ok(Outcome::Done));
            assert_eq!(ask(&mut emulator, write(true)), Ok(Outcome::Done));
            assert_eq!(emulator.finish_writing(), Ok(()));
        }
    }
}
