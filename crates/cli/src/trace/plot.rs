//! `headstack trace plot`: a trace as charts.

use super::formats;
use super::input::Input;
use super::stat::tables;
use crate::failure::Failure;
use crate::files;
use crate::report::{self, Axis, Chart, Draw, Report, Section, Series};
use crate::units::grouped;
use headstack_model::Instant;
use headstack_workload::trace::stat::{Point, Sample, Stat, Summary};
use headstack_workload::trace::{Header, Kind};
use std::io::Write;
use std::path::PathBuf;

/// Maximum number of requests drawn. From a longer trace, a random sample is drawn.
const DRAWN: usize = 20_000;
/// Maximum devices drawn separately.
const DEVICES: usize = 6;
/// Number of steps of a drawn distribution.
const STEPS: usize = 500;
/// Seed of the sample, so that it is the same each time.
const SEED: u64 = 1;

/// Plot a trace into one self-contained HTML file: addresses over time, sizes, gaps, runs, load over time.
#[derive(clap::Args)]
pub(crate) struct Plot {
    #[command(flatten)]
    input: Input,
    /// The trace's format. [default: recognized by its first bytes]
    #[arg(long, value_name = "FORMAT", value_parser = formats::values())]
    format: Option<String>,
    /// Where to write the page. [default: TRACE.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Plot {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut opened = self.input.open(formats::named(self.format.as_ref()))?;
        let (mut stat, mut sample) = (Stat::new(), Sample::new(DRAWN, SEED));
        let mut first = None;
        opened.for_each(|record, _| {
            first.get_or_insert(record.time);
            stat.observe(&record);
            if matches!(record.kind, Kind::Read | Kind::Write) {
                sample.observe(&record);
            }
            Ok(())
        })?;
        let header = opened.trace.header();
        let (points, of) = sample.finish();
        let picture = Picture { points, of, first: first.unwrap_or_default() };
        let distributions = distributions(&stat);
        let regions = heat(&stat, header);
        let summary = stat.summary(header);
        let mut text =
            vec![format!("{}, {} requests.", opened.trace.format().title, grouped(summary.requests))];
        text.extend(opened.skipped());
        let report = Report {
            title: self
                .input
                .file
                .file_name()
                .map_or(self.input.name(), |name| name.to_string_lossy().into()),
            text,
            sections: vec![
                picture.section(header),
                Section::new("Requests").with_charts(distributions),
                over_time(&summary),
                regions,
                Section::new("In numbers").with_tables(tables(&summary)),
            ],
        };
        let path = self.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.html", report.title)));
        files::check_apart(&[&self.input.file], &[("--output", Some(&path))])?;
        files::write_whole(&path, report::to_html(&report).as_bytes())?;
        writeln!(out, "{}", path.display())?;
        Ok(())
    }
}

struct Picture {
    points: Vec<Point>,
    of: u64,
    first: Instant,
}

impl Picture {
    /// A chart for each of the busiest devices.
    fn section(&self, header: &Header) -> Section {
        let mut devices: Vec<(usize, u32)> = Vec::new();
        for point in &self.points {
            match devices.iter_mut().find(|(_, device)| *device == point.device) {
                Some((count, _)) => *count += 1,
                None => devices.push((1, point.device)),
            }
        }
        devices.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        devices.truncate(DEVICES);
        let drawn = match self.points.len() as u64 {
            all if all == self.of => "Every read and write where it begins.".to_string(),
            some => format!("{} of {} reads and writes, chosen by chance.", grouped(some), grouped(self.of)),
        };
        let charts = devices.iter().map(|(_, device)| self.chart(*device, header));
        Section::new("Where it asks").with_text(drawn).with_charts(charts)
    }

