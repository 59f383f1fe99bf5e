//! The summary of the disks at the end.

use crate::service::figures::{requests, response};
use crate::sim::text::figure;
use headstack::ratio;
use headstack_host::disk::Books;
use headstack_host::{Lateness, Snapshot};
use headstack_streams::rearrange::RearrangeView;
use std::io::{self, Write};
use std::time::Duration;

pub(super) fn print(snapshots: &[Snapshot], stolen: Option<f64>, out: &mut dyn Write) -> io::Result<()> {
    let mut line = |name: &str, value: String| writeln!(out, "  {name:<20} {value}");
    for snapshot in snapshots {
        for volume in &snapshot.volumes {
            line("volume", volume.name.clone())?;
            line("requests", requests(&volume.books))?;
            if volume.books.all().done > 0 {
                line("throughput", throughput(&volume.books))?;
                line("response", response(&volume.books))?;
            }
            if let Some(view) = &volume.copies {
                line("copies", copied(view))?;
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

fn copied(view: &RearrangeView) -> String {
    let RearrangeView { slots, copies, dirty, counters, .. } = view;
    format!(
        "{copies} of {slots}, {dirty} of them written; {:.1} % of {} requests served by them",
        100.0 * counters.hit_share(),
        counters.requests
    )
}

/// The rates from the first request to the last: not while no client was there.
fn throughput(books: &Books) -> String {
    let (all, seconds) = (books.all(), books.span().as_ms() / 1e3);
    let (rate, mb_s) = (ratio(all.done as f64, seconds), ratio(all.bytes as f64 / 1e6, seconds));
    format!("{} IOPS, {} MB/s over {} s of the disk's time", figure(rate), figure(mb_s), figure(seconds))
}

fn lateness(late: &Lateness) -> String {
    let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| micros(late.quantile(share)));
    format!("p50 {p50} us, p90 {p90}, p99 {p99}, max {}", micros(late.max()))
}

pub(super) fn micros(time: Duration) -> String {
    figure(time.as_nanos() as f64 / 1e3)
}
