//! The comparison as a report: each metric over the varied keys.

use super::figures::{Metric, Ran};
use super::{Comparison, remarks, table};
use crate::failure::Failure;
use crate::report::{Axis, Chart, Draw, Report, Section, Series};
use crate::sim::page as one;

/// Maximum number of distributions shown at first; the others appear by a click on their name.
const SHOWN: usize = 12;

/// Maximum number of runs with distributions and time splits.
const DRAWN: usize = 60;

struct Plotted {
    title: &'static str,
    unit: &'static str,
    metric: Metric,
    /// 100 for shares, which are shown in per cent.
    scale: f64,
}

const fn plotted(title: &'static str, unit: &'static str, metric: Metric) -> Plotted {
    Plotted { title, unit, metric, scale: 1.0 }
}

const METRICS: [Plotted; 6] = [
    plotted("Throughput", "IOPS", Metric::Iops),
    plotted("Data", "MB/s", Metric::MbS),
    plotted("Mean response", "ms", Metric::MeanMs),
    plotted("Slowest hundredth", "99th percentile (ms)", Metric::P99Ms),
    Plotted { title: "Arm at work", unit: "share of the time (%)", metric: Metric::Arm, scale: 100.0 },
    Plotted { title: "Read hits", unit: "share of the reads (%)", metric: Metric::Hits, scale: 100.0 },
];

pub(super) fn report(comparison: &Comparison) -> Result<Report, Failure> {
    let mut sections = vec![metrics(comparison), distributions(comparison), time_split(comparison)];
    let mut runs = table::ranked(comparison).table;
    runs.title = format!("{} runs", runs.rows.len());
    sections[0].tables.push(runs);
    let jobs = table::jobs(comparison).table;
    if jobs.rows.len() > comparison.ran.len() {
        sections[0].tables.push(jobs);
    }
    let mut met: Vec<String> = Vec::new();
    for (_, rig) in &comparison.rigs {
        for section in one::drives(rig)? {
            if !met.contains(&section.title) {
                met.push(section.title.clone());
                sections.push(section);
            }
        }
    }
    let names: Vec<&str> = comparison.rigs.iter().map(|(name, _)| name.as_str()).collect();
    Ok(Report {
        title: format!("{} on {}", comparison.load, names.join(", ")),
        text: [format!(
            "The same load in every run, {}. {}",
            table::seeds(comparison),
            table::note(comparison)
        )]
        .into_iter()
        .chain(remarks::setups(comparison).into_iter().map(|line| format!("Setup: {line}.")))
        .chain(remarks::notes(comparison).into_iter().map(|line| format!("Note: {line}.")))
        .chain(comparison.partial.map(|partial| partial.line(comparison.ran.len())))
        .collect(),
        sections,
    })
}

/// The x positions of runs, and the key that separates lines.
struct Arrangement {
    x: Axis,
    /// Per run: its x position, and the name of its line.
    runs: Vec<(f64, String)>,
    /// Whether the positions are words, which no line should connect.
    words: bool,
}

fn arrange(comparison: &Comparison) -> Arrangement {
    let Some(last) = comparison.varied.last() else {
        let names = comparison.rigs.iter().map(|(name, _)| name.clone());
        let runs = comparison.ran.iter().map(|ran| (ran.cell.rig_index as f64, String::new())).collect();
        return Arrangement { x: Axis::of_names("", names), runs, words: true };
    };
    let numbers = last.numbers();
    let x = match &numbers {
        Some(numbers) => numeric_axis(&last.key, numbers),
        None => Axis::of_names(&last.key, last.values.clone()),
    };
    let place = |ran: &Ran| {
        let value = ran.cell.settings.last().map_or("", |(_, value)| value.as_str());
        let index = last.values.iter().position(|known| known == value).unwrap_or(0);
        numbers.as_ref().map_or(index as f64, |numbers| numbers[index])
    };
    let line = |ran: &Ran| {
        let mut words: Vec<&str> = Vec::new();
        words.extend((comparison.rigs.len() > 1).then_some(ran.cell.rig_name.as_str()));
        let before = ran.cell.settings.len() - 1;
        words.extend(ran.cell.settings[..before].iter().map(|(_, value)| value.as_str()));
        words.join(", ")
    };
    let runs = comparison.ran.iter().map(|ran| (place(ran), line(ran))).collect();
    Arrangement { x, runs, words: numbers.is_none() }
}

