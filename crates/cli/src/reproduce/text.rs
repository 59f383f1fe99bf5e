//! The rows of a study as a table, on a terminal and on the page.

use super::{Ran, caution};
use crate::failure::Failure;
use crate::report::Table;
use crate::units::significant;
use headstack_studies::expect::{Basis, Expected, Kind};
use headstack_studies::judge::Judged;
use headstack_studies::study::{Length, Study};
use std::io::Write;

const DIGITS: i32 = 4;

pub(super) fn print(ran: &Ran, length: Length, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "{}\n", ran.study.title.to_uppercase())?;
    let mut table = Table::new("Rows", &COLUMNS).with_words(1);
    for row in &ran.done.rows {
        table.row(cells(row));
    }
    writeln!(out, "{}", table.to_text())?;
    for (reason, rows) in reasons(&ran.done.rows) {
        let rows: Vec<&str> = rows.iter().map(|row| row.expected.metric.as_str()).collect();
        let text = format!("{}: {reason}", rows.join(", "));
        writeln!(out, "{}", textwrap::fill(&text, textwrap::Options::new(110).subsequent_indent("    ")))?;
    }
    writeln!(out, "{}", summary(&ran.done.rows))?;
    if let Some(caution) = caution(length) {
        writeln!(out, "{caution}")?;
    }
    writeln!(out, "Report: {}\n", ran.page.display())?;
    Ok(())
}

/// Prints the number of rows per verdict over all studies.
pub(super) fn print_sum(all: &[Ran], out: &mut dyn Write) -> Result<(), Failure> {
    let rows = all.iter().flat_map(|ran| &ran.done.rows);
    writeln!(out, "{} studies: {}", all.len(), summary(rows))?;
    Ok(())
}

/// Lists the studies that did not finish because of a signal.
pub(super) fn print_not_run(studies: &[&Study], out: &mut dyn Write) -> Result<(), Failure> {
    for study in studies {
        let rows = study.expected().map_err(Failure::input)?.len();
        writeln!(out, "{}: {rows} rows: not run.", study.id)?;
    }
    Ok(())
}

pub(super) const COLUMNS: [&str; 7] =
    ["metric", "published", "ours", "difference", "allowed", "unit", "verdict"];

pub(super) fn cells(row: &Judged) -> [String; COLUMNS.len()] {
    let expected = &row.expected;
    [
        expected.metric.clone(),
        value(expected.value),
        value(row.ours),
        difference(row),
        allowed(expected),
        expected.unit.clone(),
        row.verdict.name().to_string(),
    ]
}

/// The number of rows per verdict, in three groups: rows with a published figure, rows from whose figure a parameter was taken, and rows with
/// a figure of the project.
pub(super) fn summary<'a>(rows: impl IntoIterator<Item = &'a Judged>) -> String {
    let rows: Vec<&Judged> = rows.into_iter().collect();
    let counts = |(basis, one, several): (Basis, &str, &str)| {
        let rows: Vec<&&Judged> = rows.iter().filter(|row| row.expected.basis == basis).collect();
        let counts = ["pass", "held", "off", "not comparable"].map(|name| {
            let count = rows.iter().filter(|row| row.verdict.name() == name).count();
            (count > 0).then(|| format!("{count} {name}"))
        });
        let counts = counts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let what = if rows.len() == 1 { one } else { several };
        (!rows.is_empty()).then(|| format!("{} {what}: {counts}.", rows.len()))
    };
    let all = [
        (Basis::Published, "published row", "published rows"),
        (
            Basis::Calibrated,
            "published row that a parameter was taken from",
            "published rows that parameters were taken from",
        ),
        (Basis::Ours, "row with a goal or check of our own", "rows with a goal or check of our own"),
    ];
    all.into_iter().filter_map(counts).collect::<Vec<_>>().join(" ")
}

