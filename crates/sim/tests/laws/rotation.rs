//! The platter turns at a constant speed, and a sector passes under its head once per turn.

use crate::support::*;
use headstack_model::spec::ZeroLatency;
use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_sim::Completion;
use rand::RngExt;

#[test]
fn mean_rotational_latency_is_half_a_turn() {
    for rig in all_plain() {
        let (mut device, mut random) = (rig.device(), seeded(11));
        let (mut now, mut waits) = (Instant::ZERO, Vec::new());
        for _ in 0..2000 {
            let at = rig.after(now, random.random_range(0.0..1.0));
            let done = serve(&mut device, at, Request::read(any_lbn(&mut random, &rig, 1), 1));
            waits.push(done.parts.rotational_latency.0 as f64 / rig.turn());
            now = done.completed;
        }
        // A uniformly distributed wait has a standard deviation of 1/√12 turn. The tolerance is four standard errors.
        assert_close(rig.name(), mean(&waits), 0.5, 4.0 * 0.289 / 2000f64.sqrt());
        let spread = standard_error(&waits) * 2000f64.sqrt();
        assert_close(rig.name(), spread, 1.0 / 12f64.sqrt(), 0.02);
    }
}

#[test]
fn rotational_latency_never_exceeds_a_turn() {
    for rig in all_plain() {
        let (mut device, mut random) = (rig.device(), seeded(12));
        let mut now = Instant::ZERO;
        for _ in 0..500 {
            let op = Request::read(any_lbn(&mut random, &rig, 1), 1);
            let request = if random.random() { op } else { Request::write(op.lbn, 1) };
            let done = serve(&mut device, now, request);
            let bound = rig.turn() * (1.0 + 2.0 / rig.geometry().extent_at(op.lbn).sectors_per_track as f64);
            assert!((done.parts.rotational_latency.0 as f64) < bound, "{}: {done:?}", rig.name());
            now = rig.after(done.completed, random.random_range(0.0..1.0));
        }
    }
}

/// Reads `sectors` from `lbn` on with the arm on the track, at `count` phases of the turn, one in each of `count` equal parts.
fn at_all_phases(rig: &Rig, lbn: Lbn, sectors: u32, count: u32) -> Vec<Completion> {
    let mut device = rig.device();
    serve(&mut device, Instant::ZERO, Request::read(lbn, 1));
    // The place of the phase within its part varies. Multiples of a constant angle could fall on nearly the same place in each sector, for
    // example multiples of the golden section on a track of 377 sectors.
    let within = |index: u32| (0.754_877_666_246_692_7 * f64::from(index)).fract();
    let phase = |index: u32| 4.0 * f64::from(index) + (f64::from(index) + within(index)) / f64::from(count);
    let at = |index: u32| rig.after(Instant::from_secs(1), phase(index));
    (0..count).map(|index| serve(&mut device, at(index), Request::read(lbn, sectors))).collect()
}

#[test]
fn zero_latency_track_read_takes_one_turn_from_any_phase() {
    for rig in all_plain() {
        let rig = rig.zero_latency(ZeroLatency::WithinTrack);
        for track in rig.whole_tracks(3) {
            // The head arrives in the middle of a sector. That sector is read last, when it passes the head again.
            let sector = rig.turn() / f64::from(track.sectors_per_track);
            let mut over = Vec::new();
            for done in at_all_phases(&rig, track.first, track.sectors, 211) {
                assert_eq!(done.parts.seek, Nanos::ZERO);
                over.push(done.response().0 as f64 - rig.turn());
            }
            let out = over.iter().copied().find(|over| *over < -3.0 || *over > sector + 3.0);
            assert_eq!(out, None, "{}: a turn and part of a sector", rig.name());
            // The head arrives at any point of that sector, so that half a sector is lost on average.
            assert_close(rig.name(), mean(&over) / sector, 0.5, 0.1);
        }
    }
}

#[test]
fn zero_latency_track_read_takes_its_seek_plus_one_turn() {
    for rig in all_plain() {
        let rig = rig.zero_latency(ZeroLatency::PerFragment);
        let mut device = rig.device();
        let mut now = Instant::ZERO;
        for track in rig.whole_tracks(40) {
            let done = serve(&mut device, now, Request::read(track.first, track.sectors));
            let over = done.response().0 as f64 - done.parts.seek.0 as f64 - rig.turn();
            let sector = rig.turn() / f64::from(track.sectors_per_track);
            assert!((-3.0..sector + 3.0).contains(&over), "{}: {over} ns more than a turn", rig.name());
            now = done.completed;
        }
    }
}

