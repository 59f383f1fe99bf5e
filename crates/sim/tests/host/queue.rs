//! The host's queue: depth, order, merging, splitting, plugging.

use crate::support::*;
use headstack_model::{Instant, Lbn, Request};
use headstack_policy::{elevator, order};
use headstack_workload::{Closed, Issue, Load, Pattern, Region, Shape};
use proptest::prelude::*;
use proptest::sample::select;

fn random(sectors: u32, depth: u32, requests: u64, read_share: f64) -> Closed {
    let region = Region { first: Lbn(0), sectors: 4_000_000 };
    let shape = Shape { region, pattern: Pattern::Random, sectors, alignment: 1, read_share };
    Closed::new(shape, depth, requests, 5).expect("the load fits")
}

#[test]
fn noop_without_merging_equals_fcfs() {
    let noop = host("queue = { elevator = \"noop\", merge = \"none\", nr_requests = 7 }");
    let plain = run(vec![drive(1)], &host(""), &mut random(8, 20, 300, 0.5));
    let found = run(vec![drive(1)], &noop, &mut random(8, 20, 300, 0.5));
    assert_eq!(found.finished, plain.finished);
    let fcfs = run(vec![drive(1)], &host("queue.order = \"fcfs\""), &mut random(8, 20, 300, 0.5));
    assert_eq!(fcfs.finished, plain.finished);
}

#[test]
fn device_holds_at_most_the_configured_queue_depth() {
    for depth in [1usize, 3, 16] {
        let spec = host(&format!("queue.depth = {depth}"));
        assert_eq!(run(vec![drive(16)], &spec, &mut random(8, 40, 500, 0.5)).depth(), depth);
        let spec = host(&format!("queue = {{ depth = {depth}, order = \"c-look\" }}"));
        assert_eq!(run(vec![drive(16)], &spec, &mut random(8, 40, 500, 0.5)).depth(), depth);
    }
}

#[test]
fn host_c_look_sweeps_upward_and_outperforms_fcfs() {
    let spec = host("queue.order = \"c-look\"");
    let lbns = [900_000, 100_000, 500_000, 1_300_000, 300_000];
    let seen = run(vec![drive(1)], &spec, &mut Script::plugged(&reads(lbns, 8)));
    let served: Vec<u64> = seen.commands.iter().map(|command| command.request.lbn.0).collect();
    // All five come at one moment, before the first is sent.
    assert_eq!(served, [100_000, 300_000, 500_000, 900_000, 1_300_000]);
    let (arrival, sweep) = (
        run(vec![drive(1)], &host(""), &mut random(8, 20, 1000, 1.0)),
        run(vec![drive(1)], &spec, &mut random(8, 20, 1000, 1.0)),
    );
    assert!(sweep.end().0 * 10 < arrival.end().0 * 9, "{} against {}", sweep.end(), arrival.end());
}

#[test]
fn urgent_requests_precede_others_each_class_in_order() {
    let issues = [(900_000, false), (100_000, true), (500_000, false), (1_300_000, true), (300_000, false)];
    let issue = |(id, (lbn, urgent)): (usize, (u64, bool))| {
        let issue = Issue::new(0, Request::read(Lbn(lbn), 8), id as u64);
        (Instant::ZERO, Issue { urgent, direct: false, ..issue })
    };
    let served = |text: &str| -> Vec<u64> {
        let mut load = Script::new(issues.into_iter().enumerate().map(issue).collect());
        let seen = run(vec![drive(1)], &host(text), &mut load);
        seen.commands.iter().map(|command| command.request.lbn.0 / 100_000).collect()
    };
    // The other requests are ordered from the block at which the last urgent one ended.
    assert_eq!(served("queue = { order = \"sstf-lbn\", urgent_first = true }"), [1, 13, 9, 5, 3]);
    assert_eq!(served("queue = { order = \"c-look\", urgent_first = true }"), [1, 13, 3, 5, 9]);
    assert_eq!(served("queue = { order = \"c-look\" }"), [1, 3, 5, 9, 13]);
}

