//! First experiment: random reads under the orders, over queue depth.

use super::{Bench, Experiment, drive};
use crate::failure::Failure;
use crate::report::{Axis, Chart, Section, Series, Table};
use crate::units::significant;
use headstack::{AccessPattern, PatternSpec};
use headstack_policy::order;
use headstack_sim::DeviceOptions;

const DRIVE: &str = "toshiba-x300";
const ORDERS: [&str; 4] = ["fcfs", "sstf", "c-look", "sptf"];
const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const REQUESTS: u64 = 20_000;

pub(super) const EXPERIMENT: Experiment = Experiment { runs: ORDERS.len() * DEPTHS.len(), section };

struct Line {
    order: &'static str,
    iops: Vec<f64>,
    p99_ms: Vec<f64>,
}

fn section(bench: &Bench) -> Result<Section, Failure> {
    bench.announce("orders");
    // The experiment shows the effect of an order on a queue; the firmware's window and the interface's tags would limit it.
    let mut spec = drive(DRIVE)?.on_sas();
    spec.queue.window = None;
    let lines = ORDERS.iter().map(|order| line(bench, &spec, order)).collect::<Result<Vec<_>, _>>()?;
    let rise = |line: &Line| line.iops[DEPTHS.len() - 1] / line.iops[0];
    let setting = format!("{}: 4 KiB reads anywhere on the disk, at a constant queue depth.", spec.title);
    let (first, last) = (&lines[0], &lines[ORDERS.len() - 1]);
    let finding = format!(
        "With {} requests to choose from, {} serves {} times as many as one at a time; {} stays at {}. Some pay for it: compare the slowest hundredth.",
        DEPTHS[DEPTHS.len() - 1],
        last.order,
        significant(rise(last), 2),
        first.order,
        significant(rise(first), 2),
    );
    Ok(Section::new("Random reads: the order of requests")
        .with_text(setting)
        .with_text(summaries())
        .with_text(finding)
        .with_chart(chart("Throughput", Axis::linear("IOPS"), &lines, |line| &line.iops))
        .with_chart(chart(
            "Slowest hundredth of the response times",
            Axis::log("99th percentile (ms)"),
            &lines,
            |line| &line.p99_ms,
        ))
        .with_table(table("Throughput (IOPS)", &lines, |line| &line.iops))
        .with_table(table("99th percentile of the response time (ms)", &lines, |line| &line.p99_ms)))
}

fn line(bench: &Bench, spec: &headstack_model::DriveSpec, order: &'static str) -> Result<Line, Failure> {
    let mut line = Line { order, iops: Vec::new(), p99_ms: Vec::new() };
    for depth in DEPTHS {
        let options = DeviceOptions { seed: 1, depth: Some(depth), order: Some(order.to_string()) };
        let load = PatternSpec { count: REQUESTS, ..PatternSpec::closed(AccessPattern::Random, depth) };
        let results = bench.run(spec, &options, load)?;
        line.iops.push(results.iops());
        line.p99_ms.push(results.response().p99().as_ms());
    }
    Ok(line)
}

fn summaries() -> String {
    let known = order::all().iter().filter(|entry| ORDERS.contains(&entry.name));
    let said: Vec<String> =
        known.map(|entry| format!("{}: {}.", entry.name, entry.summary.trim_end_matches('.'))).collect();
    said.join(" ")
}

fn chart(title: &str, y: Axis, lines: &[Line], values: fn(&Line) -> &Vec<f64>) -> Chart {
    let depths = DEPTHS.map(f64::from);
    let series = lines.iter().enumerate().map(|(hue, line)| {
        Series::new(line.order, hue, depths.iter().copied().zip(values(line).iter().copied()))
    });
    Chart::new(title, Axis::log("queue depth (requests)").with_ticks(depths), y, series)
}

fn table(title: &str, lines: &[Line], values: fn(&Line) -> &Vec<f64>) -> Table {
    let depths = DEPTHS.map(|depth| format!("depth {depth}"));
    let columns: Vec<&str> = std::iter::once("order").chain(depths.iter().map(String::as_str)).collect();
    let mut table = Table::new(title, &columns);
    for line in lines {
        let cells = values(line).iter().map(|value| significant(*value, 3));
        table.row(std::iter::once(line.order.to_string()).chain(cells));
    }
    table
}
