//! Disks with faults: only commands that meet the fault fail, they take the turns that the fault specifies, and other commands are unaffected.

use crate::media::Asks;
use crate::support::*;
use headstack_model::spec::{Retries, WriteCache};
use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_sim::{CacheUse, Completion, Device, DeviceOptions, Engine, Fault, FaultError, Outcome};
use headstack_workload::{Inbox, Issue};
use rand::RngExt;
use std::collections::BTreeMap;

/// Serves one request alone and returns its completion, with any outcome.
fn ask(device: &mut Device, at: Instant, request: Request) -> Completion {
    device.submit(at, request).expect("nothing else is outstanding");
    let completion = next(device);
    assert_eq!(completion.parts.total(), completion.response());
    completion
}

fn medium(start: Lbn, sectors: u64, turns: Option<u32>, stays: bool) -> Fault {
    Fault::Medium { start, end: start + sectors, turns, stays }
}

fn with(rig: &Rig, faults: &[Fault]) -> Device {
    let mut device = rig.device();
    faults.iter().for_each(|fault| device.inject(*fault).expect("the disk can have it"));
    device
}

#[test]
fn bad_block_read_fails_after_its_retry_turns() {
    for rig in all() {
        let usual = rig.spec.mechanics.retries.map_or(8, |retries| retries.turns_max.max(1));
        for (index, lbn) in rig.spread(12).enumerate() {
            let lbn = Lbn(lbn.0.min(rig.sectors() - 40));
            let bad = lbn + index as u64;
            let turns = [None, Some(1), Some(3)][index % 3];
            let mut device = with(&rig, &[medium(bad, 1, turns, false)]);
            let failed = ask(&mut device, Instant::ZERO, Request::read(lbn, 40));
            assert_eq!(failed.outcome, Outcome::MediumError, "{}", rig.name());
            // The failed read takes the time up to the bad block, and then the turns of its retries.
            let mut sound = rig.device();
            let whole = ask(&mut sound, Instant::ZERO, Request::read(lbn, 40));
            let tried = f64::from(turns.unwrap_or(usual)) * rig.turn();
            let rotation = failed.parts.rotational_latency.0 as f64;
            assert!(
                rotation >= tried - 3.0 && rotation <= tried + 2.0 * rig.turn(),
                "{}: {failed:?}",
                rig.name()
            );
            assert!(failed.parts.media <= whole.parts.media, "{}: no more than all of it", rig.name());
            // Whatever was read ahead, a read that ends with the bad block fails, and a read that begins behind it succeeds.
            let mut at = failed.completed;
            for request in [Request::read(lbn, index as u32 + 1), Request::read(bad + 1, 4)] {
                let expected = if request.end() > bad && request.lbn <= bad {
                    Outcome::MediumError
                } else {
                    Outcome::Done
                };
                let done = ask(&mut device, at, request);
                assert_eq!(done.outcome, expected, "{}: {request:?}", rig.name());
                at = done.completed;
            }
        }
    }
}

#[test]
fn write_cures_a_bad_block_unless_it_is_permanent() {
    for rig in all() {
        let bad = Lbn(rig.sectors() / 3);
        for stays in [false, true] {
            let mut device = with(&rig, &[medium(bad, 4, None, stays)]);
            let outcome = |device: &mut Device, at: Instant, request| {
                let done = ask(device, at, Request { fua: true, ..request });
                (done.outcome, done.completed)
            };
            let (written, at) = outcome(&mut device, Instant::ZERO, Request::write(bad + 1, 2));
            assert_eq!(written, Outcome::Done, "{}", rig.name());
            let good = if stays { Outcome::MediumError } else { Outcome::Done };
            let mut at = at;
            for (lbn, sectors, expected) in [
                (bad + 1, 2, good),
                (bad, 1, Outcome::MediumError),
                (bad + 3, 1, Outcome::MediumError),
                (bad, 4, Outcome::MediumError),
                (bad + 4, 1, Outcome::Done),
            ] {
                let (found, then) = outcome(&mut device, at, Request::read(lbn, sectors));
                assert_eq!(found, expected, "{}: {sectors} from {lbn:?}, stays: {stays}", rig.name());
                at = then;
            }
        }
    }
}

