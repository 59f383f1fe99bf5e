//! The parts of a response time, and its lower bounds.

use crate::support::*;
use headstack_model::{Instant, Nanos, Op, Request};
use headstack_sim::Outcome;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// A read or write of 1 to `most` sectors or, rarely, a flush.
pub(crate) fn any_request(random: &mut Pcg64Mcg, rig: &Rig, most: u32) -> Request {
    let sectors = random.random_range(1..=most);
    let lbn = any_lbn(random, rig, sectors);
    let fua = random.random_range(0..8) == 0;
    match random.random_range(0..20) {
        0 => Request::flush(),
        1..=8 => Request { fua, ..Request::write(lbn, sectors) },
        _ => Request { fua, ..Request::read(lbn, sectors) },
    }
}

#[test]
fn response_equals_the_sum_of_its_parts() {
    for rig in all() {
        let mut device = rig.queued(16, "sptf");
        let (mut random, mut now) = (seeded(31), Instant::ZERO);
        for _ in 0..100 {
            let requests: Vec<Request> = (0..16).map(|_| any_request(&mut random, &rig, 256)).collect();
            for done in serve_all(&mut device, now, &requests) {
                let parts = done.parts;
                let sum = parts.queued.0
                    + parts.overhead.0
                    + parts.seek.0
                    + parts.rotational_latency.0
                    + parts.retries.0
                    + parts.media.0
                    + parts.bus.0
                    + parts.cache.0;
                assert_eq!(sum, done.completed.0 - done.submitted.0, "{}: {done:?}", rig.name());
                now = now.max(done.completed);
            }
            now = rig.after(now, random.random_range(0.0..2.0));
        }
    }
}

#[test]
fn response_is_never_shorter_than_overhead_plus_transfer() {
    for rig in all() {
        let overhead = &rig.spec.overhead;
        let least = |pick: fn(&headstack_model::spec::OverheadSet) -> f64| {
            let sets = pick(&overhead.after_read).min(pick(&overhead.after_write));
            sets.min(overhead.sequential_ms.unwrap_or(f64::INFINITY))
        };
        // In some drive files the overhead of a read miss is less than that of a hit.
        let read_ms = least(|set| set.read_hit_ms.min(set.read_miss_ms)) + overhead.read_completion_ms;
        let early = rig.spec.bus.write_disconnect.map_or(f64::INFINITY, |early| early.command_ms);
        let write_ms = least(|set| set.write_ms).min(early) + overhead.write_completion_ms;
        let (mut device, mut random, mut now) = (rig.device(), seeded(32), Instant::ZERO);
        for _ in 0..600 {
            let request = any_request(&mut random, &rig, 128);
            let done = serve(&mut device, now, request);
            let (ms, us) = match request.op {
                Op::Read => (read_ms, rig.spec.bus.read_us_per_sector),
                _ => (write_ms, rig.spec.bus.write_us_per_sector),
            };
            let bound = ms * 1e6 + us * 1e3 * f64::from(request.sectors);
            // The model rounds the bus time of a sector to a thousandth of a nanosecond.
            assert!(done.response().0 as f64 >= bound - 1.0, "{}: {done:?} < {bound}", rig.name());
            now = done.completed;
        }
    }
}

#[test]
fn media_time_is_the_sectors_share_of_a_turn() {
    for rig in all_plain() {
        let (mut device, mut random, mut now) = (rig.device(), seeded(33), Instant::ZERO);
        for _ in 0..200 {
            let track = rig.geometry().extent_at(any_lbn(&mut random, &rig, 1));
            let sectors = random.random_range(1..=track.sectors);
            let read = serve(&mut device, now, Request::read(track.first, sectors));
            let write = serve(&mut device, read.completed, Request::write(track.first, sectors));
            let share = rig.turn() * f64::from(sectors) / f64::from(track.sectors_per_track);
            for done in [read, write] {
                assert_close(rig.name(), done.parts.media.0 as f64, share, 3.0);
            }
            now = rig.after(write.completed, random.random_range(0.0..1.0));
        }
    }
}

#[test]
fn command_beyond_the_queue_depth_is_rejected() {
    for rig in all() {
        for depth in [1, 3, 32] {
            let mut device = rig.queued(depth, "fcfs");
            let request = Request::read(headstack_model::Lbn(rig.sectors() / 2), 1);
            for taken in 0..depth as usize {
                assert_eq!(device.outstanding(), taken);
                device.submit(Instant::ZERO, request).expect("there is room");
            }
            device.submit(Instant::ZERO, request).expect_err("the queue is full");
            assert_eq!(device.outstanding(), depth as usize);
            next(&mut device);
            device.submit(Instant::from_secs(1), request).expect("one has gone");
        }
    }
}

#[test]
fn request_beyond_capacity_completes_as_out_of_range() {
    for rig in all() {
        let end = rig.sectors();
        for (lbn, sectors) in
            [(end, 1), (end - 1, 2), (end + 7, 1), (u64::MAX, 1), (u64::MAX - 3, u32::MAX), (0, 0)]
        {
            let lbn = headstack_model::Lbn(lbn);
            for request in [Request::read(lbn, sectors), Request::write(lbn, sectors)] {
                let mut device = rig.device();
                device.submit(Instant::ZERO, request).expect("nothing else is outstanding");
                let done = next(&mut device);
                assert_eq!(done.outcome, Outcome::OutOfRange, "{}: {request:?}", rig.name());
                assert_eq!(done.parts.seek + done.parts.media, Nanos::ZERO);
                // The drive still serves requests within its capacity.
                serve(&mut device, done.completed, Request::read(headstack_model::Lbn(end - 1), 1));
            }
        }
    }
}
