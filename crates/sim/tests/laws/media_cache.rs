//! The log on the media: most writes that must be safe are quick, and they are safe.

use crate::support::*;
use headstack_model::spec::WriteCache;
use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_sim::{Device, Fault};

/// Drives with such a log, each with its volatile write cache on and off.
fn logging() -> Vec<[Rig; 2]> {
    let off = |rig: &Rig| rig.with(|spec| spec.cache.write_cache = WriteCache::None);
    let drives = shipped_with_logs();
    assert!(!drives.is_empty());
    drives
        .into_iter()
        .map(|rig| {
            let off = off(&rig);
            [rig, off]
        })
        .collect()
}

/// Runs random writes of 8 sectors, one at a time, each followed by a flush if `flushes`. Returns the time from a write's submission to the
/// end of the write or flush.
fn safe_writes(device: &mut Device, rig: &Rig, count: usize, flushes: bool) -> Vec<Nanos> {
    let (mut random, mut now) = (seeded(4), Instant::ZERO);
    (0..count)
        .map(|_| {
            let begun = now;
            let lbn = Lbn(any_lbn(&mut random, rig, 8).0 / 8 * 8);
            now = serve(device, now, Request::write(lbn, 8)).completed;
            if flushes {
                now = serve(device, now, Request::flush()).completed;
            }
            now - begun
        })
        .collect()
}

fn mean_ms(times: &[Nanos]) -> f64 {
    times.iter().map(|time| time.as_ms()).sum::<f64>() / times.len() as f64
}

#[test]
fn safe_writes_are_2_to_3_times_faster_with_cache_off() {
    // Measured on drives of one maker. The logs of others are known from their sheets only.
    let is_measured = |rig: &Rig| {
        rig.spec.firmware.as_deref().is_some_and(|class| class.starts_with("hgst") || class.starts_with("wd"))
    };
    for [on, off] in logging().into_iter().filter(|[on, _]| is_measured(on)) {
        let flushed = safe_writes(&mut on.device(), &on, 600, true);
        let logged = safe_writes(&mut off.device(), &off, 6000, false);
        let gain = mean_ms(&flushed) / mean_ms(&logged);
        assert!((2.0..3.3).contains(&gain), "{}: {gain}", on.name());
    }
}

#[test]
fn most_safe_writes_are_fast_and_few_wait_for_the_log() {
    for [_, off] in logging() {
        let mut times = safe_writes(&mut off.device(), &off, 6000, false);
        times.sort_unstable();
        let quantile = |share: f64| times[(share * times.len() as f64) as usize].as_ms();
        assert!(quantile(0.9) < 5.0, "{}: {}", off.name(), quantile(0.9));
        assert!((20.0..130.0).contains(&quantile(0.999)), "{}: {}", off.name(), quantile(0.999));
        assert!(quantile(0.9999) < 200.0, "{}: {}", off.name(), quantile(0.9999));
    }
}

#[test]
fn idle_drive_empties_its_log() {
    for [_, off] in logging() {
        let mut device = off.device();
        let times = safe_writes(&mut device, &off, 100, false);
        let before = device.activity().destages.accesses;
        let end = Instant(times.iter().map(|time| time.0).sum());
        device.handle_timeout(end + Nanos::from_ms(20_000.0));
        let home = device.activity().destages.accesses;
        assert!(before == 0 && (90..=100).contains(&home), "{}: {before}, {home}", off.name());
        assert_eq!(device.poll_timeout(), None, "{}: nothing is left to do", off.name());
    }
}

#[test]
fn large_writes_bypass_the_log() {
    for [_, off] in logging() {
        let without = off.with(|spec| spec.media_cache = None);
        for lbn in off.spread(20) {
            let request = Request::write(Lbn(lbn.0 / 8 * 8), 1024);
            let [logs, plain] =
                [&off, &without].map(|rig| serve(&mut rig.device(), Instant::ZERO, request).response());
            assert_eq!(logs, plain, "{}", off.name());
        }
    }
}

#[test]
fn write_to_a_bad_block_cures_it_despite_the_log() {
    for [_, off] in logging() {
        let mut device = off.device();
        let bad = Lbn(off.sectors() / 3 / 8 * 8);
        let fault = Fault::Medium { start: bad, end: bad + 8, turns: Some(2), stays: false };
        device.inject(fault).expect("the disk has these blocks");
        let now = serve(&mut device, Instant::ZERO, Request::write(bad, 8)).completed;
        serve(&mut device, now, Request::read(bad, 8));
    }
}

#[test]
fn reported_write_is_on_the_media() {
    for [_, off] in logging() {
        let mut device = off.device();
        device.track_media();
        let (mut random, mut now) = (seeded(9), Instant::ZERO);
        for _ in 0..1500 {
            let request = Request::write(Lbn(any_lbn(&mut random, &off, 8).0 / 8 * 8), 8);
            let submitted = now;
            now = serve(&mut device, now, request).completed;
            let written = device.poll_media_write().expect("a write that is done is on the media");
            assert_eq!(
                (written.start, written.end, written.submitted),
                (request.lbn, request.end(), submitted)
            );
            assert!(written.at <= now, "{}: {written:?} after {now}", off.name());
            // The later move from the log to the block's place is not reported again.
            assert_eq!(device.poll_media_write(), None, "{}", off.name());
        }
    }
}
