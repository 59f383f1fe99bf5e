//! Adaptive block rearrangement: seek time saved by load, placement, counters and order.
//!
//! Modelled: analyzer, arranger, hot block table and region in the middle of a disk without zones, under a week of an HP workstation and
//! under loads that drift; the place of the region on a zoned disk; orders on long queues; a drive of 2020, alone and behind RAID-5. Not
//! modelled: the study's four traces, which cannot be obtained, and its file systems.
//! *Source:* R. S. Gray, "A study of disk performance optimization" (thesis, 2000), chapter 4, on S. Akyürek, K. Salem, "Adaptive block
//! rearrangement" (ACM TOCS 13(2), 1995).

mod annealing;
mod contrast;
mod forecast;
mod granularity;
mod loads;
mod modern;
mod orders;
mod regions;
mod seeks;
mod shuffling;
mod trials;
mod window;

use crate::judge::Measured;
use crate::study::{Findings, Length, Setting, Study, StudyError};
use headstack::report::{Axis, Chart, Draw, Section, Series, Table};
use loads::{LoadCase, RearrangedLoad};
use seeks::{SavedSeeks, correlation, measure, saved};

pub(crate) const STUDY: Study = Study {
    id: "rearrangement",
    title: "Adaptive block rearrangement",
    summary: "Seek time that copies of hot blocks save, by load, placement, counters and order; one load needs a trace (--traces).",
    expect: include_str!("../../studies/rearrangement/expect.tsv"),
    run,
};

/// Blocks of the region: 1.2 % of the disk. *Source:* assumption; the study says "a small percentage".
pub(super) const BLOCKS: u32 = 1000;

/// A key of a rig, and its value.
pub(super) type Key = (&'static str, &'static str);

/// The variants of each load, as keys of the rig; the first copies nothing.
const VARIANTS: [(&str, &[Key]); 5] = [
    ("without", &[("rearrange.least_references", "1000000000")]),
    ("organ pipe", &[]),
    ("serial", &[("rearrange.placement", "serial")]),
    ("rotational", &[("rearrange.placement", "rotational")]),
    ("as many counters as blocks", &[("rearrange.counters", "1000")]),
];

const EXACT: (&str, &[Key]) = ("exact counters", &[("rearrange.replacement", "exact")]);

/// The orders. The study's orders degrade to FCFS where one request waits, so its SCAN does not move the arm to the edges of the disk
/// without a request. The last two here do, and are not judged.
const ORDERS: [(&str, &[Key]); 4] = [
    ("scan", &[("drive.queue.order", "look")]),
    ("c-scan", &[("drive.queue.order", "c-look")]),
    ("scan to the edges", &[("drive.queue.order", "scan")]),
    ("c-scan to the edges", &[("drive.queue.order", "c-scan")]),
];

/// The number of orders that are judged: the first ones of the list.
const JUDGED_ORDERS: usize = 2;

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let mut found = Findings::default();
    let mut table = Table::new(
        "Days after the first",
        ["load", "variant", "seek ms", "saved %", "hits %", "response ms", "copying %", "mean queue"],
    )
    .with_words(2);
    let (mut gains, mut at_hand, mut chart) = (Vec::new(), Vec::new(), saved_chart());
    for load in RearrangedLoad::ALL {
        let trace = load.trace(setting)?;
        if load.is_trace() && trace.is_none() {
            let rows = setting.rows.iter().filter(|row| row.metric.starts_with(load.name()));
            let reason = format!("{} is not at hand (--traces)", loads::WEEK_FILE);
            found.measured.extend(rows.map(|row| Measured::left_out(&row.metric, reason.clone())));
            continue;
        }
        let variants: Vec<_> = VARIANTS.into_iter().chain([EXACT]).chain(ORDERS).collect();
        let case = LoadCase::study(load);
        let runs =
            setting.map(&variants, |(_, keys)| measure(&case, trace.as_deref(), keys, setting.length))?;
        for ((variant, _), seeks) in variants.iter().zip(&runs) {
            show(load, variant, seeks, &runs[0], &mut table);
        }
        let place = chart.x.names.len() as f64;
        chart.x.names.push(load.name().to_string());
        for (line, run) in chart.series.iter_mut().zip(&runs[1..]) {
            line.points.push((place, saved(run, &runs[0])));
        }
        gains.push((runs[1].drift, saved(&runs[1], &runs[0])));
        found.measured.extend(rows_of(load, &runs));
        at_hand.push((load, trace, saved(&runs[1], &runs[0])));
    }
    let drift = correlation(&gains);
    found.measured.push(match drift {
        Some(drift) => Measured::new("drift against gain", drift),
        None => Measured::left_out("drift against gain", "fewer than two loads"),
    });
    found.sections.push(Section::new("Seek time").with_chart(chart).with_table(table));
    if setting.length == Length::Full {
        found.sections.push(trials::section(setting)?);
    }
    let mut parts = vec![found, shuffling::run(setting, &at_hand)?];
    if setting.length == Length::Full {
        let trace = at_hand.iter().find_map(|(_, trace, _)| trace.as_deref());
        parts.extend([
            granularity::run(setting)?,
            annealing::run(setting, trace)?,
            contrast::run(setting)?,
            modern::run(setting)?,
        ]);
    }
    parts.extend([forecast::run(setting)?, regions::run(setting)?, orders::run(setting)?]);
    Ok(Findings::join(parts))
}

/// The chart of saved seek time without loads: a series for each variant that copies.
fn saved_chart() -> Chart {
    let names = VARIANTS.iter().skip(1).chain([&EXACT]).map(|(name, _)| *name);
    let series = names.enumerate().map(|(hue, name)| Series::new(name, hue, []).with_draw(Draw::Marks));
    Chart::new("Seek time saved", Axis::of_names("load", []), Axis::linear("saved (%)"), series)
}

/// The values of a load's rows, from its runs in the order of the variants.
fn rows_of(load: RearrangedLoad, runs: &[SavedSeeks]) -> Vec<Measured> {
    let [plain, organ_pipe, serial, _, counters, exact, orders @ ..] = runs else {
        unreachable!("each variant has a run")
    };
    let name = load.name();
    let value = |metric: &str, value: f64| Measured::new(format!("{name} {metric}"), value);
    let gain = saved(organ_pipe, plain);
    let over_serial = gain - saved(serial, plain);
    let mut rows = vec![
        value("seek reduction, least", gain),
        value("seek reduction, most", gain),
        value("organ pipe over serial, least", over_serial),
        value("organ pipe over serial, most", over_serial),
        value("counters", saved(exact, plain) - saved(counters, plain)),
        value("arm at copies", 100.0 * organ_pipe.copying),
    ];
    if !load.is_trace() {
        let faster = |of: &SavedSeeks| 100.0 * (1.0 - of.response_ms / organ_pipe.response_ms);
        let orders = ORDERS.iter().zip(orders).take(JUDGED_ORDERS);
        rows.extend(orders.map(|((order, _), run)| value(order, faster(run))));
    }
    rows
}

fn show(load: RearrangedLoad, variant: &str, seeks: &SavedSeeks, plain: &SavedSeeks, table: &mut Table) {
    let figures = [
        seeks.seek_ms,
        saved(seeks, plain),
        100.0 * seeks.hits,
        seeks.response_ms,
        100.0 * seeks.copying,
        seeks.mean_queue,
    ];
    table.named_row([load.name(), variant], figures);
}
