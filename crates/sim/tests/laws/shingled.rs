//! Drive-managed shingled disks: the cost of reads follows the map of extents, sequential writes run at the media's rate, scattered writes
//! are quick until the cache is full, and an idle drive cleans everything.

use crate::media::Run;
use crate::support::*;
use headstack_model::spec::{ShingledSpec, WriteCache};
use headstack_model::{Instant, Lbn, Nanos, Request, TrackPlace};
use headstack_sim::{Device, Engine, Finished, Observer};
use headstack_workload::{Closed, Pattern, Region, Shape};
use rand::RngExt;

struct NoObserver;

impl Observer for NoObserver {
    fn finished(&mut self, _finished: &Finished) {}
}

/// The shipped shingled drives.
fn shingled() -> Vec<Rig> {
    let rigs = shipped_shingled();
    assert_eq!(rigs.len(), 2);
    rigs
}

/// The same disk without shingled bands.
fn without(rig: &Rig) -> Rig {
    rig.with(|spec| spec.shingled = None)
}

fn keys(rig: &Rig) -> &ShingledSpec {
    rig.spec.shingled.as_ref().expect("the drive is shingled")
}

/// The same disk with a map of at most 512 entries, which a few hundred scattered writes fill.
fn with_small_map(rig: &Rig) -> Rig {
    rig.with(|spec| {
        if let Some(keys) = &mut spec.shingled {
            keys.map_entries_max = 512;
        }
    })
}

/// Runs random writes of 4 KiB to the disk's first `sectors` sectors, one at a time. Returns the time at the end.
fn write_scattered(device: &mut Device, mut now: Instant, count: u64, sectors: u64) -> Instant {
    let mut random = seeded(now.0);
    for _ in 0..count {
        let lbn = Lbn(random.random_range(0..sectors / 8) * 8);
        now = serve(device, now, Request::write(lbn, 8)).completed;
    }
    now
}

/// Writes the disk's first `sectors` sectors in order, in requests of 1 MiB, and flushes. Returns the time at the end.
fn write_in_order(device: &mut Device, mut now: Instant, sectors: u64) -> Instant {
    for first in (0..sectors).step_by(2048) {
        now = serve(device, now, Request::write(Lbn(first), 2048)).completed;
    }
    serve(device, now, Request::flush()).completed
}

/// Leaves the drive idle until it has cleaned all bands. Returns the time at the end.
fn idle(device: &mut Device) -> Instant {
    let mut now = Instant::ZERO;
    while let Some(next) = device.poll_timeout() {
        now = next;
        device.handle_timeout(now);
    }
    now
}

#[test]
fn reads_of_a_disk_that_was_never_written_are_those_without_bands() {
    for rig in shingled() {
        let (mut one, mut other) = (rig.device(), without(&rig).device());
        let (mut random, mut now) = (seeded(1), Instant::ZERO);
        for read in 0..600u64 {
            let lbn = if read % 3 == 0 { any_lbn(&mut random, &rig, 256) } else { Lbn(read * 256) };
            let [found, expected] =
                [&mut one, &mut other].map(|device| serve(device, now, Request::read(lbn, 256)));
            assert_eq!(found, expected, "{}", rig.name());
            now = found.completed;
        }
    }
}

#[test]
fn reads_of_a_disk_written_in_order_lose_no_more_than_the_seeks_of_the_map() {
    for rig in shingled() {
        // Eight bands and a part of the ninth, which stays in the cache as one piece.
        let sectors = u64::from(keys(&rig).band_sectors) * 8 + 20 * 2048;
        let (mut one, mut other) = (rig.device(), without(&rig).device());
        let written = [&mut one, &mut other].map(|device| write_in_order(device, Instant::ZERO, sectors));
        assert_eq!(one.activity().shingled.bands_streamed, 8, "{}", rig.name());
        // The longest detour: a seek over the whole disk to the cache and one back, each with a turn of the platter.
        let ends = [0, rig.spec.geometry.cylinders - 1].map(|cylinder| TrackPlace { cylinder, head: 0 });
        let seeks = one.drive().mechanics.reposition(ends[0], ends[1], true);
        let detour = Nanos(2 * (seeks.0 + rig.turn() as u64));
        let mut random = seeded(2);
        let mut now = written[0].max(written[1]);
        for _ in 0..400 {
            let lbn = Lbn(random.random_range(0..sectors / 256) * 256);
            let found = serve(&mut one, now, Request::read(lbn, 256));
            let expected = serve(&mut other, now, Request::read(lbn, 256));
            assert!(found.completed <= expected.completed + detour, "{}: {lbn:?}", rig.name());
            now = found.completed.max(expected.completed);
        }
    }
}

#[test]
fn stream_of_writes_runs_at_the_rate_of_the_media() {
    for rig in shingled() {
        let sectors = u64::from(keys(&rig).band_sectors) * 20;
        let (mut one, mut other) = (rig.device(), without(&rig).device());
        let [found, expected] =
            [&mut one, &mut other].map(|device| write_in_order(device, Instant::ZERO, sectors));
        let ratio = found.0 as f64 / expected.0 as f64;
        assert!((0.95..1.1).contains(&ratio), "{}: {ratio}", rig.name());
        let shingled = one.activity().shingled;
        assert!(shingled.bands_streamed == 20 && shingled.records == 0, "{}: {shingled:?}", rig.name());
    }
}

