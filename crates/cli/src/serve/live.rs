//! `--stats`: the activity of the disks.

use super::state::{self, StatePart};
use crate::sim::text::figure;
use crate::units::{count, memory};

/// Number of streams, and how many of them have a turn; or that they bypass the scheduler.
fn streams(disk: StatePart<'_>) -> String {
    let turns = if disk.is("scheduler/bypass") {
        "bypassed".to_string()
    } else {
        format!("{} in turn", disk.whole("scheduler/dispatched"))
    };
    format!("{}, {turns}", count(disk.whole("scheduler/streams") as usize, "stream"))
}

pub(super) fn line(disk: StatePart<'_>) -> String {
    let bytes = |path: &str| memory(disk.whole(path));
    let figure = |path: &str| figure(disk.number(path));
    let percent = |path: &str| format!("{:.0} %", 100.0 * disk.number(path));
    let parts = [
        disk.text("name").to_string(),
        format!(
            "{}, {} in flight",
            count(disk.whole("connections") as usize, "client"),
            disk.whole("outstanding")
        ),
        streams(disk),
        format!("{} of {}", bytes("scheduler/used_bytes"), bytes("scheduler/memory_bytes")),
        format!("hits {}", percent("hit_share")),
        format!("{} MB/s read, {} written", figure("read_mb_s"), figure("write_mb_s")),
        format!("busy {}", percent("utilisation")),
        format!("p50 {} ms, p99 {} ms", figure("response/p50_ms"), figure("response/p99_ms")),
    ];
    parts.into_iter().chain(disk.part("order").map(state::order)).collect::<Vec<_>>().join(" | ")
}
