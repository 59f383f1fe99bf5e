//! A table with a row for each completed request, in columns.

use headstack_model::Op;
use headstack_sim::{Finished, Outcome, TimeSplit};
use headstack_workload::Issue;
use std::collections::BTreeMap;

/// Cylinder of a request that needed no access of its own.
const NO_CYLINDER: i32 = -1;

/// A column that takes no memory while all its values are zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseColumn<T> {
    values: Vec<T>,
}

impl<T: Copy + Default + PartialEq> SparseColumn<T> {
    #[inline]
    fn push(&mut self, rows: usize, value: T) {
        if !self.values.is_empty() {
            self.values.push(value);
        } else if value != T::default() {
            self.values.resize(rows, T::default());
            self.values.push(value);
        }
    }

    /// The values of all rows; none if all are zero.
    pub fn into_values(self) -> Option<Vec<T>> {
        (!self.values.is_empty()).then_some(self.values)
    }
}

/// A row for each request that completed, in the order of completion.
///
/// *Units:* times in nanoseconds of virtual time, lengths in sectors. Numbers are signed, because programs subtract them.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct KeptRequests {
    pub lbn: Vec<i64>,
    pub sectors: Vec<u32>,
    /// Index in [`KeptRequests::OPS`].
    pub op: Vec<u8>,
    /// Index in [`headstack_sim::CacheUse::NAMES`].
    pub cache: Vec<u8>,
    pub submitted_ns: Vec<i64>,
    pub completed_ns: Vec<i64>,
    /// Cylinder that the arm came from; -1 if the request needed no access of its own.
    pub from_cylinder: Vec<i32>,
    /// Cylinder of the first block that it accessed; -1 as above.
    pub to_cylinder: Vec<i32>,
    /// The parts of the response time, in the order of [`TimeSplit::NAMES`].
    pub parts_ns: [SparseColumn<i64>; TimeSplit::NAMES.len()],
    /// Index in [`KeptRequests::OUTCOMES`].
    pub outcome: SparseColumn<u8>,
    /// Whether the request is urgent: drives and elevators that obey priorities serve it before others.
    pub urgent: SparseColumn<bool>,
    /// The number of its command duration limit; 0 for none.
    pub limit: SparseColumn<u8>,
    /// The number of the process, job or stream that issued it.
    pub source: SparseColumn<u32>,
    pub volume: SparseColumn<u32>,
    /// The device that served it, or the last part of it.
    pub device: SparseColumn<u32>,
    /// Whether the statistics leave the request out, because it completed while its job warmed up (`ramp_time`).
    pub uncounted: SparseColumn<bool>,
    /// The outstanding requests that are urgent or have a duration limit, by the load's number.
    priorities: BTreeMap<u64, (bool, u8)>,
}

impl KeptRequests {
    /// Names of the operations.
    pub const OPS: [&'static str; 3] = ["read", "write", "flush"];

    /// Names of the outcomes.
    pub const OUTCOMES: [&'static str; 6] =
        ["done", "out-of-range", "medium-error", "dead", "aborted", "zone-refused"];

    /// The index of an operation in [`KeptRequests::OPS`].
    #[inline]
    pub fn op_code(op: Op) -> u8 {
        match op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Flush => 2,
        }
    }

    /// The index of an outcome in [`KeptRequests::OUTCOMES`].
    #[inline]
    pub fn outcome_code(outcome: Outcome) -> u8 {
        match outcome {
            Outcome::Done => 0,
            Outcome::OutOfRange => 1,
            Outcome::MediumError => 2,
            Outcome::Dead => 3,
            Outcome::Aborted => 4,
            Outcome::ZoneRefused => 5,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.lbn.len()
    }

    /// Whether no request completed.
    pub fn is_empty(&self) -> bool {
        self.lbn.is_empty()
    }

    #[inline]
    pub(crate) fn issued(&mut self, issue: &Issue) {
        if issue.urgent || issue.limit > 0 {
            self.priorities.insert(issue.id, (issue.urgent, issue.limit));
        }
    }

    #[inline]
    pub(crate) fn finished(&mut self, finished: &Finished, counts: bool) {
        let (rows, completion) = (self.len(), &finished.completion);
        self.lbn.push(completion.request.lbn.0 as i64);
        self.sectors.push(completion.request.sectors);
        self.op.push(KeptRequests::op_code(completion.request.op));
        self.cache.push(completion.cache.index() as u8);
        self.submitted_ns.push(completion.submitted.0 as i64);
        self.completed_ns.push(completion.completed.0 as i64);
        let travel = completion.travel.map(|travel| (travel.from as i32, travel.to as i32));
        let (from, to) = travel.unwrap_or((NO_CYLINDER, NO_CYLINDER));
        self.from_cylinder.push(from);
        self.to_cylinder.push(to);
        for (column, part) in self.parts_ns.iter_mut().zip(completion.parts.parts()) {
            column.push(rows, part.0 as i64);
        }
        self.outcome.push(rows, KeptRequests::outcome_code(completion.outcome));
        let priority = if self.priorities.is_empty() { None } else { self.priorities.remove(&finished.id) };
        let (is_urgent, limit) = priority.unwrap_or_default();
        self.urgent.push(rows, is_urgent);
        self.limit.push(rows, limit);
        self.source.push(rows, finished.source);
        self.volume.push(rows, finished.volume);
        self.device.push(rows, finished.device);
        self.uncounted.push(rows, !counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_column_takes_memory_from_its_first_value_on() {
        let mut column = SparseColumn::default();
        (0..3).for_each(|rows| column.push(rows, 0u32));
        assert_eq!(column.values.capacity(), 0);
        column.push(3, 7);
        column.push(4, 0);
        assert_eq!(column.clone().into_values(), Some(vec![0, 0, 0, 7, 0]));
        assert_eq!(SparseColumn::<u32>::default().into_values(), None);
    }
}