/// An axis, logarithmic if the numbers are far apart.
fn numeric_axis(label: &str, numbers: &[f64]) -> Axis {
    let (low, high) = numbers
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(low, high), number| (low.min(*number), high.max(*number)));
    let axis = if low > 0.0 && high / low >= 8.0 { Axis::log(label) } else { Axis::linear(label) };
    axis.with_ticks(numbers.iter().copied())
}

fn metrics(comparison: &Comparison) -> Section {
    let arrangement = arrange(comparison);
    let any = |plotted: &&Plotted| comparison.ran.iter().any(|ran| ran.value(plotted.metric) > 0.0);
    Section::new("Metrics")
        .with_charts(METRICS.iter().filter(any).map(|plotted| chart(comparison, &arrangement, plotted)))
}

fn chart(comparison: &Comparison, arrangement: &Arrangement, plotted: &Plotted) -> Chart {
    let Plotted { metric, scale, .. } = *plotted;
    let has_intervals = comparison.ran.iter().any(|ran| ran.interval(metric).is_some());
    let mut series: Vec<Series> = Vec::new();
    for (ran, (place, line)) in comparison.ran.iter().zip(&arrangement.runs) {
        let known = series.iter().position(|series| series.name == *line);
        let index = known.unwrap_or_else(|| {
            let hue = series.len();
            let draw = if arrangement.words { Draw::Marks } else { Draw::Points };
            series.push(Series::new(line.clone(), hue, Vec::new()).with_draw(draw).with_dashes(hue >= 7));
            series.len() - 1
        });
        series[index].points.push((*place, scale * ran.value(metric)));
        if has_intervals {
            series[index].errors.push(ran.interval(metric).map_or(0.0, |found| scale * found.half_width));
        }
    }
    if let ([alone], true) = (&mut series[..], arrangement.words) {
        alone.draw = Draw::Bars;
    }
    for line in &mut series {
        sort(line);
    }
    Chart::new(plotted.title, arrangement.x.clone(), Axis::linear(plotted.unit), series)
}

fn sort(series: &mut Series) {
    let mut order: Vec<usize> = (0..series.points.len()).collect();
    order.sort_by(|one, other| series.points[*one].0.total_cmp(&series.points[*other].0));
    series.points = order.iter().map(|index| series.points[*index]).collect();
    if !series.errors.is_empty() {
        series.errors = order.iter().map(|index| series.errors[*index]).collect();
    }
}

/// The name of a run, without the rig if there is only one, and without the names of the keys.
fn short_name(comparison: &Comparison, ran: &Ran) -> String {
    let mut words: Vec<&str> = Vec::new();
    words.extend((comparison.rigs.len() > 1).then_some(ran.cell.rig_name.as_str()));
    words.extend(ran.cell.settings.iter().map(|(_, value)| value.as_str()));
    words.join(", ")
}

fn drawn(comparison: &Comparison) -> String {
    match comparison.ran.len() {
        count if count > DRAWN => format!(" The first {DRAWN} of {count} runs are there."),
        _ => String::new(),
    }
}

fn shown(comparison: &Comparison) -> String {
    match comparison.ran.len() {
        count if count > SHOWN => {
            format!(
                " The first {SHOWN} of {count} runs are shown; a click on a name shows or hides its line."
            )
        }
        _ => String::new(),
    }
}

/// A note on the seed of the distributions, if there are several.
fn of_seed(comparison: &Comparison) -> String {
    if comparison.seeds > 1 { format!(" Those of seed {}.", comparison.seed) } else { String::new() }
}

fn distributions(comparison: &Comparison) -> Section {
    let series = comparison.ran.iter().take(DRAWN).enumerate().map(|(hue, ran)| {
        Series::new(short_name(comparison, ran), hue, ran.runs[0].distribution.clone())
            .with_draw(Draw::Line)
            .with_dashes(hue >= 7)
            .hidden_if(hue >= SHOWN)
    });
    Section::new("Response times")
        .with_text(format!(
            "The share of requests that took no longer than a time.{}{}{}",
            of_seed(comparison),
            shown(comparison),
            drawn(comparison)
        ))
        .with_chart(Chart::new(
            "Distribution",
            Axis::log("response time (ms)"),
            Axis::linear("requests (%)"),
            series,
        ))
}

fn time_split(comparison: &Comparison) -> Section {
    let runs = comparison.ran.iter().take(DRAWN);
    let columns: Vec<_> = runs.map(|ran| (short_name(comparison, ran), ran.parts_ms())).collect();
    Section::new("Where the time went")
        .with_text(format!("The parts of the mean response time; they add up to it.{}", drawn(comparison)))
        .with_charts(one::split_charts(&columns))
}
