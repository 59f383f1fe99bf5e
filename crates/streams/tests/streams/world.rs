//! A disk, its clients and a scheduler between them, in virtual time and with data: each block has the number of the write that wrote it.

use headstack_model::{BlockError, Instant, Nanos};
use headstack_streams::streams::{
    Action, Answer, Command, Config, Outcome, Request, RequestKind, Streams, TransferBuffer,
};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of a block.
pub(crate) const BLOCK: u64 = 4096;

/// The time that a disk takes for a command: for positioning, and for each byte.
#[derive(Clone, Copy)]
pub(crate) struct Speed {
    pub(crate) positioning: Nanos,
    pub(crate) byte_ns: f64,
}

pub(crate) struct World {
    pub(crate) streams: Streams,
    /// Whether the scheduler's internal consistency is checked after each step.
    pub(crate) is_checked: bool,
    pub(crate) now: Instant,
    pub(crate) disk: Vec<u64>,
    speed: Speed,
    memory: Vec<u64>,
    queue: VecDeque<Command>,
    busy_until: Instant,
    head: u64,
    pub(crate) flaws: Vec<u64>,
    pub(crate) dead: bool,
    requests: BTreeMap<u64, (RequestKind, Vec<u64>)>,
    tickets: u64,
    pub(crate) answered: Vec<(u64, Result<Vec<u64>, BlockError>)>,
    pub(crate) commands: u64,
    /// The offsets at which commands of streams ended.
    pub(crate) ends: Vec<u64>,
    /// The largest number of commands of streams in flight at a time.
    pub(crate) most_in_flight: usize,
    /// The byte ranges of writes, in the order in which their commands began.
    pub(crate) writes: Vec<(u64, u64)>,
    /// The commands that began, each with its duration limit.
    pub(crate) limits: Vec<(RequestKind, u8)>,
}

fn blocks(bytes: u64) -> usize {
    (bytes / BLOCK) as usize
}

impl World {
    pub(crate) fn new(config: Config, disk_blocks: usize, speed: Speed) -> World {
        let streams = Streams::new(config, disk_blocks as u64 * BLOCK).expect("the configuration is right");
        let memory = vec![0; blocks(streams.memory_bytes())];
        World {
            streams,
            is_checked: false,
            now: Instant::ZERO,
            disk: vec![0; disk_blocks],
            speed,
            memory,
            queue: VecDeque::new(),
            busy_until: Instant::ZERO,
            head: 0,
            flaws: Vec::new(),
            dead: false,
            requests: BTreeMap::new(),
            tickets: 0,
            answered: Vec::new(),
            commands: 0,
            ends: Vec::new(),
            most_in_flight: 0,
            writes: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// Submits a request of a client. A write writes `number` to its blocks. Returns the ticket.
    pub(crate) fn submit(&mut self, client: u64, kind: RequestKind, number: u64) -> u64 {
        self.tickets += 1;
        let ticket = self.tickets;
        self.requests.insert(ticket, (kind, vec![number; blocks(kind.transferred_bytes())]));
        self.streams.submit(self.now, Request { ticket, client, kind });
        self.act();
        ticket
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.requests.len()
    }

    fn act(&mut self) {
        let mut actions = 0;
        while let Some(action) = self.streams.poll_action() {
            actions += 1;
            assert!(actions < 100_000, "there is an end to it");
            match action {
                Action::CopyIn { ticket, from, piece } => {
                    let data = &self.requests[&ticket].1[blocks(from)..][..blocks(piece.bytes)];
                    self.memory[blocks(piece.at)..][..data.len()].copy_from_slice(data);
                }
                Action::Start(command) => {
                    if self.queue.is_empty() {
                        self.busy_until = self.busy_until.max(self.now);
                        let took = self.service(&command);
                        self.busy_until += took;
                    }
                    self.commands += 1;
                    self.limits.push((command.kind, command.limit));
                    if matches!(command.kind, RequestKind::Write { .. }) {
                        self.writes.push(command.kind.run());
                    }
                    if matches!(command.place, TransferBuffer::Memory(_)) {
                        let (offset, bytes) = command.kind.run();
                        self.ends.push(offset + bytes);
                    }
                    self.queue.push_back(command);
                    let of_streams = self
                        .queue
                        .iter()
                        .filter(|command| matches!(command.place, TransferBuffer::Memory(_)));
                    self.most_in_flight = self.most_in_flight.max(of_streams.count());
                }
                Action::Answer(Answer { ticket, result }) => {
                    let (_, mut data) = self.requests.remove(&ticket).expect("each request is answered once");
                    if let Ok(Outcome::Staged(pieces)) = result {
                        let staged = pieces.iter().flat_map(|piece| {
                            self.memory[blocks(piece.at)..][..blocks(piece.bytes)].iter().copied()
                        });
                        data = staged.collect();
                        self.streams.release(&pieces);
                    }
                    self.answered.push((ticket, result.map(|_| data)));
                }
            }
        }
        let view = self.streams.view();
        assert!(view.memory.used_bytes <= view.memory.bytes, "memory is never more than stated");
        if self.is_checked {
            self.streams.check();
        }
    }

    fn service(&mut self, command: &Command) -> Nanos {
        let (offset, bytes) = command.kind.run();
        let moved = if offset == self.head { Nanos::ZERO } else { self.speed.positioning };
        self.head = offset + bytes;
        moved + Nanos((bytes as f64 * self.speed.byte_ns) as u64) + Nanos(1000)
    }

    fn carry_out(&mut self, command: &Command) -> Result<(), BlockError> {
        if self.dead {
            return Err(BlockError::Dead);
        }
        let (offset, bytes) = command.kind.run();
        let (first, count) = (blocks(offset), blocks(bytes));
        let is_flawed = self.flaws.iter().any(|flaw| (first..first + count).contains(&(*flaw as usize)));
        let own = match command.place {
            TransferBuffer::Request(ticket) => Some(&mut self.requests.get_mut(&ticket).expect("it waits").1),
            _ => None,
        };
        let at = match command.place {
            TransferBuffer::Memory(at) => blocks(at),
            _ => 0,
        };
        match command.kind {
            RequestKind::Read { .. } if is_flawed => return Err(BlockError::Medium),
            RequestKind::Read { .. } => {
                let to = own.map_or_else(|| &mut self.memory[at..at + count], |own| &mut own[..]);
                to.copy_from_slice(&self.disk[first..first + count]);
            }
            RequestKind::Write { .. } => {
                let from = own.map_or_else(|| &self.memory[at..at + count], |own| &own[..]);
                self.disk[first..first + count].copy_from_slice(from);
            }
            RequestKind::Zero { .. } | RequestKind::Trim { .. } => self.disk[first..first + count].fill(0),
            RequestKind::BlockStatus { .. } | RequestKind::Flush => {}
        }
        Ok(())
    }

    /// Advances to the next event. Returns false if there is none up to `until`.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        let end = if self.queue.is_empty() { Instant::MAX } else { self.busy_until };
        let timer = self.streams.poll_timeout().unwrap_or(Instant::MAX);
        let next = end.min(timer);
        if next > until || next == Instant::MAX {
            self.now = self.now.max(if until == Instant::MAX { self.now } else { until });
            return false;
        }
        self.now = self.now.max(next);
        if end <= timer {
            let command = self.queue.pop_front().expect("one is in flight");
            let result = self.carry_out(&command);
            if let Some(following) = self.queue.front().copied() {
                self.busy_until = self.now + self.service(&following);
            }
            self.streams.handle_end(self.now, command.id, result);
        } else {
            self.streams.handle_timeout(self.now);
        }
        self.act();
        true
    }
}
