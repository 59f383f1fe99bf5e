//! Command duration limits: which limited command goes before those of the drive's order, and when one has exceeded its limit.
//!
//! Limits do not change the order among commands without one. Each limited command has a weight that falls from 1 with the square of the
//! share of its limit that is left, down to [`WEIGHT_LEAST`]. The drive prefers the one with the smallest product of weight and
//! positioning time, if this product is below the positioning time of the order's choice. The time lost in this way is paid from a
//! credit that grows with time, by `performance_percent`, up to the longest limit. Without credit, a limited command goes first
//! only where that costs nothing. A command that has exceeded its limit goes first in any case, the oldest of them, if
//! its policy is to complete it earliest. The drive looks one access ahead: a command that arrived after its last choice is not
//! preferred yet.
//!
//! An aborted write that waited has written nothing, and its data leave the buffer; one whose access ended too late has written all.
//! Not modelled: what an aborted write leaves of a zone's write pointer (it stays behind the write); a limit of a write that waits for
//! room in the cache.
//!
//! *Source:* the meaning of the fields from SPC-6 and ACS-5. No maker has published its rule. The form of the weight, its least value and
//! look ahead were chosen to reproduce one published run (22 TB drive, depth 32, a fifth of the reads limited to 50 ms: cdl-tools,
//! benchmark/README.md); rows that compare with it are marked as calibrated.

use super::job::Job;
use headstack_model::spec::{DurationLimit, DurationLimits, LimitPolicy};
use headstack_model::{Instant, Nanos, Op};
use headstack_policy::{AccessCost, Slot, SlotId};

/// The limits of a drive, and the limited commands that wait.
#[derive(Debug)]
pub(super) struct Limited {
    /// By direction and number.
    limits: [Vec<Limit>; 2],
    /// The limits of reads that abort no command, by number, each with the time in which the command should end.
    reads_without_abort: Vec<(u8, Nanos)>,
    /// The waiting commands, oldest first, each with its limit.
    waiting: Vec<(Slot, Limit)>,
    /// Nanoseconds that may be lost per second.
    loss_per_s: u64,
    /// Time that may be lost now, up to `credit_max`.
    credit: Nanos,
    credit_max: Nanos,
    /// When the drive last chose a command while a limited one waited.
    last_choice: Instant,
    /// Age from which on a command goes first, whatever its policy.
    age_limit: Option<Nanos>,
}

/// A time, and what follows when it is exceeded.
#[derive(Clone, Copy, Debug)]
struct TimeLimit {
    time: Nanos,
    policy: LimitPolicy,
}

impl TimeLimit {
    fn new(ms: Option<f64>, policy: LimitPolicy) -> Option<TimeLimit> {
        ms.map(|ms| TimeLimit { time: Nanos::from_ms(ms), policy })
    }

