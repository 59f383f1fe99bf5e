//! A simulation: clients, the node, its disk and the expected data, advanced together in virtual time.

use crate::clients::{Client, Want, draw_areas};
use crate::device::Device;
use crate::draw::{self, Drawable, End, Ways};
use crate::expected_data::{BLOCK, Truth};
use headstack_host::node::{Action, Answered, NodeCore, Outcome, ReadData, Shape};
use headstack_host::{BlockError, Operation};
use headstack_model::{Instant, Nanos};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// Maximum wait of a request, whatever the delays.
const TIME_LIMIT: Nanos = Nanos(300_000_000_000);
/// Maximum steps of a simulation: far more than any simulation needs that makes progress.
const STEPS: u32 = 200_000;

/// Counts of events, to check that simulations cover the cases that they are for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Books {
    requests: u64,
    streams: u64,
    hits: u64,
    turns: u64,
    direct: u64,
    written: u64,
    bad_reads: u64,
    flushes: u64,
    gone: u64,
    ordered: u64,
    ends: [u64; 5],
}

impl Books {
    pub(crate) fn add(&mut self, other: &Books) {
        self.requests += other.requests;
        self.streams += other.streams;
        self.hits += other.hits;
        self.turns += other.turns;
        self.direct += other.direct;
        self.written += other.written;
        self.bad_reads += other.bad_reads;
        self.flushes += other.flushes;
        self.gone += other.gone;
        self.ordered += other.ordered;
        self.ends.iter_mut().zip(other.ends).for_each(|(own, other)| *own += other);
    }

    /// Panics unless every kind of event occurred often enough for an error to show.
    pub(crate) fn assert_all_was_met(&self) {
        let of_disk = [self.streams, self.hits, self.turns, self.direct, self.written, self.ordered];
        let met = [self.requests, self.bad_reads, self.flushes, self.gone].into_iter().chain(of_disk);
        assert!(met.chain(self.ends).all(|count| count >= 100), "{self:?}");
    }
}

/// A request until it is answered.
#[derive(Debug)]
struct PendingRequest {
    client: u64,
    want: Want,
    /// The version of a write; for any other request, the event count at which it began.
    mark: u64,
    at: Instant,
}

/// A simulation.
pub(crate) struct World {
    random: Pcg64Mcg,
    now: Instant,
    core: NodeCore<u64>,
    memory_bytes: u64,
    device: Device,
    expected_data: Truth,
    clients: Vec<Client>,
    areas: Vec<(u64, u64)>,
    /// Runs of blocks that could not be read at first.
    bad: Vec<(u64, u64)>,
    pending: BTreeMap<u64, PendingRequest>,
    tickets: u64,
    numbers: u64,
    ways: Ways,
    /// How late the node's next wake-up is.
    late: Nanos,
    end: End,
    /// Clients that go away, and when.
    departures: Vec<Instant>,
    is_reported: bool,
    books: Books,
}

impl World {
    /// Draws a simulation.
    pub(crate) fn new(seed: u64, drives: &[Drawable], is_reported: bool) -> World {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let (ways, end) = (Ways::draw(&mut random), End::draw(&mut random));
        let (mut areas, mut bad) = (Vec::new(), Vec::new());
        let emulator = draw::emulator(seed, drives, |engine, bytes| {
            areas = draw_areas(&mut random, bytes);
            if random.random_bool(0.3) {
                let (first, blocks) = areas[random.random_range(0..areas.len())];
                let from = random.random_range(0..blocks - 8);
                bad.push((first + from, random.random_range(1..=8)));
                bad.iter().for_each(|&run| draw::spoil(engine, run));
            }
            if let End::DiskDead(at) = end {
                draw::kill(engine, at);
            }
        });
        let info = emulator.volumes()[0].info();
        let shape = Shape { bytes: info.bytes(), block_bytes: info.sector_bytes, read_only: false };
        let config = draw::config(&mut random);
        if is_reported {
            eprintln!("{} bytes, areas {areas:?}, bad {bad:?}, {ways:?}, {end:?}\n{config:?}", shape.bytes);
        }
        let memory_bytes = config.memory_bytes;
        let core = draw::node(seed, drives, config, shape);
        let books = Books { ordered: core.order().is_some().into(), ..Books::default() };
        let numbers = random.random_range(1..=8);
        let clients = (0..numbers).map(|number| {
            let area = areas[random.random_range(0..areas.len())];
            Client::draw(&mut random, number, area)
        });
        let clients = clients.collect();
        let departures = if random.random_bool(0.3) {
            (0..2).map(|_| Instant(random.random_range(0..2_000_000_000))).collect()
        } else {
            Vec::new()
        };
        World {
            now: Instant::ZERO,
            core,
            memory_bytes,
            device: Device::new(emulator),
            expected_data: Truth::new(&areas),
            clients,
            areas,
            bad,
            pending: BTreeMap::new(),
            tickets: 0,
            numbers,
            ways,
            late: ways.wake_late(&mut random),
            end,
            departures,
            is_reported,
            random,
            books,
        }
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.is_reported {
            eprintln!("{:>15} {}", self.now.0, what());
        }
    }

