//! Everyday loads on drives to which nothing was fitted: how far is the simulator off, by class of load?
//!
//! A metric is named `drive.condition_figure`. Modelled: what benchmarks and their users measured on drives of 2003 to 2022, each drive
//! from its file or made from its data sheet. Not modelled: what differs between two drives of a kind, which is a tenth.
//! *Source:* each row of `studies/everyday/expect.tsv` names its own.

mod conditions;
mod measure;
mod overrides;
mod records;
mod sheets;

use crate::expect::{Basis, Expected, Kind};
use crate::judge::{self, Measured};
use crate::study::{Bench, Findings, Length, Reproduction, Setting, Study, StudyError};
use conditions::{Class, Condition};
use headstack::report::{Cell, Section, Table};
use measure::Measurement;
pub use overrides::Overrides;

pub(crate) const STUDY: Study = Study {
    id: "everyday",
    title: "Everyday loads on drives to which nothing was fitted",
    summary: "Random reads and writes over queue depth with their slow responses, streams of large and small requests, flushes, and records on \
              shingled disks: the error of each figure, and of each class of load.",
    expect: include_str!("../../studies/everyday/expect.tsv"),
    run,
};

/// The rows of the errors themselves: of all published figures, and of those without quantiles other than the 99th percentile, of which a
/// run has many.
const SUMMARIES: [&str; 2] = ["all", "rates"];

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    measure(setting, &Overrides::default(), "*")
}

/// The study with keys set over those of drives, and only the metrics whose names are like a pattern, in which `*` stands for any text.
///
/// *Errors:* an override names no key or has an invalid value; the study cannot be run.
pub fn reproduce(
    overrides: &Overrides,
    metrics: &str,
    length: Length,
    bench: &dyn Bench,
) -> Result<Reproduction, StudyError> {
    let rows = STUDY.expected()?;
    let findings = measure(&Setting { length, rows: &rows, bench }, overrides, metrics)?;
    Ok(Reproduction { rows: judge::judge(rows, &findings.measured, length), sections: findings.sections })
}

/// A row with the value that the study found.
struct Found<'a> {
    row: &'a Expected,
    class: Class,
    published: f64,
    ours: f64,
}

impl Found<'_> {
    /// (ours - published) / published, in percent.
    fn error(&self) -> f64 {
        (self.ours / self.published - 1.0) * 100.0
    }

    /// Whether its error counts: no parameter was taken from the figure.
    fn counts(&self) -> bool {
        self.row.basis == Basis::Published && self.row.kind != Kind::NotComparable
    }
}

fn measure(setting: &Setting<'_>, overrides: &Overrides, metrics: &str) -> Result<Findings, StudyError> {
    let wanted = |condition: &Condition| rows_of(setting, condition).any(|(row, _)| is_wanted(row, metrics));
    let conditions: Vec<Condition> =
        conditions::ALL.iter().copied().flatten().copied().filter(wanted).collect();
    let measurement = Measurement { overrides, length: setting.length };
    let figures = setting.map(&conditions, |condition| measurement.figures(condition))?;
    let mut found = Vec::new();
    for (condition, figures) in conditions.iter().zip(figures) {
        for (row, name) in rows_of(setting, condition).filter(|(row, _)| is_wanted(row, metrics)) {
            let Some((_, ours)) = figures.iter().find(|(figure, _)| figure == name) else { continue };
            let published = row.value.expect("each row of a condition has a value");
            found.push(Found { row, class: condition.class.of_figure(name), published, ours: *ours });
        }
    }
    let mut measured: Vec<Measured> =
        found.iter().map(|found| Measured::new(&found.row.metric, found.ours)).collect();
    for summary in SUMMARIES {
        let figures = found.iter().filter(|found| found.counts());
        let errors =
            Errors::from_rows(figures.filter(|found| summary == "all" || found.class != Class::Quantiles));
        let row = |name: &str, share| Measured::new(format!("{summary}.{name}"), errors.quantile(share));
        measured.extend([row("median_error", 0.5), row("p90_error", 0.9)]);
    }
    Ok(Findings { measured, sections: vec![by_class(&found), row_by_row(&found)] })
}

fn is_wanted(row: &Expected, metrics: &str) -> bool {
    overrides::is_like(metrics, &row.metric)
}

/// The rows of a condition, each with the name of its figure.
fn rows_of<'a>(
    setting: &'a Setting<'_>,
    condition: &Condition,
) -> impl Iterator<Item = (&'a Expected, &'a str)> + use<'a> {
    let name = condition.name;
    setting.rows.iter().filter_map(move |row| {
        let figure = row.metric.strip_prefix(name)?.strip_prefix('_')?;
        // The name of one condition may begin that of another: `…_off`.
        let is_other = conditions::ALL.iter().copied().flatten().any(|other| {
            other.name.len() > name.len() && row.metric.starts_with(&format!("{}_", other.name))
        });
        (!is_other).then_some((row, figure))
    })
}

/// Errors in percent.
struct Errors {
    /// Their amounts, by size.
    sorted: Vec<f64>,
    /// With their signs, by size.
    signed: Vec<f64>,
}