    fn chart(&self, device: u32, header: &Header) -> Chart {
        let series = |name: &str, hue: usize, kind: Kind| {
            let own = self.points.iter().filter(|point| point.device == device && point.kind == kind);
            let place = |point: &Point| (point.time.since(self.first).as_secs(), point.offset as f64 / 1e6);
            Series::new(name, hue, own.map(place)).with_draw(Draw::Dots)
        };
        let both = [series("read", 0, Kind::Read), series("write", 1, Kind::Write)];
        Chart::new(
            format!("Device {}", header.label(device)),
            Axis::linear("time (s)"),
            Axis::linear("first byte (MB)"),
            both.into_iter().filter(|series| !series.points.is_empty()),
        )
    }
}

fn distributions(stat: &Stat) -> Vec<Chart> {
    let shares = || (0..=STEPS).map(|step| step as f64 / STEPS as f64);
    let series = |name: &str, hue: usize, at: &dyn Fn(f64) -> f64| {
        Series::new(
            name,
            hue,
            shares().map(|share| (at(share), 100.0 * share)).filter(|(value, _)| *value > 0.0),
        )
        .with_draw(Draw::Steps)
        .with_dashes(hue > 0)
    };
    let chart = |title: &str, x: &str, series: Vec<Series>| {
        Chart::new(
            title,
            Axis::log(x),
            Axis::linear("no larger (%)"),
            series.into_iter().filter(|series| !series.points.is_empty()),
        )
    };
    let size = |kind| move |share| stat.size_at(kind, share) as f64 / 1024.0;
    let runs = stat.runs();
    let charts = vec![
        chart(
            "Sizes",
            "KiB",
            vec![series("read", 0, &size(Kind::Read)), series("write", 1, &size(Kind::Write))],
        ),
        chart("Gaps between requests", "ms", vec![series("gap", 0, &|share| stat.gap_at(share).as_ms())]),
        chart("Sequential runs", "requests", vec![series("run", 0, &|share| runs(share) as f64)]),
    ];
    charts.into_iter().filter(|chart| !chart.series.is_empty()).collect()
}

/// Requests, data and queue depth over time, in the fine intervals of the summary.
fn over_time(summary: &Summary) -> Section {
    let chart = |title: &str, y: &str, value: &dyn Fn(usize) -> Option<f64>| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (index, interval) in summary.fine.iter().enumerate() {
            points.extend(value(index).map(|value| (interval.from_s, value)));
        }
        let last = summary.fine.last().map(|interval| interval.to_s);
        points.extend(last.zip(points.last().copied()).map(|(to, (_, value))| (to, value)));
        let series = Series::new(title, 0, points).with_draw(Draw::Steps);
        Chart::new(title, Axis::linear("time (s)"), Axis::linear(y), [series])
    };
    let of = |index: usize| &summary.fine[index];
    let per_s = |index: usize| Some(of(index).requests as f64 / (of(index).to_s - of(index).from_s));
    let charts = [
        chart("Requests issued", "requests a second", &per_s),
        chart("Data", "MB/s", &|index| Some(of(index).mb_per_s)),
        chart("Queue depth", "requests outstanding", &|index| of(index).queue_depth),
    ];
    Section::new("Over time")
        .with_charts(charts.into_iter().filter(|chart| !chart.series[0].points.is_empty()))
}

/// Requests to each region of the busiest devices.
fn heat(stat: &Stat, header: &Header) -> Section {
    let mut devices: Vec<_> = stat.regions().collect();
    devices.sort_by(|(_, a), (_, b)| b.sums().iter().sum::<f64>().total_cmp(&a.sums().iter().sum()));
    devices.truncate(DEVICES);
    let chart = |(device, bins): &(u32, &headstack_workload::trace::stat::Bins)| {
        let place = |(bin, count): (usize, &f64)| ((bin as u64 * bins.width()) as f64 / 1e6, *count);
        let points = bins.sums().iter().enumerate().map(place);
        let series = Series::new("requests", 0, points).with_draw(Draw::Steps);
        Chart::new(
            format!("Device {}", header.label(*device)),
            Axis::linear("first byte (MB)"),
            Axis::linear("reads and writes"),
            [series],
        )
    };
    Section::new("Requests by region").with_charts(devices.iter().map(chart))
}
