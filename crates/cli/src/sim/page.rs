//! A run as a report, for `--report`.

use super::{rearrange, text};
use crate::drive::plot;
use crate::failure::Failure;
use crate::report::{Axis, Chart, Draw, Report, Section, Series, Table};
use crate::survey::Survey;
use crate::units::grouped;
use headstack::{DeviceResult, JobResult, Results, ratio};
use headstack_model::{DriveSpec, Geometry, Op};
use headstack_sim::TimeSplit;
use headstack_sim::rig::Rig;
use headstack_sim::stats::{Bin, Sampled, TimeHistogram, Totals};

/// Number of points of a drawn distribution: enough for any screen.
const STEPS: u32 = 500;

/// Maximum devices and volumes in charts.
const DEVICES: usize = 8;

/// Maximum kinds of drives whose zones and seek curves are drawn.
const KINDS: usize = 4;

pub(crate) fn report(results: &Results, rig: &Rig) -> Result<Report, Failure> {
    let mut sections = vec![summary(results), responses(results)];
    sections.extend(by_job(results));
    sections.extend(rearrange::section(results));
    sections.extend([over_time(results), time_split(results), arm(results), map(results)]);
    sections.extend(drives(rig)?);
    let shown = match results.devices.len() {
        count if count > DEVICES => {
            format!(" Charts by device and volume show the first {DEVICES} of {count}.")
        }
        _ => String::new(),
    };
    Ok(Report {
        title: format!("{} on {}", results.workload.name, results.rig.title),
        text: vec![
            format!(
                "{}, seed {}. Simulated by headstack: {} s of the disks' time.",
                results.workload.kind,
                results.seed,
                text::figure(results.end.as_secs())
            ) + &shown,
        ]
        .into_iter()
        .chain(
            results.early_stop.as_ref().map(|partial| format!("Partial: {}.", text::partial_line(partial))),
        )
        .collect(),
        sections,
    })
}

fn summary(results: &Results) -> Section {
    let mut table = Table::new("Figures", &["", ""]).with_words(2);
    // The parts of the response time are left out, because they have a chart.
    for (name, value) in text::lines(results).into_iter().filter(|(name, _)| !name.starts_with(' ')) {
        table.row([name, value]);
    }
    let more = [
        text::phase_table(results),
        text::job_table(results),
        text::volume_table(results),
        text::device_table(results),
        text::link_table(results),
        text::processor_table(results),
        rearrange::period_table(results),
    ];
    let mut tables = vec![table];
    tables.extend(more.into_iter().flatten().map(|(table, _)| table));
    Section::new("Summary").with_tables(tables)
}

/// The kinds of requests that occurred (reads, writes, flushes), each with its colour.
fn directions(results: &Results) -> Vec<(&'static str, usize, Box<Totals>)> {
    let total = results.statistics.total();
    let each = [("reads", 0, total.reads), ("writes", 1, total.writes), ("flushes", 2, total.flushes)];
    each.into_iter().filter_map(|(name, hue, totals)| Some((name, hue, totals?))).collect()
}

/// The distribution of response times: for each time, the percentage of requests that took no longer.
pub(crate) fn distribution(name: &str, hue: usize, times: &TimeHistogram) -> Series {
    let mut points = vec![(times.min().as_ms(), 0.0)];
    points.extend(times.points(STEPS).map(|(share, time)| (time.as_ms(), 100.0 * share)));
    line(name, hue, points)
}

/// The tail of the response times: the time that a share of the requests exceeded. The shares fall from 1 to one request, each by a factor of
/// 1.2.
pub(crate) fn tail(name: &str, hue: usize, times: &TimeHistogram) -> Series {
    let smallest = 1.0 / times.count().max(1) as f64;
    let mut points = Vec::new();
    let mut share = 1.0f64;
    while share >= smallest * 0.999 {
        points.push((times.quantile(1.0 - share).as_ms(), 100.0 * share));
        share /= 1.2;
    }
    points.push((times.max().as_ms(), 100.0 * smallest));
    line(name, hue, points)
}

/// A line of a chart. Every other line is dashed, so that lines differ without colour.
fn line(name: &str, hue: usize, points: Vec<(f64, f64)>) -> Series {
    let dashed = hue % 2 == 1;
    Series::new(name, hue, points).with_draw(Draw::Line).with_dashes(dashed)
}

