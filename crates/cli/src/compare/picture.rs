//! `--picture`: the comparison as bars in one SVG file, a panel per metric.

use super::figures::{Metric, Ran};
use super::{Comparison, table};
use crate::units::significant;
use askama::Template;
use headstack_model::spec::did_you_mean;

/// Pixels from a row to the next.
const ROW: usize = 24;
/// Pixels above the first row.
const TOP: usize = 62;
/// Pixels of a character of a label, on average. *Source:* assumption, sans-serif of 13 pixels.
const CHARACTER: f64 = 7.2;
/// Least pixels of a panel, and of the part that its longest bar takes; the rest is for the value behind it.
const PANEL: usize = 270;
const LONGEST: f64 = 180.0;
/// Colours of the panels, in turn, that readers with any colour vision can tell apart. *Source:* Okabe and Ito's palette.
const COLORS: [&str; 3] = ["#0072b2", "#e69f00", "#009e73"];

/// What `--panel` names: a metric of all requests or of one job and kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Panel {
    /// Job and kind, such as `wal write`; all requests without.
    job: Option<String>,
    metric: Metric,
}

impl Panel {
    /// `p99_ms`, `wal write p99_ms`.
    ///
    /// *Errors:* a message without the option's name.
    pub(super) fn parse(text: &str) -> Result<Panel, String> {
        let text = text.trim();
        let Some((job, metric)) = text.rsplit_once(' ') else {
            return Ok(Panel { job: None, metric: Metric::parse(text)? });
        };
        let metric = Metric::parse(metric)?;
        if !Metric::OF_JOBS.contains(&metric) {
            return Err(format!("a job has no {}; it is one of all requests", metric.name()));
        }
        Ok(Panel { job: Some(job.trim().to_string()), metric })
    }

    /// *Errors:* the panel is of a job that is none of `jobs`, which are empty where the load names none.
    pub(super) fn check_job(&self, jobs: &[&str]) -> Result<(), String> {
        let Some(wanted) = self.job.as_deref().filter(|_| !jobs.is_empty()) else { return Ok(()) };
        let kinds = ["read", "write", "flush"];
        match wanted.rsplit_once(' ') {
            Some((job, kind)) if kinds.contains(&kind) && jobs.contains(&job) => Ok(()),
            Some((job, kind)) if kinds.contains(&kind) => {
                Err(format!("no job is called `{job}`{}", did_you_mean(job, jobs.iter().copied())))
            }
            _ => Err(format!(
                "`{wanted}` is no job with its kind, such as `{} read` ({})",
                jobs[0],
                kinds.join(", ")
            )),
        }
    }

    /// The default panels of a picture.
    pub(super) fn usual() -> Vec<Panel> {
        [Metric::Iops, Metric::P99Ms].map(|metric| Panel { job: None, metric }).into()
    }

    /// The value of a cell; none where it has no such job or figure.
    fn value(&self, ran: &Ran) -> Option<f64> {
        let value = match &self.job {
            None => ran.value(self.metric),
            Some(name) => ran.jobs().into_iter().find(|job| job.name == *name)?.values[self.metric as usize],
        };
        value.is_finite().then_some(value)
    }

    /// Pixels that its bars, and its title with a gap behind it, take.
    fn width(&self) -> usize {
        PANEL.max(14 + text_width(&self.title()))
    }

    fn title(&self) -> String {
        let job = self.job.as_ref().map_or(String::new(), |job| format!("{job}: "));
        format!("{job}{}", title(self.metric))
    }
}

/// Pixels of a text.
fn text_width(text: &str) -> usize {
    (text.chars().count() as f64 * CHARACTER) as usize
}

fn title(metric: Metric) -> &'static str {
    match metric {
        Metric::Iops => "requests a second",
        Metric::MbS => "MB a second",
        Metric::MeanMs => "mean response, ms",
        Metric::P50Ms => "median response, ms",
        Metric::P99Ms => "p99 response, ms",
        Metric::MaxMs => "longest response, ms",
        Metric::Arm => "share of the time that the arm works",
        Metric::Hits => "share of reads without an access",
        Metric::RebuildH => "hours to rebuild the spares",
    }
}

#[derive(Template)]
#[template(path = "picture.svg")]
struct BarPicture {
    width: usize,
    height: usize,
    title: String,
    heading: String,
    label_end: usize,
    labels: Vec<RowLabel>,
    panels: Vec<PanelBars>,
}

struct RowLabel {
    y: usize,
    text: String,
}

struct PanelBars {
    x: usize,
    title: String,
    color: &'static str,
    bars: Vec<PanelBar>,
}

struct PanelBar {
    y: usize,
    width: String,
    value_x: String,
    value_y: usize,
    value: String,
}

