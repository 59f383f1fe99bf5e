//! What clients asked of a volume so far, and how long it took by the model.

use crate::Operation;
use headstack_model::Nanos;
use headstack_sim::stats::TimeHistogram;
use std::iter::Sum;

/// What kind of operation was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes from the disk, or into its cache.
    Read,
    /// Bytes to the disk, zeros too.
    Write,
    /// All that was written, to the media.
    Flush,
    /// Blocks that are not needed any more.
    Trim,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Read, Kind::Write, Kind::Flush, Kind::Trim];

    /// Its name: `read`, `write`, `flush` or `trim`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Flush => "flush",
            Kind::Trim => "trim",
        }
    }

    /// The kind of an operation and its bytes; none for a question that costs the disk nothing.
    pub(crate) fn from_operation(operation: &Operation) -> Option<(Kind, u64)> {
        Some(match operation {
            Operation::Read { bytes, .. } => (Kind::Read, u64::from(*bytes)),
            Operation::Prefetch { bytes, .. } => (Kind::Read, *bytes),
            Operation::Write { data, .. } => (Kind::Write, data.len() as u64),
            Operation::WriteZeroes { bytes, .. } => (Kind::Write, *bytes),
            Operation::Trim { bytes, .. } => (Kind::Trim, *bytes),
            Operation::Flush => (Kind::Flush, 0),
            Operation::Allocation { .. } => return None,
        })
    }
}

/// Operations of one kind that came back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Count {
    pub done: u64,
    pub failed: u64,
    /// Bytes of those that were done.
    pub bytes: u64,
    /// Their response times by the model, together.
    pub time: Nanos,
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Count>>(counts: I) -> Count {
        counts.fold(Count::default(), |sum, one| Count {
            done: sum.done + one.done,
            failed: sum.failed + one.failed,
            bytes: sum.bytes + one.bytes,
            time: sum.time + one.time,
        })
    }
}

/// Operations of a volume.
#[derive(Clone, Debug)]
pub struct Books {
    counts: [Count; Kind::ALL.len()],
    responses: TimeHistogram,
}

impl Books {
    pub(crate) fn new() -> Books {
        Books { counts: Default::default(), responses: TimeHistogram::with_digits(2) }
    }

    /// Operations of a kind.
    pub fn count_of(&self, kind: Kind) -> &Count {
        &self.counts[kind as usize]
    }

    /// Operations of all kinds; bytes are those that were transferred, which trimmed ones are not.
    pub fn all(&self) -> Count {
        let sum: Count = self.counts.iter().copied().sum();
        Count { bytes: sum.bytes - self.count_of(Kind::Trim).bytes, ..sum }
    }

    /// Response times of all that was done.
    pub fn responses(&self) -> &TimeHistogram {
        &self.responses
    }

    pub(crate) fn record(&mut self, (kind, bytes): (Kind, u64), took: Nanos, is_done: bool) {
        let count = &mut self.counts[kind as usize];
        if !is_done {
            count.failed += 1;
            return;
        }
        count.done += 1;
        count.bytes += bytes;
        count.time += took;
        self.responses.record(took);
    }
}
