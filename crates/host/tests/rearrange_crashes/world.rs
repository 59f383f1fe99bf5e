//! A node with a rearranger over a disk that loses what was not flushed, from a seed: requests, copies, periods and crashes.

use crate::disk::{CachedDisk, SECTOR};
use crate::history::History;
use headstack_host::node::{
    Action, Answered, Command, Ended, NodeCore, NodeRearranger, Outcome, RequestKind, Shape,
};
use headstack_host::{BlockError, Operation, StatusExtent};
use headstack_model::{Instant, Lbn, Nanos};
use headstack_streams::rearrange::RearrangeSpec;
use headstack_streams::rearrange_table::{RecoveredTable, RegionLabel, RegionRequest, SECTOR_BYTES};
use headstack_streams::streams::Config;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// Bytes of a block of the region.
const BLOCK: u64 = 4096;

/// Sectors that clients see.
const VISIBLE_SECTORS: u64 = 80 * 8;

/// Sectors behind the last whole page of the disk.
const TAIL_SECTORS: u64 = 3;

/// Counts of events, so that a test can assert that its worlds cover the intended cases.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Events {
    pub(crate) crashes: u64,
    pub(crate) orderly_ends: u64,
    pub(crate) hits: u64,
    pub(crate) copied_in: u64,
    pub(crate) written_home: u64,
    /// Copies found after a crash.
    pub(crate) recovered: u64,
    /// Clean copies found after an orderly end.
    pub(crate) clean: u64,
    pub(crate) flushes: u64,
}

struct RunningCommand {
    command: Command,
    has_happened: bool,
    found: Option<Ended>,
}

struct PendingRequest {
    run: (u64, u64),
    kind: RequestClass,
    begun: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestClass {
    Read,
    Write { fua: bool },
    Flush,
}

pub(crate) struct World {
    random: Pcg64Mcg,
    pub(crate) disk: CachedDisk,
    label: RegionLabel,
    spec: RearrangeSpec,
    schedules: bool,
    core: NodeCore<u64>,
    now: Instant,
    /// Counts what happens.
    steps: u64,
    commands: BTreeMap<u32, RunningCommand>,
    requests: BTreeMap<u64, PendingRequest>,
    tickets: u64,
    history: History,
    pub(crate) events: Events,
}

/// A formatted disk: a region of 12 blocks, or of 600, for which the table has two pages.
fn formatted(random: &mut Pcg64Mcg) -> (CachedDisk, RegionLabel) {
    let slots = [12, 600][random.random_range(0..2)];
    let counters = Some(random.random_range(0..64));
    let first = [None, Some(BLOCK * random.random_range(1..40))][random.random_range(0..2)];
    let request = |disk_bytes| RegionRequest {
        id: [7; 16],
        disk_bytes,
        region_bytes: slots * BLOCK,
        block_bytes: BLOCK,
        first: None,
        counters,
    };
    // The size of what is hidden follows from a disk of any size.
    let any = 64 << 20;
    let label = RegionLabel::lay_out(&request(any)).expect("the region fits");
    let hidden = any - label.visible_bytes().expect("the region fits");
    let bytes = hidden + (VISIBLE_SECTORS + TAIL_SECTORS) * SECTOR_BYTES;
    let label = RegionLabel::lay_out(&RegionRequest { first, ..request(bytes) }).expect("the region fits");
    let mut disk = CachedDisk::new(bytes);
    for (offset, page) in RecoveredTable::empty_pages(&label) {
        disk.write(offset, &page, false);
    }
    let labels = RegionLabel::labels_first(bytes).expect("the disk has room");
    [0, 4096].iter().for_each(|place| disk.write(labels + place, &label.encode(), false));
    disk.flush();
    (disk, label)
}

fn load(disk: &CachedDisk) -> RecoveredTable {
    let mut read = |offset, into: &mut [u8]| {
        disk.read(offset, into);
        Ok(())
    };
    let label = RecoveredTable::find(disk.bytes(), &mut read).expect("the labels are whole");
    RecoveredTable::read(label.expect("the disk has a region"), &mut read)
        .expect("a copy of each page is whole")
}

fn core(spec: &RearrangeSpec, table: &RecoveredTable, schedules: bool) -> NodeCore<u64> {
    let rearranger = NodeRearranger::new(spec, table).expect("the keys are right");
    let config = Config { scheduling: schedules, memory_bytes: 1 << 20, ..Config::default() };
    let shape = Shape { bytes: rearranger.visible_bytes(), block_bytes: SECTOR as u32, read_only: false };
    let mut core = NodeCore::new(config, shape).expect("the configuration is right");
    core.add_layer(Box::new(rearranger));
    core
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let spec = RearrangeSpec::drawn(&mut random);
        let (disk, label) = formatted(&mut random);
        let schedules = random.random_range(0..4) == 0;
        let core = core(&spec, &load(&disk), schedules);
        World {
            random,
            disk,
            label,
            spec,
            schedules,
            core,
            now: Instant::ZERO,
            steps: 0,
            commands: BTreeMap::new(),
            requests: BTreeMap::new(),
            tickets: 0,
            history: History::new(VISIBLE_SECTORS),
            events: Events::default(),
        }
    }

