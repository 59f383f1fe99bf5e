//! CFQ: each process has a queue, and queues have slices of time in turn. A process whose queue becomes empty keeps its slice for a
//! moment, in case it issues another request.
//!
//! Modelled: slices, idling by think time and jumps, the quantum, one queue for all asynchronous writes, the real-time
//! class before the rest, expiry within a queue, back seeks, shorter slices where many compete (`low_latency`). Not
//! modelled: groups, the service tree that processes without idling share, cooperating processes, I/O priorities within
//! a class.
//!
//! *Source:* Linux 2.6.18 to 4.20 `block/cfq-iosched.c` (behaviour, names, defaults).

use headstack_model::{Instant, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use super::fair::{self, ProcessQueue, Shared};
use super::pool::{Entry, Pool};
use super::process::ByProcess;
use super::{ElevatorRequest, Listed, Scheduler, Tuning, queue_key};

pub(super) const LISTED: Listed = Listed {
    name: "cfq",
    alias: None,
    summary: "A slice of time for each process in turn, kept for a moment when it runs dry (Linux to 4.20)",
    build: |tuning: &Tuning| Box::new(Cfq::new(&tuning.cfq)),
};

/// `cfq`: parameters of Linux's completely fair queueing elevator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CfqSpec {
    /// Requests of one queue that may be in flight while others wait.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub quantum: u32,
    /// Time after which a waiting read goes first in its queue.
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
    pub fifo_expire_sync: f64,
    /// Time after which a waiting asynchronous write goes first in its queue.
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
    pub fifo_expire_async: f64,
    /// Largest backward distance to a request, in units of 1,024 bytes (of 512-byte blocks, two to a unit).
    pub back_seek_max: u32,
    /// Cost of a block backward, relative to one forward.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub back_seek_penalty: u32,
    /// Slice of a process.
    #[schemars(range(min = 0.001, max = 1e6), extend("x-unit" = "ms"))]
    pub slice_sync: f64,
    /// Slice of the asynchronous writes.
    #[schemars(range(min = 0.001, max = 1e6), extend("x-unit" = "ms"))]
    pub slice_async: f64,
    /// An eighth of the largest number of asynchronous writes in their slice while others wait (at the middle priority).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub slice_async_rq: u32,
    /// Longest wait for a process whose queue became empty within its slice; 0 for none.
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
    pub slice_idle: f64,
    /// Whether slices shrink so that each process has its turn within `target_latency`.
    pub low_latency: bool,
    /// Time in which each process should have its turn.
    #[schemars(range(min = 0.001, max = 1e6), extend("x-unit" = "ms"))]
    pub target_latency: f64,
}

impl Default for CfqSpec {
    fn default() -> CfqSpec {
        CfqSpec {
            quantum: 8,
            fifo_expire_sync: 125.0,
            fifo_expire_async: 250.0,
            back_seek_max: 16 * 1024,
            back_seek_penalty: 2,
            slice_sync: 100.0,
            slice_async: 40.0,
            slice_async_rq: 2,
            slice_idle: 8.0,
            low_latency: true,
            target_latency: 300.0,
        }
    }
}

/// The queue of a process, or of the asynchronous writes.
#[derive(Debug)]
struct Queue {
    flow: ProcessQueue,
    urgent: bool,
    /// Whether it is among those that wait for a slice.
    listed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    queue: usize,
    /// When it ends; it begins with the first completion.
    ends: Option<Instant>,
    sent: u32,
    idle: Option<Instant>,
    /// Whether the age of its oldest request was checked.
    checked: bool,
}

#[derive(Debug)]
pub(super) struct Cfq {
    spec: CfqSpec,
    shared: Shared,
    queues: ByProcess<Queue>,
    /// Queues that wait for a slice: urgent ones, then the others.
    turns: [VecDeque<usize>; 2],
    slice: Option<Slice>,
}

impl Cfq {
    /// A process jumps if more than this number of its last 32 requests were far.
    const JUMPS: u32 = 4;

    fn new(spec: &CfqSpec) -> Cfq {
        let shared = Shared::new(spec.slice_idle, spec.back_seek_max, spec.back_seek_penalty, Cfq::JUMPS);
        Cfq { spec: *spec, shared, queues: ByProcess::new(), turns: Default::default(), slice: None }
    }

    fn queue_of(&mut self, entry: &Entry) -> usize {
        let flow = || ProcessQueue::new(entry.sync);
        self.queues.slot_of(queue_key(entry), || Queue { flow: flow(), urgent: entry.urgent, listed: false })
    }

    fn enlist(&mut self, place: usize, first: bool) {
        let queue = &mut self.queues[place];
        if queue.listed {
            return;
        }
        queue.listed = true;
        let turns = &mut self.turns[usize::from(!queue.urgent)];
        if first { turns.push_front(place) } else { turns.push_back(place) }
    }

    fn is_waiting(&self) -> bool {
        self.turns.iter().any(|turns| !turns.is_empty())
    }

