//! `--metrics`: a node's statistics for Prometheus, and as JSON.

use super::state::{CopiesState, DiskState, NodeState, OrderState, StreamState};
use super::watch::Seen;
use crate::service::endpoint::Page;
use crate::service::metrics::{Labels, Metrics, OPEN_METRICS};

pub(super) fn pages(seen: &Seen) -> Vec<Page> {
    let (for_text, for_json) = (seen.clone(), seen.clone());
    let for_health = seen.clone();
    let text = move || Ok(text(&for_text.get()));
    let json = move || Ok(serde_json::to_string(&for_json.get()).expect("a node's state is JSON"));
    vec![
        Page {
            path: "/healthz",
            kind: "text/plain; charset=utf-8",
            text: Box::new(move || health(&for_health.get())),
        },
        Page { path: "/metrics", kind: OPEN_METRICS, text: Box::new(text) },
        Page { path: "/json", kind: "application/json", text: Box::new(json) },
    ]
}

fn health(node: &NodeState) -> Result<String, String> {
    let failed: Vec<&str> =
        node.disk.iter().filter(|disk| disk.has_failed).map(|disk| disk.name.as_str()).collect();
    if failed.is_empty() { Ok("ok\n".to_string()) } else { Err(format!("failed: {}\n", failed.join(", "))) }
}

fn text(node: &NodeState) -> String {
    let mut metrics = Metrics::new();
    let of_node = |value: f64| std::iter::once((Labels::new(), value));
    metrics.gauges("uptime_seconds", "Time since the node began", of_node(node.up_s));
    let help = "Bytes of requests and replies that clients hold beyond what each connection has by itself";
    metrics.gauges("client_memory_bytes", help, of_node(node.client_bytes as f64));
    let help = "How many of these there may be";
    metrics.gauges("client_memory_limit_bytes", help, of_node(node.most_client_bytes as f64));
    for (name, help, value) in GAUGES {
        metrics.gauges(name, help, node.disk.iter().map(|disk| (vec![label(disk)], value(disk))));
    }
    for (name, help, value) in COUNTERS {
        metrics.counters(name, help, node.disk.iter().map(|disk| (vec![label(disk)], value(disk))));
    }
    operations(&mut metrics, node);
    orders(&mut metrics, node);
    copies(&mut metrics, node);
    streams(&mut metrics, node);
    metrics.text()
}

fn label(disk: &DiskState) -> (&'static str, String) {
    ("disk", disk.name.clone())
}

type Measure = fn(&DiskState) -> f64;

const GAUGES: [(&str, &str, Measure); 22] = [
    ("failed", "Whether the disk's thread has failed, for which the node ends", |disk| {
        f64::from(u8::from(disk.has_failed))
    }),
    ("slow", "Whether the disk fails slowly", |disk| f64::from(u8::from(disk.slowness.slow))),
    ("slowdown", "How many times as long as at first reads take", |disk| disk.slowness.slowdown),
    ("late_share", "Share of the busy time of the last two minutes that late commands lost", |disk| {
        disk.slowness.late_share
    }),
    ("connections", "Connections", |disk| disk.connections as f64),
    ("outstanding", "Requests that are not answered yet", |disk| disk.outstanding as f64),
    ("streams", "Streams that there are", |disk| disk.scheduler.streams as f64),
    ("streams_dispatched", "Streams that have a turn", |disk| disk.scheduler.dispatched as f64),
    ("streams_waiting", "Streams whose clients wait for a turn", |disk| {
        disk.scheduler.waiting_streams as f64
    }),
    ("stream_memory_bytes", "Stream memory, M", |disk| disk.scheduler.memory.memory_bytes as f64),
    ("stream_memory_used_bytes", "Stream memory in use", |disk| disk.scheduler.memory.used_bytes as f64),
    ("staged_bytes", "Bytes read ahead and not fetched", |disk| disk.scheduler.memory.staged_bytes as f64),
    ("coalesced_bytes", "Bytes written and not on the disk", |disk| {
        disk.scheduler.memory.coalesced_bytes as f64
    }),
    ("disk_commands", "Commands that the disk has", |disk| disk.scheduler.in_flight as f64),
    ("hit_share", "Reads answered at once, of those in the last second", |disk| disk.hit_share),
    ("utilisation", "Share of the last second in which the disk had a command", |disk| disk.utilisation),
    ("bandwidth_bytes_per_second", "Speed of the disk within a stream, as measured", |disk| {
        disk.scheduler.tuning.bandwidth_mb_s * 1e6
    }),
    ("positioning_seconds", "Time to get to a stream, as measured", |disk| {
        disk.scheduler.tuning.positioning_ms / 1e3
    }),
    ("read_ahead_bytes", "Bytes of a request to the disk, R", |disk| {
        disk.scheduler.tuning.read_ahead_bytes as f64
    }),
    ("requests_per_turn", "Requests in a turn of a stream, N", |disk| {
        disk.scheduler.tuning.requests_per_turn.into()
    }),
    ("dispatch_set", "Streams that have a turn at a time, D", |disk| {
        disk.scheduler.tuning.dispatch_set.into()
    }),
    (
        "bypass",
        "1 while the disk gets requests of streams as they come, because turns would gain too little",
        |disk| f64::from(u8::from(disk.scheduler.bypass)),
    ),
];

