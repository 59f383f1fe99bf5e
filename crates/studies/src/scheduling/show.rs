//! Charts and tables of a grid of orders and queue lengths.

use super::queue::{Grid, LENGTHS, OrderTimes, PUBLISHED};
use headstack::report::{Axis, Chart, Series, Table};

/// A figure of each case.
struct Measure {
    title: &'static str,
    axis: fn(&'static str) -> Axis,
    unit: &'static str,
    of: fn(&OrderTimes) -> f64,
}

const MEASURES: [Measure; 4] = [
    Measure {
        title: "Mean time an I/O",
        axis: |unit| Axis::linear(unit),
        unit: "ms",
        of: |outcome| outcome.mean_io_ms,
    },
    Measure {
        title: "Utilisation: time in which data pass",
        axis: |unit| Axis::linear(unit),
        unit: "%",
        of: |outcome| 100.0 * outcome.utilisation,
    },
    Measure {
        title: "Mean response",
        axis: |unit| Axis::log(unit),
        unit: "s",
        of: |outcome| outcome.response_ms / 1e3,
    },
    Measure {
        title: "Longest response in 10,000 requests",
        axis: |unit| Axis::log(unit),
        unit: "s",
        of: |outcome| outcome.longest_ms / 1e3,
    },
];

pub(super) fn queue_axis() -> Axis {
    Axis::log("queue (requests)").with_ticks(LENGTHS.map(f64::from))
}

/// The orders that the publications name, over the queue length.
pub(super) fn figures(grid: &Grid) -> Vec<Chart> {
    let figure = |measure: &Measure| {
        let lines = PUBLISHED.iter().enumerate().map(|(family, (order, _))| {
            let point = |length: &u32| Some((f64::from(*length), (measure.of)(grid.get(order, *length)?)));
            Series::new(*order, family, LENGTHS.iter().filter_map(point))
        });
        Chart::new(measure.title, queue_axis(), (measure.axis)(measure.unit), lines)
    };
    MEASURES.iter().map(figure).collect()
}

/// The publications' names for the drawn orders, where they differ from ours.
pub(super) fn other_names() -> String {
    let names = PUBLISHED.iter().filter(|(order, theirs)| *order != theirs.to_lowercase());
    let said: Vec<String> = names.map(|(order, theirs)| format!("{order} is {theirs}")).collect();
    format!("In the publications {}.", said.join(", "))
}

/// Every order over the queue length.
pub(super) fn tables(grid: &Grid, lengths: &[u32]) -> Vec<Table> {
    let headings = lengths.iter().map(|length| format!("queue {length}"));
    let columns: Vec<String> = std::iter::once("order".to_string()).chain(headings).collect();
    let mut orders: Vec<&str> = grid.cases().map(|(case, _)| case.order).collect();
    orders.dedup();
    let table = |measure: &Measure| {
        let title = format!("{} of every order ({})", measure.title, measure.unit);
        let mut table = Table::new(title, columns.iter().map(String::as_str));
        for order in &orders {
            let value = |length: &u32| grid.get(order, *length).map(measure.of);
            table.named_row([*order], lengths.iter().map(value));
        }
        table
    };
    MEASURES.iter().map(table).collect()
}
