//! Elevators: how a host's block layer orders and merges requests before a drive gets them. One file per elevator, one list.
//!
//! An [`Elevator`] merges adjacent requests and returns the request that goes next. It may return *none yet*, to wait for a better
//! one; [`Elevator::poll_timeout`] returns the end of that wait. The time and the completions are passed in.
//!
//! Modelled: the elevators of Linux for reads and writes, each after its own file. Not modelled: the CPU time they take, control
//! groups, and priorities beyond three classes: *urgent* (real time), *idle*, which only `deadline` and `bfq` know, and the rest (best effort).

mod anticipatory;
mod bfq;
mod cfq;
mod deadline;
mod fair;
mod insertion;
mod kyber;
mod merge;
mod noop;
mod ordered;
mod pool;
mod process;
mod run;
mod sorted;
mod tuning;

use std::fmt;

use headstack_model::spec::nearest;
use headstack_model::{Instant, Op, Request};
use thiserror::Error;

pub use anticipatory::AnticipatorySpec;
pub use bfq::BfqSpec;
pub use cfq::CfqSpec;
pub use deadline::DeadlineSpec;
pub use insertion::InsertionSpec;
pub use kyber::KyberSpec;
pub use merge::MergeRule;
pub use ordered::DiskMap;
pub use ordered::{BlockDistance, MappedCost};
pub use tuning::Tuning;

use crate::order::{self, Order, OrderError};
use crate::queue::Queue;
use merge::Starts;
use ordered::{Ordered, UrgentFirst};
use pool::{Entry, Pool};

/// A request to an elevator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElevatorRequest {
    /// The read or write.
    pub request: Request,
    /// The process that issues it.
    pub source: u32,
    /// Whether it belongs to the real-time class.
    pub urgent: bool,
    /// Whether it belongs to the idle class, if it is not urgent.
    pub idle: bool,
    /// The number of its command duration limit; 0 for none.
    pub limit: u8,
    /// Whether a process waits for it: reads, and writes that are not the page cache's own.
    pub sync: bool,
}

/// The elevator's number of a request, until it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId(pub u32);

/// The result of adding a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Added {
    Queued(EntryId),
    /// It is part of a request that waited already.
    Merged {
        into: EntryId,
        /// A waiting request that became part of `into` as well, because the new one closed the gap between them. Its number is
        /// free again.
        absorbed: Option<EntryId>,
    },
}

/// A request that goes to the device now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Its number, to be passed to [`Elevator::completed`].
    pub entry: EntryId,
    /// The merged request: all blocks of its parts.
    pub request: Request,
}

/// An elevator in the list of them all.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// Its name on the command line and in files.
    pub name: &'static str,
    /// The name that Linux has for it today, where that is another.
    pub alias: Option<&'static str>,
    /// Its policy, in one line.
    pub summary: &'static str,
    build: fn(&Tuning) -> Box<dyn Scheduler>,
}

/// All elevators.
pub fn all() -> &'static [Listed] {
    &[
        noop::LISTED,
        deadline::LISTED,
        anticipatory::LISTED,
        cfq::LISTED,
        bfq::LISTED,
        kyber::LISTED,
        insertion::LISTED,
    ]
}

/// No elevator has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no elevator is called `{name}`; the nearest is `{}`", nearest.unwrap_or("noop"))]
pub struct UnknownElevator {
    /// The name met.
    pub name: String,
    /// The most similar known name.
    pub nearest: Option<&'static str>,
}

/// The elevator called `name` in the list, or in current Linux: `none` is noop, and `mq-deadline` is deadline.
///
/// *Errors:* there is none; the error names the nearest.
pub fn find(name: &str) -> Result<&'static Listed, UnknownElevator> {
    all().iter().find(|listed| listed.name == name || listed.alias == Some(name)).ok_or_else(|| {
        let nearest = nearest(name, all().iter().map(|listed| listed.name));
        UnknownElevator { name: name.to_owned(), nearest }
    })
}