const COUNTERS: [(&str, &str, Measure); 13] = [
    ("streams_found", "Streams found", |disk| disk.scheduler.found as f64),
    ("turns", "Turns of streams", |disk| disk.scheduler.counts.turns as f64),
    ("requests", "Requests of clients", |disk| disk.scheduler.counts.requests as f64),
    ("bypass_requests", "Requests that bypassed the streams", |disk| disk.scheduler.counts.direct as f64),
    ("hits", "Reads answered from stream memory at once", |disk| disk.scheduler.counts.hits as f64),
    ("disk_read_bytes", "Bytes read from the disk", |disk| disk.scheduler.counts.disk_read_bytes as f64),
    ("disk_written_bytes", "Bytes written to the disk", |disk| {
        disk.scheduler.counts.disk_written_bytes as f64
    }),
    ("unfetched_bytes", "Bytes read ahead in vain", |disk| disk.scheduler.counts.unfetched_bytes as f64),
    ("lost_bytes", "Bytes acknowledged that the disk then did not take", |disk| {
        disk.scheduler.counts.lost_bytes as f64
    }),
    ("slow_alarms", "Times that the disk began to fail slowly", |disk| disk.slowness.alarms as f64),
    ("late_commands", "Commands that took longer than the worst access of a sound disk", |disk| {
        disk.slowness.late_commands as f64
    }),
    ("late_seconds", "Time that late commands took beyond the worst access", |disk| disk.slowness.late_s),
    ("busy_seconds", "Time in which the disk had a command", |disk| disk.scheduler.busy_s),
];

fn operations(metrics: &mut Metrics, node: &NodeState) {
    let by_kind = |value: fn(&super::state::OperationState) -> f64| {
        node.disk.iter().flat_map(move |disk| {
            disk.operation
                .iter()
                .map(move |of| (vec![label(disk), ("operation", of.kind.clone())], value(of)))
        })
    };
    metrics.counters("operations", "Operations done", by_kind(|of| of.done as f64));
    metrics.counters("operations_failed", "Operations that failed", by_kind(|of| of.failed as f64));
    metrics.counters("bytes", "Bytes of operations done", by_kind(|of| of.bytes as f64));
    metrics.counters("response_seconds", "Response times together", by_kind(|of| of.response_s));
    let quantiles = node.disk.iter().flat_map(|disk| {
        [(0.5, disk.response.p50_ms), (0.99, disk.response.p99_ms), (1.0, disk.response.max_ms)]
            .map(|(share, ms): (f64, f64)| (vec![label(disk), ("quantile", share.to_string())], ms / 1e3))
    });
    metrics.gauges("response_quantile_seconds", "Response times since the node began", quantiles);
    let times = node.disk.iter().map(|disk| (vec![label(disk)], disk.response_counts.clone())).collect();
    metrics.histograms("response_time_seconds", "Response times of operations that succeeded", times);
}

/// Metrics of the order of commands, for disks that have one.
fn orders(metrics: &mut Metrics, node: &NodeState) {
    let each = |value: fn(&OrderState) -> Option<f64>| {
        let ordered = node.disk.iter().filter_map(|disk| Some((disk, disk.order.as_ref()?)));
        ordered.filter_map(move |(disk, order)| Some((vec![label(disk)], value(order)?)))
    };
    let help = "1 while commands are ordered by block number because the disk does not answer as its drive file predicts";
    metrics.gauges("order_fallback", help, each(|order| Some(f64::from(u8::from(order.has_fallen_back())))));
    let waiting = each(|order| Some(order.waiting as f64));
    metrics.gauges("order_waiting", "Commands that wait for a place at the disk", waiting);
    let p50 = each(|order| order.error_p50_ms.map(|ms| ms / 1e3));
    metrics.gauges("prediction_error_seconds", "Error that half of the predictions keep to", p50);
    let all = each(|order| Some(order.predictions as f64));
    metrics.counters("predictions", "Predictions of a request's service", all);
    let missed = each(|order| Some(order.missed as f64));
    metrics.counters("predictions_missed", "Predictions that were half a turn or more off", missed);
    let fallbacks = each(|order| Some(order.fallbacks as f64));
    metrics.counters("order_fallbacks", "Times that the drive file ceased to agree with the disk", fallbacks);
}