/// The comparison as the text of an SVG file. Panels of one metric share the scale and the colour.
///
/// *Errors:* a panel names a job that no run has; the message lists the jobs that exist.
pub(super) fn to_svg(comparison: &Comparison, panels: &[Panel]) -> Result<String, String> {
    let rows: Vec<String> =
        comparison.ran.iter().map(|ran| table::words(comparison, ran).join(", ")).collect();
    let heading = table::names(comparison).join(", ");
    let label_end = 12 + rows.iter().chain([&heading]).map(|text| text_width(text)).max().unwrap_or(0);
    let values = panels.iter().map(|panel| values(comparison, panel)).collect::<Result<Vec<_>, _>>()?;
    let mut metrics: Vec<Metric> = Vec::new();
    let (mut drawn, mut x) = (Vec::new(), label_end + 14);
    for (index, panel) in panels.iter().enumerate() {
        let same = panels.iter().zip(&values).filter(|(other, _)| other.metric == panel.metric);
        let most = same.flat_map(|(_, values)| values).flatten().copied().fold(0.0, f64::max);
        let color = metrics.iter().position(|known| *known == panel.metric).unwrap_or_else(|| {
            metrics.push(panel.metric);
            metrics.len() - 1
        });
        drawn.push(PanelBars {
            x,
            title: panel.title(),
            color: COLORS[color % COLORS.len()],
            bars: bars(&values[index], most, x),
        });
        x += panel.width();
    }
    let labels = rows.into_iter().enumerate().map(|(row, text)| RowLabel { y: TOP + row * ROW + 13, text });
    let picture = BarPicture {
        width: x,
        height: TOP + comparison.ran.len() * ROW + 10,
        title: comparison.load.rsplit('/').next().unwrap_or_default().to_string(),
        heading,
        label_end,
        labels: labels.collect(),
        panels: drawn,
    };
    Ok(picture.render().expect("the template writes to memory"))
}

/// The values of a panel, a row each.
fn values(comparison: &Comparison, panel: &Panel) -> Result<Vec<Option<f64>>, String> {
    let values: Vec<Option<f64>> = comparison.ran.iter().map(|ran| panel.value(ran)).collect();
    let Some(wanted) = panel.job.as_ref().filter(|_| values.iter().all(Option::is_none)) else {
        return Ok(values);
    };
    let mut names: Vec<String> = Vec::new();
    for job in comparison.ran.iter().flat_map(Ran::jobs) {
        if !names.contains(&job.name) {
            names.push(job.name);
        }
    }
    Err(format!("no run has `{wanted}`; it is one of {}", names.join(", ")))
}

/// A bar per value, where the largest value of the scale has the full length.
fn bars(values: &[Option<f64>], most: f64, x: usize) -> Vec<PanelBar> {
    let bar = |(row, value): (usize, &Option<f64>)| {
        let width = value.filter(|_| most > 0.0).map_or(0.0, |value| value / most * LONGEST);
        PanelBar {
            y: TOP + row * ROW,
            width: format!("{width:.1}"),
            value_x: format!("{:.1}", x as f64 + width + 5.0),
            value_y: TOP + row * ROW + 13,
            value: value.map_or("–".to_string(), |value| significant(value, 4)),
        }
    };
    values.iter().enumerate().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::super::figures::JobFigures;
    use super::super::figures::tests::ran;
    use super::*;

    fn comparison(cells: Vec<Ran>) -> Comparison {
        let varied = super::super::grid::Varied::parse("drive.queue_depth=1,8")
            .unwrap_or_else(|failure| panic!("{failure}"));
        Comparison {
            load: "jobs/a<b.fio".to_string(),
            seed: 0,
            seeds: 1,
            baseline_label: None,
            goal: None,
            rigs: Vec::new(),
            varied: vec![varied],
            ran: cells,
            failed: Vec::new(),
            partial: None,
        }
    }

    #[test]
    fn longest_bar_has_the_full_length_and_others_their_share() {
        let cells =
            vec![ran(&[("drive.queue_depth", "1")], &[10.0]), ran(&[("drive.queue_depth", "8")], &[40.0])];
        let panels = [
            Panel::parse("p99_ms").expect("it is a metric"),
            Panel::parse("rebuild_h").expect("it is a metric"),
        ];
        let svg = to_svg(&comparison(cells), &panels).expect("all panels have values");
        for part in ["a&#60;b.fio", "width=\"180.0\"", "width=\"45.0\"", ">40.00</text>", ">–</text>"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }

    #[test]
    fn long_title_moves_the_next_panel() {
        let name = "a job with a name that is longer than any bar".to_string();
        let mut cell = ran(&[("drive.queue_depth", "1")], &[10.0]);
        cell.runs[0].jobs.push(JobFigures { name: name.clone(), requests: 1, values: [1.0; 6] });
        let panels =
            ["iops", "p99_ms"].map(|metric| Panel::parse(&format!("{name} {metric}")).expect("it is one"));
        let svg = to_svg(&comparison(vec![cell]), &panels).expect("all panels have values");
        let starts: Vec<usize> = svg
            .lines()
            .filter(|line| line.contains(&name))
            .filter_map(|line| line.split('"').nth(1)?.parse().ok())
            .collect();
        assert_eq!(starts[1] - starts[0], 14 + text_width(&panels[0].title()), "{svg}");
    }

    #[test]
    fn panel_names_a_metric_or_one_of_a_job() {
        assert_eq!(Panel::parse("mb_s"), Ok(Panel { job: None, metric: Metric::MbS }));
        let wal = Panel { job: Some("wal flush".to_string()), metric: Metric::P99Ms };
        assert_eq!(Panel::parse("wal flush p99_ms"), Ok(wal.clone()));
        assert_eq!(
            Panel::parse("p98_ms"),
            Err("no metric is called `p98_ms`; did you mean `p99_ms`?".to_string())
        );
        assert_eq!(
            Panel::parse("wal flush arm_share"),
            Err("a job has no arm_share; it is one of all requests".to_string())
        );
        let refused = to_svg(&comparison(vec![ran(&[], &[1.0])]), &[wal]).expect_err("no run has jobs");
        assert!(refused.starts_with("no run has `wal flush`"), "{refused}");
    }
}
