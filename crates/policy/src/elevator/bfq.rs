//! BFQ: each process has a queue and a budget of blocks. BFQ serves the queue whose budget would be finished first on an ideal, evenly
//! shared disk, until its budget is used up, its time is over, or it has been empty for too long. How a queue used its budget
//! determines its next budget. A process that uses its budget slowly is charged for the time it took.
//!
//! Where the disk has several arms, a process has a queue for each of them. While an arm has few commands, requests of a queue for it go to
//! the disk, whichever queue is served.
//!
//! Modelled: B-WF2Q+ over the processes of a class, weights, idling, budget feedback, charging slow queues by time, the higher charge for
//! asynchronous writes, the classes real time, best effort and idle in this order, queues for each arm. The idle class has a turn of one request at
//! least each 200 ms, while others wait. Not modelled: raised weights (`low_latency`), merging
//! the queues of cooperating processes, injection for one arm, measuring the peak rate, groups, disks without arms (`rotational` 0), on which
//! Linux idles for no process. Of several queues for an arm with few commands, the one whose process came first has precedence (Linux: the
//! one that became active first).
//!
//! *Source:* Valente and Checconi 2010, "High throughput disk scheduling with fair bandwidth distribution"; Linux
//! `block/bfq-iosched.c`, `block/bfq-wf2q.c` (behaviour, names, defaults).

use headstack_model::{Instant, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fair::{self, ProcessQueue, Shared};
use super::pool::{Entry, Pool};
use super::process::ByProcess;
use super::{CLASSES, ElevatorRequest, IDLE, Listed, Scheduler, Tuning, class_of, queue_key};

pub(super) const LISTED: Listed = Listed {
    name: "bfq",
    alias: None,
    summary: "A budget of blocks for each process, the earliest virtual finish first, idling between (Linux since 4.12)",
    build: |tuning: &Tuning| Box::new(Bfq::new(&tuning.bfq, &tuning.arm_firsts)),
};

/// `bfq`: parameters of Linux's budget fair queueing elevator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BfqSpec {
    /// Longest wait for a process whose queue became empty before its budget; 0 for none.
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
    pub slice_idle: f64,
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
    /// Longest time that a queue is served for one budget.
    #[schemars(range(min = 0.001, max = 1e6), extend("x-unit" = "ms"))]
    pub timeout_sync: f64,
    /// Largest budget in blocks; 0 for 16,384, the value with which Linux starts before it has measured the disk.
    pub max_budget: u32,
    /// Commands of an arm of a disk with several, below which requests for that arm go to the disk, whichever queue is served
    /// (Linux since 6.3, where it is no parameter); 0 for queues that know no arms.
    pub actuator_load_threshold: u32,
    /// Weights of processes 0, 1, 2 …; 100 for the others (Linux's default weight).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(range(min = 1, max = 1000)))]
    pub weights: Vec<u32>,
}

impl Default for BfqSpec {
    fn default() -> BfqSpec {
        BfqSpec {
            slice_idle: 8.0,
            fifo_expire_sync: 125.0,
            fifo_expire_async: 250.0,
            back_seek_max: 16 * 1024,
            back_seek_penalty: 1,
            timeout_sync: 125.0,
            max_budget: 0,
            actuator_load_threshold: 4,
            weights: Vec::new(),
        }
    }
}

/// The queue of a process, or of the asynchronous writes.
#[derive(Debug)]
struct Queue {
    flow: ProcessQueue,
    class: usize,
    weight: u64,
    arm: usize,
    /// Blocks that went to the disk while another queue was served.
    injected: u64,
    /// Whether it takes part in the sharing: it has requests, or is served.
    active: bool,
    /// Budget of the next service, in blocks.
    budget: u64,
    /// Virtual times between which an ideal disk would serve the budget.
    start: u64,
    finish: u64,
}

#[derive(Clone, Copy, Debug)]
struct Served {
    queue: usize,
    since: Instant,
    service: u64,
    idle: Option<Instant>,
    checked: bool,
    /// Whether it is of the idle class and has its turn although others wait.
    is_owed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    TooIdle,
    Timeout,
    Exhausted,
    NoMore,
    Preempted,
}

/// The commands that each arm of the disk has. One arm counts none.
#[derive(Debug, Default)]
struct ArmLoads {
    firsts: Vec<u64>,
    in_flight: Vec<u32>,
    threshold: u32,
}

impl ArmLoads {
    fn new(threshold: u32, firsts: &[u64]) -> ArmLoads {
        if threshold == 0 || firsts.len() < 2 {
            return ArmLoads::default();
        }
        ArmLoads { firsts: firsts.to_vec(), in_flight: vec![0; firsts.len()], threshold }
    }