/// Metrics of the copies, for disks with a reserved region.
fn copies(metrics: &mut Metrics, node: &NodeState) {
    let each = |value: fn(&CopiesState) -> f64| {
        let rearranged = node.disk.iter().filter_map(|disk| Some((disk, disk.rearrange.as_ref()?)));
        rearranged.map(move |(disk, copies)| (vec![label(disk)], value(copies)))
    };
    metrics.gauges("copies", "Blocks that have a copy in the region", each(|of| of.copies.into()));
    metrics.gauges("copies_dirty", "Copies that are newer than their homes", each(|of| of.dirty.into()));
    metrics.gauges("copy_slots", "Copies for which the region has room", each(|of| of.slots.into()));
    metrics.gauges(
        "copy_hit_share",
        "Share of the requests that only copies served",
        each(CopiesState::hit_share),
    );
    let help = "Distance between requests, in blocks, that the copies save; below 0 where they add to it";
    metrics.gauges("copy_seek_blocks_saved", help, each(CopiesState::saved_blocks));
    let help = "1 after the hot block table could not be written; the disk then refuses writes";
    metrics.gauges("copy_table_failed", help, each(|of| f64::from(u8::from(of.read_only))));
    metrics.counters("copy_requests", "Requests that reached the disk", each(|of| of.requests as f64));
    metrics.counters("copy_hits", "Requests that only copies served", each(|of| of.hits as f64));
    metrics.counters("blocks_copied_in", "Blocks copied to the region", each(|of| of.copied_in as f64));
    metrics.counters("blocks_written_home", "Written copies copied home", each(|of| of.written_home as f64));
}

/// Metrics of the busiest streams. Their labels are slots, which are reused, so that the number of labels is bounded.
fn streams(metrics: &mut Metrics, node: &NodeState) {
    let each = || {
        node.disk.iter().flat_map(|disk| disk.stream.iter().map(move |stream| (labels(disk, stream), stream)))
    };
    let rates = each().map(|(labels, stream)| (labels, stream.mb_s * 1e6));
    metrics.gauges("stream_bytes_per_second", "Rates of the busiest streams over the last 20 s or so", rates);
    let memory = each().map(|(labels, stream)| (labels, stream.memory_bytes as f64));
    metrics.gauges("stream_bytes_in_memory", "Stream memory of the busiest streams", memory);
    let quantiles = each().flat_map(|(labels, stream)| {
        let of = [("0.5", stream.p50_ms), ("0.99", stream.p99_ms)];
        of.into_iter().filter_map(move |(share, ms)| {
            let labels = [labels.clone(), vec![("quantile", share.to_string())]].concat();
            Some((labels, ms? / 1e3))
        })
    });
    metrics.gauges("stream_response_seconds", "Response times of the busiest streams", quantiles);
}

fn labels(disk: &DiskState, stream: &StreamState) -> Labels {
    vec![label(disk), ("stream", stream.slot.to_string()), ("kind", stream.kind.clone())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::state::OperationState;
    use std::collections::BTreeSet;

    fn disk(name: &str, has_failed: bool) -> DiskState {
        DiskState { name: name.to_string(), has_failed, ..DiskState::default() }
    }

    #[test]
    fn health_names_the_disks_that_failed() {
        let mut node =
            NodeState { disk: vec![disk("one", false), disk("two", false)], ..NodeState::default() };
        assert_eq!(health(&node), Ok("ok\n".to_string()));
        node.disk[1].has_failed = true;
        assert_eq!(health(&node), Err("failed: two\n".to_string()));
    }

    /// The names of metrics that a text mentions.
    fn names(text: &str) -> BTreeSet<&str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("headstack_")).collect()
    }

    #[test]
    fn dashboard_and_alerts_use_only_metrics_of_a_node() {
        let disk = DiskState {
            order: Some(OrderState { error_p50_ms: Some(1.0), ..OrderState::default() }),
            rearrange: Some(CopiesState::default()),
            operation: vec![OperationState::default()],
            stream: vec![StreamState::default()],
            ..disk("one", false)
        };
        let text = text(&NodeState { disk: vec![disk], ..NodeState::default() });
        let known = names(&text);
        let files = [
            include_str!("../../../../contrib/grafana/headstack.json"),
            include_str!("../../../../contrib/prometheus/alerts.yml"),
        ];
        for file in files {
            let used = names(file);
            assert!(used.len() > 5, "{used:?}");
            assert!(used.is_subset(&known), "{:?}", used.difference(&known));
        }
    }

    #[test]
    fn metrics_report_the_version_and_client_memory() {
        let text = text(&NodeState { client_bytes: 5, most_client_bytes: 7, ..NodeState::default() });
        let version = format!("headstack_build_info{{version=\"{}\"}} 1.0", env!("CARGO_PKG_VERSION"));
        for line in [
            version.as_str(),
            "headstack_client_memory_bytes{} 5.0",
            "headstack_client_memory_limit_bytes{} 7.0",
        ] {
            assert!(text.lines().any(|met| met == line), "{line} in {text}");
        }
    }
}
