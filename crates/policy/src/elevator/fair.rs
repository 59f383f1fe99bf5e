//! Shared by the elevators that are fair among processes: a queue for each process, and the decision when the disk idles for one of them.
//!
//! *Source:* Linux `block/cfq-iosched.c` and `block/bfq-iosched.c`, where they do the same.

use headstack_model::{Instant, Nanos};

use super::ElevatorRequest;
use super::pool::{Entry, Pool};
use super::process::{Jumps, Think};
use super::run::{BackSeek, Run};

/// The waiting requests of a process, or of the asynchronous writes, and statistics of the process.
#[derive(Debug)]
pub(super) struct ProcessQueue {
    pub(super) run: Run,
    pub(super) sync: bool,
    pub(super) in_flight: u32,
    think: Think,
    jumps: Jumps,
}

impl ProcessQueue {
    pub(super) fn new(sync: bool) -> ProcessQueue {
        let (run, think, jumps) = (Run::default(), Think::default(), Jumps::default());
        ProcessQueue { run, sync, in_flight: 0, think, jumps }
    }

    pub(super) fn is_dry(&self) -> bool {
        self.run.is_empty() && self.in_flight == 0
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) slice_idle: Nanos,
    /// Mean think time up to which waiting for a process pays.
    pub(super) think_most: Nanos,
    back: BackSeek,
    /// A process jumps if more than this number of its last 32 requests were far.
    jumps: u32,
    position: u64,
    in_flight: u32,
    /// The largest number of requests in flight: a drive with a queue accepts several.
    deepest: u32,
}

impl Shared {
    /// Requests in flight beyond which a drive has a queue (`CFQ_HW_QUEUE_MIN`, `BFQ_HW_QUEUE_THRESHOLD`).
    const QUEUES: u32 = 5;

    /// Times in ms and back seeks in units of 1,024 bytes, as Linux has them.
    pub(super) fn new(slice_idle: f64, back_seek_max: u32, back_seek_penalty: u32, jumps: u32) -> Shared {
        let back = BackSeek { most: u64::from(back_seek_max) * 2, penalty: u64::from(back_seek_penalty) };
        let slice_idle = Nanos::from_ms(slice_idle);
        Shared { slice_idle, think_most: slice_idle, back, jumps, position: 0, in_flight: 0, deepest: 0 }
    }

    pub(super) fn note_request(&self, queue: &mut ProcessQueue, now: Instant, id: u32, entry: &Entry) {
        if queue.is_dry() {
            queue.think.note_arrival(now, Nanos(2 * self.slice_idle.0));
        }
        queue.jumps.note_request(entry.lbn(), entry.end());
        queue.run.insert(id, entry);
    }

    pub(super) fn nearest(&self, queue: &ProcessQueue, pool: &Pool) -> Option<u32> {
        queue.run.nearest(self.position, self.back, pool)
    }

    pub(super) fn send(&mut self, queue: &mut ProcessQueue, id: u32, entry: &Entry) {
        queue.run.remove(id, entry);
        queue.in_flight += 1;
        self.in_flight += 1;
        self.deepest = self.deepest.max(self.in_flight);
        self.position = entry.end();
    }

    /// Records that a request of a queue completed. Returns until when to keep the disk idle for the queue, if that may pay.
    pub(super) fn end(&mut self, queue: &mut ProcessQueue, now: Instant) -> Option<Instant> {
        self.in_flight -= 1;
        queue.in_flight -= 1;
        queue.think.end(now);
        (queue.is_dry() && self.idles(queue)).then_some(now + self.slice_idle)
    }

    /// Whether waiting for a queue may pay: a process that thinks briefly and, where the drive queues, does not jump.
    pub(super) fn idles(&self, queue: &ProcessQueue) -> bool {
        let queues = self.deepest >= Shared::QUEUES;
        queue.sync
            && self.slice_idle > Nanos::ZERO
            && !queue.think.exceeds(self.think_most)
            && !(queues && queue.jumps.exceed(self.jumps))
    }
}

/// Whether a request may merge with an entry: of the same process, or both asynchronous.
pub(super) fn may_merge(entry: &Entry, ask: &ElevatorRequest) -> bool {
    entry.sync == ask.sync && (!ask.sync || entry.source == ask.source)
}