#[test]
fn adjacent_small_writes_merge_into_few_commands() {
    let upward = writes((0..64).map(|index| 1_000_000 + 8 * index), 8);
    let scattered = writes((0..64).map(|index| 1_000_000 + 8 * (index * 37 % 64)), 8);
    let commands_of = |requests: &[Request], text: &str| {
        let seen = run(vec![drive(4)], &host(text), &mut Script::plugged(requests));
        seen.judge(
            &requests.iter().enumerate().map(|(id, r)| Issue::new(0, *r, id as u64)).collect::<Vec<_>>(),
        );
        assert_eq!(seen.sectors(), 512);
        seen.commands.len()
    };
    let commands = |text: &str| {
        let found = commands_of(&upward, text);
        // Gaps that close make one of two, unless what is on their two sides is long already.
        assert!(text.contains("max") || commands_of(&scattered, text) == found);
        found
    };
    assert_eq!(commands(""), 64);
    assert_eq!(commands("queue.elevator = \"noop\""), 1);
    assert_eq!(commands("queue = { elevator = \"noop\", max_sectors_kb = 64 }"), 4);
    assert_eq!(commands("queue = { order = \"c-look\", merge = \"adjacent\" }"), 1);
    assert_eq!(commands("queue = { elevator = \"noop\", merge = \"none\" }"), 64);
}

#[test]
fn direct_requests_reach_a_drive_with_room_unmerged() {
    let requests = writes((0..4).map(|index| 1_000_000 + 8 * index), 8);
    let commands = |depth: u32| {
        let spec = host("queue.elevator = \"mq-deadline\"");
        run(vec![drive(depth)], &spec, &mut Script::at_once(&requests)).commands.len()
    };
    assert_eq!(commands(4), 4);
    // With room for one, the other three wait and become one.
    assert_eq!(commands(1), 2);
}

#[test]
fn overlapping_reads_share_one_command() {
    let requests = [
        Request::read(Lbn(1000), 8),
        Request::read(Lbn(1000), 8),
        Request::read(Lbn(1004), 8),
        Request::read(Lbn(996), 6),
        Request::write(Lbn(1000), 8),
    ];
    let commands = |merge: &str| {
        let spec = host(&format!("queue = {{ elevator = \"noop\", merge = \"{merge}\" }}"));
        let seen = run(vec![drive(1)], &spec, &mut Script::plugged(&requests));
        assert_eq!(seen.finished.len(), requests.len());
        (seen.commands.len(), seen.sectors())
    };
    assert_eq!(commands("adjacent"), (5, 38));
    assert_eq!(commands("overlapping"), (2, 16 + 8));
}

#[test]
fn split_request_completes_with_its_last_part() {
    let spec = host("queue.max_sectors_kb = 32");
    let requests = [Request::read(Lbn(5000), 200)];
    let seen = run(vec![drive(8)], &spec, &mut Script::at_once(&requests));
    let sizes: Vec<u32> = seen.commands.iter().map(|command| command.request.sectors).collect();
    assert_eq!(sizes, [64, 64, 64, 8]);
    let last = seen.commands.iter().map(|command| command.completed).max().expect("there are four");
    assert_eq!(seen.finished[0].completion.completed, last);
    seen.judge(&[Issue::new(0, requests[0], 0)]);
}

#[test]
fn plug_gathers_requests_within_its_delay() {
    let issue = |(index, ms): (usize, f64)| {
        (Instant::from_ms(ms), Issue::new(0, Request::write(Lbn(8000 + 8 * index as u64), 8), index as u64))
    };
    let commands = |keys: &str, times: &[f64]| {
        let spec = host(&format!("queue = {{ elevator = \"noop\", {keys} }}"));
        let mut load = Script::new(times.iter().copied().enumerate().map(issue).collect());
        let seen = run(vec![drive(1)], &spec, &mut load);
        let first = seen.commands[0].submitted.as_ms();
        (seen.commands.len(), first)
    };
    assert_eq!(commands("unplug_delay = 3.0", &[0.0, 1.0, 2.0]), (1, 3.0));
    assert_eq!(commands("unplug_delay = 0.0", &[0.0, 1.0, 2.0]), (2, 0.0));
    // Merged requests are one request to the plug: scattered ones count.
    let scattered = |(index, ms): (usize, f64)| {
        (Instant::from_ms(ms), Issue::new(0, Request::write(Lbn(80_000 * index as u64), 8), index as u64))
    };
    let spec = host("queue = { elevator = \"noop\", unplug_delay = 3.0, unplug_thresh = 2 }");
    let mut load = Script::new([0.0, 1.0, 2.0].into_iter().enumerate().map(scattered).collect());
    let seen = run(vec![drive(1)], &spec, &mut load);
    assert_eq!(seen.commands[0].submitted.as_ms(), 1.0);
}

