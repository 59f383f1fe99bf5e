//! How far a hot list is from the right one: because counters are few, and because references change.
//!
//! *Source:* Akyürek and Salem 1995. a(i) is the hot list of a perfect monitor after period i, ã(i) that of bounded counters. The
//! counter error compares ã(i) with a(i), and the drift a(i) with a(i+1).

use super::analyzer::{ExactCounts, HotBlock};
use std::collections::BTreeSet;

/// The part of a hot list that another list lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ListError {
    /// As a share of its blocks.
    pub by_block: f64,
    /// As a share of the references to its blocks.
    pub by_reference: f64,
}

impl ListError {
    /// The part of the list `right` that `found` lacks, both of the same length. None of an empty list is missing.
    pub fn new(right: &[HotBlock], found: &[HotBlock]) -> ListError {
        let found: BTreeSet<u64> = found.iter().map(|hot| hot.block).collect();
        let missing = |hot: &&HotBlock| !found.contains(&hot.block);
        let references = |count: u64, hot: &HotBlock| count + hot.count;
        let (missed, all) =
            (right.iter().filter(missing).fold(0, references), right.iter().fold(0, references));
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        ListError {
            by_block: share(right.iter().filter(missing).count() as u64, right.len() as u64),
            by_reference: share(missed, all),
        }
    }
}

/// The share of all counted references that go to the blocks of a list; 0 without references.
pub fn caught_share(list: &[HotBlock], counts: &ExactCounts) -> f64 {
    let caught: u64 = list.iter().map(|hot| counts.count(hot.block)).sum();
    caught as f64 / counts.references().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::analyzer::ReferenceAnalyzer;
    use super::*;

    fn list(blocks: &[(u64, u64)]) -> Vec<HotBlock> {
        blocks.iter().map(|&(block, count)| HotBlock { block, count, error: 0 }).collect()
    }

    #[test]
    fn missing_blocks_weigh_by_their_references() {
        let right = list(&[(1, 6), (2, 3), (3, 1)]);
        let error = ListError::new(&right, &list(&[(3, 9), (1, 2), (8, 1)]));
        assert_eq!(error, ListError { by_block: 1.0 / 3.0, by_reference: 0.3 });
        assert_eq!(ListError::new(&right, &right), ListError::default());
        assert_eq!(ListError::new(&[], &right), ListError::default());
    }

    #[test]
    fn list_catches_the_references_to_its_blocks() {
        let mut counts = ExactCounts::default();
        [1, 1, 1, 2, 5].iter().for_each(|block| counts.observe(*block));
        assert_eq!(caught_share(&list(&[(1, 0), (5, 0), (9, 0)]), &counts), 0.8);
        assert_eq!(caught_share(&list(&[(1, 0)]), &ExactCounts::default()), 0.0);
    }
}
