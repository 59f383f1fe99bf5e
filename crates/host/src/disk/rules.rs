//! Faults that a test sets and clears while a disk runs.
//!
//! A rule acts on whole operations in front of the model: it fails them, delays their answers, corrupts their data, or removes the disk.
//! Faults of the model itself, which take the drive's time, are [`headstack_sim::Fault`].

use crate::{BlockError, Operation};
use headstack_model::{Geometry, Lbn, Nanos};
use std::ops::Range;

/// The operations that a rule is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StruckOperations {
    /// All.
    #[default]
    Any,
    /// Reads and prefetches.
    Reads,
    /// Writes, of zeros too, and trims.
    Writes,
    /// Flushes.
    Flushes,
}

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    /// It fails at once, and changes nothing.
    Fail,
    /// Its answer comes later by this time.
    Delay(Nanos),
    /// A bit of each of its blocks changes without an error: of a write as the drive takes it, of a read on the media.
    Corrupt,
    /// The disk is gone: operations fail until the rule is cleared. What the drive's cache holds stays.
    Gone,
}

/// A fault, until it is cleared or used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRule {
    /// The volume; all if none.
    pub volume: Option<u32>,
    /// The operations that it is for.
    pub operations: StruckOperations,
    /// The blocks of which an operation must touch one; any if none.
    pub blocks: Option<Range<u64>>,
    /// The head under which one of the operation's blocks must lie.
    pub head: Option<u32>,
    /// Number of such operations that pass first.
    pub skip: u64,
    /// Number of operations that it strikes after those; all if none.
    pub count: Option<u64>,
    /// What happens to them.
    pub effect: FaultEffect,
}

/// The effect of all rules on one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FaultVerdict {
    pub(super) error: Option<BlockError>,
    pub(super) delay: Nanos,
    /// The blocks of the operation that are corrupted.
    pub(super) corrupt: Option<Range<u64>>,
}

/// The rules of a disk, each with its number.
#[derive(Clone, Debug, Default)]
pub struct FaultRules {
    rules: Vec<(u32, FaultRule)>,
    last: u32,
}

impl FaultRules {
    /// Adds a rule; returns its number.
    pub fn add(&mut self, rule: FaultRule) -> u32 {
        self.set(self.last + 1, rule);
        self.last
    }

    /// Adds a rule under a number, which rules for several volumes may share.
    pub fn set(&mut self, number: u32, rule: FaultRule) {
        self.last = self.last.max(number);
        self.rules.push((number, rule));
    }

    /// The largest number of a rule so far; 0 before the first.
    pub fn last_number(&self) -> u32 {
        self.last
    }

    /// The rules that are in force, with their numbers.
    pub fn all(&self) -> &[(u32, FaultRule)] {
        &self.rules
    }

    /// Removes the rules that `choose` selects by number and rule; returns how many there were.
    pub fn remove(&mut self, choose: impl Fn(u32, &FaultRule) -> bool) -> usize {
        let before = self.rules.len();
        self.rules.retain(|(number, rule)| !choose(*number, rule));
        before - self.rules.len()
    }

    /// What happens to an operation on a volume with blocks of `block` bytes. A disk that is gone does nothing else.
    pub(super) fn strike(
        &mut self,
        volume: u32,
        operation: &Operation,
        block: u64,
        geometry: Option<&Geometry>,
    ) -> FaultVerdict {
        let mut verdict = FaultVerdict::default();
        if self.rules.is_empty() {
            return verdict;
        }
        let blocks = blocks(operation, block);
        for (_, rule) in &mut self.rules {
            if !rule.is_for(volume, operation, blocks.as_ref(), geometry) {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
                continue;
            }
            rule.count = rule.count.map(|count| count - 1);
            match rule.effect {
                FaultEffect::Gone => verdict.error = Some(BlockError::Dead),
                FaultEffect::Fail => verdict.error = verdict.error.or(Some(BlockError::Medium)),
                FaultEffect::Delay(time) => verdict.delay = verdict.delay.max(time),
                FaultEffect::Corrupt => verdict.corrupt = rule.within(blocks.as_ref()),
            }
        }
        self.rules.retain(|(_, rule)| rule.count != Some(0));
        verdict
    }
}

/// The blocks of an operation.
fn blocks(operation: &Operation, block: u64) -> Option<Range<u64>> {
    let (offset, bytes) = match operation {
        Operation::Read { offset, bytes, .. } => (*offset, u64::from(*bytes)),
        Operation::Write { offset, data, .. } => (*offset, data.len() as u64),
        Operation::WriteZeroes { offset, bytes, .. }
        | Operation::Trim { offset, bytes }
        | Operation::Prefetch { offset, bytes }
        | Operation::Allocation { offset, bytes } => (*offset, *bytes),
        Operation::Flush => return None,
    };
    Some(offset / block..offset.saturating_add(bytes).div_ceil(block))
}

