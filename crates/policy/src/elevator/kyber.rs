//! kyber: alternate batches of reads and writes, each kind in order of arrival; it limits the number of requests of one kind at the device
//! while the other kind exceeds its target latency.
//!
//! *Source:* Linux `block/kyber-iosched.c` since 4.20 (the behaviour, names and defaults). Not modelled: the share of the queue's requests that
//! writes for which no process waits may take (three quarters), and its queue for each processor.

use headstack_model::{Instant, Nanos, Op};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pool::{Entry, Pool};
use super::sorted::Sorted;
use super::{Listed, Scheduler, Tuning};

pub(super) const LISTED: Listed = Listed {
    name: "kyber",
    alias: None,
    summary: "Reads and writes in turns, each in order of arrival; limits one kind while the other is late",
    build: |tuning: &Tuning| Box::new(Kyber::new(&tuning.kyber)),
};

/// `kyber`: parameters of Linux's elevator for target latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KyberSpec {
    /// Target latency of reads.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub read_lat_nsec: u64,
    /// Target latency of writes.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub write_lat_nsec: u64,
}

impl Default for KyberSpec {
    fn default() -> KyberSpec {
        KyberSpec { read_lat_nsec: 2_000_000, write_lat_nsec: 10_000_000 }
    }
}

/// Reads, writes.
const DOMAINS: usize = 2;
/// Requests at the device, at most (`kyber_depth`).
const DEPTH: [u32; DOMAINS] = [256, 128];
/// Requests in a batch (`kyber_batch_size`).
const BATCH: [u32; DOMAINS] = [16, 8];
/// Buckets of a histogram; the first half are within the target (`KYBER_LATENCY_BUCKETS`, `KYBER_GOOD_BUCKETS`).
const BUCKETS: usize = 8;
const GOOD_BUCKETS: usize = 4;
/// Time from the first completion to the adjustment of the depths.
const WINDOW: Nanos = Nanos(100_000_000);
/// A percentile is computed from this many samples, or after [`SAMPLES_TIMEOUT`].
const ENOUGH_SAMPLES: u32 = 500;
const SAMPLES_TIMEOUT: Nanos = Nanos::from_secs(1);

/// Latencies as shares of their target, in quarters of it; the last bucket has all greater ones.
#[derive(Debug, Default)]
struct LatencyBuckets {
    counts: [u32; BUCKETS],
    /// When a percentile is computed even from few samples.
    timeout: Option<Instant>,
}

impl LatencyBuckets {
    fn add(&mut self, latency: Nanos, target: Nanos) {
        let quarter = (target.0 / GOOD_BUCKETS as u64).max(1);
        let bucket = latency.0.saturating_sub(1) / quarter;
        self.counts[bucket.min(BUCKETS as u64 - 1) as usize] += 1;
    }

    /// The bucket with this percentile, after which the samples are dropped. None, and the samples are kept, while they are too few.
    fn percentile(&mut self, now: Instant, percent: u32) -> Option<usize> {
        let samples: u32 = self.counts.iter().sum();
        if samples == 0 {
            return None;
        }
        let timeout = *self.timeout.get_or_insert(now + SAMPLES_TIMEOUT);
        if samples < ENOUGH_SAMPLES && now < timeout {
            return None;
        }
        let mut left = (samples * percent).div_ceil(100);
        let holds = |count: &u32| {
            let is_here = *count >= left;
            left = left.saturating_sub(*count);
            is_here
        };
        let bucket = self.counts.iter().position(holds).unwrap_or(BUCKETS - 1);
        *self = LatencyBuckets::default();
        Some(bucket)
    }
}

/// The requests of one kind.
#[derive(Debug)]
struct Domain {
    fifo: Sorted,
    target: Nanos,
    most_in_flight: u32,
    in_flight: u32,
    /// From arrival to completion, and from dispatch to completion.
    whole: LatencyBuckets,
    device: LatencyBuckets,
    /// The 99th percentile of whole latencies, not used yet.
    p99: Option<usize>,
}

