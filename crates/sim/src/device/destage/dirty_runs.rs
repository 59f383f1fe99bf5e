//! The dirty runs that wait for the arm, found by number and by block.
//!
//! Every read that arrives or begins checks whether a dirty run holds its blocks; a drive of today has up to 1,024 runs. Runs
//! are chained by the part of the disk in which they begin, so that a read checks only a few of them.

use super::Run;
use headstack_model::Lbn;
use slab::Slab;
use std::ops::Index;

/// The number of no run: the end of a chain.
const NONE: u32 = u32::MAX;

/// 2⁶⁴ by the golden ratio: neighbouring parts of the disk get chains far from each other.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Debug)]
struct ChainedRun {
    run: Run,
    /// The next run of the chain.
    next: u32,
}

#[derive(Debug)]
pub(super) struct DirtyRuns {
    runs: Slab<ChainedRun>,
    /// The first run of each chain: a power of two of chains, or none where runs are not found by block.
    chains: Vec<u32>,
    /// A part of the disk has two to this power sectors.
    part_shift: u32,
    /// Sectors of the longest run until now.
    longest: u64,
}

impl DirtyRuns {
    /// Room for `most` runs of usually at most `usual_sectors`, found by block only if asked for.
    pub(super) fn new(most: usize, usual_sectors: u64, by_block: bool) -> DirtyRuns {
        let chains = if by_block { (2 * most).next_power_of_two().max(2) } else { 0 };
        DirtyRuns {
            runs: Slab::with_capacity(most),
            chains: vec![NONE; chains],
            part_shift: usual_sectors.max(1).next_power_of_two().trailing_zeros(),
            longest: 1,
        }
    }

    /// Adds a run and returns its number, which is free again once it is removed.
    pub(super) fn insert(&mut self, run: Run) -> u32 {
        let number = self.runs.insert(ChainedRun { run, next: NONE }) as u32;
        self.longest = self.longest.max(run.end - run.start);
        self.link(number);
        number
    }

    /// Removes a run. Panics if there is none of this number.
    pub(super) fn remove(&mut self, number: u32) -> Run {
        self.unlink(number);
        self.runs.remove(number as usize).run
    }

    /// Changes a run that keeps its first block.
    pub(super) fn extend(&mut self, number: u32, change: impl FnOnce(&mut Run)) {
        let run = &mut self.runs[number as usize].run;
        let start = run.start;
        change(run);
        assert_eq!(run.start, start, "a run that is extended begins where it began");
        self.longest = self.longest.max(run.end - start);
    }

    /// Cuts the first blocks off a run, and changes the rest.
    pub(super) fn cut_front(&mut self, number: u32, start: Lbn, change: impl FnOnce(&mut Run)) {
        self.unlink(number);
        let run = &mut self.runs[number as usize].run;
        change(run);
        run.start = start;
        self.link(number);
    }

    /// The number of a run of this kind that begins or ends at a block; none where runs are not found by block.
    pub(super) fn find_run(&self, at: Lbn, is_wanted: impl Fn(&Run) -> bool) -> Option<u32> {
        if self.runs.is_empty() || self.chains.is_empty() {
            return None;
        }
        let first = at.0.saturating_sub(self.longest) >> self.part_shift;
        (first..=at.0 >> self.part_shift).find_map(|part| {
            let mut number = self.chains[self.chain_of(part)];
            while let Some(ChainedRun { run, next }) = self.runs.get(number as usize) {
                if is_wanted(run) {
                    return Some(number);
                }
                number = *next;
            }
            None
        })
    }

    /// Whether one run has all of these blocks. Panics if runs are not found by block.
    pub(super) fn hold(&self, start: Lbn, end: Lbn) -> bool {
        if self.runs.is_empty() {
            return false;
        }
        let first = start.0.saturating_sub(self.longest - 1) >> self.part_shift;
        (first..=start.0 >> self.part_shift)
            .any(|part| self.chain(part).any(|run| run.start <= start && end <= run.end))
    }

    /// The runs that begin in a part of the disk, and others of the same chain.
    fn chain(&self, part: u64) -> impl Iterator<Item = &Run> {
        let mut number = self.chains[self.chain_of(part)];
        std::iter::from_fn(move || {
            let ChainedRun { run, next } = self.runs.get(number as usize)?;
            number = *next;
            Some(run)
        })
    }

    fn chain_of(&self, part: u64) -> usize {
        (part.wrapping_mul(SPREAD) >> (u64::BITS - self.chains.len().trailing_zeros())) as usize
    }

    fn chain_of_run(&self, number: u32) -> usize {
        self.chain_of(self.runs[number as usize].run.start.0 >> self.part_shift)
    }

    fn link(&mut self, number: u32) {
        if self.chains.is_empty() {
            return;
        }
        let chain = self.chain_of_run(number);
        self.runs[number as usize].next = std::mem::replace(&mut self.chains[chain], number);
    }

    fn unlink(&mut self, number: u32) {
        if self.chains.is_empty() {
            return;
        }
        let chain = self.chain_of_run(number);
        let next = self.runs[number as usize].next;
        if self.chains[chain] == number {
            self.chains[chain] = next;
            return;
        }
        let mut before = self.chains[chain];
        while self.runs[before as usize].next != number {
            before = self.runs[before as usize].next;
        }
        self.runs[before as usize].next = next;
    }
}

impl Index<usize> for DirtyRuns {
    type Output = Run;

    fn index(&self, number: usize) -> &Run {
        &self.runs[number].run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A change of the runs: which run, which kind of change, and two sizes for it.
    fn changes() -> impl Strategy<Value = Vec<(usize, u8, u64, u64)>> {
        prop::collection::vec((0usize..16, 0u8..5, 0u64..400, 1u64..90), 0..60)
    }

    proptest! {
        #[test]
        fn a_run_that_has_the_blocks_is_found(
            changes in changes(),
            usual in 0u64..40,
            reads in prop::collection::vec((0u64..500, 1u64..30), 20),
        ) {
            let mut runs = DirtyRuns::new(8, usual, true);
            let mut known: Vec<(u32, u64, u64)> = Vec::new();
            for (which, kind, place, sectors) in changes {
                let which = which.checked_rem(known.len());
                match (kind, which) {
                    (0, Some(which)) => {
                        let (number, start, end) = known.swap_remove(which);
                        let run = runs.remove(number);
                        prop_assert_eq!((run.start, run.end), (Lbn(start), Lbn(end)));
                    }
                    (1, Some(which)) => {
                        let (number, _, end) = &mut known[which];
                        *end += sectors;
                        runs.extend(*number, |run| run.end = Lbn(*end));
                    }
                    (2, Some(which)) => {
                        let (number, start, end) = &mut known[which];
                        *start = (*start + sectors).min(*end - 1);
                        runs.cut_front(*number, Lbn(*start), |_| {});
                    }
                    _ => {
                        let end = place + sectors;
                        let run = Run { start: Lbn(place), end: Lbn(end), ..Run::default() };
                        known.push((runs.insert(run), place, end));
                    }
                }
                for (start, sectors) in &reads {
                    let end = start + sectors;
                    let holds = known.iter().any(|(_, from, to)| from <= start && end <= *to);
                    prop_assert_eq!(runs.hold(Lbn(*start), Lbn(end)), holds);
                }
            }
        }
    }
}
