//! The summary of a run on a terminal.

use super::rearrange;
use crate::failure::Failure;
use crate::report::Table;
use crate::units::{grouped, significant};
use headstack::{DeviceResult, EarlyStop, Results};
use headstack_model::Nanos;
use headstack_sim::TimeSplit;
use headstack_sim::stats::{Interval, Priority, TimeHistogram, Totals};
use std::io::Write;

/// Maximum rows of a table on a terminal; the JSON has them all.
const ROWS: usize = 20;

pub(crate) fn figure(value: f64) -> String {
    significant(value, 4)
}

/// The half width of a mean's interval. A half width below a hundred-thousandth of the mean is shown as 0.
pub(crate) fn half_width(interval: &Interval) -> String {
    let width = interval.half_width;
    if width < 1e-5 * interval.mean.abs() { "0".to_string() } else { significant(width, 2) }
}

pub(crate) fn print(results: &Results, out: &mut dyn Write) -> Result<(), Failure> {
    for (name, value) in lines(results) {
        writeln!(out, "  {name:<20} {value}")?;
    }
    let tables = [
        phase_table(results),
        job_table(results),
        volume_table(results),
        device_table(results),
        link_table(results),
        processor_table(results),
        rearrange::period_table(results),
    ];
    for (mut table, rows) in tables.into_iter().flatten() {
        let left = rows.saturating_sub(ROWS);
        table.rows.truncate(ROWS);
        writeln!(out, "\n{}", indented(&table.to_text()))?;
        if left > 0 {
            writeln!(out, "  … and {left} more (see --json)")?;
        }
    }
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

pub(crate) fn lines(results: &Results) -> Vec<(String, String)> {
    let totals = results.totals();
    let mut lines = vec![
        ("rig".to_string(), results.rig.title.clone()),
        ("load".to_string(), format!("{} ({})", results.workload.name, results.workload.kind)),
        ("setup".to_string(), results.setup.line().unwrap_or_default()),
        ("requests".to_string(), requests(results)),
        ("simulated".to_string(), format!("{} s", figure(results.end.as_secs()))),
        ("CPU time".to_string(), cpu(results)),
    ];
    lines.retain(|(_, value)| !value.is_empty());
    if let Some(stop) = &results.early_stop {
        lines.insert(0, ("partial".to_string(), partial_line(stop)));
    }
    let confidence = results.confidence();
    let within = |pick: fn(&headstack_sim::stats::Confidence) -> &Interval| {
        confidence.as_ref().map_or(String::new(), |found| format!(" ± {}", half_width(pick(found))))
    };
    let iops = format!("{}{} IOPS", figure(results.iops()), within(|found| &found.iops));
    lines.push(("throughput".to_string(), throughput(results, &iops)));
    let times = &totals.responses;
    let quantile = |share: f64| figure(times.quantile(share).as_ms());
    lines.push((
        "response".to_string(),
        format!(
            "mean {}{} ms (p50 {}, p90 {}, p99 {}, p99.9 {}, max {})",
            figure(times.mean_ms()),
            within(|found| &found.response_ms),
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            quantile(0.999),
            figure(times.max().as_ms()),
        ),
    ));
    for (name, mean) in TimeSplit::NAMES.iter().zip(totals.parts_ms()) {
        if *name == "retries" && totals.retried.is_none() {
            continue;
        }
        let share = if times.mean_ms() > 0.0 { 100.0 * mean / times.mean_ms() } else { 0.0 };
        lines.push((format!("  {}", name.replace('_', " ")), format!("{mean:8.3} ms {share:5.1} %")));
    }
    lines.extend(flush_line(results).map(|value| ("flushes".to_string(), value)));
    let late = late_line(results);
    let causes = if late.is_some() { "retries and slow periods" } else { "retries" };
    lines.extend(tail_line(&totals, causes).map(|value| ("tail".to_string(), value)));
    lines.extend(late.map(|value| ("late".to_string(), value)));
    if let [device] = &results.devices[..] {
        lines.extend(device_lines(results, device));
    }
    for volume in &results.volumes {
        let rebuilt =
            volume.rebuilt.map(|share| format!("{:.3} % of the spares of {}", 100.0 * share, volume.name));
        lines.extend(rebuilt.map(|value| ("rebuilt".to_string(), value)));
    }
    lines.extend(rebuild_line(results).map(|value| ("rebuild".to_string(), value)));
    lines.extend(rearrange::lines(results).into_iter().chain(results.reported_lines()));
    let notes = results.notes().into_iter().map(|note| note.text);
    let remarks = results.workload.remarks.iter().cloned().chain(notes);
    lines.extend(remarks.map(|remark| ("note".to_string(), remark)));
    lines
}

/// A line on the time of a rebuild; none where none is needed.
fn rebuild_line(results: &Results) -> Option<String> {
    Some(format!("{} h for all of it, at this rate", figure(results.rebuild_hours()?)))
}

/// A line on the flushes; none without one.
fn flush_line(results: &Results) -> Option<String> {
    let times = results.flushes()?.responses;
    let [mean, p99, max] = [times.mean_ms(), times.p99().as_ms(), times.max().as_ms()].map(figure);
    Some(format!("mean {mean} ms (p99 {p99}, max {max})"))
}

/// A line on the accesses that slow periods delayed, over all devices; none if no access was delayed.
fn late_line(results: &Results) -> Option<String> {
    let slowed = || results.devices.iter().map(|device| device.activity.slowed);
    let count: u64 = slowed().map(|slowed| slowed.count).sum();
    let lost: f64 = slowed().map(|slowed| slowed.lost.as_secs()).sum();
    (count > 0).then(|| format!("{} accesses lost {} s to slow periods", grouped(count), figure(lost)))
}

/// A line on requests that lost turns to these causes: their shares of all requests and of the slowest ones. None if no turn was lost.
fn tail_line(totals: &Totals, causes: &str) -> Option<String> {
    let retried = totals.retried.as_ref()?;
    let percent = |share: f64| significant(100.0 * share, 3);
    Some(format!(
        "{} % of the requests lost turns to {causes}: {} % of the slowest hundredth, {} % of the slowest thousandth",
        percent(retried.count() as f64 / totals.responses.count().max(1) as f64),
        percent(totals.retried_of_slowest(0.01)),
        percent(totals.retried_of_slowest(0.001)),
    ))
}

pub(crate) fn partial_line(partial: &EarlyStop) -> String {
    let share =
        partial.share.map_or(String::new(), |share| format!(" at {:.1} % of the load", 100.0 * share));
    let outstanding = match partial.outstanding {
        0 => String::new(),
        count => format!("; {} requests outstanding are not counted", grouped(count)),
    };
    format!("stopped by {}{share}{outstanding}", partial.reason)
}

fn requests(results: &Results) -> String {
    let kinds = results.statistics.total();
    let count = |part: &Option<Box<Totals>>| part.as_ref().map_or(0, |part| part.responses.count());
    let named = [("read", &kinds.reads), ("written", &kinds.writes), ("flushes", &kinds.flushes)];
    let said: Vec<String> = named
        .into_iter()
        .filter(|(_, part)| count(part) > 0)
        .map(|(name, part)| format!("{} {name}", grouped(count(part))))
        .collect();
    let counted = results.counted();
    let warm_up = match results.statistics.completed() - counted {
        0 => String::new(),
        more => format!(", after {} to warm up", grouped(more)),
    };
    match said.len() {
        0 => format!("none{warm_up}"),
        _ => format!("{} ({}){warm_up}", grouped(counted), said.join(", ")),
    }
}

/// The throughput, with flushes apart from reads and writes.
fn throughput(results: &Results, iops: &str) -> String {
    let rate = format!("{iops}, {} MB/s", figure(results.bandwidth_mb_s()));
    match results.flushes_per_s() {
        0.0 => rate,
        flushes => format!("{rate}; {} flushes/s", figure(flushes)),
    }
}

fn cpu(results: &Results) -> String {
    let speed = grouped(results.requests_per_cpu_s().unwrap_or_default().round() as u64);
    format!("{} s, {speed} requests a CPU second", figure(results.cpu_s.unwrap_or_default()))
}

/// Activity of a single device's arm and cache.
fn device_lines(results: &Results, device: &DeviceResult) -> Vec<(String, String)> {
    let activity = &device.activity;
    let mut lines = Vec::new();
    if activity.commands.accesses + activity.destages.accesses > 0 {
        let (busy, head) = (100.0 * results.utilisation(device), figure(activity.head_time_ms()));
        let seek = figure(activity.seeks.mean());
        let value = format!("{busy:.1} % at work, {head} ms an access, mean seek over {seek} cylinders");
        lines.push(("arm".to_string(), value));
    }
    if activity.reads.iter().sum::<u64>() > 0 {
        let value =
            format!("{:.1} % of the reads without an access of their own", 100.0 * activity.read_hit_share());
        lines.push(("cache".to_string(), value));
    }
    let shingled = &activity.shingled;
    if shingled.records + shingled.bands_streamed > 0 {
        let value = format!(
            "{} records to the cache, {} bands streamed, {} cleaned ({} GB moved), {} to clean; {} stalls of {} s in all",
            grouped(shingled.records),
            grouped(shingled.bands_streamed),
            grouped(shingled.bands_cleaned),
            figure(shingled.bytes_moved as f64 / 1e9),
            grouped(shingled.bands_to_clean),
            grouped(shingled.full_stalls),
            figure(shingled.stalled.as_secs())
        );
        lines.push(("shingled".to_string(), value));
    }
    if let Some(guard) = &device.guard {
        let value = format!(
            "{} holds, a command overtaken {} times at most",
            grouped(guard.holds),
            grouped(u64::from(guard.worst_overtaken))
        );
        lines.push(("guard".to_string(), value));
    }
    lines
}

fn priority_name(Priority { class, hint }: Priority) -> String {
    match (class, hint) {
        (0, 0) => "no priority".to_string(),
        (1, 0) => "high priority".to_string(),
        _ => format!("duration limit {hint}"),
    }
}

/// A row per job, kind of request and priority, if there are several. Jobs that report as a group share a row.
pub(crate) fn job_table(results: &Results) -> Option<(Table, usize)> {
    let columns = ["job", "requests", "IOPS", "MB/s", "mean ms", "p50 ms", "p99 ms", "max ms"];
    let mut table = Table::new("Jobs", &columns);
    for job in results.reported_jobs() {
        for kind in job.kinds() {
            let row = |name: String, times: &TimeHistogram, mb_s: String| {
                [
                    name,
                    grouped(times.count()),
                    figure(kind.iops() * times.count() as f64 / kind.statistics.responses.count() as f64),
                    mb_s,
                    figure(times.mean_ms()),
                    figure(times.p50().as_ms()),
                    figure(times.p99().as_ms()),
                    figure(times.max().as_ms()),
                ]
            };
            let name = format!("{} {}", job.name, kind.name);
            table.row(row(name.clone(), &kind.statistics.responses, figure(kind.mb_s())));
            for (priority, times) in kind.statistics.priorities() {
                table.row(row(format!("{name}, {}", priority_name(*priority)), times, String::new()));
            }
        }
    }
    several(table)
}

/// A row per volume, if there are several.
pub(crate) fn volume_table(results: &Results) -> Option<(Table, usize)> {
    let mut table = Table::new("Volumes", &["volume", "requests", "mean ms", "p99 ms", "max ms"]);
    for (volume, stats) in results.by_volume() {
        let responses = stats.transfers().responses;
        table.row([
            volume.name.clone(),
            grouped(stats.count()),
            figure(responses.mean_ms()),
            figure(responses.p99().as_ms()),
            figure(responses.max().as_ms()),
        ]);
    }
    several(table)
}

/// A row per device, if there are several.
pub(crate) fn device_table(results: &Results) -> Option<(Table, usize)> {
    let columns = ["device", "commands", "arm at work", "head time ms", "seek cylinders", "cached"];
    let mut table = Table::new("Devices", &columns);
    for device in &results.devices {
        let activity = &device.activity;
        table.row([
            device.name.clone(),
            grouped(activity.ended()),
            format!("{:.1} %", 100.0 * results.utilisation(device)),
            figure(activity.head_time_ms()),
            figure(activity.seeks.mean()),
            format!("{:.1} %", 100.0 * activity.read_hit_share()),
        ]);
    }
    several(table)
}

/// A table with its number of rows, if there are several.
fn several(table: Table) -> Option<(Table, usize)> {
    let rows = table.rows.len();
    (rows > 1).then_some((table, rows))
}

/// A row for each part of each link that devices share.
pub(crate) fn link_table(results: &Results) -> Option<(Table, usize)> {
    let mut table = Table::new("Links", &["link", "part", "busy s", "busy"]);
    for link in &results.links {
        let share = format!("{:.1} %", 100.0 * results.share(link.busy));
        table.row(vec![link.name.clone(), link.part.to_string(), figure(link.busy.as_secs()), share]);
    }
    let rows = table.rows.len();
    (rows > 0).then_some((table, rows))
}

/// A row for each phase of the load.
pub(crate) fn phase_table(results: &Results) -> Option<(Table, usize)> {
    let mut table = Table::new("Phases", &["phase", "seconds", "KiB/s", "operations/s", "processor"]);
    for phase in &results.phases {
        let share =
            phase.processor_share().map_or_else(String::new, |share| format!("{:.1} %", 100.0 * share));
        let [seconds, rate, operations] =
            [phase.seconds(), phase.kib_s(), phase.operations_per_s()].map(figure);
        table.row(vec![phase.name.clone(), seconds, rate, operations, share]);
    }
    let rows = table.rows.len();
    (rows > 0).then_some((table, rows))
}

/// A row for each kind of work of the host's processor, and one for all.
pub(crate) fn processor_table(results: &Results) -> Option<(Table, usize)> {
    let processor = results.processor.as_ref()?;
    let mut table = Table::new("Processor", &["processor", "busy s", "busy"]);
    let mut row = |name: &str, busy: Nanos| {
        let share = 100.0 * results.share(busy) / processor.lanes.len() as f64;
        table.row(vec![name.to_string(), figure(busy.as_secs()), format!("{share:.1} %")]);
    };
    let kinds = processor.kinds.iter().filter(|(_, busy)| *busy > Nanos::ZERO);
    kinds.for_each(|(kind, busy)| row(&kind.name().replace('_', " "), *busy));
    row("all", processor.busy());
    let rows = table.rows.len();
    Some((table, rows))
}
