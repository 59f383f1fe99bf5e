//! Streams and random loads over depth and block.

use super::{Case, MARGIN, Relation, Verdict, at_least, least_share};
use crate::bench::{Bench, Machine};
use crate::draw::{Draw, KIB, MIB, timed_stream};
use crate::job_text::{JobKeys, JobText, bytes};
use headstack::model::spec::{ReadAhead, WriteCache};

pub(super) fn relations() -> Vec<Relation> {
    vec![
        Relation {
            name: "depth_slows_no_stream",
            bound: "a sequential stream at any depth runs at 0.95 of its rate at depth 1 or more (0.9 where both scatter)",
            draw: draw_stream,
            judge: judge_depth,
        },
        Relation {
            name: "depth_slows_no_random_load",
            bound: "random requests at any depth run at 0.95 of their rate at depth 1 or more (0.9 where both scatter)",
            draw: draw_random,
            judge: judge_depth,
        },
        Relation {
            name: "larger_block_slows_no_stream",
            bound: "a sequential stream of twice the block runs at 0.95 of the rate or more (0.9 where both scatter, or it goes to a log)",
            draw: draw_doubled_stream,
            judge: judge_larger_block,
        },
        Relation {
            name: "stream_runs_at_the_medias_rate",
            bound: "blocks of 64 KiB or more in order run at 0.8 of the rate of reads of 1 MiB at depth 1 or more",
            draw: draw_large_stream,
            judge: judge_media_rate,
        },
        Relation {
            name: "small_queued_blocks_reach_a_share_of_the_media",
            bound: "blocks of 4 KiB in order at depth 16 or more run at 55 MB/s or more, or at 0.4 of the rate of reads of 1 MiB",
            draw: draw_small_queued,
            judge: judge_small_queued,
        },
        Relation {
            name: "own_order_is_not_slower_than_fcfs",
            bound: "random requests at depth n in the drive's order run at 0.95 of the rate of depth 1 in FCFS or more",
            draw: draw_random_reads,
            judge: judge_own_order,
        },
    ]
}

/// Deeper queues give a drive more to choose from; none may make it lose revolutions that it does not lose at depth 1.
fn judge_depth(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let [job] = &case.load.jobs[..] else { return Ok(Verdict::Elsewhere) };
    let load = of_equal_work(bench, case);
    let deep = case.figures_of(bench, &load)?;
    let one = case.figures_of(bench, &load.with_each("iodepth", 1))?;
    let shallow = without_fill(bench, case, one.mb_s())?;
    let what = format!("depth {}:", job.depth());
    let least = least_share(&deep, &one) * shallow;
    Ok(at_least(&what, deep.mb_s(), least, "MB/s", &format!("depth 1 gives {shallow:.2}")))
}

fn draw_stream(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = draw.machine();
    let block = draw.block(512, 4 * MIB);
    let depth = draw.depth(block);
    let rw = draw.pick(&["read", "write"]);
    Some(Case::new(machine, draw.stream(rw, block, depth)))
}

/// Seconds of a random load: 1,600 accesses of 12 ms, whose mean is right to 1 %.
pub(super) const RANDOM_S: u64 = 20;

/// Random requests of one direction and size, in the whole disk or a short stroke.
pub(super) fn random_load(draw: &mut Draw<'_>, rw: &str, block: u64, depth: u64) -> JobText {
    let job = JobKeys::new("random").with("rw", rw).with("bs", bytes(block)).with("iodepth", depth);
    let job = draw.region(job);
    JobText::timed(5, RANDOM_S, vec![job.with("norandommap", 1)])
}

fn draw_random(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = draw.machine();
    let rw = draw.pick(&["randread", "randwrite", "randrw"]);
    let block = draw.block(512, 256 * KIB);
    let depth = draw.depth(block);
    Some(Case::new(machine, random_load(draw, rw, block, depth)))
}

fn draw_random_reads(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = draw.machine();
    let rw = if machine.has_no_write_cache() { "randwrite" } else { "randread" };
    let block = draw.block(4 * KIB, 64 * KIB);
    let depth = draw.depth(block);
    Some(Case::new(machine, random_load(draw, rw, block, depth)))
}

fn judge_own_order(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let own = case.figures(bench)?.iops();
    let fcfs = case.machine.with("drive.queue.order", "fcfs");
    let served = bench.run(&fcfs, &case.load.with_each("iodepth", 1), case.seed)?.iops();
    Ok(at_least(
        "its order:",
        own,
        (1.0 - MARGIN) * served,
        "IOPS",
        &format!("FCFS at depth 1 gives {served:.1}"),
    ))
}

