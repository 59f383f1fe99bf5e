//! Thousands of power cuts: data that were flushed or forced are on the media afterwards, and no block holds data that were not written to it.

use crate::history::Loss;
use crate::media::{Run, writers};
use crate::support::*;
use headstack_model::Nanos;
use headstack_model::spec::WriteCache;
use rand::RngExt;

/// Cuts a drive's power at a time drawn from the seed, and judges what its media hold.
fn cut(rig: &Rig, seed: u64, lies: bool) -> (Run, Result<(), Loss>) {
    let mut run = Run::new(rig, seed, lies);
    let mut left = run.asks.random().random_range(1..200);
    let step = Nanos::from_ms(2.0);
    // The cut follows a number of submissions, not a time, so that fast and slow drives are cut early and late, busy and idle.
    while left > 0 {
        let (submitted, next) = (run.history.len(), run.now + step);
        run.until(next, |_, _, _| {});
        run.now = next;
        left -= (run.history.len() - submitted).clamp(1, left);
    }
    let at = rig.after(run.now, run.asks.random().random_range(0.0..3.0));
    run.until(at, |_, _, _| {});
    run.device.cut_power(at);
    run.listen();
    let judged = run.history.judge(|block| run.holds(block));
    (run, judged)
}

fn cut_many(seeds: u64) {
    let rigs = writers();
    let (mut safe, mut lost) = (0, 0);
    for seed in 0..seeds {
        let rig = &rigs[(seed % rigs.len() as u64) as usize];
        let (run, judged) = cut(rig, seed, false);
        judged.unwrap_or_else(|loss| panic!("seed {seed} ({}): {loss}", rig.name()));
        // The test is void if the disks had always written everything before the cut, or nothing.
        safe += u64::from(!run.media.is_empty());
        lost += u64::from(run.writes.iter().any(|(submitted, (_, request))| {
            (request.lbn.0..request.end().0)
                .any(|block| run.media.get(&block).is_none_or(|of| of < submitted))
        }));
    }
    assert!(safe > seeds / 2 && lost > seeds / 4, "of {seeds} cuts {safe} found data, {lost} lost some");
}

#[test]
fn flushed_data_survive_500_power_cuts() {
    cut_many(500);
}

/// Run by `make cuts`.
#[test]
#[ignore = "takes a while: make cuts"]
fn flushed_data_survive_10000_power_cuts() {
    cut_many(10_000);
}

#[test]
fn drive_that_ignores_flushes_is_detected() {
    let mut with_segments = 0;
    for rig in writers() {
        let caught = (0..60).filter(|seed| cut(&rig, *seed, true).1.is_err()).count();
        match rig.spec.cache.write_cache {
            // Without a write cache there is nothing to lose.
            WriteCache::None => assert_eq!(caught, 0, "{}", rig.name()),
            WriteCache::Full => assert!(caught > 4, "{}: caught {caught} times in 60", rig.name()),
            // Drives that cache writes in segments destage them at once, so that a single drive may lose nothing.
            _ => with_segments += caught,
        }
    }
    assert!(with_segments > 5, "caught {with_segments} times");
}
