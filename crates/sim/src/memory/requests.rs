//! The requests that a cache has in flight, and the transfers between the cache and its disk that they wait for.

use crate::device::Completion;
use crate::layer::Submission;
use headstack_model::{Instant, Nanos};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::{Index, IndexMut};

use super::NONE;

/// A request in flight, with the `state` in which its cache has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job<S> {
    /// The number with which it was submitted.
    pub(crate) id: u32,
    pub(crate) source: u32,
    pub(crate) urgent: bool,
    pub(crate) idle: bool,
    /// Its completion so far.
    pub(crate) completion: Completion,
    /// Time up to which the parts of `completion` account for its time.
    pub(crate) since: Instant,
    /// Whether it waited for a transfer.
    pub(crate) waited: bool,
    pub(crate) state: S,
    /// The next one that waits for the same transfer; the last one links to the first.
    link: u32,
}

impl<S> Job<S> {
    /// Accounts for the time that the request waited as that of a transfer; a longer wait counts as queueing.
    pub(crate) fn account(&mut self, now: Instant, how: &Completion) {
        let waited = self.end_wait(now);
        let completion = &mut self.completion;
        completion.parts += how.parts.last(waited);
        completion.parts.queued += waited.saturating_sub(how.parts.total());
        (completion.travel, completion.cache) = (how.travel, how.cache);
        self.waited = true;
    }

    /// The time that the request waited, for which the caller accounts.
    pub(crate) fn end_wait(&mut self, now: Instant) -> Nanos {
        now - std::mem::replace(&mut self.since, now)
    }
}

#[derive(Debug)]
struct Transfer<P> {
    purpose: P,
    last_waiter: u32,
}

/// The order in which requests continue after a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    OldestFirst,
    NewestFirst,
}

/// Requests that waited for a transfer that is done.
#[derive(Debug)]
pub(crate) struct Waiters {
    next: u32,
    last: u32,
}

/// Requests in flight, transfers by their purpose, and which requests wait for which transfer.
#[derive(Debug)]
pub(crate) struct RequestTable<S, P> {
    jobs: Slab<Job<S>>,
    transfers: Slab<Transfer<P>>,
    resume: Resume,
    /// Requests that wait for an eviction.
    starved: VecDeque<u32>,
}

impl<S, P> RequestTable<S, P> {
    /// No requests, with memory for `at_once` of them and as many transfers.
    pub(crate) fn new(at_once: usize, resume: Resume) -> RequestTable<S, P> {
        let (jobs, transfers) = (Slab::with_capacity(at_once), Slab::with_capacity(at_once));
        RequestTable { jobs, transfers, resume, starved: VecDeque::with_capacity(at_once) }
    }

    pub(crate) fn begin(&mut self, now: Instant, submission: &Submission, state: S) -> u32 {
        let Submission { id, request, source, urgent, idle, .. } = *submission;
        let completion = Completion::at_once(request, now);
        let job = Job { id, source, urgent, idle, completion, since: now, waited: false, state, link: NONE };
        self.jobs.insert(job) as u32
    }

    pub(crate) fn end(&mut self, job: u32) -> Job<S> {
        self.jobs.remove(job as usize)
    }

    /// The number that the next transfer will have.
    pub(crate) fn next_transfer(&self) -> u32 {
        self.transfers.vacant_key() as u32
    }

    pub(crate) fn begin_transfer(&mut self, purpose: P) -> u32 {
        self.transfers.insert(Transfer { purpose, last_waiter: NONE }) as u32
    }

    /// Ends a transfer; returns its purpose and the requests that waited for it.
    pub(crate) fn end_transfer(&mut self, number: u32) -> (P, Waiters) {
        let Transfer { purpose, last_waiter: last } = self.transfers.remove(number as usize);
        (purpose, Waiters { next: self.jobs.get(last as usize).map_or(NONE, |last| last.link), last })
    }

    pub(crate) fn has_transfers(&self) -> bool {
        !self.transfers.is_empty()
    }

    /// Queues a request for a transfer.
    pub(crate) fn wait(&mut self, job: u32, transfer: u32) {
        let last = &mut self.transfers[transfer as usize].last_waiter;
        if *last == NONE {
            *last = job;
            self.jobs[job as usize].link = job;
            return;
        }
        self.jobs[job as usize].link = std::mem::replace(&mut self.jobs[*last as usize].link, job);
        if self.resume == Resume::OldestFirst {
            *last = job;
        }
    }

    /// The next of the requests that waited. It may wait again, or end, before the next call.
    pub(crate) fn next_waiter(&self, waiters: &mut Waiters) -> Option<u32> {
        let job = waiters.next;
        if job == NONE {
            return None;
        }
        waiters.next = if job == waiters.last { NONE } else { self.jobs[job as usize].link };
        Some(job)
    }

    /// Queues a request until something can be evicted.
    pub(crate) fn starve(&mut self, job: u32) {
        self.starved.push_back(job);
    }

    pub(crate) fn starved(&self) -> usize {
        self.starved.len()
    }

    pub(crate) fn next_starved(&mut self) -> Option<u32> {
        self.starved.pop_front()
    }
}

impl<S, P> Index<u32> for RequestTable<S, P> {
    type Output = Job<S>;

    fn index(&self, job: u32) -> &Job<S> {
        &self.jobs[job as usize]
    }
}

impl<S, P> IndexMut<u32> for RequestTable<S, P> {
    fn index_mut(&mut self, job: u32) -> &mut Job<S> {
        &mut self.jobs[job as usize]
    }
}

/// The transfers that write dirty data, numbered in the order in which they began: a flush waits for those before it.
#[derive(Debug, Default)]
pub(crate) struct Destages {
    begun: u64,
    /// The number of each one in flight, and its drive.
    in_flight: Vec<(u64, u32)>,
}

impl Destages {
    pub(crate) fn begin(&mut self, drive: u32) -> u64 {
        self.in_flight.push((self.begun, drive));
        self.begun += 1;
        self.begun - 1
    }

    pub(crate) fn end(&mut self, number: u64) {
        self.in_flight.retain(|(other, _)| *other != number);
    }

    /// The number that the next one will have.
    pub(crate) fn next(&self) -> u64 {
        self.begun
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether one to a drive is in flight that began before the number `before`.
    pub(crate) fn is_any_before(&self, before: u64, drive: u32) -> bool {
        self.in_flight.iter().any(|(number, other)| *other == drive && *number < before)
    }
}

/// What a cache does at later times; items of the same time keep the order in which they were added.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    items: BinaryHeap<Reverse<(Instant, u64, T)>>,
    added: u64,
}

impl<T: Ord> Agenda<T> {
    pub(crate) fn new(at_once: usize) -> Agenda<T> {
        Agenda { items: BinaryHeap::with_capacity(at_once), added: 0 }
    }

    pub(crate) fn add(&mut self, at: Instant, item: T) {
        self.added += 1;
        self.items.push(Reverse((at, self.added, item)));
    }

    /// The time of the first item; [`Instant::MAX`] without one.
    pub(crate) fn next_event(&self) -> Instant {
        self.items.peek().map_or(Instant::MAX, |Reverse((at, ..))| *at)
    }

    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<T> {
        (self.next_event() <= now).then(|| self.items.pop())?.map(|Reverse((_, _, item))| item)
    }
}