fn responses(results: &Results) -> Section {
    let all = directions(results);
    let lines = all.iter().map(|(name, hue, totals)| (name.to_string(), *hue, &totals.responses));
    Section::new("Response times")
        .with_text("First the share of requests that took no longer than a time, then the slowest of them: one in ten, in a hundred, in a thousand.")
        .with_charts(response_charts(&lines.collect::<Vec<_>>()))
}

/// The distribution and the tail of these response times, each with its name and colour.
fn response_charts(lines: &[(String, usize, &TimeHistogram)]) -> Vec<Chart> {
    let all = |series: fn(&str, usize, &TimeHistogram) -> Series| -> Vec<Series> {
        lines.iter().map(|(name, hue, times)| series(name, *hue, times)).collect()
    };
    vec![
        Chart::new(
            "Distribution",
            Axis::log("response time (ms)"),
            Axis::linear("requests (%)"),
            all(distribution),
        ),
        Chart::new(
            "The slowest",
            Axis::log("response time (ms)"),
            Axis::log("requests that took longer (%)"),
            all(tail),
        ),
    ]
}

/// Maximum lines by job in a chart.
const JOBS: usize = 14;

/// The same charts with a line for each job and kind of request; none for a single job.
fn by_job(results: &Results) -> Option<Section> {
    let jobs: Vec<JobResult<'_>> = results.jobs().filter(|job| job.statistics.is_some()).collect();
    if jobs.len() < 2 {
        return None;
    }
    let kinds = jobs.iter().flat_map(|job| job.kinds().map(|kind| (job.name, kind)));
    let lines: Vec<_> = kinds
        .enumerate()
        .map(|(hue, (name, kind))| (format!("{name} {}", kind.name), hue, &kind.statistics.responses))
        .collect();
    let shown = match lines.len() {
        count if count > JOBS => vec![format!("The first {JOBS} of {count} lines are drawn.")],
        _ => Vec::new(),
    };
    let charts = response_charts(&lines[..lines.len().min(JOBS)]);
    Some(Section::new("Response times by job").with_texts(shown).with_charts(charts))
}

/// Maximum number of points of a line over time. More would hide each other.
const POINTS: usize = 150;

fn over_time(results: &Results) -> Section {
    let line = results.statistics.timeline();
    // The last bin is incomplete at the end of the run.
    let whole = line.bins().len().saturating_sub(1).max(1).min(line.bins().len());
    let together = whole.div_ceil(POINTS).max(1);
    let width = line.width().as_secs() * together as f64;
    let bins: Vec<Bin> = line.bins()[..whole].chunks_exact(together).map(Bin::sum).collect();
    let series = |name: &str, hue: usize, value: &dyn Fn(&Bin) -> f64| {
        Series::new(
            name,
            hue,
            bins.iter().enumerate().map(|(index, bin)| ((index as f64 + 0.5) * width, value(bin))),
        )
        .with_draw(Draw::Line)
    };
    let chart = |title: &str, y: &str, series: Vec<Series>| {
        Chart::new(title, Axis::linear("time (s)"), Axis::linear(y), series)
    };
    let met = |series: Vec<Series>| -> Vec<Series> { series.into_iter().filter(is_anything).collect() };
    let requests = met(vec![
        series("reads", 0, &|bin| bin.reads as f64 / width),
        series("writes", 1, &|bin| bin.writes as f64 / width),
    ]);
    let bytes = met(vec![
        series("reads", 0, &|bin| bin.read_bytes as f64 / 1e6 / width),
        series("writes", 1, &|bin| bin.written_bytes as f64 / 1e6 / width),
    ]);
    let response =
        series("all", 0, &|bin| ratio(bin.response_ns as f64 / 1e6, (bin.reads + bin.writes) as f64));
    let depth = series("all", 0, &|bin| bin.depth_ns as f64 / 1e9 / width);
    Section::new("Over time")
        .with_text(format!("Means over {} s each.", text::figure(width)))
        .with_chart(chart("Requests", "requests a second", requests))
        .with_chart(chart("Data", "MB/s", bytes))
        .with_chart(chart("Response time", "mean of those completed (ms)", vec![response]))
        .with_chart(chart("Queue depth", "requests outstanding", vec![depth]))
}

/// How many parts a response time has.
pub(crate) const PARTS: usize = TimeSplit::NAMES.len();

