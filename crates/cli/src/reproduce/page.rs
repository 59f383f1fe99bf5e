//! The report of a study as a page: its rows, then its figures.

use super::caution;
use super::text::{self, cells};
use crate::report::{Axis, Chart, Draw, Report, Section, Series, Table};
use crate::units::significant;
use headstack_studies::figure::{self, Cell, Look};
use headstack_studies::study::{Length, Reproduction, Study};

/// The page.
pub(super) fn report(study: &Study, done: &Reproduction, length: Length) -> Report {
    let mut text = vec![study.summary.to_string(), text::summary(&done.rows)];
    text.extend(caution(length).map(str::to_string));
    let rows = Section {
        title: "Published and ours".to_string(),
        tables: vec![rows(done), sources(done)],
        ..Section::default()
    };
    // Figures are looked at before rows are read, and what is off comes before all.
    let sections = misses(done).into_iter().chain(done.sections.iter().map(section)).chain([rows]).collect();
    Report { title: study.title.to_string(), text, sections }
}

/// The rows that are off, if any are.
fn misses(done: &Reproduction) -> Option<Section> {
    let mut table =
        Table::new("Rows that are off", &["what", "published", "ours", "difference", "allowed", "unit"]);
    for row in done.misses() {
        let [_, figures @ .., _] = cells(row);
        table.row(std::iter::once(row.expected.what.clone()).chain(figures));
    }
    let reasons = text::reasons(done.misses()).into_iter().map(|(reason, rows)| {
        let rows: Vec<&str> = rows.iter().map(|row| row.expected.what.as_str()).collect();
        format!("{}: {reason}.", rows.join("; "))
    });
    (!table.rows.is_empty()).then(|| Section {
        title: "What is off".to_string(),
        text: reasons.collect(),
        tables: vec![table.clone()],
        ..Section::default()
    })
}

fn rows(done: &Reproduction) -> Table {
    let columns: Vec<&str> = ["what"].into_iter().chain(text::COLUMNS[1..].iter().copied()).collect();
    let mut table = Table::new("Rows", &columns);
    for row in &done.rows {
        let [_, others @ ..] = cells(row);
        table.row(std::iter::once(row.expected.what.clone()).chain(others));
    }
    table
}

fn sources(done: &Reproduction) -> Table {
    let mut table = Table::new("Sources, and reasons", &["metric", "source", "basis", "first run", "reason"]);
    table.words = 5;
    for row in &done.rows {
        let (expected, reason) = (&row.expected, row.reason().unwrap_or_default().to_string());
        let first_run = text::value(expected.first_run);
        let basis = expected.basis.name().to_string();
        table.row([expected.metric.clone(), expected.source.clone(), basis, first_run, reason]);
    }
    table
}

fn section(section: &figure::Section) -> Section {
    Section {
        title: section.title.clone(),
        text: section.text.clone(),
        charts: section.figures.iter().map(chart).collect(),
        tables: section.tables.iter().map(table).collect(),
    }
}

fn chart(figure: &figure::Figure) -> Chart {
    let series = figure.lines.iter().map(|line| Series {
        name: line.name.clone(),
        points: line.points.clone(),
        draw: match line.look {
            Look::Curve => Draw::Points,
            Look::Dense => Draw::Line,
            Look::Marks => Draw::Marks,
            Look::Bars => Draw::Bars,
        },
        hue: line.family,
        dashed: line.dashed,
        errors: line.errors.clone(),
        hidden: false,
    });
    Chart { title: figure.title.clone(), x: axis(&figure.x), y: axis(&figure.y), series: series.collect() }
}

fn axis(axis: &figure::Axis) -> Axis {
    Axis { label: axis.label.clone(), log: axis.log, ticks: axis.ticks.clone(), names: axis.names.clone() }
}

fn table(of: &figure::Table) -> Table {
    let columns: Vec<&str> = of.columns.iter().map(String::as_str).collect();
    let mut table = Table::new(&of.title, &columns);
    table.words = of.words;
    for row in &of.rows {
        table.row(row.iter().map(|cell| match cell {
            Cell::Word(word) => word.clone(),
            Cell::Number(number) => significant(*number, 4),
            Cell::Empty => String::new(),
        }));
    }
    table
}
