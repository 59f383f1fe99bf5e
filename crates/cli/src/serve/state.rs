//! The state of a node at a moment, for `/json`, `headstack top` and Prometheus.
//!
//! Rates are means since the last sample, usually a second before. Counts are since the node began.

use crate::service::metrics::TimeCounts;
use crate::sim::text::figure;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct NodeState {
    /// Time since the node began.
    pub(crate) up_s: f64,
    pub(crate) connections: usize,
    /// Pending requests, and their bytes.
    pub(crate) outstanding: usize,
    /// Bytes of requests and replies in flight beyond the share that each connection has for itself, and their limit.
    #[serde(default)]
    pub(crate) client_bytes: u64,
    #[serde(default)]
    pub(crate) most_client_bytes: u64,
    pub(crate) disk: Vec<DiskState>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DiskState {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) bytes: u64,
    /// Whether its thread has failed, which ends the node.
    pub(crate) has_failed: bool,
    pub(crate) connections: usize,
    pub(crate) outstanding: usize,
    /// Rates since the last sample.
    pub(crate) read_mb_s: f64,
    pub(crate) write_mb_s: f64,
    pub(crate) iops: f64,
    /// Share of reads answered at once from stream memory, since the last sample.
    pub(crate) hit_share: f64,
    /// Share of the time in which the disk had a command, since the last sample.
    pub(crate) utilisation: f64,
    /// Response times of all requests since the node began.
    pub(crate) response: Response,
    #[serde(default)]
    pub(crate) response_counts: TimeCounts,
    pub(crate) operation: Vec<OperationState>,
    pub(crate) scheduler: SchedulerState,
    /// The order of its commands, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) order: Option<OrderState>,
    /// Whether the disk fails slowly.
    #[serde(default)]
    pub(crate) slowness: SlownessState,
    /// The copies of its hot blocks, if it has a region for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rearrange: Option<CopiesState>,
    /// The streams with the most bytes a second, at most [`MOST_STREAMS`].
    pub(crate) stream: Vec<StreamState>,
}

/// Maximum number of streams that are reported individually.
pub(crate) const MOST_STREAMS: usize = 100;

/// Response times of clients, without the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Response {
    pub(crate) mean_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct OperationState {
    pub(crate) kind: String,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) bytes: u64,
    /// Sum of their response times.
    pub(crate) response_s: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SchedulerState {
    /// Streams now, and the number detected since the node began.
    pub(crate) streams: usize,
    pub(crate) found: u64,
    /// Streams that have a turn, and those whose clients wait for one.
    pub(crate) dispatched: usize,
    pub(crate) waiting_streams: usize,
    #[serde(flatten)]
    pub(crate) memory: MemoryState,
    /// Commands at the disk.
    pub(crate) in_flight: usize,
    #[serde(flatten)]
    pub(crate) counts: SchedulerCounts,
    #[serde(flatten)]
    pub(crate) tuning: TuningState,
    /// Whether requests of streams bypass the scheduler, because turns would gain too little.
    #[serde(default)]
    pub(crate) bypass: bool,
    /// Time in which the disk had a command.
    pub(crate) busy_s: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct MemoryState {
    /// M, its use, and the highest use so far.
    pub(crate) memory_bytes: u64,
    pub(crate) used_bytes: u64,
    pub(crate) high_water_bytes: u64,
    /// Bytes that were read ahead and not yet fetched; bytes that were written and are not yet on the disk.
    pub(crate) staged_bytes: u64,
    pub(crate) coalesced_bytes: u64,
}

/// Counts of the scheduler since the node began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SchedulerCounts {
    /// Requests, those that bypassed the streams, and reads answered at once from stream memory.
    pub(crate) requests: u64,
    pub(crate) direct: u64,
    pub(crate) hits: u64,
    pub(crate) turns: u64,
    pub(crate) disk_read_bytes: u64,
    pub(crate) disk_written_bytes: u64,
    /// Bytes that were read ahead and never fetched.
    pub(crate) unfetched_bytes: u64,
    /// Bytes that were acknowledged, and that the disk later refused to write.
    pub(crate) lost_bytes: u64,
}

/// Measurements of the scheduler, and the present R, N and D.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TuningState {
    pub(crate) bandwidth_mb_s: f64,
    pub(crate) positioning_ms: f64,
    pub(crate) read_ahead_bytes: u64,
    pub(crate) requests_per_turn: u32,
    pub(crate) dispatch_set: u32,
}

/// Signs of a disk that fails slowly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SlownessState {
    pub(crate) slow: bool,
    /// Alarms since the node began.
    pub(crate) alarms: u64,
    /// Commands that took longer than the worst access of a sound disk; the time beyond that; and the share of this time in the recent busy time.
    pub(crate) late_commands: u64,
    pub(crate) late_s: f64,
    pub(crate) late_share: f64,
    /// The present duration of reads over their duration at first.
    pub(crate) slowdown: f64,
}

impl SlownessState {
    /// A short text for a slow disk; none for another one.
    pub(crate) fn text(&self) -> Option<String> {
        let SlownessState { slowdown, late_share, .. } = self;
        let lost = 100.0 * late_share;
        self.slow.then(|| format!("SLOW: {lost:.1} % of the time lost to late commands, reads {slowdown:.1} times as long as at first"))
    }
}

