//! A node as tables: a row per disk, and a row per stream.

use crate::report::Table;
use crate::serve::state::{CopiesState, DiskState, NodeState, OrderState, StreamState};
use crate::sim::text::figure;
use crate::units::{capacity, count, grouped, memory};
use std::cmp::Reverse;
use std::time::Duration;

/// What streams are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Order {
    /// Bytes a second, the most first.
    Rate,
    /// The slowest hundredth of its responses, the slowest first.
    P99,
    /// Stream memory, the most first.
    Memory,
    /// Place on the disk, the lowest first.
    Place,
}

impl Order {
    const ALL: [Order; 4] = [Order::Rate, Order::P99, Order::Memory, Order::Place];

    /// The next order; the first after the last.
    pub(super) fn next(self) -> Order {
        let at = Order::ALL.iter().position(|order| *order == self).expect("all are in the list");
        Order::ALL[(at + 1) % Order::ALL.len()]
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Order::Rate => "MB/s",
            Order::P99 => "p99 ms",
            Order::Memory => "memory",
            Order::Place => "place",
        }
    }
}

/// The node in one line.
pub(super) fn title(address: &str, node: &NodeState) -> String {
    let up = humantime::format_duration(Duration::from_secs(node.up_s as u64));
    let head = if address.is_empty() { String::new() } else { format!("{address}   ") };
    let (disks, clients) = (count(node.disk.len(), "disk"), count(node.connections, "client"));
    format!("{head}up {up}   {disks}   {clients}   {} in flight", node.outstanding)
}

pub(super) fn disks(node: &NodeState) -> Table {
    let columns =
        ["disk", "streams", "turn", "wait", "memory", "hit%", "read", "write", "busy%", "p50 ms", "p99 ms"];
    let mut table = Table::new("", &columns);
    for disk in &node.disk {
        let scheduler = &disk.scheduler;
        table.row([
            disk.name.clone(),
            grouped(scheduler.streams as u64),
            scheduler.dispatched.to_string(),
            scheduler.waiting_streams.to_string(),
            format!("{} of {}", short(scheduler.memory.used_bytes), memory(scheduler.memory.memory_bytes)),
            format!("{:.0}", 100.0 * disk.hit_share),
            rate(disk.read_mb_s),
            rate(disk.write_mb_s),
            format!("{:.0}", 100.0 * disk.utilisation),
            time(disk.response.p50_ms),
            time(disk.response.p99_ms),
        ]);
    }
    table
}

/// The tuning of a disk's scheduler, in a line.
pub(super) fn tuning(disk: &DiskState) -> String {
    let scheduler = &disk.scheduler;
    let chosen = format!(
        "{}: R {}, D {}, N {}",
        disk.name,
        memory(scheduler.tuning.read_ahead_bytes),
        scheduler.tuning.dispatch_set,
        scheduler.tuning.requests_per_turn
    );
    let mut parts = vec![chosen];
    if disk.has_failed {
        parts.push("FAILED: the node ends".to_string());
    }
    parts.extend(disk.slowness.text());
    if scheduler.bypass {
        parts.push("streams bypass the scheduler".to_string());
    }
    parts.extend(disk.order.as_ref().map(OrderState::text));
    parts.extend(disk.rearrange.as_ref().map(CopiesState::text));
    if scheduler.busy_s > 0.0 {
        let (mb_s, ms) = (figure(scheduler.tuning.bandwidth_mb_s), figure(scheduler.tuning.positioning_ms));
        parts.push(format!("{mb_s} MB/s once it is there, {ms} ms to get there"));
    }
    if scheduler.memory.coalesced_bytes > 0 {
        parts.push(format!("{} coalesced", memory(scheduler.memory.coalesced_bytes)));
    }
    if scheduler.counts.lost_bytes > 0 {
        parts.push(format!("{} LOST", capacity(scheduler.counts.lost_bytes)));
    }
    parts.join("; ")
}