/// Drives since 2000: of older ones, the overhead of a command is about as long as what passes between two, so that the size decides
/// whether the next command is in time, in either direction. From a physical sector, below which a write reads first, to 512 KiB, because
/// Linux sends no larger command than 1,280 KiB.
fn draw_doubled_stream(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = draw.is_from(2000).then(|| draw.machine())?;
    let block = draw.block(u64::from(draw.spec.physical_sector_bytes), 512 * KIB);
    let depth = if draw.chance(0.4) { 1 } else { draw.depth(block * 2) };
    let rw = draw.pick(&["read", "write"]);
    // Writes up to a size go to a log on the media, and larger ones to their own places, where each loses a revolution at depth 1.
    let log = draw.spec.media_cache.as_ref().filter(|_| rw == "write" && machine.has_no_write_cache());
    let logged = log.map(|log| u64::from(log.write_max_sectors) * u64::from(draw.spec.sector_bytes));
    if logged.is_some_and(|most| block <= most && most < 2 * block) {
        return None;
    }
    Some(Case::new(machine, draw.stream(rw, block, depth)))
}

/// A rate without what a write cache takes in while it fills: a stream lasts at no more than the media's rate.
fn without_fill(bench: &mut Bench, case: &Case, rate: f64) -> Result<f64, String> {
    let fills = case.load.jobs.iter().any(|job| job.rw() == "write") && !case.machine.has_no_write_cache();
    Ok(if fills { rate.min(media_rate(bench, case)?) } else { rate })
}

/// The load, or as many bytes of it as fill a log on the media more than once: the faster of two runs would fill the log in the time
/// that is measured, and the slower one not. For the same reason random writes fill the write cache, at 100 a second, before the time
/// that is measured.
fn of_equal_work(bench: &mut Bench, case: &Case) -> JobText {
    let cached_writes = bench.spec(&case.machine.drive).cache.dirty_runs_max;
    let is_random_write = |job: &JobKeys| job.writes() && !job.is_sequential();
    if is_logged_stream(bench, case) && case.load.jobs.iter().all(|job| job.number("size").is_none()) {
        JobText::whole(case.load.with_each("size", "768m").jobs)
    } else if !case.machine.has_no_write_cache() && case.load.jobs.iter().any(is_random_write) {
        case.load.with_shared("ramp_time", 5 + cached_writes / 100)
    } else {
        case.load.clone()
    }
}

/// Whether a stream of writes goes to a log on the media, in parts.
fn is_logged_stream(bench: &mut Bench, case: &Case) -> bool {
    let has_log = bench.spec(&case.machine.drive).media_cache.is_some() && case.machine.has_no_write_cache();
    has_log && case.load.jobs.iter().all(|job| job.rw() == "write")
}

/// The largest command that an elevator makes of blocks in order: whole blocks, and no more than are outstanding.
fn merged_bytes(job: &JobKeys, block: u64) -> u64 {
    block * (LINUX_COMMAND / block).min(job.depth())
}

/// Linux sends no larger command (`max_sectors_kb`).
const LINUX_COMMAND: u64 = 1_280 * KIB;

/// A larger block has fewer commands for the same sectors in the same order. Not so behind an elevator, which merges five blocks of
/// 256 KiB into a command and only two of 512 KiB: without a write cache each command costs a revolution, so that the rate may be less
/// by as much as the commands are.
fn judge_larger_block(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let [job] = &case.load.jobs[..] else { return Ok(Verdict::Elsewhere) };
    let double = job.block_bytes() * 2;
    let load = of_equal_work(bench, case);
    let single = case.figures_of(bench, &load)?;
    let small = without_fill(bench, case, single.mb_s())?;
    let large = case.figures_of(bench, &load.with_each("bs", bytes(double)))?;
    let what = format!("bs={}:", bytes(double));
    let than = format!("bs={} gives {small:.2}", bytes(job.block_bytes()));
    let merges = case.machine.merges() && case.machine.has_no_write_cache();
    let share = merged_bytes(job, double) as f64 / merged_bytes(job, job.block_bytes()) as f64;
    let share = if merges { share.min(1.0) } else { 1.0 };
    // How much of a stream goes to its own place changes with the block, and how often the log is emptied with it.
    let share = if is_logged_stream(bench, case) { share * (1.0 - MARGIN) } else { share };
    let least = least_share(&large, &single) * share * small;
    Ok(at_least(&what, large.mb_s(), least, "MB/s", &than))
}