#[test]
fn stream_with_several_writes_outstanding_bypasses_the_cache() {
    for rig in shingled() {
        let sectors = u64::from(keys(&rig).band_sectors) * 20;
        let region = Region { first: Lbn(0), sectors };
        let shape =
            Shape { region, pattern: Pattern::Sequential, sectors: 2048, alignment: 1, read_share: 0.0 };
        let mut load = Closed::new(shape, 4, sectors / 2048, 1).expect("the load fits");
        let mut engine = Engine::new(vec![rig.device()]);
        engine.run(&mut load, &mut |_| {});
        let shingled = engine.device(0).activity().shingled;
        // The last bands are still in the volatile cache.
        assert!(shingled.bands_streamed >= 16 && shingled.records == 0, "{}: {shingled:?}", rig.name());
    }
}

#[test]
fn scattered_writes_fall_to_the_rate_of_cleaning_once_the_map_is_full() {
    for rig in shingled().iter().map(with_small_map) {
        let mut device = rig.device();
        let sectors = rig.sectors();
        let early = write_scattered(&mut device, Instant::ZERO, 400, sectors);
        assert_eq!(device.activity().shingled.bands_cleaned, 0, "{}", rig.name());
        // These writes also fill the volatile cache. From then on each write waits for the media.
        let full = write_scattered(&mut device, early, 1400, sectors);
        let late = write_scattered(&mut device, full, 100, sectors);
        let shingled = device.activity().shingled;
        let (before, after) = (400.0 / (early - Instant::ZERO).as_secs(), 100.0 / (late - full).as_secs());
        assert!(before > 30.0 * after, "{}: {before} and {after} writes a second", rig.name());
        let band_s = shingled.stalled.as_secs() / shingled.bands_cleaned as f64;
        // From a block anywhere in the band to its end: half a band on average is read, saved and written.
        assert!((0.25..1.0).contains(&band_s), "{}: {band_s} s a band", rig.name());
    }
}

#[test]
fn run_ends_with_its_last_request_though_bands_are_not_clean() {
    for rig in shingled() {
        let region = Region { first: Lbn(0), sectors: rig.sectors() };
        let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 0.0 };
        let mut load = Closed::new(shape, 4, 300, 1).expect("the load fits");
        let mut engine = Engine::new(vec![rig.device()]);
        let mut last = Instant::ZERO;
        engine.run(&mut load, &mut |finished| last = finished.completion.completed);
        let shingled = engine.device(0).activity().shingled;
        assert_eq!(shingled.bands_cleaned, 0, "{}", rig.name());
        assert!(shingled.records > 0 && engine.device(0).view().dirty_sectors == 0, "{}", rig.name());
        assert!((250..=300).contains(&shingled.bands_to_clean), "{}: {shingled:?}", rig.name());
        // With more time, the drive cleans bands.
        engine.advance(last + Nanos::from_secs(60), &mut load, &mut NoObserver);
        let later = engine.device(0).activity().shingled;
        assert!(later.bands_cleaned > 10, "{}", rig.name());
        assert_eq!(later.bands_to_clean + later.bands_cleaned, shingled.bands_to_clean, "{}", rig.name());
    }
}

#[test]
fn idle_drive_cleans_each_band_once() {
    for rig in shingled() {
        let mut device = rig.device();
        let band = u64::from(keys(&rig).band_sectors);
        let end = write_scattered(&mut device, Instant::ZERO, 300, 10 * band);
        idle(&mut device);
        let shingled = device.activity().shingled;
        assert_eq!((shingled.bands_cleaned, shingled.full_stalls), (10, 0), "{}", rig.name());
        // From its first cached block on, each band is read once, saved once and written once; the cached blocks are read in addition. The
        // first of 30 blocks lies a 31st of a band behind its start.
        let moved = shingled.bytes_moved as f64 / (10 * 3 * band * 512) as f64;
        assert!((moved - 30.0 / 31.0).abs() < 0.02, "{}: {moved}", rig.name());
        assert!(end < Instant::ZERO + Nanos::from_secs(60) && device.poll_timeout().is_none());
    }
}

#[test]
fn read_over_cached_pieces_takes_an_access_for_each() {
    for rig in shingled() {
        let mut device = rig.device();
        // The writes are apart and each is flushed, so that each becomes a separate record.
        let mut now = Instant::ZERO;
        let middle = rig.sectors() / 2 / 2048 * 2048;
        for piece in 0..4 {
            now = serve(&mut device, now, Request::write(Lbn(middle + 256 * piece), 8)).completed;
            now = serve(&mut device, now, Request::flush()).completed;
        }
        let read = serve(&mut device, now, Request::read(Lbn(middle), 1024));
        let plain = serve(&mut without(&rig).device(), now, Request::read(Lbn(middle), 1024));
        // The read has eight pieces, so it needs at least six more seeks over half of the disk than the plain one.
        let more = read.parts.seek.as_ms() - plain.parts.seek.as_ms();
        assert!(more > 6.0 * 5.0, "{}: {more} ms", rig.name());
    }
}

#[test]
fn flushed_data_survive_power_cuts_of_shingled_disks() {
    let off = |rig: &Rig| rig.with(|spec| spec.cache.write_cache = WriteCache::None);
    let rigs: Vec<Rig> = shingled().iter().flat_map(|rig| [with_small_map(rig), off(rig)]).collect();
    for seed in 0..40 {
        let rig = &rigs[seed as usize % rigs.len()];
        let mut run = Run::new(rig, seed, false);
        let at = Instant::ZERO + Nanos::from_ms(run.asks.random().random_range(1.0..800.0));
        run.until(at, |_, _, _| {});
        run.device.cut_power(at);
        run.listen();
        let judged = run.history.judge(|block| run.holds(block));
        judged.unwrap_or_else(|loss| panic!("seed {seed} ({}): {loss}", rig.name()));
    }
}
