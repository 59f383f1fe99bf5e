//! Results of queueing theory that hold for any server, tested on simulated drives.

use crate::support::*;
use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_policy::order;
use headstack_workload::{Closed, Distribution, Load, Open, Poll};
use rand::RngExt;

/// A load, and the number of its outstanding requests, integrated over time.
struct Watched<L> {
    load: L,
    outstanding: u64,
    since: Instant,
    /// The integral, in requests × ns.
    area: u128,
}

impl<L> Watched<L> {
    fn new(load: L) -> Watched<L> {
        Watched { load, outstanding: 0, since: Instant::ZERO, area: 0 }
    }

    fn follow(&mut self, now: Instant) {
        self.area += u128::from(self.outstanding) * u128::from((now - self.since).0);
        self.since = now;
    }
}

impl<L: Load> Load for Watched<L> {
    fn poll(&mut self, now: Instant) -> Poll {
        let poll = self.load.poll(now);
        if matches!(poll, Poll::Issue(_)) {
            self.follow(now);
            self.outstanding += 1;
        }
        poll
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.follow(now);
        self.outstanding -= 1;
        self.load.handle_completion(now, id);
    }
}

#[test]
fn depth_one_rate_is_the_inverse_of_mean_response() {
    for rig in all() {
        let mut load = Closed::new(random_blocks(&rig), 1, 500, 41).expect("the load fits");
        let (finished, end) = run(rig.device(), &mut load);
        let responses: u64 = finished.iter().map(|one| one.completion.response().0).sum();
        assert_eq!(responses, end.0, "{}: no think time, no gap", rig.name());
    }
}

#[test]
fn littles_law_holds_in_closed_loads() {
    for rig in all() {
        for (depth, queue) in [(1, 1), (7, 4), (32, 32)] {
            let mut load = Watched::new(Closed::new(random_blocks(&rig), depth, 600, 42).expect("it fits"));
            let (finished, end) = run(rig.queued(queue, "sptf"), &mut load);
            let responses: u128 = finished.iter().map(|one| u128::from(one.completion.response().0)).sum();
            // Little's law, mean outstanding = rate × mean response, with both sides multiplied by the length of the run.
            assert_eq!(load.area, responses, "{} at depth {depth}", rig.name());
            let outstanding = load.area as f64 / end.0 as f64;
            assert!(outstanding <= f64::from(depth) && outstanding > 0.9 * f64::from(depth));
        }
    }
}

#[test]
fn littles_law_holds_in_open_loads() {
    for rig in all() {
        let gaps = Distribution::exponential(Nanos::from_ms(25.0));
        let mut load = Watched::new(Open::new(random_blocks(&rig), &gaps, 1000, 43).expect("it fits"));
        let (finished, _) = run(rig.device(), &mut load);
        let responses: u128 = finished.iter().map(|one| u128::from(one.completion.response().0)).sum();
        assert_eq!(load.area, responses, "{}", rig.name());
    }
}

#[test]
fn open_load_response_matches_pollaczek_khinchine() {
    // Random single blocks in order of arrival are nearly an M/G/1 queue. Service times are not quite independent, because a seek starts where
    // the previous one ended.
    for rig in all_plain() {
        let mut load = Closed::new(random_blocks(&rig), 1, 4000, 44).expect("the load fits");
        let (finished, _) = run(rig.device(), &mut load);
        let services: Vec<f64> = finished.iter().map(|one| one.completion.response().0 as f64).collect();
        let squares: Vec<f64> = services.iter().map(|service| service * service).collect();
        let (service, square) = (mean(&services), mean(&squares));
        let load = 0.6;
        let gap = service / load;
        let expected = service + square / gap / (2.0 * (1.0 - load));
        let mut load =
            Open::new(random_blocks(&rig), &Distribution::exponential(Nanos(gap as u64)), 30_000, 45)
                .expect("it fits");
        let (finished, _) = run(rig.device(), &mut load);
        let responses: Vec<f64> = finished.iter().map(|one| one.completion.response().0 as f64).collect();
        assert_close(rig.name(), mean(&responses) / expected, 1.0, 0.05);
    }
}

#[test]
fn queue_stays_short_below_saturation_and_grows_above_it() {
    for rig in all_plain() {
        let mut load = Closed::new(random_blocks(&rig), 1, 3000, 46).expect("the load fits");
        let (finished, end) = run(rig.device(), &mut load);
        let service = end.0 as f64 / finished.len() as f64;
        let last = |gap: f64| {
            let gaps = Distribution::exponential(Nanos((gap * service) as u64));
            let mut load = Open::new(random_blocks(&rig), &gaps, 6000, 47).expect("it fits");
            let (finished, _) = run(rig.device(), &mut load);
            let tail = &finished[5900..];
            mean(&tail.iter().map(|one| one.completion.response().0 as f64 / service).collect::<Vec<_>>())
        };
        assert!(last(1.25) < 30.0, "{}", rig.name());
        // At this rate, each request waits 0.2 service times longer than the previous one.
        let grown = last(0.8) / (0.2 * 5950.0);
        assert_close(rig.name(), grown, 1.0, 0.15);
    }
}

#[test]
fn fcfs_serves_in_arrival_order() {
    for rig in all_plain() {
        let mut device = rig.queued(32, "fcfs");
        let mut random = seeded(48);
        let requests: Vec<Request> =
            (0..32).map(|_| Request::read(any_lbn(&mut random, &rig, 8), 8)).collect();
        let done = serve_all(&mut device, Instant::ZERO, &requests);
        let served: Vec<Lbn> = done.iter().map(|done| done.request.lbn).collect();
        let submitted: Vec<Lbn> = requests.iter().map(|request| request.lbn).collect();
        assert_eq!(served, submitted, "{}", rig.name());
    }
}

#[test]
fn every_order_keeps_the_arm_busy_while_requests_wait() {
    for rig in all_plain() {
        for entry in order::all() {
            let mut device = rig.queued(64, entry.name);
            let mut random = seeded(49);
            let requests: Vec<Request> =
                (0..64).map(|_| Request::read(any_lbn(&mut random, &rig, 8), 8)).collect();
            let done = serve_all(&mut device, Instant::ZERO, &requests);
            let last = done.iter().map(|done| done.completed).max().expect("there are some");
            // Work is conserved: electronics and bus take no time here, so that the arm is busy for the whole run.
            assert_eq!(device.activity().busy(), last.since_start(), "{}, {}", rig.name(), entry.name);
        }
    }
}

#[test]
fn single_reads_complete_alike_at_any_queue_depth() {
    for rig in all() {
        let mut random = seeded(11);
        // Some reads start where the previous one ended, so that the buffer may hold their blocks, and some arrive during the read-ahead.
        let mut reads = Vec::new();
        for _ in 0..200 {
            let sectors = random.random_range(1..=64);
            let lbn = any_lbn(&mut random, &rig, 4 * sectors);
            reads
                .extend((0..random.random_range(1..4)).map(|part| (part * u64::from(sectors), lbn, sectors)));
        }
        let ends = |depth: u32| {
            let (mut device, mut random, mut at) = (rig.queued(depth, "fcfs"), seeded(12), Instant::ZERO);
            let reads = reads.iter().map(|(ahead, lbn, sectors)| Request::read(*lbn + *ahead, *sectors));
            let end = |read| {
                let served = serve(&mut device, at, read);
                at = served.completed + Nanos(random.random_range(0..3_000_000) * random.random_range(0..=1));
                (served.completed, served.parts, served.cache)
            };
            reads.map(end).collect::<Vec<_>>()
        };
        assert_eq!(ends(1), ends(2), "{}", rig.name());
    }
}
