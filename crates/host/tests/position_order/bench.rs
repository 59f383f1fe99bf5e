//! A node's core, its clients and its disk, turned together by virtual time.

use headstack_host::disk::{Emulator, EmulatorFaults, Outcome, Store, Volume};
use headstack_host::node::{Action, Command, Ended, NodeCore, RequestKind, Shape};
use headstack_host::{BlockError, Operation};
use headstack_model::{DriveSpec, Instant, Nanos};
use headstack_sim::Rig;
use headstack_streams::position::{DriveModel, MapState, OrderView, PositionOrder, PositionQueue};
use headstack_streams::streams::Config;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// Longest that a request may wait.
const TIME_LIMIT: Nanos = Nanos(60_000_000_000);
/// Bytes of a request.
const BYTES: u64 = 4096;

/// What a bench runs.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) disk: DriveSpec,
    /// Keys of the rig around the disk.
    pub(crate) keys: Vec<(String, String)>,
    /// The drive file of the node's order; without one the node does not order.
    pub(crate) map: Option<DriveSpec>,
    pub(crate) order: String,
    pub(crate) window: u32,
    pub(crate) clients: u64,
    /// Longest delay of a command's start, and of the report of its end.
    pub(crate) late: Nanos,
    /// How much the host's clock is faster than the disk's, in millionths.
    pub(crate) clock_ppm: u64,
    pub(crate) write_share: f64,
    /// Share of reads that go to blocks that were just read.
    pub(crate) hot_share: f64,
    /// Part of the disk that all clients but the first read.
    pub(crate) near_share: f64,
    pub(crate) guard_cost: f64,
}

impl Setting {
    pub(crate) fn new(disk: DriveSpec) -> Setting {
        Setting {
            disk,
            keys: Vec::new(),
            map: None,
            order: "position".to_string(),
            window: 1,
            clients: 32,
            late: Nanos::from_ms(0.05),
            clock_ppm: 0,
            write_share: 0.0,
            hot_share: 0.0,
            near_share: 1.0,
            guard_cost: 0.05,
        }
    }
}

/// What a run measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunOutcome {
    answered: u64,
    time: Nanos,
    pub(crate) longest: Nanos,
}

impl RunOutcome {
    /// Requests a second.
    pub(crate) fn rate(&self) -> f64 {
        self.answered as f64 / self.time.as_secs()
    }
}

/// A command from its submission to the report of its end.
#[derive(Debug)]
struct Sent {
    command: Command,
    /// When it starts, and then when its end is reported.
    at: Instant,
    operation: Option<Operation>,
    result: Option<Result<Ended, BlockError>>,
}

pub(crate) struct Bench {
    setting: Setting,
    core: NodeCore<u64>,
    emulator: Emulator,
    /// What the disk's clock shows when the host's shows zero.
    disk_ahead: Nanos,
    sent: BTreeMap<u32, Sent>,
    /// Requests that are not answered, by client, and when they were sent.
    pending: BTreeMap<u64, Instant>,
    last_read: u64,
    now: Instant,
    random: Pcg64Mcg,
    changes: Vec<MapState>,
    outcome: RunOutcome,
}

fn emulator(setting: &Setting, disk: &DriveSpec) -> Emulator {
    let mut rig = Rig::from_drive(disk.clone());
    setting.keys.iter().for_each(|(key, value)| rig.set(key, value).expect("a key of a rig"));
    let engine = rig.build(1).expect("the drive is good");
    let info = rig.volumes().remove(0);
    let store = Store::memory(info.bytes()).expect("unused memory is free");
    Emulator::new(engine, vec![Volume::new(info, store)], EmulatorFaults::default())
        .expect("it can be emulated")
}

impl Bench {
    pub(crate) fn new(setting: &Setting) -> Bench {
        let emulator = emulator(setting, &setting.disk);
        let info = emulator.volumes()[0].info();
        let shape = Shape { bytes: info.bytes(), block_bytes: info.sector_bytes, read_only: false };
        let config = Config { scheduling: false, guard_cost: setting.guard_cost, ..Config::default() };
        let mut core = NodeCore::new(config, shape).expect("the defaults suit");
        if let Some(map) = &setting.map {
            let model = DriveModel::new(map).expect("the drive file is good");
            let order = PositionOrder::new(&setting.order, setting.window).expect("the order is in the list");
            core.add_layer(Box::new(PositionQueue::new(model, order)));
        }
        Bench {
            setting: setting.clone(),
            core,
            emulator,
            disk_ahead: Nanos(1_234_567),
            sent: BTreeMap::new(),
            pending: BTreeMap::new(),
            last_read: 0,
            now: Instant::ZERO,
            random: Pcg64Mcg::seed_from_u64(5),
            changes: Vec::new(),
            outcome: RunOutcome::default(),
        }
    }

    pub(crate) fn order(&self) -> OrderView {
        self.core.order().expect("the node has an order")
    }

    /// Changes of the drive file's state that the core reported.
    pub(crate) fn changes(&self) -> &[MapState] {
        &self.changes
    }

    /// Puts another disk in the place of this one, with its spindle at another angle. What the old one had is done first.
    pub(crate) fn swap(&mut self, disk: &DriveSpec, ahead: Nanos) {
        self.drain();
        self.emulator = emulator(&self.setting, disk);
        self.disk_ahead += ahead;
    }

