//! The starvation guard: it holds new commands back while later ones overtake an old one.
//!
//! A drive that reorders its queue can delay a command for as long as better ones keep arriving. A host cannot choose within that
//! queue, but it can send no more commands: the fewer the drive has, the sooner it serves the old one. The guard is a state machine
//! without a clock in front of the queue: it observes the commands issued and completed, and returns whether more may be issued.
//!
//! [`Guard::counting`] counts, for each outstanding command, the completions of commands issued after it. Beyond a threshold it
//! holds new commands back until the overtaken command completes. [`Guard::adaptive`] uses age as well, and sets both limits itself:
//! as low as the allowed loss of throughput permits.
//!
//! *Source:* the counting guard, Yu, Shin, Park and Yeom, "New (old) problems in hard disk drives"; the adaptive one is ours.

use headstack_model::{Instant, Nanos, QuantityReport};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Issued {
    tag: u32,
    at: Instant,
    /// Completions of commands issued after it.
    overtaken: u32,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Counting { threshold: u32 },
    Adaptive(Adaptive),
}

/// A guard in front of a queue that a drive reorders.
#[derive(Clone, Debug)]
pub struct Guard {
    rule: Rule,
    /// The outstanding commands, the oldest first. None was overtaken more often than the first.
    outstanding: VecDeque<Issued>,
    held_for: Option<u32>,
    /// When a command last completed, or was last issued to an empty queue.
    last: Instant,
    holds: u64,
    worst: u32,
}

impl Guard {
    /// A guard that holds back while a command that was overtaken more than `threshold` times is outstanding.
    pub fn counting(threshold: u32) -> Guard {
        Guard::new(Rule::Counting { threshold })
    }

    /// A guard that keeps the longest response as short as it can for this share of the throughput. Panics where that is
    /// not in `0..=0.5`.
    pub fn adaptive(cost: f64) -> Guard {
        assert!((0.0..=0.5).contains(&cost), "a share of the throughput from 0 to 0.5, not {cost}");
        Guard::new(Rule::Adaptive(Adaptive::new((cost * 1e6) as i64)))
    }

    fn new(rule: Rule) -> Guard {
        Guard { rule, outstanding: VecDeque::new(), held_for: None, last: Instant::ZERO, holds: 0, worst: 0 }
    }

    /// Whether a new command may be issued; always true while none is outstanding.
    pub fn may_issue(&mut self, now: Instant) -> bool {
        let Some(oldest) = self.outstanding.front() else { return true };
        if self.held_for.is_none() {
            let starves = match &mut self.rule {
                Rule::Counting { threshold } => oldest.overtaken > *threshold,
                Rule::Adaptive(adaptive) => adaptive.must_hold(oldest, now),
            };
            if starves {
                self.held_for = Some(oldest.tag);
                self.holds += 1;
            }
        }
        self.held_for.is_none()
    }

    /// Whether new commands are held back until one that is outstanding is done.
    pub fn is_holding(&self) -> bool {
        self.held_for.is_some()
    }

    /// Records that a command was issued. No outstanding command may have the same tag.
    pub fn issued(&mut self, now: Instant, tag: u32) {
        if self.outstanding.is_empty() {
            self.last = now;
        }
        self.outstanding.push_back(Issued { tag, at: now, overtaken: 0 });
    }

    /// Records that a command completed. Panics where it was not outstanding.
    pub fn completed(&mut self, now: Instant, tag: u32) {
        let found = self.outstanding.iter().position(|issued| issued.tag == tag);
        let index = found.expect("what is done was outstanding");
        for older in self.outstanding.range_mut(..index) {
            older.overtaken += 1;
        }
        self.worst = self.worst.max(self.outstanding[0].overtaken);
        if let Rule::Adaptive(adaptive) = &mut self.rule {
            let done = Done {
                after: now.since(self.last),
                response: now.since(self.outstanding[index].at),
                outstanding: self.outstanding.len(),
                was_held: self.held_for.is_some(),
            };
            adaptive.learn(&done);
        }
        self.last = now;
        self.outstanding.remove(index);
        self.held_for = self.held_for.filter(|held_for| *held_for != tag);
    }

    /// How often the guard began to hold back.
    pub fn holds(&self) -> u64 {
        self.holds
    }

    /// Adds what it has counted.
    pub fn report(&self, into: &mut QuantityReport) {
        into.counter("holds", self.holds, "How often the guard began to hold commands back").detail();
        into.gauge("worst_overtaken", self.worst, "Most times that a command was overtaken").detail();
    }

    /// The largest number of times that a command was overtaken.
    pub fn worst_overtaken(&self) -> u32 {
        self.worst
    }
}

/// A command that is done, as the adaptive guard sees it.
struct Done {
    after: Nanos,
    response: Nanos,
    outstanding: usize,
    was_held: bool,
}

