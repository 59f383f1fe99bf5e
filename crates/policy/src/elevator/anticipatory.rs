//! anticipatory (Linux 2.6 `as-iosched`): as deadline, in batches of time, and after a read it waits a moment for the same
//! process to ask again nearby, where that process is known to think briefly and the way to others' requests is long.
//!
//! Not modelled: processes that end, and reads by cooperating processes.
//!
//! *Source:* Iyer and Druschel 2001 (deceptive idleness); Linux 2.6 `block/as-iosched.c` (behaviour, names, defaults).

use headstack_model::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pool::{Entry, Pool};
use super::process::{ByProcess, Decaying, Think};
use super::run::{BackSeek, Run};
use super::{Listed, Scheduler, Tuning};

pub(super) const LISTED: Listed = Listed {
    name: "anticipatory",
    alias: None,
    summary: "Batches of time, and a pause after a read for the next read of its process nearby (Linux 2.6)",
    build: |tuning: &Tuning| Box::new(Anticipatory::new(&tuning.anticipatory)),
};

/// `anticipatory`: parameters of Linux 2.6's anticipatory elevator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AnticipatorySpec {
    /// Time in ms after which a waiting read goes next within its batch (HZ/8).
    pub read_expire: f64,
    /// Time in ms after which a waiting write goes next within its batch (HZ/4).
    pub write_expire: f64,
    /// Length in ms of a batch of reads while writes wait (HZ/2).
    pub read_batch_expire: f64,
    /// Length in ms of a batch of writes while reads wait (HZ/8).
    pub write_batch_expire: f64,
    /// Longest pause in ms for the next request of a process (HZ/150); 0 for none.
    pub antic_expire: f64,
}