impl Domain {
    fn new(domain: usize, target: Nanos) -> Domain {
        Domain {
            fifo: Sorted::default(),
            target,
            most_in_flight: DEPTH[domain],
            in_flight: 0,
            whole: LatencyBuckets::default(),
            device: LatencyBuckets::default(),
            p99: None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Kyber {
    domains: [Domain; DOMAINS],
    current: usize,
    batched: u32,
    /// When the depths are adjusted next.
    window_end: Option<Instant>,
    /// When each request was dispatched, by its number.
    dispatched: Vec<Instant>,
}

fn domain_of(entry: &Entry) -> usize {
    usize::from(entry.request.op != Op::Read)
}

impl Kyber {
    fn new(spec: &KyberSpec) -> Kyber {
        let targets = [spec.read_lat_nsec, spec.write_lat_nsec].map(Nanos);
        Kyber {
            domains: [0, 1].map(|domain| Domain::new(domain, targets[domain])),
            current: 0,
            batched: 0,
            window_end: None,
            dispatched: Vec::new(),
        }
    }

    /// Adjusts the depths if the window has ended. The kernel's timer does it at that moment; until the next dispatch or completion nothing
    /// depends on it.
    fn end_window(&mut self, now: Instant) {
        let Some(end) = self.window_end.filter(|end| *end <= now) else { return };
        self.window_end = None;
        let mut is_congested = false;
        for domain in &mut self.domains {
            is_congested |= domain.device.percentile(end, 90).is_some_and(|bucket| bucket >= GOOD_BUCKETS);
        }
        for (domain, depth) in self.domains.iter_mut().zip(DEPTH) {
            domain.adjust(end, is_congested, depth);
        }
    }

    fn dispatch_from(&mut self, domain: usize) -> Option<u32> {
        let of_kind = &self.domains[domain];
        if of_kind.in_flight >= of_kind.most_in_flight {
            return None;
        }
        of_kind.fifo.first()
    }

    fn next(&mut self) -> Option<u32> {
        if self.batched < BATCH[self.current]
            && let Some(id) = self.dispatch_from(self.current)
        {
            return Some(id);
        }
        self.batched = 0;
        for _ in 0..DOMAINS {
            self.current = (self.current + 1) % DOMAINS;
            if let Some(id) = self.dispatch_from(self.current) {
                return Some(id);
            }
        }
        None
    }
}

impl Domain {
    /// Scales the depth by the 99th percentile of latencies over their target: up where it is late, down where it is early and the device
    /// is congested.
    fn adjust(&mut self, now: Instant, is_congested: bool, depth: u32) {
        let mut p99 = self.whole.percentile(now, 99);
        if is_congested {
            // The kinds seldom have enough samples in the same window, so the last percentile is used, once.
            p99 = p99.or(self.p99);
            self.p99 = None;
        } else if p99.is_some() {
            self.p99 = p99;
        }
        let Some(p99) = p99.filter(|p99| is_congested || *p99 >= GOOD_BUCKETS) else { return };
        let scaled = self.most_in_flight * (p99 as u32 + 1) / GOOD_BUCKETS as u32;
        self.most_in_flight = scaled.clamp(1, depth);
    }
}

impl Scheduler for Kyber {
    fn add(&mut self, _now: Instant, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        self.domains[domain_of(entry)].fifo.insert(entry.turn, id);
    }

    fn change(&mut self, id: u32, before: &Entry, pool: &Pool) {
        let fifo = &mut self.domains[domain_of(before)].fifo;
        fifo.remove(before.turn, id);
        fifo.insert(pool.get(id).turn, id);
    }

    fn remove(&mut self, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        self.domains[domain_of(entry)].fifo.remove(entry.turn, id);
    }

    fn dispatch(&mut self, now: Instant, pool: &Pool) -> Option<u32> {
        self.end_window(now);
        let id = self.next()?;
        self.batched += 1;
        self.remove(id, pool);
        self.domains[domain_of(pool.get(id))].in_flight += 1;
        let index = id as usize;
        if self.dispatched.len() <= index {
            self.dispatched.resize(index + 1, Instant::ZERO);
        }
        self.dispatched[index] = now;
        Some(id)
    }

    fn completed(&mut self, now: Instant, id: u32, pool: &Pool) {
        self.end_window(now);
        let entry = pool.get(id);
        let domain = &mut self.domains[domain_of(entry)];
        domain.in_flight -= 1;
        domain.whole.add(now - entry.added, domain.target);
        domain.device.add(now - self.dispatched[id as usize], domain.target);
        self.window_end.get_or_insert(now + WINDOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elevator::{Dispatch, Elevator, ElevatorRequest, MergeRule};
    use headstack_model::{Lbn, Request};

    fn kyber() -> Elevator {
        Elevator::by_name("kyber", &Tuning::default(), MergeRule::NONE).expect("it is in the list")
    }

    fn elevator_request(op: Op, number: u64) -> ElevatorRequest {
        let request = Request { op, lbn: Lbn(number * 1000), sectors: 8, fua: false };
        ElevatorRequest { request, source: 0, urgent: false, idle: false, limit: 0, sync: true }
    }

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Nanos::from_ms(ms as f64)
    }

    /// Requests that may be at the device: those that go while none completes.
    fn depth(elevator: &mut Elevator, now: Instant, op: Op) -> usize {
        for number in 0..300 {
            elevator.add(now, elevator_request(op, 10_000 + number));
        }
        let went: Vec<Dispatch> = std::iter::from_fn(|| elevator.dispatch(now)).collect();
        assert!(went.iter().all(|dispatch| dispatch.request.op == op));
        went.len()
    }

    #[test]
    fn batches_of_sixteen_reads_and_eight_writes_take_turns_in_order_of_arrival() {
        let mut elevator = kyber();
        for number in (0..40).rev() {
            elevator.add(Instant::ZERO, elevator_request(Op::Write, number));
            elevator.add(Instant::ZERO, elevator_request(Op::Read, number));
        }
        let went: Vec<Request> = std::iter::from_fn(|| elevator.dispatch(Instant::ZERO))
            .map(|dispatch| dispatch.request)
            .collect();
        let runs: Vec<(Op, usize)> =
            went.chunk_by(|one, next| one.op == next.op).map(|run| (run[0].op, run.len())).collect();
        let (read, write) = (Op::Read, Op::Write);
        assert_eq!(runs, [(read, 16), (write, 8), (read, 16), (write, 8), (read, 8), (write, 24)]);
        let reads: Vec<u64> =
            went.iter().filter(|request| request.op == Op::Read).map(|request| request.lbn.0).collect();
        assert!(reads.is_sorted_by(|one, next| one > next), "{reads:?}");
    }

    #[test]
    fn depths_are_256_reads_and_128_writes_while_nothing_is_late() {
        assert_eq!(depth(&mut kyber(), Instant::ZERO, Op::Read), 256);
        assert_eq!(depth(&mut kyber(), Instant::ZERO, Op::Write), 128);
    }

    /// Serves one read and one write at a time, with these latencies in ms, until `until_ms`.
    fn serve(elevator: &mut Elevator, read_ms: u64, write_ms: u64, until_ms: u64) {
        let mut now = 0;
        while now < until_ms {
            for (op, ms) in [(Op::Read, read_ms), (Op::Write, write_ms)] {
                elevator.add(at_ms(now), elevator_request(op, now));
                let went = elevator.dispatch(at_ms(now)).expect("one waits");
                now += ms;
                elevator.completed(at_ms(now), went.entry);
            }
        }
    }

    #[test]
    fn late_reads_limit_early_writes_and_never_themselves() {
        let mut elevator = kyber();
        // Reads take five targets, writes a fifth of theirs: the first bucket, so that each window leaves a quarter.
        serve(&mut elevator, 10, 2, 1200);
        assert_eq!(depth(&mut elevator, at_ms(1400), Op::Write), 128 / 4);
        let mut elevator = kyber();
        serve(&mut elevator, 10, 2, 1200);
        assert_eq!(depth(&mut elevator, at_ms(1400), Op::Read), 256);
    }

    #[test]
    fn depths_stay_where_both_kinds_meet_their_targets() {
        let mut elevator = kyber();
        serve(&mut elevator, 1, 5, 3000);
        assert_eq!(depth(&mut elevator, at_ms(3200), Op::Write), 128);
    }

    #[test]
    fn limited_writes_get_their_depth_back_once_they_are_late() {
        let mut elevator = kyber();
        serve(&mut elevator, 10, 2, 3000);
        let limited = 128 / 4;
        let mut now = 3200;
        // Writes alone, each twice as late as its target: the depth doubles with each second of samples.
        for _ in 0..300 {
            elevator.add(at_ms(now), elevator_request(Op::Write, now));
            let went = elevator.dispatch(at_ms(now)).expect("one waits");
            now += 20;
            elevator.completed(at_ms(now), went.entry);
        }
        assert!(depth(&mut elevator, at_ms(now + 200), Op::Write) > limited);
    }
}
