//! A drive of today by queue depth: what its firmware's order loses against SPTF, and by how much it shortens the slowest responses.
//!
//! Modelled: random reads of 128 KiB over the whole disk, a fixed number outstanding, by the drive file's order, by SPTF and by
//! FCFS. Not modelled: the kernel between the program and the drive.
//! *Source:* westerndigitalcorporation/cdl-tools, `benchmark/`: a 22 TB drive of 7,200 rpm, kernel scheduler `none`.

use crate::judge::Measured;
use crate::runs;
use crate::study::{Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack_model::{DriveSpec, drives};

/// The drive file that stands for the measured drive's class.
const DRIVE: &str = "ultrastar-hc570";

const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Depths at which the growth of the rate and the slow responses were published.
const GROWTH_AT: [u32; 2] = [2, 32];
const TAIL_AT: [u32; 4] = [4, 8, 16, 32];

/// Blocks of 512 B in 128 KiB.
const SECTORS: u64 = 256;

/// An order, and its name in the figures; `None` is the drive file's own order.
const ORDERS: [(&str, Option<&str>); 3] =
    [("the drive file's order", None), ("sptf", Some("sptf")), ("fcfs", Some("fcfs"))];

/// One run: requests a second, and the 99th percentile of the response over its mean.
#[derive(Clone, Copy)]
struct Point {
    rate: f64,
    tail: f64,
}

/// The rows of the measured drive, and a section with both figures.
pub(super) fn measure(setting: &Setting<'_>, count: u64) -> Result<(Vec<Measured>, Section), StudyError> {
    let spec = drives::load(DRIVE)?;
    let runs: Vec<_> = ORDERS.iter().flat_map(|(_, order)| DEPTHS.map(|depth| (*order, depth))).collect();
    let points = setting.map(&runs, |(order, depth)| one(&spec, *order, *depth, count))?;
    let orders: Vec<&[Point]> = points.chunks(DEPTHS.len()).collect();
    Ok((rows(orders[0]), section(&orders)))
}

fn one(spec: &DriveSpec, order: Option<&str>, depth: u32, count: u64) -> Result<Point, StudyError> {
    let mut spec = spec.clone();
    if let Some(order) = order {
        spec.queue.order = order.to_string();
    }
    let responses = runs::random_reads_of(&spec, SECTORS, depth, count)?;
    Ok(Point { rate: responses.rate(), tail: responses.quantile_ms(0.99) / responses.mean_ms() })
}

fn rows(own: &[Point]) -> Vec<Measured> {
    let row = |figure: &str, depth: u32, value: f64| {
        Measured::new(format!("{DRIVE}.random_128k_qd{depth}_{figure}"), value)
    };
    let at = |wanted: &[u32]| {
        let all = DEPTHS.iter().zip(own).filter(|(depth, _)| wanted.contains(depth));
        all.map(|(depth, point)| (*depth, *point)).collect::<Vec<_>>()
    };
    let growth =
        at(&GROWTH_AT).into_iter().map(|(depth, point)| row("over_qd1", depth, point.rate / own[0].rate));
    growth
        .chain(at(&TAIL_AT).into_iter().map(|(depth, point)| row("p99_over_mean", depth, point.tail)))
        .collect()
}

fn section(orders: &[&[Point]]) -> Section {
    let figure = |title: &str, y: &str, value: fn(&Point) -> f64| {
        Chart::new(
            title,
            Axis::log("queue depth (requests)").with_ticks(DEPTHS.map(f64::from)),
            Axis::linear(y),
            ORDERS.iter().zip(orders).enumerate().map(|(family, ((name, _), points))| {
                Series::new(
                    (*name).to_string(),
                    family,
                    DEPTHS.iter().zip(*points).map(|(depth, point)| (f64::from(*depth), value(point))),
                )
            }),
        )
    };
    let names = ORDERS.iter().flat_map(|(name, _)| [format!("{name}: IOPS"), "p99 / mean".to_string()]);
    let mut table = Table::new(
        "Random reads of 128 KiB over queue depth",
        ["depth".to_string()].into_iter().chain(names),
    );
    for (index, depth) in DEPTHS.iter().enumerate() {
        let cells = orders.iter().flat_map(|points| [points[index].rate, points[index].tail]);
        table.named_row([depth.to_string()], cells);
    }
    Section::new(format!("What bounded overtaking costs: {DRIVE}"))
        .with_text("SPTF has the highest rate and leaves far requests waiting. The order of the drive file bounds how often a request is overtaken: \
             it gives up part of SPTF's rate, and its slowest requests wait less.")
        .with_chart(figure("Throughput over queue depth", "IOPS", |point| point.rate))
        .with_chart(figure("Slow responses over queue depth", "99th percentile / mean", |point| point.tail))
        .with_table(table)
}