impl FaultRule {
    fn is_for(
        &self,
        volume: u32,
        operation: &Operation,
        blocks: Option<&Range<u64>>,
        geometry: Option<&Geometry>,
    ) -> bool {
        let suits = match operation {
            Operation::Read { .. } | Operation::Prefetch { .. } => {
                matches!(self.operations, StruckOperations::Any | StruckOperations::Reads)
            }
            Operation::Write { .. } | Operation::WriteZeroes { .. } | Operation::Trim { .. } => {
                matches!(self.operations, StruckOperations::Any | StruckOperations::Writes)
            }
            Operation::Flush => matches!(self.operations, StruckOperations::Any | StruckOperations::Flushes),
            Operation::Allocation { .. } => self.effect == FaultEffect::Gone,
        };
        suits
            && self.volume.is_none_or(|only| only == volume)
            && (self.blocks.is_none() || self.within(blocks).is_some())
            && self.head.is_none_or(|head| blocks.is_some_and(|blocks| touches(blocks, head, geometry)))
    }

    /// The blocks of an operation that are the rule's.
    fn within(&self, blocks: Option<&Range<u64>>) -> Option<Range<u64>> {
        let blocks = blocks?;
        let own = self.blocks.clone().unwrap_or(0..u64::MAX);
        let both = blocks.start.max(own.start)..blocks.end.min(own.end);
        (both.start < both.end).then_some(both)
    }
}

/// Whether one of the blocks lies under the head.
fn touches(blocks: &Range<u64>, head: u32, geometry: Option<&Geometry>) -> bool {
    let Some(geometry) = geometry else { return false };
    let mut next = Some(Lbn(blocks.start));
    while let Some(lbn) = next.filter(|lbn| lbn.0 < blocks.end.min(geometry.sectors())) {
        if geometry.track_at(lbn).head == head {
            return true;
        }
        next = geometry.next_track_boundary(lbn);
    }
    false
}

/// Changes a bit of each block in `data`, whose first byte is that of the block `first`, for the blocks in `struck`.
pub(super) fn corrupt(data: &mut [u8], first: u64, block: u64, struck: &Range<u64>) {
    for (number, block) in (first..).zip(data.chunks_mut(block as usize)) {
        if struck.contains(&number) {
            block[0] ^= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: FaultRule = FaultRule {
        volume: None,
        operations: StruckOperations::Any,
        blocks: None,
        head: None,
        skip: 0,
        count: None,
        effect: FaultEffect::Fail,
    };

    fn read(offset: u64, bytes: u32) -> Operation {
        Operation::Read { offset, bytes, fua: false }
    }

    fn write(offset: u64, bytes: usize) -> Operation {
        Operation::Write { offset, data: vec![0; bytes], fua: false }
    }

    #[test]
    fn rule_strikes_its_operations_of_its_blocks_and_volume() {
        let mut rules = FaultRules::default();
        let operations = StruckOperations::Writes;
        rules.add(FaultRule { volume: Some(1), operations, blocks: Some(8..16), ..RULE });
        let mut strikes = |volume, operation| rules.strike(volume, &operation, 512, None).error.is_some();
        assert!(strikes(1, write(4096, 512)) && strikes(1, write(0, 4608)));
        assert!(!strikes(1, write(0, 4096)) && !strikes(1, write(8192, 512)));
        assert!(!strikes(0, write(4096, 512)) && !strikes(1, read(4096, 512)));
        assert!(!strikes(1, Operation::Flush));
    }

    #[test]
    fn nth_operations_are_struck_and_then_the_rule_is_used_up() {
        let mut rules = FaultRules::default();
        rules.add(FaultRule { operations: StruckOperations::Reads, skip: 2, count: Some(2), ..RULE });
        let struck: Vec<bool> = (0..6)
            .map(|_| {
                rules.strike(0, &write(0, 512), 512, None);
                rules.strike(0, &read(0, 512), 512, None).error.is_some()
            })
            .collect();
        assert_eq!(struck, [false, false, true, true, false, false]);
        assert!(rules.all().is_empty());
    }

    #[test]
    fn effects_add_up_and_a_disk_that_is_gone_does_nothing_else() {
        let mut rules = FaultRules::default();
        rules.add(FaultRule { effect: FaultEffect::Delay(Nanos(5)), ..RULE });
        rules.add(FaultRule { effect: FaultEffect::Corrupt, blocks: Some(1..9), ..RULE });
        let verdict = rules.strike(0, &read(0, 1024), 512, None);
        assert_eq!(verdict, FaultVerdict { error: None, delay: Nanos(5), corrupt: Some(1..2) });
        let gone = rules.add(FaultRule { effect: FaultEffect::Gone, ..RULE });
        let allocation = Operation::Allocation { offset: 0, bytes: 512 };
        assert_eq!(rules.strike(0, &allocation, 512, None).error, Some(BlockError::Dead));
        rules.add(RULE);
        assert_eq!(rules.strike(0, &read(0, 512), 512, None).error, Some(BlockError::Dead));
        assert_eq!(rules.remove(|number, _| number == gone), 1);
        assert_eq!(rules.strike(0, &read(0, 512), 512, None).error, Some(BlockError::Medium));
    }

    #[test]
    fn corruption_changes_one_bit_of_each_struck_block() {
        let mut data = vec![0; 4 * 512];
        corrupt(&mut data, 10, 512, &(11..13));
        assert_eq!([0, 512, 1024, 1536].map(|at| data[at]), [0, 1, 1, 0]);
        assert_eq!(data.iter().map(|byte| u32::from(*byte)).sum::<u32>(), 2);
    }
}
