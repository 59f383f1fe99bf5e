//! A disk that serves commands in any order, clients, and a rearranger between them. Each sector holds the number of the write that wrote
//! it. A plain array has the number that a read may return.
//!
//! A command takes effect at some time between its start and its end. A client does not write to sectors that another of its writes in
//! flight covers, so that every sector has one correct content once all writes have ended.

use headstack_model::{BlockError, Instant, Lbn, Nanos};
use headstack_streams::rearrange::{
    BlockAccess, BlockCommand, BlockRequest, CommandBuffer, RearrangeAction, RearrangeCounters,
    RearrangeSpec, Rearranger, ReservedRegion, ReservedRun,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const BLOCK_SECTORS: u64 = 4;

const DISK_SECTORS: u64 = 250;

/// Sectors of the longest request.
const LONGEST: u64 = 14;

/// The first number for commands that are whole requests.
const FIRST_DIRECT: u32 = 1 << 31;

/// A fault of the rearranger's owner that the checks must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A write of a copy to a home has no effect.
    LostCopyHome,
    /// A write of a copy to a slot has no effect.
    LostCopyIn,
}

#[derive(Debug)]
struct RunningCommand {
    command: BlockCommand,
    has_happened: bool,
}

#[derive(Debug)]
struct RunningRequest {
    request: BlockRequest,
    /// The data that a write writes, or that a read has read so far.
    content: Vec<u64>,
    /// For each sector, the numbers that a read may return.
    allowed: Vec<BTreeSet<u64>>,
}

pub(crate) struct World {
    rearranger: Rearranger,
    random: Pcg64Mcg,
    now: Instant,
    disk: Vec<u64>,
    /// For each visible sector, the write that ended last, or a later one that a read has returned.
    settled: Vec<u64>,
    commands: BTreeMap<u32, RunningCommand>,
    requests: BTreeMap<u64, RunningRequest>,
    records: Vec<u32>,
    buffers: BTreeMap<u32, Vec<u64>>,
    tickets: u64,
    writes: u64,
    copies_fail: bool,
    /// Whether reads take ten times as long as other commands, so that their slots may change meanwhile.
    reads_are_slow: bool,
    pub(crate) fault: Option<Fault>,
    pub(crate) held_writes: u64,
    /// Commands that are whole requests, which the world answers itself: by the world's number, the key of the end and the ticket.
    direct: BTreeMap<u32, (u32, u64)>,
    pub(crate) direct_requests: u64,
    /// The number of these that arrived while copies were planned.
    pub(crate) direct_during_copies: u64,
}

impl World {
    pub(crate) fn new(spec: RearrangeSpec, seed: u64) -> World {
        let mut random = Pcg64Mcg::seed_from_u64(!seed);
        // Two runs, which may be adjacent and need not begin at the start of a block.
        let first = random.random_range(1..100);
        let second = first + 30 + random.random_range(0..60);
        let runs = vec![
            ReservedRun { first: Lbn(first), sectors: 30 },
            ReservedRun { first: Lbn(second), sectors: random.random_range(4..25) },
        ];
        let region = ReservedRegion::new(DISK_SECTORS, runs).expect("the runs fit");
        let slots = region.slots(BLOCK_SECTORS, |lbn| ((lbn.0 / 20) as u32, (lbn.0 / 10) as u32));
        let visible = region.visible_sectors() as usize;
        World {
            rearranger: Rearranger::new(spec, BLOCK_SECTORS, region, slots).expect("the keys are right"),
            random,
            now: Instant::ZERO,
            disk: vec![0; DISK_SECTORS as usize],
            settled: vec![0; visible],
            commands: BTreeMap::new(),
            requests: BTreeMap::new(),
            records: Vec::new(),
            buffers: BTreeMap::new(),
            tickets: 0,
            writes: 0,
            copies_fail: true,
            reads_are_slow: seed % 2 == 1,
            fault: None,
            held_writes: 0,
            direct: BTreeMap::new(),
            direct_requests: 0,
            direct_during_copies: 0,
        }
    }

    pub(crate) fn counters(&self) -> RearrangeCounters {
        self.rearranger.view().counters
    }

    /// One event: a request, progress of a command, a record, or the passing of time.
    pub(crate) fn step(&mut self) {
        match self.random.random_range(0..10) {
            0..3 if self.requests.len() < 6 => self.submit_any(),
            3 => self.wait(),
            4 => self.record(),
            _ => self.move_command(),
        }
        self.carry_out();
        self.rearranger.check();
    }

    fn visible(&self) -> u64 {
        self.settled.len() as u64
    }

