//! Command duration limits.

use crate::support::*;
use headstack_model::spec::{DurationLimit, DurationLimits, LimitPolicy, WriteCache};
use headstack_model::{DriveSpec, Instant, Request};
use headstack_sim::{Command, Completion, MediaWrite, Outcome};
use rand::RngExt;

/// A current drive (2022) with these limits for reads.
fn hc570(performance_percent: f64, reads: &[DurationLimit]) -> Rig {
    let limits = DurationLimits { performance_percent, reads: reads.to_vec(), writes: Vec::new() };
    changed(|spec| spec.queue.duration_limits = Some(limits))
}

fn changed(change: impl FnOnce(&mut DriveSpec)) -> Rig {
    let of_today =
        shipped().into_iter().find(|rig| rig.name() == "ultrastar-hc570").expect("the drive ships");
    of_today.with(change)
}

fn guideline(ms: f64, policy: LimitPolicy) -> DurationLimit {
    DurationLimit { guideline_ms: Some(ms), guideline_policy: policy, ..DurationLimit::default() }
}

const EARLIEST: LimitPolicy = LimitPolicy::CompleteEarliest;

/// Runs random reads of 128 KiB, `depth` outstanding; `limit` maps a random number from 0 to 99 to the number of a read's limit. Returns the
/// completions, each with its limit's number, and their rate per second.
fn reads(rig: &Rig, depth: u32, count: usize, limit: impl Fn(u32) -> u8) -> (Vec<(Completion, u8)>, f64) {
    let (mut device, mut random) = (rig.device(), seeded(5));
    let mut limits = vec![0; 2 * depth as usize];
    let mut found = Vec::new();
    let mut now = Instant::ZERO;
    for number in 0..count + depth as usize {
        if number >= depth as usize {
            let done = next(&mut device);
            now = done.completed;
            found.push((done, limits[done.tag.0 as usize]));
        }
        let limit = limit(random.random_range(0..100));
        let command = Command { limit, ..Request::read(any_lbn(&mut random, rig, 256), 256).into() };
        let tag = device.submit(now, command).expect("the queue is deep enough");
        limits[tag.0 as usize] = limit;
    }
    (found, count as f64 / now.as_secs())
}

/// The response times in milliseconds of the commands with this limit, in ascending order.
fn times(found: &[(Completion, u8)], limit: u8) -> Vec<f64> {
    let of_limit = found.iter().filter(|(_, found)| *found == limit);
    let mut times: Vec<f64> = of_limit.map(|(done, _)| done.response().as_ms()).collect();
    times.sort_by(f64::total_cmp);
    times
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[(sorted.len() as f64 * share) as usize]
}

/// *Source:* 22 TB drive, depth 32, 128 KiB, 20 % of the reads with a guideline of 50 ms, performance against duration 20 %
/// (westerndigitalcorporation/cdl-tools, benchmark/README.md).
#[test]
fn fifth_of_the_reads_with_50_ms_has_the_published_distribution() {
    let rig = hc570(20.0, &[guideline(50.0, EARLIEST)]);
    let (found, _) = reads(&rig, 32, 12_000, |drawn| u8::from(drawn < 20));
    let published = [(1, 0.15, [17.0, 30.0, 56.0, 68.0]), (0, 0.2, [98.0, 264.0, 373.0, 434.0])];
    for (limit, tolerance, expected) in published {
        let times = times(&found, limit);
        for (share, expected) in [0.1, 0.5, 0.9, 0.99].into_iter().zip(expected) {
            let value = quantile(&times, share);
            let off = (value / expected - 1.0).abs();
            assert!(off < tolerance, "limit {limit}, p{}: {value} ms for {expected}", 100.0 * share);
        }
    }
}

#[test]
fn commands_without_a_limit_are_served_as_without_limits() {
    let (without, with) =
        (changed(|spec| spec.queue.duration_limits = None), hc570(20.0, &[guideline(50.0, EARLIEST)]));
    // The drive has only limit 1: commands with number 2 have no limit.
    for number in [0, 2] {
        let done = |rig: &Rig| reads(rig, 16, 1500, |_| number).0;
        assert_eq!(done(&without), done(&with), "limit number {number}");
    }
}