    /// Runs it to its end.
    pub(crate) fn run(mut self) -> Books {
        for steps in 0.. {
            assert!(steps < STEPS, "it does not end: {:?} are not answered", self.pending);
            self.step();
            let Some(next) = self.next() else { break };
            if let Some(at) = self.end.at().filter(|&at| at <= next) {
                self.now = self.now.max(at);
                if self.crash() {
                    return self.books();
                }
                continue;
            }
            self.now = self.now.max(next);
        }
        assert!(self.pending.is_empty(), "nothing happens, and {:?} are not answered", self.pending);
        self.finish();
        self.books()
    }

    /// The time of the next event; `None` once all clients have finished.
    fn next(&self) -> Option<Instant> {
        let asks = self.clients.iter().filter(|client| client.is_ready()).map(|client| client.ready);
        let wakes = self.core.poll_timeout().map(|at| at + self.late);
        let next = asks.chain(self.device.next()).chain(self.departures.iter().copied()).min();
        if next.is_none() && self.pending.is_empty() && !self.device.is_busy() {
            return None;
        }
        next.into_iter().chain(wakes).min()
    }

    /// Does all that is due.
    fn step(&mut self) {
        let World { device, core, ways, random, .. } = self;
        device.turn(self.now, core, ways, random);
        while let Some((command, result)) = self.device.next_end(self.now, &self.core) {
            self.tell(|| format!("end {command:?} {result:?}"));
            self.core.end(self.now, command, result);
            self.carry_out();
        }
        if self.core.poll_timeout().is_some_and(|at| at + self.late <= self.now) {
            self.late = self.ways.wake_late(&mut self.random);
            self.tell(|| "wake".to_string());
            self.core.handle_timeout(self.now);
            self.carry_out();
        }
        while let Some(place) = self.departures.iter().position(|&at| at <= self.now) {
            self.departures.remove(place);
            self.depart();
        }
        for client in 0..self.clients.len() {
            while self.clients[client].asks(self.now) {
                self.ask(client);
            }
        }
        let late = self.pending.values().find(|pending| self.now.since(pending.at) > TIME_LIMIT);
        assert!(late.is_none(), "{late:?} waits for ever");
    }

    /// Has a client ask for something.
    fn ask(&mut self, client: usize) {
        let want = self.clients[client].want(&mut self.random, self.now);
        let number = self.clients[client].number;
        self.submit(number, want);
    }

    fn submit(&mut self, client: u64, want: Want) {
        let operation = self.operation(want);
        let mark = match (want, &operation) {
            (Want::Write { first, blocks, forced }, _) => {
                u64::from(self.expected_data.begin_write(first, blocks, forced, false))
            }
            (Want::Zeroes { first, blocks, forced, .. }, _) => {
                u64::from(self.expected_data.begin_write(first, blocks, forced, true))
            }
            (Want::Trim { first, blocks }, _) => {
                u64::from(self.expected_data.begin_write(first, blocks, false, true))
            }
            _ => self.expected_data.begin(),
        };
        let operation = match (want, operation) {
            (Want::Write { first, blocks, .. }, Operation::Write { offset, fua, .. }) => {
                Operation::Write { offset, data: Truth::bytes(mark as u32, first, blocks), fua }
            }
            (_, operation) => operation,
        };
        self.tickets += 1;
        let ticket = self.tickets;
        self.tell(|| format!("client {client} asks {ticket}: {want:?} ({mark})"));
        self.pending.insert(ticket, PendingRequest { client, want, mark, at: self.now });
        self.books.requests += 1;
        self.core.submit(self.now, client, operation, ticket);
        self.carry_out();
    }

