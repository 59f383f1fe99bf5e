//! Counts and response times (by the model) of a volume's operations.

use crate::Operation;
use headstack_model::{Instant, Nanos, QuantityReport};
use headstack_sim::stats::TimeHistogram;
use std::iter::Sum;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Transfers bytes from the disk, or prefetches them into its cache.
    Read,
    /// Writes bytes to the disk, zeros included.
    Write,
    /// Writes all dirty data to the media.
    Flush,
    /// Discards blocks.
    Trim,
}

impl Kind {
    /// All kinds.
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

    /// The kind of an operation and its bytes; none for a query that costs the disk no time.
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

/// Completed operations of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Count {
    pub done: u64,
    pub failed: u64,
    /// Bytes of the operations that succeeded.
    pub bytes: u64,
    /// Sum of their response times by the model.
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

/// Statistics of a volume.
#[derive(Clone, Debug)]
pub struct Books {
    counts: [Count; Kind::ALL.len()],
    responses: TimeHistogram,
    /// The beginning of the first operation and the end of the last.
    span: Option<(Instant, Instant)>,
}

impl Books {
    pub(crate) fn new() -> Books {
        Books { counts: Default::default(), responses: TimeHistogram::with_digits(2), span: None }
    }

    /// The operations of one kind.
    pub fn count_of(&self, kind: Kind) -> &Count {
        &self.counts[kind as usize]
    }

    /// The operations of all kinds; the bytes are those transferred, without trimmed ones.
    pub fn all(&self) -> Count {
        let sum: Count = self.counts.iter().copied().sum();
        Count { bytes: sum.bytes - self.count_of(Kind::Trim).bytes, ..sum }
    }

    /// Time from the beginning of the first operation to the end of the last, if that is noted.
    pub fn span(&self) -> Nanos {
        self.span.map_or(Nanos::ZERO, |(first, last)| last.since(first))
    }

    /// Notes when an operation began and ended.
    pub(crate) fn note_span(&mut self, begun: Instant, ended: Instant) {
        let (first, last) = self.span.unwrap_or((begun, ended));
        self.span = Some((first.min(begun), last.max(ended)));
    }

    /// Response times of all operations that succeeded.
    pub fn responses(&self) -> &TimeHistogram {
        &self.responses
    }

    /// Adds the distribution of response times, and the operations of each kind, with the help texts of the times of both.
    pub fn report(&self, [one, sum]: [&'static str; 2], into: &mut QuantityReport) {
        into.gauge("response_counts", &self.responses, one).metric("response_time_seconds");
        into.list("operation", Kind::ALL, |kind, into| {
            let count = self.count_of(kind);
            into.fact("kind", kind.name()).label("operation");
            into.counter("done", count.done, "Operations done").metric("operations");
            into.counter("failed", count.failed, "Operations that failed").metric("operations_failed");
            into.counter("bytes", count.bytes, "Bytes of operations done");
            into.counter("response_s", count.time, sum);
        });
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