impl Default for AnticipatorySpec {
    fn default() -> AnticipatorySpec {
        AnticipatorySpec {
            read_expire: 125.0,
            write_expire: 250.0,
            read_batch_expire: 500.0,
            write_batch_expire: 125.0,
            antic_expire: 6.0,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Process {
    think: Think,
    /// Blocks from the end of one request to the start of the next.
    jump: Decaying,
    last: Option<u64>,
    waiting: u32,
    in_flight: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    /// None; a pause may begin.
    No,
    /// Until this time for this process.
    Until(Nanos, usize),
    /// It expired without a request; no other may begin before the next read completes.
    Over,
}

#[derive(Debug)]
pub(super) struct Anticipatory {
    /// For reads (and writes that a process waits for), then for the others.
    expire: [Nanos; 2],
    batch_expire: [Nanos; 2],
    antic: Nanos,
    runs: [Run; 2],
    /// End of the last request.
    position: u64,
    /// The current batch's direction, and its end.
    direction: usize,
    batch_ends: Nanos,
    checked: [Nanos; 2],
    processes: ByProcess<Process>,
    /// The process whose read completed last.
    last: Option<usize>,
    last_end: Nanos,
    pause: Pause,
}

/// Linux's `MAXBACK` and the cost of going back.
const BACK: BackSeek = BackSeek { most: 2048, penalty: 2 };

fn direction_of(entry: &Entry) -> usize {
    usize::from(!entry.sync)
}

impl Anticipatory {
    fn new(spec: &AnticipatorySpec) -> Anticipatory {
        let ms = |read, write| [Nanos::from_ms(read), Nanos::from_ms(write)];
        Anticipatory {
            expire: ms(spec.read_expire, spec.write_expire),
            batch_expire: ms(spec.read_batch_expire, spec.write_batch_expire),
            antic: Nanos::from_ms(spec.antic_expire),
            runs: Default::default(),
            position: 0,
            direction: 0,
            batch_ends: Nanos::ZERO,
            checked: [Nanos::ZERO; 2],
            processes: ByProcess::new(),
            last: None,
            last_end: Nanos::ZERO,
            pause: Pause::No,
        }
    }

    fn slot_of(&mut self, source: u32) -> usize {
        self.processes.slot_of(u64::from(source), Process::default)
    }

    /// Whether waiting for the process whose read completed last is worth more than serving `next`.
    fn pays(&self, next: Option<&Entry>) -> bool {
        let Some(process) = self.last.map(|place| &self.processes[place]) else { return false };
        if process.waiting > 0 || process.in_flight > 0 || process.think.exceeds(self.antic) {
            return false;
        }
        let Some(next) = next else { return true };
        let distance = next.lbn().abs_diff(self.position);
        process.jump.mean().is_none_or(|mean| mean <= distance)
    }

    /// The oldest request of a direction if its time has expired. Linux checks no more often than that time.
    fn expired(&mut self, now: Nanos, direction: usize, pool: &Pool) -> Option<u32> {
        if now < self.checked[direction] + self.expire[direction] {
            return None;
        }
        self.checked[direction] = now;
        self.runs[direction].expired(now, self.expire[direction], pool)
    }

    /// Whether to hold everything back for a while.
    fn pauses(&mut self, now: Nanos, next: Option<u32>, pool: &Pool) -> bool {
        if let Pause::Until(until, _) = self.pause {
            if now < until {
                return true;
            }
            self.pause = Pause::Over;
        }
        if self.pause == Pause::Over || self.antic == Nanos::ZERO {
            return false;
        }
        let until = self.last_end + self.antic;
        match self.last {
            Some(place) if now < until && self.pays(next.map(|id| pool.get(id))) => {
                self.pause = Pause::Until(until, place);
                true
            }
            _ => false,
        }
    }

    /// Begins a batch of the other kind if it has requests, else continues with the present one.
    fn change_batch(&mut self, now: Nanos) -> Option<u32> {
        let other = 1 - self.direction;
        self.direction = if self.runs[other].is_empty() { self.direction } else { other };
        self.batch_ends = now + self.batch_expire[self.direction];
        self.checked[self.direction] = now;
        self.runs[self.direction].oldest()
    }

    fn choose(&mut self, now: Nanos, pool: &Pool) -> Option<u32> {
        let both = self.runs.iter().all(|run| !run.is_empty());
        let next = self.runs[self.direction].nearest(self.position, BACK, pool);
        if both && now >= self.batch_ends {
            return self.change_batch(now);
        }
        if let Some(expired) = self.expired(now, self.direction, pool) {
            return Some(expired);
        }
        if self.direction == 0 && self.pauses(now, next, pool) {
            return None;
        }
        next.or_else(|| self.change_batch(now))
    }
}

impl Scheduler for Anticipatory {
    fn add(&mut self, now: Nanos, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        self.runs[direction_of(entry)].insert(id, entry);
        if !entry.sync {
            return;
        }
        let (place, most) = (self.slot_of(entry.source), Nanos(2 * self.antic.0));
        let process = &mut self.processes[place];
        process.think.note_arrival(now, most);
        if let Some(last) = process.last {
            process.jump.add(entry.lbn().abs_diff(last));
        }
        process.last = Some(entry.end());
        process.waiting += 1;
        if let Pause::Until(_, awaited) = self.pause
            && (awaited == place || !self.pays(Some(entry)))
        {
            self.pause = Pause::No;
        }
    }

    fn change(&mut self, id: u32, before: &Entry, pool: &Pool) {
        self.runs[direction_of(before)].change(id, before, pool.get(id));
    }

    fn remove(&mut self, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        self.runs[direction_of(entry)].remove(id, entry);
        if entry.sync {
            let place = self.slot_of(entry.source);
            self.processes[place].waiting -= 1;
        }
    }

    fn dispatch(&mut self, now: Nanos, pool: &Pool) -> Option<u32> {
        let id = self.choose(now, pool)?;
        self.remove(id, pool);
        let entry = pool.get(id);
        self.position = entry.end();
        if entry.sync {
            let place = self.slot_of(entry.source);
            self.processes[place].in_flight += 1;
        }
        Some(id)
    }

    fn completed(&mut self, now: Nanos, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        if !entry.sync {
            return;
        }
        let place = self.slot_of(entry.source);
        let process = &mut self.processes[place];
        process.in_flight -= 1;
        process.think.end(now);
        (self.last, self.last_end, self.pause) = (Some(place), now, Pause::No);
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        match self.pause {
            Pause::Until(until, _) => Some(until),
            _ => None,
        }
    }

    fn may_merge(&self, entry: &Entry, ask: &super::ElevatorRequest) -> bool {
        entry.sync == ask.sync
    }
}
