//! When a write is reported as completed, and when it is on the media.

use crate::support::*;
use headstack_model::spec::{BusSpec, CacheSpec, WriteCache, ZeroLatency};
use headstack_model::{Extent, Instant, Lbn, Nanos, Request};
use headstack_sim::Device;
use headstack_workload::{Closed, Pattern, Region, Shape};

/// The rig with a fast bus, and with a write cache of `sectors` sectors that is destaged only when it is full or flushed.
fn write_back(rig: &Rig, sectors: u64) -> Rig {
    rig.plain().with(|spec| {
        spec.cache = CacheSpec {
            segments: 8,
            segment_sectors: 512,
            write_cache: WriteCache::Full,
            dirty_max_sectors: sectors,
            dirty_start_sectors: sectors,
            destage_idle_ms: 1e6,
            ..CacheSpec::default()
        };
        spec.bus = BusSpec { read_us_per_sector: 1.0, write_us_per_sector: 1.0, ..BusSpec::default() };
        spec.overhead.after_read.write_ms = 0.2;
        spec.overhead.after_write = spec.overhead.after_read;
    })
}

#[test]
fn cached_write_is_reported_once_its_data_are_buffered() {
    for rig in all() {
        let rig = write_back(&rig, 4096);
        let (mut device, mut now) = (rig.device(), Instant::ZERO);
        for lbn in rig.spread(30) {
            let done = serve(&mut device, now, Request::write(Lbn(lbn.0.min(rig.sectors() - 64)), 64));
            assert_eq!(done.response(), Nanos(200_000 + 64_000), "{}", rig.name());
            now = done.completed;
        }
    }
}

#[test]
fn forced_write_is_reported_only_once_on_the_media() {
    for rig in all() {
        let rig = write_back(&rig, 4096);
        let through = rig.with(|spec| spec.cache.write_cache = WriteCache::None);
        for lbn in rig.spread(20) {
            let write = Request::write(Lbn(lbn.0.min(rig.sectors() - 16)), 16);
            let forced = serve(&mut rig.device(), Instant::ZERO, Request { fua: true, ..write });
            let plain = serve(&mut through.device(), Instant::ZERO, write);
            for done in [forced, plain] {
                let spt = rig.geometry().extent_at(write.lbn).sectors_per_track;
                let least = rig.turn() * 15.0 / f64::from(spt.max(16));
                assert!(done.parts.media.0 as f64 >= least * 0.99, "{}: {done:?}", rig.name());
            }
            assert_eq!(forced.completed, plain.completed, "{}", rig.name());
        }
    }
}

#[test]
fn write_or_flush_is_reported_as_its_sector_passes_the_head() {
    for rig in all() {
        let rig = write_back(&rig, 4096).with(|spec| {
            spec.overhead = Default::default();
            spec.bus = BusSpec::default();
        });
        for lbn in rig.spread(20) {
            let write = Request::write(lbn, 1);
            let forced = serve(&mut rig.device(), Instant::ZERO, Request { fua: true, ..write });
            let mut device = rig.device();
            let cached = serve(&mut device, Instant::ZERO, write);
            assert_eq!(cached.completed, Instant::ZERO);
            let flushed = serve(&mut device, Instant::ZERO, Request::flush());
            for done in [forced, flushed] {
                let off = past_sector(&rig, done.completed, lbn);
                assert!(off.abs() < 1e-5, "{}: {off} turns past the sector", rig.name());
            }
            assert_eq!(flushed.completed, forced.completed, "{}: nothing else to do", rig.name());
        }
    }
}

#[test]
fn flush_waits_for_earlier_writes() {
    for rig in all() {
        let rig = write_back(&rig, 4096);
        // Twenty blocks on different tracks take at least nineteen of the shortest seeks, in any order.
        let (mut device, mut now) = (rig.device(), Instant::ZERO);
        for lbn in rig.spread(20) {
            now = serve(&mut device, now, Request::write(lbn, 1)).completed;
        }
        let flush = serve(&mut device, now, Request::flush());
        let curve =
            headstack_model::SeekCurve::for_reads(&rig.spec.mechanics.seek, rig.spec.geometry.cylinders);
        let least = (1..rig.spec.geometry.cylinders).map(|distance| curve.time(distance)).min();
        let least = least.unwrap_or_default().0 as f64 + rig.spec.mechanics.write_settle_ms * 1e6;
        let found = flush.response().0 as f64;
        assert!(found > 19.0 * least.max(0.0), "{}: {found} ns", rig.name());
        // The twenty rotational latencies together almost certainly exceed two turns.
        assert!(found > 2.0 * rig.turn(), "{}: {found} ns", rig.name());
        // After the flush, another one has nothing to write.
        let again = serve(&mut device, flush.completed, Request::flush());
        assert_eq!(again.response(), Nanos(200_000), "{}", rig.name());
    }
}

