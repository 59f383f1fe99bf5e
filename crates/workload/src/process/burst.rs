//! The (p, s, r) load: p processes each read s bytes in a row, r times, at random places.
//!
//! With many short runs it is a random load, with one long run a sequential one.
//!
//! *Source:* the load with which Yeom's slides on redundant scheduling show elevators and drive queues working against each other.

use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::{Process, Step, Wait, check_processes};
use crate::shape::{Places, generator, nonzero, seed_of};
use crate::{Region, ShapeError};

/// The shape of a load of runs at random places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstShape {
    /// The blocks addressed.
    pub region: Region,
    /// Number of processes (p).
    pub processes: u32,
    /// Blocks a run (s).
    pub run: u64,
    /// Runs a process (r).
    pub times: u64,
    /// The most blocks per request; a run's last request is the rest.
    pub sectors: u32,
    /// Runs begin at multiples of this block number.
    pub alignment: u32,
    /// Reads or writes.
    pub op: Op,
}

/// A process that reads or writes one run after the other, each request once the previous one is complete.
#[derive(Clone, Debug)]
pub struct Burst {
    random: Pcg64Mcg,
    places: Places,
    shape: BurstShape,
    runs_left: u64,
    next: Lbn,
    left: u64,
}

impl Process for Burst {
    fn next(&mut self, _now: Instant) -> Option<Step> {
        if self.left == 0 {
            self.runs_left = self.runs_left.checked_sub(1)?;
            self.next = self.places.lbn_at(self.random.random_range(0..self.places.count));
            self.left = self.shape.run;
        }
        let sectors = self.left.min(u64::from(self.shape.sectors));
        let request = Request { op: self.shape.op, lbn: self.next, sectors: sectors as u32, fua: false };
        self.next = self.next + sectors;
        self.left -= sectors;
        Some(Step { gap: Nanos::ZERO, device: 0, request, wait: Wait::AtOnce, urgent: false })
    }
}

impl BurstShape {
    pub(super) fn build(&self, seed: u64) -> Result<impl Iterator<Item = Burst>, ShapeError> {
        check_processes(u64::from(self.processes))?;
        nonzero("the number of runs", self.times)?;
        nonzero("the request size", u64::from(self.sectors))?;
        let places = Places::new(self.region, self.run, self.alignment)?;
        let shape = *self;
        let burst = move |index| Burst {
            random: generator(seed_of(seed, index)),
            places,
            shape,
            runs_left: shape.times,
            next: Lbn(0),
            left: 0,
        };
        Ok((0..u64::from(self.processes)).map(burst))
    }
}
