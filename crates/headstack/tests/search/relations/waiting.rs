//! How long a request may wait while others are served.

use super::{Case, Relation, Verdict, Violation};
use crate::bench::Bench;
use crate::draw::{Draw, KIB};
use crate::job_text::{JobKeys, JobText, bytes};

const LONGEST: &str = "the longest response is at most 6 s (shingled: 15 s; next to flushes: 2 ms for each write that the cache holds) or 40 \
                       times the mean of its kind";

pub(super) fn relations() -> Vec<Relation> {
    vec![
        Relation { name: "no_request_starves", bound: LONGEST, draw: draw_any, judge: judge_longest },
        Relation {
            name: "no_request_starves_beyond_a_full_queue",
            bound: LONGEST,
            draw: draw_full_queue,
            judge: judge_longest,
        },
    ]
}

/// Long enough for a wait beyond the bound to show.
const SECONDS: u64 = 20;

fn draw_any(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = draw.machine();
    Some(Case::new(machine, draw.any_load(SECONDS)))
}

/// Random writes that fill the drive's queue, and readers next to them.
fn draw_full_queue(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = draw.machine();
    let depth = u64::from(draw.spec.queue.depth);
    let depth = draw.pick(&[depth.saturating_sub(1).max(1), depth, depth + 1, 2 * depth]);
    let block = draw.pick(&[4 * KIB, 16 * KIB]);
    let writer = JobKeys::new("w").with("rw", "randwrite").with("bs", bytes(block)).with("iodepth", depth);
    let rw = draw.pick(&["randread", "read", "randrw"]);
    let reader = JobKeys::new("r").with("rw", rw).with("bs", bytes(block));
    let reader = reader.with("iodepth", draw.pick(&[1, 2, 8]));
    let jobs = [writer, reader].map(|job| draw.region(job));
    Some(Case::new(machine, JobText::timed(1, SECONDS, jobs.into())))
}

/// Linux gives a command up after 30 s, so no maker's firmware may let one wait for long while it serves others. Drive files limit age
/// to 5 s, after which a request is the next one; 40 times the mean leaves room for deep queues, whose mean is long by Little's law. A
/// shingled drive whose log is full cleans bands of some seconds before it takes a write. A FLUSH empties the cache, and writes wait for
/// it: 2 ms for each write that it holds.
fn judge_longest(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let spec = bench.spec(&case.machine.drive);
    let flushes = case.load.jobs.iter().any(JobKeys::flushes);
    let emptying_ms = if flushes { 2.0 * f64::from(spec.cache.dirty_runs_max) } else { 0.0 };
    let least_ms = if spec.shingled.is_some() { 15e3 } else { f64::max(6e3, emptying_ms) };
    let figures = case.figures(bench)?;
    let waits = figures.jobs.iter().flat_map(|job| job.kinds.iter().map(move |kind| (job, kind)));
    let over = waits.filter(|(_, kind)| kind.max_ms() > f64::max(least_ms, 40.0 * kind.mean_ms));
    let longest = over.max_by(|(_, one), (_, other)| one.max_ms().total_cmp(&other.max_ms()));
    Ok(longest.map_or(Verdict::Holds, |(job, kind)| {
        let [p50, _, p99, max] = kind.quantiles_ms;
        let says = format!(
            "a {} of job {} waits {max:.0} ms; {} of them have a mean of {:.1}, p50 {p50:.1}, p99 {p99:.1} ms",
            kind.name, job.name, kind.count, kind.mean_ms
        );
        Verdict::Broken(Violation { severity: max / f64::max(least_ms, 40.0 * kind.mean_ms), says })
    }))
}
