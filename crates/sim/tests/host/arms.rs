//! One queue of the host before a disk with two arms.

use headstack_model::{Instant, Lbn, Nanos};
use headstack_sim::rig::shipped;
use headstack_sim::{Completion, Rig};
use headstack_workload::{Closed, Load, Member, Mix, Pattern, Region, Shape};

const RUN: Instant = Instant(4_000_000_000);

/// The shipped disk with two arms and one queue of BFQ, with these further keys.
fn whole_disk(keys: &[(&str, &str)]) -> Rig {
    let mut rig = shipped::load("exos-2x18-sata").expect("it ships");
    let queue = [("host.queue.elevator", "bfq"), ("host.queue.whole_disk", "true")];
    for (key, value) in queue.iter().chain(keys) {
        rig.set(key, value).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
    rig
}

/// Completions of two processes with a random read outstanding each, in these hundredths of the disk. BFQ then waits for the next
/// request of the process that it serves.
fn completions(rig: &Rig, hundredths: [u64; 2]) -> Vec<Completion> {
    let sectors = rig.volumes()[0].sectors;
    let member = |(part, seed): (u64, u64)| {
        let first = Lbn(sectors / 100 * part / 8 * 8);
        let region = Region { first, sectors: sectors / 100 / 8 * 8 };
        let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 1.0 };
        let load: Box<dyn Load> = Box::new(Closed::new(shape, 1, u64::MAX, seed).expect("it fits"));
        Member { load, device: 0, sources: 1 }
    };
    let members = hundredths.into_iter().zip(1..).map(member).collect();
    let mut completions = Vec::new();
    let mut load = Mix::new(members, u64::MAX, RUN).expect("the members are right");
    let mut engine = rig.build(1).expect("the rig is right");
    engine.run(&mut load, &mut |finished| completions.push(finished.completion));
    completions
}

#[test]
fn queues_for_each_arm_keep_both_arms_busy() {
    let with = completions(&whole_disk(&[]), [10, 60]);
    let without = completions(&whole_disk(&[("host.queue.bfq.actuator_load_threshold", "0")]), [10, 60]);
    // A process has half of the time without, and an arm of its own with them.
    assert!(with.len() as f64 > 1.5 * without.len() as f64, "{} and {}", with.len(), without.len());
    for half in [0..50, 50..100] {
        let sectors = whole_disk(&[]).volumes()[0].sectors / 100;
        let within = |list: &[Completion]| {
            list.iter().filter(|one| half.contains(&(one.request.lbn.0 / sectors))).count()
        };
        assert!(within(&with) as f64 > 1.3 * within(&without) as f64, "arm {half:?}");
    }
}

#[test]
fn processes_at_one_arm_are_served_as_without_queues_for_each_arm() {
    // Both in the lower half: the other arm has nothing to do.
    let [with, without] = ["4", "0"].map(|threshold| {
        completions(&whole_disk(&[("host.queue.bfq.actuator_load_threshold", threshold)]), [10, 30])
    });
    assert_eq!(with, without);
}

#[test]
fn requests_over_the_border_of_the_arms_complete() {
    let rig = whole_disk(&[]);
    let middle = rig.volumes()[0].sectors / 2;
    let region = Region { first: Lbn(middle - 1024), sectors: 2048 };
    let shape = Shape { region, pattern: Pattern::Sequential, sectors: 24, alignment: 8, read_share: 1.0 };
    let mut load = Closed::new(shape, 16, 300, 1).expect("it fits");
    let mut count = 0;
    rig.build(1).expect("the rig is right").run(&mut load, &mut |finished| {
        assert!(finished.completion.response() > Nanos::ZERO);
        count += 1;
    });
    assert_eq!(count, 300);
}

#[test]
fn one_queue_for_a_whole_disk_needs_an_elevator_and_a_concatenation() {
    let mut rig = shipped::load("exos-2x18-sata").expect("it ships");
    let error = rig.set("host.queue.whole_disk", "true").expect_err("no elevator is named").to_string();
    assert!(error.contains("host.queue.whole_disk: needs an elevator"), "{error}");
    let mut rig = shipped::load("single").expect("it ships");
    rig.set("host.queue.elevator", "bfq").expect("it is one");
    rig.set("host.queue.whole_disk", "true").expect("the key is known");
    let error = rig.build(1).expect_err("a drive has one arm").to_string();
    assert!(error.contains("no disk with several arms"), "{error}");
}
