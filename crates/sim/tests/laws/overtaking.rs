//! Limits on overtaking in a drive's queue, and the time that the firmware takes to choose a command.

use crate::support::*;
use headstack_model::{DriveSpec, Instant, Nanos, Op, Request};
use headstack_sim::Command;
use headstack_workload::{Closed, Pattern, Region, Shape};

/// A current drive (2022) with a changed specification.
fn hc570(change: impl FnOnce(&mut DriveSpec)) -> Rig {
    let of_today =
        shipped().into_iter().find(|rig| rig.name() == "ultrastar-hc570").expect("the drive ships");
    of_today.with(change)
}

/// The rate per second of random reads of 128 KiB, and the ratio of the 99th percentile to the mean of their responses.
fn rate_and_tail(rig: &Rig, depth: u32) -> (f64, f64) {
    let shape = Shape {
        region: Region::whole(rig.sectors()),
        pattern: Pattern::Random,
        sectors: 256,
        alignment: 8,
        read_share: 1.0,
    };
    let mut load = Closed::new(shape, depth, 20_000, 5).expect("it fits");
    let (finished, end) = run(rig.device(), &mut load);
    let mut responses: Vec<u64> = finished.iter().map(|one| one.completion.response().0).collect();
    responses.sort_unstable();
    let mean = responses.iter().sum::<u64>() as f64 / responses.len() as f64;
    (responses.len() as f64 / end.as_secs(), responses[responses.len() * 99 / 100] as f64 / mean)
}

#[test]
fn bounded_sptf_keeps_throughput_and_a_short_tail() {
    let (bounded, greedy) = (hc570(|_| {}), hc570(|spec| spec.queue.order = "sptf".to_string()));
    for depth in [4, 8, 16, 32] {
        let ((rate, tail), (most, long)) = (rate_and_tail(&bounded, depth), rate_and_tail(&greedy, depth));
        assert!((1.5..1.8).contains(&tail), "depth {depth}: p99 is {tail} times the mean");
        assert!(long > 4.0, "depth {depth}: SPTF's p99 is {long} times the mean");
        assert!(rate > 0.85 * most, "depth {depth}: {rate} where SPTF has {most}");
    }
}

#[test]
fn rate_doubles_from_depth_1_to_32() {
    let growth = rate_and_tail(&hc570(|_| {}), 32).0 / rate_and_tail(&hc570(|_| {}), 1).0;
    assert!((1.9..2.15).contains(&growth), "{growth}");
}

#[test]
fn choice_time_lets_the_next_command_join_the_choice() {
    // Lost turns are off, because they would slow the drive at depth 1.
    let choosing_for =
        |choice_ms: f64| hc570(|spec| (spec.queue.choice_ms, spec.mechanics.lost_turns) = (choice_ms, None));
    let (early, late) = (choosing_for(0.0), choosing_for(0.05));
    let alone = rate_and_tail(&late, 1).0;
    let gain = |rig: &Rig| rate_and_tail(rig, 2).0 / alone - 1.0;
    // At depth 2, only one command waits when the arm becomes free. There is a choice only if the next command arrives before it is made.
    assert!(gain(&early) < 0.03, "{} is what the overhead hides", gain(&early));
    assert!((0.05..0.12).contains(&gain(&late)), "{}", gain(&late));
}

#[test]
fn sequential_reads_lose_no_turn_to_choice_time() {
    let rate = |choice_ms: f64| {
        let rig = hc570(|spec| spec.queue.choice_ms = choice_ms);
        let region = Region::whole(rig.sectors());
        let shape =
            Shape { region, pattern: Pattern::Sequential, sectors: 2048, alignment: 8, read_share: 1.0 };
        closed_rate(rig.device(), shape, 4, 1000)
    };
    assert_close("reads a second", rate(0.05), rate(0.0), rate(0.0) / 500.0);
}

#[test]
fn non_urgent_commands_follow_others_order() {
    let longest = |others: &str, urgent_first: bool| {
        let rig = hc570(|spec| {
            spec.queue.others_order = Some(others.to_string());
            spec.queue.urgent_first = urgent_first;
        });
        let (mut device, mut random) = (rig.device(), seeded(9));
        let mut command =
            |urgent: bool| Command { urgent, ..Request::read(any_lbn(&mut random, &rig, 8), 8).into() };
        for number in 0..32 {
            device.submit(Instant::ZERO, command(number % 8 == 0)).expect("the queue is deep enough");
        }
        let mut longest = Nanos::ZERO;
        for number in 0..4000 {
            let done = next(&mut device);
            longest = longest.max(done.response());
            device.submit(done.completed, command(number % 8 == 0)).expect("one is done");
        }
        longest
    };
    assert!(longest("sptf", true) > longest("fcfs", true) + longest("fcfs", true));
    assert_eq!(
        longest("sptf", false),
        longest("fcfs", false),
        "where none goes first the order is that of all"
    );
}

/// Shipped current drives, each with a write cache.
fn of_today() -> impl Iterator<Item = Rig> {
    let names = ["st2000dm006", "exos-x16", "exos-x18", "toshiba-x300", "ultrastar-7k8", "ultrastar-hc570"];
    shipped().into_iter().filter(move |rig| names.contains(&rig.name()))
}

/// The longest response of a read. One read and 24 random writes are outstanding at all times; with `log` also a flush, as a journal that
/// is flushed after each of its writes sends them.
fn longest_read(rig: &Rig, log: bool) -> Nanos {
    let (mut device, mut random) = (rig.device(), seeded(11));
    let (mut longest, mut now, mut read_since, mut flushes) =
        (Nanos::ZERO, Instant::ZERO, Instant::ZERO, log);
    for _ in 0..24 {
        device
            .submit(now, Request::write(any_lbn(&mut random, rig, 8), 8))
            .expect("the queue is deep enough");
    }
    device.submit(now, Request::read(any_lbn(&mut random, rig, 8), 8)).expect("the queue is deep enough");
    for _ in 0..4000 {
        if flushes {
            device.submit(now, Request::flush()).expect("the queue is deep enough");
            flushes = false;
        }
        let done = next(&mut device);
        now = done.completed;
        longest = longest.max(now - read_since);
        let again = match done.request.op {
            Op::Read => {
                read_since = now;
                Request::read(any_lbn(&mut random, rig, 8), 8)
            }
            Op::Write => Request::write(any_lbn(&mut random, rig, 8), 8),
            Op::Flush => {
                flushes = true;
                continue;
            }
        };
        device.submit(now, again).expect("one is done");
    }
    longest
}

#[test]
fn read_response_stays_short_with_a_full_write_cache() {
    for rig in of_today() {
        // A read waits at most for the write in progress and a destage. Together with the read, these take some seeks and turns.
        let longest = longest_read(&rig, false);
        assert!(longest < Nanos::from_ms(150.0), "{}: {longest}", rig.name());
    }
}

#[test]
fn no_read_waits_for_much_more_than_one_flush() {
    for rig in of_today() {
        // During a flush the whole cache is written once or twice; on the ST2000DM006 it holds about 84 runs.
        let longest = longest_read(&rig, true);
        assert!(longest < Nanos::from_secs(4), "{}: {longest}", rig.name());
    }
}