    fn submit_any(&mut self) {
        let longest = if self.random.random_range(0..3) == 0 { LONGEST } else { BLOCK_SECTORS };
        let sectors = self.random.random_range(1..=longest);
        // Most requests go to a few blocks, which become hot. Which ones changes slowly with time.
        let reach = if self.random.random_range(0..4) == 0 { self.visible() } else { 50 };
        let drift = self.now.0 / 5_000_000_000 * 7;
        let lbn = (self.random.random_range(0..reach) + drift) % (self.visible() - sectors + 1);
        let access = match self.random.random_range(0..20) {
            0 => BlockAccess::Flush,
            1..10 => BlockAccess::Write,
            _ => BlockAccess::Read,
        };
        let is_busy = access == BlockAccess::Write
            && self.requests.values().any(|running| overlap(&running.request, lbn, sectors));
        if !is_busy {
            self.submit(access, lbn, sectors as u32);
        }
    }

    fn submit(&mut self, access: BlockAccess, lbn: u64, sectors: u32) {
        self.tickets += 1;
        let request = BlockRequest { ticket: self.tickets, access, lbn: Lbn(lbn), sectors };
        let range = lbn as usize..lbn as usize + sectors as usize;
        let mut allowed: Vec<BTreeSet<u64>> = Vec::new();
        let mut content = vec![u64::MAX; sectors as usize];
        match access {
            BlockAccess::Write => {
                self.writes += 1;
                content.fill(self.writes);
                for running in self.requests.values_mut() {
                    running.allow(lbn, sectors, self.writes);
                }
            }
            BlockAccess::Read => {
                allowed = self.settled[range].iter().map(|value| BTreeSet::from([*value])).collect();
            }
            BlockAccess::Flush => {}
        }
        let mut new = RunningRequest { request, content, allowed };
        let writes = self.requests.values().filter(|running| running.request.access == BlockAccess::Write);
        for write in writes {
            let BlockRequest { lbn, sectors, .. } = write.request;
            new.allow(lbn.0, sectors, write.content[0]);
        }
        self.requests.insert(self.tickets, new);
        if self.tickets % 2 == 1 && self.submit_direct(&request) {
            return;
        }
        let before = self.commands.len();
        self.rearranger.submit(self.now, request);
        self.carry_out();
        let is_held = self.commands.len() == before && access == BlockAccess::Write;
        self.held_writes += u64::from(is_held);
    }

    /// Submits a request that the rearranger may pass through without keeping an answer. Returns whether it accepted it.
    fn submit_direct(&mut self, request: &BlockRequest) -> bool {
        let BlockRequest { ticket, access, lbn, sectors } = *request;
        let timeout = self.rearranger.poll_timeout().filter(|at| *at > self.now);
        let Some((key, lbn)) = self.rearranger.submit_direct(self.now, access, lbn, sectors) else {
            return false;
        };
        let id = FIRST_DIRECT + self.direct_requests as u32;
        let is_unchanged = timeout.is_none() || self.rearranger.poll_timeout() == timeout;
        assert!(is_unchanged, "the owner need not ask for the timeout again");
        let buffer = CommandBuffer::Request { ticket, skipped: 0 };
        let command = BlockCommand { id, access, lbn, sectors, buffer, other_lbn: None };
        let running = RunningCommand { command, has_happened: false };
        assert!(self.commands.insert(id, running).is_none(), "a number is used once");
        self.direct.insert(id, (key, ticket));
        self.direct_requests += 1;
        let view = self.rearranger.view();
        self.direct_during_copies += u64::from(view.pending_in + view.pending_out > 0);
        true
    }

    fn wait(&mut self) {
        self.now += Nanos::from_ms(self.random.random_range(1..400) as f64);
        if self.rearranger.poll_timeout().is_some_and(|at| at <= self.now) {
            self.rearranger.handle_timeout(self.now);
        }
    }

    fn record(&mut self) {
        if !self.records.is_empty() {
            let slot = self.records.swap_remove(self.random.random_range(0..self.records.len()));
            self.rearranger.handle_recorded(self.now, slot);
        }
    }

    /// Lets one command take effect or end.
    fn move_command(&mut self) {
        if self.commands.is_empty() {
            return;
        }
        let place = self.random.random_range(0..self.commands.len());
        let id = *self.commands.keys().nth(place).expect("there are more");
        let running = &self.commands[&id];
        let is_copy = matches!(running.command.buffer, CommandBuffer::Copy(_));
        let is_read = !is_copy && running.command.access == BlockAccess::Read;
        if is_read && self.reads_are_slow && self.random.random_range(0..10) > 0 {
            return;
        }
        if is_copy && self.copies_fail && self.random.random_range(0..12) == 0 {
            self.commands.remove(&id);
            return self.rearranger.handle_end(self.now, id, Err(BlockError::Medium));
        }
        if !running.has_happened {
            let command = running.command;
            self.commands.get_mut(&id).expect("it runs").has_happened = true;
            return self.happen(&command);
        }
        self.commands.remove(&id);
        match self.direct.remove(&id) {
            Some((key, ticket)) => {
                let timeout = self.rearranger.poll_timeout().filter(|at| *at > self.now);
                if !self.rearranger.end_direct(self.now, key).may_act {
                    let is_unchanged = timeout.is_none() || self.rearranger.poll_timeout() == timeout;
                    let has_action = self.rearranger.poll_action().is_some();
                    assert!(is_unchanged && !has_action, "the owner need not poll");
                }
                self.answered(ticket);
            }
            None => self.rearranger.handle_end(self.now, id, Ok(())),
        }
    }

