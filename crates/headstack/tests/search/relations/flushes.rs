//! Flushes and synchronous writes, as Linux sends them to a disk.

use super::{Case, MARGIN, Relation, Verdict, at_least};
use crate::bench::{Bench, Machine};
use crate::draw::{Draw, GIB, KIB};
use crate::job_text::{JobKeys, JobText, bytes};

pub(super) fn relations() -> Vec<Relation> {
    vec![
        Relation {
            name: "flush_of_no_cache_costs_nothing",
            bound: "without a volatile write cache, writes with fsync=1 run at 0.95 of the rate without it or more",
            draw: draw_flush_of_no_cache,
            judge: judge_flush_of_no_cache,
        },
        Relation {
            name: "synchronous_write_is_a_write_and_a_flush",
            bound: "on SATA with the write cache on, sync=1 runs at 1.05 of the rate of fsync=1 or less",
            draw: draw_sync_with_cache,
            judge: judge_sync_with_cache,
        },
        Relation {
            name: "synchronous_write_without_cache_is_a_write",
            bound: "without a volatile write cache, sync=1 runs within 5 % of the rate of plain writes",
            draw: draw_sync_without_cache,
            judge: judge_sync_without_cache,
        },
    ]
}

const SECONDS: u64 = 15;

fn writer(draw: &mut Draw<'_>) -> JobKeys {
    let rw = draw.pick(&["write", "randwrite"]);
    let job = JobKeys::new("log").with("rw", rw).with("bs", bytes(draw.pick(&[4 * KIB, 16 * KIB, 64 * KIB])));
    // A log is a file of some size, and the blocks of a whole disk in order never come again.
    let size = if draw.usable_bytes() > 2 * GIB { "1g" } else { "100m" };
    job.with("size", size)
}

/// A writer that flushes, and another load next to it, which a flush must not drain.
fn draw_flush_of_no_cache(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = Machine::new(&draw.spec.name).without_write_cache();
    let flush = draw.pick(&["fsync", "fdatasync"]);
    let mut jobs = vec![writer(draw).with(flush, 1)];
    if draw.chance(0.7) {
        let rw = draw.pick(&["randwrite", "randread"]);
        let other =
            JobKeys::new("data").with("rw", rw).with("bs", "64k").with("iodepth", draw.pick(&[2, 8, 16]));
        jobs.push(draw.region(other));
    }
    Some(Case::new(machine, JobText::timed(1, SECONDS, jobs)))
}

/// Linux sends no FLUSH to a disk that reports no volatile write cache.
fn judge_flush_of_no_cache(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let Some(job) = case.load.jobs.first().filter(|_| case.machine.has_no_write_cache()) else {
        return Ok(Verdict::Elsewhere);
    };
    if job.text("fsync").or(job.text("fdatasync")).is_none() {
        return Ok(Verdict::Elsewhere);
    }
    let flushed = case.figures(bench)?.jobs[0].iops();
    let plain = case.load.without_each("fsync").without_each("fdatasync");
    let plain = case.figures_of(bench, &plain)?.jobs[0].iops();
    Ok(at_least("with flushes:", flushed, (1.0 - MARGIN) * plain, "writes/s", &format!("without {plain:.1}")))
}

fn synchronous(draw: &mut Draw<'_>, machine: Machine) -> Case {
    let job = writer(draw).with("sync", "sync");
    Case::new(machine, JobText::timed(1, SECONDS, vec![job]))
}

fn draw_sync_with_cache(draw: &mut Draw<'_>) -> Option<Case> {
    let applies = draw.is_sata() && draw.has_write_cache();
    applies.then(|| draw.machine_with_cache()).map(|machine| synchronous(draw, machine))
}

/// Linux's libata has FUA off by default (`libata.fua=0`): a synchronous write is a write and a FLUSH CACHE.
fn judge_sync_with_cache(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    if case.machine.has_no_write_cache() || case.load.jobs.iter().any(|job| job.text("sync").is_none()) {
        return Ok(Verdict::Elsewhere);
    }
    let synchronous = case.figures(bench)?.iops();
    let flushed = case.load.without_each("sync").with_each("fsync", 1);
    let flushed = case.figures_of(bench, &flushed)?.iops();
    Ok(Verdict::unless(synchronous <= (1.0 + MARGIN) * flushed, synchronous / flushed, || {
        format!(
            "sync=1: {synchronous:.1} writes/s, at most {:.1} expected: fsync=1 gives {flushed:.1}",
            1.05 * flushed
        )
    }))
}

fn draw_sync_without_cache(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = Machine::new(&draw.spec.name).without_write_cache();
    Some(synchronous(draw, machine))
}

/// A disk without a volatile cache has all that it acknowledges on its media: Linux sends a plain write.
fn judge_sync_without_cache(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    if !case.machine.has_no_write_cache() || case.load.jobs.iter().any(|job| job.text("sync").is_none()) {
        return Ok(Verdict::Elsewhere);
    }
    let synchronous = case.figures(bench)?.iops();
    let plain = case.figures_of(bench, &case.load.without_each("sync"))?.iops();
    Ok(Verdict::unless(
        (synchronous / plain - 1.0).abs() <= MARGIN,
        f64::max(synchronous / plain, plain / synchronous),
        || format!("sync=1: {synchronous:.1} writes/s, within 5 % of {plain:.1} expected: plain writes"),
    ))
}
