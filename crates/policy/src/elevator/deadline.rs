//! deadline (Linux `mq-deadline`): batches of reads or of writes, upward by block number, reads before writes; a request whose time is up
//! starts the next batch. Urgent requests go before all others, until one of those has waited for too long. Requests of the idle class
//! go while no other is in the queue or at the device, or once one of them has waited for too long.
//!
//! *Source:* Linux `block/mq-deadline.c` (the behaviour, names and defaults).

use headstack_model::{Instant, Nanos, Op};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pool::{Entry, Pool};
use super::run::Run;
use super::{CLASSES, IDLE, Listed, Scheduler, Tuning, class_of};

pub(super) const LISTED: Listed = Listed {
    name: "deadline",
    alias: Some("mq-deadline"),
    summary: "Batches upward by block number, reads before writes, each within its time (mq-deadline)",
    build: |tuning: &Tuning| Box::new(Deadline::new(&tuning.deadline)),
};

/// `deadline`: parameters of Linux's `mq-deadline`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeadlineSpec {
    /// Time after which a waiting read starts the next batch.
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
    pub read_expire: f64,
    /// Time after which a waiting write starts the next batch of writes.
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
    pub write_expire: f64,
    /// Batches of reads that may go before waiting writes.
    pub writes_starved: u32,
    /// Requests in a batch.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub fifo_batch: u32,
    /// Whether a request may be merged in front of a waiting one.
    pub front_merges: bool,
    /// Time after which a waiting request goes although those of a higher class wait.
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
    pub prio_aging_expire: f64,
}

impl Default for DeadlineSpec {
    fn default() -> DeadlineSpec {
        DeadlineSpec {
            read_expire: 500.0,
            write_expire: 5000.0,
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
            prio_aging_expire: 10_000.0,
        }
    }
}

#[derive(Debug, Default)]
struct Class {
    /// Reads, then writes.
    runs: [Run; 2],
    /// Where the last request of either direction began.
    position: [u64; 2],
    writes: bool,
    batched: u32,
    starved: u32,
}

#[derive(Debug)]
pub(super) struct Deadline {
    expire: [Nanos; 2],
    writes_starved: u32,
    fifo_batch: u32,
    front_merges: bool,
    aging: Nanos,
    classes: [Class; CLASSES],
    /// Requests of each class that wait or are at the device.
    pending: [u32; CLASSES],
}

fn direction_of(entry: &Entry) -> usize {
    usize::from(entry.request.op != Op::Read)
}

impl Deadline {
    fn new(spec: &DeadlineSpec) -> Deadline {
        Deadline {
            expire: [Nanos::from_ms(spec.read_expire), Nanos::from_ms(spec.write_expire)],
            writes_starved: spec.writes_starved,
            fifo_batch: spec.fifo_batch,
            front_merges: spec.front_merges,
            aging: Nanos::from_ms(spec.prio_aging_expire),
            classes: Default::default(),
            pending: [0; CLASSES],
        }
    }

    fn run(&mut self, entry: &Entry) -> &mut Run {
        &mut self.classes[class_of(entry)].runs[direction_of(entry)]
    }

    /// The class to serve: the highest, unless a request of a lower one is older than `prio_aging_expire`. None while requests of the idle
    /// class alone wait and others are at the device.
    fn class(&self, now: Instant, pool: &Pool) -> Option<usize> {
        let aged = |class: usize| {
            let runs = &self.classes[class].runs;
            runs.iter().any(|run| run.expired(now, self.aging, pool).is_some())
        };
        if let Some(class) = (1..CLASSES).find(|class| aged(*class)) {
            return Some(class);
        }
        let is_idle = self.pending[..IDLE].iter().all(|pending| *pending == 0);
        let first = (0..IDLE).find(|class| !self.classes[*class].is_empty());
        first.or(is_idle.then_some(IDLE))
    }

    fn next(&mut self, class: usize, now: Instant, pool: &Pool) -> Option<u32> {
        let (expire, batch, most_starved) = (self.expire, self.fifo_batch, self.writes_starved);
        let class = &mut self.classes[class];
        let direction = usize::from(class.writes);
        let further = class.runs[direction].at_or_after(class.position[direction]);
        let id = match further.filter(|_| class.batched < batch) {
            Some(id) => id,
            None => {
                let direction = class.next_direction(most_starved)?;
                class.batched = 0;
                let run = &class.runs[direction];
                let upward = run.at_or_after(class.position[direction]);
                run.expired(now, expire[direction], pool).or(upward).or_else(|| run.oldest())?
            }
        };
        class.batched += 1;
        let entry = pool.get(id);
        let direction = direction_of(entry);
        class.runs[direction].remove(id, entry);
        class.position[direction] = entry.lbn();
        Some(id)
    }
}

impl Class {
    fn is_empty(&self) -> bool {
        self.runs.iter().all(Run::is_empty)
    }

    /// Decides the direction of a new batch: reads, unless writes were skipped `most_starved` times.
    fn next_direction(&mut self, most_starved: u32) -> Option<usize> {
        let (reads, writes) = (!self.runs[0].is_empty(), !self.runs[1].is_empty());
        if !reads && !writes {
            return None;
        }
        self.writes = if reads && writes { self.starved >= most_starved } else { writes };
        self.starved = if self.writes { 0 } else { self.starved + u32::from(writes) };
        Some(usize::from(self.writes))
    }
}

impl Scheduler for Deadline {
    fn add(&mut self, _now: Instant, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        self.run(entry).insert(id, entry);
        self.pending[class_of(entry)] += 1;
    }

    fn change(&mut self, id: u32, before: &Entry, pool: &Pool) {
        self.run(before).change(id, before, pool.get(id));
    }

    fn remove(&mut self, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        self.run(entry).remove(id, entry);
        self.pending[class_of(entry)] -= 1;
    }

    fn dispatch(&mut self, now: Instant, pool: &Pool) -> Option<u32> {
        let class = self.class(now, pool)?;
        self.next(class, now, pool)
    }

    fn completed(&mut self, _now: Instant, id: u32, pool: &Pool) {
        self.pending[class_of(pool.get(id))] -= 1;
    }

    fn merges_at_front(&self) -> bool {
        self.front_merges
    }
}
