//! `headstack trace stat`.

use super::formats;
use super::input::{Input, Opened};
use crate::failure::Failure;
use crate::report::Table;
use crate::units::{capacity, grouped, significant};
use crate::versioned;
use headstack_workload::trace::stat::{self, Quantiles, Summary};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;

/// Print the statistics of a trace: counts, mix, sizes, gaps, sequentiality, footprint, reuse, queue depth, hottest
/// regions.
#[derive(clap::Args)]
pub(crate) struct Stat {
    #[command(flatten)]
    input: Input,
    /// The trace's format. [default: recognized by its first bytes]
    #[arg(long, value_name = "FORMAT", value_parser = formats::values())]
    format: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(JsonSchema, Serialize)]
struct Outcome<'a> {
    trace: String,
    format: &'a str,
    malformed: u64,
    #[serde(flatten)]
    summary: &'a Summary,
}

impl Stat {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut opened = self.input.open(formats::named(self.format.as_ref()))?;
        let summary = gather(&mut opened)?;
        let format = opened.trace.format();
        if self.json {
            let malformed = opened.trace.skipped().0;
            let outcome =
                Outcome { trace: self.input.name(), format: format.name, malformed, summary: &summary };
            versioned::print(&outcome, out)?;
            return Ok(());
        }
        writeln!(out, "{}: {}", self.input.name(), format.title)?;
        if let Some(skipped) = opened.skipped() {
            writeln!(out, "{skipped}")?;
        }
        for table in tables(&summary) {
            writeln!(out, "\n{}\n{}", table.title, table.to_text().trim_end())?;
        }
        Ok(())
    }
}

fn gather(opened: &mut Opened) -> Result<Summary, Failure> {
    let mut stat = stat::Stat::new();
    opened.for_each(|record, _| {
        stat.observe(&record);
        Ok(())
    })?;
    Ok(stat.summary(opened.trace.header()))
}

pub(super) fn tables(summary: &Summary) -> Vec<Table> {
    let mut tables = vec![overview(summary), mix(summary), distributions(summary), over_time(summary)];
    tables.push(regions(summary));
    if summary.devices > 1 {
        tables.push(devices(summary));
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn overview(summary: &Summary) -> Table {
    let mut table = Table::new("In all", &["", ""]);
    let mut row = |name: &str, value: String| table.row([name.to_string(), value]);
    let about = if summary.locality.sample_share < 1.0 { "about " } else { "" };
    row("requests", grouped(summary.requests));
    row("duration", format!("{} s", number(summary.duration_s)));
    row("requests a second", number(summary.requests_per_s));
    row("MB a second", number(summary.mb_per_s));
    row("devices", grouped(summary.devices as u64));
    row("out of order", grouped(summary.out_of_order));
    row("sequential", percent(summary.sequentiality.share));
    row("sequential, among 32 streams", percent(summary.sequentiality.stream_share));
    row(
        "footprint, in 4 KiB blocks",
        format!("{about}{}", capacity(summary.locality.footprint_bytes as u64)),
    );
    row("reach", capacity(summary.locality.reach_bytes));
    if let Some(reused) = summary.locality.reused_share {
        row("accesses to blocks seen before", format!("{about}{}", percent(reused)));
    }
    if let Some(exponent) = summary.locality.zipf_exponent {
        row("Zipf exponent, fitted", significant(exponent, 2));
    }
    if let Some(depth) = &summary.queue_depth {
        row("queue depth, mean", significant(depth.mean, 3));
        row("queue depth, mean while busy", significant(depth.mean_while_busy, 3));
        row("queue depth, most", depth.max.to_string());
        row("busy", percent(depth.busy_share));
    }
    table
}

fn mix(summary: &Summary) -> Table {
    let mut table = Table::new("Mix", &["kind", "requests", "share", "bytes"]);
    for kind in &summary.kinds {
        table.row([kind.kind.to_string(), grouped(kind.requests), percent(kind.share), capacity(kind.bytes)]);
    }
    table
}

fn distributions(summary: &Summary) -> Table {
    let columns = ["", "mean", "min", "p10", "p50", "p90", "p99", "max"];
    let mut table = Table::new("Distributions", &columns);
    let rows: [(&str, Option<Quantiles>); 5] = [
        ("read size, bytes", summary.read_size_bytes),
        ("write size, bytes", summary.write_size_bytes),
        ("gap, us", summary.gap_us),
        ("response, ms", summary.response_ms),
        ("sequential run, requests", summary.sequentiality.run_requests),
    ];
    for (name, quantiles) in rows {
        let Some(Quantiles { mean, min, p10, p50, p90, p99, max }) = quantiles else { continue };
        let numbers = [mean, min, p10, p50, p90, p99, max].map(number);
        table.row(std::iter::once(name.to_string()).chain(numbers));
    }
    table
}

/// Four digits, or all of an integer or a large number.
fn number(value: f64) -> String {
    if value.fract() == 0.0 || value >= 1000.0 {
        grouped(value.round() as u64)
    } else {
        significant(value, 4)
    }
}

fn over_time(summary: &Summary) -> Table {
    let columns = ["from s", "to s", "requests", "a second", "MB/s", "queue depth"];
    let shown = if summary.queue_depth.is_some() { columns.len() } else { columns.len() - 1 };
    let mut table = Table::new("Over time", &columns[..shown]).with_words(0);
    for interval in &summary.over_time {
        let span = interval.to_s - interval.from_s;
        let figures = [
            number(interval.from_s),
            number(interval.to_s),
            grouped(interval.requests),
            significant(interval.requests as f64 / span, 3),
            significant(interval.mb_per_s, 3),
        ];
        table.row(figures.into_iter().chain(interval.queue_depth.map(|depth| significant(depth, 3))));
    }
    table
}

fn regions(summary: &Summary) -> Table {
    let columns = ["device", "from", "length", "requests", "share"];
    let mut table = Table::new("Hottest regions", &columns);
    for region in &summary.hottest_regions {
        table.row([
            region.device.clone(),
            capacity(region.offset_bytes),
            capacity(region.bytes),
            grouped(region.requests),
            percent(region.share),
        ]);
    }
    table
}

fn devices(summary: &Summary) -> Table {
    let mut table = Table::new("Busiest devices", &["device", "requests", "share", "bytes"]);
    for device in &summary.busiest_devices {
        let share = device.requests as f64 / summary.requests as f64;
        table.row([device.device.clone(), grouped(device.requests), percent(share), capacity(device.bytes)]);
    }
    table
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schema_is_that_of_the_type() {
        versioned::schema::check::<Outcome<'_>>("trace stat");
    }
}