#[test]
fn flush_waits_for_the_destage_in_progress() {
    for rig in all() {
        let rig = write_back(&rig, 4096).with(|spec| {
            spec.cache.destage_idle_ms = 50.0;
            spec.overhead = Default::default();
            spec.bus = BusSpec::default();
        });
        for lbn in rig.spread(20) {
            let mut device = rig.device();
            serve(&mut device, Instant::ZERO, Request::write(lbn, 1));
            // At that time the destage has just begun, so that it cannot have ended.
            let flushed = serve(&mut device, Instant::from_ms(50.001), Request::flush());
            let off = past_sector(&rig, flushed.completed, lbn);
            assert!(flushed.response() > Nanos::ZERO, "{}", rig.name());
            assert!(off.abs() < 1e-5, "{}: {off} turns past the sector", rig.name());
        }
    }
}

#[test]
fn flush_overhead_adds_to_its_destages() {
    for rig in all() {
        let rig = write_back(&rig, 4096);
        let slow = rig.with(|spec| spec.cache.flush_ms = 7.5);
        let flush = |rig: &Rig| {
            let mut device = rig.device();
            let now = serve(&mut device, Instant::ZERO, Request::write(Lbn(rig.sectors() / 2), 8)).completed;
            serve(&mut device, now, Request::flush()).response()
        };
        assert_eq!(flush(&slow), flush(&rig) + Nanos(7_500_000), "{}", rig.name());
    }
}

/// The rate in sectors per second of a closed load of sequential writes, measured over the second half of its requests.
fn sustained(rig: &Rig, device: Device, first: Lbn, sectors: u32, requests: u64) -> f64 {
    let region = Region { first, sectors: (rig.sectors() - first.0).min(u64::from(sectors) * requests) };
    let shape = Shape { region, pattern: Pattern::Sequential, sectors, alignment: 1, read_share: 0.0 };
    let mut load = Closed::new(shape, 1, requests, 1).expect("the load fits");
    let (finished, end) = run(device, &mut load);
    let half = finished.len() / 2;
    let since = finished[half - 1].completion.completed;
    (finished.len() - half) as f64 * f64::from(sectors) / (end - since).as_secs()
}

#[test]
fn dirty_limit_slows_sequential_writes_to_the_media_rate() {
    for rig in all() {
        let rig = write_back(&rig, 512).with(|spec| spec.cache.dirty_start_sectors = 0);
        let spt = f64::from(rig.geometry().extent_at(Lbn(0)).sectors_per_track);
        let media = spt / rig.turn() * 1e9;
        let bus = 1e6;
        if media > 0.5 * bus {
            continue;
        }
        let rate = sustained(&rig, rig.device(), Lbn(0), 64, 400);
        assert!(rate <= media * 1.001, "{}: {rate} of {media} sectors a second", rig.name());
        // If the next run is in the buffer before the head reaches its place, the drive does not lose a turn after each run.
        assert!(rate > 0.15 * media, "{}: {rate} of {media} sectors a second", rig.name());
    }
}

#[test]
fn dirty_limit_slows_random_writes_to_the_rate_of_the_arm() {
    for rig in all() {
        let rig = write_back(&rig, 64);
        let through = rig.with(|spec| spec.cache.write_cache = WriteCache::None);
        let shape = Shape { read_share: 0.0, ..random_blocks(&rig) };
        let through = closed_rate(through.device(), shape, 1, 2000);
        let back = closed_rate(rig.device(), shape, 1, 2000);
        // A sweep over 64 dirty blocks gains at most as much as a queue of that depth.
        let queue = closed_rate(rig.plain().queued(64, "sptf"), shape, 64, 2000);
        assert!(back > through, "{}: {back} and {through}", rig.name());
        assert!(back < queue * 1.1, "{}: {back} and {queue}", rig.name());
    }
}

#[test]
fn dirty_data_are_read_from_the_buffer() {
    for rig in all() {
        let rig = write_back(&rig, 4096);
        let mut device = rig.device();
        let lbn = Lbn(rig.sectors() / 3);
        let write = serve(&mut device, Instant::ZERO, Request::write(lbn, 32));
        let read = serve(&mut device, write.completed, Request::read(lbn + 4, 8));
        assert_eq!(read.response(), Nanos(8_000), "{}", rig.name());
    }
}

#[test]
fn idle_drive_destages_dirty_data() {
    for rig in all() {
        let rig = write_back(&rig, 4096).with(|spec| spec.cache.destage_idle_ms = 50.0);
        let mut device = rig.device();
        let write = serve(&mut device, Instant::ZERO, Request::write(Lbn(rig.sectors() / 3), 32));
        let flush = |wait_ms: f64| {
            let mut device = rig.device();
            serve(&mut device, Instant::ZERO, write.request);
            let at = write.completed + Nanos::from_ms(wait_ms);
            serve(&mut device, at, Request::flush()).response()
        };
        assert!(flush(40.0) > Nanos(200_000), "{}: it is still dirty", rig.name());
        assert_eq!(flush(400.0), Nanos(200_000), "{}: it is clean", rig.name());
    }
}