    /// The share of the limit that is left, in millionths; all of it if the limit is exceeded and the policy is to continue.
    fn left(&self, age: Nanos) -> u64 {
        if age >= self.time && self.policy == LimitPolicy::Continue {
            MILLION
        } else {
            self.time.saturating_sub(age).0 * MILLION / self.time.0
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    inactive: Option<TimeLimit>,
    active: Option<TimeLimit>,
    guideline: Option<TimeLimit>,
}

impl Limit {
    fn new(spec: &DurationLimit) -> Limit {
        Limit {
            inactive: TimeLimit::new(spec.inactive_ms, spec.inactive_policy),
            active: TimeLimit::new(spec.active_ms, spec.active_policy),
            guideline: TimeLimit::new(spec.guideline_ms, spec.guideline_policy),
        }
    }

    /// The limits of the time that a command waits.
    fn of_waiting(&self) -> impl Iterator<Item = &TimeLimit> {
        self.inactive.iter().chain(&self.guideline)
    }

    /// The weight, in millionths, of a command of this age, by the limit of which less is left.
    fn weight(&self, age: Nanos) -> u64 {
        let left = self.of_waiting().map(|limit| limit.left(age)).min().unwrap_or(MILLION);
        WEIGHT_LEAST + (MILLION - WEIGHT_LEAST) * (left * left / MILLION) / MILLION
    }

    fn is_exceeded(&self, age: Nanos, policy: LimitPolicy) -> bool {
        self.of_waiting().any(|limit| limit.policy == policy && age >= limit.time)
    }
}

const MILLION: u64 = 1_000_000;

/// The least weight of a limited command, in millionths.
const WEIGHT_LEAST: u64 = 300_000;

impl Limited {
    pub(super) fn new(spec: &DurationLimits, age_limit: Option<Nanos>) -> Limited {
        let limits = [&spec.reads, &spec.writes].map(|list| list.iter().map(Limit::new).collect::<Vec<_>>());
        let longest = limits.iter().flatten().flat_map(Limit::of_waiting).map(|limit| limit.time).max();
        let loss_per_s = (spec.performance_percent * 1e7).round() as u64;
        let credit_max = longest.filter(|_| loss_per_s > 0).unwrap_or_default();
        let reads_without_abort = spec.reads_without_abort();
        Limited {
            limits,
            reads_without_abort: reads_without_abort
                .map(|(number, ms)| (number, Nanos::from_ms(ms)))
                .collect(),
            waiting: Vec::new(),
            loss_per_s,
            credit: credit_max,
            credit_max,
            last_choice: Instant::ZERO,
            age_limit,
        }
    }

    pub(super) fn reads_without_abort(&self) -> &[(u8, Nanos)] {
        &self.reads_without_abort
    }

    fn limit(&self, op: Op, number: u8) -> Option<Limit> {
        let of_direction = &self.limits[usize::from(op == Op::Write)];
        of_direction.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Adds a command; returns one that has no limit.
    pub(super) fn add(&mut self, slot: Slot) -> Option<Slot> {
        match self.limit(slot.request.op, slot.limit) {
            Some(limit) => self.waiting.push((slot, limit)),
            None => return Some(slot),
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.waiting.iter().map(|(slot, _)| slot)
    }

    /// Removes a command that must be aborted now.
    pub(super) fn take_aborted(&mut self, now: Instant) -> Option<SlotId> {
        let is_over =
            |(slot, limit): &(Slot, Limit)| limit.is_exceeded(now.since(slot.arrived), LimitPolicy::Abort);
        let index = self.waiting.iter().position(is_over)?;
        Some(self.waiting.remove(index).0.id)
    }

    /// Whether a command exceeds an abort limit when its access, from `begins`, ends at `ends`.
    pub(super) fn ends_aborted(&self, job: &Job, begins: Instant, ends: Instant) -> bool {
        let Some(limit) = self.limit(job.command.request.op, job.command.limit) else { return false };
        let over = |limit: &Option<TimeLimit>, took: Nanos| {
            limit.is_some_and(|limit| limit.policy == LimitPolicy::Abort && took > limit.time)
        };
        over(&limit.active, ends.since(begins)) || over(&limit.guideline, ends.since(job.submitted))
    }

    fn grow_credit(&mut self, time: Nanos) {
        let grown = u128::from(time.0) * u128::from(self.loss_per_s) / 1_000_000_000;
        let grown = Nanos(grown.min(u128::from(self.credit_max.0)) as u64);
        self.credit = (self.credit + grown).min(self.credit_max);
    }

    /// Removes the limited command that goes before one whose positioning takes `other`; without `other`, the best limited command.
    pub(super) fn choose(
        &mut self,
        cost: &impl AccessCost,
        now: Instant,
        other: Option<Nanos>,
    ) -> Option<Slot> {
        let last = std::mem::replace(&mut self.last_choice, now);
        self.grow_credit(now.since(last));
        let late = |(slot, limit): &(Slot, Limit)| {
            let age = now.since(slot.arrived);
            limit.is_exceeded(age, LimitPolicy::CompleteEarliest)
                || self.age_limit.is_some_and(|limit| age >= limit)
        };
        if let Some(index) = self.waiting.iter().position(late) {
            return Some(self.waiting.remove(index).0);
        }
        let seen = |(_, (slot, _)): &(usize, &(Slot, Limit))| other.is_none() || slot.arrived < last;
        let weighed = self.waiting.iter().enumerate().filter(seen).map(|(index, (slot, limit))| {
            let time = cost.positioning(slot);
            let weight = limit.weight(now.since(slot.arrived));
            (u128::from(time.0) * u128::from(weight), time, index)
        });
        let (product, time, index) = weighed.min()?;
        if let Some(other) = other {
            let loss = time.saturating_sub(other);
            let wins = product < u128::from(other.0) * u128::from(MILLION) && loss <= self.credit;
            if !wins {
                return None;
            }
            self.credit = self.credit - loss;
        }
        Some(self.waiting.remove(index).0)
    }
}
