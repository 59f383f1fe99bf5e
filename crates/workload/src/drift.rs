//! Requests to groups of blocks whose popularity follows Zipf's law or another, and drifts.
//!
//! A seeded permutation assigns ranks to groups. Pairs of groups exchange their ranks at even intervals, so that after a time t
//! the share exp(-rate · t) of the groups still has its rank. Memory: 4 bytes per group.
//!
//! *Source:* the day-to-day drift that limits adaptive block rearrangement; the exchange of ranks is an assumption.

use headstack_model::{Instant, Lbn, Request};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::dist::{Popularity, Ranks};
use crate::shape::{Places, Reads, generator, nonzero};
use crate::{Pick, Region, ShapeError};

/// The most groups: 64 MiB of ranks.
const MOST_GROUPS: u64 = 1 << 24;

/// The most exchanges at once, per group: after them one of nine million still has its rank.
const MOST_EXCHANGES: u64 = 8;

const HOUR: u64 = 3_600_000_000_000;

/// The shape of requests to popular groups.
#[derive(Clone, Debug, PartialEq)]
pub struct DriftShape {
    /// The blocks addressed. Blocks after the last whole group are not used.
    pub region: Region,
    /// Blocks a group.
    pub group: u64,
    /// How accesses are distributed over groups, the most popular first.
    pub popularity: Popularity,
    /// Blocks a request. It lies anywhere in its group.
    pub sectors: u32,
    /// Requests begin at multiples of this many blocks from their group's start.
    pub alignment: u32,
    /// Share of reads among the requests; the others are writes.
    pub read_share: f64,
    /// Share of the groups that change their rank in an hour, for small values; 0 for no drift.
    pub drift_per_hour: f64,
}

/// Requests to popular groups of blocks.
#[derive(Clone, Debug)]
pub struct Drifting {
    shape: DriftShape,
    ranks: Ranks,
    /// The places in a group, counted from its start.
    places: Places,
    reads: Reads,
    groups: Vec<u32>,
    random: Pcg64Mcg,
    /// A separate generator, so that ranks change in the same way whatever the requests are.
    mover: Pcg64Mcg,
    /// Time between two exchanges of ranks; none without drift.
    interval: Option<u64>,
    exchanged: u64,
}

impl Drifting {
    /// Requests of a shape.
    ///
    /// *Errors:* no request fits in a group, there are no groups or too many, or a number is out of its range.
    pub fn new(shape: DriftShape, seed: u64) -> Result<Drifting, ShapeError> {
        nonzero("the group size", shape.group)?;
        shape.region.end()?;
        let count = shape.region.sectors / shape.group;
        if count == 0 {
            let Region { first, sectors: available } = shape.region;
            return Err(ShapeError::Narrow { sectors: shape.group, available, first });
        }
        if count > MOST_GROUPS {
            return Err(ShapeError::Groups { found: count, most: MOST_GROUPS });
        }
        let group = Region { first: Lbn(0), sectors: shape.group };
        let places = Places::new(group, u64::from(shape.sectors), shape.alignment)?;
        let mut mover = generator(!seed);
        let mut groups: Vec<u32> = (0..count as u32).collect();
        for rank in (1..groups.len()).rev() {
            groups.swap(rank, mover.random_range(0..=rank));
        }
        Ok(Drifting {
            ranks: shape.popularity.ranks(count)?,
            reads: Reads::new(shape.read_share)?,
            interval: interval(shape.drift_per_hour, count)?,
            groups,
            places,
            random: generator(seed),
            mover,
            exchanged: 0,
            shape,
        })
    }

    /// The groups by rank at `now`, the most popular first. Time must not go back.
    pub fn groups_at(&mut self, now: Instant) -> &[u32] {
        let due = self.interval.map_or(0, |interval| now.0 / interval);
        // After a pause so long that hardly any rank is unchanged, further exchanges would have no visible effect.
        let most = MOST_EXCHANGES * self.groups.len() as u64;
        self.exchanged = self.exchanged.max(due.saturating_sub(most));
        while self.exchanged < due {
            self.exchanged += 1;
            let one = self.mover.random_range(0..self.groups.len());
            let other = self.mover.random_range(0..self.groups.len());
            self.groups.swap(one, other);
        }
        &self.groups
    }
}

/// The time between two exchanges. Each moves two groups, so half as many exchanges are needed for the share that moves in an hour.
fn interval(drift_per_hour: f64, groups: u64) -> Result<Option<u64>, ShapeError> {
    if drift_per_hour == 0.0 {
        return Ok(None);
    }
    if !(1e-9..=100.0).contains(&drift_per_hour) {
        return Err(ShapeError::Drift { found: drift_per_hour });
    }
    let exchanges = drift_per_hour * groups as f64 / 2.0;
    Ok(Some(((HOUR as f64 / exchanges).round() as u64).max(1)))
}

impl Pick for Drifting {
    fn pick(&mut self, now: Instant) -> Request {
        let rank = self.ranks.draw(&mut self.random) as usize;
        let group = self.groups_at(now)[rank];
        let place = self.places.lbn_at(self.random.random_range(0..self.places.count));
        let lbn = self.shape.region.first + u64::from(group) * self.shape.group + place.0;
        Request { op: self.reads.draw(&mut self.random), lbn, sectors: self.shape.sectors, fua: false }
    }
}
