//! anticipatory (Linux 2.6 `as-iosched`): as deadline, with batches limited by time. After it has dispatched a read, it may hold other
//! requests back: until that read completes, and then briefly, so that the same process can issue its next read. It does so where the
//! process is known to think briefly and no waiting read is close. A drive with an internal queue then has one command at a time.
//!
//! Not modelled: processes that end, reads by cooperating processes, and the wait for an empty drive between batches of reads and writes.
//!
//! *Source:* Iyer and Druschel 2001 (deceptive idleness); Linux 2.6 `Documentation/block/as-iosched.txt` and `block/as-iosched.c`
//! (behaviour, names, defaults).

use headstack_model::{Instant, Nanos};
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
    /// Time after which a waiting read goes next within its batch (HZ/8).
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
    pub read_expire: f64,
    /// Time after which a waiting write goes next within its batch (HZ/4).
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
    pub write_expire: f64,
    /// Length of a batch of reads while writes wait (HZ/2).
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
    pub read_batch_expire: f64,
    /// Length of a batch of writes while reads wait (HZ/8).
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
    pub write_batch_expire: f64,
    /// Longest pause for the next request of a process (HZ/150); 0 for none.
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
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
}

/// The process whose read was dispatched last, no write after it.
#[derive(Clone, Copy, Debug)]
struct LastReader {
    process: usize,
    /// When a read of it completed since then.
    completed: Option<Instant>,
}

/// What the elevator waits for while it dispatches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anticipation {
    /// Nothing; a wait may begin.
    No,
    /// The completion of the read dispatched last (`ANTIC_WAIT_REQ`).
    ForCompletion,
    /// The next read of its process, until this time (`ANTIC_WAIT_NEXT`).
    ForNext(Instant),
    /// The wait ended; no other begins before the next dispatch.
    Over,
}

#[derive(Debug)]
pub(super) struct Anticipatory {
    /// For reads (and writes that a process waits for), then for the others.
    expire: [Nanos; 2],
    batch_expire: [Nanos; 2],
    antic: Nanos,
    runs: [Run; 2],
    /// End of the last request dispatched, of each direction.
    positions: [u64; 2],
    /// The current batch's direction, and its end.
    direction: usize,
    batch_ends: Instant,
    checked: [Instant; 2],
    processes: ByProcess<Process>,
    last: Option<LastReader>,
    wait: Anticipation,
}

/// Blocks ahead of the last read within which another process's read is close enough to end a wait, and half as many behind it. They
/// double with each ms of the wait. *Source:* Linux 2.6 `as-iosched`.
const CLOSE: u64 = 8192;

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
            positions: [0; 2],
            direction: 0,
            batch_ends: Instant::ZERO,
            checked: [Instant::ZERO; 2],
            processes: ByProcess::new(),
            last: None,
            wait: Anticipation::No,
        }
    }

    fn slot_of(&mut self, source: u32) -> usize {
        self.processes.slot_of(u64::from(source), Process::default)
    }

    /// Whether a request of another process is so close to the last read that waiting for a closer one of `process` does not pay.
    fn is_close(&self, waited: Nanos, process: &Process, entry: &Entry) -> bool {
        let (last, next) = (self.positions[0], entry.lbn());
        let ahead = CLOSE << (waited.0 / 1_000_000).min(20);
        let is_near = last <= next + ahead / 2 && next <= last + ahead;
        is_near || process.jump.mean().is_some_and(|mean| mean > next.abs_diff(last))
    }

    /// Whether a wait for the process of the last read does not pay, given `next` that could go instead.
    fn ends_wait(&self, now: Instant, next: Option<&Entry>) -> bool {
        let Some(LastReader { process, completed }) = self.last else { return true };
        let process = &self.processes[process];
        let waited =
            completed.filter(|_| self.wait != Anticipation::No).map_or(Nanos::ZERO, |at| now.since(at));
        let is_close = |entry: &Entry| entry.sync && self.is_close(waited, process, entry);
        completed.is_some_and(|at| now >= at + self.antic)
            || process.waiting > 0
            || next.is_some_and(is_close)
            || process.think.exceeds(self.antic)
    }

    /// The oldest request of a direction if its time has expired. Linux checks no more often than that time.
    fn expired(&mut self, now: Instant, direction: usize, pool: &Pool) -> Option<u32> {
        if now < self.checked[direction] + self.expire[direction] {
            return None;
        }
        self.checked[direction] = now;
        self.runs[direction].expired(now, self.expire[direction], pool)
    }

    /// Begins a wait if it pays more than dispatching `next`; returns whether it began.
    fn begins_wait(&mut self, now: Instant, next: Option<&Entry>) -> bool {
        if self.wait == Anticipation::Over || self.antic == Nanos::ZERO || self.ends_wait(now, next) {
            return false;
        }
        let completed = self.last.and_then(|last| last.completed);
        self.wait =
            completed.map_or(Anticipation::ForCompletion, |at| Anticipation::ForNext(at + self.antic));
        true
    }

    /// Whether a wait is in progress; ends one that has expired.
    fn waits(&mut self, now: Instant) -> bool {
        match self.wait {
            Anticipation::ForNext(until) if now >= until => {
                self.wait = Anticipation::Over;
                false
            }
            Anticipation::ForCompletion | Anticipation::ForNext(_) => true,
            Anticipation::No | Anticipation::Over => false,
        }
    }

    /// Begins a batch of the other kind if it has requests, else continues with the present one.
    fn change_batch(&mut self, now: Instant) -> Option<u32> {
        let other = 1 - self.direction;
        self.direction = if self.runs[other].is_empty() { self.direction } else { other };
        self.batch_ends = now + self.batch_expire[self.direction];
        self.checked[self.direction] = now;
        self.runs[self.direction].oldest()
    }

    fn choose(&mut self, now: Instant, pool: &Pool) -> Option<u32> {
        if self.waits(now) {
            return None;
        }
        let both = self.runs.iter().all(|run| !run.is_empty());
        let next = self.runs[self.direction].nearest(self.positions[self.direction], BACK, pool);
        if both && now >= self.batch_ends {
            return self.change_batch(now);
        }
        if let Some(expired) = self.expired(now, self.direction, pool) {
            return Some(expired);
        }
        if self.direction == 0 && self.begins_wait(now, next.map(|id| pool.get(id))) {
            return None;
        }
        next.or_else(|| self.change_batch(now))
    }
}