/// The algorithm behind an elevator: which of the waiting requests goes next.
trait Scheduler: fmt::Debug + Send {
    fn add(&mut self, now: Instant, id: u32, pool: &Pool);
    /// A waiting request, until now as in `before`, had others merged into it.
    fn change(&mut self, id: u32, before: &Entry, pool: &Pool);
    /// A waiting request became part of another.
    fn remove(&mut self, id: u32, pool: &Pool);
    /// A new request became part of a waiting one.
    fn merged(&mut self, _id: u32, _at_front: bool) {}
    /// The waiting request `gone` is about to become part of `into`.
    fn absorbed(&mut self, _into: u32, _gone: u32) {}
    /// Removes and returns the request to dispatch now.
    fn dispatch(&mut self, now: Instant, pool: &Pool) -> Option<u32>;
    /// A dispatched request completed.
    fn completed(&mut self, _now: Instant, _id: u32, _pool: &Pool) {}
    /// When to call again, while requests wait and none may go.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// Replaces the order; false if the scheduler does not use an order that can be replaced.
    fn set_order(&mut self, _order: Box<dyn Order>) -> bool {
        false
    }
    /// Whether a new request may be merged into a waiting one of its kind.
    fn may_merge(&self, _entry: &Entry, _ask: &ElevatorRequest) -> bool {
        true
    }
    /// Whether a new request may be merged in front of a waiting one.
    fn merges_at_front(&self) -> bool {
        true
    }
}

/// The key of the queue that a request belongs to, where each process has one: asynchronous writes of a class share one.
fn queue_key(entry: &Entry) -> u64 {
    let process = if entry.sync { u64::from(entry.source) << 2 } else { 2 };
    process | u64::from(entry.urgent) | u64::from(entry.idle) << 36
}

/// The number of a request's class, the first to be served first: real time, best effort, idle.
fn class_of(entry: &Entry) -> usize {
    match (entry.urgent, entry.idle) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => 2,
    }
}

/// Classes of [`class_of`].
const CLASSES: usize = 3;
/// The class of requests that are served only where no other class has any, or after a time.
const IDLE: usize = 2;

/// A host's queue for one device: merging, and an algorithm that chooses.
#[derive(Debug)]
pub struct Elevator {
    pool: Pool,
    starts: Starts,
    rule: MergeRule,
    scheduler: Box<dyn Scheduler>,
    waiting: usize,
}

impl Elevator {
    /// The elevator called `name`.
    ///
    /// *Errors:* there is none; the error names the nearest.
    pub fn by_name(name: &str, tuning: &Tuning, rule: MergeRule) -> Result<Elevator, UnknownElevator> {
        Ok(Elevator::new((find(name)?.build)(tuning), rule))
    }

    /// A host's queue in the order called `name`, over the oldest `window` requests (1,024 at most) for a disk of `sectors`. With a map
    /// the order uses the map's positions; without one it uses block numbers in their place.
    ///
    /// *Errors:* there is no such order; the error names the nearest.
    pub fn with_order(
        name: &str,
        window: usize,
        sectors: u64,
        map: Option<Box<dyn DiskMap>>,
        rule: MergeRule,
    ) -> Result<Elevator, OrderError> {
        let order = order::built_in(name)?;
        let window = window.clamp(1, Queue::COMMANDS_MAX);
        Ok(Elevator::new(Box::new(Ordered::new(order, window, sectors, map)), rule))
    }

    /// As [`Elevator::with_order`], over the urgent requests and, while there are none, over the others; each has a map.
    ///
    /// *Errors:* there is no such order; the error names the nearest.
    pub fn with_urgent_first(
        name: &str,
        window: usize,
        sectors: u64,
        maps: [Option<Box<dyn DiskMap>>; 2],
        rule: MergeRule,
    ) -> Result<Elevator, OrderError> {
        let window = window.clamp(1, Queue::COMMANDS_MAX);
        let ordered = |map| Ok::<_, OrderError>(Ordered::new(order::built_in(name)?, window, sectors, map));
        let [of_urgent, of_others] = maps;
        let scheduler = UrgentFirst::new(ordered(of_urgent)?, ordered(of_others)?);
        Ok(Elevator::new(Box::new(scheduler), rule))
    }

    fn new(scheduler: Box<dyn Scheduler>, rule: MergeRule) -> Elevator {
        Elevator { pool: Pool::default(), starts: Starts::default(), rule, scheduler, waiting: 0 }
    }