    fn arm_of(&self, lbn: u64) -> usize {
        self.firsts.partition_point(|first| *first <= lbn).saturating_sub(1)
    }

    fn sent(&mut self, arm: usize) {
        if let Some(count) = self.in_flight.get_mut(arm) {
            *count += 1;
        }
    }

    fn ended(&mut self, arm: usize) {
        if let Some(count) = self.in_flight.get_mut(arm) {
            *count -= 1;
        }
    }

    /// The arms with fewer commands than the threshold, and than the next arm.
    fn underused(&self) -> impl Iterator<Item = usize> + '_ {
        let is_less = |arm: usize| self.in_flight.get(arm + 1).is_none_or(|next| self.in_flight[arm] < *next);
        (0..self.in_flight.len()).filter(move |arm| self.in_flight[*arm] < self.threshold && is_less(*arm))
    }
}

/// Budgets in the order of their virtual finish.
#[derive(Debug)]
pub(super) struct Bfq {
    shared: Shared,
    fifo_expire: [Nanos; 2],
    timeout: Nanos,
    max_budget: u64,
    weights: Vec<u32>,
    arms: ArmLoads,
    queues: ByProcess<Queue>,
    /// Virtual time of each class.
    virtual_time: [u64; CLASSES],
    /// When the idle class last had its turn, or had no request for one.
    idle_turn: Instant,
    served: Option<Served>,
}

impl Bfq {
    /// Virtual time of a block at weight 1, so that weights divide it finely (`WFQ_SERVICE_SHIFT`).
    const SHIFT: u32 = 22;
    /// Asynchronous writes are charged this multiple of their blocks (`bfq_async_charge_factor`).
    const ASYNC_CHARGE: u64 = 3;
    /// A process jumps if more than this number of its last 32 requests were far.
    const JUMPS: u32 = 19;
    /// Time after which the idle class has a turn although others wait (`BFQ_CL_IDLE_TIMEOUT`, a fifth of a second).
    const IDLE_TURN: Nanos = Nanos(200_000_000);
    /// A queue served for less than this time is never called slow.
    const BRIEF: Nanos = Nanos(20_000_000);

    fn new(spec: &BfqSpec, arm_firsts: &[u64]) -> Bfq {
        let max_budget = if spec.max_budget == 0 { 16 * 1024 } else { u64::from(spec.max_budget) };
        let mut shared = Shared::new(spec.slice_idle, spec.back_seek_max, spec.back_seek_penalty, Bfq::JUMPS);
        // Since Linux 5.12; before, all of `slice_idle`, as CFQ.
        shared.think_most = Nanos(shared.slice_idle.0 / 2);
        Bfq {
            shared,
            fifo_expire: [Nanos::from_ms(spec.fifo_expire_sync), Nanos::from_ms(spec.fifo_expire_async)],
            timeout: Nanos::from_ms(spec.timeout_sync),
            max_budget,
            weights: spec.weights.clone(),
            arms: ArmLoads::new(spec.actuator_load_threshold, arm_firsts),
            queues: ByProcess::new(),
            virtual_time: [0; CLASSES],
            idle_turn: Instant::ZERO,
            served: None,
        }
    }

    fn queue_of(&mut self, entry: &Entry) -> usize {
        let (weights, most) = (&self.weights, self.max_budget);
        let arm = self.arms.arm_of(entry.lbn());
        // The key of a process takes 34 bits.
        self.queues.slot_of(queue_key(entry) | (arm as u64) << 40, || Queue {
            flow: ProcessQueue::new(entry.sync),
            arm,
            injected: 0,
            class: class_of(entry),
            weight: u64::from(*weights.get(entry.source as usize).filter(|_| entry.sync).unwrap_or(&100)),
            active: false,
            // A third of the largest, so that a new process is not served for too long.
            budget: if entry.sync { most * 2 / 3 } else { most },
            start: 0,
            finish: 0,
        })
    }

    /// The virtual time that a queue's service takes.
    fn stretch(queue: &Queue, blocks: u64) -> u64 {
        (blocks << Bfq::SHIFT) / queue.weight
    }

    /// Activates a queue that has requests: from its last finish on, or from now where that is in the past.
    fn activate(&mut self, place: usize) {
        let now = self.virtual_time[self.queues[place].class];
        let queue = &mut self.queues[place];
        if !queue.active {
            queue.active = true;
            queue.start = queue.finish.max(now);
            queue.finish = queue.start + Bfq::stretch(queue, queue.budget);
        }
    }

