//! What the starvation guard before a drive promises, whatever the drive's order.

use crate::support::*;
use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_policy::order;
use headstack_sim::{Completion, Engine};
use headstack_workload::{Issue, Load, Poll};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const DEPTH: u32 = 16;

/// Requests kept outstanding, nine in ten of them in a tenth of the disk, so that an order by place neglects the rest.
struct Lopsided {
    random: Pcg64Mcg,
    left: u64,
    out: u32,
}

impl Lopsided {
    fn new(requests: u64) -> Lopsided {
        Lopsided { random: Pcg64Mcg::seed_from_u64(3), left: requests, out: 0 }
    }
}

impl Load for Lopsided {
    fn poll(&mut self, _now: Instant) -> Poll {
        if self.left == 0 {
            return Poll::Done;
        }
        if self.out == 2 * DEPTH {
            return Poll::Waiting;
        }
        (self.left, self.out) = (self.left - 1, self.out + 1);
        let region = if self.random.random_bool(0.9) { 1_700_000 } else { 17_000_000 };
        Poll::Issue(Issue::new(0, Request::read(Lbn(self.random.random_range(0..region)), 8), self.left))
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {
        self.out -= 1;
    }
}

fn play(order: &str, queue: &str, requests: u64) -> (Seen, u64, u32) {
    let device = drive_that_orders(DEPTH, order);
    let mut engine = Engine::with_host(vec![device], &host(queue)).unwrap_or_else(|error| panic!("{error}"));
    let mut seen = Seen::default();
    engine.run_observed(&mut Lopsided::new(requests), &mut seen);
    assert_eq!(seen.finished.len() as u64, requests, "{order}: each comes back");
    let (holds, worst) = engine.guard(0).map_or((0, 0), |guard| (guard.holds(), guard.worst_overtaken()));
    (seen, holds, worst)
}

/// The most commands that were submitted after one and completed before it, counted from the completions, not by the guard.
fn overtaken(commands: &[Completion]) -> u32 {
    let passes = |one: &Completion, other: &Completion| {
        other.submitted > one.submitted && other.completed < one.completed
    };
    let count = |one: &Completion| commands.iter().filter(|other| passes(one, other)).count();
    commands.iter().map(count).max().unwrap_or(0) as u32
}

fn longest(seen: &Seen) -> Nanos {
    seen.finished.iter().map(|one| one.completion.response()).max().expect("some came back")
}

#[test]
fn guard_bounds_overtaking_under_every_order() {
    for entry in order::all() {
        for threshold in [0, 24] {
            let queue = format!("queue = {{ guard = \"counting\", guard_threshold = {threshold} }}");
            let (seen, holds, worst) = play(entry.name, &queue, 700);
            let name = format!("{} held at {threshold}", entry.name);
            assert!(worst <= threshold + DEPTH, "{name}: overtaken {worst} times");
            assert!(overtaken(&seen.commands) <= worst, "{name}: more often than the guard counted");
            assert_eq!(holds > 0, worst > threshold, "{name}");
        }
    }
}

#[test]
fn unguarded_sptf_exceeds_the_overtaking_bound() {
    let (seen, ..) = play("sptf", "", 2000);
    assert!(overtaken(&seen.commands) > 3 * (24 + DEPTH));
}

#[test]
fn guard_that_never_holds_changes_no_command() {
    for host_order in ["", ", order = \"c-look\""] {
        let free = play("sptf", &format!("queue = {{ depth = 8{host_order} }}"), 1000).0;
        let queue =
            format!("queue = {{ depth = 8, guard = \"counting\", guard_threshold = 1000000{host_order} }}");
        let (watched, holds, worst) = play("sptf", &queue, 1000);
        assert_eq!(watched.commands, free.commands);
        assert_eq!((holds, worst), (0, overtaken(&free.commands)));
    }
}

#[test]
fn guard_shortens_longest_response_within_its_stated_cost() {
    let (free, ..) = play("sptf", "", 12_000);
    for (guard, least_rate) in [("\"adaptive\", guard_cost = 0.05", 0.94), ("\"counting\"", 0.85)] {
        let (seen, holds, _) = play("sptf", &format!("queue = {{ guard = {guard} }}"), 12_000);
        let rate = free.end().as_secs() / seen.end().as_secs();
        assert!(holds > 0 && rate > least_rate, "{guard}: {rate} of the throughput");
        let (ours, theirs) = (longest(&seen), longest(&free));
        assert!(ours.0 * 10 < theirs.0 * 8, "{guard}: {ours} where it is {theirs} without");
    }
}
