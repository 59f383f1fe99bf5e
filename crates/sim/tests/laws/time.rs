//! Each call passes the time to the device. Results depend neither on how often or how late it is called, nor on when a run begins.

use crate::accounting::any_request;
use crate::support::*;
use headstack_model::spec::{BusSpec, CacheSpec, OverheadSpec, SeekSpec};
use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_sim::{Completion, Device, DeviceOptions, Tag};
use rand::RngExt;

/// A sequence of submissions drawn from a seed: bursts of requests, with gaps of up to eight turns between them.
fn script(rig: &Rig, seed: u64, count: u32) -> Vec<(Instant, Request)> {
    let mut random = seeded(seed);
    let mut at = Instant::ZERO;
    let mut script = Vec::new();
    for _ in 0..count {
        let gap = if random.random_range(0..3) == 0 { random.random_range(0.0..8.0) } else { 0.0 };
        at = rig.after(at, gap);
        script.push((at, any_request(&mut random, rig, 64)));
    }
    script
}

/// All drives on SAS, which has enough tags for all commands of a script.
fn deep() -> Vec<Rig> {
    let deep = |rig: Rig| rig.with(|spec| *spec = spec.clone().on_sas());
    all().into_iter().map(deep).collect()
}

/// Plays a script. `wake` returns the time of the next call, given the present time and the time of the next event.
fn play(
    mut device: Device,
    script: &[(Instant, Request)],
    mut wake: impl FnMut(Instant, Instant) -> Instant,
) -> Vec<Completion> {
    let (mut done, mut left, mut now) = (Vec::new(), script, Instant::ZERO);
    loop {
        // Tags are not compared: a tag becomes free when its completion is polled, which is later if the call is late.
        let taken = std::iter::from_fn(|| device.poll_completion());
        done.extend(taken.map(|completion| Completion { tag: Tag(0), ..completion }));
        let due = device.poll_timeout().map(|due| wake(now, due).max(now));
        match (left, due) {
            ([(at, request), rest @ ..], due) if due.is_none_or(|due| *at <= due) => {
                now = *at;
                device.submit(now, *request).expect("the queue is deep enough");
                left = rest;
            }
            (_, Some(due)) => {
                now = due;
                device.handle_timeout(now);
            }
            _ => return done,
        }
    }
}

#[test]
fn late_call_moves_no_completion() {
    for rig in deep() {
        for order in ["fcfs", "sptf"] {
            let script = script(&rig, 61, 200);
            let prompt = play(rig.queued(200, order), &script, |_, due| due);
            assert_eq!(prompt.len(), script.len());
            let mut random = seeded(62);
            let late =
                play(rig.queued(200, order), &script, |_, due| rig.after(due, random.random_range(0.0..3.0)));
            assert_eq!(prompt, late, "{} {order}", rig.name());
        }
    }
}

#[test]
fn early_call_moves_no_completion() {
    for rig in deep() {
        let script = script(&rig, 63, 100);
        let prompt = play(rig.queued(100, "sptf"), &script, |_, due| due);
        let early = play(rig.queued(100, "sptf"), &script, |now, due| {
            if due.0 > now.0 + 1_000_000 { Instant(now.0 + (due.0 - now.0) / 2) } else { due }
        });
        assert_eq!(prompt, early, "{}", rig.name());
    }
}

#[test]
fn next_event_is_never_in_the_past() {
    for rig in deep() {
        let script = script(&rig, 64, 150);
        play(rig.queued(150, "sptf"), &script, |now, due| {
            assert!(due >= now, "{}: {due} at {now}", rig.name());
            due
        });
    }
}

#[test]
fn time_shift_by_whole_turns_moves_completions_equally() {
    // In a million minutes, any spindle whose speed is a whole number of millionths of a rpm makes a whole number of turns.
    let million_minutes = Nanos(60_000_000 * 1_000_000_000);
    for rig in deep() {
        let script = script(&rig, 65, 100);
        let now = play(rig.queued(100, "fcfs"), &script, |_, due| due);
        let shifted: Vec<_> = script.iter().map(|(at, request)| (*at + million_minutes, *request)).collect();
        let later = play(rig.queued(100, "fcfs"), &shifted, |_, due| due);
        for (one, other) in now.iter().zip(&later) {
            let off = (one.completed + million_minutes).0.abs_diff(other.completed.0);
            assert!(one.request == other.request && off <= 2, "{}: {one:?} and {other:?}", rig.name());
        }
    }
}

#[test]
fn same_seed_gives_identical_completions() {
    for rig in deep() {
        let rig = rig.with(|spec| {
            let retries = headstack_model::spec::Retries { probability: 0.2, turns_max: 4 };
            spec.mechanics.retries = Some(retries);
            let recalibration = headstack_model::spec::Recalibration { interval_s: 0.5, duration_ms: 20.0 };
            spec.mechanics.recalibration = Some(recalibration);
        });
        let script = script(&rig, 66, 200);
        let seeded = |seed| DeviceOptions { seed, depth: Some(200), order: Some("sptf".to_string()) };
        let one = play(rig.device_with(&seeded(9)), &script, |_, due| due);
        let same = play(rig.device_with(&seeded(9)), &script, |_, due| due);
        let other = play(rig.device_with(&seeded(10)), &script, |_, due| due);
        assert_eq!(one, same, "{}", rig.name());
        assert_ne!(one, other, "{}: the seed counts", rig.name());
    }
}

#[test]
fn constant_access_time_holds_for_every_request() {
    let mut spec = all().remove(0).spec.clone();
    spec.mechanics.seek = SeekSpec::default();
    spec.mechanics.constant_access_ms = Some(9.5);
    spec.overhead = OverheadSpec::default();
    spec.cache = CacheSpec { enabled: false, ..CacheSpec::default() };
    spec.bus = BusSpec::default();
    let mut device = Device::new(&spec, &DeviceOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let (mut random, mut now) = (seeded(63), Instant::ZERO);
    for write in [false, true].repeat(50) {
        // Some requests extend over several tracks.
        let sectors = random.random_range(1..400);
        let lbn = Lbn(random.random_range(0..spec.capacity_sectors - u64::from(sectors)));
        let request = if write { Request::write(lbn, sectors) } else { Request::read(lbn, sectors) };
        device.submit(now, request).expect("it is idle");
        while let Some(due) = device.poll_timeout() {
            device.handle_timeout(due);
        }
        let done = device.poll_completion().expect("it was asked");
        assert_eq!(done.response(), Nanos::from_ms(9.5), "{request:?}");
        now = done.completed + Nanos::from_ms(random.random_range(0.0..20.0));
    }
}