    /// Charges the served queue for blocks, and advances the virtual time of its class.
    fn charge(&mut self, place: usize, blocks: u64) {
        let class = self.queues[place].class;
        let active = self.queues.iter().filter(|queue| queue.active && queue.class == class);
        let weights: u64 = active.map(|queue| queue.weight).sum();
        self.virtual_time[class] += (blocks << Bfq::SHIFT) / weights.max(1);
        match &mut self.served {
            Some(served) if served.queue == place => served.service += blocks,
            _ => self.queues[place].injected += blocks,
        }
    }

    /// Takes a queue that has no more requests out of the sharing while another is served, and charges it for its injected blocks.
    fn deactivate_dry(&mut self, place: usize) {
        let queue = &mut self.queues[place];
        if queue.flow.run.is_empty() {
            queue.finish = queue.start + Bfq::stretch(queue, queue.injected);
            queue.injected = 0;
            queue.active = false;
        }
    }

    /// A queue for the first arm that has few commands, fewer than the next arm: the served one, or the first whose next request fits in
    /// its budget.
    fn queue_for_idle_arm(&self, served: usize, pool: &Pool) -> Option<usize> {
        let fits = |queue: &Queue| {
            let next = self.shared.nearest(&queue.flow, pool);
            next.is_some_and(|id| queue.injected + self.blocks(pool.get(id)) <= queue.budget)
        };
        self.arms.underused().find_map(|arm| {
            if self.queues[served].arm == arm {
                return Some(served);
            }
            self.queues.iter().position(|queue| queue.active && queue.arm == arm && fits(queue))
        })
    }

    fn is_waiting(&self, but: usize) -> bool {
        self.queues.iter().enumerate().any(|(place, queue)| place != but && queue.active)
    }

    /// Ends the service of a queue: its use of the budget sets the next budget, and its service its next virtual times.
    fn expire(&mut self, now: Instant, reason: Reason) {
        let Some(served) = self.served else { return };
        let took = now.since(served.since);
        let slow = took > Bfq::BRIEF && served.service < self.max_budget / 2;
        let budget = self.queues[served.queue].budget;
        let barely = reason == Reason::Timeout && budget.saturating_sub(served.service) >= budget / 3;
        if slow || barely {
            let share = u128::from(took.min(self.timeout).0) * u128::from(self.max_budget);
            let worth = (share / u128::from(self.timeout.0.max(1))) as u64;
            self.charge(served.queue, worth.saturating_sub(served.service));
        }
        let service = self.served.take().map_or(0, |served| served.service);
        let (least, most) = (self.max_budget / 32, self.max_budget);
        let queue = &mut self.queues[served.queue];
        queue.budget = match reason {
            _ if !queue.flow.sync => most,
            Reason::TooIdle if queue.flow.in_flight > 0 => budget * 2,
            Reason::TooIdle => budget.saturating_sub(4 * least),
            Reason::Timeout => budget * 2,
            Reason::Exhausted => budget * 4,
            Reason::NoMore => service,
            Reason::Preempted => budget,
        }
        .clamp(least.max(1), most);
        queue.finish = queue.start + Bfq::stretch(queue, service);
        queue.active = false;
        if !queue.flow.run.is_empty() {
            self.activate(served.queue);
        }
    }

    /// The queue to serve next, of the first class with requests, or of the idle class if that is owed a turn: of the queues that an ideal
    /// disk would have begun, the one that it would finish first.
    fn next_queue(&mut self, is_owed: bool) -> Option<usize> {
        for class in is_owed.then_some(IDLE).into_iter().chain(0..CLASSES) {
            let active = || self.queues.iter().filter(|queue| queue.active && queue.class == class);
            let Some(earliest) = active().map(|queue| queue.start).min() else { continue };
            self.virtual_time[class] = self.virtual_time[class].max(earliest);
            let now = self.virtual_time[class];
            let ready = self
                .queues
                .iter()
                .enumerate()
                .filter(|(_, queue)| queue.active && queue.class == class && queue.start <= now);
            return ready.min_by_key(|(place, queue)| (queue.finish, *place)).map(|(place, _)| place);
        }
        None
    }

