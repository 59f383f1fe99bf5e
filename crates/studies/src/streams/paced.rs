//! Readers that each request their bytes at a fixed rate, as a player does.

use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_workload::{Issue, Load, Poll, Region};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One reader per region, each with one request outstanding. A request is issued at its due time, or when the previous one completes if
/// that is later, so that a delayed reader catches up.
#[derive(Clone)]
pub(super) struct Paced {
    readers: Vec<PacedReader>,
    sectors: u32,
    period: Nanos,
    /// When each reader without an outstanding request issues its next one.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
}

#[derive(Clone)]
struct PacedReader {
    region: Region,
    issued: u64,
    /// When its first request is due: readers do not begin all at the same time.
    begins: Instant,
}

impl Paced {
    /// Readers of this many bytes a second in requests of `sectors` blocks of 512 bytes.
    pub(super) fn new(regions: Vec<Region>, bytes_per_s: f64, sectors: u32) -> Paced {
        let period = Nanos::from_ms(f64::from(sectors) * 512e3 / bytes_per_s);
        let count = regions.len() as u64;
        let reader = |(index, region)| PacedReader {
            region,
            issued: 0,
            begins: Instant(period.0 * index as u64 / count),
        };
        let readers: Vec<PacedReader> = regions.into_iter().enumerate().map(reader).collect();
        let due = readers.iter().zip(0..).map(|(reader, index)| Reverse((reader.begins, index))).collect();
        Paced { readers, sectors, period, due }
    }

    /// When a request is due, by its id.
    pub(super) fn due_of(&self, id: u64) -> Instant {
        let count = self.readers.len() as u64;
        self.readers[(id % count) as usize].begins + Nanos(self.period.0 * (id / count))
    }
}

impl Load for Paced {
    fn poll(&mut self, now: Instant) -> Poll {
        let Some(Reverse((at, index))) = self.due.peek().copied() else { return Poll::Waiting };
        if at > now {
            return Poll::Later(at);
        }
        self.due.pop();
        let (count, sectors) = (self.readers.len() as u64, u64::from(self.sectors));
        let reader = &mut self.readers[index as usize];
        let lbn = Lbn(reader.region.first.0 + reader.issued % (reader.region.sectors / sectors) * sectors);
        let id = reader.issued * count + u64::from(index);
        reader.issued += 1;
        Poll::Issue(Issue { source: index, ..Issue::new(0, Request::read(lbn, self.sectors), id) })
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        let count = self.readers.len() as u64;
        let next = self.due_of(id + count).max(now);
        self.due.push(Reverse((next, (id % count) as u32)));
    }
}
