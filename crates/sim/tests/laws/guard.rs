//! A starvation guard in front of a drive's queue: its bound on overtaking, and its cost in throughput.

use crate::support::*;
use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_policy::Guard;
use headstack_sim::Tag;
use rand::RngExt;
use std::collections::VecDeque;

const DEPTH: usize = 32;

/// The results of a closed load of which nine in ten requests are in the first tenth of the disk.
struct Outcome {
    /// Requests per second.
    rate: f64,
    /// The longest response, including the wait in front of the guard.
    longest: Nanos,
    worst_overtaken: u32,
    holds: u64,
}

fn play(rig: &Rig, order: &str, mut guard: Guard, requests: usize) -> Outcome {
    let (mut device, mut random) = (rig.queued(DEPTH as u32, order), seeded(71));
    let (mut held, mut arrived): (VecDeque<Instant>, Vec<Instant>) =
        (VecDeque::new(), vec![Instant::ZERO; DEPTH]);
    let (mut now, mut longest, mut done) = (Instant::ZERO, Nanos::ZERO, 0);
    held.extend([Instant::ZERO; DEPTH]);
    while done < requests {
        while !held.is_empty() && guard.may_issue(now) {
            let region = if random.random_bool(0.9) { rig.sectors() / 10 } else { rig.sectors() };
            let request = Request::read(Lbn(random.random_range(0..region)), 1);
            let Tag(tag) = device.submit(now, request).expect("as many wait as there are places");
            arrived[tag as usize] = held.pop_front().expect("one was seen to wait");
            guard.issued(now, tag);
        }
        let completion = next(&mut device);
        now = completion.completed;
        let Tag(tag) = completion.tag;
        guard.completed(now, tag);
        longest = longest.max(now - arrived[tag as usize]);
        held.push_back(now);
        done += 1;
    }
    let rate = requests as f64 / now.as_secs();
    Outcome { rate, longest, worst_overtaken: guard.worst_overtaken(), holds: guard.holds() }
}

#[test]
fn overtaking_stays_within_threshold_plus_queue_depth() {
    for rig in small().iter().map(Rig::plain) {
        for (order, threshold) in [("sptf", 20), ("sstf", 20), ("sptf", 100), ("look", 60), ("fcfs", 0)] {
            let outcome = play(&rig, order, Guard::counting(threshold), 4000);
            let most = threshold + DEPTH as u32;
            assert!(outcome.worst_overtaken <= most, "{} {order}: {}", rig.name(), outcome.worst_overtaken);
            assert_eq!(outcome.holds > 0, order != "fcfs", "{} {order}", rig.name());
        }
    }
}

#[test]
fn adaptive_guard_shortens_longest_response_within_its_cost() {
    let (mut logs, mut judged) = (0.0, 0);
    for rig in all_plain() {
        for order in ["sptf", "sstf"] {
            let requests = 12_000;
            let free = play(&rig, order, Guard::counting(u32::MAX), requests);
            let guarded = play(&rig, order, Guard::adaptive(0.05), requests);
            let name = format!("{} {order}", rig.name());
            assert_eq!(free.holds, 0);
            // The guard may cost 5 %; the rates scatter by another 1 %.
            assert!(guarded.rate > free.rate * 0.94, "{name}: {} of {}", guarded.rate, free.rate);
            assert!(guarded.holds > 0, "{name}");
            let (ours, theirs) = (guarded.longest.as_ms(), free.longest.as_ms());
            assert!(ours < theirs, "{name}: {ours} of {theirs}");
            logs += (ours / theirs).ln();
            judged += 1;
        }
    }
    // The longest of 12,000 responses depends on chance, so the gain is averaged over all drives.
    let mean = (logs / f64::from(judged)).exp();
    assert!(mean < 0.5, "the longest response is {mean} of that without a guard");
}