#[test]
fn high_priority_of_ncq_turns_limits_off() {
    let with_priority = |limits: Option<DurationLimits>| {
        let rig = changed(|spec| (spec.queue.urgent_first, spec.queue.duration_limits) = (true, limits));
        reads(&rig, 16, 1500, |drawn| u8::from(drawn < 20)).0
    };
    let limits = DurationLimits { reads: vec![guideline(20.0, EARLIEST)], ..DurationLimits::default() };
    assert_eq!(with_priority(None), with_priority(Some(limits)));
}

#[test]
fn shorter_limit_is_served_sooner() {
    let rig = hc570(20.0, &[guideline(50.0, EARLIEST), guideline(150.0, EARLIEST)]);
    let limit = |drawn| match drawn {
        0..10 => 1,
        10..20 => 2,
        _ => 0,
    };
    let (found, _) = reads(&rig, 32, 6000, limit);
    let median = |limit| quantile(&times(&found, limit), 0.5);
    let late = |limit| quantile(&times(&found, limit), 0.99);
    assert!(1.3 * median(1) < median(2) && 2.0 * median(2) < median(0), "{} {}", median(1), median(2));
    // A command that exceeds its guideline is served next, after the present access and after other commands that exceed theirs.
    assert!(late(1) < 50.0 + 40.0 && late(2) < 150.0 + 40.0, "{} {}", late(1), late(2));
}

#[test]
fn more_performance_given_up_makes_limited_commands_quicker_and_the_disk_slower() {
    let at = |percent: f64| {
        let rig = hc570(percent, &[guideline(100.0, EARLIEST)]);
        let (found, rate) = reads(&rig, 32, 5000, |drawn| u8::from(drawn < 20));
        (quantile(&times(&found, 1), 0.5), rate)
    };
    let unlimited = reads(&changed(|spec| spec.queue.duration_limits = None), 32, 5000, |_| 0).1;
    let ((none, rate_none), (some, _), (all, rate_all)) = (at(0.0), at(2.0), at(20.0));
    assert!(1.1 * all < some && 1.1 * some < none, "{all} {some} {none} ms");
    assert!(rate_all < unlimited && rate_none < unlimited, "{rate_all} {rate_none} of {unlimited}");
}

#[test]
fn aborted_read_ends_between_its_limit_and_an_access_later() {
    let inactive = DurationLimit {
        inactive_ms: Some(40.0),
        inactive_policy: LimitPolicy::Abort,
        ..DurationLimit::default()
    };
    let active = DurationLimit {
        active_ms: Some(20.0),
        active_policy: LimitPolicy::Abort,
        ..DurationLimit::default()
    };
    let kinds = [
        ("guideline", guideline(40.0, LimitPolicy::Abort), 40.0, 32),
        ("inactive", inactive, 40.0, 32),
        // One command at a time, so that the queue's order cannot avoid long seeks.
        ("active", active, 20.0, 1),
    ];
    for (name, limit, ms, depth) in kinds {
        let (found, _) = reads(&hc570(0.0, &[limit]), depth, 4000, |drawn| u8::from(drawn < 30));
        let (mut aborted, mut done) = (0, 0);
        for (completion, limit) in &found {
            let response = completion.response().as_ms();
            match completion.outcome {
                Outcome::Aborted => {
                    aborted += 1;
                    assert_eq!(*limit, 1);
                    // The longest access: a full stroke, a turn, the transfer and lost turns.
                    assert!(
                        response >= ms && (name == "active" || response < ms + 150.0),
                        "{name}: {response}"
                    );
                }
                _ => {
                    done += u32::from(*limit == 1);
                    // The data of a read whose access ends within the limit are sent after that.
                    assert!(*limit == 0 || name != "guideline" || response < ms + 1.0, "{name}: {response}");
                }
            }
        }
        assert!(aborted > 10 && done > 10, "{name}: {aborted} aborted, {done} done");
    }
}

