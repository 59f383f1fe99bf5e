//! Guarantees to a host that queues commands with tags.

use crate::support::*;
use headstack_model::spec::{QueueSpec, Tagging};
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use headstack_policy::order;
use headstack_sim::{Command, Completion, DeviceError, DeviceOptions, Finished, TaskAttribute};
use headstack_workload::{Issue, Load, Poll};
use rand::RngExt;

/// The rig with an SPTF queue of depth 32, changed by `change`.
fn queue(rig: &Rig, change: impl FnOnce(&mut QueueSpec)) -> Rig {
    rig.with(|spec| {
        spec.queue = QueueSpec { depth: 32, order: "sptf".to_string(), ..QueueSpec::default() };
        change(&mut spec.queue);
    })
}

fn reads(rig: &Rig, seed: u64, count: usize) -> Vec<Request> {
    let mut random = seeded(seed);
    (0..count).map(|_| Request::read(any_lbn(&mut random, rig, 1), 1)).collect()
}

/// Submits all commands at one time. Returns the completions in order.
fn together(rig: &Rig, commands: &[Command]) -> Vec<Completion> {
    let mut device = rig.device();
    for command in commands {
        device.submit(Instant::ZERO, *command).expect("the queue is deep enough");
    }
    commands.iter().map(|_| next(&mut device)).collect()
}

fn position(done: &[Completion], request: Request) -> usize {
    done.iter().position(|one| one.request == request).expect("all come back")
}

#[test]
fn ordered_command_separates_earlier_from_later_ones() {
    for rig in all_plain().iter().map(|rig| queue(rig, |_| {})) {
        let requests = reads(&rig, 61, 25);
        let mut commands: Vec<Command> = requests.iter().map(|request| (*request).into()).collect();
        commands[12].attribute = TaskAttribute::Ordered;
        let done = together(&rig, &commands);
        let place = position(&done, requests[12]);
        assert_eq!(place, 12, "{}", rig.name());
        for (index, request) in requests.iter().enumerate() {
            assert_eq!(position(&done, *request).cmp(&place), index.cmp(&12), "{}", rig.name());
        }
    }
}

#[test]
fn head_of_queue_commands_go_first_in_lifo_order() {
    for rig in all_plain().iter().map(|rig| queue(rig, |_| {})) {
        let requests = reads(&rig, 62, 20);
        let mut commands: Vec<Command> = requests.iter().map(|request| (*request).into()).collect();
        commands[8].attribute = TaskAttribute::Ordered;
        for late in [15, 19] {
            commands[late].attribute = TaskAttribute::HeadOfQueue;
        }
        let done = together(&rig, &commands);
        // One command was being served when they arrived. They also overtake the ordered command.
        assert_eq!(done[1].request, requests[19], "{}", rig.name());
        assert_eq!(done[2].request, requests[15], "{}", rig.name());
        assert_eq!(position(&done, requests[8]), 10, "{}", rig.name());
    }
}

#[test]
fn flush_is_exclusive_with_ncq_and_queued_with_tcq() {
    for tagging in [Tagging::Ncq, Tagging::Tcq] {
        for rig in all_plain().iter().map(|rig| queue(rig, |queue| queue.tagging = Some(tagging))) {
            let requests = reads(&rig, 63, 20);
            let mut commands: Vec<Command> = requests.iter().map(|request| (*request).into()).collect();
            commands.insert(10, Request::flush().into());
            let done = together(&rig, &commands);
            let place = done.iter().position(|one| one.request.op == Op::Flush);
            // The cache has no dirty data, so that a queued flush completes before the reads.
            assert_eq!(place, Some(if tagging == Tagging::Ncq { 10 } else { 0 }), "{}", rig.name());
        }
    }
}

#[test]
fn ncq_allows_at_most_32_tags() {
    for rig in small().iter().map(|rig| queue(rig, |queue| queue.tagging = Some(Tagging::Ncq))) {
        let deep = |depth| {
            let options = DeviceOptions { depth: Some(depth), ..DeviceOptions::default() };
            headstack_sim::Device::with_drive(rig.drive.clone(), &rig.spec, &options)
        };
        assert_eq!(deep(32).expect("NCQ has 32 tags").depth(), 32);
        assert_eq!(deep(33).expect_err("NCQ has only 32 tags"), DeviceError::Tags(33));
    }
}

#[test]
fn urgent_commands_go_first_with_urgent_first_or_p_scan() {
    for (knows, order) in [(true, "sptf"), (false, "sptf"), (false, "p-scan")] {
        for rig in all_plain() {
            let rig = queue(&rig, |queue| {
                (queue.urgent_first, queue.window, queue.order) = (knows, Some(25), order.to_string());
            });
            let requests = reads(&rig, 64, 25);
            let mut commands: Vec<Command> = requests.iter().map(|request| (*request).into()).collect();
            commands[20..].iter_mut().for_each(|command| command.urgent = true);
            let done = together(&rig, &commands);
            // The first was served when no other was there.
            let first = (1..=5).all(|place| requests[20..].contains(&done[place].request));
            assert_eq!(first, knows || order == "p-scan", "{} {order}", rig.name());
        }
    }
}

