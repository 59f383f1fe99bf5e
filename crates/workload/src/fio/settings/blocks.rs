//! The sizes of requests, and what they are aligned to. Each has a value for reads, writes and trims.

use crate::fio::value::{Given, Parsed};

const SPLITS_MAX: usize = 64;

/// A size of a split and its share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::fio) struct Split {
    pub(in crate::fio) bytes: u64,
    pub(in crate::fio) percent: u64,
}

impl Split {
    /// `bssplit=4k/10:64k/50:32k/40`, by growing share.
    pub(in crate::fio) fn read_list(given: &Given<'_>) -> Parsed<Vec<Split>> {
        let pairs = given.pairs(SPLITS_MAX, Given::request_bytes, Given::percent)?;
        let percents = given.fill_percents(pairs.iter().map(|(_, percent)| *percent))?;
        let splits = pairs.iter().zip(percents);
        let mut splits: Vec<Split> =
            splits.map(|((bytes, _), percent)| Split { bytes: *bytes, percent }).collect();
        splits.sort_by_key(|split| split.percent);
        Ok(splits)
    }
}

#[derive(Clone, Debug)]
pub(in crate::fio) struct RequestSizes {
    pub(in crate::fio) bytes: [u64; 3],
    pub(in crate::fio) range: [Option<(u64, u64)>; 3],
    pub(in crate::fio) split: [Vec<Split>; 3],
    pub(in crate::fio) unaligned: bool,
    /// Whether sizes differ by sequential and random instead of by reads and writes.
    pub(in crate::fio) by_randomness: bool,
    pub(in crate::fio) align: [Option<u64>; 3],
}

impl Default for RequestSizes {
    fn default() -> RequestSizes {
        RequestSizes {
            bytes: [4096; 3],
            range: [None; 3],
            split: [const { Vec::new() }; 3],
            unaligned: false,
            by_randomness: false,
            align: [None; 3],
        }
    }
}
