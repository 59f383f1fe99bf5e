//! What a node counts and measures, for its state in JSON and its metrics.

use super::{ClientView, NodeRearrangeView, NodeView};
use headstack_model::{Nanos, QuantityReport};
use headstack_streams::streams::View;

impl NodeView {
    /// Adds whether the node works, and its load.
    pub fn report_load(&self, into: &mut QuantityReport) {
        let help = "Whether the disk's thread has failed, for which the node ends";
        into.gauge("has_failed", self.has_failed, help).metric("failed");
        into.gauge("connections", self.connections, "Connections");
        into.gauge("outstanding", self.outstanding, "Requests that are not answered yet");
    }

    /// Adds response times, operations, and what the scheduler and the layers count.
    pub fn report_counts(&self, scheduler: &View, into: &mut QuantityReport) {
        self.report_responses(into.group("response"));
        let help = ["Response times of operations that succeeded", "Response times together"];
        self.books.report(help, into);
        let turns = into.flat_group("scheduler");
        scheduler.report(turns);
        turns.counter("busy_s", self.busy, "Time in which the disk had a command");
        if let Some(order) = &self.order {
            order.report(into.flat_group("order"));
        }
        self.slowness.report(into.flat_group("slowness"));
        if let Some(rearranger) = &self.rearranger {
            rearranger.report(into.flat_group("rearrange"));
        }
    }

    fn report_responses(&self, into: &mut QuantityReport) {
        let times = self.books.responses();
        into.gauge("mean_ms", times.mean_ms(), "Mean response time").detail();
        for (name, time, quantile) in
            [("p50_ms", times.p50(), "0.5"), ("p99_ms", times.p99(), "0.99"), ("max_ms", times.max(), "1")]
        {
            into.gauge(name, time, "Response times since the node began")
                .quantile("response_quantile_seconds", quantile);
        }
    }
}

impl ClientView {
    /// Adds the response times of a stream's client, if the node keeps them.
    pub fn report(client: Option<&ClientView>, into: &mut QuantityReport) {
        let mut add = |name, time: Option<Nanos>, quantile| {
            into.gauge(name, time, "Response times of the busiest streams")
                .quantile("stream_response_seconds", quantile);
        };
        add("p50_ms", client.map(|client| client.p50), "0.5");
        add("p99_ms", client.map(|client| client.p99), "0.99");
    }
}

impl NodeRearrangeView {
    /// Adds the state of the copies, and what they save.
    fn report(&self, into: &mut QuantityReport) {
        let NodeRearrangeView { view, distance, is_read_only } = self;
        view.report_state("dirty", into);
        view.counters.report(into);
        into.hide(&["hit_share", "left_clean", "spoiled", "abandoned", "failed"]);
        into.counter("periods", view.periods, "Periods that have ended").detail();
        into.counter("seek_blocks", distance.blocks, "Distance between requests in blocks").detail();
        into.counter("home_seek_blocks", distance.home_blocks, "The same, were every block at its home")
            .detail();
        let help = "Distance between requests, in blocks, that the copies save; below 0 where they add to it";
        into.gauge("saved_blocks", distance.saved_blocks() as f64, help)
            .only_metric("copy_seek_blocks_saved");
        let help = "1 after the hot block table could not be written; the disk then refuses writes";
        into.gauge("read_only", *is_read_only, help).metric("copy_table_failed");
    }
}
