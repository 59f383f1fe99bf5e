//! Notes on results that are suspicious: each names what was met and the key to look at.
//!
//! The checks are one table, so that the command, its pages and Python say the same. A check uses only what the run itself shows: that a
//! drive would be faster with its cache off, for example, only another run can show.

use crate::numbers::{grouped, ratio, significant};
use crate::results::{DeviceResult, Results, VolumeResult};
use headstack_model::Nanos;
use headstack_sim::TimeSplit;
use headstack_sim::stats::{TimeHistogram, Totals, VolumeStats};

/// A note on a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The name of the check.
    pub name: &'static str,
    /// What was met, and the key to look at.
    pub text: String,
}

/// A check: its name, and what it finds.
struct Check {
    name: &'static str,
    find: fn(&Results) -> Option<String>,
}

/// Every check, in the order of the notes.
const CHECKS: [Check; 5] = [
    Check { name: "buffered-without-page-cache", find: buffered_without_page_cache },
    Check { name: "slow-stream", find: slow_stream },
    Check { name: "link-reset", find: link_reset },
    Check { name: "cache-waits", find: cache_waits },
    Check { name: "few-wait", find: few_wait },
];

/// Share of the media's rate below which a stream is suspicious.
const STREAM_SHARE: f64 = 0.1;

/// Share of the run from which on a volume counts as occupied all the time: nothing else than the disks limits its requests.
const OCCUPIED_SHARE: f64 = 0.9;

/// Time that Linux gives a command. *Source:* Linux, `SD_TIMEOUT` (`/sys/block/DISK/device/timeout`).
const COMMAND_TIMEOUT: Nanos = Nanos(30_000_000_000);

/// The notes on these results.
pub(crate) fn notes(results: &Results) -> Vec<Note> {
    let found = |check: &Check| Some(Note { name: check.name, text: (check.find)(results)? });
    CHECKS.iter().filter_map(found).collect()
}

fn buffered_without_page_cache(results: &Results) -> Option<String> {
    let has_none = !results.setup.drives.is_empty() && results.setup.page_cache_mb.is_none();
    let text = "host.page_cache is not set: buffered I/O ran without a page cache; set direct=1 in the job, or \
                `host.page_cache.memory_mb=1024` in the rig";
    (results.workload.is_buffered && has_none).then(|| text.to_string())
}

fn slow_stream(results: &Results) -> Option<String> {
    results.by_volume().find_map(|(volume, stats)| slow_stream_on(results, volume, stats))
}

fn slow_stream_on(results: &Results, volume: &VolumeResult, stats: &VolumeStats) -> Option<String> {
    let stream = volume.stream?;
    let totals = stats.transfers();
    let mb_s = ratio(totals.bytes as f64 / 1e6, results.counted_s());
    let is_slow = mb_s < STREAM_SHARE * stream.media_mb_s && is_occupied(results, stats);
    // A write that must be on the media before the next one costs a revolution, whatever the drive.
    let writes_through = stats.writes.is_some() && (stream.is_synced || !results.caches_writes());
    if !is_slow || writes_through {
        return None;
    }
    let (part, share) = largest_part(&totals);
    Some(format!(
        "{}: a sequential stream of {} MB/s, where {} MB/s pass under a head: {share:.0} % of a response is {}; look at {}",
        volume.name,
        significant(mb_s, 4),
        significant(stream.media_mb_s, 4),
        part.replace('_', " "),
        keys_of(part),
    ))
}

/// The largest part of the response times, except waiting for other requests, and its share of the rest in percent.
fn largest_part(totals: &Totals) -> (&'static str, f64) {
    let parts = TimeSplit::NAMES.into_iter().zip(totals.parts_ms()).filter(|(name, _)| *name != "queued");
    let all: f64 = parts.clone().map(|(_, ms)| ms).sum();
    let largest = parts.max_by(|one, other| one.1.total_cmp(&other.1));
    largest.map_or(("queued", 0.0), |(name, ms)| (name, 100.0 * ratio(ms, all)))
}

/// The keys on which a part of the response time of a stream depends.
fn keys_of(part: &str) -> &'static str {
    match part {
        "overhead" | "bus" => "the size of the requests, drive.overhead and drive.bus",
        "cache" => "drive.cache.dirty_max_sectors and drive.cache.read_ahead",
        "retries" => "drive.mechanics and the faults of the rig",
        "seek" => "drive.queue.order, and what else uses the disk",
        _ => "drive.overhead, drive.cache.read_ahead and drive.queue.depth",
    }
}

