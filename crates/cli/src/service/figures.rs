//! Statistics of a disk, in words.

use crate::sim::text::figure;
use crate::units::grouped;
use headstack_host::disk::{Books, Kind};

pub(crate) fn requests(books: &Books) -> String {
    let said: Vec<String> = Kind::ALL
        .into_iter()
        .map(|kind| (kind.name(), books.count_of(kind).done))
        .chain([("failed", books.all().failed)])
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} {name}", grouped(count)))
        .collect();
    if said.is_empty() { "none".to_string() } else { said.join(", ") }
}

pub(crate) fn response(books: &Books) -> String {
    let times = books.responses();
    let quantile = |share: f64| figure(times.quantile(share).as_ms());
    format!(
        "mean {} ms (p50 {}, p90 {}, p99 {}, max {})",
        figure(times.mean_ms()),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        figure(times.max().as_ms()),
    )
}