    /// One event: a request, a part of a command, or time.
    pub(crate) fn step(&mut self) {
        self.steps += 1;
        match self.random.random_range(0..10) {
            0..3 if self.requests.len() < 6 => self.submit_any(),
            3 => self.wait(),
            _ => self.move_command(),
        }
        self.carry_out();
    }

    fn submit_any(&mut self) {
        let longest = if self.random.random_range(0..3) == 0 { 30 } else { 8 };
        let sectors = self.random.random_range(1..=longest);
        // Most requests go to a few blocks, which become hot; those drift.
        let reach = if self.random.random_range(0..4) == 0 { VISIBLE_SECTORS } else { 100 };
        let drift = self.now.0 / 5_000_000_000 * 37;
        let first = (self.random.random_range(0..reach) + drift) % (VISIBLE_SECTORS - sectors + 1);
        let kind = match self.random.random_range(0..20) {
            0..2 => RequestClass::Flush,
            2..11 => RequestClass::Write { fua: self.random.random_range(0..5) == 0 },
            _ => RequestClass::Read,
        };
        self.submit(kind, (first, sectors));
    }

    /// Submits a request, unless one that is pending touches the same sectors and either writes.
    fn submit(&mut self, kind: RequestClass, (first, sectors): (u64, u64)) {
        let touches = |other: &PendingRequest| {
            let (begin, length) = other.run;
            let is_write = |kind| matches!(kind, RequestClass::Write { .. });
            first < begin + length && begin < first + sectors && (is_write(kind) || is_write(other.kind))
        };
        if kind != RequestClass::Flush && self.requests.values().any(touches) {
            return;
        }
        self.tickets += 1;
        let (value, offset) = (self.tickets, first * SECTOR as u64);
        let run = if kind == RequestClass::Flush { (0, 0) } else { (first, sectors) };
        let operation = match kind {
            RequestClass::Read => {
                Operation::Read { offset, bytes: sectors as u32 * SECTOR as u32, fua: false }
            }
            RequestClass::Flush => Operation::Flush,
            RequestClass::Write { fua } if self.random.random_range(0..8) == 0 => {
                self.history.begin_write(run, 0);
                Operation::WriteZeroes { offset, bytes: sectors * SECTOR as u64, may_trim: true, fua }
            }
            RequestClass::Write { fua } => {
                self.history.begin_write(run, value);
                Operation::Write {
                    offset,
                    data: value.to_le_bytes().repeat(sectors as usize * SECTOR / 8),
                    fua,
                }
            }
        };
        self.requests.insert(self.tickets, PendingRequest { run, kind, begun: self.steps });
        self.core.submit(self.now, 1, operation, self.tickets);
        self.carry_out();
    }

