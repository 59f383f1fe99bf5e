//! `--stats`: what the disks do, while they do it.

use super::state::{DiskState, NodeState, SchedulerState};
use crate::service::lines::Lines;
use crate::sim::text::figure;
use crate::units::{count, memory};
use std::time::{Duration, Instant};

/// A line a disk.
pub(super) struct Live {
    interval: Duration,
    due: Instant,
    lines: Lines,
}

impl Live {
    pub(super) fn new(interval: Duration) -> Live {
        #[allow(clippy::disallowed_methods, reason = "people look by the machine's clock")]
        let due = Instant::now() + interval;
        Live { interval, due, lines: Lines::default() }
    }

    /// When to show next.
    pub(super) fn next(&self) -> Instant {
        self.due
    }

    /// Shows a node.
    pub(super) fn show(&mut self, node: &NodeState) {
        node.disk.iter().enumerate().for_each(|(at, disk)| self.lines.show(at, line(disk)));
        self.due += self.interval;
    }
}

/// How many streams there are, and whether they have turns.
fn streams(scheduler: &SchedulerState) -> String {
    let turns = match scheduler.bypass {
        true => "bypassed".to_string(),
        false => format!("{} in turn", scheduler.dispatched),
    };
    format!("{}, {turns}", count(scheduler.streams, "stream"))
}

fn line(disk: &DiskState) -> String {
    let scheduler = &disk.scheduler;
    [
        disk.name.clone(),
        format!("{}, {} under way", count(disk.connections, "client"), disk.outstanding),
        streams(scheduler),
        format!("{} of {}", memory(scheduler.used_bytes), memory(scheduler.memory_bytes)),
        format!("hits {:.0} %", 100.0 * disk.hit_share),
        format!("{} MB/s read, {} written", figure(disk.read_mb_s), figure(disk.write_mb_s)),
        format!("busy {:.0} %", 100.0 * disk.utilisation),
        format!("p50 {} ms, p99 {} ms", figure(disk.response.p50_ms), figure(disk.response.p99_ms)),
    ]
    .join(" | ")
}