/// Drives that read a stream at the media's rate at any depth: those since 2000 that read ahead. Older ones may leave a stream for
/// each command that waits (the manuals of their time say that a command ends the read-ahead).
fn reads_streams(draw: &Draw<'_>) -> bool {
    draw.is_from(2000) && draw.spec.cache.read_ahead != ReadAhead::None
}

/// Drives that write a stream at the media's rate: those since 2000 with a write cache that may hold any write.
fn writes_streams(draw: &Draw<'_>) -> bool {
    draw.is_from(2000) && draw.spec.cache.write_cache == WriteCache::Full
}

fn draw_large_stream(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = draw.machine_with_cache();
    let directions: Vec<&str> = [("read", reads_streams(draw)), ("write", writes_streams(draw))]
        .into_iter()
        .filter_map(|(rw, possible)| possible.then_some(rw))
        .collect();
    let rw = if directions.is_empty() { return None } else { draw.pick(&directions) };
    let block = draw.block(64 * KIB, 4 * MIB);
    let depth = if draw.chance(0.3) { 1 } else { draw.depth(block) };
    Some(Case::new(machine, draw.stream(rw, block, depth)))
}

/// MB/s of reads of 1 MiB at depth 1 in the place of the first job, by a drive as its file has it: what its media and interface pass.
pub(super) fn media_rate(bench: &mut Bench, case: &Case) -> Result<f64, String> {
    let drive = Machine::new(&case.machine.drive);
    let mut job = JobKeys::new("media").with("rw", "read").with("bs", "1m");
    if let Some(offset) = case.load.jobs.first().and_then(|job| job.text("offset")) {
        job = job.with("offset", offset);
    }
    let load = timed_stream(bench.spec(&case.machine.drive), MIB, vec![job]);
    Ok(bench.run(&drive, &load, case.seed)?.mb_s())
}

fn judge_share_of_media(bench: &mut Bench, case: &Case, share: f64) -> Result<Verdict, String> {
    let [job] = &case.load.jobs[..] else { return Ok(Verdict::Elsewhere) };
    let media = media_rate(bench, case)?;
    let rate = case.figures(bench)?.mb_s();
    let what = format!("{} of {} at depth {}:", job.rw(), bytes(job.block_bytes()), job.depth());
    Ok(at_least(&what, rate, share * media, "MB/s", &format!("reads of 1 MiB at depth 1 give {media:.1}")))
}

/// 0.8: CrystalDiskMark's 128 KiB at depth 32 run at 0.98 to 1.01 of 1 MiB at depth 1 on five drives; skews and commands of an old
/// drive leave more.
fn judge_media_rate(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    if case.load.jobs.iter().any(|job| job.block_bytes() < 64 * KIB || !job.is_sequential()) {
        return Ok(Verdict::Elsewhere);
    }
    judge_share_of_media(bench, case, 0.8)
}

/// Drives since 2009 with a queue: they take the next command while the media pass the data of the one before.
fn draw_small_queued(draw: &mut Draw<'_>) -> Option<Case> {
    if !draw.is_from(2009) || draw.spec.queue.depth < 16 {
        return None;
    }
    let machine = Machine::new(&draw.spec.name);
    let depth = draw.pick(&[16, 32]);
    let rw = draw.pick(if writes_streams(draw) { &["read", "write"] } else { &["read"] });
    Some(Case::new(machine, draw.stream(rw, 4 * KIB, depth)))
}

/// 55 MB/s, or 0.4 of the media's rate where that is less: a disk of 14 TB wrote 243 of 249 MB/s at depth 16, an ordinary disk read 58 to
/// 80 MB/s (axboe/fio#41), and a Toshiba of 2014 took 65 us a command (linux-block 2022-07-22).
fn judge_small_queued(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let is_small = |job: &JobKeys| job.block_bytes() >= 4 * KIB && job.depth() >= 16 && job.is_sequential();
    if !case.load.jobs.iter().all(is_small) {
        return Ok(Verdict::Elsewhere);
    }
    let media = media_rate(bench, case)?;
    judge_share_of_media(bench, case, (55.0 / media).min(0.4))
}
