//! The throughput that a queue's order gains, and that an order chooses the request that it should choose.

use crate::support::*;
use headstack_model::{Instant, Lbn, Request};
use headstack_policy::order::{self, Entry, Knowledge};
use headstack_workload::Closed;
use rand::RngExt;

#[test]
fn throughput_rises_from_fcfs_to_sstf_to_sptf() {
    for rig in all_plain() {
        let rate = |order: &str| closed_rate(rig.queued(32, order), random_blocks(&rig), 32, 4000);
        let (fcfs, sstf, sptf) = (rate("fcfs"), rate("sstf"), rate("sptf"));
        // FCFS uses arrival, SSTF the cylinders, SPTF also the angles. The rates scatter by half a percent.
        assert!(sstf > fcfs * 1.05, "{}: sstf {sstf}, fcfs {fcfs}", rig.name());
        assert!(sptf > sstf * 1.05, "{}: sptf {sptf}, sstf {sstf}", rig.name());
    }
}

#[test]
fn sptf_throughput_rises_with_queue_depth() {
    for rig in all_plain() {
        let rate = |depth| closed_rate(rig.queued(depth, "sptf"), random_blocks(&rig), depth, 4000);
        let rates: Vec<f64> = [1, 4, 16, 64].map(rate).to_vec();
        assert!(rates.windows(2).all(|pair| pair[1] > pair[0] * 1.1), "{}: {rates:?}", rig.name());
    }
}

#[test]
fn fcfs_throughput_is_independent_of_queue_depth() {
    for rig in all_plain() {
        let rate = |depth| closed_rate(rig.queued(depth, "fcfs"), random_blocks(&rig), depth, 2000);
        assert_close(rig.name(), rate(16) / rate(1), 1.0, 1e-3);
    }
}

#[test]
fn sptf_outperforms_every_order_with_less_knowledge() {
    let known = order::all().iter().filter(|entry| entry.knowledge < Knowledge::Position);
    let known: Vec<&Entry> = known.collect();
    for rig in all_plain() {
        let rate = |order: &str| closed_rate(rig.queued(32, order), random_blocks(&rig), 32, 2000);
        let sptf = rate("sptf");
        for entry in &known {
            let other = rate(entry.name);
            assert!(sptf > other, "{}: sptf {sptf}, {} {other}", rig.name(), entry.name);
        }
    }
}

/// Mean (ms) and variance (ms²) of the response times of a closed load of random blocks.
fn responses(rig: &Rig, order: &str, depth: u32) -> (f64, f64) {
    let mut load = Closed::new(random_blocks(rig), depth, 6000, 7).expect("the load fits");
    let (finished, _) = run(rig.queued(depth, order), &mut load);
    let responses: Vec<f64> = finished.iter().map(|one| one.completion.response().as_ms()).collect();
    let center = mean(&responses);
    let squares: f64 = responses.iter().map(|response| (response - center).powi(2)).sum();
    (center, squares / responses.len() as f64)
}

#[test]
fn sweep_orders_have_lower_response_variance_than_sstf() {
    for rig in all_plain() {
        let sstf = responses(&rig, "sstf", 32).1;
        for sweep in ["c-look-cylinder", "look", "fscan", "n-step(16)"] {
            let variance = responses(&rig, sweep, 32).1;
            assert!(variance < sstf, "{}: {sweep} {variance}, sstf {sstf}", rig.name());
        }
    }
}

#[test]
fn fcfs_response_is_queue_depth_times_service() {
    for rig in all_plain() {
        let one = responses(&rig, "fcfs", 1).0;
        for depth in [4, 16] {
            // The first and the last requests of the run find a shorter queue.
            let share = 1.0 - f64::from(depth - 1) / 2.0 / 6000.0;
            let mean = responses(&rig, "fcfs", depth).0 / f64::from(depth) / share;
            assert_close(rig.name(), mean / one, 1.0, 2e-3);
        }
    }
}

