//! A node as tables: a row per disk, and a row per stream.

use crate::report::Table;
use crate::serve::state::{self, StatePart};
use crate::sim::text::figure;
use crate::units::{capacity, count, grouped, memory};
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
pub(super) fn title(address: &str, node: StatePart<'_>) -> String {
    let up = humantime::format_duration(Duration::from_secs(node.number("up_s") as u64));
    let head = if address.is_empty() { String::new() } else { format!("{address}   ") };
    let disks = count(node.list("disk").count(), "disk");
    let clients = count(node.whole("connections") as usize, "client");
    format!("{head}up {up}   {disks}   {clients}   {} in flight", node.whole("outstanding"))
}

pub(super) fn disks(node: StatePart<'_>) -> Table {
    let columns =
        ["disk", "streams", "turn", "wait", "memory", "hit%", "read", "write", "busy%", "p50 ms", "p99 ms"];
    let mut table = Table::new("", &columns);
    for disk in node.list("disk") {
        let [used, bytes] = ["scheduler/used_bytes", "scheduler/memory_bytes"].map(|path| disk.whole(path));
        table.row([
            disk.text("name").to_string(),
            grouped(disk.whole("scheduler/streams")),
            disk.whole("scheduler/dispatched").to_string(),
            disk.whole("scheduler/waiting_streams").to_string(),
            format!("{} of {}", short(used), memory(bytes)),
            format!("{:.0}", 100.0 * disk.number("hit_share")),
            rate(disk.number("read_mb_s")),
            rate(disk.number("write_mb_s")),
            format!("{:.0}", 100.0 * disk.number("utilisation")),
            time(disk.number("response/p50_ms")),
            time(disk.number("response/p99_ms")),
        ]);
    }
    table
}

/// The tuning of a disk's scheduler, in a line.
pub(super) fn tuning(disk: StatePart<'_>) -> String {
    let scheduler = disk.part("scheduler").unwrap_or(disk);
    let chosen = format!(
        "{}: R {}, D {}, N {}",
        disk.text("name"),
        memory(scheduler.whole("read_ahead_bytes")),
        scheduler.whole("dispatch_set"),
        scheduler.whole("requests_per_turn")
    );
    let mut parts = vec![chosen];
    if disk.is("has_failed") {
        parts.push("FAILED: the node ends".to_string());
    }
    parts.extend(state::slowness(disk));
    if scheduler.is("bypass") {
        parts.push("streams bypass the scheduler".to_string());
    }
    parts.extend(disk.part("order").map(state::order));
    parts.extend(disk.part("rearrange").map(state::copies));
    if scheduler.number("busy_s") > 0.0 {
        let [mb_s, ms] = ["bandwidth_mb_s", "positioning_ms"].map(|path| figure(scheduler.number(path)));
        parts.push(format!("{mb_s} MB/s once it is there, {ms} ms to get there"));
    }
    let [coalesced, lost] = ["coalesced_bytes", "lost_bytes"].map(|path| scheduler.whole(path));
    if coalesced > 0 {
        parts.push(format!("{} coalesced", memory(coalesced)));
    }
    if lost > 0 {
        parts.push(format!("{} LOST", capacity(lost)));
    }
    parts.join("; ")
}