/// A column of the charts of parts: its name and the parts' means in milliseconds.
type Column = (String, [f64; PARTS]);

/// Parts of the response time as stacked bars over these columns: in milliseconds and as shares.
pub(crate) fn split_charts(columns: &[Column]) -> Vec<Chart> {
    let share = |parts: &[f64; PARTS], ms: f64| 100.0 * ratio(ms, parts.iter().sum());
    vec![
        split_chart("Mean", "ms", columns, |_, ms| ms),
        split_chart("Share of the mean", "%", columns, share),
    ]
}

fn split_chart(title: &str, y: &str, columns: &[Column], value: impl Fn(&[f64; PARTS], f64) -> f64) -> Chart {
    let each = || columns.iter().enumerate();
    let series = TimeSplit::NAMES.iter().enumerate().map(|(part, name)| {
        Series::new(
            name.replace('_', " "),
            part,
            each().map(|(place, (_, parts))| (place as f64, value(parts, parts[part]))),
        )
        .with_draw(Draw::Bars)
    });
    Chart::new(
        title,
        Axis::of_names("", columns.iter().map(|(name, _)| name.clone())),
        Axis::linear(y),
        series.filter(is_anything),
    )
}

fn is_anything(series: &Series) -> bool {
    series.points.iter().any(|point| point.1 > 0.0)
}

/// The use of each arm's time, as stacked shares with a bar per device.
fn arm_time(results: &Results) -> Chart {
    let shares = |device: &DeviceResult| {
        let activity = &device.activity;
        let work = &activity.commands;
        let times = [
            work.seek,
            work.rotational_latency,
            work.media,
            activity.destages.total(),
            activity.read_ahead,
            activity.recalibration,
            activity.shingled.cleaning.total(),
        ];
        times.map(|time| 100.0 * ratio(time.as_secs(), results.end.as_secs()))
    };
    let names =
        ["seek", "rotational latency", "media", "cached writes", "read-ahead", "recalibration", "cleaning"];
    // Uses of the arm that are also parts of a response time have the colour of that part.
    let hues = [2, 3, 5, 1, 7, 0, 4];
    let series = names.iter().enumerate().map(|(kind, name)| {
        Series::new(
            *name,
            hues[kind],
            shown_devices(results).map(|(place, device)| (place as f64, shares(device)[kind])),
        )
        .with_draw(Draw::Bars)
    });
    Chart::new(
        "What the arm did",
        Axis::of_names("", shown_devices(results).map(|(_, device)| device.name.clone())),
        Axis::linear("share of the time (%)"),
        series.filter(is_anything),
    )
}

fn time_split(results: &Results) -> Section {
    let mut columns = vec![("all".to_string(), results.totals().parts_ms())];
    let each = directions(results);
    if each.len() > 1 {
        columns.extend(each.into_iter().map(|(name, _, totals)| (name.to_string(), totals.parts_ms())));
    }
    if results.volumes.len() > 1 {
        let volumes = results.by_volume().take(DEVICES);
        columns.extend(volumes.map(|(volume, stats)| (volume.name.clone(), stats.transfers().parts_ms())));
    }
    Section::new("Where the time went")
        .with_text("The parts of the mean response time; they add up to it.")
        .with_charts(split_charts(&columns))
}

fn sampled(
    results: &Results,
    keep: impl Fn(&Sampled) -> bool,
    point: impl Fn(&Sampled) -> Option<(f64, f64)>,
    name: &str,
    hue: usize,
) -> Series {
    let kept = results.statistics.sample().kept().iter().filter(|sampled| keep(sampled));
    let mut points: Vec<(f64, f64)> = kept.filter_map(point).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    Series::new(name, hue, points).with_draw(Draw::Dots)
}

/// A note on the sampling of requests.
fn one_in(results: &Results) -> String {
    match results.statistics.sample().step() {
        1 => "every request".to_string(),
        2 => "every second request".to_string(),
        step => format!("one request in {}", grouped(step)),
    }
}

fn shown_devices(results: &Results) -> impl Iterator<Item = (usize, &DeviceResult)> {
    results.devices.iter().take(DEVICES).enumerate()
}

