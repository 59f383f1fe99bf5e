//! The shape of single requests: place, length, read or write.

use headstack_model::{Instant, Lbn, Op, Request};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use thiserror::Error;

use crate::dist::DistributionError;

/// A run of blocks to which a load's requests are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Region {
    pub first: Lbn,
    pub sectors: u64,
}

impl Region {
    /// The first `sectors` blocks of a disk.
    pub fn whole(sectors: u64) -> Region {
        Region { first: Lbn(0), sectors }
    }

    /// The block after the last.
    pub(crate) fn end(&self) -> Result<u64, ShapeError> {
        self.first.0.checked_add(self.sectors).ok_or(ShapeError::Endless)
    }
}

/// The order in which blocks are addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Each request anywhere in the region, all places equally likely.
    Random,
    /// Each request after the last one; after the region's end from its start again.
    Sequential,
}

/// The shape of a load's requests.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Shape {
    pub region: Region,
    pub pattern: Pattern,
    /// Blocks a request.
    pub sectors: u32,
    /// Requests begin at multiples of this block number.
    pub alignment: u32,
    /// Share of reads among the requests; the others are writes.
    pub read_share: f64,
}

/// An invalid load.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ShapeError {
    #[error("{what} is 0, where at least 1 is needed")]
    Zero { what: &'static str },
    #[error("the share of reads is {found}, where 0 to 1 is allowed")]
    ReadShare { found: f64 },
    #[error("the share of sequential requests is {found}, where 0 to 1 is allowed")]
    SequentialShare { found: f64 },
    #[error("no aligned request of {sectors} sectors fits in the {available} sectors from block {first} on")]
    Narrow { sectors: u64, available: u64, first: Lbn },
    #[error("the region ends beyond block 2^64")]
    Endless,
    #[error("{found} requests are outstanding, where at most {most} are allowed")]
    Outstanding { found: u64, most: u64 },
    #[error("there are {found} groups, where at most {most} are allowed")]
    Groups { found: u64, most: u64 },
    #[error("the drift an hour is {found}, where 0, or 1e-9 to 100 is allowed")]
    Drift { found: f64 },
    #[error("there are {found} processes, where at most {most} are allowed")]
    Processes { found: u64, most: u64 },
    #[error(transparent)]
    Distribution(#[from] DistributionError),
}

/// Checks a number of which at least one is needed.
pub fn nonzero(what: &'static str, value: u64) -> Result<(), ShapeError> {
    if value == 0 { Err(ShapeError::Zero { what }) } else { Ok(()) }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// The first, in alignments.
    first: u64,
    pub(crate) count: u64,
    alignment: u64,
}

impl Places {
    pub(crate) fn new(region: Region, sectors: u64, alignment: u32) -> Result<Places, ShapeError> {
        nonzero("the request size", sectors)?;
        nonzero("the alignment", u64::from(alignment))?;
        let alignment = u64::from(alignment);
        let narrow = ShapeError::Narrow { sectors, available: region.sectors, first: region.first };
        let last_start = region.end()?.checked_sub(sectors).ok_or(narrow.clone())?;
        let (first, last) = (region.first.0.div_ceil(alignment), last_start / alignment);
        if last < first || region.sectors < sectors {
            return Err(narrow);
        }
        Ok(Places { first, count: last - first + 1, alignment })
    }

    #[inline]
    pub(crate) fn lbn_at(&self, index: u64) -> Lbn {
        Lbn((self.first + index) * self.alignment)
    }
}

/// A source of single requests, for loads that say when they are issued.
pub trait Pick {
    /// The next request, picked at `now`.
    fn pick(&mut self, now: Instant) -> Request;
}

/// A source of requests of one shape: one size, one pattern (random or sequential) and one share of reads.
#[derive(Clone, Debug)]
pub struct Requests {
    random: Pcg64Mcg,
    places: Places,
    pattern: Pattern,
    sectors: u32,
    /// Distance from the start of one sequential request to the start of the next, in places.
    step: u64,
    next: u64,
    reads: Reads,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Reads {
    Always(Op),
    /// A read where a random number is below this.
    Below(u64),
}

impl Reads {
    pub(crate) fn new(share: f64) -> Result<Reads, ShapeError> {
        match share {
            1.0 => Ok(Reads::Always(Op::Read)),
            0.0 => Ok(Reads::Always(Op::Write)),
            // 2⁶⁴ times the share, which is exact but for the last bits of shares below 2⁻¹¹.
            share if share > 0.0 && share < 1.0 => {
                Ok(Reads::Below((share * 18_446_744_073_709_551_616.0) as u64))
            }
            found => Err(ShapeError::ReadShare { found }),
        }
    }

    #[inline]
    pub(crate) fn draw(self, random: &mut Pcg64Mcg) -> Op {
        match self {
            Reads::Always(op) => op,
            Reads::Below(limit) if random.next_u64() < limit => Op::Read,
            Reads::Below(_) => Op::Write,
        }
    }
}

impl Requests {
    /// Requests of a shape.
    ///
    /// *Errors:* no request of that shape fits, or the share of reads is invalid.
    pub fn new(shape: Shape, seed: u64) -> Result<Requests, ShapeError> {
        let reads = Reads::new(shape.read_share)?;
        Ok(Requests {
            random: generator(seed),
            places: Places::new(shape.region, u64::from(shape.sectors), shape.alignment)?,
            pattern: shape.pattern,
            sectors: shape.sectors,
            step: u64::from(shape.sectors.div_ceil(shape.alignment)),
            next: 0,
            reads,
        })
    }

    /// Starts a sequence at a share of the region.
    pub(crate) fn begin_at(&mut self, part: u64, parts: u64) {
        let steps = self.places.count.div_ceil(self.step);
        let step = u128::from(steps) * u128::from(part) / u128::from(parts);
        self.next = step as u64 * self.step;
    }

    fn next_in_sequence(&mut self) -> u64 {
        let place = if self.next < self.places.count { self.next } else { 0 };
        self.next = place + self.step;
        place
    }
}

impl Pick for Requests {
    #[inline]
    fn pick(&mut self, _now: Instant) -> Request {
        let place = match self.pattern {
            Pattern::Random => self.random.random_range(0..self.places.count),
            Pattern::Sequential => self.next_in_sequence(),
        };
        let op = self.reads.draw(&mut self.random);
        Request { op, lbn: self.places.lbn_at(place), sectors: self.sectors, fua: false }
    }
}

/// The seed of one of many processes of a load.
pub fn seed_of(seed: u64, process: u64) -> u64 {
    // An odd number far from any seed that people choose, so that the processes of near seeds differ.
    seed.wrapping_add(process.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// The generator of every load. Its numbers are the same on every machine.
pub fn generator(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        region: Region { first: Lbn(10), sectors: 30 },
        pattern: Pattern::Random,
        sectors: 8,
        alignment: 8,
        read_share: 1.0,
    };

    fn firsts(shape: Shape, count: usize) -> Vec<u64> {
        let mut requests = Requests::new(shape, 1).expect("the shape is good");
        (0..count).map(|_| requests.pick(Instant::ZERO).lbn.0).collect()
    }

    #[test]
    fn every_aligned_place_is_chosen_and_no_other() {
        let mut met = firsts(SHAPE, 200);
        met.sort_unstable();
        met.dedup();
        assert_eq!(met, [16, 24, 32]);
    }

    #[test]
    fn sequence_wraps_at_region_end() {
        let shape = Shape { pattern: Pattern::Sequential, ..SHAPE };
        assert_eq!(firsts(shape, 5), [16, 24, 32, 16, 24]);
        assert_eq!(firsts(Shape { alignment: 1, ..shape }, 5), [10, 18, 26, 10, 18]);
        assert_eq!(firsts(Shape { sectors: 3, ..shape }, 4), [16, 24, 32, 16]);
    }

    #[test]
    fn places_and_reads_match_their_shares() {
        let shape = Shape { read_share: 0.3, ..SHAPE };
        let mut requests = Requests::new(shape, 7).expect("the shape is good");
        let all: Vec<Request> = (0..30_000).map(|_| requests.pick(Instant::ZERO)).collect();
        let share = |of: fn(&Request) -> bool| {
            all.iter().filter(|request| of(request)).count() as f64 / all.len() as f64
        };
        // Four standard deviations of a share of 30,000.
        assert!((share(|request| request.op == Op::Read) - 0.3).abs() < 4.0 * (0.21f64 / 30_000.0).sqrt());
        let third = share(|request| request.lbn == Lbn(24));
        assert!((third - 1.0 / 3.0).abs() < 4.0 * (2.0f64 / 9.0 / 30_000.0).sqrt());
    }

    #[test]
    fn first_places_match_golden_values() {
        let shape = Shape { region: Region::whole(1 << 40), alignment: 1, read_share: 0.5, ..SHAPE };
        assert_eq!(firsts(shape, 3), [941_970_449_112, 517_277_918_637, 406_647_487_665]);
    }

    #[test]
    fn impossible_shapes_are_rejected() {
        let refused = |shape| Requests::new(shape, 1).expect_err("the shape is bad").to_string();
        assert_eq!(
            refused(Shape { sectors: 0, ..SHAPE }),
            "the request size is 0, where at least 1 is needed"
        );
        assert_eq!(
            refused(Shape { alignment: 0, ..SHAPE }),
            "the alignment is 0, where at least 1 is needed"
        );
        assert_eq!(
            refused(Shape { sectors: 31, ..SHAPE }),
            "no aligned request of 31 sectors fits in the 30 sectors from block 10 on"
        );
        assert!(refused(Shape { alignment: 64, ..SHAPE }).starts_with("no aligned request of 8 sectors"));
        for share in [-0.1, 1.1, f64::NAN] {
            assert!(refused(Shape { read_share: share, ..SHAPE }).starts_with("the share of reads is"));
        }
        let endless = Region { first: Lbn(u64::MAX), sectors: 2 };
        assert_eq!(refused(Shape { region: endless, ..SHAPE }), "the region ends beyond block 2^64");
    }
}
