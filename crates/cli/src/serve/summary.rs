//! The summary of a node at its end.

use crate::service::figures::{requests, response};
use crate::sim::text::figure;
use crate::units::{capacity, grouped, memory};
use headstack::ratio;
use headstack_host::disk::{Books, Kind};
use headstack_host::node::{NodeHandle, NodeRearrangeView, NodeView, SeekDistance};
use headstack_streams::position::{MapState, OrderView};
use headstack_streams::rearrange::RearrangeView;
use headstack_streams::streams::View;
use std::io::{self, Write};

pub(super) fn print(nodes: &[NodeHandle], out: &mut dyn Write) -> io::Result<()> {
    let mut line = |name: &str, value: String| writeln!(out, "  {name:<20} {value}");
    for node in nodes {
        let NodeView { at, books, order, rearranger, .. } = node.view();
        let scheduler = node.inspect(|streams| streams.view());
        line("disk", node.name().to_string())?;
        line("requests", requests(&books))?;
        if books.all().done > 0 {
            line("throughput", throughput(&books, at.as_secs()))?;
            line("response", response(&books))?;
            line("streams", streams(&scheduler, &books))?;
        }
        if let Some(order) = order {
            line("order", ordered(&order))?;
        }
        if let Some(NodeRearrangeView { view, distance, .. }) = rearranger {
            line("copies", copied(&view, &distance))?;
        }
        if scheduler.counters.lost_bytes > 0 {
            line(
                "lost",
                format!(
                    "{} that were acknowledged, and the disk did not take",
                    capacity(scheduler.counters.lost_bytes)
                ),
            )?;
        }
    }
    out.flush()
}

fn throughput(books: &Books, seconds: f64) -> String {
    let mb_s = |kind: Kind| figure(ratio(books.count_of(kind).bytes as f64 / 1e6, seconds));
    let (read, write) = (books.count_of(Kind::Read).bytes, books.count_of(Kind::Write).bytes);
    format!(
        "{} read, {} written in {} s ({} and {} MB/s)",
        capacity(read),
        capacity(write),
        figure(seconds),
        mb_s(Kind::Read),
        mb_s(Kind::Write)
    )
}

fn ordered(view: &OrderView) -> String {
    let OrderView { predictions, missed, fallbacks, .. } = view;
    let state = match view.state {
        MapState::Learning => {
            "by block number: too few reads to see whether the drive file agrees".to_string()
        }
        MapState::Agrees => format!("by {}", view.order),
        MapState::Differs => {
            "by block number: the disk does not answer as its drive file predicts".to_string()
        }
    };
    let right = 100.0 * (1.0 - ratio(*missed as f64, *predictions as f64));
    let error =
        view.error_p50.map_or(String::new(), |error| format!(", half within {} ms", figure(error.as_ms())));
    let counted = grouped(*predictions);
    format!("{state}; {counted} services predicted, {right:.1} % to the turn{error}; {fallbacks} fallbacks")
}

fn copied(view: &RearrangeView, distance: &SeekDistance) -> String {
    let RearrangeView { slots, copies, dirty, counters, .. } = view;
    let saved = 100.0 * ratio(distance.saved_blocks() as f64, distance.home_blocks as f64);
    format!(
        "{copies} of {slots}, {dirty} of them written; {:.1} % of {} requests served by them, {saved:.0} % of the seek distance saved",
        100.0 * counters.hit_share(),
        grouped(counters.requests)
    )
}

fn streams(view: &View, books: &Books) -> String {
    if view.counters.found == 0 {
        return "none found".to_string();
    }
    let hits = 100.0 * ratio(view.counters.hits as f64, books.count_of(Kind::Read).done as f64);
    format!(
        "{} found, {} turns, {hits:.0} % of the reads from stream memory, of which {} at most were in use",
        grouped(view.counters.found),
        grouped(view.counters.turns),
        memory(view.memory.high_water_bytes),
    )
}
