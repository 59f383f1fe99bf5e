//! A seek takes the time that the drive file specifies for its distance.

use crate::support::*;
use headstack_model::{Instant, Lbn, Nanos, Request, SeekCurve};
use rand::RngExt;

/// A block on a cylinder and head, if one of the first 40 sectors there holds one.
fn block_on(rig: &Rig, cylinder: u32, head: u32) -> Option<Lbn> {
    (0..40).find_map(|sector| rig.geometry().lbn_at(cylinder, head, sector))
}

/// The seek part of an access to `to` with the arm on the track of `from`.
fn seek(rig: &Rig, from: Lbn, to: Request) -> Nanos {
    let mut device = rig.device();
    let at = serve(&mut device, Instant::ZERO, Request::read(from, 1)).completed;
    serve(&mut device, at, to).parts.seek
}

#[test]
fn seek_over_a_measured_distance_takes_the_measured_time() {
    let mut judged = 0;
    for rig in all_plain() {
        let Some(from) = block_on(&rig, 0, 0) else { continue };
        for (distance, ms) in rig.spec.mechanics.seek.points_cylinders_ms.iter().copied() {
            if distance >= rig.spec.geometry.cylinders {
                continue;
            }
            let Some(to) = block_on(&rig, distance, 0) else { continue };
            let found = seek(&rig, from, Request::read(to, 1));
            assert_eq!(found, Nanos((ms * 1e6).round() as u64), "{} over {distance}", rig.name());
            judged += 1;
        }
    }
    assert!(judged > 400, "only {judged} points judged");
}

#[test]
fn mean_seek_matches_the_curve_over_block_pairs() {
    for rig in all_plain() {
        let curve = SeekCurve::for_reads(&rig.spec.mechanics.seek, rig.spec.geometry.cylinders);
        let switch = Nanos::from_ms(rig.spec.mechanics.head_switch_ms);
        let places: Vec<_> = rig.spread(1009).map(|lbn| rig.geometry().locate(lbn)).collect();
        let mut total = 0.0;
        for from in &places {
            for to in &places {
                let seek = curve.time(from.cylinder.abs_diff(to.cylinder));
                total += if from.head == to.head { seek } else { seek.max(switch) }.0 as f64;
            }
        }
        let expected = total / (places.len() as f64).powi(2);
        let (mut device, mut random) = (rig.device(), seeded(21));
        let (mut now, mut seeks) = (Instant::ZERO, Vec::new());
        for _ in 0..4000 {
            let done = serve(&mut device, now, Request::read(any_lbn(&mut random, &rig, 1), 1));
            seeks.push(done.parts.seek.0 as f64);
            now = done.completed;
        }
        // Consecutive seeks share a cylinder, so that their sum scatters slightly more than that of independent seeks.
        let tolerance = 5.0 * standard_error(&seeks) + 0.005 * expected;
        assert_close(rig.name(), mean(&seeks), expected, tolerance);
    }
}

#[test]
fn head_switch_runs_in_parallel_with_the_seek() {
    let mut judged = 0;
    for rig in all_plain() {
        let switch = Nanos::from_ms(rig.spec.mechanics.head_switch_ms);
        let last = rig.spec.geometry.heads - 1;
        for distance in [0, 1, 2, 5, 30, 100, 700, 5000] {
            let blocks = [block_on(&rig, 0, 0), block_on(&rig, distance, 0), block_on(&rig, distance, last)];
            let [Some(from), Some(same), Some(other)] = blocks else { continue };
            let alone = if distance == 0 { Nanos::ZERO } else { seek(&rig, from, Request::read(same, 1)) };
            let found = seek(&rig, from, Request::read(other, 1));
            assert_eq!(found, alone.max(switch), "{} over {distance}", rig.name());
            judged += 1;
        }
    }
    assert!(judged > 100, "only {judged} pairs judged");
}

/// Whether writes have a separate seek curve, to which the write settle is not added.
fn has_written_curve(rig: &Rig) -> bool {
    SeekCurve::for_writes(&rig.spec.mechanics.seek, rig.spec.geometry.cylinders).is_some()
}

