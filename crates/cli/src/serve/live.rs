//! `--stats`: the activity of the disks.

use super::state::{DiskState, OrderState, SchedulerState};
use crate::sim::text::figure;
use crate::units::{count, memory};

/// Number of streams, and how many of them have a turn; or that they bypass the scheduler.
fn streams(scheduler: &SchedulerState) -> String {
    let turns =
        if scheduler.bypass { "bypassed".to_string() } else { format!("{} in turn", scheduler.dispatched) };
    format!("{}, {turns}", count(scheduler.streams, "stream"))
}

pub(super) fn line(disk: &DiskState) -> String {
    let scheduler = &disk.scheduler;
    let parts = [
        disk.name.clone(),
        format!("{}, {} in flight", count(disk.connections, "client"), disk.outstanding),
        streams(scheduler),
        format!("{} of {}", memory(scheduler.memory.used_bytes), memory(scheduler.memory.memory_bytes)),
        format!("hits {:.0} %", 100.0 * disk.hit_share),
        format!("{} MB/s read, {} written", figure(disk.read_mb_s), figure(disk.write_mb_s)),
        format!("busy {:.0} %", 100.0 * disk.utilisation),
        format!("p50 {} ms, p99 {} ms", figure(disk.response.p50_ms), figure(disk.response.p99_ms)),
    ];
    parts.into_iter().chain(disk.order.as_ref().map(OrderState::text)).collect::<Vec<_>>().join(" | ")
}