pub(super) fn streams(node: &NodeState, order: Order, is_turned: bool) -> Table {
    let each = node.disk.iter().flat_map(|disk| disk.stream.iter().map(move |stream| (disk, stream)));
    let mut streams: Vec<(&DiskState, &StreamState)> = each.collect();
    let ms = |stream: &StreamState| stream.p99_ms.unwrap_or_default();
    match order {
        Order::Rate => streams.sort_by(|(_, a), (_, b)| b.mb_s.total_cmp(&a.mb_s)),
        Order::P99 => streams.sort_by(|(_, a), (_, b)| ms(b).total_cmp(&ms(a))),
        Order::Memory => streams.sort_by_key(|(_, stream)| Reverse(stream.memory_bytes)),
        Order::Place => streams.sort_by_key(|(_, stream)| stream.offset),
    }
    if is_turned {
        streams.reverse();
    }
    let columns =
        ["disk", "kind", "stream", "client", "place", "MB/s", "p50 ms", "p99 ms", "memory", "state"];
    let mut table = Table { words: 2, ..Table::new("", &columns) };
    for (disk, stream) in streams {
        let way = if stream.direction == "backward" { "down" } else { "up" };
        let state = match (stream.has_turn, stream.waiting) {
            (true, _) => "turn",
            (false, 0) => "",
            (false, _) => "waits",
        };
        table.row([
            disk.name.clone(),
            format!("{} {way}", stream.kind),
            stream.id.to_string(),
            stream.client.to_string(),
            capacity(stream.offset),
            rate(stream.mb_s),
            stream.p50_ms.map_or("-".to_string(), time),
            stream.p99_ms.map_or("-".to_string(), time),
            memory(stream.memory_bytes),
            state.to_string(),
        ]);
    }
    table
}

fn rate(mb_s: f64) -> String {
    if mb_s >= 100.0 { format!("{mb_s:.0}") } else { format!("{mb_s:.1}") }
}

fn time(ms: f64) -> String {
    match ms {
        ms if ms >= 100.0 => format!("{ms:.0}"),
        ms if ms >= 1.0 => format!("{ms:.1}"),
        0.0 => "0".to_string(),
        ms => format!("{ms:.3}"),
    }
}

/// A size without a space and without the `iB` of its unit, such as `8M`.
fn short(bytes: u64) -> String {
    memory(bytes).replace(' ', "").replace("iB", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::state::{MemoryState, SchedulerState};

    /// A node with a busy disk, whose streams have these rates.
    fn node(rates: &[f64]) -> NodeState {
        let stream = |(id, mb_s): (usize, &f64)| StreamState {
            id: id as u32,
            client: 1023,
            kind: "write".to_string(),
            direction: "backward".to_string(),
            offset: 17_900_000_000_000 - id as u64,
            mb_s: *mb_s,
            memory_bytes: 16_640 << 10,
            waiting: 1,
            p50_ms: Some(10_000.0),
            p99_ms: Some(10_000.0 - id as f64),
            ..StreamState::default()
        };
        let scheduler = SchedulerState {
            streams: 1000,
            dispatched: 2,
            waiting_streams: 999,
            memory: MemoryState { memory_bytes: 128 << 20, used_bytes: 127 << 20, ..MemoryState::default() },
            ..SchedulerState::default()
        };
        let disk = DiskState {
            name: "video00".to_string(),
            read_mb_s: 250.0,
            write_mb_s: 250.0,
            hit_share: 1.0,
            utilisation: 1.0,
            scheduler,
            stream: rates.iter().enumerate().map(stream).collect(),
            ..DiskState::default()
        };
        NodeState { disk: vec![disk], ..NodeState::default() }
    }

    #[test]
    fn tables_of_a_busy_node_fit_80_columns() {
        let node = node(&[125.0, 99.95]);
        for table in [disks(&node), streams(&node, Order::Rate, false)] {
            let width = |at: usize| {
                let cells = table.rows.iter().map(|row| &row[at]).chain([&table.columns[at]]);
                cells.map(|text| text.chars().count()).max().unwrap_or_default()
            };
            let all: usize = (0..table.columns.len()).map(|at| width(at) + 1).sum();
            assert!(all <= 81, "{}", table.to_text());
        }
    }

    #[test]
    fn streams_sort_by_the_selected_order() {
        let node = node(&[1.0, 3.0, 2.0]);
        let ids = |order, is_turned| {
            let rows = streams(&node, order, is_turned).rows;
            rows.into_iter().map(|row| row[2].clone()).collect::<Vec<_>>()
        };
        assert_eq!(ids(Order::Rate, false), ["1", "2", "0"]);
        assert_eq!(ids(Order::Rate, true), ["0", "2", "1"]);
        assert_eq!(ids(Order::P99, false), ["0", "1", "2"]);
        assert_eq!(ids(Order::Place, false), ["2", "1", "0"]);
        let mut order = Order::Rate;
        (0..4).for_each(|_| order = order.next());
        assert_eq!(order, Order::Rate);
    }
}