/// The order of a disk's commands, and how well its drive file predicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct OrderState {
    /// The order in use, and the configured one.
    pub(crate) in_use: String,
    pub(crate) wanted: String,
    /// `learning`, `agrees` or `differs`.
    pub(crate) drive_file: String,
    /// Commands in the queue.
    pub(crate) waiting: usize,
    pub(crate) at_disk: u32,
    /// Median and 90th percentile of the error of the latest predictions; none without predictions.
    pub(crate) error_p50_ms: Option<f64>,
    pub(crate) error_p90_ms: Option<f64>,
    /// Predictions since the node began, and those that were wrong by half a turn or more.
    pub(crate) predictions: u64,
    pub(crate) missed: u64,
    pub(crate) reserve_ms: f64,
    /// How often the drive file ceased to agree with the disk.
    pub(crate) fallbacks: u64,
}

impl OrderState {
    /// Whether commands are ordered by block number because the drive file is of another disk.
    pub(crate) fn has_fallen_back(&self) -> bool {
        self.drive_file == "differs"
    }

    /// In a few words.
    pub(crate) fn text(&self) -> String {
        let error = |ms: Option<f64>| ms.map_or("-".to_string(), figure);
        match self.drive_file.as_str() {
            "agrees" => format!(
                "ordered by {}, predictions off by {} ms (p50) and {} ms (p90)",
                self.in_use,
                error(self.error_p50_ms),
                error(self.error_p90_ms)
            ),
            "differs" => "ordered by block number: ANOTHER DISK than the drive file's".to_string(),
            _ => format!(
                "ordered by block number until the drive file is seen to agree, then by {}",
                self.wanted
            ),
        }
    }
}

/// The copies of a disk's hot blocks. Requests are those that reach the disk; counts are since the node began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CopiesState {
    /// Places for copies, copies, and copies that were written.
    pub(crate) slots: u32,
    pub(crate) copies: u32,
    pub(crate) dirty: u32,
    /// Requests, and those that were served by copies alone.
    pub(crate) requests: u64,
    pub(crate) hits: u64,
    /// Blocks copied to the region, and written copies that were copied home.
    pub(crate) copied_in: u64,
    pub(crate) written_home: u64,
    pub(crate) periods: u64,
    /// Sum of the distances between successive requests in blocks, and what it would be without copies.
    pub(crate) seek_blocks: u64,
    pub(crate) home_seek_blocks: u64,
    /// Whether the hot block table could not be written, so that the disk refuses writes.
    pub(crate) read_only: bool,
}

impl CopiesState {
    /// Share of the requests that were served by copies alone; 0 without requests.
    pub(crate) fn hit_share(&self) -> f64 {
        self.hits as f64 / self.requests.max(1) as f64
    }

    /// The seek distance in blocks that the copies saved; below 0 if the arm moved further with them.
    pub(crate) fn saved_blocks(&self) -> f64 {
        self.home_seek_blocks as f64 - self.seek_blocks as f64
    }

    /// In a few words.
    pub(crate) fn text(&self) -> String {
        let share = if self.home_seek_blocks > 0 {
            format!(
                ", {:.0} % of the seek distance saved",
                100.0 * self.saved_blocks() / self.home_seek_blocks as f64
            )
        } else {
            String::new()
        };
        let state = if self.read_only { "; READ-ONLY: the hot block table cannot be written" } else { "" };
        let hits = 100.0 * self.hit_share();
        format!(
            "{} of {} copies, {} written, {hits:.0} % hits{share}{state}",
            self.copies, self.slots, self.dirty
        )
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StreamState {
    /// Its number, which is reused.
    pub(crate) id: u32,
    /// Its index among the reported streams, which is reused: below [`MOST_STREAMS`].
    #[serde(default)]
    pub(crate) slot: usize,
    /// The connection of its last request.
    pub(crate) client: u64,
    pub(crate) kind: String,
    pub(crate) direction: String,
    pub(crate) offset: u64,
    /// Mean over about the last 20 s, because a stream's turns are seconds apart.
    pub(crate) mb_s: f64,
    pub(crate) bytes: u64,
    pub(crate) requests: u64,
    pub(crate) hits: u64,
    pub(crate) waiting: u32,
    pub(crate) memory_bytes: u64,
    pub(crate) has_turn: bool,
    /// Response times of that connection, if the node keeps them.
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheduler_keys_are_flat_and_in_order() {
        let text = serde_json::to_string(&SchedulerState::default()).expect("a state is JSON");
        let keys: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
        let expected = "streams found dispatched waiting_streams memory_bytes used_bytes high_water_bytes staged_bytes \
                        coalesced_bytes in_flight requests direct hits turns disk_read_bytes disk_written_bytes unfetched_bytes \
                        lost_bytes bandwidth_mb_s positioning_ms read_ahead_bytes requests_per_turn dispatch_set bypass busy_s";
        assert_eq!(keys.join(" "), expected);
        let read: SchedulerState = serde_json::from_str(&text).expect("it is read again");
        assert_eq!(read, SchedulerState::default());
    }
}