fn arm(results: &Results) -> Section {
    let positions = shown_devices(results).map(|(index, device)| {
        let point = |sampled: &Sampled| {
            sampled.cylinder.map(|cylinder| (sampled.completed.as_secs(), f64::from(cylinder)))
        };
        sampled(results, |sampled| sampled.device as usize == index, point, &device.name, index)
    });
    let start = results.statistics.first().iter().map(|met| met.completed).min().unwrap_or_default();
    let first = shown_devices(results).map(|(index, device)| {
        let on = |met: &&Sampled| met.device as usize == index;
        let points = results.statistics.first().iter().filter(on);
        let point = |met: &Sampled| Some(((met.completed - start).as_ms(), f64::from(met.cylinder?)));
        Series::new(device.name.clone(), index, points.filter_map(point))
    });
    let distances = shown_devices(results).map(|(index, device)| {
        let seeks = &device.activity.seeks;
        let all = seeks.count().max(1) as f64;
        let points = seeks.classes().enumerate();
        Series::new(
            device.name.clone(),
            index,
            points.map(|(class, (_, count))| (class as f64, 100.0 * count as f64 / all)),
        )
        .with_draw(if results.devices.len() > 1 { Draw::Points } else { Draw::Bars })
    });
    let classes =
        results.devices.iter().map(|device| device.activity.seeks.classes().count()).max().unwrap_or(0);
    let names = (0..classes as u32).map(|class| match class {
        0 => "0".to_string(),
        1 => "1".to_string(),
        class => format!("{} +", grouped(1 << (class - 1))),
    });
    Section::new("The head")
        .with_text(format!(
            "The cylinder to which the arm went, for {} that needed it; cylinder 0 is at the rim. How far it went each time, in classes that double. What it did with its time; it was idle for the rest.",
            one_in(results)
        ))
        .with_chart(Chart::new("The head's position over time", Axis::linear("time (s)"), Axis::linear("cylinder"), positions))
        .with_chart(Chart::new("Its first ways, in order of completion", Axis::linear("time since the first (ms)"), Axis::linear("cylinder"), first))
        .with_chart(Chart::new("Seek distances", Axis::of_names("distance (cylinders): this many and more", names), Axis::linear("accesses (%)"), distances))
        .with_chart(arm_time(results))
}

fn map(results: &Results) -> Section {
    let charts = results.volumes.iter().take(DEVICES).enumerate().map(|(index, volume)| {
        let of = |op: Op, name: &str, hue: usize| {
            let keep = |sampled: &Sampled| sampled.volume as usize == index && sampled.request.op == op;
            let point =
                |sampled: &Sampled| Some((sampled.issued.as_secs(), sampled.request.lbn.0 as f64 / 1e6));
            sampled(results, keep, point, name, hue)
        };
        let series = [of(Op::Read, "reads", 0), of(Op::Write, "writes", 1)];
        Chart::new(
            format!("Requests on {}", volume.name),
            Axis::linear("time of issue (s)"),
            Axis::linear("LBN (millions)"),
            series.into_iter().filter(|series| !series.points.is_empty()),
        )
    });
    Section::new("Request map")
        .with_text(format!(
            "Which blocks were requested, and when: one request in {}.",
            results.statistics.sample().step()
        ))
        .with_charts(charts.filter(|chart| !chart.series.is_empty()))
}

/// Zones and seek curve of each kind of drive.
pub(crate) fn drives(rig: &Rig) -> Result<Vec<Section>, Failure> {
    let mut kinds: Vec<&DriveSpec> = Vec::new();
    for group in &rig.resolved().drive {
        if kinds.len() < KINDS && kinds.iter().all(|kind| kind.name != group.spec.name) {
            kinds.push(&group.spec);
        }
    }
    let mut sections = Vec::new();
    for spec in kinds {
        let geometry = Geometry::new(spec).map_err(Failure::input)?;
        let (mut zones, seeks) = (plot::zones(&Survey::new(spec, &geometry)), plot::seeks(spec));
        zones.title = format!("The disk: {}", spec.title);
        zones.text.extend(seeks.text);
        for (chart, name) in
            zones.charts.iter_mut().zip(["Media rate over the disk", "Density over the disk"])
        {
            chart.title = name.to_string();
        }
        zones.charts.extend(
            seeks
                .charts
                .into_iter()
                .map(|chart| Chart { title: format!("Seek curve: {}", chart.title.to_lowercase()), ..chart }),
        );
        zones.tables.clear();
        sections.push(zones);
    }
    Ok(sections)
}