#[test]
fn oversized_write_loses_turns_if_it_reconnects_late() {
    for rig in all() {
        let time = |ratio: f64, segment: u32| {
            let rig = rig.plain().with(|spec| {
                spec.cache = CacheSpec {
                    enabled: true,
                    segments: 1,
                    segment_sectors: segment,
                    ..CacheSpec::default()
                };
                spec.bus =
                    BusSpec { buffer_empty_ratio: ratio, reconnect_first_ms: 0.05, ..BusSpec::default() };
                spec.bus.write_us_per_sector = 1.0;
            });
            serve(&mut rig.device(), Instant::ZERO, Request::write(Lbn(0), 1024)).response()
        };
        let (whole, early, late) = (time(0.75, 2048), time(0.75, 200), time(0.001, 200));
        // The write reconnects about five times. If the buffer is empty by then, each reconnection that no track switch hides costs a turn.
        assert!(late >= whole + Nanos((1.9 * rig.turn()) as u64), "{}: {late} after {whole}", rig.name());
        assert!(early < late, "{}: {early} and {late}", rig.name());
    }
}

#[test]
fn write_without_prebuffering_sends_data_once_the_arm_is_free() {
    for rig in all() {
        let through = write_back(&rig, 4096).with(|spec| spec.cache.write_cache = WriteCache::None);
        let cached = |early| {
            through.with(|spec| {
                (spec.cache.write_cache, spec.cache.write_segments) = (WriteCache::Segment, 4);
                spec.cache.write_prebuffering = early;
            })
        };
        let first = Request::write(Lbn(rig.sectors() / 2), 64);
        let on_media = serve(&mut through.device(), Instant::ZERO, first).completed;
        let then = |early, lbn| {
            let mut device = cached(early).device();
            let at = serve(&mut device, Instant::ZERO, first).completed;
            assert!(at + Nanos(300_000) < on_media, "{}: {at} {on_media}", rig.name());
            serve(&mut device, at, Request::write(lbn, 64))
        };
        let (elsewhere, behind) = (Lbn(rig.sectors() / 8), first.end());
        assert_eq!(then(true, elsewhere).response(), Nanos(264_000), "{}", rig.name());
        assert_eq!(then(false, behind).response(), Nanos(264_000), "{}: it joins the first", rig.name());
        // The data cross the bus during the seek.
        assert_eq!(then(false, elsewhere).completed, on_media + Nanos(64_000), "{}", rig.name());
    }
}

#[test]
fn write_through_without_prebuffering_waits_for_the_arm() {
    let mut sooner = 0;
    for rig in all() {
        // Both writes' data take longer than a turn.
        let us = 1.5 * rig.turn() / 1e3 / 64.0;
        let then = |early| {
            let slow = rig.plain().with(|spec| {
                spec.bus.write_us_per_sector = us;
                spec.cache.write_prebuffering = early;
                spec.queue.depth = 2;
            });
            let mut device = slow.device();
            let [first, second] =
                [rig.sectors() / 2, rig.sectors() / 8].map(|lbn| Request::write(Lbn(lbn), 64));
            let done = serve_all(&mut device, Instant::ZERO, &[first, second]);
            (done[0].completed, done[1].completed)
        };
        let (early, late) = (then(true), then(false));
        // If the second write's data are transferred early, they occupy the bus when the first write is to be reported.
        assert!(late.0 <= early.0, "{}: {late:?} and {early:?}", rig.name());
        let data = Nanos((64.0 * us * 1e3) as u64);
        assert!(late.1 >= late.0 + data, "{}: {late:?} and {data} of data", rig.name());
        sooner += u32::from(early.1 < late.1);
    }
    assert!(sooner > 5, "of {} drives", all().len());
}

#[test]
fn late_write_waits_a_turn_with_or_without_spare_sectors() {
    let mut judged = 0;
    for rig in shipped() {
        // A track with blocks on fewer than three quarters of its sectors.
        let is_short = |run: &Extent| {
            let track = rig.geometry().track_at(run.first);
            (track.first, track.sectors) == (run.first, run.sectors)
                && (8..run.sectors_per_track * 3 / 4).contains(&run.sectors)
        };
        let Some(run) = rig.spread(2000).map(|lbn| rig.geometry().extent_at(lbn)).find(is_short) else {
            continue;
        };
        let second_takes = |waits_skip_spares: bool| {
            let rig = rig.plain().zero_latency(ZeroLatency::None).with(|spec| {
                spec.bus = BusSpec { write_us_per_sector: 5.0, ..BusSpec::default() };
                spec.mechanics.waits_skip_spares = waits_skip_spares;
            });
            let mut device = rig.device();
            let first = serve(&mut device, Instant::ZERO, Request::write(run.first, 1));
            // Its block passes the head at once, but its data arrive 5 µs later.
            let second = serve(&mut device, first.completed, Request::write(run.first + 1, 1));
            second.response().0 as f64
        };
        let sector = rig.turn() / f64::from(run.sectors_per_track);
        let is_near = |time: f64, sectors: u32| (time / sector - f64::from(sectors)).abs() < 0.1;
        assert!(is_near(second_takes(false), run.sectors_per_track + 1), "{}", rig.name());
        assert!(is_near(second_takes(true), run.sectors + 1), "{}: as DiskSim", rig.name());
        judged += 1;
    }
    assert!(judged > 1, "{judged} drives");
}