/// Runs random writes of 128 KiB on the same drive without a write cache and with this limit for writes, which three in ten writes have.
/// Returns each completion with the number of its limit, and the number of its sectors that were written to the media.
fn limited_writes(limit: DurationLimit, depth: u32, count: usize) -> Vec<(Completion, u8, u64)> {
    let limits = DurationLimits { writes: vec![limit], ..DurationLimits::default() };
    let rig = changed(|spec| {
        spec.queue.duration_limits = Some(limits);
        spec.cache.write_cache = WriteCache::None;
    });
    let (mut device, mut random) = (rig.device(), seeded(5));
    device.track_media();
    let mut numbers = vec![0; 2 * depth as usize];
    let (mut found, mut written, mut now) = (Vec::new(), Vec::new(), Instant::ZERO);
    for number in 0..count + depth as usize {
        if number >= depth as usize {
            let done = next(&mut device);
            written.extend(std::iter::from_fn(|| device.poll_media_write()));
            let request = done.request;
            let is_of = |part: &&MediaWrite| {
                part.submitted == done.submitted && part.start >= request.lbn && part.end <= request.end()
            };
            let sectors = written.iter().filter(is_of).map(|part| part.end - part.start).sum();
            now = done.completed;
            found.push((done, numbers[done.tag.0 as usize], sectors));
        }
        let limit = u8::from(random.random_range(0..100) < 30);
        let command = Command { limit, ..Request::write(any_lbn(&mut random, &rig, 256), 256).into() };
        let tag = device.submit(now, command).expect("the queue is deep enough");
        numbers[tag.0 as usize] = limit;
    }
    found
}

#[test]
fn aborted_write_has_written_nothing_or_all_of_its_blocks() {
    let inactive = DurationLimit {
        inactive_ms: Some(40.0),
        inactive_policy: LimitPolicy::Abort,
        ..DurationLimit::default()
    };
    let active = DurationLimit {
        active_ms: Some(20.0),
        active_policy: LimitPolicy::Abort,
        ..DurationLimit::default()
    };
    let kinds = [
        ("guideline", guideline(40.0, LimitPolicy::Abort), 40.0, 16),
        ("inactive", inactive, 40.0, 16),
        ("active", active, 20.0, 1),
    ];
    for (name, limit, ms, depth) in kinds {
        let (mut nothing, mut all) = (0, 0);
        for (done, limit, sectors) in limited_writes(limit, depth, 1500) {
            let is_aborted = done.outcome == Outcome::Aborted;
            assert!(!is_aborted || limit == 1 && done.response().as_ms() >= ms, "{name}: {done:?}");
            match sectors {
                0 => nothing += u32::from(is_aborted),
                256 => all += u32::from(is_aborted),
                _ => panic!("{name}: {sectors} sectors of {done:?}"),
            }
            assert!(is_aborted || sectors == 256, "{name}: {done:?}");
        }
        // The active time runs during the access, so that all blocks are written. An inactive command has not begun, so that none are.
        let is_right = match name {
            "active" => nothing == 0 && all > 10,
            "inactive" => nothing > 10 && all == 0,
            _ => nothing > 10,
        };
        assert!(is_right, "{name}: {nothing} and {all}");
    }
}

#[test]
fn read_of_the_blocks_of_an_aborted_write_needs_an_access() {
    // By this limit a write is aborted only before its access.
    let inactive = DurationLimit {
        inactive_ms: Some(20.0),
        inactive_policy: LimitPolicy::Abort,
        ..DurationLimit::default()
    };
    let rig = changed(|spec| {
        spec.queue.duration_limits =
            Some(DurationLimits { writes: vec![inactive], ..DurationLimits::default() });
        spec.cache.write_cache = WriteCache::None;
    });
    let (mut device, mut random, mut now) = (rig.device(), seeded(7), Instant::ZERO);
    let mut aborted = 0;
    for _ in 0..20 {
        for _ in 0..12 {
            let command = Command { limit: 1, ..Request::write(any_lbn(&mut random, &rig, 256), 256).into() };
            device.submit(now, command).expect("the queue is deep enough");
        }
        let done: Vec<Completion> = (0..12).map(|_| next(&mut device)).collect();
        now = done.last().expect("twelve are done").completed;
        for write in done.iter().filter(|done| done.outcome == Outcome::Aborted) {
            let read = serve(&mut device, now, Request::read(write.request.lbn, 8));
            assert!(read.travel.is_some(), "{write:?}");
            (now, aborted) = (read.completed, aborted + 1);
        }
    }
    assert!(aborted > 20, "{aborted} writes were aborted");
}

#[test]
fn command_whose_policy_is_to_continue_is_not_hurried_once_it_is_late() {
    let longest = |policy| {
        let rig = hc570(0.0, &[guideline(50.0, policy)]);
        let (found, _) = reads(&rig, 32, 4000, |drawn| u8::from(drawn < 20));
        assert!(found.iter().all(|(done, _)| done.outcome == Outcome::Done));
        *times(&found, 1).last().expect("there are some")
    };
    assert!(longest(LimitPolicy::Continue) > 2.0 * longest(EARLIEST));
}