#[test]
fn dirty_bad_block_is_read_from_cache_and_cured_by_destage() {
    for rig in all() {
        let rig = rig.with(|spec| {
            spec.cache.enabled = true;
            spec.cache.write_cache = WriteCache::Full;
            (spec.cache.dirty_max_sectors, spec.cache.dirty_start_sectors) = (600, 600);
        });
        let bad = Lbn(rig.sectors() / 2);
        let mut device = with(&rig, &[medium(bad, 8, None, false)]);
        let written = ask(&mut device, Instant::ZERO, Request::write(bad, 8));
        let read = ask(&mut device, written.completed, Request::read(bad, 8));
        assert_eq!((read.outcome, read.cache), (Outcome::Done, CacheUse::Whole), "{}", rig.name());
        let flushed = ask(&mut device, read.completed, Request::flush());
        let read = ask(&mut device, flushed.completed, Request { fua: true, ..Request::read(bad, 8) });
        assert_eq!(read.outcome, Outcome::Done, "{}", rig.name());
    }
}

#[test]
fn slow_block_delays_only_its_own_accesses_by_its_turns() {
    for rig in all_plain() {
        let turn = rig.turn();
        for (index, lbn) in rig.spread(20).enumerate() {
            let lbn = Lbn(lbn.0.min(rig.sectors() - 16));
            let turns = index as u32 % 4 + 1;
            let fault = Fault::Slow { start: lbn + 3, end: lbn + 5, turns };
            for request in [Request::read(lbn, 8), Request::write(lbn, 8), Request::read(lbn + 4, 1)] {
                let usual = ask(&mut rig.device(), Instant::ZERO, request);
                let slow = ask(&mut with(&rig, &[fault]), Instant::ZERO, request);
                assert_eq!(slow.outcome, Outcome::Done);
                let more = (slow.response() - usual.response()).0 as f64;
                assert_close(rig.name(), more, f64::from(turns) * turn, 6.0);
                assert_eq!(slow.parts.seek, usual.parts.seek, "{}", rig.name());
            }
            for unaffected in [Request::read(lbn, 3), Request::write(lbn + 5, 3)] {
                let usual = ask(&mut rig.device(), Instant::ZERO, unaffected);
                assert_eq!(
                    ask(&mut with(&rig, &[fault]), Instant::ZERO, unaffected),
                    usual,
                    "{}",
                    rig.name()
                );
            }
        }
    }
}

#[test]
fn bad_block_read_always_fails_despite_read_ahead() {
    let mut failed = 0;
    for rig in all() {
        for seed in 0..4 {
            let mut asks = Asks::new(&rig, seed);
            // Two runs of bad blocks among those that are read repeatedly.
            let hot = asks.next().lbn.0.min(rig.sectors() - 400);
            let bad = [hot + 60..hot + 63, hot + 200..hot + 201];
            let runs = bad.clone().map(|run| medium(Lbn(run.start), run.end - run.start, Some(2), true));
            let options = DeviceOptions { seed, ..DeviceOptions::default() };
            let mut device = rig.device_with(&options);
            runs.into_iter().for_each(|fault| device.inject(fault).expect("the disk can have it"));
            let mut at = Instant::ZERO;
            for index in 0..200u64 {
                // Two in three reads are sequential and cross the bad blocks, so that read-ahead meets them too.
                let sectors = asks.random().random_range(1..24);
                let request = match index % 3 {
                    0 => Request::read(Lbn(hot + asks.random().random_range(0..300)), sectors),
                    _ => Request::read(Lbn(hot + 8 * (index % 40)), sectors),
                };
                let done = ask(&mut device, at, request);
                let touches = bad.iter().any(|run| request.lbn.0 < run.end && run.start < request.end().0);
                let expected = if touches { Outcome::MediumError } else { Outcome::Done };
                assert_eq!(done.outcome, expected, "{}, seed {seed}: {done:?}", rig.name());
                failed += u32::from(touches);
                at = done.completed + asks.gap();
            }
        }
    }
    assert!(failed > 1000, "{failed} reads met a bad block");
}