#[test]
fn write_settle_adds_to_the_seek() {
    for rig in all_plain() {
        if has_written_curve(&rig) {
            continue;
        }
        let settle = (rig.spec.mechanics.write_settle_ms * 1e6).round() as i64;
        for lbn in rig.spread(20) {
            let read = seek(&rig, Lbn(0), Request::read(lbn, 1)).0 as i64;
            let write = seek(&rig, Lbn(0), Request::write(lbn, 1)).0 as i64;
            assert_eq!(write, (read + settle).max(0), "{} to {lbn}", rig.name());
        }
        // If the arm is already on the track, a write needs no settle.
        assert_eq!(seek(&rig, Lbn(0), Request::write(Lbn(0), 1)), Nanos::ZERO, "{}", rig.name());
    }
}

#[test]
fn negative_settle_speeds_up_writes_but_not_reads() {
    for rig in all_plain() {
        if has_written_curve(&rig) {
            continue;
        }
        let settled = |ms: f64| rig.with(|spec| spec.mechanics.write_settle_ms = ms);
        let (without, negative) = (settled(0.0), settled(-0.2));
        for lbn in rig.spread(20) {
            let (read, write) = (Request::read(lbn, 1), Request::write(lbn, 1));
            let reads = seek(&without, Lbn(0), read);
            assert_eq!(seek(&negative, Lbn(0), read), reads, "{} to {lbn}", rig.name());
            let sooner = reads.saturating_sub(Nanos(200_000));
            assert_eq!(seek(&negative, Lbn(0), write), sooner, "{} to {lbn}", rig.name());
        }
    }
}

#[test]
fn seek_never_exceeds_the_longest_of_its_curve() {
    for rig in all_plain() {
        let spec = &rig.spec.mechanics;
        let curve = SeekCurve::for_reads(&spec.seek, rig.spec.geometry.cylinders);
        let writes = SeekCurve::for_writes(&spec.seek, rig.spec.geometry.cylinders);
        let longest = (0..rig.spec.geometry.cylinders)
            .map(|d| curve.time(d).max(writes.as_ref().map_or(Nanos::ZERO, |writes| writes.time(d))))
            .max()
            .expect("a disk has cylinders")
            .max(Nanos::from_ms(spec.head_switch_ms));
        let longest = longest + Nanos::from_ms(spec.write_settle_ms.max(0.0));
        let (mut device, mut random) = (rig.device(), seeded(22));
        let mut now = Instant::ZERO;
        for _ in 0..1000 {
            let lbn = any_lbn(&mut random, &rig, 1);
            let request = if random.random() { Request::read(lbn, 1) } else { Request::write(lbn, 1) };
            let done = serve(&mut device, now, request);
            assert!(done.parts.seek <= longest, "{}: {done:?}", rig.name());
            now = done.completed;
        }
    }
}

#[test]
fn write_is_never_faster_than_the_same_read() {
    for rig in all_plain() {
        let mut random = seeded(23);
        for _ in 0..200 {
            let sectors = random.random_range(1..200);
            let lbn = any_lbn(&mut random, &rig, sectors);
            let at = rig.after(Instant::ZERO, random.random_range(0.0..1.0));
            let read = serve(&mut rig.device(), at, Request::read(lbn, sectors)).response();
            let write = serve(&mut rig.device(), at, Request::write(lbn, sectors)).response();
            assert!(write + Nanos(2) >= read, "{}: {lbn}: write {write}, read {read}", rig.name());
        }
    }
}

#[test]
fn added_heads_leave_earlier_tracks_unchanged() {
    let few = small().remove(0).plain();
    let many = few.with(|spec| {
        spec.geometry.heads *= 2;
        spec.capacity_sectors *= 2;
    });
    let (mut one, mut two) = (few.device(), many.device());
    let mut random = seeded(24);
    let (mut now, cylinder) = (Instant::ZERO, 4 * 120);
    for _ in 0..500 {
        let sectors = random.random_range(1..60);
        let request = Request::read(Lbn(random.random_range(0..cylinder - u64::from(sectors))), sectors);
        let done = serve(&mut one, now, request);
        assert_eq!(serve(&mut two, now, request), done);
        now = few.after(done.completed, random.random_range(0.0..1.0));
    }
}