    fn happen(&mut self, command: &BlockCommand) {
        let BlockCommand { access, lbn, sectors, buffer, other_lbn, .. } = *command;
        let lbn = match other_lbn.filter(|_| self.random.random_range(0..2) == 0) {
            Some(other) => other,
            None => lbn,
        };
        let is_hidden = self.rearranger.region().visible(lbn).is_none();
        let range = lbn.0 as usize..lbn.0 as usize + sectors as usize;
        let content = match buffer {
            CommandBuffer::Request { ticket, skipped } => {
                let content = &mut self.requests.get_mut(&ticket).expect("it runs").content;
                &mut content[skipped as usize..skipped as usize + sectors as usize]
            }
            CommandBuffer::Copy(copy) => {
                let is_lost = match self.fault {
                    Some(Fault::LostCopyHome) => !is_hidden,
                    Some(Fault::LostCopyIn) => is_hidden,
                    None => false,
                };
                if is_lost && access == BlockAccess::Write {
                    return;
                }
                &mut self.buffers.entry(copy).or_insert_with(|| vec![0; BLOCK_SECTORS as usize])[..]
            }
        };
        match access {
            BlockAccess::Read => content.copy_from_slice(&self.disk[range]),
            BlockAccess::Write => self.disk[range].copy_from_slice(content),
            BlockAccess::Flush => {}
        }
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.rearranger.poll_action() {
            match action {
                RearrangeAction::Start(command) => {
                    let running = RunningCommand { command, has_happened: false };
                    assert!(self.commands.insert(command.id, running).is_none(), "a number is used once");
                }
                RearrangeAction::Record(change) => self.records.push(change.slot),
                RearrangeAction::Answer { ticket, result } => {
                    assert_eq!(result, Ok(()), "only copies fail");
                    self.answered(ticket);
                }
            }
        }
    }

    fn answered(&mut self, ticket: u64) {
        let RunningRequest { request, content, allowed } =
            self.requests.remove(&ticket).expect("a request is answered once");
        if request.access == BlockAccess::Flush {
            return;
        }
        for (offset, value) in content.iter().enumerate() {
            let sector = request.lbn.0 as usize + offset;
            if request.access == BlockAccess::Read {
                let allowed = &allowed[offset];
                assert!(allowed.contains(value), "sector {sector} has {value}, not one of {allowed:?}");
            }
            // If a read returns the data of a write in flight, that write has taken effect.
            self.settled[sector] = self.settled[sector].max(*value);
        }
    }

    fn drain(&mut self) {
        while !self.commands.is_empty() || !self.records.is_empty() || !self.requests.is_empty() {
            self.move_command();
            self.record();
            self.carry_out();
            self.rearranger.check();
        }
    }

    pub(crate) fn read_all(&mut self) {
        self.drain();
        for lbn in 0..self.visible() {
            self.submit(BlockAccess::Read, lbn, 1);
            self.drain();
        }
    }

    /// Dissolves the region while requests continue. Afterwards the homes must hold all data.
    pub(crate) fn dissolve(&mut self) {
        self.copies_fail = false;
        self.rearranger.dissolve(self.now);
        self.carry_out();
        for _ in 0..50 {
            self.step();
        }
        self.drain();
        if !self.rearranger.is_dissolved() {
            // Some copies remain if writes disturbed their transfer home too often; dissolve again.
            self.rearranger.dissolve(self.now);
            self.carry_out();
            self.drain();
        }
        assert!(self.rearranger.is_dissolved(), "{:?}", self.rearranger.view());
        for (visible, value) in self.settled.iter().enumerate() {
            let (home, _) = self.rearranger.region().home(Lbn(visible as u64));
            assert_eq!(self.disk[home.0 as usize], *value, "the home of sector {visible}");
        }
    }
}

impl RunningRequest {
    /// A read may return a write that is in flight at the same time.
    fn allow(&mut self, lbn: u64, sectors: u32, value: u64) {
        for (allowed, sector) in self.allowed.iter_mut().zip(self.request.lbn.0..) {
            if (lbn..lbn + u64::from(sectors)).contains(&sector) {
                allowed.insert(value);
            }
        }
    }
}

fn overlap(request: &BlockRequest, lbn: u64, sectors: u64) -> bool {
    request.access == BlockAccess::Write
        && request.lbn.0 < lbn + sectors
        && lbn < request.lbn.0 + u64::from(request.sectors)
}