    fn select(&mut self, now: Instant, pool: &Pool) -> Option<usize> {
        loop {
            let Some(served) = self.served else {
                let is_owed = self.idle_turn + Bfq::IDLE_TURN < now;
                if is_owed {
                    self.idle_turn = now;
                }
                let queue = self.next_queue(is_owed)?;
                let service = std::mem::take(&mut self.queues[queue].injected);
                let is_owed = is_owed && self.queues[queue].class == IDLE;
                self.served =
                    Some(Served { queue, since: now, service, idle: None, checked: false, is_owed });
                continue;
            };
            let queue = &self.queues[served.queue];
            let others = self.is_waiting(served.queue);
            let higher = || self.queues.iter().any(|other| other.active && other.class < queue.class);
            let may_preempt = queue.class > 0 && !(served.is_owed && served.service == 0);
            let is_over = others && now >= served.since + self.timeout;
            if !is_over
                && let Some(place) = self.queue_for_idle_arm(served.queue, pool)
                && place != served.queue
            {
                return Some(place);
            }
            let next = self.shared.nearest(&queue.flow, pool);
            let reason = match next {
                _ if may_preempt && higher() => Some(Reason::Preempted),
                // A queue of the idle class sends one request at a time while others wait.
                Some(_) if queue.class == IDLE && others && served.service > 0 => Some(Reason::Exhausted),
                // Not while it is dry for a moment: it would lose its place among those that take part.
                Some(_) if is_over => Some(Reason::Timeout),
                Some(id) => {
                    let blocks = self.blocks(pool.get(id));
                    let left = queue.budget.saturating_sub(served.service);
                    (blocks > left && served.service > 0).then_some(Reason::Exhausted)
                }
                None if served.idle.is_some_and(|until| now < until) => return None,
                None if served.idle.is_some() => Some(Reason::TooIdle),
                None if queue.flow.in_flight > 0 && self.idles(served.queue) => return None,
                None => Some(Reason::NoMore),
            };
            match reason {
                Some(reason) => self.expire(now, reason),
                None => return Some(served.queue),
            }
        }
    }

    /// Whether the disk idles for a queue: for none of the idle class, which would take time from the others; but for each process while
    /// another class has requests, which would fill the disk's queue while the process makes its next one (`multiple_classes_busy`).
    fn idles(&self, place: usize) -> bool {
        let queue = &self.queues[place];
        let is_mixed = || self.queues.iter().any(|other| other.active && other.class != queue.class);
        let may = queue.class != IDLE && queue.flow.sync && self.shared.slice_idle > Nanos::ZERO;
        may && (self.shared.idles(&queue.flow) || is_mixed())
    }

    fn blocks(&self, entry: &Entry) -> u64 {
        let factor = if entry.sync { 1 } else { Bfq::ASYNC_CHARGE };
        u64::from(entry.request.sectors) * factor
    }

    fn pick(&mut self, place: usize, now: Instant, pool: &Pool) -> Option<u32> {
        let queue = &self.queues[place].flow;
        let Some(served) = self.served.as_mut().filter(|served| served.queue == place) else {
            return self.shared.nearest(queue, pool);
        };
        let unchecked = !std::mem::replace(&mut served.checked, true);
        served.idle = None;
        let expire = self.fifo_expire[usize::from(!queue.sync)];
        let expired = queue.run.expired(now, expire, pool).filter(|_| unchecked);
        expired.or_else(|| self.shared.nearest(queue, pool))
    }
}

impl Scheduler for Bfq {
    fn add(&mut self, now: Instant, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        let place = self.queue_of(entry);
        self.shared.note_request(&mut self.queues[place].flow, now, id, entry);
        self.activate(place);
    }

    fn change(&mut self, id: u32, before: &Entry, pool: &Pool) {
        let place = self.queue_of(before);
        self.queues[place].flow.run.change(id, before, pool.get(id));
    }

    fn remove(&mut self, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        let place = self.queue_of(entry);
        let served = self.served.is_some_and(|served| served.queue == place);
        let queue = &mut self.queues[place];
        queue.flow.run.remove(id, entry);
        queue.active = served || !queue.flow.run.is_empty();
    }

    fn dispatch(&mut self, now: Instant, pool: &Pool) -> Option<u32> {
        let place = self.select(now, pool)?;
        let id = self.pick(place, now, pool)?;
        let entry = pool.get(id);
        self.charge(place, self.blocks(entry));
        self.shared.send(&mut self.queues[place].flow, id, entry);
        self.arms.sent(self.queues[place].arm);
        if self.served.is_none_or(|served| served.queue != place) {
            self.deactivate_dry(place);
        }
        Some(id)
    }

    fn completed(&mut self, now: Instant, id: u32, pool: &Pool) {
        let place = self.queue_of(pool.get(id));
        self.arms.ended(self.queues[place].arm);
        self.shared.end(&mut self.queues[place].flow, now);
        let is_dry = self.queues[place].flow.is_dry();
        let idle = (is_dry && self.idles(place)).then_some(now + self.shared.slice_idle);
        if let Some(served) = self.served.as_mut().filter(|served| served.queue == place) {
            served.idle = idle;
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.served.and_then(|served| served.idle)
    }

    fn may_merge(&self, entry: &Entry, ask: &ElevatorRequest) -> bool {
        fair::may_merge(entry, ask) && self.arms.arm_of(entry.lbn()) == self.arms.arm_of(ask.request.lbn.0)
    }
}