#[test]
fn zero_latency_wait_follows_the_share_of_the_track() {
    for rig in all_plain() {
        let rig = rig.zero_latency(ZeroLatency::WithinTrack);
        let Some(track) = rig.whole_tracks(1).pop() else { continue };
        for tenth in [1u32, 3, 5, 7, 9] {
            let sectors = (track.sectors * tenth / 10).max(1);
            let share = f64::from(sectors) / f64::from(track.sectors);
            let done = at_all_phases(&rig, track.first, sectors, 499);
            let waits: Vec<f64> =
                done.iter().map(|done| done.parts.rotational_latency.0 as f64 / rig.turn()).collect();
            // If the head arrives inside the run, another half sector is lost. The phases add an error because they are a grid.
            let tolerance = 1.0 / f64::from(track.sectors) + 2.0 / 499.0;
            assert_close(rig.name(), mean(&waits), (1.0 - share * share) / 2.0, tolerance);
        }
    }
}

#[test]
fn in_order_track_read_takes_one_to_two_turns() {
    for rig in all_plain() {
        let rig = rig.zero_latency(ZeroLatency::None);
        for track in rig.whole_tracks(2) {
            let done = at_all_phases(&rig, track.first, track.sectors, 211);
            let turns: Vec<f64> = done.iter().map(|done| done.response().0 as f64 / rig.turn()).collect();
            let out = turns.iter().copied().find(|turns| *turns < 1.0 - 1e-6 || *turns > 2.0 + 1e-6);
            assert_eq!(out, None, "{}", rig.name());
            assert_close(rig.name(), mean(&turns), 1.5, 2.0 / 211.0);
        }
    }
}

#[test]
fn zero_latency_read_is_never_slower_than_in_order() {
    for rig in all_plain() {
        let (eager, ordered) =
            (rig.zero_latency(ZeroLatency::PerFragment), rig.zero_latency(ZeroLatency::None));
        let mut random = seeded(13);
        for _ in 0..100 {
            // Both drives read the same blocks, within one track, from the same state.
            let run = rig.geometry().extent_at(any_lbn(&mut random, &rig, 1));
            let sectors = random.random_range(1..=run.sectors);
            let at = rig.after(Instant::ZERO, random.random_range(0.0..1.0));
            let one = |rig: &Rig| serve(&mut rig.device(), at, Request::read(run.first, sectors)).response();
            assert!(one(&eager) <= one(&ordered) + Nanos(2), "{}: {sectors} sectors", rig.name());
        }
    }
}

#[test]
fn double_spindle_speed_halves_rotational_latency() {
    for rig in all_plain() {
        let fast = rig.with(|spec| spec.mechanics.rpm *= 2.0);
        let (mut slow_device, mut fast_device) = (rig.device(), fast.device());
        let lbn = Lbn(rig.sectors() / 3);
        for step in 0..300u64 {
            // The arm stays on the track. The fast platter is at the same angle after half the time.
            let at = Instant(2 * (1_000_000_000 + step * 54_567_891));
            let slow = serve(&mut slow_device, at, Request::read(lbn, 1));
            let fast = serve(&mut fast_device, Instant(at.0 / 2), Request::read(lbn, 1));
            if step > 0 {
                let (slow, fast) = (slow.parts.rotational_latency.0, fast.parts.rotational_latency.0);
                assert!(slow.abs_diff(2 * fast) <= 6, "{}: {slow} ns and {fast} ns at {step}", rig.name());
            }
        }
    }
}

#[test]
fn platter_angle_is_exact_after_47_years() {
    // After a million minutes, which is nearly two years, any spindle whose speed is a whole number of millionths of a rpm has made a whole
    // number of turns.
    let million_minutes = 60_000_000u64 * 1_000_000_000;
    for rig in all_plain() {
        for lbn in rig.spread(5) {
            let early = serve(&mut rig.device(), Instant(5_000_000), Request::read(lbn, 1));
            let at = Instant(5_000_000 + 25 * million_minutes);
            let late = serve(&mut rig.device(), at, Request::read(lbn, 1));
            let off = early.response().0.abs_diff(late.response().0);
            assert!(off <= 2, "{}: off by {off} ns after 47 years", rig.name());
        }
    }
}