    /// Converts a client's request for the node; the bytes of a write are added later.
    fn operation(&self, want: Want) -> Operation {
        let beyond = self.core.shape().bytes;
        match want {
            Want::Read { first, blocks, forced } => {
                Operation::Read { offset: first * BLOCK, bytes: (blocks * BLOCK) as u32, fua: forced }
            }
            Want::Write { first, forced, .. } => {
                Operation::Write { offset: first * BLOCK, data: Vec::new(), fua: forced }
            }
            Want::Zeroes { first, blocks, may_trim, forced } => {
                Operation::WriteZeroes { offset: first * BLOCK, bytes: blocks * BLOCK, may_trim, fua: forced }
            }
            Want::Trim { first, blocks } => Operation::Trim { offset: first * BLOCK, bytes: blocks * BLOCK },
            Want::Prefetch { first, blocks } => {
                Operation::Prefetch { offset: first * BLOCK, bytes: blocks * BLOCK }
            }
            Want::BlockStatus { first, blocks } => {
                Operation::Allocation { offset: first * BLOCK, bytes: blocks * BLOCK }
            }
            Want::Flush => Operation::Flush,
            Want::Nonsense(draw) => match draw % 4 {
                0 => Operation::Read { offset: beyond, bytes: 512, fua: false },
                1 => Operation::Read { offset: u64::MAX - 511, bytes: 512, fua: false },
                2 => Operation::Write { offset: 1, data: vec![0; 512], fua: false },
                _ => Operation::Trim { offset: 0, bytes: 0 },
            },
        }
    }

