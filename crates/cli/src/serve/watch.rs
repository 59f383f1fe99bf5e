//! Samples the disks of a node each second, so that readers get rates and do not delay the disks.

use super::state::{
    CopiesState, DiskState, MOST_STREAMS, MemoryState, NodeState, OperationState, OrderState, Response,
    SchedulerCounts, SchedulerState, SlownessState, StreamState, TuningState,
};
use crate::service::log::STREAMS;
use headstack::ratio;
use headstack_host::disk::{Books, Kind};
use headstack_host::node::{ClientView, NodeHandle, NodeRearrangeView, NodeView};
use headstack_model::{Instant, Nanos};
use headstack_nbd::Budget;
use headstack_policy::slowness::SlownessView;
use headstack_streams::position::{MapState, OrderView};
use headstack_streams::streams::{Direction, StreamView, View};
use log::debug;
use std::collections::BTreeMap;
#[allow(clippy::disallowed_types, reason = "the endpoint's thread reads what the command's sees")]
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{self, Duration};

/// The last sample, which any thread can read.
#[derive(Clone)]
#[allow(clippy::disallowed_types, reason = "the endpoint's thread reads what the command's sees")]
pub(super) struct Seen(Arc<Mutex<NodeState>>);

impl Seen {
    pub(super) fn get(&self) -> NodeState {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, NodeState> {
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
        let seen = Seen(Arc::new(Mutex::new(NodeState::default())));
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
        let seen = self.seen.lock();
        let failed = seen.disk.iter().filter(|disk| disk.has_failed).map(|disk| disk.name.clone());
        let failed: Vec<String> = failed.filter(|name| !self.failed.contains(name)).collect();
        self.failed.extend(failed.iter().cloned());
        failed
    }

    pub(super) fn refresh(&mut self) {
        let disk: Vec<DiskState> = self.disks.iter_mut().map(Watched::measure).collect();
        let up = self.disks.iter().map(|disk| disk.at).max().unwrap_or_default();
        *self.seen.lock() = NodeState {
            up_s: up.as_secs(),
            connections: disk.iter().map(|disk| disk.connections).sum(),
            outstanding: disk.iter().map(|disk| disk.outstanding).sum(),
            client_bytes: self.budget.as_ref().map_or(0, Budget::spent) as u64,
            most_client_bytes: self.budget.as_ref().map_or(0, Budget::bytes) as u64,
            disk,
        };
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

    fn measure(&mut self) -> DiskState {
        let NodeView {
            at,
            outstanding,
            connections,
            has_failed,
            busy,
            books,
            clients,
            order,
            rearranger,
            slowness,
        } = self.node.view();
        let (scheduler, streams) = self
            .node
            .inspect(|streams| (streams.view(), streams.stream_views().collect::<Vec<StreamView>>()));
        let seconds = at.since(self.at).as_secs();
        let (read, written) = (books.count_of(Kind::Read), books.count_of(Kind::Write));
        let mb_s = |bytes: u64| ratio(bytes as f64 / 1e6, seconds);
        let done = books.all().done;
        let latest = streams.iter().map(|stream| self.stream(stream, at, seconds)).collect();
        let before = std::mem::replace(&mut self.streams, latest);
        self.report(&before, &streams);
        self.report_bypass(scheduler.bypass);
        let state = DiskState {
            name: self.node.name().to_string(),
            title: self.node.title().to_string(),
            bytes: self.node.shape().bytes,
            has_failed,
            connections,
            outstanding,
            read_mb_s: mb_s(read.bytes - self.read_bytes),
            write_mb_s: mb_s(written.bytes - self.written_bytes),
            iops: ratio((done - self.done) as f64, seconds),
            hit_share: ratio((scheduler.counters.hits - self.hits) as f64, (read.done - self.reads) as f64)
                .min(1.0),
            utilisation: ratio(busy.saturating_sub(self.busy).as_secs(), seconds).min(1.0),
            response: response(&books),
            response_counts: books.responses().into(),
            operation: operations(&books),
            stream: self.busiest(&streams, &clients),
            scheduler: scheduler_state(&scheduler, busy),
            order: order.map(order_state),
            slowness: slowness_state(slowness),
            rearrange: rearranger.map(copies_state),
        };
        (self.at, self.reads, self.done, self.hits, self.busy) =
            (at, read.done, done, scheduler.counters.hits, busy);
        (self.read_bytes, self.written_bytes) = (read.bytes, written.bytes);
        state
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
    fn report(&self, before: &BTreeMap<(u32, Instant), (u64, f64)>, streams: &[StreamView]) {
        let name = self.node.name();
        for stream in streams.iter().filter(|stream| !before.contains_key(&(stream.id, stream.since))) {
            let (kind, number, client) = (kind(stream), stream.id, stream.client);
            debug!(target: STREAMS, "{name}: stream {number} found: connection {client} {kind}s at byte {}", stream.offset);
        }
        for (number, since) in before.keys().filter(|stream| !self.streams.contains_key(stream)) {
            let age = self.node.clock().now().since(*since).as_secs();
            debug!(target: STREAMS, "{name}: stream {number} given up, {age:.0} s after it was found");
        }
    }

    /// Logs when streams begin or cease to bypass the scheduler.
    fn report_bypass(&mut self, bypass: bool) {
        let name = self.node.name();
        match (std::mem::replace(&mut self.bypass, bypass), bypass) {
            (false, true) => {
                debug!(target: STREAMS, "{name}: streams bypass the scheduler: turns gain too little")
            }
            (true, false) => debug!(target: STREAMS, "{name}: streams have turns again"),
            _ => {}
        }
    }

    fn busiest(&mut self, streams: &[StreamView], clients: &[ClientView]) -> Vec<StreamState> {
        let rate = |stream: &StreamView| self.streams.get(&(stream.id, stream.since)).map_or(0.0, |of| of.1);
        let mut by_rate: Vec<(f64, &StreamView)> =
            streams.iter().map(|stream| (rate(stream), stream)).collect();
        by_rate.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.id.cmp(&other.id)));
        by_rate.truncate(MOST_STREAMS);
        let of = |stream: &StreamView| clients.iter().find(|client| client.client == stream.client);
        let reported: Vec<(u32, Instant)> =
            by_rate.iter().map(|(_, stream)| (stream.id, stream.since)).collect();
        self.slots.keep(&reported);
        let slots = &self.slots;
        let state = |(rate, stream): (f64, &StreamView)| {
            stream_state(stream, slots.index_of((stream.id, stream.since)), of(stream), rate)
        };
        by_rate.into_iter().map(state).collect()
    }
}

fn kind(stream: &StreamView) -> &'static str {
    if stream.writes { "write" } else { "read" }
}