/// The reasons of rows that are not comparable or off, each with the rows that it applies to.
pub(super) fn reasons<'a>(rows: impl IntoIterator<Item = &'a Judged>) -> Vec<(&'a str, Vec<&'a Judged>)> {
    let mut reported: Vec<(&str, Vec<&Judged>)> = Vec::new();
    for row in rows {
        let Some(reason) = row.reason() else { continue };
        match reported.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, rows)) => rows.push(row),
            None => reported.push((reason, vec![row])),
        }
    }
    reported
}

pub(super) fn value(value: Option<f64>) -> String {
    value.map_or("–".to_string(), |value| significant(value, DIGITS))
}

/// The difference as a share of the published value. It is in the row's unit if the tolerance is absolute, or if the value is 0 or itself a
/// share.
fn difference(row: &Judged) -> String {
    match (row.difference(), row.expected.value) {
        (Some(off), Some(published))
            if row.expected.kind != Kind::Absolute && row.expected.unit != "%" && published != 0.0 =>
        {
            format!("{:+.1} %", 100.0 * off / published.abs())
        }
        (Some(0.0), _) => "0".to_string(),
        (Some(off), _) => format!("{}{}", if off < 0.0 { "" } else { "+" }, significant(off, 3)),
        (None, _) => String::new(),
    }
}

fn allowed(row: &Expected) -> String {
    // Three digits, without trailing zeros.
    let percent = significant(100.0 * row.tolerance, 3);
    let percent =
        if percent.contains('.') { percent.trim_end_matches('0').trim_end_matches('.') } else { &percent };
    match row.kind {
        Kind::Relative => format!("±{percent} %"),
        Kind::Absolute => format!("±{}", row.tolerance),
        Kind::AtMost if row.tolerance == 0.0 => "≤".to_string(),
        Kind::AtLeast if row.tolerance == 0.0 => "≥".to_string(),
        Kind::AtMost => format!("≤ +{percent} %"),
        Kind::AtLeast => format!("≥ -{percent} %"),
        Kind::NotComparable => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_studies::expect;
    use headstack_studies::judge::{Measured, judge};

    #[test]
    fn row_formats_difference_and_tolerance_by_its_kind() {
        let text = "metric\twhat\tkind\tvalue\ttolerance\tunit\tsource\tbasis\tfirst_run\treason\n\
                    a\tw\trelative\t10\t0.025\tms\tb\tpublished\t-\n\
                    c\tw\tabsolute\t20\t2\tms\tb\tours\t8\n\
                    d\tw\tat-most\t4\t0\tms\tb\tours\t-\n\
                    e\tw\tnot-comparable\t-\t-\tms\tb\tpublished\t-\tno value\n\
                    f\tw\trelative\t9\t0.2\tms\tb\tcalibrated\t-\n";
        let rows = expect::parse(text, "x.tsv").expect("the text is good");
        let measured = ["a", "c", "d", "e", "f"].map(|metric| Measured::new(metric, 9.9));
        let rows = judge(rows, &measured, Length::Full);
        let cells: Vec<_> = rows.iter().map(cells).collect();
        assert_eq!(cells[0], ["a", "10.00", "9.900", "-1.0 %", "±2.5 %", "ms", "pass"]);
        assert_eq!(cells[1], ["c", "20.00", "9.900", "-10.1", "±2", "ms", "off"]);
        assert_eq!(cells[2], ["d", "4.000", "9.900", "+147.5 %", "≤", "ms", "off"]);
        assert_eq!(cells[4], ["f", "9.000", "9.900", "+10.0 %", "±20 %", "ms", "held"]);
        assert_eq!(cells[3], ["e", "–", "9.900", "", "", "ms", "not comparable"]);
        let ours = "2 rows with a goal or check of our own: 2 off.";
        let put_in = "1 published row that a parameter was taken from: 1 held.";
        assert_eq!(summary(&rows), format!("2 published rows: 1 pass, 1 not comparable. {put_in} {ours}"));
        let [(reason, with_it)] = &reasons(&rows)[..] else { panic!("one row has a reason") };
        assert_eq!((*reason, with_it[0].expected.metric.as_str(), with_it.len()), ("no value", "e", 1));
    }
}
