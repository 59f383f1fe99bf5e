//! Samples the disks of a node each second, so that readers get rates and do not delay the disks.

use super::state::{StatePart, failed};
use crate::service::log::STREAMS;
use headstack::ratio;
use headstack_host::disk::Kind;
use headstack_host::node::{ClientView, NodeHandle, NodeView};
use headstack_model::report::QuantityUnit;
use headstack_model::{Instant, Nanos, QuantityReport};
use headstack_nbd::Budget;
use headstack_streams::streams::StreamView;
use log::debug;
use serde_json::Value;
use std::collections::BTreeMap;
#[allow(clippy::disallowed_types, reason = "the endpoint's thread reads what the command's sees")]
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{self, Duration};

/// The last sample, which any thread can read.
#[derive(Clone)]
#[allow(clippy::disallowed_types, reason = "the endpoint's thread reads what the command's sees")]
pub(super) struct Seen(Arc<Mutex<QuantityReport>>);

impl Seen {
    /// The sample as `/json` has it.
    pub(super) fn json(&self) -> Value {
        self.lock().to_json().into()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, QuantityReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Watch {
    seen: Seen,
    disks: Vec<Watched>,
    budget: Option<Budget>,
    due: time::Instant,
    /// Disks whose failure was reported.
    failed: Vec<String>,
}

struct Watched {
    node: NodeHandle,
    at: Instant,
    reads: u64,
    read_bytes: u64,
    written_bytes: u64,
    done: u64,
    hits: u64,
    busy: Nanos,
    /// Whether streams bypassed the scheduler at the last sample.
    bypass: bool,
    /// Bytes and rate of each stream. The key is its number and the time at which it was detected.
    streams: BTreeMap<(u32, Instant), (u64, f64)>,
    slots: Slots,
}

/// The reported streams, each in a slot that it keeps while it is reported.
#[derive(Default)]
struct Slots(Vec<Option<(u32, Instant)>>);

impl Slots {
    /// Frees the slots of other streams, and assigns slots to these.
    fn keep(&mut self, streams: &[(u32, Instant)]) {
        for slot in &mut self.0 {
            *slot = slot.filter(|stream| streams.contains(stream));
        }
        for stream in streams {
            if self.0.contains(&Some(*stream)) {
                continue;
            }
            match self.0.iter_mut().find(|slot| slot.is_none()) {
                Some(slot) => *slot = Some(*stream),
                None => self.0.push(Some(*stream)),
            }
        }
    }

    fn index_of(&self, stream: (u32, Instant)) -> usize {
        self.0.iter().position(|slot| *slot == Some(stream)).expect("it was kept")
    }
}

/// Maximum number of streams that are reported individually: those with the most bytes a second.
const MOST_STREAMS: usize = 100;

/// Time over which rates of streams are smoothed.
const SMOOTHED_S: f64 = 20.0;

const INTERVAL: Duration = Duration::from_secs(1);

fn now() -> time::Instant {
    #[allow(clippy::disallowed_methods, reason = "people look by the machine's clock")]
    time::Instant::now()
}

impl Watch {
    #[allow(clippy::disallowed_types, reason = "the endpoint's thread reads what the command's sees")]
    pub(super) fn new(nodes: Vec<NodeHandle>, budget: Option<Budget>) -> Watch {
        let disks = nodes.into_iter().map(Watched::new).collect();
        let seen = Seen(Arc::new(Mutex::new(QuantityReport::default())));
        let mut watch = Watch { seen, disks, budget, due: now(), failed: Vec::new() };
        watch.refresh();
        watch
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.clone()
    }

    pub(super) fn next(&self) -> time::Instant {
        self.due
    }

    /// Disks whose threads have failed since the last call.
    pub(super) fn failures(&mut self) -> Vec<String> {
        let seen = self.seen.json();
        let failed = failed(StatePart(&seen)).map(str::to_string);
        let failed: Vec<String> = failed.filter(|name| !self.failed.contains(name)).collect();
        self.failed.extend(failed.iter().cloned());
        failed
    }

    pub(super) fn refresh(&mut self) {
        let views: Vec<NodeView> = self.disks.iter().map(|disk| disk.node.view()).collect();
        let up = views.iter().map(|view| view.at).max().unwrap_or_default();
        let mut into = QuantityReport::default();
        into.gauge("up_s", up.since_start(), "Time since the node began").metric("uptime_seconds");
        let all = |count: fn(&NodeView) -> usize| views.iter().map(count).sum::<usize>();
        into.gauge("connections", all(|view| view.connections), "Connections").detail();
        into.gauge("outstanding", all(|view| view.outstanding), "Pending requests").detail();
        let help =
            "Bytes of requests and replies that clients hold beyond what each connection has by itself";
        into.gauge("client_bytes", self.budget.as_ref().map_or(0, Budget::spent), help)
            .metric("client_memory_bytes");
        let most = self.budget.as_ref().map_or(0, Budget::bytes);
        into.gauge("most_client_bytes", most, "How many of these there may be")
            .metric("client_memory_limit_bytes");
        into.list("disk", self.disks.iter_mut().zip(&views), |(disk, view), into| disk.measure(view, into));
        *self.seen.lock() = into;
        // Samples that were due while the machine slept are skipped.
        self.due = (self.due + INTERVAL).max(now());
    }
}

impl Watched {
    fn new(node: NodeHandle) -> Watched {
        Watched {
            at: Instant::ZERO,
            reads: 0,
            read_bytes: 0,
            written_bytes: 0,
            done: 0,
            hits: 0,
            busy: Nanos::ZERO,
            bypass: false,
            streams: BTreeMap::new(),
            slots: Slots::default(),
            node,
        }
    }

    fn measure(&mut self, view: &NodeView, into: &mut QuantityReport) {
        let (scheduler, streams) = self
            .node
            .inspect(|streams| (streams.view(), streams.stream_views().collect::<Vec<StreamView>>()));
        let seconds = view.at.since(self.at).as_secs();
        let latest = streams.iter().map(|stream| self.stream(stream, view.at, seconds)).collect();
        let before = std::mem::replace(&mut self.streams, latest);
        self.log_changes(&before, &streams);
        self.log_bypass(scheduler.bypass);
        into.fact("name", self.node.name()).label("disk");
        into.fact("title", self.node.title());
        into.fact("bytes", self.node.shape().bytes);
        view.report_load(into);
        self.report_rates(view, scheduler.counters.hits, into);
        view.report_counts(&scheduler, into);
        self.report_streams(&streams, &view.clients, into);
    }

    /// Adds the rates since the last sample.
    fn report_rates(&mut self, view: &NodeView, hits: u64, into: &mut QuantityReport) {
        let seconds = view.at.since(self.at).as_secs();
        let (read, written) = (view.books.count_of(Kind::Read), view.books.count_of(Kind::Write));
        let mb_s = |bytes: u64| ratio(bytes as f64 / 1e6, seconds);
        let mut rate = |name, mb_s: f64, help| {
            into.gauge(name, mb_s, help).unit(QuantityUnit::MegabytesPerSecond).detail();
        };
        rate("read_mb_s", mb_s(read.bytes - self.read_bytes), "Read by clients");
        rate("write_mb_s", mb_s(written.bytes - self.written_bytes), "Written by clients");
        let done = view.books.all().done;
        let iops = ratio((done - self.done) as f64, seconds);
        into.gauge("iops", iops, "Operations done a second").detail();
        let hit_share = ratio((hits - self.hits) as f64, (read.done - self.reads) as f64).min(1.0);
        into.share("hit_share", hit_share, "Reads answered at once, of those in the last second");
        let busy = ratio(view.busy.saturating_sub(self.busy).as_secs(), seconds).min(1.0);
        into.share("utilisation", busy, "Share of the last second in which the disk had a command");
        (self.at, self.reads, self.done, self.hits, self.busy) = (view.at, read.done, done, hits, view.busy);
        (self.read_bytes, self.written_bytes) = (read.bytes, written.bytes);
    }

    /// A stream's bytes and rate. The turns of a stream are seconds apart, so its rate is smoothed over several turns.
    fn stream(&self, stream: &StreamView, now: Instant, seconds: f64) -> ((u32, Instant), (u64, f64)) {
        let key = (stream.id, stream.since);
        let (bytes, rate) = self.streams.get(&key).copied().unwrap_or_default();
        let age = now.since(stream.since).as_secs();
        // For a new stream the rate is the mean since it was detected.
        let weight = ratio(seconds, age.min(SMOOTHED_S)).min(1.0);
        let latest = ratio((stream.bytes - bytes) as f64 / 1e6, seconds.min(age));
        (key, (stream.bytes, rate + weight * (latest - rate)))
    }

    /// Logs the streams detected and ended since the last sample.
    fn log_changes(&self, before: &BTreeMap<(u32, Instant), (u64, f64)>, streams: &[StreamView]) {
        let name = self.node.name();
        for stream in streams.iter().filter(|stream| !before.contains_key(&(stream.id, stream.since))) {
            let (kind, number, client) = (stream.kind(), stream.id, stream.client);
            debug!(target: STREAMS, "{name}: stream {number} found: connection {client} {kind}s at byte {}", stream.offset);
        }
        for (number, since) in before.keys().filter(|stream| !self.streams.contains_key(stream)) {
            let age = self.node.clock().now().since(*since).as_secs();
            debug!(target: STREAMS, "{name}: stream {number} given up, {age:.0} s after it was found");
        }
    }

    /// Logs when streams begin or cease to bypass the scheduler.
    fn log_bypass(&mut self, bypass: bool) {
        let name = self.node.name();
        match (std::mem::replace(&mut self.bypass, bypass), bypass) {
            (false, true) => {
                debug!(target: STREAMS, "{name}: streams bypass the scheduler: turns gain too little")
            }
            (true, false) => debug!(target: STREAMS, "{name}: streams have turns again"),
            _ => {}
        }
    }

    /// Adds the streams with the most bytes a second.
    fn report_streams(&mut self, streams: &[StreamView], clients: &[ClientView], into: &mut QuantityReport) {
        let key = |stream: &StreamView| (stream.id, stream.since);
        let rate = |stream: &StreamView| self.streams.get(&key(stream)).map_or(0.0, |of| of.1);
        let mut by_rate: Vec<(f64, &StreamView)> =
            streams.iter().map(|stream| (rate(stream), stream)).collect();
        by_rate.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.id.cmp(&other.id)));
        by_rate.truncate(MOST_STREAMS);
        let reported: Vec<(u32, Instant)> = by_rate.iter().map(|(_, stream)| key(stream)).collect();
        self.slots.keep(&reported);
        into.list("stream", by_rate, |(mb_s, stream), into| {
            stream.report(self.slots.index_of(key(stream)), mb_s, into);
            ClientView::report(clients.iter().find(|client| client.client == stream.client), into);
        });
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::service::metrics::text;
    use headstack_host::node::{Backend, Node, NodeRearrangeView, SeekDistance};
    use headstack_model::report::ReportItem;
    use headstack_streams::position::{MapState, OrderView};
    use headstack_streams::rearrange::{RearrangeCounters, RearrangeView};
    use headstack_streams::streams::{Config, Direction};
    use std::collections::BTreeSet;

    fn order() -> OrderView {
        OrderView {
            order: "sptf".to_string(),
            wanted: "sptf".to_string(),
            state: MapState::Agrees,
            waiting: 0,
            at_disk: 0,
            error_p50: Some(Nanos::from_ms(1.0)),
            error_p90: None,
            predictions: 0,
            missed: 0,
            reserve: Nanos::ZERO,
            fallbacks: 0,
        }
    }

    fn copies() -> NodeRearrangeView {
        let view = RearrangeView {
            slots: 0,
            copies: 0,
            dirty: 0,
            pending_out: 0,
            pending_in: 0,
            block_counters: 0,
            periods: 0,
            counters: RearrangeCounters::default(),
        };
        NodeRearrangeView { view, distance: SeekDistance::default(), is_read_only: false }
    }

    /// A node with a disk that has all layers, and a stream.
    pub(crate) fn full_node() -> QuantityReport {
        let memory = Backend::memory(1 << 20).expect("there is memory");
        let node = Node::start("one", memory, Config::default()).expect("it starts");
        let mut disk = Watched::new(node.handle());
        let view = NodeView { order: Some(order()), rearranger: Some(copies()), ..node.handle().view() };
        let stream = StreamView {
            id: 3,
            client: 1,
            writes: false,
            direction: Direction::Forward,
            offset: 0,
            bytes: 0,
            requests: 0,
            hits: 0,
            waiting: 0,
            memory_bytes: 0,
            has_turn: false,
            since: Instant::ZERO,
            last_request: Instant::ZERO,
        };
        let client = ClientView { client: 1, requests: 1, p50: Nanos::from_ms(2.0), p99: Nanos::ZERO };
        let mut report = QuantityReport::default();
        let mut state = QuantityReport::default();
        disk.measure(&view, &mut state);
        state.items.pop();
        disk.report_streams(&[stream], &[client], &mut state);
        report.items.push(ReportItem::List("disk", vec![state]));
        node.stop().expect("it stops");
        report
    }

    /// The names of metrics that a text mentions.
    fn names(text: &str) -> BTreeSet<&str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("headstack_")).collect()
    }

    #[test]
    fn dashboard_and_alerts_use_only_metrics_of_a_node() {
        let text = text(&full_node());
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
        for line in [
            "headstack_stream_response_seconds{disk=\"one\",stream=\"0\",kind=\"read\",share=\"0.5\"} 0.002",
            "headstack_prediction_error_seconds{disk=\"one\"} 0.001",
            "headstack_operations_total{disk=\"one\",operation=\"trim\"} 0.0",
        ] {
            assert!(text.lines().any(|met| met == line), "{line} in {text}");
        }
    }

    #[test]
    fn metrics_report_the_version_and_client_memory() {
        let watch = Watch::new(Vec::new(), Some(Budget::new(7)));
        let text = text(&watch.seen.lock());
        let version = format!("headstack_build_info{{version=\"{}\"}} 1.0", env!("CARGO_PKG_VERSION"));
        for line in [
            version.as_str(),
            "headstack_client_memory_bytes{} 0.0",
            "headstack_client_memory_limit_bytes{} 7.0",
        ] {
            assert!(text.lines().any(|met| met == line), "{line} in {text}");
        }
    }

    #[test]
    fn keys_of_the_state_are_in_order() {
        let node = Value::Object(full_node().to_json());
        let disk = &node["disk"][0];
        let keys = |part: &Value| {
            let part = part.as_object().expect("it is an object");
            part.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
        };
        for (part, expected) in [
            (
                disk,
                "name title bytes has_failed connections outstanding read_mb_s write_mb_s iops hit_share utilisation response \
                 response_counts operation scheduler order slowness rearrange stream",
            ),
            (&disk["response"], "mean_ms p50_ms p99_ms max_ms"),
            (&disk["response_counts"], "count sum_s up_to_s"),
            (&disk["operation"][0], "kind done failed bytes response_s"),
            (
                &disk["scheduler"],
                "streams found dispatched waiting_streams memory_bytes used_bytes high_water_bytes staged_bytes \
                 coalesced_bytes in_flight requests direct hits turns disk_read_bytes disk_written_bytes unfetched_bytes \
                 lost_bytes bandwidth_mb_s positioning_ms read_ahead_bytes requests_per_turn dispatch_set bypass busy_s",
            ),
            (
                &disk["order"],
                "in_use wanted drive_file waiting at_disk error_p50_ms error_p90_ms predictions missed reserve_ms fallbacks",
            ),
            (&disk["slowness"], "slow alarms late_commands late_s late_share slowdown"),
            (
                &disk["rearrange"],
                "slots copies dirty requests hits copied_in written_home periods seek_blocks home_seek_blocks read_only",
            ),
            (
                &disk["stream"][0],
                "id slot client kind direction offset mb_s bytes requests hits waiting memory_bytes has_turn p50_ms p99_ms",
            ),
        ] {
            assert_eq!(keys(part), expected);
        }
    }

    #[test]
    fn stream_slots_are_reused() {
        let mut slots = Slots::default();
        let stream = |id| (id, Instant(7));
        for turn in 0..1000 {
            slots.keep(&[stream(turn), stream(turn + 1), stream(turn + 2)]);
            assert!(slots.0.len() <= 3, "turn {turn}");
        }
        let kept = slots.index_of(stream(1000));
        slots.keep(&[stream(1000), (1000, Instant(8))]);
        assert_eq!(slots.index_of(stream(1000)), kept, "a stream keeps its slot");
        assert_ne!(slots.index_of((1000, Instant(8))), kept, "another with its number is another");
    }

    #[test]
    fn failed_disk_thread_is_reported_once() {
        let mut watch = Watch::new(Vec::new(), None);
        let fail = |watch: &Watch, failed: [bool; 2]| {
            let mut report = QuantityReport::default();
            report.list("disk", ["one", "two"].into_iter().zip(failed), |(name, has_failed), into| {
                into.fact("name", name);
                into.fact("has_failed", has_failed);
            });
            *watch.seen.lock() = report;
        };
        fail(&watch, [false, true]);
        assert_eq!(watch.failures(), ["two"]);
        assert_eq!(watch.failures(), [""; 0]);
        fail(&watch, [true, true]);
        assert_eq!(watch.failures(), ["one"]);
    }
}