    /// Length of a slice of a queue: shorter where all slices together would exceed `target_latency`.
    fn length(&self, sync: bool) -> Nanos {
        if !sync {
            return Nanos::from_ms(self.spec.slice_async);
        }
        let (slice, least) = (self.spec.slice_sync, 2.0 * self.spec.slice_idle);
        let turns = self.turns.iter().map(VecDeque::len).sum::<usize>() as f64 + 1.0;
        let shrunk = (self.spec.target_latency / turns).max(least.min(slice)).min(slice);
        Nanos::from_ms(if self.spec.low_latency { shrunk } else { slice })
    }

    /// Ends the slice; its queue goes to the end of the list, or to the front if it was preempted.
    fn expire(&mut self, first: bool) {
        if let Some(slice) = self.slice.take()
            && !self.queues[slice.queue].flow.run.is_empty()
        {
            self.enlist(slice.queue, first);
        }
    }

    /// The queue with the current slice, if it may send a request now; begins the next slice when the last one is over.
    fn select(&mut self, now: Instant) -> Option<usize> {
        loop {
            if let Some(slice) = self.slice {
                let queue = &self.queues[slice.queue];
                let used = slice.ends.is_some_and(|ends| now >= ends) || self.has_sent_all(&slice);
                let over = used && self.is_waiting();
                let pushed = !queue.urgent && !self.turns[0].is_empty();
                if over || pushed {
                    self.expire(pushed && !over);
                    continue;
                }
                if !queue.flow.run.is_empty() {
                    return self.may_send(&slice).then_some(slice.queue);
                }
                let idles = slice.idle.is_some_and(|until| now < until);
                if idles || (queue.flow.in_flight > 0 && self.shared.idles(&queue.flow)) {
                    return None;
                }
                self.expire(false);
                continue;
            }
            let urgent = usize::from(self.turns[0].is_empty());
            let queue = self.turns[urgent].pop_front()?;
            self.queues[queue].listed = false;
            self.slice = Some(Slice { queue, ends: None, sent: 0, idle: None, checked: false });
        }
    }

    fn has_sent_all(&self, slice: &Slice) -> bool {
        !self.queues[slice.queue].flow.sync && slice.sent >= 8 * self.spec.slice_async_rq
    }

    fn may_send(&self, slice: &Slice) -> bool {
        !self.is_waiting() || self.queues[slice.queue].flow.in_flight < self.spec.quantum
    }

    fn pick(&mut self, place: usize, now: Instant, pool: &Pool) -> Option<u32> {
        let queue = &self.queues[place].flow;
        let slice = self.slice.as_mut().expect("the queue was selected for a slice");
        let expire = if queue.sync { self.spec.fifo_expire_sync } else { self.spec.fifo_expire_async };
        let unchecked = !std::mem::replace(&mut slice.checked, true);
        let expired = queue.run.expired(now, Nanos::from_ms(expire), pool).filter(|_| unchecked);
        slice.sent += 1;
        slice.idle = None;
        expired.or_else(|| self.shared.nearest(queue, pool))
    }

    /// Whether a request of `queue` preempts the current slice: urgent before others, synchronous before asynchronous.
    fn preempts(&self, queue: usize, slice: &Slice) -> bool {
        let (new, running) = (&self.queues[queue], &self.queues[slice.queue]);
        new.urgent == running.urgent && new.flow.sync && !running.flow.sync
    }
}

impl Scheduler for Cfq {
    fn add(&mut self, now: Instant, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        let place = self.queue_of(entry);
        self.shared.note_request(&mut self.queues[place].flow, now, id, entry);
        match self.slice {
            Some(slice) if slice.queue == place => {}
            Some(slice) if self.preempts(place, &slice) => {
                self.expire(false);
                self.enlist(place, true);
            }
            _ => self.enlist(place, false),
        }
    }

    fn change(&mut self, id: u32, before: &Entry, pool: &Pool) {
        let place = self.queue_of(before);
        self.queues[place].flow.run.change(id, before, pool.get(id));
    }

    fn remove(&mut self, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        let place = self.queue_of(entry);
        let queue = &mut self.queues[place];
        queue.flow.run.remove(id, entry);
        if queue.flow.run.is_empty() && std::mem::take(&mut queue.listed) {
            self.turns.iter_mut().for_each(|turns| turns.retain(|other| *other != place));
        }
    }

    fn dispatch(&mut self, now: Instant, pool: &Pool) -> Option<u32> {
        let place = self.select(now)?;
        let id = self.pick(place, now, pool)?;
        self.shared.send(&mut self.queues[place].flow, id, pool.get(id));
        Some(id)
    }

    fn completed(&mut self, now: Instant, id: u32, pool: &Pool) {
        let place = self.queue_of(pool.get(id));
        let idle = self.shared.end(&mut self.queues[place].flow, now);
        let length = self.length(self.queues[place].flow.sync);
        if let Some(slice) = self.slice.as_mut().filter(|slice| slice.queue == place) {
            slice.ends.get_or_insert(now + length);
            slice.idle = idle;
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.slice.and_then(|slice| slice.idle)
    }

    fn may_merge(&self, entry: &Entry, ask: &ElevatorRequest) -> bool {
        fair::may_merge(entry, ask)
    }
}
