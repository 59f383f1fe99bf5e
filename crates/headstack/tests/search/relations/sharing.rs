//! Jobs next to each other.

use super::{Case, MARGIN, Relation, Verdict, at_least};
use crate::bench::Bench;
use crate::draw::{Draw, KIB, MIB, timed_stream};
use crate::job_text::{JobKeys, JobText, bytes};
use headstack::model::spec::{ReadAhead, WriteCache};

pub(super) fn relations() -> Vec<Relation> {
    vec![
        Relation {
            name: "job_alone_is_not_slower",
            bound: "a job alone runs at 0.95 of its rate next to others or more (0.85 of a shingled disk, whose bands are cleaned at their own time)",
            draw: draw_pair,
            judge: judge_alone,
        },
        Relation {
            name: "equal_jobs_get_equal_shares",
            bound: "of two jobs with the same keys, each gets within 10 % of half",
            draw: draw_equal,
            judge: judge_equal,
        },
        Relation {
            name: "streams_together_keep_a_share_of_one",
            bound: "four readers in order, each in its region, together get 0.15 of what one alone gets or more from a drive with a queue",
            draw: draw_four_streams,
            judge: judge_four_streams,
        },
        Relation {
            name: "reader_next_to_a_copy_is_served",
            bound: "random reads next to a copy run at 0.05 of their rate alone (0.015 on a shingled disk) or 5 (1) a second",
            draw: draw_copy,
            judge: judge_copy,
        },
    ]
}

const SECONDS: u64 = 20;

fn draw_pair(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = draw.machine();
    let jobs = ["a", "b"].map(|name| {
        let rate_keys = ["rate_iops", "thinktime", "fsync", "sync"];
        rate_keys.into_iter().fold(draw.any_job(name), JobKeys::without)
    });
    jobs.iter().any(is_judged_alone).then(|| Case::new(machine, JobText::timed(2, SECONDS, jobs.into())))
}

/// A sequential mix reads what it has just written, or not, as its two streams happen to lie: its rate differs by two thirds from seed to
/// seed, and a job's random numbers depend on its place in the file.
fn is_judged_alone(job: &JobKeys) -> bool {
    job.is_closed() && job.rw() != "rw"
}

/// Requests of others take time of the arm and the port, and room in the cache; they give a job nothing, as they go to other blocks.
fn judge_alone(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    if !case.load.jobs.iter().any(is_judged_alone) || case.load.jobs.len() < 2 {
        return Ok(Verdict::Elsewhere);
    }
    let both = case.figures(bench)?;
    let spec = bench.spec(&case.machine.drive);
    let share = if spec.shingled.is_some() { 0.85 } else { 1.0 - MARGIN };
    // Another's write that waits continues the log in time; the next one of a job alone loses a revolution.
    let has_log = spec.shingled.is_some() || spec.media_cache.is_some();
    let writers = case.load.jobs.iter().filter(|job| job.writes()).count();
    let help = has_log && case.machine.has_no_write_cache() && writers > 1;
    let is_judged = |job: &JobKeys| is_judged_alone(job) && !(help && job.writes());
    for (index, job) in case.load.jobs.iter().enumerate().filter(|(_, job)| is_judged(job)) {
        let alone = case.figures_of(bench, &case.load.only(|other| other == index))?.iops();
        let shared = both.jobs[index].iops();
        let what = format!("job {} alone:", job.name);
        let verdict = at_least(&what, alone, share * shared, "IOPS", &format!("next to others {shared:.1}"));
        if verdict != Verdict::Holds {
            return Ok(verdict);
        }
    }
    Ok(Verdict::Holds)
}

/// Two jobs of random requests, in one region: none of them has a better place.
fn draw_equal(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = draw.machine();
    let block = draw.block(4 * KIB, 256 * KIB);
    let depth = if draw.chance(0.4) { 1 } else { draw.depth(block * 2) };
    let rw = draw.pick(&["randread", "randwrite", "randrw"]);
    let job = JobKeys::new("a").with("rw", rw).with("bs", bytes(block)).with("iodepth", depth);
    let job = draw.region(job.with("norandommap", 1));
    let other = JobKeys { name: "b".to_string(), keys: job.keys.clone() };
    Some(Case::new(machine, JobText::timed(5, 60, vec![job, other])))
}

/// 10 % over a minute; of few requests, four standard deviations of their number.
fn judge_equal(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let [one, other] = &case.load.jobs[..] else { return Ok(Verdict::Elsewhere) };
    if one.keys != other.keys || case.load.shared_number("runtime").is_none_or(|seconds| seconds < 60) {
        return Ok(Verdict::Elsewhere);
    }
    let figures = case.figures(bench)?;
    let counts = [0, 1].map(|job| figures.jobs[job].kinds.iter().map(|kind| kind.count).sum::<u64>() as f64);
    let half = (counts[0] + counts[1]) / 2.0;
    let allowed = f64::max(2.0 * MARGIN * half, 4.0 * half.sqrt());
    Ok(Verdict::unless((counts[0] - half).abs() <= allowed, (counts[0] - half).abs() / allowed, || {
        format!("{} and {} requests, {half:.0} ± {allowed:.0} expected", counts[0], counts[1])
    }))
}

