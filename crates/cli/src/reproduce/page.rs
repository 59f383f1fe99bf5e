//! The report of a study as a page: its rows, then its figures.

use super::caution;
use super::text::{self, cells};
use crate::report::{Report, Section, Table};
use headstack_studies::study::{Length, Reproduction, Study};

pub(super) fn report(study: &Study, done: &Reproduction, length: Length) -> Report {
    let mut text = vec![study.summary.to_string(), text::summary(&done.rows)];
    text.extend(caution(length).map(str::to_string));
    let rows = Section::new("Published and ours").with_table(rows(done)).with_table(sources(done));
    // Rows that are off come first, then figures, then all rows.
    let sections = misses(done).into_iter().chain(done.sections.iter().cloned()).chain([rows]).collect();
    Report { title: study.title.to_string(), text, sections }
}

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
    (!table.rows.is_empty()).then(|| Section::new("What is off").with_texts(reasons).with_table(table))
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
    let mut table = Table::new("Sources, and reasons", &["metric", "source", "basis", "first run", "reason"])
        .with_words(5);
    for row in &done.rows {
        let (expected, reason) = (&row.expected, row.reason().unwrap_or_default().to_string());
        let first_run = text::value(expected.first_run);
        let basis = expected.basis.name().to_string();
        table.row([expected.metric.clone(), expected.source.clone(), basis, first_run, reason]);
    }
    table
}
