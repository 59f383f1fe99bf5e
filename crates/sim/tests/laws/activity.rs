//! The counters of a drive's activity agree with its completions.

use crate::accounting::any_request;
use crate::support::*;
use headstack_model::{Instant, Nanos, Op};
use headstack_sim::{CacheUse, Completion, Device, Outcome};
use rand::RngExt;

/// A device after 1,200 requests in bursts of eight, the completions, and the time at the end.
fn worked(rig: &Rig) -> (Device, Vec<Completion>, Instant) {
    let mut device = rig.queued(8, "fcfs");
    let (mut random, mut now, mut all) = (seeded(77), Instant::ZERO, Vec::new());
    for _ in 0..150 {
        let requests: Vec<_> = (0..8).map(|_| any_request(&mut random, rig, 64)).collect();
        let done = serve_all(&mut device, now, &requests);
        now = done.iter().map(|done| done.completed).fold(now, Instant::max);
        all.extend(done);
        now = rig.after(now, random.random_range(0.0..2.0));
    }
    device.handle_timeout(now);
    (device, all, now)
}

#[test]
fn every_command_is_counted_once_by_cache_use() {
    for rig in all() {
        let (device, done, _) = worked(&rig);
        let activity = device.activity();
        for (index, name) in CacheUse::NAMES.iter().enumerate() {
            let met = |op: Op| {
                let is = |done: &&Completion| done.request.op == op && done.cache.index() == index;
                done.iter().filter(|done| done.outcome == Outcome::Done).filter(is).count() as u64
            };
            assert_eq!(activity.reads[index], met(Op::Read), "{}: {name}", rig.name());
            assert_eq!(activity.writes[index], met(Op::Write), "{}: {name}", rig.name());
        }
        let flushes = done.iter().filter(|done| done.request.op == Op::Flush).count();
        assert_eq!(activity.flushes, flushes as u64);
    }
}

#[test]
fn arm_activity_equals_the_time_of_its_accesses() {
    for rig in all() {
        let (device, done, now) = worked(&rig);
        let activity = device.activity();
        let sum = |pick: fn(&Completion) -> Nanos| Nanos(done.iter().map(|done| pick(done).0).sum());
        // If a command joins a read-ahead, the counters count the arm's work for it, but its completion counts that time as the cache's.
        let joined = activity.reads[CacheUse::Joined.index()];
        let seek = sum(|done| done.parts.seek);
        assert!(activity.commands.seek >= seek, "{}", rig.name());
        if joined == 0 {
            assert_eq!(activity.commands.seek, seek, "{}", rig.name());
            assert_eq!(activity.commands.media, sum(|done| done.parts.media), "{}", rig.name());
            let latency = sum(|done| done.parts.rotational_latency + done.parts.retries);
            assert_eq!(activity.commands.rotational_latency, latency, "{}", rig.name());
        }
        let all = activity.busy() + activity.read_ahead + activity.recalibration;
        assert!(all <= now.since_start(), "{}: {all} of {now}", rig.name());
        let travelled = done.iter().filter(|done| done.travel.is_some()).count() as u64;
        assert_eq!(activity.commands.accesses, travelled + joined, "{}", rig.name());
        assert_eq!(activity.seeks.count(), travelled + activity.destages.accesses, "{}", rig.name());
    }
}

#[test]
fn command_served_by_the_buffer_does_not_use_the_arm() {
    for rig in all() {
        for done in worked(&rig).1 {
            let positioning =
                done.parts.seek + done.parts.rotational_latency + done.parts.retries + done.parts.media;
            let served = matches!(done.cache, CacheUse::Whole | CacheUse::Joined | CacheUse::Buffered);
            assert!(!served || positioning == Nanos::ZERO && done.travel.is_none(), "{done:?}");
        }
    }
}