fn stream_state(stream: &StreamView, slot: usize, client: Option<&ClientView>, mb_s: f64) -> StreamState {
    StreamState {
        id: stream.id,
        slot,
        client: stream.client,
        kind: kind(stream).to_string(),
        direction: match stream.direction {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        }
        .to_string(),
        offset: stream.offset,
        mb_s,
        bytes: stream.bytes,
        requests: stream.requests,
        hits: stream.hits,
        waiting: stream.waiting,
        memory_bytes: stream.memory_bytes,
        has_turn: stream.has_turn,
        p50_ms: client.map(|client| client.p50.as_ms()),
        p99_ms: client.map(|client| client.p99.as_ms()),
    }
}

fn order_state(view: OrderView) -> OrderState {
    let drive_file = match view.state {
        MapState::Learning => "learning",
        MapState::Agrees => "agrees",
        MapState::Differs => "differs",
    };
    OrderState {
        in_use: view.order,
        wanted: view.wanted,
        drive_file: drive_file.to_string(),
        waiting: view.waiting,
        at_disk: view.at_disk,
        error_p50_ms: view.error_p50.map(Nanos::as_ms),
        error_p90_ms: view.error_p90.map(Nanos::as_ms),
        predictions: view.predictions,
        missed: view.missed,
        reserve_ms: view.reserve.as_ms(),
        fallbacks: view.fallbacks,
    }
}

fn slowness_state(view: SlownessView) -> SlownessState {
    SlownessState {
        slow: view.is_slow,
        alarms: view.alarms,
        late_commands: view.late,
        late_s: view.late_time.as_secs(),
        late_share: view.late_share,
        slowdown: view.slowdown,
    }
}

fn copies_state(node: NodeRearrangeView) -> CopiesState {
    let NodeRearrangeView { view, distance, is_read_only } = node;
    CopiesState {
        slots: view.slots,
        copies: view.copies,
        dirty: view.dirty,
        requests: view.counters.requests,
        hits: view.counters.hits,
        copied_in: view.counters.copied_in,
        written_home: view.counters.written_home,
        periods: view.periods,
        seek_blocks: distance.blocks,
        home_seek_blocks: distance.home_blocks,
        read_only: is_read_only,
    }
}

fn response(books: &Books) -> Response {
    let times = books.responses();
    Response {
        mean_ms: times.mean_ms(),
        p50_ms: times.p50().as_ms(),
        p99_ms: times.p99().as_ms(),
        max_ms: times.max().as_ms(),
    }
}

fn operations(books: &Books) -> Vec<OperationState> {
    let of = |kind: Kind| {
        let count = books.count_of(kind);
        OperationState {
            kind: kind.name().to_string(),
            done: count.done,
            failed: count.failed,
            bytes: count.bytes,
            response_s: count.time.as_secs(),
        }
    };
    Kind::ALL.map(of).to_vec()
}

fn scheduler_state(view: &View, busy: Nanos) -> SchedulerState {
    SchedulerState {
        streams: view.streams,
        found: view.counters.found,
        dispatched: view.dispatched,
        waiting_streams: view.waiting_streams,
        memory: MemoryState {
            memory_bytes: view.memory.bytes,
            used_bytes: view.memory.used_bytes,
            high_water_bytes: view.memory.high_water_bytes,
            staged_bytes: view.memory.staged_bytes,
            coalesced_bytes: view.memory.coalesced_bytes,
        },
        in_flight: view.in_flight,
        counts: SchedulerCounts {
            requests: view.counters.requests,
            direct: view.counters.direct,
            hits: view.counters.hits,
            turns: view.counters.turns,
            disk_read_bytes: view.counters.read_bytes,
            disk_written_bytes: view.counters.written_bytes,
            unfetched_bytes: view.counters.unfetched_bytes,
            lost_bytes: view.counters.lost_bytes,
        },
        tuning: TuningState {
            bandwidth_mb_s: view.tuning.bandwidth / 1e6,
            positioning_ms: view.tuning.positioning.as_ms(),
            read_ahead_bytes: view.tuning.read_ahead_bytes,
            requests_per_turn: view.tuning.requests_per_turn,
            dispatch_set: view.tuning.dispatch_set,
        },
        bypass: view.bypass,
        busy_s: busy.as_secs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let disk =
            |name: &str, has_failed| DiskState { name: name.to_string(), has_failed, ..DiskState::default() };
        watch.seen.lock().disk = vec![disk("one", false), disk("two", true)];
        assert_eq!(watch.failures(), ["two"]);
        assert_eq!(watch.failures(), [""; 0]);
        watch.seen.lock().disk[0].has_failed = true;
        assert_eq!(watch.failures(), ["one"]);
    }
}
