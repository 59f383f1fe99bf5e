//! The activity of the rearrangers of a run's volumes, as lines, a table and charts.

use crate::report::{Axis, Chart, Section, Series, Table};
use crate::units::{grouped, significant};
use headstack::{Results, VolumeResult};
use headstack_sim::{RearrangeActivity, RearrangePeriod, RearrangeTimes};

fn figure(value: f64) -> String {
    significant(value, 4)
}

/// The volumes with a rearranger.
fn rearranged(results: &Results) -> impl Iterator<Item = (&VolumeResult, &RearrangeActivity)> {
    results.volumes.iter().filter_map(|volume| Some((volume, volume.rearrange.as_ref()?)))
}

/// A line for each volume with a rearranger.
pub(super) fn lines(results: &Results) -> Vec<(String, String)> {
    let line = |(volume, activity): (&VolumeResult, &RearrangeActivity)| {
        let counters = &activity.view.counters;
        let share = 100.0 * counters.hit_share();
        let copied = format!(
            "{} blocks copied in and {} written home in {} s of the arm",
            grouped(counters.copied_in),
            grouped(counters.written_home),
            figure(activity.times.copy_arm.as_secs())
        );
        let name = if results.volumes.len() > 1 { format!(" ({})", volume.name) } else { String::new() };
        let seeks = seeks(&activity.times);
        (
            "rearranged".to_string(),
            format!("{share:.1} % of the requests served by copies{name}, {copied}{seeks}"),
        )
    };
    rearranged(results).map(line).collect()
}

/// The mean seek time of an access, and the mean without copies.
fn seeks(times: &RearrangeTimes) -> String {
    let Some(saved) = times.saved_share() else { return String::new() };
    let mean = |time: headstack_model::Nanos| figure(time.as_ms() / times.accesses.max(1) as f64);
    format!(", seek {} ms, {} at home ({:+.1} %)", mean(times.seek), mean(times.home_seek), -100.0 * saved)
}

/// A row for each period of each volume, if any has ended.
pub(crate) fn period_table(results: &Results) -> Option<(Table, usize)> {
    let columns = [
        "period",
        "end s",
        "requests",
        "hits",
        "copied in",
        "written home",
        "copying s",
        "seek ms",
        "at home ms",
    ];
    let mut table = Table::new("Periods of rearrangement", &columns);
    for (volume, activity) in rearranged(results) {
        for RearrangePeriod { record, times } in &activity.periods {
            let accesses = times.accesses.max(1) as f64;
            table.row([
                if results.volumes.len() > 1 {
                    format!("{} {}", volume.name, record.number)
                } else {
                    record.number.to_string()
                },
                figure(record.end.as_secs()),
                grouped(record.counters.requests),
                format!("{:.1} %", 100.0 * record.counters.hit_share()),
                grouped(record.counters.copied_in),
                grouped(record.counters.written_home),
                figure(times.copy_arm.as_secs()),
                figure(times.seek.as_ms() / accesses),
                figure(times.home_seek.as_ms() / accesses),
            ]);
        }
    }
    let rows = table.rows.len();
    (rows > 0).then_some((table, rows))
}

/// Charts of hits and seeks by period.
pub(super) fn section(results: &Results) -> Option<Section> {
    let by_period = |value: &dyn Fn(&RearrangePeriod) -> f64| -> Vec<Series> {
        let volumes = rearranged(results).enumerate();
        let series = volumes.map(|(hue, (volume, activity))| {
            let points =
                activity.periods.iter().map(|period| (period.record.end.as_secs() / 3600.0, value(period)));
            Series::new(volume.name.clone(), hue, points)
        });
        series.filter(|series| !series.points.is_empty()).collect()
    };
    let hits = by_period(&|period| 100.0 * period.record.counters.hit_share());
    if hits.is_empty() {
        return None;
    }
    let saved = by_period(&|period| 100.0 * period.times.saved_share().unwrap_or(0.0));
    let time = || Axis::linear("end of the period (h)");
    let section = Section::new("Block rearrangement")
        .with_text("Requests that copies in the reserved region served, and the part of the seeks that they saved against the same requests served at their homes in the same order.")
        .with_chart(Chart::new("Requests served by copies", time(), Axis::linear("requests (%)"), hits))
        .with_chart(Chart::new("Seek time saved", time(), Axis::linear("of the seeks at home (%)"), saved));
    Some(section)
}
