//! The kinds of requests: reads, writes, their mix, and how they move through a file.

use crate::fio::value::{Given, Parsed};
use crate::load::ReadAdvice;

/// Reads, writes and trims, as places in arrays.
pub(in crate::fio) const READ: usize = 0;
pub(in crate::fio) const WRITE: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fio) struct Direction {
    pub(in crate::fio) random: bool,
    pub(in crate::fio) reads: bool,
    pub(in crate::fio) writes: bool,
    pub(in crate::fio) trims: bool,
}

impl Direction {
    pub(in crate::fio) fn is_mixed(self) -> bool {
        self.reads && self.writes
    }
}

const fn direction(random: bool, reads: bool, writes: bool, trims: bool) -> Direction {
    Direction { random, reads, writes, trims }
}

const DIRECTIONS: [(&str, Direction); 11] = [
    ("read", direction(false, true, false, false)),
    ("write", direction(false, false, true, false)),
    ("rw", direction(false, true, true, false)),
    ("readwrite", direction(false, true, true, false)),
    ("randread", direction(true, true, false, false)),
    ("randwrite", direction(true, false, true, false)),
    ("randrw", direction(true, true, true, false)),
    ("trim", direction(false, false, false, true)),
    ("randtrim", direction(true, false, false, true)),
    ("trimwrite", direction(false, false, true, true)),
    ("randtrimwrite", direction(true, false, true, true)),
];

#[derive(Clone, Copy, Debug)]
pub(in crate::fio) struct Rw {
    pub(in crate::fio) direction: Direction,
    /// The number after `rw=…:`.
    pub(in crate::fio) modifier: u64,
    pub(in crate::fio) backwards: bool,
}

impl Rw {
    /// `rw=randread:8`, `rw=write:4k`.
    pub(in crate::fio) fn read(given: &Given<'_>) -> Parsed<Rw> {
        let (word, modifier) = given.head()?;
        let direction = word.word(&DIRECTIONS)?;
        let Some(modifier) = modifier else { return Ok(Rw { direction, modifier: 0, backwards: false }) };
        if direction.random {
            let modifier = modifier.count(1, u64::from(u32::MAX))?;
            return Ok(Rw { direction, modifier, backwards: false });
        }
        let (distance, backwards) = modifier.signed()?;
        Ok(Rw { direction, modifier: distance.bytes()?, backwards })
    }
}

/// A job's advice to the kernel about its reads.
///
/// *Source:* fio 3.33, `td_io_open_file`: without a value the kind of the pattern, which is random for `rand…` only.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fio) enum FadviseHint {
    #[default]
    OfPattern,
    Always(ReadAdvice),
}

impl FadviseHint {
    /// `fadvise_hint=0`, `fadvise_hint=random`.
    pub(in crate::fio) fn read(given: &Given<'_>) -> Parsed<FadviseHint> {
        given.word(&[
            ("1", FadviseHint::OfPattern),
            ("0", FadviseHint::Always(ReadAdvice::Normal)),
            ("random", FadviseHint::Always(ReadAdvice::Random)),
            ("sequential", FadviseHint::Always(ReadAdvice::Sequential)),
        ])
    }
}

#[derive(Clone, Copy, Debug)]
pub(in crate::fio) struct RequestKinds {
    pub(in crate::fio) rw: Rw,
    /// Whether requests between two draws of a place repeat that place.
    pub(in crate::fio) same_place: bool,
    /// Percentage of reads in a mix.
    pub(in crate::fio) read_percent: u64,
}

impl Default for RequestKinds {
    fn default() -> RequestKinds {
        let rw = Rw { direction: direction(false, true, false, false), modifier: 0, backwards: false };
        RequestKinds { rw, same_place: false, read_percent: 50 }
    }
}
