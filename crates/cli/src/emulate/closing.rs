//! What is said of the disks when they end.

use crate::sim::outcome::ratio;
use crate::sim::text::figure;
use crate::units::grouped;
use headstack_host::disk::{Books, Kind};
use headstack_host::{Lateness, Snapshot};
use std::io::{self, Write};
use std::time::Duration;

/// Prints the lines of each volume, and what held for all.
pub(super) fn print(snapshots: &[Snapshot], stolen: Option<f64>, out: &mut dyn Write) -> io::Result<()> {
    let mut line = |name: &str, value: String| writeln!(out, "  {name:<20} {value}");
    for snapshot in snapshots {
        for volume in &snapshot.volumes {
            line("volume", volume.name.clone())?;
            line("requests", requests(&volume.books))?;
            if volume.books.all().done > 0 {
                line("throughput", throughput(&volume.books, snapshot.at.as_secs()))?;
                line("response", response(&volume.books))?;
            }
        }
        if snapshot.lateness.count() > 0 {
            line("lateness", lateness(&snapshot.lateness))?;
        }
    }
    if let Some(share) = stolen {
        line("stolen time", format!("{:.2} % of the processors' time", 100.0 * share))?;
    }
    out.flush()
}

fn requests(books: &Books) -> String {
    let said: Vec<String> = Kind::ALL
        .into_iter()
        .map(|kind| (kind.name(), books.of(kind).done))
        .chain([("failed", books.all().failed)])
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} {name}", grouped(count)))
        .collect();
    if said.is_empty() { "none".to_string() } else { said.join(", ") }
}

fn throughput(books: &Books, seconds: f64) -> String {
    let all = books.all();
    let (rate, mb_s) = (ratio(all.done as f64, seconds), ratio(all.bytes as f64 / 1e6, seconds));
    format!("{} IOPS, {} MB/s over {} s of the disk's time", figure(rate), figure(mb_s), figure(seconds))
}

fn response(books: &Books) -> String {
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

fn lateness(late: &Lateness) -> String {
    let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| micros(late.quantile(share)));
    format!("p50 {p50} us, p90 {p90}, p99 {p99}, max {}", micros(late.max()))
}

/// Microseconds for people.
pub(super) fn micros(time: Duration) -> String {
    figure(time.as_nanos() as f64 / 1e3)
}