#[test]
fn dead_drive_fails_every_command_after_its_timeout() {
    for rig in all() {
        for seed in 0..12u64 {
            let (from, timeout) =
                (Instant::from_ms(40.0 + seed as f64 * 3.7), Nanos::from_ms((seed % 3) as f64 * 25.0));
            let (mut sound, mut dying) = (rig.device(), rig.device());
            dying.inject(Fault::Dead { from, timeout }).expect("any disk can die");
            let mut asks = Asks::new(&rig, seed);
            let (mut now, mut due, mut before) = (Instant::ZERO, Instant::ZERO, BTreeMap::new());
            let (mut submitted, mut ended) = (0, 0);
            while ended < 200 {
                let room = submitted < 200 && dying.outstanding() < dying.depth();
                let event = dying.poll_timeout().unwrap_or(Instant::MAX);
                let next = if room { event.min(due.max(now)) } else { event };
                now = now.max(next);
                dying.handle_timeout(now);
                sound.handle_timeout(now);
                while let Some(done) = sound.poll_completion() {
                    before.insert(done.submitted, done);
                }
                while let Some(done) = dying.poll_completion() {
                    ended += 1;
                    assert_eq!(done.parts.total(), done.response());
                    if done.completed <= from && done.outcome == Outcome::Done {
                        // Until it dies, the drive completes commands as the sound one does.
                        assert_eq!(before[&done.submitted], done, "{}", rig.name());
                        continue;
                    }
                    assert_eq!(done.outcome, Outcome::Dead, "{}: {done:?}", rig.name());
                    assert_eq!(done.completed, done.submitted.max(from) + timeout, "{}", rig.name());
                }
                if room && due <= now {
                    let request = asks.next();
                    dying.submit(now, request).expect("there is room");
                    if now < from {
                        sound.submit(now, request).expect("it has no more than the other");
                    }
                    submitted += 1;
                    due = now + asks.gap() + Nanos(1);
                }
            }
            assert_eq!(dying.outstanding(), 0, "{}: each comes back once", rig.name());
            assert_eq!(dying.poll_timeout(), None, "{}: then it does nothing", rig.name());
        }
    }
}

#[test]
fn dead_drive_reports_no_media_write_of_dirty_data() {
    let rig = small()[0].with(|spec| {
        spec.cache.write_cache = WriteCache::Full;
        (spec.cache.dirty_max_sectors, spec.cache.dirty_start_sectors) = (600, 600);
        spec.cache.destage_idle_ms = 1e4;
    });
    let mut device = rig.device();
    device.track_media();
    device.inject(Fault::Dead { from: Instant::from_secs(1), timeout: Nanos::ZERO }).expect("it can die");
    let written = ask(&mut device, Instant::ZERO, Request::write(Lbn(100), 8));
    assert_eq!((written.outcome, written.cache), (Outcome::Done, CacheUse::Buffered));
    assert_eq!(ask(&mut device, Instant::from_secs(2), Request::flush()).outcome, Outcome::Dead);
    assert_eq!(device.poll_media_write(), None);
}

#[test]
fn impossible_faults_are_rejected() {
    let rig = &small()[0];
    let sectors = rig.sectors();
    let mut device = rig.device();
    let error = |device: &mut Device, fault| device.inject(fault).expect_err("it cannot have it").to_string();
    let blocks = |start: u64, end: u64| {
        format!("blocks {start} to {end} (not included) are outside the drive's 0 to {sectors}")
    };
    assert_eq!(
        error(&mut device, medium(Lbn(7), 0, None, false)),
        "no block from 7 on: the count is 0 (1 or more)"
    );
    assert_eq!(
        error(&mut device, medium(Lbn(sectors - 1), 2, None, false)),
        blocks(sectors - 1, sectors + 1)
    );
    let slow = |turns| Fault::Slow { start: Lbn(0), end: Lbn(1), turns };
    assert_eq!(error(&mut device, slow(0)), "0 turns are outside 1 to 100000");
    assert_eq!(device.inject(slow(100_001)), Err(FaultError::Turns(100_001)));
}

#[test]
fn engine_returns_device_errors() {
    let rigs = [
        small()[0].clone(),
        small()[1].with(|spec| spec.mechanics.retries = Some(Retries { probability: 0.0, turns_max: 3 })),
    ];
    let mut engine = Engine::new(rigs.iter().map(Rig::device).collect());
    engine.inject(0, medium(Lbn(50), 1, None, false)).expect("the disk can have it");
    engine
        .inject(1, Fault::Dead { from: Instant::from_ms(1.0), timeout: Nanos::from_ms(5.0) })
        .expect("so can this");
    let mut inbox = Inbox::default();
    for (volume, lbn) in [(0, 48), (0, 60), (1, 48), (1, 60)] {
        let id = u64::from(volume) * 100 + lbn;
        inbox.put(Instant::ZERO, Issue::new(volume, Request::read(Lbn(lbn), 4), id));
    }
    let mut ended = BTreeMap::new();
    engine.run(&mut inbox, &mut |one| {
        ended.insert(one.id, (one.completion.outcome, one.completion.completed));
    });
    assert_eq!((ended[&48].0, ended[&60].0), (Outcome::MediumError, Outcome::Done));
    // A disk gets its second request when it has completed the first.
    let dead = |ms| (Outcome::Dead, Instant::from_ms(ms));
    assert_eq!((ended[&148], ended[&160]), (dead(6.0), dead(11.0)));
}