/// Drives since 2005 with a queue that read ahead into several segments: they stay with a stream for longer than one request.
fn draw_four_streams(draw: &mut Draw<'_>) -> Option<Case> {
    let cache = &draw.spec.cache;
    let queues = draw.spec.queue.depth > 1;
    if !queues || !draw.is_from(2005) || cache.read_ahead == ReadAhead::None || cache.segments < 4 {
        return None;
    }
    let machine = draw.machine_with_cache();
    let block = draw.pick(&[64 * KIB, 128 * KIB, 256 * KIB]);
    let part = draw.usable_bytes() / 5 / MIB * MIB;
    let jobs = ["a", "b", "c", "d"].iter().zip(0..).map(|(name, number)| {
        let job = JobKeys::new(name).with("rw", "read").with("bs", bytes(block));
        if number > 0 { job.with("offset", bytes(number * part)) } else { job }
    });
    Some(Case::new(machine, JobText::timed(2, 10, jobs.collect())))
}

/// 0.15: without read-ahead that outlives another command each 64 KiB costs a seek and half a revolution, which is 0.03 of a modern
/// drive's rate.
fn judge_four_streams(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let is_reader = |job: &JobKeys| job.rw() == "read" && job.block_bytes() >= 64 * KIB && job.is_closed();
    let queues = bench.spec(&case.machine.drive).queue.depth > 1;
    if !queues || case.load.jobs.len() != 4 || !case.load.jobs.iter().all(is_reader) {
        return Ok(Verdict::Elsewhere);
    }
    let alone = case.figures_of(bench, &case.load.only(|job| job == 0))?.mb_s();
    let together = case.figures(bench)?.mb_s();
    Ok(at_least("four streams:", together, 0.15 * alone, "MB/s", &format!("one alone gives {alone:.1}")))
}

/// A stream read, a stream written, and random reads. In plain SPTF without a hold, only the age limit bounds how
/// long a stream next to the arm keeps a reader waiting.
fn draw_copy(draw: &mut Draw<'_>) -> Option<Case> {
    let queue = &draw.spec.queue;
    let is_greedy = queue.order == "sptf" && queue.stream_hold_ms.unwrap_or(0.0) == 0.0;
    if draw.spec.cache.write_cache == WriteCache::Segment || is_greedy {
        return None;
    }
    let machine = draw.machine();
    let block = draw.block(64 * KIB, MIB);
    let depth = draw.pick(&[1, 1, 2, 4]);
    let half = draw.usable_bytes() / 2 / MIB * MIB;
    let stream = |rw: &str, offset: u64| {
        let job = JobKeys::new(rw).with("rw", rw).with("bs", bytes(block)).with("iodepth", depth);
        job.with("offset", bytes(offset)).with("size", bytes(half / 2))
    };
    let reader = draw.region(JobKeys::new("random").with("rw", "randread"));
    let jobs = vec![stream("read", 0), stream("write", half), reader];
    let load = timed_stream(draw.spec, block, jobs);
    Some(Case::new(machine, load.with_shared("runtime", SECONDS)))
}

/// 0.05: with two streams next to it, a drive serves the reader after at most a few commands of each. Where these are long, in FCFS the
/// reader has a turn whenever all requests of the others were served once; the bound is a quarter of that. A shingled disk writes a whole
/// band of some 30 MB before it serves anybody. Drives of the 1990s that write back at once do so before all reads.
fn judge_copy(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let is_reader = |job: &JobKeys| job.rw() == "randread" && job.depth() == 1 && job.is_closed();
    let writes_back_at_once = bench.spec(&case.machine.drive).cache.write_cache == WriteCache::Segment;
    let reader = case.load.jobs.iter().position(is_reader).filter(|_| case.load.jobs.len() > 1);
    let Some(reader) = reader.filter(|_| !writes_back_at_once) else {
        return Ok(Verdict::Elsewhere);
    };
    let alone = case.figures_of(bench, &case.load.only(|job| job == reader))?.iops();
    let figures = case.figures(bench)?;
    let (served, others) = (figures.jobs[reader].iops(), figures.iops() - figures.jobs[reader].iops());
    let depths = case.load.jobs.iter().map(|job| job.depth()).sum::<u64>() - 1;
    // mq-deadline sends up to 16 requests of one direction before it turns to the other.
    let batches = case.machine.settings.iter().any(|(_, value)| value == "mq-deadline");
    let before = if batches { depths.max(16) } else { depths };
    let is_shingled = bench.spec(&case.machine.drive).shingled.is_some();
    let (share, a_second) = if is_shingled { (0.015, 1.0) } else { (0.05, 5.0) };
    let least = f64::min(share * alone, a_second).min(others / (4.0 * before as f64));
    Ok(at_least("random reads:", served, least, "IOPS", &format!("alone {alone:.1}")))
}