    /// Answers requests until this number of them has been answered.
    pub(crate) fn run(&mut self, requests: u64) -> RunOutcome {
        let begun = self.now;
        self.outcome = RunOutcome::default();
        while self.outcome.answered < requests {
            for client in 0..self.setting.clients {
                self.send_request(client);
            }
            self.step();
        }
        self.outcome.time = self.now - begun;
        // A starved request may not be answered at all.
        let oldest = self.pending.values().map(|since| self.now - *since).max();
        self.outcome.longest = self.outcome.longest.max(oldest.unwrap_or_default());
        self.outcome
    }

    /// Answers what is pending.
    fn drain(&mut self) {
        while !self.pending.is_empty() {
            self.step();
        }
        assert_eq!(
            (self.core.outstanding(), self.sent.len()),
            (0, 0),
            "nothing is left of what was answered"
        );
    }

    /// The disk's clock.
    fn disk_time(&self, host: Instant) -> Instant {
        Instant(host.0 - host.0 / 1_000_000 * self.setting.clock_ppm) + self.disk_ahead
    }

    /// The first moment of the host's clock at which the disk's shows a time.
    fn host_time(&self, disk: Instant) -> Instant {
        let wanted = disk.saturating_sub(self.disk_ahead);
        let guess =
            Instant(wanted.0 + wanted.0 / (1_000_000 - self.setting.clock_ppm) * self.setting.clock_ppm);
        let later = (0..).map(|step| Instant(guess.0 + step * 100));
        later.into_iter().find(|host| self.disk_time(*host) >= disk).expect("clocks advance")
    }

    /// Has a client send a request if it has none pending.
    fn send_request(&mut self, client: u64) {
        if self.pending.contains_key(&client) {
            return;
        }
        let blocks = self.core.shape().bytes / BYTES;
        let part = if client == 0 { 1.0 } else { self.setting.near_share };
        let range = ((blocks as f64 * part) as u64).max(1);
        let drawn = self.random.random_range(0..range) * BYTES;
        let is_hot = self.random.random_bool(self.setting.hot_share);
        let offset = if is_hot { self.last_read } else { drawn };
        let operation = if self.random.random_bool(self.setting.write_share) {
            Operation::Write { offset: drawn, data: vec![1; BYTES as usize], fua: false }
        } else {
            Operation::Read { offset, bytes: BYTES as u32, fua: false }
        };
        self.pending.insert(client, self.now);
        self.core.submit(self.now, client, operation, client);
        self.carry_out();
    }

    /// Turns to the next event and does what is due then.
    fn step(&mut self) {
        let own = self.sent.values().filter(|sent| sent.operation.is_some() || sent.result.is_some());
        let disk = self.emulator.poll_timeout().map(|at| self.host_time(at));
        let next = own.map(|sent| sent.at).chain(disk).chain(self.core.poll_timeout()).min();
        self.now = self.now.max(next.expect("a pending request progresses"));
        self.turn_disk();
        let is_due = |sent: &Sent, now: Instant| sent.result.is_some() && sent.at <= now;
        while let Some(id) = self.sent.iter().find(|(_, sent)| is_due(sent, self.now)).map(|(id, _)| *id) {
            let Sent { command, result, .. } = self.sent.remove(&id).expect("it was found");
            self.core.end(self.now, command, result.expect("its end is due"));
            self.changes.extend(self.core.poll_order_change());
            self.carry_out();
        }
        if self.core.poll_timeout().is_some_and(|at| at <= self.now) {
            self.core.handle_timeout(self.now);
            self.carry_out();
        }
    }

    fn turn_disk(&mut self) {
        let disk_now = self.disk_time(self.now);
        for (id, sent) in &mut self.sent {
            if let Some(operation) = sent.operation.take_if(|_| sent.at <= self.now) {
                self.emulator.submit(disk_now, 0, operation, u64::from(*id));
            }
        }
        self.emulator.handle_timeout(disk_now);
        while let Some(answered) = self.emulator.poll_answer() {
            let late = Nanos(self.random.random_range(0..=self.setting.late.0));
            let sent = self.sent.get_mut(&(answered.ticket as u32)).expect("it is at the disk");
            let ended =
                |outcome| if matches!(outcome, Outcome::Read { .. }) { Ended::Left } else { Ended::Done };
            (sent.at, sent.result) = (self.now + late, Some(answered.result.map(ended)));
        }
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::Start(command) => self.start(command),
                Action::Answer(answered) => {
                    let since = self.pending.remove(&answered.ticket).expect("a request is answered once");
                    let took = self.now - since;
                    assert!(answered.result.is_ok() && took < TIME_LIMIT, "{took}: {:?}", answered.result);
                    self.outcome.answered += 1;
                    self.outcome.longest = self.outcome.longest.max(took);
                }
            }
        }
    }

    fn start(&mut self, command: Command) {
        let (offset, bytes) = command.kind.run();
        let operation = match command.kind {
            RequestKind::Write { fua, .. } => {
                Operation::Write { offset, data: self.core.data(&command).to_vec(), fua }
            }
            RequestKind::Read { fua, .. } => {
                self.last_read = offset;
                Operation::Read { offset, bytes: bytes as u32, fua }
            }
            other => panic!("{other:?} was not requested"),
        };
        let at = self.now + Nanos(self.random.random_range(0..=self.setting.late.0));
        let sent = Sent { command, at, operation: Some(operation), result: None };
        assert!(self.sent.insert(command.id, sent).is_none(), "{command:?} has not ended");
    }
}