impl Errors {
    fn from_rows<'a>(found: impl Iterator<Item = &'a Found<'a>>) -> Errors {
        let mut signed: Vec<f64> = found.map(Found::error).collect();
        let mut sorted: Vec<f64> = signed.iter().map(|error| error.abs()).collect();
        signed.sort_by(f64::total_cmp);
        sorted.sort_by(f64::total_cmp);
        Errors { sorted, signed }
    }

    /// The amount that this share of the errors does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        quantile(&self.sorted, share)
    }
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}

fn by_class(found: &[Found<'_>]) -> Section {
    let columns =
        ["class of load", "figures", "median %", "p90 %", "largest %", "median with sign %", "over 15 %"];
    let mut table = Table::new("Error of the published figures by class of load", columns);
    let mut add = |name: &str, errors: &Errors| {
        let over = errors.sorted.iter().filter(|error| **error > 15.0).count();
        let sizes =
            [errors.quantile(0.5), errors.quantile(0.9), errors.quantile(1.0), quantile(&errors.signed, 0.5)];
        let mut row: Vec<Cell> = vec![name.into(), errors.sorted.len().to_string().into()];
        row.extend(sizes.map(Cell::from));
        row.push(over.to_string().into());
        table.row(row);
    };
    let counted = || found.iter().filter(|found| found.counts());
    for (class, name) in Class::ALL {
        let errors = Errors::from_rows(counted().filter(|found| found.class == class));
        if !errors.sorted.is_empty() {
            add(name, &errors);
        }
    }
    add(
        "all but other quantiles",
        &Errors::from_rows(counted().filter(|found| found.class != Class::Quantiles)),
    );
    add("all", &Errors::from_rows(counted()));
    Section::new("How far off, by class of load")
        .with_text(
            "The error of a figure is our value over the measured one, less 1. Figures from which a parameter was taken are not counted. Two \
             drives of one model differ by a tenth: no model can be judged finer than that.",
        )
        .with_table(table)
}

fn row_by_row(found: &[Found<'_>]) -> Section {
    let columns = ["class of load", "drive", "figure", "basis", "measured", "ours", "error %"];
    let mut table = Table::new("Each figure", columns).with_words(4);
    let mut rows: Vec<&Found<'_>> = found.iter().collect();
    rows.sort_by(|a, b| {
        a.class
            .cmp(&b.class)
            .then(b.counts().cmp(&a.counts()))
            .then(b.error().abs().total_cmp(&a.error().abs()))
    });
    for found in rows {
        let (drive, figure) = found.row.metric.split_once('.').unwrap_or(("", &found.row.metric));
        let basis = if found.counts() { "published" } else { "not counted" };
        table.named_row(
            [found.class.name(), drive, figure, basis],
            [found.published, found.ours, found.error()],
        );
    }
    Section::new("Figure by figure").with_table(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Alone;

    #[test]
    fn every_row_belongs_to_one_condition() {
        let rows = STUDY.expected().expect("the file holds");
        let setting = Setting { length: Length::Quick, rows: &rows, bench: &Alone };
        let all = || conditions::ALL.iter().copied().flatten();
        for row in rows.iter().filter(|row| row.basis != Basis::Ours) {
            let owners = all().filter(|condition| {
                rows_of(&setting, condition).any(|(other, _)| other.metric == row.metric)
            });
            assert_eq!(owners.count(), 1, "{}", row.metric);
        }
        for condition in all() {
            assert!(rows_of(&setting, condition).count() > 0, "{} has no row", condition.name);
        }
    }

    #[test]
    fn only_published_figures_count() {
        let done = reproduce(&Overrides::default(), "*.read_4k_qd1_*", Length::Quick, &Alone)
            .expect("the study runs");
        let value = |metric: &str| {
            done.rows.iter().find(|row| row.expected.metric == metric).and_then(|row| row.ours)
        };
        let mut errors: Vec<f64> = done
            .rows
            .iter()
            .filter(|row| row.expected.basis == Basis::Published && row.expected.kind != Kind::NotComparable)
            .filter_map(|row| Some((row.ours? / row.expected.value? - 1.0).abs() * 100.0))
            .collect();
        errors.sort_by(f64::total_cmp);
        assert!(errors.len() > 10 && value("st2000dm006.read_4k_qd1_iops").is_some());
        assert_eq!(value("all.median_error"), Some(quantile(&errors, 0.5)));
        assert_eq!(value("all.p90_error"), Some(quantile(&errors, 0.9)));
    }

    #[test]
    fn override_changes_the_drives_it_names() {
        let mut overrides = Overrides::default();
        overrides.add("hd103uj:queue.order=fcfs").expect("it has the form");
        let rate = |overrides: &Overrides, metric: &str| {
            let done = reproduce(overrides, metric, Length::Quick, &Alone).expect("the study runs");
            done.rows.iter().find(|row| row.expected.metric == metric).and_then(|row| row.ours)
        };
        for (metric, changes) in
            [("hd103uj.read_4k_qd16_iops", true), ("hts721010g9.read_4k_qd8_iops", false)]
        {
            let (plain, with) = (rate(&Overrides::default(), metric), rate(&overrides, metric));
            assert_eq!(plain.is_some_and(|plain| with < Some(0.8 * plain)), changes, "{metric}");
        }
    }
}