#[test]
fn scan_moves_the_arm_farther_than_look() {
    for rig in all_plain() {
        let distance = |order: &str| {
            let (mut device, mut random) = (rig.queued(4, order), seeded(55));
            let mut now = Instant::ZERO;
            for _ in 0..400 {
                while device.outstanding() < 4 {
                    device
                        .submit(now, Request::read(any_lbn(&mut random, &rig, 1), 1))
                        .expect("there is room");
                }
                now = next(&mut device).completed;
            }
            device.activity().seeks.mean() * device.activity().seeks.count() as f64
        };
        for (scan, look) in [("scan", "look"), ("c-scan", "c-look-cylinder")] {
            let (scanned, looked) = (distance(scan), distance(look));
            assert!(scanned > looked * 1.02, "{}: {scan} {scanned}, {look} {looked}", rig.name());
        }
    }
}

/// The positioning time of `request`, served directly after `first`.
fn cost_after(rig: &Rig, first: Request, request: Request) -> u64 {
    let mut device = rig.queued(2, "fcfs");
    positioning(&serve_all(&mut device, Instant::ZERO, &[first, request])[1])
}

#[test]
fn sptf_chooses_the_shortest_positioning() {
    for rig in all_plain() {
        let mut random = seeded(51);
        for _ in 0..30 {
            let mut any = || {
                let lbn = any_lbn(&mut random, &rig, 1);
                if random.random() { Request::read(lbn, 1) } else { Request::write(lbn, 1) }
            };
            let first = any();
            let others: Vec<Request> = (0..12).map(|_| any()).collect();
            let mut device = rig.queued(13, "sptf");
            device.submit(Instant::ZERO, first).expect("the queue is deep enough");
            for other in &others {
                device.submit(Instant::ZERO, *other).expect("the queue is deep enough");
            }
            assert_eq!(next(&mut device).request, first);
            let chosen = next(&mut device);
            // The positioning time of each candidate, measured on a disk on which it is the only candidate.
            let least = others.iter().map(|other| cost_after(&rig, first, *other)).min();
            assert_eq!(Some(positioning(&chosen)), least, "{}", rig.name());
        }
    }
}

#[test]
fn sstf_chooses_the_nearest_cylinder() {
    for rig in all_plain() {
        let mut random = seeded(52);
        for _ in 0..30 {
            let mut any = || any_lbn(&mut random, &rig, 1);
            let (first, others) = (any(), (0..12).map(|_| any()).collect::<Vec<Lbn>>());
            let cylinder = |lbn: Lbn| rig.geometry().locate(lbn).cylinder;
            let mut requests = vec![Request::read(first, 1)];
            requests.extend(others.iter().map(|lbn| Request::read(*lbn, 1)));
            let mut device = rig.queued(13, "sstf");
            let done = serve_all(&mut device, Instant::ZERO, &requests);
            let distance = |lbn: Lbn| cylinder(lbn).abs_diff(cylinder(first));
            let least = others.iter().map(|lbn| distance(*lbn)).min();
            assert_eq!(Some(distance(done[1].request.lbn)), least, "{}", rig.name());
        }
    }
}

#[test]
fn c_look_sweeps_upward_and_restarts_at_the_bottom() {
    for rig in all_plain() {
        let mut random = seeded(53);
        let requests: Vec<Request> =
            (0..64).map(|_| Request::read(any_lbn(&mut random, &rig, 1), 1)).collect();
        let done = serve_all(&mut rig.queued(64, "c-look"), Instant::ZERO, &requests);
        let served: Vec<Lbn> = done.iter().map(|done| done.request.lbn).collect();
        let falls = served.windows(2).filter(|pair| pair[1] < pair[0]).count();
        // The first request is served on arrival. Then one sweep goes to the top, and another begins at the bottom.
        assert!(falls <= 1, "{}: {falls} falls", rig.name());
    }
}

#[test]
fn every_order_serves_all_requests() {
    for rig in all_plain() {
        for entry in order::all() {
            let mut random = seeded(54);
            let mut requests: Vec<Request> =
                (0..100).map(|_| Request::read(any_lbn(&mut random, &rig, 4), 4)).collect();
            let done = serve_all(&mut rig.queued(100, entry.name), Instant::ZERO, &requests);
            let mut served: Vec<u64> = done.iter().map(|done| done.request.lbn.0).collect();
            served.sort_unstable();
            requests.sort_unstable_by_key(|request| request.lbn);
            assert_eq!(served, requests.iter().map(|request| request.lbn.0).collect::<Vec<_>>());
        }
    }
}