impl Scheduler for Anticipatory {
    fn add(&mut self, now: Instant, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        self.runs[direction_of(entry)].insert(id, entry);
        if !entry.sync {
            return;
        }
        let (place, most) = (self.slot_of(entry.source), Nanos(2 * self.antic.0));
        let process = &mut self.processes[place];
        if process.waiting == 0 {
            process.think.note_arrival(now, most);
        }
        if let Some(last) = process.last {
            process.jump.add(entry.lbn().abs_diff(last));
        }
        process.last = Some(entry.end());
        process.waiting += 1;
        if matches!(self.wait, Anticipation::ForCompletion | Anticipation::ForNext(_))
            && self.ends_wait(now, Some(entry))
        {
            self.wait = Anticipation::Over;
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

    fn dispatch(&mut self, now: Instant, pool: &Pool) -> Option<u32> {
        let id = self.choose(now, pool)?;
        self.remove(id, pool);
        let entry = pool.get(id);
        self.positions[direction_of(entry)] = entry.end();
        self.wait = Anticipation::No;
        self.last = entry.sync.then(|| LastReader { process: self.slot_of(entry.source), completed: None });
        Some(id)
    }

    fn completed(&mut self, now: Instant, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        if !entry.sync {
            return;
        }
        let place = self.slot_of(entry.source);
        self.processes[place].think.end(now);
        if let Some(last) = self.last.as_mut().filter(|last| last.process == place) {
            last.completed = Some(now);
            if self.wait == Anticipation::ForCompletion {
                self.wait = Anticipation::ForNext(now + self.antic);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.wait {
            Anticipation::ForNext(until) => Some(until),
            _ => None,
        }
    }

    fn may_merge(&self, entry: &Entry, ask: &super::ElevatorRequest) -> bool {
        entry.sync == ask.sync
    }
}

#[cfg(test)]
mod tests {
    use crate::elevator::{Added, Dispatch, Elevator, ElevatorRequest, EntryId, MergeRule, Tuning};
    use headstack_model::{Instant, Lbn, Request};

    fn ms(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    struct Tried(Elevator);

    impl Tried {
        /// With a read of process 1 at block 0, dispatched at 0, and a far one of process 2 that waits.
        fn new() -> (Tried, EntryId) {
            let elevator = Elevator::by_name("anticipatory", &Tuning::default(), MergeRule::NONE);
            let mut tried = Tried(elevator.expect("it is listed"));
            tried.read(ms(0), 1, 0);
            let first = tried.0.dispatch(ms(0)).expect("a read waits").entry;
            tried.read(ms(1), 2, 90_000_000);
            (tried, first)
        }

        fn read(&mut self, now: Instant, source: u32, lbn: u64) {
            let request = Request::read(Lbn(lbn), 8);
            let added = self.0.add(
                now,
                ElevatorRequest { request, source, urgent: false, idle: false, limit: 0, sync: true },
            );
            assert!(matches!(added, Added::Queued(_)));
        }

        fn dispatched(&mut self, now: Instant) -> Option<u64> {
            self.0.dispatch(now).map(|Dispatch { request, .. }| request.lbn.0)
        }
    }

    #[test]
    fn nothing_goes_while_the_last_read_is_at_the_drive_and_up_to_the_limit_after_it() {
        let (mut tried, first) = Tried::new();
        assert_eq!((tried.dispatched(ms(1)), tried.0.poll_timeout()), (None, None));
        assert_eq!(tried.dispatched(ms(500)), None);
        tried.0.completed(ms(500), first);
        assert_eq!((tried.dispatched(ms(505)), tried.0.poll_timeout()), (None, Some(ms(506))));
        assert_eq!(tried.dispatched(ms(506)), Some(90_000_000));
    }

    #[test]
    fn next_read_of_the_process_ends_the_wait_and_goes_first() {
        let (mut tried, first) = Tried::new();
        assert_eq!(tried.dispatched(ms(1)), None);
        tried.0.completed(ms(9), first);
        tried.read(ms(10), 1, 8);
        assert_eq!(tried.dispatched(ms(10)), Some(8));
        // The drive has a command again.
        assert_eq!(tried.dispatched(ms(10)), None);
    }

    #[test]
    fn distance_at_which_a_read_of_another_is_close_doubles_each_ms() {
        for (waited, lbn, ends) in [
            (0, 8 + 8192, true),
            (0, 8 + 8193, false),
            (1, 8 + 8193, true),
            (3, 8 + 65_536, true),
            (3, 8 + 65_537, false),
        ] {
            let (mut tried, first) = Tried::new();
            assert_eq!(tried.dispatched(ms(1)), None);
            tried.0.completed(ms(9), first);
            tried.read(ms(9 + waited), 3, lbn);
            assert_eq!(tried.dispatched(ms(9 + waited)), ends.then_some(lbn), "{waited} ms, block {lbn}");
        }
    }
}