pub(super) fn streams(node: StatePart<'_>, order: Order, is_turned: bool) -> Table {
    let each = node.list("disk").flat_map(|disk| disk.list("stream").map(move |stream| (disk, stream)));
    let mut streams: Vec<(StatePart<'_>, StatePart<'_>)> = each.collect();
    let mut sort_down = |path: &str| {
        streams.sort_by(|(_, a), (_, b)| b.number(path).total_cmp(&a.number(path)));
    };
    match order {
        Order::Rate => sort_down("mb_s"),
        Order::P99 => sort_down("p99_ms"),
        Order::Memory => sort_down("memory_bytes"),
        Order::Place => streams.sort_by_key(|(_, stream)| stream.whole("offset")),
    }
    if is_turned {
        streams.reverse();
    }
    let columns =
        ["disk", "kind", "stream", "client", "place", "MB/s", "p50 ms", "p99 ms", "memory", "state"];
    let mut table = Table { words: 2, ..Table::new("", &columns) };
    for (disk, stream) in streams {
        let way = if stream.text("direction") == "backward" { "down" } else { "up" };
        let state = match (stream.is("has_turn"), stream.whole("waiting")) {
            (true, _) => "turn",
            (false, 0) => "",
            (false, _) => "waits",
        };
        table.row([
            disk.text("name").to_string(),
            format!("{} {way}", stream.text("kind")),
            stream.whole("id").to_string(),
            stream.whole("client").to_string(),
            capacity(stream.whole("offset")),
            rate(stream.number("mb_s")),
            stream.some_number("p50_ms").map_or("-".to_string(), time),
            stream.some_number("p99_ms").map_or("-".to_string(), time),
            memory(stream.whole("memory_bytes")),
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
    use serde_json::{Value, json};

    /// A node with a busy disk, whose streams have these rates.
    fn node(rates: &[f64]) -> Value {
        let stream = |(id, mb_s): (usize, &f64)| {
            json!({
                "id": id,
                "client": 1023,
                "kind": "write",
                "direction": "backward",
                "offset": 17_900_000_000_000_u64 - id as u64,
                "mb_s": mb_s,
                "memory_bytes": 16_640 << 10,
                "waiting": 1,
                "p50_ms": 10_000.0,
                "p99_ms": 10_000.0 - id as f64,
            })
        };
        let scheduler = json!({
            "streams": 1000,
            "dispatched": 2,
            "waiting_streams": 999,
            "memory_bytes": 128 << 20,
            "used_bytes": 127 << 20,
        });
        let streams: Vec<Value> = rates.iter().enumerate().map(stream).collect();
        json!({ "disk": [{
            "name": "video00",
            "read_mb_s": 250.0,
            "write_mb_s": 250.0,
            "hit_share": 1.0,
            "utilisation": 1.0,
            "scheduler": scheduler,
            "stream": streams,
        }] })
    }

    #[test]
    fn tables_of_a_busy_node_fit_80_columns() {
        let node = node(&[125.0, 99.95]);
        for table in [disks(StatePart(&node)), streams(StatePart(&node), Order::Rate, false)] {
            let width = |at: usize| {
                let cells = table.rows.iter().map(|row| &row[at]).chain([&table.columns[at]]);
                cells.map(|text| text.chars().count()).max().unwrap_or_default()
            };
            let all: usize = (0..table.columns.len()).map(|at| width(at) + 1).sum();
            assert!(all <= 81, "{}", table.to_text());
        }
    }

    /// Sets all numbers to 7 and all flags.
    fn set_all(value: &mut Value) {
        match value {
            Value::Object(parts) => parts.values_mut().for_each(set_all),
            Value::Array(parts) => parts.iter_mut().for_each(set_all),
            Value::Number(_) => *value = 7.into(),
            Value::Bool(flag) => *flag = true,
            Value::Null | Value::String(_) => {}
        }
    }

    /// A key that a node does not have would show as 0 or not at all.
    #[test]
    fn every_figure_shown_is_one_that_a_node_has() {
        let mut node = Value::Object(crate::serve::full_node().to_json());
        set_all(&mut node);
        let shown =
            [disks(StatePart(&node)), streams(StatePart(&node), Order::Rate, false)].map(|table| table.rows);
        let disk = ["one", "7", "7", "7", "7B of 7 B", "700", "7.0", "7.0", "700", "7.0", "7.0"];
        let stream = ["one", "read up", "7", "7", "7.00 B", "7.0", "7.0", "7.0", "7 B", "turn"];
        assert_eq!(
            shown,
            [vec![disk.map(str::to_string).to_vec()], vec![stream.map(str::to_string).to_vec()]]
        );
        let tuning: Vec<String> = StatePart(&node).list("disk").map(tuning).collect();
        let expected = "one: R 7 B, D 7, N 7; FAILED: the node ends; SLOW: 700.0 % of the time lost to late commands, reads 7.0 times \
            as long as at first; streams bypass the scheduler; ordered by sptf, predictions off by 7.000 ms (p50) and - ms (p90); \
            7 of 7 copies, 7 written, 100 % hits, 0 % of the seek distance saved; READ-ONLY: the hot block table cannot be written; \
            7.000 MB/s once it is there, 7.000 ms to get there; 7 B coalesced; 7.00 B LOST";
        assert_eq!(tuning, [expected]);
    }

    #[test]
    fn streams_sort_by_the_selected_order() {
        let node = node(&[1.0, 3.0, 2.0]);
        let ids = |order, is_turned| {
            let rows = streams(StatePart(&node), order, is_turned).rows;
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