    fn wait(&mut self) {
        self.now += Nanos::from_ms(self.random.random_range(1..400) as f64);
        if self.core.poll_timeout().is_some_and(|at| at <= self.now) {
            self.core.handle_timeout(self.now);
        }
    }

    /// A command has its effect, or ends.
    fn move_command(&mut self) {
        if self.commands.is_empty() {
            return;
        }
        let place = self.random.random_range(0..self.commands.len());
        let id = *self.commands.keys().nth(place).expect("there are more");
        if !self.commands[&id].has_happened {
            let command = self.commands[&id].command;
            let found = self.happen(command);
            let running = self.commands.get_mut(&id).expect("it runs");
            (running.has_happened, running.found) = (true, Some(found));
            return;
        }
        let RunningCommand { command, found, .. } = self.commands.remove(&id).expect("it runs");
        self.core.end(self.now, command, Ok(found.expect("it has happened")));
    }

    fn happen(&mut self, command: Command) -> Ended {
        match command.kind {
            RequestKind::Read { offset, .. } => self.disk.read(offset, self.core.buffer(&command)),
            RequestKind::Write { offset, fua, .. } => {
                let data = self.core.aligned_data(&command).to_vec();
                self.disk.write(offset, &data, fua);
            }
            RequestKind::Zero { offset, bytes, fua, .. } => {
                self.disk.write(offset, &vec![0; bytes as usize], fua);
            }
            RequestKind::Flush => {
                self.events.flushes += 1;
                self.disk.flush();
            }
            RequestKind::Trim { .. } => {}
            RequestKind::BlockStatus { bytes, .. } => {
                return Ended::BlockStatus(vec![StatusExtent { bytes, hole: false }]);
            }
        }
        Ended::Done
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::Start(command) => {
                    let running = RunningCommand { command, has_happened: false, found: None };
                    assert!(self.commands.insert(command.id, running).is_none(), "a number is used once");
                }
                Action::Answer(answered) => self.answered(answered),
            }
        }
    }

    fn answered(&mut self, Answered { ticket, result }: Answered<u64>) {
        let PendingRequest { run: (first, sectors), kind, begun } =
            self.requests.remove(&ticket).expect("a request is answered once");
        let outcome = result.unwrap_or_else(|error: BlockError| panic!("the disk is good: {error}"));
        match kind {
            RequestClass::Flush => self.history.end_flush(begun),
            RequestClass::Write { fua } => self.history.end_write((first, sectors), self.steps, fua),
            RequestClass::Read => {
                let Outcome::Read { data, .. } = outcome else { panic!("a read has bytes") };
                let mut bytes = vec![0; sectors as usize * SECTOR];
                assert!(self.core.fill(&data, &mut bytes), "the bytes are in memory");
                self.core.release(data);
                for (sector, bytes) in (first..).zip(bytes.chunks(SECTOR)) {
                    assert_eq!(value(bytes), self.history.newest(sector), "sector {sector}");
                }
            }
        }
    }

    fn count_events(&mut self) {
        let counters = self.core.rearranger().expect("it is there").view.counters;
        self.events.hits += counters.hits;
        self.events.copied_in += counters.copied_in;
        self.events.written_home += counters.written_home;
    }

    /// The power fails: requests and commands are lost, and the disk keeps some of what it had cached. Then a node starts, and all is read.
    pub(crate) fn crash(&mut self) {
        self.events.crashes += 1;
        // Commands in flight may have had their effect.
        for id in self.commands.keys().copied().collect::<Vec<u32>>() {
            let command = self.commands[&id].command;
            if !self.commands[&id].has_happened
                && self.random.random_bool(0.5)
                && command.kind != RequestKind::Flush
            {
                self.happen(command);
            }
        }
        self.disk.cut_power(&mut self.random);
        self.settle_contents();
        self.restart();
        self.events.recovered += u64::from(self.core.rearranger().expect("it is there").view.copies);
        self.read_all();
    }

    fn restart(&mut self) {
        self.count_events();
        self.commands.clear();
        self.requests.clear();
        self.now = Instant::ZERO;
        self.core = core(&self.spec, &load(&self.disk), self.schedules);
        self.carry_out();
    }

    /// An orderly end and a new start.
    pub(crate) fn end_and_restart(&mut self) {
        self.settle();
        self.submit(RequestClass::Flush, (0, 0));
        self.settle();
        let counted = self.block_counters();
        self.core.close(self.now);
        self.carry_out();
        while !self.core.is_closed() {
            assert!(!self.commands.is_empty(), "the end waits for nothing");
            self.move_command();
            self.carry_out();
        }
        self.events.orderly_ends += 1;
        let table = load(&self.disk);
        self.events.clean += table.copies().filter(|(_, _, is_dirty)| !is_dirty).count() as u64;
        // All is durable: the power may fail now.
        self.disk.cut_power(&mut self.random);
        assert_eq!(load(&self.disk), table, "a closed table is durable");
        self.check_homes(&table);
        self.restart();
        assert_eq!(self.block_counters(), counted.min(self.label.counters), "counts survive an orderly end");
        self.read_all();
    }

    fn block_counters(&self) -> u32 {
        self.core.rearranger().expect("it is there").view.block_counters
    }

    /// Ends all requests.
    fn settle(&mut self) {
        while !self.requests.is_empty() {
            if self.commands.is_empty() {
                self.wait();
            }
            self.move_command();
            self.carry_out();
        }
    }

    /// Reads every sector, one request after the other.
    fn read_all(&mut self) {
        for first in (0..self.history.sectors()).step_by(8) {
            let sectors = 8.min(self.history.sectors() - first);
            self.submit(RequestClass::Read, (first, sectors));
            self.settle();
        }
    }

    /// Checks that the disk holds for every sector what may be there after a crash.
    fn settle_contents(&mut self) {
        let table = load(&self.disk);
        let copies: BTreeMap<u64, u32> = table.copies().map(|(slot, block, _)| (block, slot)).collect();
        for sector in 0..self.history.sectors() {
            let found = self.content(sector, &copies);
            self.history.settle(sector, found);
        }
    }

    /// Asserts that dissolving the region now would leave in every home the data that were written last.
    fn check_homes(&self, table: &RecoveredTable) {
        let dirty = table.copies().filter(|(_, _, is_dirty)| *is_dirty);
        let dirty: BTreeMap<u64, u32> = dirty.map(|(slot, block, _)| (block, slot)).collect();
        for sector in 0..self.history.sectors() {
            let found = self.content(sector, &dirty);
            assert_eq!(found, self.history.newest(sector), "sector {sector} after an orderly end");
        }
    }

    /// The content of a sector, whose block is in a slot or at home.
    fn content(&self, sector: u64, slots: &BTreeMap<u64, u32>) -> u64 {
        let (block, within) = (sector / (BLOCK / SECTOR_BYTES), sector % (BLOCK / SECTOR_BYTES));
        let region = self.label.region().expect("the region is right");
        let first = match slots.get(&block) {
            Some(slot) => self.label.slots_first + u64::from(*slot) * BLOCK + within * SECTOR_BYTES,
            None => region.home(Lbn(sector)).0.0 * SECTOR_BYTES,
        };
        let mut bytes = [0; SECTOR];
        self.disk.read(first, &mut bytes);
        value(&bytes)
    }
}

/// The number that a sector is full of.
fn value(bytes: &[u8]) -> u64 {
    let value = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    assert!(bytes.chunks(8).all(|part| part == &bytes[..8]), "a sector is of one write");
    value
}