fn is_occupied(results: &Results, stats: &VolumeStats) -> bool {
    ratio(stats.occupied.as_secs(), results.end.as_secs()) >= OCCUPIED_SHARE
}

fn link_reset(results: &Results) -> Option<String> {
    let worst = results.devices.iter().max_by_key(|device| device.longest_command)?;
    (worst.longest_command > COMMAND_TIMEOUT).then(|| {
        format!(
            "{}: a command took {} s; Linux gives it {} s (/sys/block/DISK/device/timeout), then resets the link; look at \
             drive.queue.order, drive.queue.age_limit_ms and drive.queue.depth",
            worst.name,
            significant(worst.longest_command.as_secs(), 4),
            COMMAND_TIMEOUT.as_secs(),
        )
    })
}

/// Writes that wait for room in the cache although the arm has time.
fn cache_waits(results: &Results) -> Option<String> {
    let is_idle = |device: &DeviceResult| results.utilisation(device) < 0.5;
    results.by_volume().find_map(|(volume, stats)| {
        let writes = stats.writes.as_ref()?;
        let place = TimeSplit::NAMES.iter().position(|name| *name == "cache")?;
        let waits_ms = writes.parts_ms()[place];
        let waits = waits_ms > 1.0 && waits_ms > 0.5 * writes.responses.mean_ms();
        let idle = volume.devices.iter().all(|device| is_idle(&results.devices[*device]));
        (waits && idle && results.setup.page_cache_mb.is_none() && is_occupied(results, stats)).then(|| {
            format!(
                "{}: a write waits {} ms for the cache, while the arm is idle for more than half of the time; look at \
                 drive.cache.dirty_max_sectors, drive.cache.dirty_start_sectors and drive.cache.destage_idle_ms",
                volume.name,
                significant(waits_ms, 4),
            )
        })
    })
}

/// A few requests that wait so long that they determine the mean.
fn few_wait(results: &Results) -> Option<String> {
    results.by_volume().find_map(|(volume, stats)| {
        let kinds = [("reads", &stats.reads), ("writes", &stats.writes), ("flushes", &stats.flushes)];
        kinds.into_iter().find_map(|(name, totals)| few_of(volume, name, totals.as_deref()?))
    })
}

fn few_of(volume: &VolumeResult, name: &str, totals: &Totals) -> Option<String> {
    few_in(&volume.name, name, &totals.responses)
}

fn few_in(volume: &str, name: &str, times: &TimeHistogram) -> Option<String> {
    let (mean, p99, max) = (times.mean_ms(), times.p99().as_ms(), times.max().as_ms());
    (times.count() >= 1000 && mean > 2.0 * p99 && max > 10.0 * p99 && max > 1e3).then(|| {
        format!(
            "{volume}: few {name} wait for very long: the mean of {} ms is above the 99th percentile of {} ms, the longest took {} ms; \
             look at drive.queue.order, drive.queue.age_limit_ms and drive.cache.dirty_max_sectors",
            significant(mean, 4),
            significant(p99, 4),
            grouped(max.round() as u64),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(quick: u64, slow: u64) -> TimeHistogram {
        let mut times = TimeHistogram::new();
        (0..quick).for_each(|_| times.record(Nanos::from_ms(13.0)));
        (0..slow).for_each(|_| times.record(Nanos::from_ms(59_986.0)));
        times
    }

    #[test]
    fn few_requests_that_wait_for_most_of_the_run_are_noted() {
        let text = few_in("disk0", "writes", &times(5200, 31)).expect("31 of them wait for a minute");
        assert!(text.starts_with("disk0: few writes wait for very long: the mean of 368"), "{text}");
        assert!(text.contains("drive.queue.age_limit_ms"), "{text}");
        assert_eq!(few_in("disk0", "writes", &times(5200, 0)), None);
        // Then it is no longer few.
        assert_eq!(few_in("disk0", "writes", &times(5200, 100)), None);
    }

    #[test]
    fn every_check_has_a_name_of_its_own() {
        let mut names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CHECKS.len());
    }
}