/// Limits of age and overtakings, set so that they cost no more than the allowed share of throughput.
///
/// Both follow from one number, `multiple`: a command starves when its age exceeds `multiple` mean responses, or its overtakings
/// `multiple` mean queue lengths. The loss from holding back is charged to a credit that grows with time by the allowed share.
/// Unused credit lowers the multiple, overdrawn credit raises it.
///
/// The loss is the time in which the queue is shorter than usual, times the throughput lost by the shorter queue. The guard assumes
/// that throughput grows with the fourth root of the length. That overestimates the gain of SPTF (1.36 from 10 to 100 on the Fujitsu
/// Eagle, where the root gives 1.78), so the real cost stays below the allowed one. A comparison of throughput with and without a
/// hold would also charge the guard for the far requests, which have to be served at some time anyway.
#[derive(Clone, Copy, Debug)]
struct Adaptive {
    /// Share of the time that may be lost, in millionths.
    cost: i64,
    /// Time that may be lost from now on, and the most that is saved up, in ns.
    credit: i64,
    /// In 2⁻⁸.
    multiple: i64,
    /// Means: response, in ns; outstanding while nothing is held back, in 2⁻⁸.
    response: i64,
    outstanding: i64,
    seen: u32,
}

impl Adaptive {
    const MULTIPLES: std::ops::RangeInclusive<i64> = 300..=65_536;
    /// Number of completions after which the means are used.
    const WARM: u32 = 256;
    /// The largest credit, in mean responses: enough for a few holds.
    const SAVED: i64 = 4;

    fn new(cost: i64) -> Adaptive {
        Adaptive { cost, credit: 0, multiple: 1024, response: 0, outstanding: 0, seen: 0 }
    }

    fn must_hold(&mut self, oldest: &Issued, now: Instant) -> bool {
        let age = now.since(oldest.at).0 as i64;
        let is_old = age > self.response.saturating_mul(self.multiple) >> 8;
        let is_overtaken = i64::from(oldest.overtaken) << 16 > self.outstanding.saturating_mul(self.multiple);
        if self.seen < Adaptive::WARM || !(is_old || is_overtaken) {
            return false;
        }
        self.credit > 0
    }

    fn learn(&mut self, done: &Done) {
        let response = done.response.0 as i64;
        let outstanding = (done.outstanding as i64) << 8;
        self.seen = self.seen.saturating_add(1);
        // Running means over the last hundred or so; at first over all.
        let weight = i64::from(self.seen.min(128));
        self.response += (response - self.response) / weight;
        let mut gain = self.cost;
        if done.was_held {
            gain -= 1_000_000 - root(outstanding, self.outstanding);
        } else {
            self.outstanding += (outstanding - self.outstanding) / weight;
        }
        self.credit += (i128::from(done.after.0) * i128::from(gain) / 1_000_000) as i64;
        let most = self.response.saturating_mul(Adaptive::SAVED);
        self.credit = self.credit.min(most);
        let less = if self.credit > most / 2 { -(self.multiple >> 8) - 1 } else { 0 };
        let more = if self.credit <= 0 { (self.multiple >> 8) + 1 } else { 0 };
        let (least, greatest) = (*Adaptive::MULTIPLES.start(), *Adaptive::MULTIPLES.end());
        self.multiple = (self.multiple + less + more).clamp(least, greatest);
    }
}

/// The fourth root of a part of a whole, in millionths; one at most.
fn root(part: i64, whole: i64) -> i64 {
    let share = (part.max(0) as u128 * 10u128.pow(24) / whole.max(1) as u128).min(10u128.pow(24));
    share.isqrt().isqrt() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guard_holds_back_until_the_overtaken_command_completes() {
        let mut guard = Guard::counting(2);
        for tag in 0..5 {
            assert!(guard.may_issue(Instant(0)));
            guard.issued(Instant(0), tag);
        }
        for tag in [2, 1] {
            guard.completed(Instant(1), tag);
            assert!(guard.may_issue(Instant(1)), "overtaken by {tag}");
            guard.issued(Instant(1), tag);
        }
        // The third to pass the first one.
        guard.completed(Instant(2), 1);
        assert!(!guard.may_issue(Instant(2)));
        guard.completed(Instant(3), 4);
        assert!(!guard.may_issue(Instant(3)));
        guard.completed(Instant(4), 0);
        assert!(guard.may_issue(Instant(4)));
        assert_eq!((guard.holds(), guard.worst_overtaken()), (1, 4));
    }

    #[test]
    fn in_order_completions_count_no_overtaking() {
        let mut guard = Guard::counting(0);
        for tag in 0..100 {
            assert!(guard.may_issue(Instant(tag)));
            guard.issued(Instant(tag), tag as u32);
            if tag >= 7 {
                guard.completed(Instant(tag), tag as u32 - 7);
            }
        }
        assert_eq!((guard.holds(), guard.worst_overtaken()), (0, 0));
    }

    #[test]
    fn guard_of_zero_cost_never_holds_back() {
        let mut guard = Guard::adaptive(0.0);
        guard.issued(Instant(0), 0);
        for time in 1..10_000 {
            assert!(guard.may_issue(Instant(time)));
            guard.issued(Instant(time), 1);
            guard.completed(Instant(time), 1);
        }
    }
}
