//! The judge of power cuts: which data a disk may hold after a cut, given the operations that were submitted and those that completed.
//!
//! It does not depend on the model of a drive: it can judge anything that stores blocks and reports completions. Each write makes a version
//! of its blocks. The version is *safe* when the write was forced and has completed, or when a flush has completed that was submitted after
//! the write had completed. A block may hold any version that is not older than a safe one.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// An operation that a disk executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DiskOperation {
    /// A write of these blocks. If `forced`, it completes only when it is safe.
    Write { blocks: Range<u64>, forced: bool },
    /// When it completes, all writes that had completed before its submission are safe.
    Flush,
}

/// An operation, and the numbers of the events at which it was submitted and completed.
#[derive(Clone, Debug)]
struct Entry {
    operation: DiskOperation,
    submitted: u64,
    completed: Option<u64>,
}

/// All operations submitted to a disk, in order of submission, numbered from 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    entries: Vec<Entry>,
    happened: u64,
}

/// A block that holds data that it must not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) block: u64,
    /// The number of the write whose data it holds; none if it holds what was there before the first write.
    pub(crate) found: Option<usize>,
    /// The number of a younger, safe write; none if the data found were never written to this block.
    pub(crate) lost: Option<usize>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.found, self.lost) {
            (Some(found), None) => write!(f, "block {}: write {found} never was to it", self.block),
            (found, lost) => {
                write!(f, "block {}: write {lost:?} was safe, and {found:?} is there", self.block)
            }
        }
    }
}

impl History {
    /// Adds a submitted operation; returns its number.
    pub(crate) fn submit(&mut self, operation: DiskOperation) -> usize {
        self.happened += 1;
        self.entries.push(Entry { operation, submitted: self.happened, completed: None });
        self.entries.len() - 1
    }

    /// Records that the disk has reported an operation as completed.
    pub(crate) fn complete(&mut self, number: usize) {
        self.happened += 1;
        self.entries[number].completed = Some(self.happened);
    }

    /// The number of operations submitted so far.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// For each operation, whether it is a safe write.
    fn safe(&self) -> Vec<bool> {
        let flushes = self.entries.iter().filter(|entry| entry.operation == DiskOperation::Flush);
        // Of the completed flushes, the last submitted one covers at least the writes that any other covers.
        let flushed = flushes.filter(|flush| flush.completed.is_some()).map(|flush| flush.submitted).max();
        let is_safe = |entry: &Entry| match (&entry.operation, entry.completed) {
            (DiskOperation::Write { forced, .. }, Some(done)) => {
                *forced || flushed.is_some_and(|at| done < at)
            }
            _ => false,
        };
        self.entries.iter().map(is_safe).collect()
    }

    /// Judges what a disk holds after a cut. `found` returns the number of the write whose data a block holds.
    ///
    /// *Errors:* the first block that holds data that it must not hold.
    pub(crate) fn judge(&self, found: impl Fn(u64) -> Option<usize>) -> Result<(), Loss> {
        let safe = self.safe();
        let mut writes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (number, entry) in self.entries.iter().enumerate() {
            if let DiskOperation::Write { blocks, .. } = &entry.operation {
                blocks.clone().for_each(|block| writes.entry(block).or_default().push(number));
            }
        }
        for (block, writes) in writes {
            let found = found(block);
            if found.is_some_and(|found| !writes.contains(&found)) {
                return Err(Loss { block, found, lost: None });
            }
            let done = found.map_or(Some(0), |found| self.entries[found].completed);
            let is_older = |than: &usize| done.is_some_and(|done| done < self.entries[*than].submitted);
            if let Some(lost) = writes.into_iter().filter(|write| safe[*write]).find(is_older) {
                return Err(Loss { block, found, lost: Some(lost) });
            }
        }
        Ok(())
    }
}

#[test]
fn judge_rejects_only_impossible_media_states() {
    let mut history = History::default();
    let write = |blocks, forced| DiskOperation::Write { blocks, forced };
    let old = history.submit(write(0..4, false));
    history.complete(old);
    let flush = history.submit(DiskOperation::Flush);
    let outstanding = history.submit(write(1..3, false));
    history.complete(flush);
    let all = |at: fn(u64) -> Option<usize>| history.judge(at);
    assert_eq!(all(|_| Some(0)), Ok(()));
    assert_eq!(all(|block| Some(if block == 2 { 2 } else { 0 })), Ok(()), "torn between blocks");
    assert_eq!(all(|_| None), Err(Loss { block: 0, found: None, lost: Some(old) }));
    assert_eq!(all(|_| Some(2)), Err(Loss { block: 0, found: Some(outstanding), lost: None }), "never there");
    let mut later = history.clone();
    later.complete(outstanding);
    let forced = later.submit(write(2..4, true));
    assert_eq!(later.judge(|_| Some(0)), Ok(()), "the disk has not completed the forced write");
    later.complete(forced);
    let found = |block| Some(if block == 3 { forced } else { old });
    assert_eq!(later.judge(found), Err(Loss { block: 2, found: Some(old), lost: Some(forced) }));
    assert_eq!(later.judge(|block| Some(if block < 2 { old } else { forced })), Ok(()));
}