    /// Replaces the order by a program's own, if it was made by [`Elevator::with_order`]; else it returns false and changes
    /// nothing.
    pub fn set_order(&mut self, order: Box<dyn Order>) -> bool {
        self.scheduler.set_order(order)
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds a read or a write at `now`.
    pub fn add(&mut self, now: Instant, ask: ElevatorRequest) -> Added {
        if let Some(merged) = self.merge(&ask) {
            return merged;
        }
        let ElevatorRequest { request, source, urgent, idle, limit, sync } = ask;
        let id = self.pool.insert(Entry { request, source, urgent, idle, limit, sync, added: now, turn: 0 });
        if self.rule != MergeRule::NONE {
            self.starts.insert(id, self.pool.get(id));
        }
        self.waiting += 1;
        self.scheduler.add(now, id, &self.pool);
        Added::Queued(EntryId(id))
    }

    /// The request to send to the device now. None while none waits, or none may go yet.
    pub fn dispatch(&mut self, now: Instant) -> Option<Dispatch> {
        let id = self.scheduler.dispatch(now, &self.pool)?;
        self.waiting -= 1;
        let entry = self.pool.get(id);
        if self.rule != MergeRule::NONE {
            self.starts.remove(id, entry);
        }
        Some(Dispatch { entry: EntryId(id), request: entry.request })
    }

    /// Records that a dispatched request completed.
    pub fn completed(&mut self, now: Instant, entry: EntryId) {
        self.scheduler.completed(now, entry.0, &self.pool);
        self.pool.release(entry.0);
    }

    /// When to call [`Elevator::dispatch`] again although nothing else happened; `None` unless it holds requests back.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.waiting == 0 { None } else { self.scheduler.poll_timeout() }
    }

    /// Adds a read or a write only if it can be merged into a waiting one.
    pub fn merge(&mut self, ask: &ElevatorRequest) -> Option<Added> {
        let (into, absorbed) = self.put_together(ask)?;
        Some(Added::Merged { into: EntryId(into), absorbed: absorbed.map(EntryId) })
    }

    /// Merges a request into a waiting one, and the next one too if they are adjacent then.
    fn put_together(&mut self, ask: &ElevatorRequest) -> Option<(u32, Option<u32>)> {
        if self.rule == MergeRule::NONE || ask.request.op == Op::Flush {
            return None;
        }
        let (before, behind) = self.starts.neighbours(ask.request.op, ask.request.lbn.0);
        if let Some(id) = before.filter(|id| self.takes(*id, ask, merge::takes_at_back)) {
            merge::join(&mut self.pool, id, &ask.request);
            self.scheduler.merged(id, false);
            return Some((id, behind.filter(|other| self.absorb(id, *other))));
        }
        let front = self.scheduler.merges_at_front();
        let id = behind.filter(|id| front && self.takes(*id, ask, merge::takes_at_front))?;
        let was = *self.pool.get(id);
        self.starts.remove(id, &was);
        merge::join(&mut self.pool, id, &ask.request);
        self.starts.insert(id, self.pool.get(id));
        self.scheduler.change(id, &was, &self.pool);
        self.scheduler.merged(id, true);
        Some((id, None))
    }

    fn takes(&self, id: u32, ask: &ElevatorRequest, touch: fn(MergeRule, &Entry, &Request) -> bool) -> bool {
        let entry = self.pool.get(id);
        merge::alike(entry, ask)
            && touch(self.rule, entry, &ask.request)
            && self.scheduler.may_merge(entry, ask)
    }

    /// Merges the waiting request `other` into `id`, which begins before it, if that is allowed.
    fn absorb(&mut self, id: u32, other: u32) -> bool {
        let (was, gone) = (*self.pool.get(id), *self.pool.get(other));
        let ask = ElevatorRequest {
            request: gone.request,
            source: gone.source,
            urgent: gone.urgent,
            idle: gone.idle,
            limit: gone.limit,
            sync: gone.sync,
        };
        if !self.takes(id, &ask, merge::takes_at_back) {
            return false;
        }
        self.starts.remove(other, &gone);
        self.scheduler.absorbed(id, other);
        self.scheduler.remove(other, &self.pool);
        self.pool.release(other);
        self.waiting -= 1;
        merge::join(&mut self.pool, id, &gone.request);
        let entry = self.pool.get_mut(id);
        (entry.added, entry.turn) = (was.added.min(gone.added), was.turn.min(gone.turn));
        self.scheduler.change(id, &was, &self.pool);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_linux_names_are_found_and_others_rejected() {
        let name = |name: &str| find(name).map(|listed| listed.name);
        assert_eq!((name("none"), name("mq-deadline")), (Ok("noop"), Ok("deadline")));
        let typo = find("deadlin").expect_err("there is none").to_string();
        assert_eq!(typo, "no elevator is called `deadlin`; the nearest is `deadline`");
    }
}
