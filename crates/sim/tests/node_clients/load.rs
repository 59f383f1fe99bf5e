//! Closed clients of a storage node: each keeps a number of requests outstanding, in one of several patterns.

use headstack_model::{Instant, Lbn, Op, Request};
use headstack_workload::{Issue, Load, Poll};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;

/// Bytes of a block.
pub(crate) const SECTOR: u64 = 512;

/// Requests among which a reordered client chooses the next.
const REORDERED: usize = 32;

/// Where a client's requests lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Each behind the last.
    Sequential,
    /// As sequential, but issued in an order that departs from it by up to 32 requests.
    Reordered,
    /// With a gap of three requests after each.
    Strided,
    /// Anywhere in a region of this size in megabytes, all places equally likely.
    Random(u64),
    /// Sequential; clients read one file in pairs, the second 10 requests behind the first.
    SharedFile,
}

/// One client: what it asks next.
#[derive(Debug)]
struct Client {
    pattern: Pattern,
    random: Pcg64Mcg,
    /// First byte and length of the part of the disk that it reads.
    first: u64,
    length: u64,
    bytes: u64,
    next: u64,
    /// Offsets that a reordered client has not issued yet.
    pending: Vec<u64>,
    outstanding: u32,
}

impl Client {
    fn sequential(&mut self, step: u64) -> u64 {
        let offset = self.next;
        self.next += step;
        if self.next + self.bytes > self.first + self.length {
            self.next = self.first;
        }
        offset
    }

    fn offset(&mut self) -> u64 {
        match self.pattern {
            Pattern::Sequential | Pattern::SharedFile => self.sequential(self.bytes),
            Pattern::Strided => self.sequential(4 * self.bytes),
            Pattern::Random(_) => {
                let places = self.length / self.bytes;
                self.first + self.random.random_range(0..places) * self.bytes
            }
            Pattern::Reordered => {
                while self.pending.len() < REORDERED {
                    let offset = self.sequential(self.bytes);
                    self.pending.push(offset);
                }
                // The one issued is at most a window behind the newest: the oldest goes first once it is that old.
                let oldest = *self.pending.iter().min().expect("the window is full");
                let newest = *self.pending.iter().max().expect("the window is full");
                let is_old = newest - oldest >= (2 * REORDERED as u64 - 1) * self.bytes / 2;
                let place = if is_old {
                    self.pending.iter().position(|offset| *offset == oldest).expect("it is there")
                } else {
                    self.random.random_range(0..self.pending.len())
                };
                self.pending.swap_remove(place)
            }
        }
    }
}

/// Clients that each keep `depth` requests outstanding.
#[derive(Debug)]
pub(crate) struct Clients {
    clients: Vec<Client>,
    depth: u32,
    /// Clients that may issue.
    ready: VecDeque<u32>,
    issued: u64,
}

impl Clients {
    /// `clients` clients, each in a part of its own of a disk of `disk_bytes`.
    pub(crate) fn new(pattern: Pattern, clients: u32, depth: u32, bytes: u64, disk_bytes: u64) -> Clients {
        let part = disk_bytes / u64::from(clients) / 8 * 7 / bytes * bytes;
        let client = |number: u32| {
            let place = match pattern {
                Pattern::SharedFile => number / 2 * 2,
                Pattern::Random(_) => 0,
                _ => number,
            };
            let first = (u64::from(place) * (disk_bytes / u64::from(clients)) + disk_bytes / 97) / (1 << 20)
                * (1 << 20);
            let length = match pattern {
                Pattern::Random(megabytes) => (megabytes * 1_000_000).max(2 * bytes),
                _ => part.min(disk_bytes - first),
            };
            let behind =
                if pattern == Pattern::SharedFile && number.is_multiple_of(2) { 10 * bytes } else { 0 };
            Client {
                pattern,
                random: Pcg64Mcg::seed_from_u64(u64::from(number) + 1),
                first,
                length,
                bytes,
                next: first + behind,
                pending: Vec::new(),
                outstanding: 0,
            }
        };
        Clients {
            clients: (0..clients).map(client).collect(),
            depth,
            ready: (0..clients).collect(),
            issued: 0,
        }
    }
}

impl Load for Clients {
    fn poll(&mut self, _: Instant) -> Poll {
        let Some(number) = self.ready.pop_front() else { return Poll::Waiting };
        let count = self.clients.len() as u64;
        let client = &mut self.clients[number as usize];
        let lbn = Lbn(client.offset() / SECTOR);
        client.outstanding += 1;
        if client.outstanding < self.depth {
            self.ready.push_back(number);
        }
        let request = Request { op: Op::Read, lbn, sectors: (client.bytes / SECTOR) as u32, fua: false };
        let id = self.issued * count + u64::from(number);
        self.issued += 1;
        Poll::Issue(Issue { source: number, ..Issue::new(0, request, id) })
    }

    fn handle_completion(&mut self, _: Instant, id: u64) {
        let number = (id % self.clients.len() as u64) as u32;
        let client = &mut self.clients[number as usize];
        client.outstanding -= 1;
        if client.outstanding + 1 == self.depth {
            self.ready.push_back(number);
        }
    }
}