/// Issues all requests at once. The last five are urgent.
struct Burst {
    requests: Vec<Request>,
    issued: usize,
}

impl Load for Burst {
    fn poll(&mut self, _: Instant) -> Poll {
        let Some(request) = self.requests.get(self.issued) else { return Poll::Done };
        let urgent = self.issued + 5 >= self.requests.len();
        self.issued += 1;
        Poll::Issue(Issue { urgent, ..Issue::new(0, *request, self.issued as u64) })
    }

    fn handle_completion(&mut self, _: Instant, _: u64) {}
}

#[test]
fn host_passes_urgency_to_the_drive() {
    for rig in all_plain().iter().map(|rig| queue(rig, |queue| queue.urgent_first = true)) {
        let mut load = Burst { requests: reads(&rig, 67, 25), issued: 0 };
        let (finished, _) = run(rig.device(), &mut load);
        let urgent = |one: &Finished| one.id > 20;
        // The first was served when no other was there.
        assert!(finished[1..6].iter().all(urgent), "{}", rig.name());
    }
}

#[test]
fn edf_serves_commands_by_deadline() {
    for rig in all_plain() {
        let rig = queue(&rig, |queue| queue.order = "edf(1000000, 1000000)".to_string());
        let requests = reads(&rig, 65, 20);
        let mut commands: Vec<Command> = requests.iter().map(|request| (*request).into()).collect();
        for (index, command) in commands.iter_mut().enumerate() {
            command.deadline = Some(Instant::from_ms(1000.0 - index as f64));
        }
        let served: Vec<Request> = together(&rig, &commands)[1..].iter().map(|one| one.request).collect();
        let mut expected = requests[1..].to_vec();
        expected.reverse();
        assert_eq!(served, expected, "{}", rig.name());
    }
}

/// The longest response, and the longest time between two completions, of a load that keeps the queue full. 95 % of its requests are in the
/// first twentieth of the disk.
fn longest_response(rig: &Rig, depth: u32) -> (Nanos, Nanos) {
    let (mut device, mut random) = (rig.device(), seeded(66));
    let mut now = Instant::ZERO;
    let (mut longest, mut service) = (Nanos::ZERO, Nanos::ZERO);
    let mut last = Instant::ZERO;
    for count in 0..3000 {
        while device.outstanding() < depth as usize {
            let region = if random.random_bool(0.95) { rig.sectors() / 20 } else { rig.sectors() };
            let lbn = Lbn(random.random_range(0..region));
            device.submit(now, Request::read(lbn, 1)).expect("there is room");
        }
        let done = next(&mut device);
        now = done.completed;
        longest = longest.max(done.response());
        if count > 0 {
            service = service.max(now - last);
        }
        last = now;
    }
    (longest, service)
}

#[test]
fn age_limit_bounds_the_response_under_every_order() {
    let depth = 32;
    for rig in small().iter().map(Rig::plain) {
        for entry in order::all() {
            for (window, limit_ms) in [(None, 300.0), (Some(8), 300.0), (None, 900.0)] {
                let rig = queue(&rig, |queue| {
                    (queue.order, queue.window) = (entry.name.to_string(), window);
                    queue.age_limit_ms = Some(limit_ms);
                });
                let (longest, service) = longest_response(&rig, depth);
                // Only older commands are served before a command that has reached the limit.
                let most = Nanos::from_ms(limit_ms) + Nanos(service.0 * u64::from(depth + 1));
                assert!(longest <= most, "{} {}: {longest} > {most}", rig.name(), entry.name);
            }
        }
    }
}

#[test]
fn wstf_bounds_the_longest_response() {
    let depth = 32;
    for rig in small().iter().map(Rig::plain) {
        for longest_ms in [400.0, 800.0, 1600.0] {
            let rig = queue(&rig, |queue| queue.order = format!("wstf({longest_ms})"));
            let (longest, service) = longest_response(&rig, depth);
            let most = Nanos::from_ms(longest_ms) + Nanos(service.0 * u64::from(depth + 1));
            assert!(longest <= most, "{}: {longest} > {most}", rig.name());
        }
        let greedy = longest_response(&queue(&rig, |_| {}), depth).0;
        let bound = longest_response(&queue(&rig, |queue| queue.order = "wstf(600)".to_string()), depth).0;
        assert!(bound < greedy, "{}: {bound} where SPTF leaves {greedy}", rig.name());
    }
}