#[test]
fn nr_requests_bounds_the_requests_an_order_sees() {
    // The nearest of the four oldest is served first, not the nearest of all.
    let lbns = [4_000_000, 5_000_000, 6_000_000, 7_000_000, 10, 20];
    let spec = host("queue = { order = \"sstf\", nr_requests = 4 }");
    let seen = run(vec![drive(1)], &spec, &mut Script::at_once(&reads(lbns, 8)));
    let served: Vec<u64> = seen.commands.iter().map(|command| command.request.lbn.0).collect();
    assert_eq!(served, [4_000_000, 5_000_000, 6_000_000, 7_000_000, 20, 10]);
}

/// Keys of a queue, any of them.
fn any_queue() -> impl Strategy<Value = String> {
    let orders = order::all().iter().map(|entry| format!("order = \"{}\"", entry.name));
    let elevators = elevator::all().iter().map(|listed| format!("elevator = \"{}\"", listed.name));
    let who = select(orders.chain(elevators).collect::<Vec<_>>());
    let merge = select(vec!["none", "adjacent", "overlapping"]);
    let delay = prop_oneof![Just(0.0), 0.0..20.0f64];
    let guards =
        ["", ", guard = \"counting\", guard_threshold = 0", ", guard = \"adaptive\", guard_cost = 0.5"];
    let numbers = (1u32..9, 1u32..20, 1u32..12);
    (who, merge, numbers, delay, select(guards.to_vec())).prop_map(|(who, merge, numbers, delay, guard)| {
        let (kb, requests, depth) = numbers;
        format!(
            "queue = {{ {who}, merge = \"{merge}\", max_sectors_kb = {}, nr_requests = {requests}, \
             depth = {depth}, unplug_delay = {delay}{guard} }}",
            4 * kb
        )
    })
}

/// Requests in a narrow region, so that they meet; times in ms.
fn any_issues() -> impl Strategy<Value = Vec<(Instant, Issue)>> {
    let lbn = prop_oneof![4 => 0u64..400, 1 => 0u64..4_000_000];
    let one = (lbn, 1u32..60, 0u32..10, 0u32..4, any::<bool>(), 0.0..150.0f64);
    prop::collection::vec(one, 1..60).prop_map(|all| {
        let issue = |(id, (lbn, sectors, kind, source, urgent, ms)): (usize, _)| {
            let request = match kind {
                0 => Request::flush(),
                1 => Request { fua: true, ..Request::write(Lbn(lbn), sectors) },
                2..6 => Request::write(Lbn(lbn), sectors),
                _ => Request::read(Lbn(lbn), sectors),
            };
            let issue = Issue { source, urgent, ..Issue::new(id as u32 % 2, request, id as u64) };
            (Instant::from_ms(ms), issue)
        };
        all.into_iter().enumerate().map(issue).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn every_host_queue_completes_each_request_once(queue in any_queue(), issues in any_issues()) {
        let issued: Vec<Issue> = issues.iter().map(|(_, issue)| *issue).collect();
        let mut load: Box<dyn Load> = Box::new(Script::new(issues));
        let seen = run(vec![drive(8), drive(8)], &host(&queue), load.as_mut());
        seen.judge(&issued);
        let spec = host(&queue).queue;
        let most = spec.max_sectors_kb.expect("it was given") * 2;
        prop_assert!(seen.commands.iter().all(|command| command.request.sectors <= most));
    }
}