    /// Executes the node's outputs, and checks them.
    fn carry_out(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::Start(command) => {
                    self.tell(|| format!("start {command:?}"));
                    let World { device, core, ways, random, .. } = self;
                    device.start(self.now, core, command, ways, random);
                }
                Action::Answer(answered) => self.hear(answered),
            }
        }
        let view = self.core.streams().view();
        let kept = self.core.streams().memory_bytes();
        assert!(kept <= self.memory_bytes, "{kept} bytes of memory, and {} are allowed", self.memory_bytes);
        assert!(
            view.memory.used_bytes <= kept && view.memory.high_water_bytes <= kept,
            "memory is passed: {view:?}"
        );
        self.core.streams().check();
    }

    /// Takes an answer and judges it.
    fn hear(&mut self, Answered { ticket, result }: Answered<u64>) {
        let PendingRequest { client, want, mark, at } =
            self.pending.remove(&ticket).expect("each request is answered once");
        self.tell(|| format!("answer to {ticket} of client {client}: {result:?}"));
        let is_there =
            self.clients.iter_mut().find(|other| other.number == client).map(|other| other.waits -= 1);
        assert!(self.now.since(at) <= TIME_LIMIT, "{want:?} took {}", self.now.since(at));
        match want {
            Want::Write { .. } | Want::Zeroes { .. } | Want::Trim { .. } => {
                self.expected_data.end_write(mark as u32, result.is_ok());
                if is_forced(want) && result.is_ok() && !self.is_disk_gone() && self.random.random_bool(0.25)
                {
                    self.judge_media("a forced write");
                }
            }
            Want::Flush if result.is_ok() => {
                self.books.flushes += 1;
                self.expected_data.end_flush(mark);
                if !self.is_disk_gone() && self.random.random_bool(0.25) {
                    self.judge_media("a flush");
                }
            }
            _ => {}
        }
        match (result, want) {
            (Err(error), _) => self.judge_error(want, error, is_there.is_some()),
            (Ok(_), Want::Nonsense(_)) => panic!("nonsense is refused"),
            (Ok(Outcome::Read { offset, bytes, data }), Want::Read { first, blocks, .. }) => {
                assert_eq!((offset, bytes), (first * BLOCK, blocks * BLOCK));
                self.judge_read(first, blocks, mark, &data);
                self.core.release(data);
            }
            (Ok(Outcome::BlockStatus(extents)), Want::BlockStatus { blocks, .. }) => {
                let bytes: u64 = extents.iter().map(|extent| extent.bytes).sum();
                assert_eq!(bytes, blocks * BLOCK, "all of it is reported");
            }
            (
                Ok(outcome @ (Outcome::Done | Outcome::BlockStatus(_))),
                Want::Read { .. } | Want::BlockStatus { .. },
            )
            | (Ok(outcome @ Outcome::Read { .. }), _) => {
                panic!("{want:?} is answered by {outcome:?}")
            }
            _ => {}
        }
    }

    fn judge_read(&mut self, first: u64, blocks: u64, begun: u64, data: &ReadData) {
        let mut bytes = vec![0xee; (blocks * BLOCK) as usize];
        if !self.core.fill(data, &mut bytes)
            && self.device.emulator.read(0, first * BLOCK, &mut bytes).is_err()
        {
            // The connection then has an error to tell.
            assert!(self.is_disk_gone(), "bytes left with a good disk are there");
            return;
        }
        if !self.is_disk_gone() {
            self.expected_data
                .check_read(first, &bytes, begun)
                .unwrap_or_else(|wrong| panic!("a stale read: {wrong}"));
        }
    }

    /// Whether the disk has lost what was not on its media.
    fn is_disk_gone(&self) -> bool {
        self.device.emulator.is_dark() || matches!(self.end, End::DiskDead(at) if at <= self.now)
    }

    fn judge_error(&mut self, want: Want, error: BlockError, is_there: bool) {
        let bad = |first: u64, blocks: u64| {
            // A drive may have larger blocks inside.
            let (first, end) = (first & !7, (first + blocks).next_multiple_of(8));
            self.bad.iter().any(|&(from, count)| from < end && first < from + count)
        };
        let is_due = match (error, want) {
            (BlockError::Invalid, Want::Nonsense(_)) => true,
            // Waiting reads of a client that has gone are not done.
            (BlockError::Invalid, Want::Read { .. } | Want::BlockStatus { .. }) => !is_there,
            (BlockError::Medium, Want::Read { first, blocks, .. }) => bad(first, blocks),
            (BlockError::Dead, _) => self.is_disk_gone(),
            _ => false,
        };
        self.books.bad_reads += u64::from(error == BlockError::Medium);
        assert!(is_due, "{want:?} fails: {error}");
    }

    /// A client disconnects, whatever it waits for; another takes its place.
    fn depart(&mut self) {
        let place = self.random.random_range(0..self.clients.len());
        let area = self.areas[self.random.random_range(0..self.areas.len())];
        let mut next = Client::draw(&mut self.random, self.numbers, area);
        next.ready = self.now + next.ready.since_start();
        self.numbers += 1;
        let gone = std::mem::replace(&mut self.clients[place], next).number;
        self.tell(|| format!("client {gone} is gone"));
        self.books.gone += 1;
        self.core.forget(self.now, gone);
        self.carry_out();
    }

    /// Ends the simulation in the middle; returns whether nothing happens after it.
    fn crash(&mut self) -> bool {
        let end = std::mem::replace(&mut self.end, End::Quiet);
        self.books.ends[place_of(end)] += 1;
        self.tell(|| format!("{end:?}"));
        match end {
            End::PowerCut(_) => {
                self.device.emulator.cut_power(self.now);
                self.judge_media("a power cut");
            }
            End::Killed(_) => {
                self.device.run_out(self.now);
                let emulator = &self.device.emulator;
                let read =
                    |offset, into: &mut [u8]| emulator.read(0, offset, into).expect("the disk is good");
                self.expected_data.check_left(read).unwrap_or_else(|wrong| panic!("after a kill: {wrong}"));
            }
            _ => {
                self.device.emulator.cut_power(self.now);
                return false;
            }
        }
        true
    }

    /// All clients have what they asked for: what they wrote is there, and once it is flushed it stays.
    fn finish(&mut self) {
        assert_eq!(self.core.outstanding(), 0, "nothing is left of what was answered");
        if self.end == End::Quiet && !self.device.emulator.is_dark() {
            self.books.ends[0] += 1;
            for (first, blocks) in self.areas.clone() {
                self.clear_bad(first, blocks);
                self.settle(Want::Read { first, blocks, forced: false });
            }
            self.settle(Want::Flush);
        } else if matches!(self.end, End::DiskDead(_)) {
            self.books.ends[place_of(self.end)] += 1;
        }
        self.device.emulator.cut_power(self.now);
        self.judge_media("all was quiet");
    }

    /// Makes unreadable blocks readable again, by writing them.
    fn clear_bad(&mut self, area: u64, blocks: u64) {
        for (first, count) in self.bad.clone() {
            if (area..area + blocks).contains(&first) {
                let count = count.min(area + blocks - first);
                self.settle(Want::Write { first, blocks: count, forced: true });
            }
        }
    }

    /// Submits one more request, and runs until it has completed.
    fn settle(&mut self, want: Want) {
        self.submit(self.numbers, want);
        while !self.pending.is_empty() {
            let next = self.next().expect("a pending request progresses");
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn judge_media(&self, after: &str) {
        let volume = &self.device.emulator.volumes()[0];
        let read = |offset, into: &mut [u8]| volume.read_media(offset, into).expect("it is inside");
        self.expected_data.check_left(read).unwrap_or_else(|wrong| panic!("after {after}: {wrong}"));
    }

    fn books(&self) -> Books {
        let view = self.core.streams().view();
        Books {
            streams: view.counters.found,
            hits: view.counters.hits,
            turns: view.counters.turns,
            direct: view.counters.direct,
            written: view.counters.written_bytes,
            ..self.books
        }
    }
}

fn is_forced(want: Want) -> bool {
    matches!(want, Want::Write { forced: true, .. } | Want::Zeroes { forced: true, .. })
}

fn place_of(end: End) -> usize {
    match end {
        End::Quiet => 0,
        End::PowerCut(_) => 1,
        End::Killed(_) => 2,
        End::DiskDark(_) => 3,
        End::DiskDead(_) => 4,
    }
}
